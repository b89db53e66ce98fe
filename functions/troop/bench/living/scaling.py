"""Decides how many nodes a role of a standing fleet needs for its backlog, and computes how fast it works.

A role grows at once, in one step. It shrinks only to the largest number that it has needed within its ``idle_after``:
SQS counts approximately and late, so one small reading means nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from troop.bench.definition.living import Need, Scale, WorkSample
from troop.bench.definition.problems import Problem

APART = timedelta(minutes=5)
"""Time between two samples on record."""

WINDOW = timedelta(hours=1)
"""Time for which a sample stays on record."""

MOST_NEEDS = 20
"""The most needs that a record keeps of one role."""


@dataclass(frozen=True)
class Sizing:
    """The size of a role after a check of its work.

    Attributes:
        count: nodes that the role should have, before limits.
        needs: what the next check must know.
    """

    count: int
    needs: tuple[Need, ...]


def nodes_for(scale: Scale, work: WorkSample) -> int:
    """Returns the number of nodes for a backlog, within the bounds of the file."""
    return min(max(-(-work.backlog // scale.backlog_per_node), scale.least), scale.most)


def sized(scale: Scale, desired: int, work: WorkSample, needs: Sequence[Need], now: datetime) -> Sizing:
    """Decides the size of a role.

    Args:
        desired: nodes that it should have so far.
        needs: of the last check; empty before the first one.
    """
    nodes = nodes_for(scale, work)
    lately = _following(needs or (Need(desired, now),), nodes, now, timedelta(seconds=scale.idle_after))
    return Sizing(nodes if nodes > desired else min(desired, lately[0].nodes), lately)


def _following(needs: Sequence[Need], nodes: int, now: datetime, window: timedelta) -> tuple[Need, ...]:
    """Returns the needs of the window with a new one: the largest first, and only those that no later one exceeds. A
    need holds until the next reading, so a gap between checks does not end it.
    """
    *before, last = needs
    lately = [need for need in (*before, replace(last, until=max(last.until, now))) if need.until > now - window]
    while lately and lately[-1].nodes <= nodes:
        lately.pop()
    lately.append(Need(nodes, now))
    while len(lately) > MOST_NEEDS:  # the older ones as one, which lets no node go too early
        lately[:2] = [Need(lately[0].nodes, lately[1].until)]
    return tuple(lately)


def largest(desired: int, count: int, problems: Callable[[int], Sequence[Problem]]) -> tuple[int, str]:
    """Returns the largest number of nodes up to ``count`` that no limit forbids, but at least ``desired``; and the
    reason, "" if that is ``count``.

    Args:
        problems: returns what forbids a number of nodes; it must not forbid fewer than it allows.
    """
    if count <= desired or not (refused := problems(count)):
        return count, ""
    low, high = desired, count
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if problems(middle) else (middle, high)
    return low, f"its work needs {count} nodes, but limits allow {low}: {'; '.join(one.allowed for one in refused)}"


def sampled(samples: Sequence[WorkSample], sample: WorkSample) -> tuple[WorkSample, ...]:
    """Returns the samples of the last hour, with a new one if the latest is old enough."""
    latest = tuple(one for one in samples if sample.at - one.at <= WINDOW)
    return latest if latest and sample.at - latest[-1].at < APART else (*latest, sample)


def done_an_hour(samples: Sequence[WorkSample], latest: WorkSample) -> float | None:
    """Returns the tasks done an hour, from the oldest sample on; None for less than :data:`APART`."""
    if not samples or latest.at - samples[0].at < APART:
        return None
    hours = (latest.at - samples[0].at) / timedelta(hours=1)
    return max(0, latest.done - samples[0].done) / hours
