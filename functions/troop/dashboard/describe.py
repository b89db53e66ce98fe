"""Describes a widget and its parameters as Markdown, which CloudWatch requests with ``describe``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from troop.dashboard.widget_request import PARAMETERS, Parameter, Widget

_TITLES: Mapping[Widget, tuple[str, str]] = {
    Widget.EVENTS: (
        "Latest events",
        "Terminations, newest first, and how long groups took to recover.",
    ),
    Widget.DECISIONS: ("Today's decisions", "Today's decision about each unit, on its own calendar, and its reason."),
    Widget.UNITS: (
        "Units and their policy",
        "Each unit's policy, the source of each value, and which units are excluded.",
    ),
    Widget.RUNS: (
        "Benchmark runs",
        "Runs of benchmarks, or standing fleets with their health and work: status, nodes alive, cost.",
    ),
    Widget.LIVE: (
        "Live benchmark",
        "What a running benchmark does right now: operations per second, p50, p99, errors, CPU by role, time left.",
    ),
}
_EXAMPLES: Mapping[Widget, Mapping[str, Any]] = {
    Widget.EVENTS: {"limit": 10},
    Widget.DECISIONS: {"reason": "not-rolled"},
    Widget.UNITS: {"show": "left-out"},
    Widget.RUNS: {"limit": 5},
    Widget.LIVE: {"run": "20270120-101500-4f2a91c0"},
}


def describe(widget: Any) -> str:
    """Returns Markdown about one widget, or about all widgets for an unknown one."""
    widgets = [one for one in Widget if one == widget] or list(Widget)
    about = "The widget is read-only: make changes with the commands that it shows."
    return "\n\n".join([*(part for one in widgets for part in _section(one)), about]) + "\n"


def _section(widget: Widget) -> Iterator[str]:
    title, about = _TITLES[widget]
    yield f"## {title}\n\n{about}"
    rows = [f"**{name}** | {_description(one)}" for name, one in PARAMETERS[widget].items() if not one.is_place]
    yield "\n".join(["### Parameters", "", "Parameter | Description", "---|---", f"**widget** | `{widget}`", *rows])
    lines = [f"widget: {widget}", *(f"{name}: {value}" for name, value in _EXAMPLES[widget].items())]
    yield "\n".join(["### Example", "", "``` yaml", *lines, "```"])


def _description(parameter: Parameter) -> str:
    return parameter.description + (f"; default {parameter.default}" if parameter.default is not None else "")
