"""Models a benchmark's file: the values, default and meaning of each key.

Plain keys of volumes, fleets and phases are declared with their dataclass (:mod:`troop.bench.definition.keys`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Annotated, Any, ClassVar

from troop.bench.definition.baseline import on_same_nodes, paired
from troop.bench.definition.definition import (
    INSTANCE_TYPE,
    READ,
    SPOT,
    Artifact,
    Benchmark,
    Between,
    Fleet,
    Phase,
    Point,
    Target,
    Volume,
)
from troop.bench.definition.keys import (
    BOOLEAN,
    FILE,
    ROLE,
    Checked,
    amount,
    duration,
    matching,
    named,
    seconds,
    text,
    whole,
)
from troop.bench.definition.money import S3_GETS, S3_PUTS, STORAGE, Price
from troop.bench.definition.planned_fault import MOST_FAULTS
from troop.bench.file import money_keys
from troop.bench.file.allowed_values import ALLOWED
from troop.bench.file.fields import PARAMETER, VALUE, Part, described, model_of, plain_values, values
from troop.bench.file.living import ONLY_IN_FLEETS
from troop.bench.file.phase_limits import MOST_LIMITS, LimitIn
from troop.bench.file.planned_faults import FaultIn
from troop.bench.file.points import KEY, POINTS
from troop.bench.file.searches import SearchIn
from troop.shared.targets import ADDRESSES, LOAD_BALANCER, PORTS, SECURITY_GROUP, parse_addresses, parse_ports
from troop.shared.values import BUCKET_NAME, ZONE_NAME

LONGEST_RUN = "168h"


PHASE, BENCHMARK, SIZE, TARGET = named(41), named(41), named(21), named(41)
BUCKET = matching(BUCKET_NAME, "an S3 bucket's name, without s3://")
SHA256 = matching(r"[0-9a-f]{64}", "64 lower-case hexadecimal digits, as sha256sum prints them")
SOURCE = matching(
    rf"(https://|s3://{BUCKET_NAME}/)[^\x00-\x20]{{1,1000}}|(?![A-Za-z][A-Za-z0-9+._-]*:)[^\x00-\x1f]{{1,1000}}",
    "https://..., s3://BUCKET/KEY, or a path from the file's folder",
)
ZONE = matching(ZONE_NAME, "the name of an availability zone, such as us-east-1a")
NOT_INITIALIZED = "none"
_RATE = whole(100, 300)


def _initialization(value: Any) -> int | str:
    return str(value) if value in (NOT_INITIALIZED, READ) else int(_RATE.parse(value))


INITIALIZE = Checked(
    _initialization,
    f"{NOT_INITIALIZED}, {READ}, or {_RATE.allowed} (MiB a second)",
    {"anyOf": [{"type": "string", "enum": [NOT_INITIALIZED, READ]}, _RATE.schema]},
)


def _port(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ValueError
    return str(parse_ports(str(value)))


def _address(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return str(parse_addresses(value))


_PORT = Checked(
    _port,
    PORTS,
    {
        "anyOf": [
            {"type": "integer", "minimum": 1, "maximum": 65535},
            {"type": "string", "pattern": "^[1-9][0-9]{0,4}(-[1-9][0-9]{0,4})?$"},
        ]
    },
)
_ADDRESS = Checked(_address, ADDRESSES, {"type": "string", "pattern": r"^[0-9]{1,3}(\.[0-9]{1,3}){3}(/[0-9]{1,2})?$"})
_BALANCER = matching(LOAD_BALANCER, "the name of an Application or Network Load Balancer, without its path")
_GROUP = matching(SECURITY_GROUP, "the id of a security group, such as sg-0123456789abcdef0")
MOST_TARGETS = 20
_DESCRIPTION = text(1000)
_EXPIRES, _MEASURED = duration("10m", LONGEST_RUN), duration("0s", "24h")
_SPOT_TIMEOUT, _ATTEMPTS = duration("30s", "2h"), whole(1, 5)
_MAX_PRICE = amount(0.001, 100_000)  # EC2 refuses less
SPOT_TIMEOUT = seconds("5m")
"""The default of a spot fleet."""
MOST_FLEETS, MOST_PHASES = 10, 50
MOST_CELLS, MOST_REPETITIONS, MOST_PARALLEL = 200, 200, 50
_REPETITIONS, _PARALLEL = whole(1, MOST_REPETITIONS), whole(1, MOST_PARALLEL)
_CHANGED = matching(r"[^\x00-\x20\x7f]{1,200}", "the key of a value, such as parameters.threads")
_VALUES = values(MOST_CELLS)
MOST_BASELINE = 10
_VERSION = matching(r"[^\x00-\x1f\x7f]{0,100}", "text of at most 100 characters, on one line")


class VolumeIn(model_of(Volume)):  # type: ignore[misc]
    """An additional volume of each node: empty, or with a snapshot's data; encrypted, and deleted with its node."""

    initialize: Annotated[int | str, INITIALIZE] = described(
        INITIALIZE,
        "How the snapshot's data gets there before the first access",
        "With `none`, EBS loads it on first access and in the background. With `read`, nodes read the whole volume "
        "before they are ready. With a number, EBS loads it at this rate.",
        default=NOT_INITIALIZED,
    )

    def build(self) -> Volume:
        initialize = None if self.initialize == NOT_INITIALIZED else self.initialize
        return Volume(**plain_values(Volume, self), initialize=initialize)


class FleetIn(model_of(Fleet)):  # type: ignore[misc]
    """The nodes of one role: instances of one type, in subnets without a route to the internet."""

    elsewhere: ClassVar[Mapping[str, str]] = ONLY_IN_FLEETS

    fallback_types: list[Annotated[str, INSTANCE_TYPE]] = described(
        "a list of at most 4 types",
        "Instance types of further attempts if EC2 lacks capacity, in order",
        "All of them have the same architecture.",
        default=[],
        max_length=4,
    )
    zone_names: list[Annotated[str, ZONE]] = described(
        "a list of at most 6 names",
        "Availability zones to use, in order, later ones if EC2 lacks capacity",
        "By default the first zones of the network, by name, that offer the type.",
        default=[],
        max_length=6,
    )
    spot_timeout: Annotated[int | None, _SPOT_TIMEOUT] = described(
        _SPOT_TIMEOUT,
        "Time after which Troop launches missing spot nodes on demand",
        "5m by default. At least 4 minutes shorter than boot_timeout. No effect on demand.",
        default=None,
    )
    max_price: Annotated[Decimal | None, _MAX_PRICE] = described(
        _MAX_PRICE,
        "Most that a spot node may cost, in USD an hour",
        "By default its price on demand. No effect on demand.",
        default=None,
    )
    volumes: list[VolumeIn] = described(
        "a list of at most 11", "Additional volumes of each node", default=[], max_length=11
    )
    license_fee: Annotated[Decimal, money_keys.LICENSE] = described(
        money_keys.LICENSE,
        "USD an hour for the software on each node",
        "Part of the estimate and of the cost.",
        default=0,
    )

    def build(self, role: str) -> Fleet:
        is_spot = self.purchase == SPOT  # otherwise keys about spot have no effect
        return Fleet(
            **plain_values(Fleet, self),
            role=role,
            volumes=tuple(volume.build() for volume in self.volumes),
            spot_timeout=self.spot_timeout if is_spot and self.spot_timeout is not None else SPOT_TIMEOUT,
            license_fee=Decimal(self.license_fee),
            fallback_types=tuple(self.fallback_types),
            zone_names=tuple(self.zone_names),
            max_price=self.max_price if is_spot else None,
        )


class BetweenIn(model_of(Between)):  # type: ignore[misc]
    """A script that restores the state before each further point of a phase."""

    script: Annotated[str, FILE] = described(FILE, "A file in this folder, as of a phase")
    roles: list[Annotated[str, ROLE]] = described(
        "a list of roles", "Roles whose nodes run the script", min_length=1, max_length=10
    )

    def build(self) -> Between:
        return Between(**plain_values(Between, self), script=self.script, roles=tuple(self.roles))


class PhaseIn(model_of(Phase)):  # type: ignore[misc]
    """One script, run once on each node of some roles. It starts when all nodes have finished the previous phase."""

    name: Annotated[str, PHASE] = described(
        PHASE, "Name of the phase", "Not launch, boot, collect, teardown or over, which every run has."
    )
    roles: list[Annotated[str, ROLE]] = described(
        "a list of roles", "Roles whose nodes run the script", "The others wait.", min_length=1, max_length=10
    )
    script: Annotated[str, FILE] = described(
        FILE, "A file in this folder", "The node's Python 3.9 runs *.py. Other files need a #! line."
    )
    least_warm_up: dict[Annotated[str, KEY], dict[str, Annotated[int, _MEASURED]]] = described(
        "a mapping of parameters to mappings of their values to durations",
        "Shortest warm_up with a tool that starts slowly, also of a point",
        "Such as `{driver: {cassandra-stress: 15s}}`.",
        default={},
        max_length=10,
    )
    points: Annotated[tuple[Point, ...], POINTS] = described(
        POINTS,
        "Settings with which a measured phase runs one after another on the same nodes",
        "Of a mapping all combinations run, and the last parameter varies fastest. A parameter that a point does not "
        "set has the file's value.",
        default=(),
    )
    between: BetweenIn | None = described(
        "a mapping with script, roles, timeout and expected",
        "A script that runs before each point but the first, to restore the state",
        "With a baseline on the same nodes, it also runs before the first.",
        default=None,
    )
    nodes: dict[Annotated[str, ROLE], Annotated[str, KEY]] = described(
        "a mapping of roles to parameters with that number",
        "Number of nodes that take part",
        "Those with the lowest ranks do, and the others wait. Points can change the parameter.",
        default={},
        max_length=10,
    )
    rate: dict[Annotated[str, ROLE], Annotated[str, KEY]] = described(
        "a mapping of roles to parameters with that rate, 0 for none",
        "Rate that the script of a measured phase sets, in operations a second of each node",
        default={},
        max_length=10,
    )
    limits: list[LimitIn] = described(
        f"a list of at most {MOST_LIMITS}",
        "What its results, or those of each point, must hold to pass",
        default=[],
        max_length=MOST_LIMITS,
    )
    search: SearchIn | None = described(
        "a mapping with parameter, and either from and to or values",
        "Searches the largest value of a parameter that holds the limits, in place of points",
        "A phase with a search has no `points` and no `repeat`.",
        default=None,
    )
    faults: list[FaultIn] = described(
        f"a list of at most {MOST_FAULTS}",
        "Failures under load: what hits which nodes, or which unit of the account, in its measured time",
        default=[],
        max_length=MOST_FAULTS,
    )

    @property
    def longest_warm_up(self) -> int:
        """Seconds of the warm-up, or of the longest one of its points."""
        warm_ups: list[int] = [self.warm_up, *(point.warm_up or 0 for point in self.points)]
        return max(warm_ups)

    def build(self, parameters: Mapping[str, Any], baseline: Mapping[str, Any]) -> Phase:
        """Returns the phase, with its points in pairs if the baseline is measured on the same nodes."""
        phase = Phase(
            **plain_values(Phase, self),
            name=self.name,
            roles=tuple(self.roles),
            script=self.script,
            points=self.points,
            between=self.between.build() if self.between else None,
            nodes=dict(self.nodes),
            rate=dict(self.rate),
            limits=tuple(limit.build() for limit in self.limits),
            search=self.search.build() if self.search else None,
            faults=tuple(fault.build() for fault in self.faults),
        )
        if phase.search:
            return phase
        if on_same_nodes(baseline):
            phase = paired(phase, parameters, baseline)
        return phase if phase.number_of_points > 1 else replace(phase, between=None)


class ArtifactIn(Part):
    """A file that every node gets, staged to the deployment's bucket once for all runs that use it."""

    name: Annotated[str, FILE] = described(FILE, "File name on the nodes")
    source: Annotated[str, SOURCE] = described(
        SOURCE, "Source from which the command reads it, at most 5 GiB", "It follows redirects to https:// only."
    )
    sha256: Annotated[str, SHA256] = described(SHA256, "SHA-256 of the content, which the command verifies")
    when: dict[Annotated[str, KEY], Annotated[Any, PARAMETER]] = described(
        "a mapping of names to values",
        "Values of parameters with which nodes need it",
        "By default they always need it. Cells with other values do not get it.",
        default={},
        max_length=10,
    )

    def build(self) -> Artifact:
        return Artifact(self.name, self.sha256, self.source)

    def is_needed(self, values: Iterable[Mapping[str, Any]]) -> bool:
        """Checks whether one of these settings of parameters is that of ``when``; JSON keeps 1 and true apart."""
        return any(
            all(name in one and json.dumps(one[name]) == json.dumps(value) for name, value in self.when.items())
            for one in values
        )


class TargetIn(Part):
    """What the nodes of some roles can reach besides S3 and each other: exactly one of load_balancer, addresses and
    security_group, if the deployment also allows it.
    """

    load_balancer: Annotated[str | None, _BALANCER] = described(
        _BALANCER,
        "An internal load balancer in the nodes' network",
        "Nodes reach its security groups, or without these the addresses of its network interfaces.",
        default=None,
    )
    addresses: list[Annotated[str, _ADDRESS]] = described(
        f"a list of at most 20 {ADDRESSES}",
        "Addresses and networks",
        "All subnets of the nodes have a route to them.",
        default=[],
        max_length=20,
    )
    security_group: Annotated[str | None, _GROUP] = described(
        _GROUP, "A security group in the nodes' network, for all that has it", default=None
    )
    ports: list[Annotated[str, _PORT]] = described(
        f"a list of at most 20 entries, each {PORTS}", "TCP ports", min_length=1, max_length=20
    )
    roles: list[Annotated[str, ROLE]] = described(
        "a list of roles", "Roles whose nodes can reach it", min_length=1, max_length=10
    )

    def build(self, name: str) -> Target:
        return Target(
            name,
            tuple(self.ports),
            tuple(self.roles),
            self.load_balancer,
            tuple(self.addresses),
            self.security_group,
        )


TARGETS = described(
    f"a mapping of at most {MOST_TARGETS} names",
    "What nodes can reach besides S3 and each other, by name",
    "The setting `troop:allowed_targets` must allow each one.",
    default={},
    max_length=MOST_TARGETS,
)
PARAMETERS = described(
    "a mapping of names to values",
    "Parameters of the scripts",
    f"A value is {PARAMETER.allowed}.",
    default={},
    max_length=200,
)
ARTIFACTS = described("a list of at most 20", "Files that are too large for the folder", default=[], max_length=20)
BUCKETS = described(
    "a list of at most 20 names",
    "S3 buckets in the deployment's region that nodes may read",
    "The setting `troop:allowed_buckets` must list each one.",
    default=[],
    max_length=20,
)
"""Keys that benchmarks and standing fleets share."""


class TrafficIn(Part):
    """Traffic between availability zones, and requests to S3. A report estimates the traffic from the nodes' network
    bytes. Enter what you know, or take it from a bill.
    """

    cross_zone_gb: Annotated[Decimal | None, money_keys.GIGABYTES] = described(
        money_keys.GIGABYTES,
        "GB that one cell sends between zones",
        "0 for none. The estimate warns if a role has several zones and the file does not state it.",
        default=None,
    )
    s3_gets: Annotated[Decimal, money_keys.REQUESTS] = described(
        money_keys.REQUESTS, "GET requests to S3 that the scripts of one cell send", default=0
    )
    s3_puts: Annotated[Decimal, money_keys.REQUESTS] = described(
        money_keys.REQUESTS, "PUT, POST, COPY and LIST requests to S3 that the scripts of one cell send", default=0
    )


class BenchmarkIn(Part):
    """A benchmark: fleets of nodes, the phases they run together, and the parameters of their scripts."""

    elsewhere: ClassVar[Mapping[str, str]] = {
        "queue": "left out: only standing fleets have a queue (`troop fleet`); the phases of a benchmark are its work"
    }

    name: Annotated[str, BENCHMARK] = described(BENCHMARK, "Name of the benchmark")
    description: Annotated[str, _DESCRIPTION] = described(_DESCRIPTION, "What it measures, for readers", default="")
    expires_after: Annotated[int, _EXPIRES] = described(
        _EXPIRES,
        "Time after which Troop removes what is left of a run",
        "At least the time that one attempt at each cell may take, with `parallel` cells at a time. For a cell, that "
        "is the longest `boot_timeout`, the `timeout` of each phase and point, a minute for each of these, and 5 "
        "minutes. A cell may take 24h.",
    )
    fleets: dict[Annotated[str, ROLE], FleetIn] = described(
        f"a mapping of at most {MOST_FLEETS} roles to fleets",
        "Fleets by role",
        f"A role is {ROLE.allowed}.",
        min_length=1,
        max_length=MOST_FLEETS,
    )
    phases: list[PhaseIn] = described(
        f"a list of at most {MOST_PHASES} phases",
        "Phases in the order of their execution",
        min_length=1,
        max_length=MOST_PHASES,
    )
    attempts: Annotated[int, _ATTEMPTS] = described(
        _ATTEMPTS,
        "Most attempts at a cell that is INVALID, such as after the loss of a node",
        "The last of several is on demand.",
        default=3,
    )
    parameters: dict[Annotated[str, KEY], Annotated[Any, PARAMETER]] = PARAMETERS
    allowed: dict[Annotated[str, KEY], Annotated[Any, ALLOWED]] = described(
        f"a mapping of their names to {ALLOWED.allowed}",
        "Values that parameters may have",
        "Of a parameter that is a list, each entry must be allowed.",
        default={},
        max_length=50,
    )
    artifacts: list[ArtifactIn] = ARTIFACTS
    buckets: list[Annotated[str, BUCKET]] = BUCKETS
    targets: dict[Annotated[str, TARGET], TargetIn] = TARGETS
    own_data: Annotated[bool, BOOLEAN] = described(
        BOOLEAN,
        "Whether scripts create objects to measure with",
        "The setting `troop:own_data` must allow it.",
        default=False,
    )
    budget: Annotated[Decimal | None, money_keys.BUDGET] = described(
        money_keys.BUDGET,
        "Budget in USD: Troop refuses a run that it expects to cost more",
        "While a run goes on, it does not launch a cell or attempt that exceeds the rest, and that cell fails. The "
        "setting `troop:max_run_cost` works in the same way, and no file can raise it.",
        default=None,
    )
    billing: Annotated[str, money_keys.BILLING] = described(
        money_keys.BILLING,
        "How a node's time is billed",
        "With `hourly`, each node by its own started hours, as in older studies.",
        default=money_keys.DEFAULT_BILLING,
    )
    prices: dict[Annotated[str, money_keys.PRICED], Annotated[Price, money_keys.PRICE]] = described(
        f"a mapping of instance types to {money_keys.PRICE.allowed}; and of {', '.join(STORAGE)} (a GiB-month), "
        "cross_zone_gb (a GB) and initialization (a GiB of a snapshot at 100 MiB/s) to a number",
        "Your own prices, such as contract prices",
        money_keys.USE,
        default={},
        max_length=50,
    )
    accept_unknown_prices: Annotated[bool, BOOLEAN] = described(
        BOOLEAN,
        "Whether a run may begin without the price of some of its nodes",
        "Only in a deployment whose `troop:max_run_cost` is `none`.",
        default=False,
    )
    traffic: TrafficIn = described(
        "a mapping", "Traffic between zones, and requests to S3, as you state them", default=TrafficIn()
    )
    sizes: dict[Annotated[str, SIZE], dict[str, Any]] = described(
        "a mapping of at most 20 names to changes, which map keys such as fleets.drivers.count to values",
        "Named changes, for --size",
        "In a key, names identify phases and artifacts (`phases.measure.timeout`), and positions "
        "volumes (`fleets.servers.volumes.0.size_gib`).",
        default={},
        max_length=20,
    )
    scale: dict[Annotated[str, SIZE], dict[str, Any]] = described(
        "a mapping of at most 50 names to changes, as in sizes",
        "Scale steps, in order: each makes cells",
        default={},
        max_length=50,
    )
    matrix: dict[Annotated[str, _CHANGED], Annotated[list[Any], _VALUES]] = described(
        "a mapping of at most 10 keys such as parameters.threads to lists of values",
        "Combinations, each of which makes cells in each scale step",
        "The last key varies fastest.",
        default={},
        max_length=10,
    )
    repetitions: Annotated[int, _REPETITIONS] = described(
        _REPETITIONS, "Number of runs of each combination, each on new nodes", default=1
    )
    parallel: Annotated[int, _PARALLEL] = described(_PARALLEL, "Number of cells that run at the same time", default=1)
    baseline: dict[Annotated[str, _CHANGED], Annotated[Any, VALUE]] = described(
        f"a mapping of at most {MOST_BASELINE} keys such as parameters.version to values",
        "What to compare the file with, in the same run",
        f"A value is {VALUE.allowed}. If all keys are parameters, both are measured on the same nodes, one after the "
        "other. Otherwise each has cells of its own.",
        default={},
        max_length=MOST_BASELINE,
    )
    version: Annotated[str, _VERSION] = described(
        _VERSION, "Version of what it measures, such as a commit", "Troop shows it, and does not use it.", default=""
    )

    def _settings(self, phases: Iterable[Phase], searched: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yields the parameters of the cell and of its points; a search may reach each of the ``searched`` values."""
        yield self.parameters
        for phase in phases:
            yield from ({**self.parameters, **point.parameters} for point in phase.points)
            if phase.search and (name := phase.search.parameter) in searched:
                yield {**self.parameters, name: searched[name]}

    def build(self, size: str | None = None, files: tuple[str, ...] = ()) -> Benchmark:
        phases = tuple(phase.build(self.parameters, self.baseline) for phase in self.phases)
        return Benchmark(
            name=self.name,
            description=self.description,
            expires_after=self.expires_after,
            fleets=tuple(fleet.build(role) for role, fleet in self.fleets.items()),
            phases=phases,
            parameters=dict(self.parameters),
            artifacts=tuple(one.build() for one in self.artifacts if one.is_needed(self._settings(phases, one.when))),
            buckets=tuple(self.buckets),
            own_data=self.own_data,
            size=size,
            files=tuple(sorted(files)),
            attempts=self.attempts,
            money=money_keys.build_money(
                self.budget,
                self.billing,
                self.prices,
                self.accept_unknown_prices,
                self.traffic.cross_zone_gb,
                {S3_GETS: self.traffic.s3_gets, S3_PUTS: self.traffic.s3_puts},
            ),
            targets=tuple(target.build(name) for name, target in self.targets.items()),
            baseline=dict(self.baseline),
            version=self.version,
        )
