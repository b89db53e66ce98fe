"""Places the pictures of a period's report: weeks as bars, and recoveries by stage. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from troop.chaos.stage_times import STAGES

VERDICTS = {
    "held": "HELD",
    "unknown": "UNKNOWN",
    "pending": "no verdict yet",
    "unjudged": "no verdict",
    "broken": "BROKEN",
}
"""The parts of a week's bar from below, by the keys of a summary."""

STAGE_WORDS = {
    "noticed": "until noticed",
    "launched": "until launched",
    "in_service": "until in service",
    "healthy": "until healthy",
    "recovered": "until recovered",
}
assert tuple(STAGE_WORDS) == STAGES

WIDTH, HEIGHT = 720, 190
LEFT, TOP, BOTTOM = 40, 8, 22
BAR = 1000
"""The width of a bar of stages."""
MOST_BARS = 30
"""The most units whose stages are drawn: those that recover slowest."""
_MOST_LABELS = 14


@dataclass(frozen=True)
class Rect:
    """A part of a bar: its CSS class, place, size and tip."""

    style: str
    x: float
    y: float
    width: float
    height: float
    tip: str


@dataclass(frozen=True)
class Weeks:
    """A picture with a column for each week.

    Attributes:
        rows: the lines of the scale: their height and label.
        labels: the names of columns: their place and text. Of many, some are left out.
        bars: the parts of all columns.
    """

    rows: Sequence[tuple[float, str]]
    labels: Sequence[tuple[float, str]]
    bars: Sequence[Rect]


@dataclass(frozen=True)
class StageBar:
    """The stages of a unit's recoveries: the median of each, one after another."""

    unit: str
    owner: str | None
    recovery: Mapping[str, Any]
    parts: Sequence[Rect]


def verdicts_by_week(weeks: Sequence[Mapping[str, Any]]) -> Weeks:
    """Places the hits of each week, by verdict.

    Args:
        weeks: see :meth:`troop.chaos.period.Period.document`.
    """
    scale = _scale([week["hits"] for week in weeks])
    bars = []
    for number, week in enumerate(weeks):
        x, width = _column(number, len(weeks))
        below = 0
        for key, words in VERDICTS.items():
            if count := week[key]:
                tip = f"week of {week['week']}: {count:,} {words}"
                top = _y(below + count, scale[-1])
                bars.append(_rect(key, x, top, width, _y(below, scale[-1]) - top, tip))
                below += count
    return Weeks([(_y(one, scale[-1]), f"{one:,g}") for one in scale], _labels(weeks), bars)


def recoveries_by_week(weeks: Sequence[Mapping[str, Any]]) -> Weeks:
    """Places the median of each week's recoveries, and above it the 90th percentile."""
    known = [week for week in weeks if week["recovery"]["count"]]
    scale = _scale([week["recovery"]["p90"] for week in known])
    bars = []
    for number, week in enumerate(weeks):
        recovery = week["recovery"]
        if recovery["count"]:
            x, width = _column(number, len(weeks))
            tip = f"week of {week['week']}: median {recovery['median']:g} s, 90th percentile {recovery['p90']:g} s"
            middle, top, floor = (_y(one, scale[-1]) for one in (recovery["median"], recovery["p90"], 0))
            bars.append(_rect("most", x, top, width, middle - top, tip))
            bars.append(_rect("middle", x, middle, width, floor - middle, tip))
    return Weeks([(_y(one, scale[-1]), f"{one:,g} s") for one in scale], _labels(weeks), bars)


def stage_bars(units: Sequence[Mapping[str, Any]], totals: Mapping[str, Any]) -> list[StageBar]:
    """Returns the stages of all units together, and of those that recover slowest; empty without recorded stages."""
    recorded = [one for one in units if one["stages"]["recovered"]["count"]]
    slowest = sorted(recorded, key=lambda one: (-one["recovery"]["median"], one["unit"]))[:MOST_BARS]
    bars = [("all units", None, totals), *((one["unit"], one["owner"], one) for one in slowest)] if slowest else []
    longest = max((sum(_medians(one).values()) for _, _, one in bars), default=0.0)
    return [
        StageBar(unit, owner, one["recovery"], _stages(_medians(one), BAR / longest if longest else 0.0))
        for unit, owner, one in bars
    ]


def _medians(one: Mapping[str, Any]) -> dict[str, float]:
    return {stage: one["stages"][stage]["median"] for stage in STAGES if one["stages"][stage]["count"]}


def _stages(medians: Mapping[str, float], scale: float) -> list[Rect]:
    parts, x = [], 0.0
    for stage, seconds in medians.items():
        width = seconds * scale
        tip = f"{STAGE_WORDS[stage]}: {seconds:g} s (median)"
        parts.append(_rect(f"part{STAGES.index(stage) + 1}", x, 0, width, 14, tip))
        x += width
    return parts


def _rect(style: str, x: float, y: float, width: float, height: float, tip: str) -> Rect:
    return Rect(style, round(x, 1), round(y, 1), round(width, 1), round(height, 1), tip)


def _column(number: int, columns: int) -> tuple[float, float]:
    """Returns the place and the width of a column's bar."""
    each = (WIDTH - LEFT) / columns
    return LEFT + each * (number + 0.12), each * 0.76


def _y(value: float, most: float) -> float:
    return round(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * value / most, 1)


def _scale(values: Sequence[float]) -> list[float]:
    """Returns round numbers from 0 to at least the largest value, at most six of them."""
    most = max(values, default=0) or 1
    raw = most / 4
    size = 10 ** math.floor(math.log10(raw))
    step = next(one * size for one in (1, 2, 5, 10) if one * size >= raw)
    step = max(1, step)
    return [step * number for number in range(math.ceil(most / step) + 1)]


def _labels(weeks: Sequence[Mapping[str, Any]]) -> list[tuple[float, str]]:
    every = math.ceil(len(weeks) / _MOST_LABELS)
    each = (WIDTH - LEFT) / max(1, len(weeks))
    return [
        (round(LEFT + each * (number + 0.5), 1), str(week["week"])[5:])
        for number, week in enumerate(weeks)
        if number % every == 0
    ]
