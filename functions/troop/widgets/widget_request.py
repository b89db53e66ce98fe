"""What a dashboard asks a widget for: which one, its parameters, and where the answer is to be shown.

CloudWatch calls the function with the parameters in the dashboard's definition and a ``widgetContext``; a click in the
widget calls it with the parameters that stand behind what was clicked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, timedelta, timezone, tzinfo
from enum import StrEnum
from typing import Any

from troop import values
from troop.chaos.events import Status
from troop.chaos.units import LONGEST_UNIT

LONGEST_POSITION = 4096
"""Characters of where a listing goes on; Auto Scaling's own tokens are the longest."""

FORM = "form"
"""A parameter: what the viewer has typed into the widget's fields counts. Only the button beside them sends it."""


class Widget(StrEnum):
    EVENTS = "events"
    DECISIONS = "decisions"
    UNITS = "units"
    RUNS = "runs"


class BadParameter(ValueError):
    """A parameter that cannot be used; the message is a sentence for whoever looks at the dashboard."""


@dataclass(frozen=True)
class Parameter:
    """One that a widget takes.

    Attributes:
        parse: see :mod:`troop.values`.
        what: a phrase for its documentation.
        default: when it is not given, or blank.
        is_place: it says where a listing goes on, so it never comes from a form, nor from a dashboard's definition.
    """

    parse: Callable[[Any], Any]
    what: str
    default: Any = None
    is_place: bool = False


_LIMIT = 50
_UNIT = values.text(LONGEST_UNIT)
_POSITION = Parameter(values.text(LONGEST_POSITION), "", is_place=True)
SHOWS = ("all", "left-out")
KINDS = ("benchmarks", "fleets")

PARAMETERS: Mapping[Widget, Mapping[str, Parameter]] = {
    Widget.EVENTS: {
        "limit": Parameter(values.whole(1, _LIMIT), f"events a page, 1 to {_LIMIT}", 15),
        "unit": Parameter(_UNIT, "only of this unit"),
        "status": Parameter(values.one_of(*Status), "only of this status: " + ", ".join(Status)),
        "position": _POSITION,
    },
    Widget.DECISIONS: {
        "limit": Parameter(values.whole(1, _LIMIT), f"rows a page, 1 to {_LIMIT}", 15),
        "reason": Parameter(values.text(), "only decisions for this reason, such as `not-rolled`"),
        "unit": Parameter(_UNIT, "what every tick of the day has decided about this unit"),
        "day": Parameter(values.day, "a local day, YYYY-MM-DD; else each calendar's today"),
        "page": Parameter(values.whole(1, 1000), "", 1, is_place=True),
        "position": _POSITION,
    },
    Widget.UNITS: {
        "limit": Parameter(values.whole(1, _LIMIT), f"groups a page, 1 to {_LIMIT}", 20),
        "show": Parameter(values.one_of(*SHOWS), "`all`, or `left-out`: opted out, malformed, or not recovered", "all"),
        "unit": Parameter(_UNIT, "all about this unit, or the unit of the group of this name"),
        "position": _POSITION,
    },
    Widget.RUNS: {
        "limit": Parameter(values.whole(1, _LIMIT), f"runs a page, 1 to {_LIMIT}", 10),
        "kind": Parameter(values.one_of(*KINDS), "`benchmarks`, or `fleets`: those that stand", "benchmarks"),
        "position": _POSITION,
    },
}
"""By widget, in the order of its documentation."""


@dataclass(frozen=True)
class Viewer:
    """Where the answer is shown. Who looks is not told.

    Attributes:
        dark: the console's theme.
        width: of the widget in pixels; None when it is not known.
        zone: the dashboard's, at its offset of now.
    """

    dark: bool = False
    width: int | None = None
    zone: tzinfo = UTC


@dataclass(frozen=True)
class WidgetRequest:
    """A widget with all its parameters: those not given have their default."""

    widget: Widget
    values: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def but(self, **changes: Any) -> dict[str, Any]:
        """The same, changed, as a click sends it: JSON-like, without what has its default. Pages begin anew."""
        known = PARAMETERS[self.widget]
        remaining = {name: value for name, value in self.values.items() if not known[name].is_place}
        parameters = {
            name: value if isinstance(value, int) else str(value)
            for name, value in (remaining | changes).items()
            if value is not None and not (name in known and value == known[name].default)
        }
        return {"widget": self.widget.value, **parameters}


def parse(event: Mapping[str, Any]) -> WidgetRequest:
    """What the function was called with.

    Raises:
        BadParameter: there is no such widget, or it takes no such value. Parameters that are unknown are passed over,
            for CloudWatch adds its own.
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
    """Where the answer is shown; whatever of it cannot be read is as if it were not said."""
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
    """Of an offset such as ``+02:00``; ``offsetInMinutes`` beside it has a sign that is not documented."""
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
