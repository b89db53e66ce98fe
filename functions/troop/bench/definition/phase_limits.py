"""Defines the limits of a measured phase: what its results must hold, as the benchmark's file states it.

:mod:`troop.bench.measuring.judging` compares results with them. These limits are not those of a deployment, which
:mod:`troop.bench.definition.limits` checks before a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from troop.bench.definition.keys import duration, finite, key, matching, one_of
from troop.bench.definition.search import ANSWERS
from troop.measure.operations import NAME

MEAN, MAX, PER_SECOND, BYTES, ERROR_RATE = "mean_ms", "max_ms", "per_second", "bytes_per_second", "error_rate"

PERCENTILES = ("p50_ms", "p90_ms", "p95_ms", "p99_ms", "p99_9_ms")
TIMES = (MEAN, *PERCENTILES, MAX)
"""Figures of the times of successes, in milliseconds."""

FIGURES = (*TIMES, ERROR_RATE, PER_SECOND, BYTES)
"""Figures that a limit can concern."""

TIMES_OVER_TIME = (*PERCENTILES, MAX)
"""Times that are stored over time with a known precision: by step, in buckets of a sixteenth."""

OVER_TIME = (*TIMES_OVER_TIME, ERROR_RATE, PER_SECOND)
"""Figures whose limit can concern parts of the measured time."""

RATES = (PER_SECOND, BYTES)
"""Figures for which more is better: only these can have a least value."""


_VALUE = finite(0, 2**53)


@dataclass(frozen=True)
class PhaseLimit:
    """One limit, with either ``at_most`` or ``at_least``.

    Attributes:
        figure: one of :data:`FIGURES`. Times are in milliseconds; :data:`ERROR_RATE` is the part of all operations,
            successes and errors, from 0 to 1.
        every: seconds of the parts of the measured time, each of which must hold it; None for the whole time.
        operation: None for the total over all operations of the role.
        role: None for the role that generates load.
    """

    figure: str = field(
        metadata=key(
            "What it limits, as in the results",
            one_of(*FIGURES),
            "error_rate is the part of all operations, successes and errors, that are errors: 0.001 is 0.1 %.",
        )
    )
    at_most: float | None = field(
        default=None,
        metadata=key("Largest value that passes", _VALUE, "A limit has either `at_most` or `at_least`.", omit=True),
    )
    at_least: float | None = field(
        default=None, metadata=key(f"Smallest value that passes, for {' and '.join(RATES)}", _VALUE, omit=True)
    )
    every: int | None = field(
        default=None,
        metadata=key(
            "Length of the parts of the measured time that must hold it one by one",
            duration("1s", "1h"),
            f"By default the whole measured time is one. Not for {MEAN} and {BYTES}. For times, a multiple of the step "
            "in which nodes store them.",
            omit=True,
        ),
    )
    operation: str | None = field(
        default=None,
        metadata=key(
            "The operation",
            matching(NAME.pattern, "the name of an operation, as the script records it"),
            "By default all operations of the role together, added up exactly.",
            omit=True,
        ),
    )
    role: str | None = field(
        default=None,
        metadata=key(
            "The role",
            matching(r"[a-z][a-z0-9-]{0,20}", "a role of the phase"),
            "By default the one that generates load. If several do, each must hold the limit alone.",
            omit=True,
        ),
    )


Outcome = Literal["PASSED", "FAILED"]
PASSED: Final = "PASSED"
FAILED: Final = "FAILED"
"""Words for results that hold all limits, and for others. A cell can have SUCCEEDED and its results FAILED."""


def verdict(
    entries: Sequence[Mapping[str, Any]] | None, searches: Sequence[Mapping[str, Any]] | None = None
) -> Outcome | None:
    """Returns :data:`PASSED` or :data:`FAILED` for a cell; None if nothing was compared with a limit, or only a
    baseline, which is no subject of the limits: it is there to compare with.

    Points of a search are meant to reach what does not hold the limits. So a search passes if it has an answer: a value
    that held them each time.

    Args:
        entries: of the cell's record, see :func:`troop.bench.measuring.judging.entry`.
        searches: likewise, see :func:`troop.bench.definition.search.document`.
    """
    if all(one.get("is_baseline") for one in entries or ()):
        return None
    return FAILED if missed(entries or (), searches) else PASSED


def missed(entries: Sequence[Mapping[str, Any]], searches: Sequence[Mapping[str, Any]] | None = None) -> list[str]:
    """Returns why a cell has failed: a text for each phase and point, and for each search without an answer. The
    baseline is left out.
    """
    searched = {one["phase"] for one in searches or ()}
    candidates = [one for one in entries if not one.get("is_baseline")]
    beyond = [one for one in candidates if not one["held"] and one["phase"] not in searched]
    return [
        *(f"{', '.join(part for part in (one['phase'], one['setting']) if part)}: {one['reason']}" for one in beyond),
        *(f"{one['phase']}: {one['text']}" for one in searches or () if one["outcome"] not in ANSWERS),
    ]
