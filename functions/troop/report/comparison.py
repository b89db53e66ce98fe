"""Two sides compared, as a document: A is what was, B is what is now, and a ratio of 1.1 says that B does more."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from pydantic import Field

from troop.report.document import Part

FORMAT: Final = "troop.comparison/1"


class Side(Part):
    """One side."""

    name: str = Field(description="As it was asked for: a run, a folder, or one of these with a variant")
    run: str
    benchmark: str
    cells: int
    fleets: str = Field("", description="In words: 6 servers (i4i.large), 2 drivers (c7g.large)")


class Spread(Part):
    """One figure over the repetitions of a side."""

    median: float
    low: float
    high: float
    repetitions: int


class Figure(Part):
    """A time, side by side: percentiles of repetitions are never put together, only told as they spread."""

    name: Literal["mean_ms", "p50_ms", "p90_ms", "p95_ms", "p99_ms", "p99_9_ms", "max_ms"]
    a: Spread | None
    b: Spread | None
    ratio: float | None = Field(description="Of the medians, B to A: below 1 is faster")


class Need(Part):
    """What a side needs to do as much as the faster side does."""

    nodes: dict[str, int] = Field(description="By role, whole nodes of all of its fleets")
    hourly: float | None = Field(description="Of all of them; null without all prices")
    scaled: Literal["measured", "interpolated", "extrapolated"] = Field(
        description="Whether that many nodes were measured, lie between two measured steps, or beyond them"
    )


class Equal(Part):
    """Both sides at one throughput."""

    per_second: float
    a: Need
    b: Need
    hourly_ratio: float | None


class Row(Part):
    """One operation of one variant, on both sides."""

    label: str = Field("", description="Of the variant, repetitions aside; empty when there is one")
    phase: str
    role: str
    operation: str
    a: Spread = Field(description="Operations a second")
    b: Spread
    ratio: float = Field(description="B to A, of the geometric means of the repetitions")
    low: float | None = Field(description="Of the confidence interval; null with fewer than two repetitions on a side")
    high: float | None
    exceeds_noise: bool | None = Field(description="Whether 1 is outside of the interval; null without one")
    regression: bool | None = Field(None, description="Whether it fails --fail-below; null when that was not asked")
    times: list[Figure] = Field([])
    errors_a: float = Field(0, description="Errors for each success, all repetitions together")
    errors_b: float = 0
    equal: Equal | None = None


class Comparison(Part):
    """All of it."""

    format: Literal["troop.comparison/1"] = FORMAT
    made_at: datetime
    made_by: str
    confidence: float = 0.95
    fail_below: float | None = None
    currency: str = "USD"
    a: Side
    b: Side
    rows: list[Row]
    lost: list[str] = Field(
        [], description="Operations that A has measured and a variant of B has not; fail --fail-below"
    )
    unmatched: list[str] = Field([], description="What only one side has, in words")
    warnings: list[str] = Field([])
