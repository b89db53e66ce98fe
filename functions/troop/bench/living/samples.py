"""Keeps earlier counts of a fleet's tasks, and computes from them how fast it works."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from troop.bench.definition.living import WorkSample

APART = timedelta(minutes=5)
"""Time between two samples on record."""

WINDOW = timedelta(hours=1)
"""Time for which a sample stays on record."""


def following(samples: Sequence[WorkSample], sample: WorkSample) -> tuple[WorkSample, ...]:
    """Returns the samples of the last hour, with a new one if the latest is old enough."""
    latest = tuple(one for one in samples if sample.at - one.at <= WINDOW)
    return latest if latest and sample.at - latest[-1].at < APART else (*latest, sample)


def done_an_hour(samples: Sequence[WorkSample], latest: WorkSample) -> float | None:
    """Returns the tasks done an hour, from the oldest sample on; None for less than :data:`APART`."""
    if not samples or latest.at - samples[0].at < APART:
        return None
    hours = (latest.at - samples[0].at) / timedelta(hours=1)
    return max(0, latest.done - samples[0].done) / hours
