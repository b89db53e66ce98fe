"""Parses what a dashboard requests from a widget: which widget, its parameters, and where the answer is shown.

CloudWatch calls the function with the parameters of the dashboard's definition and a ``widgetContext``. A click in the
widget calls it with the parameters of the clicked element.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, timedelta, timezone, tzinfo
from enum import StrEnum
from typing import Any

from troop.chaos.events import Status
from troop.chaos.units import LONGEST_UNIT
from troop.chaos.verdict import VerdictValue
from troop.shared import values

LONGEST_POSITION = 4096
"""The most characters of a listing's position; Auto Scaling's own tokens are the longest."""

FORM = "form"
"""A parameter: use what the viewer typed into the widget's fields. Only the button beside them sends it."""


class Widget(StrEnum):
    EVENTS = "events"
    DECISIONS = "decisions"
    UNITS = "units"
    RUNS = "runs"
    LIVE = "live"


class BadParameter(ValueError):
    """A parameter with an invalid value; the message is a sentence for the dashboard's viewer."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a widget.

    Attributes:
        parse: see :mod:`troop.shared.values`.
        description: a phrase for its documentation.
        default: the value if the parameter is missing or blank.
        is_place: it is a listing's position, so it never comes from a form or a dashboard's definition.
    """

    parse: Callable[[Any], Any]
    description: str
    default: Any = None
    is_place: bool = False


_LIMIT = 50
_UNIT = values.text(LONGEST_UNIT)
_POSITION = Parameter(values.text(LONGEST_POSITION), "", is_place=True)
SHOWS = ("all", "left-out")
KINDS = ("benchmarks", "fleets")

PARAMETERS: Mapping[Widget, Mapping[str, Parameter]] = {
    Widget.EVENTS: {
        "limit": Parameter(values.whole(1, _LIMIT), f"events per page, 1 to {_LIMIT}", 15),
        "unit": Parameter(_UNIT, "only events of this unit"),
        "status": Parameter(values.one_of(*Status), "only events with this status: " + ", ".join(Status)),
        "verdict": Parameter(values.one_of(*VerdictValue), "only events with this verdict: " + ", ".join(VerdictValue)),
        "position": _POSITION,
    },
    Widget.DECISIONS: {
        "limit": Parameter(values.whole(1, _LIMIT), f"rows per page, 1 to {_LIMIT}", 15),
        "reason": Parameter(values.text(), "only decisions with this reason, such as `not-rolled`"),
        "unit": Parameter(_UNIT, "every tick's decision about this unit on the day"),
        "day": Parameter(values.day, "a local day, YYYY-MM-DD; by default each calendar's today"),
        "page": Parameter(values.whole(1, 1000), "", 1, is_place=True),
        "position": _POSITION,
    },
    Widget.UNITS: {
        "limit": Parameter(values.whole(1, _LIMIT), f"groups per page, 1 to {_LIMIT}", 20),
        "show": Parameter(values.one_of(*SHOWS), "`all`, or `left-out`: those that do not take part", "all"),
        "unit": Parameter(_UNIT, "all about this unit, or the unit of the group of this name"),
        "position": _POSITION,
    },
    Widget.RUNS: {
        "limit": Parameter(values.whole(1, _LIMIT), f"runs a page, 1 to {_LIMIT}", 10),
        "kind": Parameter(values.one_of(*KINDS), "`benchmarks`, or `fleets`: those that stand", "benchmarks"),
        "position": _POSITION,
    },
    Widget.LIVE: {
        "run": Parameter(values.text(64), "the id of a run; by default the newest one that goes on"),
    },
}
"""The parameters by widget, in the order of the widget's documentation."""


@dataclass(frozen=True)
class Viewer:
    """Where the answer is shown. CloudWatch does not report who views it.

    Attributes:
        dark: whether the console's theme is dark.
        width: the widget's width in pixels; None if unknown.
        zone: the dashboard's time zone, at its current offset.
    """

    dark: bool = False
    width: int | None = None
    zone: tzinfo = UTC


@dataclass(frozen=True)
class WidgetRequest:
    """A widget with all its parameters; missing ones have their default."""

    widget: Widget
    values: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def with_changes(self, **changes: Any) -> dict[str, Any]:
        """Returns the request with changes, as a click sends it: JSON-like, without default values, from the first
        page.
        """
        known = PARAMETERS[self.widget]
        remaining = {name: value for name, value in self.values.items() if not known[name].is_place}
        parameters = {
            name: value if isinstance(value, int) else str(value)
            for name, value in (remaining | changes).items()
            if value is not None and not (name in known and value == known[name].default)
        }
        return {"widget": self.widget.value, **parameters}


def parse(event: Mapping[str, Any]) -> WidgetRequest:
    """Parses the event that the function was called with. Ignores unknown parameters, because CloudWatch adds its own.

    Raises:
        BadParameter: there is no such widget, or a parameter's value is invalid.
    """
    try:
        widget = Widget(str(event.get("widget")))
    except ValueError:
        known = ", ".join(Widget)
        problem = f"is {str(event['widget'])[:80]!r}" if event.get("widget") else "is missing"
        raise BadParameter(f"The widget's parameter widget {problem}: it must be one of {known}.") from None
    parameters = dict(event)
    if event.get(FORM):
        typed = _form(event.get("widgetContext"))
        parameters |= {
            name: typed[name] for name, one in PARAMETERS[widget].items() if name in typed and not one.is_place
        }
    return WidgetRequest(
        widget, {name: _value(name, one, parameters.get(name)) for name, one in PARAMETERS[widget].items()}
    )


def viewer(event: Mapping[str, Any]) -> Viewer:
    """Parses where the answer is shown; unreadable values get their default."""
    context = event.get("widgetContext")
    if not isinstance(context, Mapping):
        return Viewer()
    width, zone = context.get("width"), context.get("timezone")
    return Viewer(
        dark=context.get("theme") == "dark",
        width=int(width) if isinstance(width, (int, float)) and 0 < width < 100_000 else None,
        zone=_zone(zone.get("offsetISO")) if isinstance(zone, Mapping) else UTC,
    )


_OFFSET = re.compile(r"([+-])([01][0-9]):?([0-5][0-9])")


def _zone(offset: Any) -> tzinfo:
    """Parses an offset such as ``+02:00``. Ignores ``offsetInMinutes`` beside it, whose sign is not documented."""
    match = _OFFSET.fullmatch(offset) if isinstance(offset, str) else None
    if not match:
        return UTC
    ahead = timedelta(hours=int(match[2]), minutes=int(match[3]))
    return timezone(-ahead if match[1] == "-" else ahead) if ahead else UTC


def _form(context: Any) -> Mapping[str, Any]:
    forms = context.get("forms") if isinstance(context, Mapping) else None
    every = forms.get("all") if isinstance(forms, Mapping) else None
    return every if isinstance(every, Mapping) else {}


def _value(name: str, parameter: Parameter, value: Any) -> Any:
    if value is None or (isinstance(value, str) and not value.strip()):
        return parameter.default
    try:
        return parameter.parse(value)
    except values.BadValue as error:
        raise BadParameter(f"The widget's parameter {name} is {str(value)[:80]!r}: it must be {error}.") from None
