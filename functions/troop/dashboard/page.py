"""Renders views as HTML for a CloudWatch dashboard. It has no script, which CloudWatch would remove, and escapes
everything.

The text comes from people, tags and tables. Unprintable characters are replaced, and long text is cut. A click calls
the same function again with the parameters of a ``cwdb-action``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from troop.bench.definition.living import Grade
from troop.bench.definition.money import shown
from troop.bench.definition.names import report_key
from troop.bench.definition.standing import Standing
from troop.bench.records.live_view import OLD_SECONDS
from troop.bench.records.record import RunStatus
from troop.chaos.decisions import TERMINATE
from troop.chaos.events import OPEN, Event, Status, in_words, is_on_demand
from troop.chaos.policy import PARSERS, Policy
from troop.chaos.stages import source_name
from troop.chaos.verdict import VerdictValue
from troop.chaos.verdict_rules import recovery_bounds
from troop.dashboard.commands import Command, Shell
from troop.dashboard.console import Console
from troop.dashboard.views import (
    DecisionsView,
    EventsView,
    LiveRunView,
    RunsView,
    UnitDecisionsView,
    UnitsView,
    UnitView,
    View,
)
from troop.dashboard.widget_request import KINDS, SHOWS, Viewer
from troop.shared import formatting
from troop.shared.choice import Choice, text_of
from troop.shared.errors import TroopError

LARGEST = 2_500_000
"""The most bytes of an answer. CloudWatch documents no limit; Lambda's is 6 MB of JSON, where a quotation mark takes
two.
"""

LONGEST = 300
"""The most characters of any printed text except commands."""

TEMPLATES = Path(__file__).parent / "templates"

_TEMPLATES: Mapping[type[Any], tuple[str, int]] = {
    EventsView: ("events.html", 900),
    DecisionsView: ("decisions.html", 640),
    UnitDecisionsView: ("unit_decisions.html", 480),
    UnitsView: ("units.html", 960),
    UnitView: ("unit.html", 720),
    RunsView: ("runs.html", 810),
    LiveRunView: ("live.html", 560),
}
"""Each view's template by name, and the pixels that its table needs. In a narrower widget, rows are stacked as blocks.
"""

MOST_CHECKS = 5
"""The most checks of a role that a widget shows, the worst ones."""

_TONES = {
    "good": {Status.RECOVERED, RunStatus.SUCCEEDED, VerdictValue.HELD, Grade.OK},
    "bad": {Status.UNRECOVERED, RunStatus.FAILED, VerdictValue.BROKEN, Grade.FAIL},
    "busy": {*OPEN, RunStatus.ADMITTED, RunStatus.RUNNING, RunStatus.STOPPING},
    "odd": {Status.ABANDONED, RunStatus.PARTIAL, VerdictValue.UNKNOWN, Grade.WARN},
}


class TooLargeError(TroopError):
    """The widget is too large to show."""

    def __init__(self) -> None:
        super().__init__("the widget is too large to show: set a smaller limit")


@dataclass(frozen=True)
class Frame:
    """The context of every view.

    Attributes:
        endpoint: ARN of the function, for clicks.
        now: aware.
        results: the bucket with the reports of runs; None without benchmarks.
    """

    endpoint: str
    viewer: Viewer
    console: Console
    shell: Shell
    now: datetime
    results: str | None = None

    def when(self, moment: datetime) -> str:
        """Formats a moment in the dashboard's time zone."""
        return f"{moment.astimezone(self.viewer.zone):%Y-%m-%d %H:%M}"

    def clock(self, moment: datetime) -> str:
        return f"{moment.astimezone(self.viewer.zone):%H:%M}"

    def report(self, run: str) -> str | None:
        """Returns the console's address of a run's report. It is not signed: a user needs permission to open it."""
        return self.console.object(self.results, report_key(run)) if self.results else None

    def repaired(self, fleet: Standing) -> int:
        """Returns the number of a fleet's repairs in the last hour."""
        return sum(repair.at > self.now - timedelta(hours=1) for repair in fleet.repairs)

    @property
    def soon(self) -> date:
        """A future day for examples."""
        return (self.now + timedelta(days=7)).date()

    def recovery(self, event: Event) -> str:
        """Returns the seconds until the group recovered, within their bounds, or since the recovery is awaited; or that
        it was whole when its lasting fault was over.
        """
        if bounds := recovery_bounds(event):
            if event.victim_stays and not bounds[0]:
                return "was whole"
            return " to ".join(dict.fromkeys(f"{seconds:,.0f}" for seconds in bounds if seconds) or ["0"]) + " s"
        if event.is_recovering and event.recovers_from:
            return f"{max(0.0, (self.now - event.recovers_from).total_seconds()):,.0f} s so far"
        return ""

    def fault(self, event: Event) -> str:
        """Returns what is known of a lasting fault and its end; "" for a termination, and before it."""
        injection, began = event.injection, event.hit_at
        if injection is None or began is None:
            return ""
        parts = [event.fault]
        if injection.end_request:
            parts.append(f"asked to end: {injection.end_request.why}")
        if injection.proof:
            seconds = max(0.0, (injection.proof.at - began).total_seconds())
            parts.append(f"proven over after {seconds:,.0f} s: {injection.proof.why}")
        elif injection.unproven:
            parts.append(f"not proven over, act now: {injection.unproven}")
        elif injection.ends_by:
            parts.append(f"ends by {self.clock(injection.ends_by)}, not yet proven over")
        return "; ".join(parts)

    def stages(self, event: Event) -> str:
        """Returns the seconds after which each stage of the recovery was reached; "" if they were not recorded."""
        began, stages = event.recovers_from, event.stages
        if began is None or stages is None or event.victim_stays:
            return ""
        reached = {
            "noticed": stages.noticed,
            "launched": stages.launched,
            "running": stages.running,
            "in service": stages.in_service,
        } | {f"healthy in {source_name(one.source)}": one.at for one in stages.healthy}
        return ", ".join(
            f"{name} {f'after {max(0.0, (at - began).total_seconds()):,.0f} s' if at else 'not known'}"
            for name, at in reached.items()
        )


def page(view: View, frame: Frame) -> str:
    """Renders a view as HTML.

    Raises:
        TooLargeError: it has more than :data:`LARGEST` bytes.
    """
    name, needed = _TEMPLATES[type(view)]
    narrow = frame.viewer.width is not None and frame.viewer.width < needed
    html = _render(name, frame.viewer, narrow, view=view, asked=view.request, frame=frame, shell=frame.shell)
    if len(html.encode(errors="replace")) > LARGEST:
        raise TooLargeError
    return html


def message(text: str, viewer: Viewer) -> str:
    """Renders a sentence instead of a widget."""
    return _render("message.html", viewer, narrow=False, text=text)


def _render(name: str, viewer: Viewer, narrow: bool, **context: Any) -> str:
    return _templates().get_template(name).render(viewer=viewer, narrow=narrow, **context)


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_legible,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )
    environment.filters |= {
        "tone": _tone,
        "span": _span,
        "seconds": _seconds,
        "milliseconds": lambda value: formatting.milliseconds(value).replace(formatting.SPACE, " "),
        "value": _value,
        "money": shown,
    }
    environment.globals |= {
        "TERMINATE": TERMINATE,
        "SHOWS": SHOWS,
        "KINDS": KINDS,
        "OLD_SECONDS": OLD_SECONDS,
        "MOST_CHECKS": MOST_CHECKS,
        "STATUSES": [status.value for status in Status],
        "VERDICTS": [value.value for value in VerdictValue],
        "in_words": in_words,
        "is_on_demand": is_on_demand,
        "settable": _settable,
    }
    return environment


def _legible(value: Any) -> Any:
    """Cuts text and replaces unprintable characters. HTML and commands stay unchanged."""
    if not isinstance(value, str) or isinstance(value, Command) or hasattr(value, "__html__"):
        return value
    cut = value if len(value) <= LONGEST else f"{value[: LONGEST - 1]}…"
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in cut)


def _tone(status: Any) -> str:
    return next((tone for tone, statuses in _TONES.items() if status in statuses), "plain")


def _span(begun: datetime, ended: datetime) -> str:
    """Formats a duration: ``1h 05m`` or ``2d 22h``."""
    minutes = max(0, int((ended.astimezone(UTC) - begun.astimezone(UTC)).total_seconds())) // 60
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours // 24}d {hours % 24:02d}h"
    return f"{hours}h {minutes:02d}m" if hours else f"{minutes}m"


def _seconds(seconds: float) -> str:
    """Formats seconds: ``3m 05s``."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02d}m" if hours else f"{minutes}m {rest:02d}s" if minutes else f"{rest}s"


def _value(value: Any) -> str:
    """Formats a policy's value for people; a dash for none."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, (tuple, list)):
        return ", ".join(one.text if isinstance(one, Choice) else str(one) for one in value) or "—"
    return "—" if value is None or value == "" else str(value)


_ALARM = ("ALARM",)
_EXAMPLES = {
    "stop_alarms": _ALARM,
    "success_alarms": _ALARM,
    "recovery_within": "SECONDS",
    "owner": "OWNER",
    "reason": "REASON",
}
"""Placeholders for values that are not set."""


def _settable(policy: Policy) -> list[tuple[str, Any, str, Any]]:
    """Returns (key, value, source, example value to set) for each value; the example is None if other commands set the
    value.
    """
    rows = []
    for key in policy.as_dict():
        sourced = getattr(policy, key)
        if key == "method":
            sourced = replace(sourced, value=text_of(sourced.value))
        example = (sourced.value or _EXAMPLES.get(key, sourced.value)) if key in PARSERS and key != "until" else None
        rows.append((key, sourced.value, sourced.source, example))
    return rows
