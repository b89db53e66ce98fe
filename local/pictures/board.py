"""Renders a dashboard as one page: each widget with the position and size of its definition."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markdown_it import MarkdownIt
from markupsafe import Markup

from local.pictures.curves import Curve, Span, curves
from local.pictures.points import Point
from troop.report.assets import chart_script

COLUMN, ROW, GAP = 52, 50, 10
"""Pixels: CloudWatch's units of width and height, and the gap between two widgets."""

_COLUMNS = 24
_STATES = {"OK": "ok", "ALARM": "alarm"}
_DEFAULT = {"width": 6, "height": 6}


@dataclass(frozen=True)
class Place:
    """The position and size of a widget in pixels."""

    left: int
    top: int
    width: int
    height: int


@dataclass(frozen=True)
class Seen:
    """The data of a dashboard.

    Attributes:
        custom: HTML of its custom widgets, in order.
        alarms: state (OK, ALARM, INSUFFICIENT_DATA) by ARN.
    """

    points: Sequence[Point]
    custom: Sequence[str]
    alarms: Mapping[str, str]
    span: Span
    theme: str


def place(widget: Mapping[str, Any]) -> Place:
    """Computes the place of a widget in a dashboard's body."""
    at = {**_DEFAULT, "x": 0, "y": 0, **widget}
    return Place(at["x"] * COLUMN, at["y"] * ROW, at["width"] * COLUMN - GAP, at["height"] * ROW - GAP)


def size(body: Mapping[str, Any]) -> tuple[int, int]:
    """Returns the total width and height of all widgets in pixels."""
    places = [place(widget) for widget in body["widgets"]]
    return _COLUMNS * COLUMN - GAP, max((one.top + one.height for one in places), default=0)


def page(name: str, body: Mapping[str, Any], seen: Seen) -> str:
    """Returns the self-contained page of a dashboard.

    Args:
        name: of the dashboard.
        body: of the dashboard, as CloudWatch stores it.

    Raises:
        NotUnderstoodError: a metric widget uses something that :mod:`curves` does not support.
        ValueError: the kind of a widget is unknown.
    """
    custom = iter(seen.custom)
    widgets = [
        {"place": place(widget), "title": widget["properties"].get("title", ""), **_drawn(widget, seen, custom)}
        for widget in body["widgets"]
    ]
    width, height = size(body)
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=select_autoescape(), undefined=StrictUndefined
    )
    return environment.get_template("board.html").render(
        name=name,
        looked=_caption(seen.span),
        theme=seen.theme,
        widgets=widgets,
        width=width,
        height=height,
        script=Markup(chart_script()),
        drawing=Markup((Path(__file__).parent / "board.js").read_text(encoding="utf-8")),
    )


def _drawn(widget: Mapping[str, Any], seen: Seen, custom: Any) -> dict[str, Any]:
    """Returns ``kind``, and the template's values for that kind."""
    kind, properties = widget["type"], widget["properties"]
    if kind == "text":
        return {"kind": kind, "html": Markup(MarkdownIt().render(properties["markdown"]))}
    if kind == "custom":
        return {"kind": kind, "html": Markup(next(custom))}
    if kind == "alarm":
        states = [(arn.rpartition(":")[2], seen.alarms.get(arn, "INSUFFICIENT_DATA")) for arn in properties["alarms"]]
        return {"kind": kind, "alarms": [(name, _STATES.get(state, "unknown")) for name, state in states]}
    if kind != "metric":
        raise ValueError(f"unknown kind of widget: {kind!r}")
    lines = curves(properties, seen.points, seen.span)
    if properties.get("view") == "singleValue":
        return {
            "kind": "number",
            "numbers": [(one.label, number(one.values[-1][1]) if one.values else "--") for one in lines],
        }
    return {
        "kind": "graph",
        "empty": not any(one.values for one in lines),
        "graph": _graph(properties, lines, seen.span),
    }


def _graph(properties: Mapping[str, Any], lines: Sequence[Curve], span: Span) -> str:
    axes = properties.get("yAxis", {})
    graph = {
        "stacked": bool(properties.get("stacked")),
        "start": span.start * 1000,
        "end": span.end * 1000,
        "axes": [axes.get("left", {}).get("label", ""), axes["right"].get("label", "") if "right" in axes else None],
        "curves": [
            {"name": one.label, "right": one.right, "values": [[at * 1000, value] for at, value in one.values]}
            for one in lines
        ],
    }
    return json.dumps(graph)


def number(value: float) -> str:
    """Formats a number with at most two decimals."""
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def _caption(span: Span) -> str:
    def clock(seconds: float) -> str:
        return f"{datetime.fromtimestamp(seconds, UTC):%H:%M}"

    period = "" if span.period is None else f" · period {span.period} s"
    return f"{datetime.fromtimestamp(span.start, UTC):%Y-%m-%d} {clock(span.start)}-{clock(span.end)} UTC{period}"
