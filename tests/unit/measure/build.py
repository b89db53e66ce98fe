"""Summaries and histograms for tests."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from troop.measure.device_samples import DEVICE_SERIES, KINDS, Device, DeviceSamples
from troop.measure.histogram import Histogram
from troop.measure.operations import MIXED, RESPONSE, TIMINGS, Operation, PerSecond, Rate
from troop.measure.separate import Separate
from troop.measure.summary import SERIES, Clock, Samples, Summary
from troop.measure.windows import Windows

START = 1_790_000_000

_times = st.one_of(st.integers(0, 5_000), st.integers(0, 10**7), st.integers(0, 2**50))
_kinds = st.sampled_from(["timeout", "http-503", "connection", "tls"])
times = st.lists(_times, max_size=60)
recorded = st.lists(st.tuples(st.integers(0, 20), _times), min_size=1, max_size=30)
"""Seconds after :data:`START`, and microseconds."""
_few = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 10**7)), min_size=1, max_size=4)


def histogram_of(values: list[int]) -> Histogram:
    result = Histogram()
    for value in values:
        result.record(value)
    return result


def windows(values: list[tuple[int, int]]) -> Windows:
    """From the first of them on."""
    result = Windows(START + min(second for second, _ in values), 1)
    for second, micros in values:
        result.record(START + second, micros)
    return result


@st.composite
def operations(draw: st.DrawFn) -> Operation:
    length = draw(st.integers(0, 6))
    counts = st.lists(st.integers(0, 1000), min_size=length, max_size=length)
    errors, kinds = draw(counts), draw(st.none() | st.dictionaries(_kinds, counts, min_size=1, max_size=2))
    timing, values = draw(st.sampled_from([None, *TIMINGS])), draw(times)
    has_service = timing in (RESPONSE, MIXED) and draw(st.booleans())
    return Operation(
        times=histogram_of(values),
        errors=draw(st.dictionaries(_kinds, st.integers(0, 10**9), max_size=4)),
        per_second=PerSecond(START + draw(st.integers(0, 5)), draw(counts), errors, kinds),
        bytes=draw(st.integers(0, 2**60)),
        over_time=draw(st.none() | st.builds(windows, _few)),
        rate=draw(st.none() | rates),
        timing=timing,
        service=histogram_of([value // 2 for value in values]) if has_service else None,
        tools=frozenset(draw(st.lists(st.sampled_from("abcdefghij"), max_size=4))),
    )


@st.composite
def samples(draw: st.DrawFn) -> Samples:
    length = draw(st.integers(0, 5))
    values = st.lists(st.none() | st.integers(0, 2**40), min_size=length, max_size=length)
    series = {name: draw(values) for name in SERIES}
    return Samples(START + draw(st.integers(0, 5)), 1, series, draw(st.none() | devices()))


@st.composite
def devices(draw: st.DrawFn) -> DeviceSamples:
    """Some disks and arrays; the same label may be another device on another node."""
    length = draw(st.integers(1, 4))
    known = st.lists(st.none() | st.integers(0, 2**40), min_size=length - 1, max_size=length - 1)
    names = draw(st.lists(st.sampled_from(["nvme0n1", "nvme1n1", "md0"]), min_size=1, unique=True))
    keys = st.lists(st.sampled_from(DEVICE_SERIES), min_size=1, unique=True)
    series = {name: {key: [7, *draw(known)] for key in draw(keys)} for name in names}
    labels = st.sampled_from(["/dev/sdf", "/dev/sdg", "md0"])
    facts = {name: Device(draw(st.sampled_from(KINDS)), draw(labels), draw(st.none() | st.just(9))) for name in names}
    return DeviceSamples(START + draw(st.integers(0, 3)), 1, series, facts)


rates = st.builds(Rate, *[st.integers(0, 2**40)] * 4)


_part = st.none() | st.floats(0, 1e12)
separates = st.builds(
    Separate,
    tool=st.sampled_from(["wrk", "iozone"]),
    operation=st.sampled_from(["get", "put"]),
    count=st.integers(0, 2**60),
    per_second=_part,
    errors=st.dictionaries(_kinds, st.integers(0, 10**9), max_size=2),
    bytes_per_second=_part,
    mean_ms=_part,
    max_ms=_part,
    percentiles=st.dictionaries(st.sampled_from(["50", "99", "99.9", "100"]), st.floats(0, 1e6), max_size=2),
)


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
            measured_from=draw(st.none() | st.floats(START, START + 5)),
            clock=draw(st.sampled_from([None, Clock(0.01, 0.1), Clock(3.4, 0.2), Clock(-7.6, 0.05)])),
            warm_up_seconds=draw(st.sampled_from([0.0, 2.5])),
            separate=tuple(draw(st.lists(separates, max_size=2))),
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


def exact(values: list[int], percent: float) -> int:
    """The smallest value that at least so many percent do not exceed, of the values themselves."""
    rank = math.ceil(Fraction(str(percent)) * len(values) / 100)
    return sorted(values)[max(rank, 1) - 1]
