"""Defines a report as a document: the JSON beside the HTML, from which comparisons are computed.

Money is in the report's currency, times of operations in milliseconds, times of day in UTC. Unknown values are None,
never 0.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

FORMAT: Final = "troop.report/1"


class Part(BaseModel):
    """A part of a report. Fields of later versions are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Line(Part):
    """One line of a bill."""

    what: str = Field(description="For example: drivers, c7g.large, on-demand")
    quantity: float
    unit: str
    price: float | None = Field(description="Of one unit; null if unknown")
    amount: float | None


class Bill(Part):
    """The cost of a cell or a run."""

    amount: float
    lines: list[Line] = []
    unknown: list[str] = Field(default=[], description="Items without a price, which are not in the amount")


class Money(Part):
    """The expected and the actual cost of the run."""

    currency: str = "USD"
    expected: float | None = None
    most: float | None = Field(
        default=None, description="Upper bound: all time limits and attempts are used, and there is no spot capacity"
    )
    budget: float | None = None
    actual: Bill | None = Field(default=None, description="Of all cells and attempts; null while the run has resources")
    of_file: Bill | None = Field(
        default=None, description="The same with the file's prices; null for a file without prices"
    )


class Run(Part):
    """The run itself."""

    run: str
    name: str
    description: str = ""
    size: str | None = None
    status: str
    reason: str | None = None
    requested_by: str = ""
    at: datetime | None = None
    ended_at: datetime | None = None


class Version(Part):
    """The version of a component: the machine image, the kernel, an artifact, the agent."""

    what: str
    version: str


class Fleet(Part):
    """The nodes of one role of a cell when it began; as planned if there is no roster."""

    role: str
    nodes: int
    instance_type: str
    zones: dict[str, int] = Field(default={}, description="Nodes by zone")
    purchase: dict[str, int] = Field(default={}, description="Nodes by purchase option, spot or on-demand")
    hourly: float | None = Field(default=None, description="Hourly cost of all nodes; null unless all prices are known")


class Interruption(Part):
    """A node that spot took back, or for which EC2 recommended a rebalance."""

    node: str
    role: str = ""
    action: str = Field(default="", description="EC2's action: terminate, stop or hibernate; or rebalance-recommended")
    time: str = ""


class Step(Part):
    """The start of a step of a cell."""

    phase: str
    at: datetime


class Operation(Part):
    """One kind of operation of one role in one measured phase; counts and times are of successes."""

    role: str
    operation: str
    count: int
    per_second: float | None
    bytes_per_second: float | None = None
    errors: dict[str, int] = {}
    mean_ms: float | None = None
    p50_ms: float | None = None
    p90_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    p99_9_ms: float | None = None
    max_ms: float | None = None
    cost_per_million: float | None = Field(
        default=None, description="Cost of all fleets of the cell for the duration of a million of these operations"
    )
    distribution: list[tuple[float, float]] = Field(
        default=[],
        description="Percentiles and their times from the merged histogram, ascending; the last percentile is 100",
    )


class Separate(Part):
    """Results of one node's tool that cannot be combined with those of other nodes, such as wrk's percentiles."""

    node: str
    role: str
    rank: int
    tool: str
    operation: str
    count: int
    per_second: float | None
    errors: dict[str, int] = {}
    bytes_per_second: float | None = None
    mean_ms: float | None = None
    max_ms: float | None = None
    percentiles: dict[str, float] = Field(
        default={}, description="Times in milliseconds, such as {'50': 1.2, '99': 8.0}"
    )


class Use(Part):
    """The average load of a role's nodes in the measured time. CPU values are percent of all processors; rates are per
    second of all nodes together.
    """

    role: str
    nodes: int
    cpu: float | None = Field(default=None, description="Sum of user, system, iowait and steal")
    user: float | None = None
    system: float | None = None
    iowait: float | None = None
    steal: float | None = None
    memory_bytes: float | None = Field(default=None, description="Per node")
    disk_reads: float | None = None
    disk_writes: float | None = None
    disk_read_bytes: float | None = None
    disk_write_bytes: float | None = None
    network_received_bytes: float | None = None
    network_sent_bytes: float | None = None


SeriesName = Literal[
    "per_second",
    "errors_per_second",
    "mean_ms",
    "p50_ms",
    "p99_ms",
    "max_ms",
    "cpu",
    "iowait",
    "disk_reads",
    "disk_writes",
    "disk_read_bytes",
    "disk_write_bytes",
    "network_received_bytes",
    "network_sent_bytes",
]
"""cpu and iowait are in percent, averaged over nodes; disk and network are per second, summed over nodes."""


class Series(Part):
    """Values over time in equal steps; at most a few hundred."""

    role: str
    operation: str | None = Field(default=None, description="null for values of nodes instead of an operation")
    name: SeriesName
    start: float = Field(
        description="Of the first step: seconds after the start of the measured time; negative before it"
    )
    step_seconds: int
    values: list[float | None]


class Node(Part):
    """The line of a single node, which shows differences between nodes."""

    node: str
    role: str
    rank: int
    outcome: str
    count: int
    errors: int
    zone: str = ""
    purchase: str = ""
    cpu: float | None = None
    iowait: float | None = None
    clock_offset_seconds: float | None = None
    clock_uncertainty_seconds: float | None = None


class Phase(Part):
    """The results of a cell in one phase."""

    phase: str
    nodes: int
    measured_seconds: float
    warm_up_seconds: float = 0
    measured_from: datetime | None = None
    operations: list[Operation] = []
    use: list[Use] = []
    series: list[Series] = []
    members: list[Node] = []
    separate: list[Separate] = []


class Attempt(Part):
    """An earlier attempt at a cell, which does not count."""

    cell: str
    status: str
    reason: str | None = None
    amount: float | None = None
    interruptions: list[Interruption] = []


class Cell(Part):
    """A cell with the results of its last attempt."""

    cell: str
    label: str = Field(
        default="", description="Distinguishes the cell from the run's other cells; empty if there is only one"
    )
    scale: str | None = None
    values: dict[str, JsonValue] = {}
    repetition: int = 1
    attempt: int = 1
    order: int | None = Field(
        default=None, description="Its place in the order in which cells started, from 1; null if unknown"
    )
    earlier: list[Attempt] = []
    status: str
    reason: str | None = None
    steps: list[Step] = []
    fleets: list[Fleet] = []
    interruptions: list[Interruption] = []
    cost: Bill | None = None
    hourly: float | None = Field(
        default=None, description="Hourly cost of all fleets; null unless all prices are known"
    )
    phases: list[Phase] = []


class Point(Part):
    """A cell in a scaling series."""

    cell: str
    nodes: int
    per_second: float
    efficiency: float | None = Field(
        default=None,
        description="Throughput per node relative to that of the smallest step (mean of its repetitions)",
    )


class Scaling(Part):
    """Throughput by number of nodes, for one combination of the matrix and one operation."""

    label: str = Field(default="", description="Of the combination of the matrix")
    phase: str
    role: str
    operation: str
    counted: str = Field(description="The role whose nodes are counted: the first in the file whose number changes")
    points: list[Point]
    slope: float | None = Field(
        default=None, description="Operations per second for each further node, by least squares"
    )
    intercept: float | None = None
    r_squared: float | None = None


class Finding(Part):
    """A problem, or a fact that a reader must know to trust a number."""

    severity: Literal["error", "warning"]
    cell: str | None = None
    text: str


class Report(Part):
    """A report of a run."""

    format: Literal["troop.report/1"] = FORMAT
    created_at: datetime
    created_by: str = Field(description="Troop's version")
    run: Run
    money: Money
    definition: dict[str, Any] = Field(description="The benchmark file as it was run, with its size and changes")
    versions: list[Version] = []
    cells: list[Cell]
    scaling: list[Scaling] = []
    findings: list[Finding] = []
