"""Proposes a threshold from a history, and judges the proposal by days that it did not see. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from cli.thresholds.history import DAY, History, PastAlarm
from cli.thresholds.metric import Side
from troop.shared.formatting import counted, duration, share

SHARES = (0.95, 0.99, 0.999, 1.0)
"""The shares of values that a candidate is not exceeded by; the last candidate is the worst value."""

LEAST_POINTS, LEAST_SECONDS = 200, DAY
"""The least data that a proposal rests on."""

WEEK = 7 * DAY
LEARNT = 0.75
"""The share of the period from which the trial learns; it judges the rest."""

_COVERED = 0.9
"""The share of periods with a value below which gaps are worth a remark."""


class TooLittleError(Exception):
    """Too little data for a proposal; the message says how much there is, and how much is needed."""


@dataclass(frozen=True)
class Candidate:
    """A value that could be the threshold.

    Attributes:
        share: of the values that are not beyond it.
        alarms: those that it would have raised.
    """

    share: float
    value: float
    alarms: tuple[PastAlarm, ...]

    @property
    def seconds(self) -> int:
        """The time in alarm."""
        return sum(alarm.seconds for alarm in self.alarms)


@dataclass(frozen=True)
class Trial:
    """What the first part of a period proposes, and what it would have raised in the rest, which it did not see.

    Attributes:
        learnt: days from which the value stems.
        judged: days in which it was judged.
    """

    learnt: float
    judged: float
    value: float
    alarms: tuple[PastAlarm, ...]


@dataclass(frozen=True)
class Proposal:
    """A threshold, with what supports it.

    Attributes:
        chosen: the first candidate with at most one alarm a week, or one in all.
        candidates: from the one with most alarms to the one with none.
        trial: None if a part of the period has too little data.
        doubts: what a person should know before using it.
    """

    side: Side
    in_a_row: int
    chosen: Candidate
    candidates: tuple[Candidate, ...]
    trial: Trial | None
    doubts: tuple[str, ...]


def propose(history: History, side: Side, in_a_row: int) -> Proposal:
    """Proposes a threshold.

    Args:
        in_a_row: the values in a row beyond it after which the alarm goes off.

    Raises:
        TooLittleError: the history is too short for any proposal.
    """
    candidates, chosen = _choose(history, side, in_a_row)
    doubts = tuple(_doubts(history, side, chosen))
    return Proposal(side, in_a_row, chosen, candidates, _trial(history, side, in_a_row), doubts)


def _choose(history: History, side: Side, in_a_row: int) -> tuple[tuple[Candidate, ...], Candidate]:
    count = len(history.points)
    if count < LEAST_POINTS or history.seconds < LEAST_SECONDS:
        there = f"{counted(count, 'value')} over {duration(history.seconds)}" if count else "no value"
        raise TooLittleError(
            f"there is too little data for a threshold: {there}; at least {LEAST_POINTS} values over a day are needed"
        )
    candidates = []
    for one in SHARES:
        if one == 1 or count * (1 - one) >= 1:  # else it would be the worst value by another name
            value = outward(history.extreme(one, side), side)
            candidates.append(Candidate(one, value, history.alarms(value, side, in_a_row)))
    allowed = max(1, history.seconds // WEEK)  # one incident of a short period must not become the threshold
    return tuple(candidates), next(one for one in candidates if len(one.alarms) <= allowed)


def _trial(history: History, side: Side, in_a_row: int) -> Trial | None:
    learnt, judged = history.split(LEARNT)
    if not judged.points:
        return None
    try:
        _, chosen = _choose(learnt, side, in_a_row)
    except TooLittleError:
        return None
    return Trial(learnt.days, judged.days, chosen.value, judged.alarms(chosen.value, side, in_a_row))


def outward(value: float, side: Side) -> float:
    """Rounds a threshold to three significant digits, so that no value that was within it is beyond it."""
    exact = Decimal(repr(value))
    if not exact:
        return 0.0
    way = ROUND_CEILING if side is Side.ABOVE else ROUND_FLOOR
    rounded = float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - 2), rounding=way))
    return rounded if math.isfinite(rounded) else value


def _doubts(history: History, side: Side, chosen: Candidate) -> Iterator[str]:
    worst, best = ("highest", "above") if side is Side.ABOVE else ("lowest", "below")
    if history.seconds < WEEK:
        yield "the values cover less than a week: they do not show how weekdays and weekends differ"
    if history.coverage < _COVERED:
        yield (
            f"{share(1 - history.coverage)} of the periods have no value: the alarm takes them for good ones "
            "(notBreaching), and does not notice that nothing reports"
        )
    if history.sorted[0] == history.sorted[-1]:
        yield "all values are equal: they do not show what is unusual"
    elif chosen.value == outward(history.extreme(1.0, side), side):
        yield (
            f"it is the {worst} value of the period, so no alarm would have gone off: nothing shows that it "
            "notices a fault"
        )
    if side is Side.BELOW and chosen.value <= 0:
        yield f"no value can be {best} it unless values can be negative: then the alarm never goes off"
