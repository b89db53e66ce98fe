"""Defines a benchmark as accepted, with all defaults filled in.

:mod:`troop.bench.file` builds it from the YAML file. Each run stores it once, under
:func:`troop.bench.definition.names.definition_key`, and never changes it. The run's cells are made from it
(:mod:`troop.bench.definition.plan`); the workflow and the nodes' agent read the definition of their cell. The stored
document has the keys of the file, in the same places, and also ``format``, ``size`` and ``files``.

All durations are whole seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

from troop.bench.definition.keys import BOOLEAN, duration, key, matching, one_of, whole
from troop.bench.definition.living import Heal, Health, Queue, Scale, Work
from troop.bench.definition.money import STORAGE, ZERO, Money, money_document, money_of, number
from troop.bench.definition.phase_limits import PhaseLimit
from troop.bench.definition.planned_fault import PlannedFault
from troop.bench.definition.search import Search
from troop.shared import codec
from troop.shared.codec import DocumentError, plain, stored
from troop.shared.errors import TroopError
from troop.shared.values import IMAGE_ID, PARAMETER_NAME, SNAPSHOT_ID

FORMAT = "troop.benchmark/1"

ON_DEMAND, SPOT = "on-demand", "spot"
"""Purchase options of a fleet's nodes."""

CLUSTER, SPREAD, PARTITION = "cluster", "spread", "partition"
"""Strategies of a fleet's placement group."""

READ = "read"
"""The initialization of a volume by reading it whole."""

LOAD_ROLES = frozenset({"driver", "client", "generator", "loader"})
"""Words in the names of roles that generate load unless the file states otherwise; also with an s."""

Scalar = str | int | float | bool
Parameter = Scalar | tuple[Scalar, ...] | Mapping[str, Scalar | tuple[Scalar, ...]]

AROUND = 5 * 60
"""Seconds allowed for launch, collect and teardown, in addition to all time-outs."""

BETWEEN = 60
"""Seconds until the workflow, which polls, notices the end of a phase."""

WARM_UP = "warm_up"
"""The key of a point in the file that is not a parameter."""

MOST_POINTS = 100
"""The most points of a cell, with repeats: each has its own results."""

INSTANCE_TYPE = matching(r"[a-z][a-z0-9-]{0,30}\.[a-z0-9-]{1,20}", "an EC2 instance type, such as c7g.large")
_IMAGE = matching(
    rf"{IMAGE_ID}|(?=.{{1,1011}}$){PARAMETER_NAME}",
    "the id of an image (ami-...), or the name of an SSM parameter that contains one (/...)",
)
_SECONDS = duration("0s", "24h")
_TIMEOUT, _KILLED = duration("1s", "24h"), "Time after which the script is killed and the cell fails"
_OMIT = stored(omit=True)


class DefinitionError(TroopError):
    """A stored document that is not a benchmark, or comes from a later version."""


@dataclass(frozen=True)
class Volume:
    """An additional volume of each node of a fleet, empty at first unless it has a snapshot.

    Attributes:
        device: EC2's device name, such as ``/dev/sdf``.
        type: one of :data:`troop.bench.definition.money.STORAGE`.
        iops: provisioned; None for the default of ``gp3`` and for types without provisioned IOPS, never None for
            ``io1`` and ``io2``.
        throughput_mib: MiB a second, for ``gp3`` only; None for the default.
        snapshot: id of the snapshot whose data it has; None for an empty volume.
        initialize: :data:`READ` if nodes read it whole before the first phase; a number of MiB a second at which EBS
            loads the snapshot; None for neither.
    """

    device: str = field(metadata=key("Device name", matching(r"/dev/sd[f-p]", "/dev/sdf to /dev/sdp")))
    size_gib: int = field(metadata=key("Size in GiB", whole(1, 65_536), "At least the size of the snapshot."))
    type: str = field(default="gp3", metadata=key("EBS volume type", one_of(*STORAGE)))
    iops: int | None = field(
        default=None,
        metadata=key(
            "Provisioned IOPS; required for io1 and io2, and for gp3 if not the default", whole(100, 256_000), omit=True
        ),
    )
    throughput_mib: int | None = field(
        default=None, metadata=key("Throughput in MiB a second; gp3 only", whole(125, 2000), omit=True)
    )
    snapshot: str | None = field(
        default=None,
        metadata=key(
            "Encrypted snapshot of this account whose data it has, if the deployment also allows it",
            matching(SNAPSHOT_ID, "the id of a snapshot, such as snap-0123456789abcdef0"),
            "By default it is empty. The setting `troop:allowed_snapshots` must list the snapshot.",
            omit=True,
        ),
    )
    initialize: int | str | None = field(default=None, metadata=_OMIT)

    @property
    def rate(self) -> int | None:
        """The provisioned rate of initialization in MiB a second; None for none."""
        return self.initialize if isinstance(self.initialize, int) else None


@dataclass(frozen=True)
class Fleet:
    """The nodes of one role.

    Attributes:
        role: the fleet's name.
        zones: number of availability zones it is spread over; at most ``count``.
        purchase: :data:`ON_DEMAND` or :data:`SPOT`.
        spot_timeout: seconds after which a backup group launches missing spot nodes on demand; unused for on-demand.
        backup: :data:`ON_DEMAND` if a standing fleet on spot has a backup group; a benchmark's always has one.
        max_price: the most that a spot node may cost an hour; None for the price on demand.
        fixed: whether the role of a standing fleet keeps its number of nodes; those of benchmarks always do.
        load: whether it only generates load; None if the file does not state it, see :func:`is_load`.
        license_fee: price of the software on one node for an hour.
        fallback_types: instance types of further attempts if EC2 lacks capacity, in order.
        zone_names: zones to use, in order: the first ``zones`` of them, and later ones in further attempts if EC2 lacks
            capacity; empty for any.
        placement: strategy of its placement group; None for none.
        image: id of its machine image, or name of an SSM parameter that contains the id; None for Amazon Linux 2023.
        health: how its nodes say that they are well; this and the next three only in standing fleets, None for nothing.
        work: the work that each of its nodes must do.
        heal: the repair of its nodes.
        scale: how their number follows the queue.
    """

    role: str
    count: int = field(
        metadata=key(
            "Number of nodes", whole(1, 10_000), "All nodes that exist at a time are at most `troop:max_nodes`."
        )
    )
    instance_type: str = field(
        metadata=key(
            "Instance type, x86-64 or arm64",
            INSTANCE_TYPE,
            "The region must offer it in as many of the network's zones as `zones` says.",
        )
    )
    zones: int = field(default=1, metadata=key("Number of availability zones to spread over", whole(1, 6)))
    boot_timeout: int = field(
        default=600,
        metadata=key(
            "Time within which all nodes must boot and have what they need",
            duration("10s", "2h"),
            "Fleets boot at the same time.",
        ),
    )
    root_volume_gib: int = field(default=8, metadata=key("Size of each node's root volume in GiB", whole(8, 16_384)))
    volumes: tuple[Volume, ...] = ()
    purchase: str = field(
        default=ON_DEMAND,
        metadata=key(
            "How to buy the nodes", one_of(ON_DEMAND, SPOT), "The catalogue's benchmarks use spot where they can."
        ),
    )
    spot_timeout: int = field(default=300, metadata=stored(omit=lambda fleet: not fleet.is_spot))
    load: bool | None = field(
        default=None,
        metadata=key(
            "Whether these nodes only generate load, so that comparisons leave their cost out",
            BOOLEAN,
            "By default those do whose role is named drivers, clients, generators or loaders, also as a part of the "
            "name (`web-clients`).",
            omit=True,
        ),
    )
    license_fee: Decimal = field(default=ZERO, metadata=stored(omit=True, encode=number))
    image: str | None = field(
        default=None,
        metadata=key(
            "Machine image, if the deployment also allows it",
            _IMAGE,
            "By default Amazon Linux 2023. The setting `troop:allowed_images` must allow any other.",
            omit=True,
        ),
    )
    placement: str | None = field(
        default=None,
        metadata=key(
            "How EC2 places the nodes on its hardware",
            one_of(CLUSTER, SPREAD, PARTITION),
            "By default anywhere in their zones.",
            omit=True,
        ),
    )
    fallback_types: tuple[str, ...] = field(default=(), metadata=_OMIT)
    zone_names: tuple[str, ...] = field(default=(), metadata=_OMIT)
    backup: str | None = field(default=None, metadata=_OMIT)
    max_price: Decimal | None = field(default=None, metadata=stored(omit=True, encode=number))
    fixed: bool = field(default=False, metadata=_OMIT)
    health: Health | None = field(default=None, metadata=_OMIT)
    work: Work | None = field(default=None, metadata=_OMIT)
    heal: Heal | None = field(default=None, metadata=_OMIT)
    scale: Scale | None = field(default=None, metadata=_OMIT)

    @property
    def is_watched(self) -> bool:
        """Whether its nodes report for a key of their own; see :attr:`Benchmark.watched_roles`."""
        return any((self.health, self.work, self.heal))

    @property
    def types(self) -> tuple[str, ...]:
        """All instance types that it may have, in the order of the attempts."""
        return self.instance_type, *self.fallback_types

    @property
    def is_spot(self) -> bool:
        return self.purchase == SPOT

    @property
    def most(self) -> int:
        """The most nodes at a time: while spot nodes replace those of a standing fleet's backup, both exist."""
        return self.count + surge(self.count) if self.backup else self.count

    @property
    def grown(self) -> Fleet:
        """The fleet with the most nodes that its backlog can demand."""
        return replace(self, count=max(self.count, self.scale.most)) if self.scale else self


def surge(count: int) -> int:
    """Computes how many spot nodes a standing fleet with a backup group may have beyond its count at a time: a fifth,
    and at least one, so that large fleets also return to spot within an hour or two.
    """
    return -(-count // 5)


def is_load(role: str, load: bool | None) -> bool:
    """Checks whether the nodes of a role only generate load: as the file states, otherwise by the role's name."""
    if load is not None:
        return load
    return any(word.removesuffix("s") in LOAD_ROLES for word in role.split("-"))


@dataclass(frozen=True)
class Point:
    """One setting of a phase that runs several times on the same nodes.

    Attributes:
        parameters: those that differ from the benchmark's, by name.
        warm_up: seconds; None for that of the phase.
    """

    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    warm_up: int | None = None


@dataclass(frozen=True)
class Between:
    """A script that runs before points, to restore the state; attributes as those of a phase."""

    script: str
    roles: tuple[str, ...]
    timeout: int = field(metadata=key(_KILLED, _TIMEOUT))
    expected: int | None = field(
        default=None, metadata=key("Expected duration, for the cost estimate", _SECONDS, omit=True)
    )


def _point_keys(points: Sequence[Point]) -> list[dict[str, Any]]:
    """Returns points as in the file: each is a mapping of its parameters, with ``warm_up``."""
    warm_ups = ({} if point.warm_up is None else {WARM_UP: point.warm_up} for point in points)
    return [plain_parameter(point.parameters) | warm_up for point, warm_up in zip(points, warm_ups, strict=True)]


def _points_of(documents: Sequence[Mapping[str, Any]]) -> tuple[Point, ...]:
    return tuple(
        Point(parameter_of({name: one[name] for name in one if name != WARM_UP}), one.get(WARM_UP)) for one in documents
    )


@dataclass(frozen=True)
class Phase:
    """One script, run at the same time on all nodes of some roles.

    Attributes:
        roles: roles whose nodes run the script; the others wait.
        script: the name of one of the benchmark's files.
        timeout: seconds the script may take; more than ``start_up + warm_up + measured``.
        start_up: seconds before its beginning in which the script starts, and does not begin its load.
        warm_up: seconds at its beginning that are not counted.
        measured: counted seconds after the warm-up; 0 for a phase that measures nothing.
        expected: expected seconds of the script, for the cost estimate; None if the file does not state them.
        points: settings with which it runs one after another on the same nodes; empty for a phase that runs once.
        repeat: how often it goes through the points.
        between: runs before each point, but before the first only if ``paired``; None for nothing.
        rate: for some roles, the parameter with the rate of each node, in operations per second; 0 for none.
        nodes: for some roles, the parameter with the number of nodes that take part.
        search: chooses the points one by one, in place of ``points``; None for none.
        limits: what its results, or those of each point, must hold.
        paired: whether its points are pairs of a candidate and its baseline, one after the other.
        faults: what hits nodes, or units of the account, in its measured time or that of each point.
    """

    name: str
    roles: tuple[str, ...]
    script: str
    timeout: int = field(
        metadata=key(
            _KILLED,
            _TIMEOUT,
            "So are its child processes. Longer than `start_up`, `warm_up` and `measured` together. Each point has its "
            "own.",
        )
    )
    start_together: bool = field(
        default=False, metadata=key("Whether the script starts on all nodes at one instant of the clock", BOOLEAN)
    )
    start_up: int = field(
        default=0,
        metadata=key(
            "Time for the script to start, before warm_up",
            duration("0s", "1m"),
            "The script starts so long before the common start, and must begin its load at TROOP_START_AT. A recorder "
            "waits until then.",
        ),
    )
    warm_up: int = field(default=0, metadata=key("Time before the measured time, not counted", _SECONDS))
    measured: int = field(default=0, metadata=key("Measured time; 0s measures nothing", _SECONDS))
    expected: int | None = field(
        default=None,
        metadata=key(
            "Expected duration, for the cost estimate",
            _SECONDS,
            "Of each point. By default `warm_up` and `measured`, or a quarter of `timeout` if it measures nothing.",
            omit=True,
        ),
    )
    points: tuple[Point, ...] = field(default=(), metadata=stored(omit=True, encode=_point_keys, decode=_points_of))
    repeat: int = field(
        default=1,
        metadata=key(
            "How often a measured phase goes through its points on the same nodes",
            whole(1, MOST_POINTS),
            "All points run, and then all of them again.",
            omit=True,
        ),
    )
    between: Between | None = field(default=None, metadata=_OMIT)
    rate: Mapping[str, str] = field(default_factory=dict, metadata=_OMIT)
    nodes: Mapping[str, str] = field(default_factory=dict, metadata=_OMIT)
    search: Search | None = field(
        default=None, metadata=stored(omit=True, encode=Search.document, decode=Search.from_document)
    )
    limits: tuple[PhaseLimit, ...] = field(default=(), metadata=_OMIT)
    paired: bool = field(default=False, metadata=_OMIT)
    faults: tuple[PlannedFault, ...] = field(default=(), metadata=_OMIT)

    @property
    def is_measured(self) -> bool:
        """Whether its summaries are results, which a lost node invalidates."""
        return self.measured > 0

    @property
    def has_points(self) -> bool:
        return bool(self.points) or self.repeat > 1 or self.search is not None

    @property
    def number_of_points(self) -> int:
        """With repeats; of a search in the worst case. 1 for a phase that runs once."""
        return self.search.most if self.search else (len(self.points) or 1) * self.repeat


@dataclass(frozen=True)
class PointPlace:
    """A point's place in its phase.

    Attributes:
        number: from 1, over all repeats, in the order of execution.
        count: number of points of the phase, with repeats.
        repeat: from 1; equal points of a phase have different ones.
        parameters: of each name that some point of the phase sets, the value here.
    """

    number: int
    count: int = field(metadata=stored(key="of"))
    repeat: int
    parameters: Mapping[str, Parameter]


@dataclass(frozen=True)
class Step:
    """One execution of a script by all nodes together: of a phase, of one of its points, or between two points.

    Attributes:
        phase: as it runs. Its name is the step's: ``measure``; ``measure.3`` for a point; ``measure.3.between`` for
            the script before that point. Names of phases have no dots.
        phase_name: the name of the phase in the file.
        point: None for a phase that runs once.
        is_between: whether it runs before the point.
        limits: for some roles, the number of nodes that take part: those with the lowest ranks.
        search: chooses the point's parameters when the step begins, see :meth:`Benchmark.step_at`; None for a planned
            point.
        is_skipped: whether the search was over before it, so that no node takes part.
    """

    phase: Phase
    phase_name: str
    point: PointPlace | None = None
    is_between: bool = False
    limits: Mapping[str, int] = field(default_factory=dict)
    search: Search | None = None
    is_skipped: bool = False

    @property
    def name(self) -> str:
        return self.phase.name

    def skipped(self) -> Step:
        """Returns the step as one in which no node takes part, and no fault happens."""
        limits = dict.fromkeys(self.phase.roles, 0)
        return replace(self, phase=replace(self.phase, faults=()), limits=limits, is_skipped=True)


@dataclass(frozen=True)
class Artifact:
    """A file too large for the benchmark's folder; staged under :func:`troop.bench.definition.names.artifact_key`.

    Attributes:
        name: file name on the nodes.
        sha256: of its content, 64 lower-case hexadecimal digits.
        source: where the command got it, for the record; nothing reads it.
    """

    name: str
    sha256: str
    source: str


@dataclass(frozen=True)
class Target:
    """What the nodes of some roles can reach besides S3 and each other. Exactly one of ``load_balancer``, ``addresses``
    and ``security_group`` is set.

    Attributes:
        name: by which scripts find it.
        ports: TCP ports, as ``443`` or ``8000-8100``.
        roles: the only roles that can reach it.
        load_balancer: name of an Application or Network Load Balancer.
        addresses: IPv4 networks, such as ``10.20.0.0/16``.
        security_group: id of a security group.
    """

    name: str
    ports: tuple[str, ...]
    roles: tuple[str, ...]
    load_balancer: str | None = field(default=None, metadata=_OMIT)
    addresses: tuple[str, ...] = field(default=(), metadata=_OMIT)
    security_group: str | None = field(default=None, metadata=_OMIT)


@dataclass(frozen=True)
class Benchmark:
    """A complete definition of a benchmark or a standing fleet.

    Attributes:
        expires_after: seconds after which everything that exists of a run is removed.
        fleets: in the file's order; at least one.
        phases: in order; at least one, except in a standing fleet.
        parameters: for the scripts.
        buckets: buckets that nodes may read in addition to the run's files.
        size: the selected size of the file; None for none.
        files: sorted names of the files in the benchmark's folder, which are copied to every node.
        attempts: maximum attempts at a cell that is INVALID; the last of several is on demand.
        standing: whether it is a standing fleet, which measures nothing and whose nodes run phases without a barrier.
        own_data: whether its scripts create objects to measure with.
        ranks: whether the nodes of a standing fleet have ranks.
        money: budget, billing and prices, whose keys are beside the others.
        targets: in the file's order.
        baseline: what to compare the benchmark with: values by key; empty for nothing. See
            :mod:`troop.bench.definition.baseline`.
        version: of what it measures, such as a commit, as the user names it; "" for none.
        queue: of the tasks of a standing fleet; None for none.
    """

    name: str
    description: str
    expires_after: int
    fleets: tuple[Fleet, ...] = field(metadata=stored(by="role"))
    phases: tuple[Phase, ...]
    parameters: Mapping[str, Parameter]
    artifacts: tuple[Artifact, ...] = ()
    buckets: tuple[str, ...] = ()
    size: str | None = None
    files: tuple[str, ...] = ()
    attempts: int = 1
    standing: bool = field(default=False, metadata=_OMIT)
    own_data: bool = False
    ranks: bool = field(default=False, metadata=_OMIT)
    money: Money = field(default_factory=Money, metadata=stored(flat=True, encode=money_document, decode=money_of))
    targets: tuple[Target, ...] = field(default=(), metadata=stored(omit=True, by="name"))
    baseline: Mapping[str, Parameter] = field(default_factory=dict, metadata=_OMIT)
    version: str = field(default="", metadata=_OMIT)
    queue: Queue | None = field(default=None, metadata=_OMIT)

    @property
    def watched_roles(self) -> tuple[str, ...]:
        """The roles whose nodes report: all with a queue, whose workers they stop."""
        return tuple(fleet.role for fleet in self.fleets if self.queue or fleet.is_watched)

    @property
    def rebalances(self) -> bool:
        """Whether Auto Scaling may move nodes to other zones: in a standing fleet, unless each node has its place or
        tasks. A fleet with a queue chooses by tasks which nodes go, so its zones need not be even.
        """
        return self.standing and not self.ranks and self.queue is None

    @property
    def grown(self) -> Benchmark:
        """The definition with the most nodes that its backlog can demand."""
        return replace(self, fleets=tuple(fleet.grown for fleet in self.fleets))

    @property
    def zones(self) -> int:
        """Number of availability zones of all fleets together, as far as the file says them."""
        named = {zone for fleet in self.fleets for zone in fleet.zone_names[: fleet.zones]}
        return max(len(named), *(fleet.zones for fleet in self.fleets))

    @property
    def nodes(self) -> int:
        """The most nodes of one cell at a time, in all fleets."""
        return sum(fleet.most for fleet in self.fleets)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """All executions of scripts, in order. Each waits until all nodes have finished the one before."""
        return tuple(step for phase in self.phases for step in _steps(phase, self.parameters))

    @property
    def longest(self) -> int:
        """Seconds of all time-outs together: the longest a cell takes without launch and teardown."""
        return self.boot_timeout + sum(step.phase.timeout for step in self.steps)

    @property
    def needed(self) -> int:
        """Maximum seconds of one attempt at a cell, with launch and teardown."""
        return self.longest + AROUND + BETWEEN * len(self.steps)

    @property
    def boot_timeout(self) -> int:
        """Seconds within which the nodes of all fleets must register: fleets boot in parallel."""
        return max(fleet.boot_timeout for fleet in self.fleets)

    def step_at(self, step: Step, parameters: Mapping[str, Parameter], repeat: int) -> Step:
        """Returns a step of a search with the parameters of its point.

        Args:
            repeat: from 1; equal points of a phase have different ones.
        """
        if step.point is None:
            raise ValueError(f"{step.name} has no point")
        point = replace(step.point, parameters=parameters, repeat=repeat)
        limits = {} if step.is_between else _limits(self.phase(step.phase_name), {**self.parameters, **parameters})
        return replace(step, point=point, limits=limits)

    def fleet(self, role: str) -> Fleet:
        """Returns the fleet of a role; raises KeyError if there is none."""
        return next((fleet for fleet in self.fleets if fleet.role == role), None) or _missing(role)

    def phase(self, name: str) -> Phase:
        """Returns the phase of a name; raises KeyError if there is none."""
        return next((phase for phase in self.phases if phase.name == name), None) or _missing(name)


def _missing(name: str) -> Any:
    raise KeyError(name)


def point_parameters(phase: Phase, parameters: Mapping[str, Parameter]) -> list[dict[str, Parameter]]:
    """Returns for each point of a phase, without repeats, the value of each name that some point of it sets.

    Args:
        parameters: of the benchmark.
    """
    names = dict.fromkeys(name for point in phase.points for name in point.parameters)
    return [{n: point.parameters.get(n, parameters.get(n, "")) for n in names} for point in phase.points or (Point(),)]


def _steps(phase: Phase, parameters: Mapping[str, Parameter]) -> Iterator[Step]:
    """Yields the executions of a phase. A repeat goes through all points, so that a slow change of the nodes does not
    look like an effect of the parameters. Pairs take turns in which side begins. Nothing before a pair knows which side
    that is, so the script between the points prepares the first point too.
    """
    once = replace(phase, points=(), repeat=1, between=None, nodes={}, rate={}, search=None, paired=False)
    if not phase.has_points:
        yield Step(once, phase.name, limits=_limits(phase, parameters))
        return
    points, settings = phase.points or (Point(),), point_parameters(phase, parameters)
    for order in range(1, phase.number_of_points + 1):
        repeat, position = (0, 0) if phase.search else divmod(order - 1, len(points))
        position ^= phase.paired and repeat & 1
        point, its = points[position], settings[position]
        at = PointPlace(order, phase.number_of_points, repeat + 1, its)
        if phase.between and (order > 1 or phase.paired):
            between = phase.between
            name = f"{phase.name}.{order}.between"
            script = Phase(name, between.roles, between.script, between.timeout, expected=between.expected)
            yield Step(script, phase.name, at, is_between=True, search=phase.search)
        warm_up = phase.warm_up if point.warm_up is None else point.warm_up
        limits = _limits(phase, {**parameters, **its})
        own = replace(once, name=f"{phase.name}.{order}", warm_up=warm_up)
        yield Step(own, phase.name, at, limits=limits, search=phase.search)


def _limits(phase: Phase, parameters: Mapping[str, Parameter]) -> dict[str, int]:
    """Returns the number of nodes by role. The file's check refuses parameters that are not whole numbers."""
    counts = {role: parameters.get(name) for role, name in phase.nodes.items()}
    return {role: count for role, count in counts.items() if type(count) is int}


def rates(phase: Phase, parameters: Mapping[str, Parameter]) -> dict[str, float]:
    """Returns the rate of each node by role, in operations per second; without roles that have none.

    Args:
        parameters: of the benchmark, with those of the point.
    """
    values = {role: parameters.get(name) for role, name in phase.rate.items()}
    return {role: float(value) for role, value in values.items() if type(value) in (int, float) and value > 0}  # type: ignore[arg-type, operator]


def parameter_of(value: Any) -> Any:
    """Converts a parameter from JSON: lists become tuples; the reverse of :func:`plain_parameter`."""
    return plain(tuple, value)


def plain_parameter(value: Any) -> Any:
    """Replaces tuples by lists, so that the document equals the one read back from JSON."""
    return plain(list, value)


def identity(value: Any) -> Any:
    """Returns a key that is the same for equal values of parameters, also for those read from JSON; 1 and true are
    different.
    """
    if isinstance(value, Mapping):
        return frozenset((name, identity(inner)) for name, inner in value.items())
    return tuple(map(identity, value)) if isinstance(value, (list, tuple)) else (isinstance(value, bool), value)


def to_document(benchmark: Benchmark) -> dict[str, Any]:
    """Converts to JSON-like values; the reverse of :func:`from_document`."""
    return {"format": FORMAT, **codec.to_document(benchmark)}


def from_document(document: Mapping[str, Any]) -> Benchmark:
    """Reads a stored document. Ignores unknown keys, which later versions add.

    Raises:
        DefinitionError: the document has another format or is damaged.
    """
    if (format := document.get("format")) != FORMAT:
        raise DefinitionError(
            f"the benchmark's stored definition has the format {format!r}, not {FORMAT!r}: run the benchmark again"
        )
    try:
        return codec.from_document(Benchmark, document)
    except DocumentError as error:
        raise DefinitionError(
            f"the benchmark's stored definition is damaged ({error}): run the benchmark again"
        ) from None
