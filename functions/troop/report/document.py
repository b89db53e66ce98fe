"""Defines a report as a document: the JSON beside the HTML, from which comparisons are computed.

Money is in the report's currency, times of operations in milliseconds, times of day in UTC. Unknown values are None,
never 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from math import log
from statistics import stdev
from typing import Any, Final, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, JsonValue

from troop.bench.definition.definition import is_load
from troop.bench.definition.phase_limits import FAILED, PASSED, Outcome
from troop.bench.measuring.failure import WORST
from troop.measure.operations import UNFINISHED

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
    role: str | None = Field(default=None, description="The role whose nodes it is for; null for other items")


class Bill(Part):
    """The cost of a cell or a run."""

    amount: float
    lines: list[Line] = []
    unknown: list[str] = Field(default=[], description="Items without a price, which are not in the amount")
    on_demand: float | None = Field(
        default=None, description="The same with all nodes on demand; null if unknown, or without spot nodes"
    )


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


class InstanceType(Part):
    """What EC2 states about an instance type; bandwidth of EBS is of reads and writes together."""

    name: str
    vcpus: int | None = None
    memory_mib: int | None = None
    store_gb: int = Field(default=0, description="Of all disks of the instance store; 0 without one")
    store_disks: int = 0
    store_type: str = ""
    network: str = Field(default="", description="EC2's words, such as Up to 12.5 Gigabit")
    network_gbps: float | None = Field(default=None, description="Baseline, in each direction")
    network_peak_gbps: float | None = Field(default=None, description="For a while")
    ebs_mbps: float | None = Field(default=None, description="Baseline")
    ebs_peak_mbps: float | None = None
    ebs_iops: int | None = Field(default=None, description="Baseline")
    ebs_peak_iops: int | None = None


class Capacity(Part):
    """What the nodes of a role provide in one zone, or in all. Unknown parts are null.

    EBS is without root volumes: what the volumes provide, but at most what the instances may use.
    """

    role: str = Field(default="", description="Empty for all roles together")
    zone: str = Field(default="", description="Empty for all zones together")
    nodes: int
    vcpus: int | None = None
    memory_mib: int | None = None
    store_gb: int | None = Field(default=None, description="Instance store")
    volumes_gib: int | None = None
    ebs_iops: int | None = Field(default=None, description="Baseline")
    ebs_peak_iops: int | None = Field(default=None, description="For a while")
    ebs_mbps: float | None = Field(default=None, description="Baseline")
    ebs_peak_mbps: float | None = Field(default=None, description="For a while")
    network_gbps: float | None = Field(default=None, description="Baseline, in each direction")
    network_peak_gbps: float | None = Field(default=None, description="For a while")


class Charge(Part):
    """The cost of a fleet's nodes for an hour by one set of prices; null where a price is unknown."""

    instances: float | None = Field(description="Of the instances, as they were bought")
    storage: float | None
    license: float = Field(default=0, description="License fees, as the file states them")
    committed: dict[Literal["1y", "3y"], float] = Field(
        default={},
        description="In place of instances: by a reservation or savings plan for a term, with its part of the upfront "
        "price; without terms that have no price",
    )

    @property
    def hourly(self) -> float | None:
        """The cost as the nodes were bought; None unless all prices are known."""
        if self.instances is None or self.storage is None:
            return None
        return round(self.instances + self.storage + self.license, 6)


class Fleet(Part):
    """The nodes of one role of a cell when it began; as planned if there is no roster."""

    role: str
    nodes: int
    instance_type: str
    zones: dict[str, int] = Field(default={}, description="Nodes by zone")
    purchase: dict[str, int] = Field(default={}, description="Nodes by purchase option, spot or on-demand")
    hourly: float | None = Field(default=None, description="Hourly cost of all nodes; null unless all prices are known")
    load: bool | None = Field(
        default=None,
        description="Whether its nodes only generate load, so that they are no part of the system under test; null in "
        "reports of earlier versions, where the role's name decides",
    )
    charge: Charge | None = Field(default=None, description="The parts of the hourly cost; null without prices")
    charge_of_file: Charge | None = Field(
        default=None, description="The same with the file's prices; null for a file without prices"
    )

    @property
    def is_load(self) -> bool:
        return is_load(self.role, self.load)


class CrossZone(Part):
    """A cell's traffic between zones, in GB of 10^9 bytes."""

    stated_gb: float = Field(description="As the file states it; the cost contains it")
    estimated_gb: float | None = Field(
        default=None,
        description="Of the measured time, as if each node sent its bytes evenly to all other nodes of the cell; null "
        "if bytes or zones are unknown, 0 in one zone",
    )
    price: float | None = Field(default=None, description="Of a GB; null if unknown")


class Interruption(Part):
    """A node that spot took back, or for which EC2 recommended a rebalance."""

    node: str
    role: str = ""
    action: str = Field(default="", description="EC2's action: terminate, stop or hibernate; or rebalance-recommended")
    time: str = ""


class ReplacedNode(Part):
    """A node that did not come up while its cell booted, so that another took its place. Its costs count."""

    node: str
    role: str = ""
    reason: str = ""
    at: datetime | None = Field(default=None, description="When Troop requested the replacement")


class Step(Part):
    """The start of a step of a cell."""

    phase: str
    at: datetime


Timing = Literal["response", "service", "mixed"]

TIMING = (
    "What the times mean. response: from the moment when an operation was due; service: from the moment when it was "
    "sent; mixed: some are these and some are those; null if unknown, as in results of earlier versions, which had "
    "only service times"
)


class Times(Part):
    """Times of successes, in milliseconds."""

    mean_ms: float | None = None
    p50_ms: float | None = None
    p90_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    p99_9_ms: float | None = None
    max_ms: float | None = None
    distribution: list[tuple[float, float]] = Field(default=[], description="As of an operation")


class Operation(Part):
    """One kind of operation of one role in one measured phase; counts and times are of successes."""

    role: str
    operation: str
    count: int
    per_second: float | None
    bytes_per_second: float | None = None
    errors: dict[str, int] = {}
    mean_ms: float | None = None
    mean_derived: bool = Field(
        default=False, description="The tool reports no times: the mean follows from threads and rate"
    )
    p50_ms: float | None = None
    p90_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    p99_9_ms: float | None = None
    max_ms: float | None = None
    share: float | None = Field(
        default=None, description="Part of the successes of all operations of the role; null for its only operation"
    )
    cost_per_million: float | None = Field(
        default=None,
        description="Cost of the cell's system, without fleets that only generate load, for the duration of a million "
        "of these operations",
    )
    names: list[str] = Field(
        default=[],
        description="Of the operations that are counted here together, because a node had too many; the first 128",
    )
    distribution: list[tuple[float, float]] = Field(
        default=[],
        description="Percentiles and their times from the merged histogram, ascending; the last percentile is 100",
    )
    timing: Timing | None = Field(default=None, description=TIMING)
    service: Times | None = Field(
        default=None,
        description="Service times beside response times; null if they are unknown, or are the times above",
    )
    tools: list[str] = Field(default=[], description="That measured it, such as JMeter; empty for a script's recorder")


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
    timing: Timing | None = Field(default=None, description=TIMING)


class Use(Part):
    """The average load of a role's nodes in the measured time. CPU values are percent of all processors; rates are per
    second of all nodes together.
    """

    role: str
    nodes: int
    cpu: float | None = Field(default=None, description="Sum of user, system and steal, without iowait")
    user: float | None = None
    system: float | None = None
    iowait: float | None = None
    steal: float | None = None
    busiest: float | None = Field(
        default=None,
        description="Of the busiest processor of a node in each interval, without iowait; mean of the nodes",
    )
    memory_bytes: float | None = Field(default=None, description="Per node")
    disk_reads: float | None = None
    disk_writes: float | None = None
    disk_read_bytes: float | None = None
    disk_write_bytes: float | None = None
    network_received_bytes: float | None = None
    network_sent_bytes: float | None = None
    tcp_sent_segments: float | None = None
    tcp_retransmits: float | None = None
    bursts: list[str] = Field(
        default=[],
        description="What a node moved beyond the baseline of its instance type: network_in, network_out, "
        "ebs_bandwidth, ebs_iops",
    )


class DeviceUse(Part):
    """The average load of one block device of each of a role's nodes in the measured time; rates are per device."""

    role: str
    device: str = Field(description="For a volume of EBS, its name in the block device mapping; otherwise the kernel's")
    kind: str = Field(default="", description="ebs, instance-store, or stacked for a device on top of others")
    devices: int = Field(description="Number of nodes that have it")
    size_bytes: int | None = None
    operations: float | None = None
    reads: float | None = None
    writes: float | None = None
    read_bytes: float | None = None
    write_bytes: float | None = None
    request_bytes: float | None = Field(default=None, description="Per operation")
    wait_ms: float | None = Field(default=None, description="Per operation, in the queue and in the device")
    read_wait_ms: float | None = None
    write_wait_ms: float | None = None
    service_ms: float | None = Field(
        default=None, description="Busy time divided by operations: iostat's former svctm, as older results state it"
    )
    queue: float | None = Field(default=None, description="Operations under way")
    busy: float | None = Field(default=None, description="Percent of the time with an operation under way")
    busiest: float | None = Field(default=None, description="The same of the node where it is highest")
    busiest_node: str = ""


class Series(Part):
    """Values over time in equal steps; at most a few hundred."""

    # troop.bench.results.series describes the names. The schema has the docstring, so it contains no name of code.

    role: str
    node: str = Field(default="", description="Empty for all nodes of the role together")
    device: str = Field(default="", description="Of the node, such as nvme1n1; empty for all devices together")
    operation: str | None = Field(
        default=None, description="null for values of nodes; 'all operations' for the total over a role's operations"
    )
    name: str = Field(
        description="Such as per_second, errors_per_second, mean_ms, p99_ms, cpu, disk_reads. Times are in "
        "milliseconds, processors in percent; amounts are per second"
    )
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
    instance_type: str = ""
    cpu: float | None = Field(default=None, description="Percent of all processors, without iowait")
    iowait: float | None = None
    busiest: float | None = Field(default=None, description="Of the busiest processor, in percent of it")
    memory_bytes: float | None = None
    disk_operations: float | None = Field(default=None, description="Per second, of whole disks")
    disk_bytes: float | None = None
    ebs_operations: float | None = None
    ebs_bytes: float | None = None
    network_received_bytes: float | None = None
    network_sent_bytes: float | None = None
    retransmits: int | None = Field(default=None, description="TCP segments sent again in the measured time")
    retransmit_share: float | None = Field(default=None, description="Of the segments sent, from 0")
    exceeded: dict[str, int] = Field(
        default={}, description="Packets beyond network allowances, and microseconds beyond limits of EBS, above 0"
    )
    ended_at: datetime | None = Field(default=None, description="When its part of the phase ended")
    clock_offset_seconds: float | None = None
    clock_uncertainty_seconds: float | None = None


class Limit(Part):
    """A limit of the benchmark's file, and how the results compare with it. Times are in milliseconds."""

    figure: str = Field(description="As in the results; error_rate is the part of all operations, from 0 to 1")
    at_most: float | None = None
    at_least: float | None = None
    every: int | None = Field(
        default=None,
        description="Seconds of the parts of the measured time, each of which must hold it; null for the whole time",
    )
    role: str = ""
    operation: str
    value: float | None = Field(description="The figure, or the worst of all parts; null if unknown")
    held: bool
    reason: str | None = Field(default=None, description="Why it is not held")


FaultVerdict = Literal["HELD", "BROKEN", "UNKNOWN"]
"""Whether results hold the expectation of a planned fault; UNKNOWN if they cannot say it."""


def worst(verdicts: Iterable[str | None]) -> FaultVerdict | None:
    """Returns the verdict that decides over several; None without any. Ignores other words."""
    known = set(verdicts)
    return next((one for one in WORST if one in known), None)


class FaultWindow(Part):
    """The operations before, during or after a planned fault. Percentiles and the mean are within a sixteenth."""

    start: float = Field(
        validation_alias=AliasChoices("start", "from"), description="Seconds after the beginning of the fault"
    )
    seconds: float
    count: int
    per_second: float
    errors: dict[str, int] | None = Field(default={}, description="null if a tool does not count failures")
    mean_ms: float | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None
    max_ms: float | None = None

    @property
    def failed(self) -> int | None:
        """Errors, without operations that had not ended; None if unknown."""
        if self.errors is None:
            return None
        return sum(number for kind, number in self.errors.items() if kind != UNFINISHED)


class FaultWindows(Part):
    """The windows of a planned fault. All are null if the figures are unknown."""

    before: FaultWindow | None = None
    during: FaultWindow | None = Field(
        default=None, description="From its beginning until rate and p99 are as before, or to its end if that is later"
    )
    after: FaultWindow | None = None


class Victim(Part):
    """A node on which a planned fault acted; times are seconds since 1970."""

    id: str
    role: str
    rank: int | None = None
    zone: str = ""
    began_at: float | None = None
    ended_at: float | None = None


class Back(Part):
    """Seconds from the beginning of a fault until a figure is as before, and stays so, as far as chance allows; null if
    it does not.
    """

    rate_s: float | None = None
    p99_s: float | None = None
    rate_chance_s: float | None = Field(
        default=None, description="Until then, only chance explains that it is back; null if nothing is left to chance"
    )
    p99_chance_s: float | None = Field(default=None, description="As rate_chance_s")


class FaultEvent(Part):
    """The termination on demand by which a fault acted on a unit, as Troop's chaos recorded it. Moments are seconds
    since 1970.
    """

    event_id: str
    status: str | None = None
    verdict: str | None = None
    group: str | None = None
    instance_id: str | None = None
    hit_at: float | None = None
    terminated_at: float | None = None
    recovery_seconds: float | None = Field(
        default=None, description="From the termination until the group had its capacity again"
    )
    stages: dict[str, float | None] | None = Field(
        default=None, description="Moments of its recovery: noticed, launched, running, in_service, healthy"
    )


class FaultExpectation(Part):
    """What the file expects of a planned fault; null where it expects nothing."""

    rate: float | None = Field(default=None, description="The least part of the rate before that the rate during is")
    share: float = 0.95
    rate_back_within: float | None = Field(default=None, description="Seconds")
    p99_back_within: float | None = Field(default=None, description="Seconds")
    failed_at_most: int | None = None


class Failure(Part):
    """A planned fault, and what the operations did around it. Without a verdict on the time before, no figure counts:
    then they are all null.
    """

    number: int = Field(description="Its place in the phase's list, from 1")
    at: float = Field(description="When it was to begin: seconds after the start of the measured time")
    method: str | None = None
    what: str = Field(description="Such as stop 1 of servers")
    unit: str | None = Field(default=None, description="The unit of the account; null for nodes of the run")
    nodes: list[Victim] = []
    requested_at: float | None = Field(
        default=None,
        description="When a fault on a unit was requested: seconds since 1970, as all moments of a fault",
    )
    began_at: float | None = None
    ended_at: float | None = None
    outcome: str = Field(description="DONE, REFUSED by a guard, or FAILED")
    why: str | None = None
    event: FaultEvent | None = None
    rate_before: float | None = None
    rate_during: float | None = Field(
        default=None, description="From its beginning until the rate is back, and to its end if that is later"
    )
    set_rate: float | None = None
    share: float = Field(default=0.95, description="The part of the rate before from which the rate is back")
    windows: FaultWindows = FaultWindows()
    back: Back = Back()
    failed: int | None = Field(
        default=None,
        description="Operations that failed from its beginning on; null also if a tool does not count failures",
    )
    unfinished: int | None = None
    fewer: int | None = Field(default=None, description="Operations fewer than at the set rate")
    fewer_is_estimate: bool = Field(
        default=False, description="Whether there is no set rate, so that fewer is relative to the rate before"
    )
    expect: FaultExpectation | None = None
    verdict: FaultVerdict | None = Field(default=None, description="null without an expectation, if figures are known")
    reasons: list[str] = []
    sentence: str = ""

    @property
    def is_known(self) -> bool:
        """Whether its figures count."""
        return self.windows.before is not None


class FallenOperation(Part):
    """An operation of which some 5 seconds from a planned fault on had less than the fault's share of its own rate
    before. Rates are per second.
    """

    number: int = Field(description="Of the fault")
    role: str
    operation: str
    before: float
    during: float
    after: float | None = None
    lowest: float = Field(description="Of 5 seconds")


class Curve(Part):
    """Operations by whole second of the measured time, of all roles that generate load."""

    start: float = Field(description="Of the first second: seconds after the start of the measured time")
    per_second: list[int] = Field(description="Successes")
    failed: list[int | None] = Field(description="Errors, without unfinished operations; null if unknown")
    p99_ms: list[float | None] = Field(description="Of successes, too large by at most a sixteenth")


class Phase(Part):
    """The results of a cell in one phase, or in one point of it. Points of a cell share its nodes, so they are not
    independent of one another.
    """

    phase: str
    point: int | None = Field(
        default=None,
        description="Number of the point in the order of execution, from 1; null for a phase that ran once",
    )
    repeat: int = Field(default=1, description="From 1; different for points of a cell with the same parameters")
    label: str = Field(default="", description="The point's parameters in short, such as threads=50")
    parameters: dict[str, JsonValue] = Field(
        default={},
        description="What distinguishes these results: the cell's values of the matrix and the point's parameters, by "
        "name (without `parameters.`)",
    )
    partial: bool = Field(
        default=False,
        description="Whether it ended before its time, so that these are the operations up to then of the nodes that "
        "had uploaded any; times from running summaries are exact to a sixteenth",
    )
    nodes: int
    measured_seconds: float
    warm_up_seconds: float = 0
    measured_from: datetime | None = None
    targets: dict[str, float] = Field(
        default={},
        description="The set rate by role: operations per second of all its nodes; without roles that have none",
    )
    operations: list[Operation] = []
    totals: list[Operation] = Field(
        default=[], description="Of each role with several operations: all of them together, merged exactly"
    )
    use: list[Use] = []
    devices: list[DeviceUse] = []
    series: list[Series] = []
    members: list[Node] = []
    separate: list[Separate] = []
    limits: list[Limit] = Field(default=[], description="Empty if the file has no limits for it")
    faults: list[Failure] = Field(default=[], description="The planned faults")
    fallen: list[FallenOperation] = Field(
        default=[], description="The operations whose own rate fell after a planned fault, if there are several"
    )
    curve: Curve | None = Field(default=None, description="null without planned faults, or without counts by second")

    @property
    def setting(self) -> str:
        """The point in short: ``threads=50, #2``; "" for a phase that ran once."""
        parts = (self.label, f"#{self.repeat}" if self.repeat > 1 else "", "partial" if self.partial else "")
        return ", ".join(part for part in parts if part)

    @property
    def title(self) -> str:
        """The phase with its point: ``measure, threads=50``."""
        return ", ".join(part for part in (self.phase, self.setting) if part)


class Search(Part):
    """A search for the largest value of a parameter that holds the limits, over points of a phase."""

    phase: str
    parameter: str
    outcome: str | None = Field(
        default=None,
        description="BRACKETED: a value holds the limits, and the next larger one does not. WIDENED: a value between "
        "largest and smallest both held and failed. ALL_HELD, NONE_HELD: all values hold them, or none. UNSTABLE: no "
        "value held them each time. null if the cell ended before the search",
    )
    largest: float | None = Field(default=None, description="The largest value that held the limits each time")
    smallest: float | None = Field(default=None, description="The smallest value that failed each time")
    points: int = Field(description="The number of points that were measured")
    most: int = Field(description="The number of points in the worst case")
    text: str = Field(description="The answer as a sentence")


class Attempt(Part):
    """An earlier attempt at a cell, which does not count."""

    cell: str
    status: str
    reason: str | None = None
    amount: float | None = None
    interruptions: list[Interruption] = []
    replaced_nodes: list[ReplacedNode] = []


class Cell(Part):
    """A cell with the results of its last attempt."""

    cell: str
    label: str = Field(
        default="", description="Distinguishes the cell from the run's other cells; empty if there is only one"
    )
    scale: str | None = None
    values: dict[str, JsonValue] = Field(default={}, description="Of the matrix, by key such as parameters.threads")
    parameters: dict[str, JsonValue] = Field(default={}, description="All parameters of the cell's scripts")
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
    capacity: list[Capacity] = Field(default=[], description="Of each role and zone, of each role, and of all")
    interruptions: list[Interruption] = []
    replaced_nodes: list[ReplacedNode] = Field(default=[], description="In the order of their replacement")
    cost: Bill | None = None
    hourly: float | None = Field(
        default=None, description="Hourly cost of all fleets; null unless all prices are known"
    )
    system_hourly: float | None = Field(
        default=None,
        description="The same without fleets that only generate load; of all fleets if all of them generate load",
    )
    cross_zone: CrossZone | None = None
    phases: list[Phase] = []
    verdict: Outcome | None = Field(
        default=None,
        description="Whether the results hold all limits, and each search has an answer; null without limits, and if "
        "the cell has not SUCCEEDED",
    )
    searches: list[Search] = []
    fault_verdict: FaultVerdict | None = Field(
        default=None,
        description="The verdict on all planned faults, without points of a search, which are meant to reach what "
        "breaks; null without any, and if the cell has not SUCCEEDED",
    )


class Point(Part):
    """A cell in a scaling series."""

    cell: str
    nodes: int
    per_second: float = Field(description="Of a repeated point, the geometric mean")
    efficiency: float | None = Field(
        default=None,
        description="Throughput per node relative to that of the smallest step (mean of its repetitions)",
    )


class Scaling(Part):
    """Throughput by number of nodes, for one combination of the matrix and one operation."""

    label: str = Field(default="", description="Of the combination of the matrix, and of the point")
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

    severity: Literal["error", "warning", "note"]
    cell: str | None = None
    cause: str = Field(default="", description="What findings of one kind have in common; empty if it has no kind")
    text: str


Figure = Literal["per_second", "mean_ms", "p50_ms", "p99_ms", "cost_per_million"]


class Ratio(Part):
    """One figure of the candidate relative to that of the baseline, by pairs that share nodes or a round."""

    figure: Figure
    candidate: float = Field(description="Geometric mean over the pairs")
    baseline: float
    ratio: float = Field(description="Candidate to baseline")
    low: float | None = Field(default=None, description="Of the interval of 95 %; null with one pair")
    high: float | None = None
    exceeds_noise: bool | None = Field(
        default=None, description="Whether 1 is outside the interval; null without an interval"
    )
    method: str = Field(default="", description="Of the interval, such as paired t; empty without one")
    pairs: list[float] = Field(description="The ratio of each pair, in the order of repetitions")

    @property
    def noise(self) -> float | None:
        """The standard deviation of the logarithms of the pairs' ratios, about a relative one; None with one pair."""
        return stdev(map(log, self.pairs)) if len(self.pairs) > 1 and min(self.pairs) > 0 else None


class Against(Part):
    """One operation of the candidate relative to the baseline."""

    label: str = Field(default="", description="Of the variant and the point, without the values of the baseline")
    phase: str
    role: str
    operation: str
    figures: list[Ratio]

    @property
    def rate(self) -> Ratio:
        """The ratio of the rates, which every operation has."""
        return self.figures[0]


class Report(Part):
    """A report of a run."""

    format: Literal["troop.report/1"] = FORMAT
    created_at: datetime
    created_by: str = Field(description="Troop's version")
    cpu_is_busy: bool = Field(
        default=False, description="Whether cpu is without iowait; in reports of earlier versions it contains iowait"
    )
    run: Run
    money: Money
    definition: dict[str, Any] = Field(description="The benchmark file as it was run, with its size and changes")
    versions: list[Version] = []
    instance_types: list[InstanceType] = []
    cells: list[Cell]
    scaling: list[Scaling] = []
    baseline: dict[str, JsonValue] = Field(
        default={}, description="What the file compares itself with, by key; empty for nothing"
    )
    ratios: list[Against] = Field(
        default=[], description="The file as it is, the candidate, relative to its baseline; empty without pairs"
    )
    findings: list[Finding] = []

    @property
    def verdict(self) -> Outcome | None:
        """Whether all cells with a verdict have passed; None without any."""
        verdicts = {cell.verdict for cell in self.cells} - {None}
        return FAILED if FAILED in verdicts else PASSED if verdicts else None

    @property
    def fault_verdict(self) -> FaultVerdict | None:
        """The verdict that decides over all cells; None without any."""
        return worst(cell.fault_verdict for cell in self.cells)
