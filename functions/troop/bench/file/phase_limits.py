"""Models and checks the limits of a measured phase."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from troop.bench.definition.keys import written
from troop.bench.definition.phase_limits import ERROR_RATE, OVER_TIME, RATES, TIMES_OVER_TIME, PhaseLimit
from troop.bench.definition.problems import Place, Problem
from troop.bench.file.fields import model_of, plain_values
from troop.measure.windows import step_for

MOST_LIMITS = 20
"""The most limits of a phase."""


class LimitIn(model_of(PhaseLimit)):  # type: ignore[misc]
    """A limit that the results of a phase, or of each of its points, must hold to pass."""

    def build(self) -> PhaseLimit:
        return PhaseLimit(**plain_values(PhaseLimit, self))


def problems(place: Place, phase: Any) -> Iterator[Problem]:
    """Lists what is wrong with the limits of a phase.

    Args:
        phase: the phase in the file.
    """
    if phase.limits and not phase.measured:
        yield Problem((*place, "limits"), "is set", "left out in a phase that measures nothing")
        return
    others: set[Any] = set()
    for n, limit in enumerate(phase.limits):
        at = (*place, "limits", n)
        if limit in others:
            yield Problem(at, "is the same as another limit", "left out")
        others.add(limit)
        yield from _bounds(at, limit)
        if limit.role is not None and limit.role not in phase.roles:
            yield Problem((*at, "role"), f"is {limit.role!r}", f"one of {', '.join(phase.roles)}, the phase's roles")
        if limit.every is not None and phase.measured:
            yield from _parts((*at, "every"), limit, phase)
    yield from _contradictions(place, phase.limits)


def _bounds(at: Place, limit: LimitIn) -> Iterator[Problem]:
    if (limit.at_most is None) == (limit.at_least is None):
        message = "has no bound" if limit.at_most is None else "has two bounds"
        allowed = "limited by at_most or by at_least" if limit.at_most is None else "limited by only one of them"
        yield Problem(at, message, allowed)
    elif limit.at_least is not None and limit.figure not in RATES:
        yield Problem((*at, "at_least"), "is set", f"left out for {limit.figure}: use at_most")
    elif limit.figure == ERROR_RATE and (limit.at_most or 0) > 1:
        allowed = "a part from 0 to 1: 0.001 is 0.1 %"
        yield Problem((*at, "at_most"), f"is {limit.at_most:g}", allowed)
    elif limit.at_least == 0:
        yield Problem((*at, "at_least"), "is 0, which always passes", "above 0")
    elif limit.figure == ERROR_RATE and limit.at_most == 1:
        yield Problem((*at, "at_most"), "is 1, which always passes", "below 1: 0.001 is 0.1 %")
    elif limit.figure != ERROR_RATE and limit.at_most == 0:
        yield Problem((*at, "at_most"), "is 0, which never passes", "above 0")


def _contradictions(place: Place, limits: Sequence[LimitIn]) -> Iterator[Problem]:
    """Lists upper bounds below a lower bound of the same figure: nothing passes both."""
    for n, limit in enumerate(limits):
        for other in limits:
            same = (limit.figure, limit.operation, limit.role) == (other.figure, other.operation, other.role)
            at_most, at_least = limit.at_most, other.at_least
            if same and at_most is not None and at_least is not None and at_most < at_least:
                allowed = f"at least {at_least:g}, as another limit of {limit.figure} demands"
                yield Problem((*place, "limits", n, "at_most"), f"is {at_most:g}", allowed)
                break


def _parts(place: Place, limit: LimitIn, phase: Any) -> Iterator[Problem]:
    every = limit.every or 0
    if limit.figure not in OVER_TIME:
        yield Problem(place, "is set", f"left out for {limit.figure}: only {', '.join(OVER_TIME)} are known over time")
        return
    warm_ups = {phase.warm_up if point.warm_up is None else point.warm_up for point in phase.points}
    recorded = [warm_up + phase.measured for warm_up in warm_ups or {phase.warm_up}]
    step = max(step_for(seconds) for seconds in recorded) if limit.figure in TIMES_OVER_TIME else 1
    if every % step:
        allowed = f"a multiple of {written(step)}: nodes store times in such steps, by the length of the phase"
        yield Problem(place, f"is {written(every)}", allowed)
    elif every + step > phase.measured:
        # Steps begin at whole multiples of their length, so the first one is not always a whole one.
        allowed = f"shorter: the measured time, {written(phase.measured)}, must contain {written(every)} as a whole"
        yield Problem(place, f"is {written(every)}", allowed)
