"""Comparisons as two runs give them, made up: whole, hostile, and of nothing."""

from __future__ import annotations

import random

from tests.unit.report.sample_cells import BEGAN, changed
from tests.unit.report.sample_reports import HOSTILE
from troop.report.comparison import Affordable, Basis, Comparison, Equal, Figure, Need, Row, Side, Spread


def compared(repetitions: int = 3, variants: int = 4) -> Comparison:
    """Two runs of a study: writes became faster beyond the noise, reads of many threads fell below the limit."""
    dice = random.Random(7)
    rows = [
        _compared(
            f"n{3 * 2 ** (n // 2)}, threads={(50, 200)[n % 2]}" + f", batch={n}" * (n > 7), operation, repetitions, dice
        )
        for n in range(variants)
        for operation in ("write", "read")
    ]
    return Comparison(
        created_at=BEGAN,
        created_by="0.1.0",
        source="round",
        fail_below=0.95,
        a=Side(
            name="20261113-100412-1f0c9b2e",
            run="20261113-100412-1f0c9b2e",
            benchmark="cassandra-write",
            cells=12,
            fleets="3 to 12 servers (i4i.xlarge), 1 to 4 drivers (c6i.2xlarge)",
        ),
        b=Side(
            name="candidate/report.json",
            run="20261120-093000-7c1f2a9e",
            benchmark="cassandra-write",
            cells=12,
            fleets="3 to 12 servers (i4g.xlarge), 1 to 4 drivers (c6i.2xlarge)",
        ),
        basis=Basis(
            roles_a=["servers", "cache"],
            roles_b=["servers"],
            left_out_a=["drivers"],
            left_out_b=["drivers"],
            term="3y",
            types={"i4g.xlarge": 0.31},
        ),
        rows=rows,
        unmatched=["A alone has n24, threads=50"],
        warnings=["A and B had different instance types: servers i4i.xlarge, i4g.xlarge"],
    )


def compared_with_attacks() -> Comparison:
    """Whatever can be text is an attack; times of one side are missing."""
    one = compared()
    row = changed(
        one.rows[0],
        label=HOSTILE,
        operation=HOSTILE,
        times=[Figure(name="p99_ms", a=None, b=Spread(median=1, low=1, high=1, repetitions=1), ratio=None)],
    )
    side = Side(name=HOSTILE, run=HOSTILE, benchmark=HOSTILE, cells=1, fleets=HOSTILE)
    changes = {"a": side, "b": side, "rows": [row], "unmatched": [HOSTILE], "warnings": [HOSTILE]}
    return one.model_copy(update=changes)


def nothing_in_common() -> Comparison:
    """Not one row."""
    return changed(compared(), rows=[], fail_below=None, warnings=[], unmatched=[])


def _compared(label: str, operation: str, repetitions: int, dice: random.Random) -> Row:
    ratio = 1.12 if operation == "write" else 0.91 if "threads=200" in label else 0.995
    half = 0.03 if repetitions > 1 else None
    base = dice.uniform(20_000, 60_000)
    times: list[Figure] = []
    for name, ms in (
        ("mean_ms", 1.1),
        ("p50_ms", 0.8),
        ("p90_ms", 2.0),
        ("p95_ms", 2.9),
        ("p99_ms", 7.4),
        ("p99_9_ms", 21.0),
        ("max_ms", 640.0),
    ):
        a, b = _spread(ms, repetitions, dice), _spread(ms / ratio, repetitions, dice)
        times.append(_figure(name, a, b, half))
    cost = _figure("cost_per_million", _spread(0.31, repetitions, dice), _spread(0.31 / ratio, repetitions, dice), half)
    return Row(
        label=label,
        phase="measure",
        role="drivers",
        operation=operation,
        a=_spread(base, repetitions, dice),
        b=_spread(base * ratio, repetitions, dice),
        ratio=ratio,
        low=None if half is None else ratio - half,
        high=None if half is None else ratio + half,
        exceeds_noise=None if half is None else abs(ratio - 1) > half,
        regression=half is not None and ratio < 0.95,
        times=times,
        cost=cost,
        errors_a=0.00001,
        errors_b=0.0,
        equal=Equal(
            per_second=base * max(1, ratio),
            a=Need(
                nodes={"servers": 7, "cache": 3},
                hourly=3.42,
                scaled="interpolated",
                monthly=2496.6,
                total=89877.6,
            ),
            b=Need(
                nodes={"servers": 6},
                hourly=None if label.startswith("n12") else 2.87,
                scaled="measured",
                monthly=None if label.startswith("n12") else 2095.1,
                total=None if label.startswith("n12") else 75423.6,
            ),
            hourly_ratio=None if label.startswith("n12") else 0.839,
        )
        if operation == "write"
        else None,
        affordable=Affordable(
            hourly=3.42,
            a=Need(nodes={"servers": 7, "cache": 3}, hourly=3.42, scaled="measured", per_second=base),
            b=Need(nodes={"servers": 7}, hourly=3.35, scaled="extrapolated", per_second=base * 1.4),
            ratio=1.4,
        )
        if operation == "write" and not label.startswith("n12")
        else None,
    )


def _figure(name: str, a: Spread, b: Spread, half: float | None) -> Figure:
    ratio = b.median / a.median
    bounds = {} if half is None else {"low": ratio - half, "high": ratio + half}
    return Figure.model_validate({"name": name, "a": a, "b": b, "ratio": ratio, **bounds})


def _spread(value: float, repetitions: int, dice: random.Random) -> Spread:
    rates = sorted(value * dice.uniform(0.97, 1.03) for _ in range(repetitions))
    return Spread(median=rates[len(rates) // 2], low=rates[0], high=rates[-1], repetitions=repetitions)
