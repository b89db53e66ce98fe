"""A report as a document: what the JSON beside the HTML is, and what a comparison is made of.

Amounts of money are in the report's currency, times of operations in milliseconds, moments in UTC. What is not known is
None, never 0.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

FORMAT: Final = "troop.report/1"


class Part(BaseModel):
    """A part of a report. What a later version has added is passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Line(Part):
    """One line of a bill."""

    what: str = Field(description="In words, such as drivers, c7g.large, on-demand")
    quantity: float
    unit: str
    price: float | None = Field(description="Of one unit; null when it is not known")
    amount: float | None


class Bill(Part):
    """What a cell or a run has cost."""

    amount: float
    lines: list[Line] = []
    unknown: list[str] = Field(default=[], description="What has no price, and is not in the amount")


class Money(Part):
    """What the run was expected to cost, and what it has cost."""

    currency: str = "USD"
    expected: float | None = None
    most: float | None = Field(default=None, description="With all time-outs and attempts, and no spot capacity")
    budget: float | None = None
    actual: Bill | None = Field(
        default=None, description="All cells and attempts; null while anything of the run is left"
    )
    of_file: Bill | None = Field(
        default=None, description="The same by the file's own prices; null for a file without any"
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
    """Something whose version matters: the machine image, the kernel, an artifact, the agent."""

    what: str
    version: str


class Fleet(Part):
    """The nodes of one role of a cell, as they were when it began; without a roster as the file wants them."""

    role: str
    nodes: int
    instance_type: str
    zones: dict[str, int] = Field(default={}, description="How many of its nodes are in each")
    purchase: dict[str, int] = Field(default={}, description="How many were bought as spot, and on-demand")
    hourly: float | None = Field(default=None, description="What an hour of all of them costs; null without all prices")


class Interruption(Part):
    """A node that spot took back, or was expected to."""

    node: str
    role: str = ""
    action: str = Field(
        default="", description="What EC2 did with it: terminate, stop, hibernate; or rebalance-recommended"
    )
    time: str = ""


class Step(Part):
    """What a cell began to do, and when."""

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
        default=None, description="What all fleets of the cell cost for as long as a million of these take"
    )
    distribution: list[tuple[float, float]] = Field(
        default=[], description="Percentiles and their times, ascending, from the merged histogram; the last is 100"
    )


class Separate(Part):
    """What one node's tool told that cannot be put together with other nodes', such as wrk's percentiles."""

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
    """How busy the nodes of a role were on average while they measured. Percent of all processors; per second of all
    nodes together.
    """

    role: str
    nodes: int
    cpu: float | None = Field(
        default=None, description="The sum of user, system, iowait and steal, which are parts of all time"
    )
    user: float | None = None
    system: float | None = None
    iowait: float | None = None
    steal: float | None = None
    memory_bytes: float | None = Field(default=None, description="Of a node")
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
"""cpu and iowait in percent, the mean of the nodes; of disk and network the sum of the nodes, per second."""


class Series(Part):
    """Values over time, in equal steps; at most a few hundred."""

    role: str
    operation: str | None = Field(default=None, description="null: of the nodes, not of an operation")
    name: SeriesName
    start: float = Field(description="Of the first step: seconds after the measured time begins, or before if negative")
    step_seconds: int
    values: list[float | None]


class Node(Part):
    """A node's own line: who differs from the others shows here."""

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
    """What a cell has measured in one phase."""

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
    """A cell, as its last attempt came out."""

    cell: str
    label: str = Field(default="", description="What sets it apart from the run's other cells; empty for the only one")
    scale: str | None = None
    values: dict[str, JsonValue] = {}
    repetition: int = 1
    attempt: int = 1
    earlier: list[Attempt] = []
    status: str
    reason: str | None = None
    steps: list[Step] = []
    fleets: list[Fleet] = []
    interruptions: list[Interruption] = []
    cost: Bill | None = None
    hourly: float | None = Field(
        default=None, description="What an hour of all of its fleets costs; null without all prices"
    )
    phases: list[Phase] = []


class Point(Part):
    """A cell on the way from few nodes to many."""

    cell: str
    nodes: int
    per_second: float
    efficiency: float | None = Field(
        default=None,
        description="Throughput a node, as a part of that of the smallest (the mean of its repetitions)",
    )


class Scaling(Part):
    """How throughput grows with nodes, for one combination of the matrix and one operation."""

    label: str = Field(default="", description="Of the combination of the matrix")
    phase: str
    role: str
    operation: str
    counted: str = Field(description="The role whose nodes are counted: the first one in the file whose number changes")
    points: list[Point]
    slope: float | None = Field(default=None, description="Operations a second for each further node, by least squares")
    intercept: float | None = None
    r_squared: float | None = None


class Finding(Part):
    """Something that went wrong, or that a reader must know before trusting a number."""

    severity: Literal["error", "warning"]
    cell: str | None = None
    text: str


class Report(Part):
    """All of it."""

    format: Literal["troop.report/1"] = FORMAT
    created_at: datetime
    created_by: str = Field(description="Troop's version")
    run: Run
    money: Money
    definition: dict[str, Any] = Field(description="The benchmark's file as it was run, with its size and changes")
    versions: list[Version] = []
    cells: list[Cell]
    scaling: list[Scaling] = []
    findings: list[Finding] = []
