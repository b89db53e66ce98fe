"""Compares the hours of the week, where the history has enough of each: a fixed threshold knows no hours. Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from cli.thresholds.history import History, Point
from cli.thresholds.metric import Side

HOURS = 7 * 24
LEAST_WEEKS, LEAST_OF_AN_HOUR = 4, 40
"""The weeks in which each hour must have values, and how many values it must have."""

USUAL = 0.95
"""The share of an hour's values that its usual bound covers."""

MUCH = 2.0
"""The factor between two hours from which a fixed threshold fits one of them badly."""

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True)
class HourOfWeek:
    """The values in one hour of the week, such as ``Mon 14:00``.

    Attributes:
        middle: the median.
        usual: what 95 % of the values are not beyond.
    """

    name: str
    points: int
    middle: float
    usual: float


def hours_of_week(history: History, side: Side, zone: tzinfo | None) -> tuple[HourOfWeek, ...]:
    """Returns all hours of the week, Monday first; none unless each of them has enough values.

    Args:
        zone: whose clock counts; None for that of this machine.
    """
    points: dict[int, list[Point]] = defaultdict(list)
    weeks: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for point in history.points:
        local = datetime.fromtimestamp(point.at, UTC).astimezone(zone)
        hour = local.weekday() * 24 + local.hour
        points[hour].append(point)
        weeks[hour].add(local.isocalendar()[:2])
    if len(points) < HOURS or any(len(points[hour]) < LEAST_OF_AN_HOUR for hour in points):
        return ()
    if any(len(weeks[hour]) < LEAST_WEEKS for hour in weeks):
        return ()
    return tuple(_hour(hour, History(points[hour], history.period), side) for hour in range(HOURS))


def _hour(hour: int, history: History, side: Side) -> HourOfWeek:
    name = f"{_DAYS[hour // 24]} {hour % 24:02d}:00"
    return HourOfWeek(name, len(history.points), history.quantile(0.5), history.extreme(USUAL, side))


def differ(hours: tuple[HourOfWeek, ...]) -> bool:
    """Checks whether hours differ so much that a fixed threshold fits some of them badly."""
    values = [hour.usual for hour in hours]
    return bool(values) and max(values) > 0 and max(values) >= MUCH * min(values)
