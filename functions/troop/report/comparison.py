"""Defines a comparison as a document. A is the reference, B is compared with it; a ratio of 1.1 means that B
does more.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from pydantic import Field

from troop.report.document import FaultVerdict, Part

FORMAT: Final = "troop.comparison/2"

Source = Literal["cell", "round", "baseline", "runs"]

COST: Final = "cost_per_million"
"""The figure of the cost of a million operations."""


class Side(Part):
    """One side of a comparison."""

    name: str = Field(description="As given on the command line: a run or a folder, optionally with a variant")
    run: str
    benchmark: str
    cells: int
    fleets: str = Field(default="", description="For example: 6 servers (i4i.large), 2 drivers (c7g.large)")


class Spread(Part):
    """One value over the repetitions of a side: over its complete pairs, or over all repetitions without pairs."""

    median: float
    geometric_mean: float | None = Field(
        default=None, description="Of rates, and the basis of the ratio; null for times"
    )
    low: float
    high: float
    repetitions: int

    @property
    def middle(self) -> float:
        """The value to show: the one from which the ratio is computed."""
        return self.median if self.geometric_mean is None else self.geometric_mean


class Figure(Part):
    """A time, or the cost of a million operations, on both sides. Its ratio is that of the same pairs as the rate's."""

    name: Literal["mean_ms", "p50_ms", "p90_ms", "p95_ms", "p99_ms", "p99_9_ms", "max_ms", "cost_per_million"]
    a: Spread | None
    b: Spread | None
    ratio: float | None = Field(description="B to A; below 1, B is faster, or costs less")
    low: float | None = Field(default=None, description="Of the interval of 95 %; null without one")
    high: float | None = None


class Need(Part):
    """What a side needs for the throughput of the faster side, or what it has if both do the same."""

    nodes: dict[str, int] = Field(description="Whole nodes by role; only of roles whose cost counts")
    hourly: float | None = Field(description="Hourly cost of these nodes; null unless all prices are known")
    scaled: Literal["measured", "interpolated", "extrapolated", "alike"] = Field(
        description="Whether this number of nodes was measured, or lies between or beyond measured steps. "
        "alike: the side's own nodes, because the interval lies within 0.9 to 1.1 and contains 1"
    )
    per_second: float | None = Field(
        default=None, description="Throughput of these nodes: the side's own if alike, otherwise that of the other side"
    )
    monthly: float | None = Field(default=None, description="Cost of 730 hours")
    total: float | None = Field(default=None, description="Cost of the comparison's term; null without a term")


class Equal(Part):
    """Both sides at the same throughput."""

    per_second: float
    a: Need
    b: Need
    hourly_ratio: float | None
    hourly_low: float | None = Field(
        default=None,
        description="Of the interval of hourly_ratio: its value if B did as much as the upper bound of the ratio of "
        "throughputs. null without an interval",
    )
    hourly_high: float | None = None

    def doubt(self, row: Row) -> str:
        """Returns in a few words why the nodes and cost of a row may be due to chance; "" if they are not."""
        if row.exceeds_noise is None:
            return "noise unknown"
        if row.exceeds_noise or self.a.scaled == "alike" or row.low is None or row.high is None:
            return ""
        return "within the noise"


class Affordable(Part):
    """Both sides for the cost of the more expensive one, with as many whole nodes as it pays."""

    hourly: float
    a: Need
    b: Need
    ratio: float = Field(description="Of the throughput, B to A")


class Basis(Part):
    """The roles and prices behind the costs."""

    roles_a: list[str] = Field(default=[], description="Roles of A whose cost counts")
    roles_b: list[str] = Field(default=[])
    left_out_a: list[str] = Field(default=[], description="Roles of A that are neither counted nor scaled")
    left_out_b: list[str] = Field(default=[])
    prices: Literal["aws", "file"] = Field(
        default="aws", description="Of the record: AWS's, or those of the benchmark's file where it has some"
    )
    term: Literal["1y", "3y"] | None = Field(
        default=None, description="Of the reservations or savings plans; null for nodes as they were bought"
    )
    types: dict[str, float] = Field(
        default={}, description="Prices from the command line by instance type: of an hour, with the upfront part"
    )


class Row(Part):
    """One operation of one variant on both sides."""

    label: str = Field(
        default="", description="Of the variant, without repetition, and of the point; empty if there is only one"
    )
    phase: str
    role: str
    operation: str
    a: Spread = Field(description="Operations per second")
    b: Spread
    ratio: float = Field(
        description="B to A: of the pairs; for two runs with the same baseline, of their ratios to it; for other runs, "
        "of the geometric means of the repetitions"
    )
    low: float | None = Field(
        description="Of the interval of 95 %, which contains the intervals of searches' answers; null without two "
        "pairs, unless these intervals alone explain the difference"
    )
    high: float | None
    exceeds_noise: bool | None = Field(description="Whether 1 is outside the interval; null without an interval")
    method: str = Field(
        default="", description="Of the interval: paired t, signed rank or two ratios; empty without one"
    )
    regression: bool | None = Field(
        default=None, description="Whether the row fails --fail-below; null without that option"
    )
    times: list[Figure] = Field(default=[])
    timing: Literal["response", "service"] | None = Field(
        default=None,
        description="What the times mean: from the moment when an operation was due, or from when it was sent; null if "
        "it differs between the sides or in a side, so that their times have no ratio",
    )
    cost: Figure | None = Field(
        default=None, description="Of a million operations at the measured rate; null unless all prices are known"
    )
    errors_a: float = Field(default=0, description="Errors per success over all repetitions")
    errors_b: float = 0
    equal: Equal | None = None
    affordable: Affordable | None = None
    is_answer: bool = Field(
        default=False,
        description="Whether each side was measured at the answer of its own search",
    )


class FaultSide(Part):
    """What a planned fault did on one side: the means of its repetitions with known figures."""

    repetitions: int
    known: int = Field(description="Repetitions whose figures are known")
    verdict: FaultVerdict | None = Field(description="The worst of all repetitions; null without an expectation")
    rate_back_s: float | None = Field(default=None, description="null if it is not back in some repetition")
    p99_back_s: float | None = Field(default=None, description="Likewise")
    failed: float | None = None


class FaultPair(Part):
    """One planned fault on both sides. Its figures have no ratio, because they depend on the load."""

    label: str = Field(default="", description="Of the variant, and of the point")
    phase: str
    number: int
    fault: str = Field(description="Such as stop 1 of servers")
    a: FaultSide
    b: FaultSide


class Comparison(Part):
    """A comparison of two sides."""

    format: Literal["troop.comparison/2"] = FORMAT
    created_at: datetime
    created_by: str
    source: Source = Field(
        description="What the intervals come from. cell: pairs of a candidate and its baseline on the same nodes; "
        "round: pairs of cells of a round, on different nodes; baseline: ratios of two runs to the same baseline; "
        "runs: nothing, because two runs without a common baseline are not comparable to a few percent"
    )
    baseline: str = Field(default="", description="For example: version=1.2; empty without a baseline")
    reason: str = Field(default="", description="Why there are no pairs, and what to add; empty with pairs")
    fail_below: float | None = None
    currency: str = "USD"
    basis: Basis = Basis()
    a: Side
    b: Side
    rows: list[Row]
    faults: list[FaultPair] = Field(default=[], description="Planned faults that both sides have")
    lost: list[str] = Field(
        default=[], description="Operations that A measured but a variant of B did not; they fail --fail-below"
    )
    undecided: list[str] = Field(
        default=[], description="Operations without an interval, about which --fail-below decides nothing"
    )
    unmatched: list[str] = Field(default=[], description="Sentences about what only one side has")
    warnings: list[str] = Field(default=[])

    @property
    def open(self) -> list[Row]:
        """Rows that are no regressions, but may be below --fail-below: their intervals reach below it."""
        limit = self.fail_below
        if limit is None:
            return []
        return [row for row in self.rows if row.regression is False and row.low is not None and row.low < limit]

    @property
    def verdict(self) -> Literal["PASSED", "FAILED", "UNKNOWN"] | None:
        """The answer to --fail-below; None without that option."""
        if self.fail_below is None:
            return None
        if self.lost or any(row.regression for row in self.rows):
            return "FAILED"
        return "UNKNOWN" if self.undecided else "PASSED"
