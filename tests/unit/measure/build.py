"""Summaries and histograms for tests."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from troop.measure.histogram import Histogram
from troop.measure.operations import Operation, PerSecond
from troop.measure.summary import SERIES, Clock, Samples, Summary

START = 1_790_000_000

_times = st.one_of(st.integers(0, 5_000), st.integers(0, 10**7), st.integers(0, 2**50))
_kinds = st.sampled_from(["timeout", "http-503", "connection", "tls"])
times = st.lists(_times, max_size=60)


def histogram_of(values: list[int]) -> Histogram:
    result = Histogram()
    for value in values:
        result.record(value)
    return result


@st.composite
def operations(draw: st.DrawFn) -> Operation:
    length = draw(st.integers(0, 6))
    counts = st.lists(st.integers(0, 1000), min_size=length, max_size=length)
    return Operation(
        times=histogram_of(draw(times)),
        errors=draw(st.dictionaries(_kinds, st.integers(0, 10**9), max_size=4)),
        per_second=PerSecond(START + draw(st.integers(0, 5)), draw(counts), draw(counts)),
        bytes=draw(st.integers(0, 2**60)),
    )


@st.composite
def samples(draw: st.DrawFn) -> Samples:
    length = draw(st.integers(0, 5))
    values = st.lists(st.none() | st.integers(0, 2**40), min_size=length, max_size=length)
    return Samples(START + draw(st.integers(0, 5)), 1, {name: draw(values) for name in SERIES})


@st.composite
def summaries(draw: st.DrawFn, most: int = 6) -> list[Summary]:
    """Of the nodes of one phase, in two roles."""
    return [
        summary(
            n,
            role=draw(st.sampled_from(["drivers", "servers"])),
            operations=draw(st.dictionaries(st.sampled_from(["read", "write"]), operations(), max_size=2)),
            samples=draw(st.none() | samples()),
            interruption=draw(st.none() | st.just({"action": "terminate", "time": "t"})),
            rebalance_recommended_at=draw(st.none() | st.just("2026-11-21T15:01:00Z")),
        )
        for n in range(draw(st.integers(1, most)))
    ]


def summary(number: int = 0, **changes: Any) -> Summary:
    """A node's summary without operations."""
    plain = Summary(
        node=f"i-{number:017x}",
        role="drivers",
        rank=number,
        phase="measure",
        outcome="ok",
        started_at=START - 30.25,
        ended_at=START + 10.5,
        exit_code=0,
        clock=Clock(0.01, 0.1),
        measured_from=float(START),
        measured_seconds=10.0,
    )
    return replace(plain, **changes)


def sampled(**series: list[int | None]) -> Samples:
    """Samples with the given series; the others are 1 throughout."""
    length = len(next(iter(series.values())))
    return Samples(START, 1, {name: series.get(name, [1] * length) for name in SERIES})


def latencies(count: int, seed: int = 1) -> list[int]:
    """Microseconds as services show them: about a millisecond, with a long tail."""
    dice = random.Random(seed)
    return [round(dice.lognormvariate(7, 1)) for _ in range(count)]
