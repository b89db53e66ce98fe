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
    fleets: str = Field(default="", description="In words: 6 servers (i4i.large), 2 drivers (c7g.large)")


class Spread(Part):
    """One figure over the repetitions of a side."""

    median: float
    geometric_mean: float | None = Field(default=None, description="Of rates, whose ratio is told; null of times")
    low: float
    high: float
    repetitions: int

    @property
    def middle(self) -> float:
        """What is told of it: that of which a ratio beside it is."""
        return self.median if self.geometric_mean is None else self.geometric_mean


class Figure(Part):
    """A time, side by side: percentiles of repetitions are never put together, only told as they spread."""

    name: Literal["mean_ms", "p50_ms", "p90_ms", "p95_ms", "p99_ms", "p99_9_ms", "max_ms"]
    a: Spread | None
    b: Spread | None
    ratio: float | None = Field(description="Of the medians, B to A: below 1 is faster")


class Need(Part):
    """What a side needs to do as much as the faster side does; or what it has, where they are known to do the same."""

    nodes: dict[str, int] = Field(description="By role, whole nodes of all of its fleets")
    hourly: float | None = Field(description="Of all of them; null without all prices")
    scaled: Literal["measured", "interpolated", "extrapolated", "alike"] = Field(
        description="Whether that many nodes were measured to do it, lie between two measured steps, or beyond them; "
        "alike: the side's own, for all of the interval is within 0.9 to 1.1, and 1 is in it"
    )
    per_second: float | None = Field(
        default=None, description="What they do: where alike, what the side did; else as much as the other side"
    )


class Equal(Part):
    """Both sides at one throughput."""

    per_second: float
    a: Need
    b: Need
    hourly_ratio: float | None

    def doubt(self, row: Row) -> str:
        """Why what follows of its row for nodes and cost may be chance, in a few words; "" where it is not."""
        if row.exceeds_noise is None:
            return "noise unknown"
        if row.exceeds_noise or self.a.scaled == "alike" or row.low is None or row.high is None:
            return ""
        return f"within the noise, {row.low:.3f} to {row.high:.3f}"


class Row(Part):
    """One operation of one variant, on both sides."""

    label: str = Field(default="", description="Of the variant, repetitions aside; empty when there is one")
    phase: str
    role: str
    operation: str
    a: Spread = Field(description="Operations a second")
    b: Spread
    ratio: float = Field(description="B to A, of the geometric means of the repetitions")
    low: float | None = Field(description="Of the confidence interval; null with fewer than two repetitions on a side")
    high: float | None
    exceeds_noise: bool | None = Field(description="Whether 1 is outside of the interval; null without one")
    regression: bool | None = Field(
        default=None, description="Whether it fails --fail-below; null when that was not asked"
    )
    times: list[Figure] = Field(default=[])
    errors_a: float = Field(default=0, description="Errors for each success, all repetitions together")
    errors_b: float = 0
    equal: Equal | None = None


class Comparison(Part):
    """All of it."""

    format: Literal["troop.comparison/1"] = FORMAT
    created_at: datetime
    created_by: str
    confidence: float = 0.95
    fail_below: float | None = None
    currency: str = "USD"
    a: Side
    b: Side
    rows: list[Row]
    lost: list[str] = Field(
        default=[], description="Operations that A has measured and a variant of B has not; fail --fail-below"
    )
    unmatched: list[str] = Field(default=[], description="What only one side has, in words")
    warnings: list[str] = Field(default=[])
