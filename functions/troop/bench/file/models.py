"""Models a benchmark's file: the values, default and meaning of each key.

Plain keys of volumes, fleets and phases are declared with their dataclass (:mod:`troop.bench.definition.keys`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Annotated, Any

from pydantic import Field

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
    Checked,
    amount,
    duration,
    matching,
    seconds,
    text,
    whole,
)
from troop.bench.definition.money import S3_GETS, S3_PUTS, STORAGE, Price
from troop.bench.file import money_keys
from troop.bench.file.allowed_values import ALLOWED
from troop.bench.file.fields import PARAMETER, Part, described, model_of, plain_values, values
from troop.bench.file.phase_limits import MOST_LIMITS, LimitIn
from troop.bench.file.points import KEY, POINTS
from troop.bench.file.searches import SearchIn
from troop.shared.targets import ADDRESSES, LOAD_BALANCER, PORTS, SECURITY_GROUP, parse_addresses, parse_ports
from troop.shared.values import BUCKET_NAME, ZONE_NAME

LONGEST_RUN = "168h"


def _name(longest: int) -> Checked:
    """Returns the check of a name that becomes part of names on AWS."""
    allowed = f"a lower-case letter, then lower-case letters, digits and hyphens, at most {longest} in all"
    return matching(rf"[a-z][a-z0-9-]{{0,{longest - 1}}}", allowed)


ROLE, PHASE, BENCHMARK, SIZE = _name(21), _name(41), _name(41), _name(21)
FILE = matching(
    r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}",
    "a file name of at most 128 letters, digits, dots, hyphens and underscores, not starting with a dot or hyphen",
)
"""The name of a file in the benchmark's folder; no folders."""
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
TARGET = _name(41)


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


class VolumeIn(model_of(Volume)):  # type: ignore[misc]
    """An additional volume of each node: empty, or with a snapshot's data; encrypted, and deleted with its node."""

    initialize: Annotated[int | str, INITIALIZE] = described(
        INITIALIZE,
        "How the snapshot's data gets there before the first access: not at all, nodes read the whole volume before "
        "they are ready, or EBS loads it at this rate",
        default=NOT_INITIALIZED,
    )

    def build(self) -> Volume:
        initialize = None if self.initialize == NOT_INITIALIZED else self.initialize
        return Volume(**plain_values(Volume, self), initialize=initialize)


class FleetIn(model_of(Fleet)):  # type: ignore[misc]
    """The nodes of one role: instances of one type, in subnets without a route to the internet."""

    fallback_types: list[Annotated[str, INSTANCE_TYPE]] = Field(
        [],
        max_length=4,
        description="Instance types of further attempts if EC2 lacks capacity, in order: a list of at most 4 types",
    )
    zone_names: list[Annotated[str, ZONE]] = Field(
        [],
        max_length=6,
        description="Availability zones to use, in order, later ones if EC2 lacks capacity: a list of at most 6 names; "
        "by default any",
    )
    spot_timeout: Annotated[int | None, _SPOT_TIMEOUT] = described(
        _SPOT_TIMEOUT,
        "Time after which Troop launches missing spot nodes on demand; no effect on demand, 5m by default",
        default=None,
    )
    max_price: Annotated[Decimal | None, _MAX_PRICE] = described(
        _MAX_PRICE,
        "Most that a spot node may cost, in USD an hour; by default its price on demand, where it has no effect",
        default=None,
    )
    volumes: list[VolumeIn] = Field(
        [], max_length=11, description="Additional volumes of each node: a list of at most 11"
    )
    license_fee: Annotated[Decimal, money_keys.LICENSE] = described(
        money_keys.LICENSE, "USD an hour for the software on each node", default=0
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
    roles: list[Annotated[str, ROLE]] = Field(
        min_length=1, max_length=10, description="Roles whose nodes run the script: a list of roles"
    )

    def build(self) -> Between:
        return Between(**plain_values(Between, self), script=self.script, roles=tuple(self.roles))


class PhaseIn(model_of(Phase)):  # type: ignore[misc]
    """One script, run once on each node of some roles. It starts when all nodes have finished the previous phase."""

    name: Annotated[str, PHASE] = described(PHASE, "Name of the phase")
    roles: list[Annotated[str, ROLE]] = Field(
        min_length=1, max_length=10, description="Roles whose nodes run the script: a list of roles"
    )
    script: Annotated[str, FILE] = described(
        FILE, "A file in this folder. python3 runs *.py; other files need a #! line"
    )
    least_warm_up: dict[Annotated[str, KEY], dict[str, Annotated[int, _MEASURED]]] = Field(
        {},
        max_length=10,
        description="Shortest warm_up with a tool that starts slowly: a mapping of parameters to mappings of their "
        "values to durations",
    )
    points: Annotated[tuple[Point, ...], POINTS] = described(
        POINTS, "Settings with which a measured phase runs one after another on the same nodes", default=()
    )
    between: BetweenIn | None = Field(
        None, description="A script that runs before each point but the first: a mapping with script, roles and timeout"
    )
    nodes: dict[Annotated[str, ROLE], Annotated[str, KEY]] = Field(
        {},
        max_length=10,
        description="Number of nodes that take part: a mapping of roles to parameters with that number",
    )
    rate: dict[Annotated[str, ROLE], Annotated[str, KEY]] = Field(
        {},
        max_length=10,
        description="Rate that the script of a measured phase sets, in operations a second of each node: a mapping of "
        "roles to parameters with that rate; 0 for none",
    )
    limits: list[LimitIn] = Field(
        [],
        max_length=MOST_LIMITS,
        description=f"What its results, or those of each point, must hold to pass: a list of at most {MOST_LIMITS}",
    )
    search: SearchIn | None = Field(
        None,
        description="Searches the largest value of a parameter that holds the limits, in place of points: a mapping "
        "with parameter, and either from and to or values",
    )

    @property
    def _has_several_points(self) -> bool:
        return self.search is not None or max(len(self.points), 1) * self.repeat > 1

    def build(self) -> Phase:
        return Phase(
            **plain_values(Phase, self),
            name=self.name,
            roles=tuple(self.roles),
            script=self.script,
            points=self.points,
            between=self.between.build() if self.between and self._has_several_points else None,
            nodes=dict(self.nodes),
            rate=dict(self.rate),
            limits=tuple(limit.build() for limit in self.limits),
            search=self.search.build() if self.search else None,
        )


class ArtifactIn(Part):
    """A file that every node gets, staged to the deployment's bucket once for all runs that use it."""

    name: Annotated[str, FILE] = described(FILE, "File name on the nodes")
    source: Annotated[str, SOURCE] = described(SOURCE, "Source from which the command reads it, at most 5 GB")
    sha256: Annotated[str, SHA256] = described(SHA256, "SHA-256 of the content")
    when: dict[Annotated[str, KEY], Annotated[Any, PARAMETER]] = Field(
        {},
        max_length=10,
        description="Values of parameters with which nodes need it, otherwise they never get it: a mapping of names "
        "to values",
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
        _BALANCER, "An internal load balancer in the nodes' network", default=None
    )
    addresses: list[Annotated[str, _ADDRESS]] = Field(
        [], max_length=20, description=f"A list of at most 20 entries, each {ADDRESSES}"
    )
    security_group: Annotated[str | None, _GROUP] = described(
        _GROUP, "A security group in the nodes' network, for all that has it", default=None
    )
    ports: list[Annotated[str, _PORT]] = Field(
        min_length=1, max_length=20, description=f"TCP ports: a list of at most 20 entries, each {PORTS}"
    )
    roles: list[Annotated[str, ROLE]] = Field(
        min_length=1, max_length=10, description="Roles whose nodes can reach it: a list of roles"
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


TARGETS = f"What nodes can reach besides S3 and each other, by name: a mapping of at most {MOST_TARGETS} names"


class TrafficIn(Part):
    """Traffic between availability zones, and requests to S3. A report estimates the traffic from the nodes' network
    bytes. Enter what you know, or take it from a bill.
    """

    cross_zone_gb: Annotated[Decimal | None, money_keys.GIGABYTES] = described(
        money_keys.GIGABYTES, "GB that one cell sends between zones; 0 for none", default=None
    )
    s3_gets: Annotated[Decimal, money_keys.REQUESTS] = described(
        money_keys.REQUESTS, "GET requests to S3 that the scripts of one cell send", default=0
    )
    s3_puts: Annotated[Decimal, money_keys.REQUESTS] = described(
        money_keys.REQUESTS, "PUT, POST, COPY and LIST requests to S3 that the scripts of one cell send", default=0
    )


class BenchmarkIn(Part):
    """A benchmark: fleets of nodes, the phases they run together, and the parameters of their scripts."""

    name: Annotated[str, BENCHMARK] = described(BENCHMARK, "Name of the benchmark")
    description: Annotated[str, _DESCRIPTION] = described(_DESCRIPTION, "What it measures, for readers", default="")
    expires_after: Annotated[int, _EXPIRES] = described(
        _EXPIRES, "Time after which Troop removes what is left of a run"
    )
    fleets: dict[Annotated[str, ROLE], FleetIn] = Field(
        min_length=1,
        max_length=MOST_FLEETS,
        description=f"Fleets by role: a mapping of at most {MOST_FLEETS} roles to fleets",
    )
    phases: list[PhaseIn] = Field(
        min_length=1,
        max_length=MOST_PHASES,
        description=f"Phases in the order of their execution: a list of at most {MOST_PHASES} phases",
    )
    attempts: Annotated[int, _ATTEMPTS] = described(
        _ATTEMPTS, "Maximum number of attempts at a cell that is INVALID, such as after the loss of a node", default=3
    )
    parameters: dict[Annotated[str, KEY], Annotated[Any, PARAMETER]] = Field(
        {}, max_length=200, description="Parameters of the scripts: a mapping of names to values"
    )
    allowed: dict[Annotated[str, KEY], Annotated[Any, ALLOWED]] = Field(
        {},
        max_length=50,
        description=f"Values that parameters may have: a mapping of their names to {ALLOWED.allowed}",
    )
    artifacts: list[ArtifactIn] = Field([], max_length=20, description="Large files: a list of at most 20")
    buckets: list[Annotated[str, BUCKET]] = Field(
        [],
        max_length=20,
        description="S3 buckets that nodes may read, if the deployment also allows it: a list of names",
    )
    targets: dict[Annotated[str, TARGET], TargetIn] = Field({}, max_length=MOST_TARGETS, description=TARGETS)
    own_data: Annotated[bool, BOOLEAN] = described(
        BOOLEAN, "Whether scripts create objects to measure with, if the deployment also allows it", default=False
    )
    budget: Annotated[Decimal | None, money_keys.BUDGET] = described(
        money_keys.BUDGET, "Budget in USD; Troop refuses a run whose expected cost is higher", default=None
    )
    billing: Annotated[str, money_keys.BILLING] = described(
        money_keys.BILLING,
        "How a node's time is billed; hourly as in older studies",
        default=money_keys.DEFAULT_BILLING,
    )
    prices: dict[Annotated[str, money_keys.PRICED], Annotated[Price, money_keys.PRICE]] = Field(
        {},
        max_length=50,
        description="Your prices, for figures beside AWS's and where AWS lists none: a mapping of instance types to "
        f"{money_keys.PRICE.allowed}; and of {', '.join(STORAGE)} (a GiB-month) and cross_zone_gb to a number",
    )
    accept_unknown_prices: Annotated[bool, BOOLEAN] = described(
        BOOLEAN, "Start a run even if prices of its nodes are unknown", default=False
    )
    traffic: TrafficIn = Field(TrafficIn(), description="Traffic between zones, and requests to S3: a mapping")
    sizes: dict[Annotated[str, SIZE], dict[str, Any]] = Field(
        {},
        max_length=20,
        description="Sizes: names mapped to changes, which map keys such as fleets.drivers.count to values",
    )
    scale: dict[Annotated[str, SIZE], dict[str, Any]] = Field(
        {}, max_length=50, description="Scale steps, in order: names mapped to changes, as in sizes"
    )
    matrix: dict[Annotated[str, _CHANGED], Annotated[list[Any], _VALUES]] = Field(
        {},
        max_length=10,
        description="Combinations, run in each scale step: a mapping of keys such as parameters.threads to lists of "
        "values; the last key varies fastest",
    )
    repetitions: Annotated[int, _REPETITIONS] = described(
        _REPETITIONS, "Number of repetitions of each combination", default=1
    )
    parallel: Annotated[int, _PARALLEL] = described(_PARALLEL, "Number of cells that run at the same time", default=1)

    def _settings(self, searched: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yields the parameters of the cell and of its points; a search may reach each of the ``searched`` values."""
        yield self.parameters
        for phase in self.phases:
            yield from ({**self.parameters, **point.parameters} for point in phase.points)
            if phase.search and (name := phase.search.parameter) in searched:
                yield {**self.parameters, name: searched[name]}

    def build(self, size: str | None = None, files: tuple[str, ...] = ()) -> Benchmark:
        return Benchmark(
            name=self.name,
            description=self.description,
            expires_after=self.expires_after,
            fleets=tuple(fleet.build(role) for role, fleet in self.fleets.items()),
            phases=tuple(phase.build() for phase in self.phases),
            parameters=dict(self.parameters),
            artifacts=tuple(one.build() for one in self.artifacts if one.is_needed(self._settings(one.when))),
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
        )
