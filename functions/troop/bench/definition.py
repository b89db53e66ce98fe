"""Defines a benchmark as accepted, with all defaults filled in.

:mod:`troop.bench_file` builds it from the YAML file. Each run stores it once, under
:func:`troop.bench.names.definition_key`, and never changes it. The run's cells are made from it
(:mod:`troop.bench.plan`); the workflow and the nodes' agent read the definition of their cell. The stored document has
the keys of the file, in the same places, and also ``format``, ``size`` and ``files``.

All durations are whole seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from decimal import Decimal
from typing import Any, TypeVar

from troop.bench.money import ZERO, Money, exact, money_document, money_of, number
from troop.errors import TroopError

FORMAT = "troop.benchmark/1"

ON_DEMAND, SPOT = "on-demand", "spot"
"""Purchase options of a fleet's nodes."""

LOAD_ROLES = frozenset({"driver", "client", "generator", "loader"})
"""Words in the names of roles that generate load unless the file states otherwise; also with an s."""

Scalar = str | int | float | bool
Parameter = Scalar | tuple[Scalar, ...]

AROUND = 5 * 60
"""Seconds allowed for launch, collect and teardown, in addition to all time-outs."""

BETWEEN = 60
"""Seconds until the workflow, which polls, notices the end of a phase."""

_T = TypeVar("_T")


class DefinitionError(TroopError):
    """A stored document that is not a benchmark, or comes from a later version."""


@dataclass(frozen=True)
class Volume:
    """An additional volume of each node of a fleet, empty at first.

    Attributes:
        device: EC2's device name, such as ``/dev/sdf``.
        type: one of :data:`troop.bench.money.STORAGE`.
        iops: provisioned; None for the default of ``gp3`` and for types without provisioned IOPS, never None for
            ``io1`` and ``io2``.
        throughput_mib: MiB a second, for ``gp3`` only; None for the default.
    """

    device: str
    size_gib: int
    type: str = "gp3"
    iops: int | None = None
    throughput_mib: int | None = None


@dataclass(frozen=True)
class Fleet:
    """The nodes of one role.

    Attributes:
        role: the fleet's name.
        zones: number of availability zones it is spread over; at most ``count``.
        boot_timeout: seconds within which all of its nodes must register.
        root_volume_gib: size of a node's root volume.
        purchase: :data:`ON_DEMAND` or :data:`SPOT`.
        spot_timeout: seconds after which a backup group launches missing spot nodes on demand; unused for on-demand.
        load: whether it only generates load; None if the file does not state it, see :func:`is_load`.
        license_fee: price of the software on one node for an hour.
    """

    role: str
    count: int
    instance_type: str
    zones: int
    boot_timeout: int
    root_volume_gib: int
    volumes: tuple[Volume, ...] = ()
    purchase: str = ON_DEMAND
    spot_timeout: int = 300
    load: bool | None = None
    license_fee: Decimal = ZERO

    @property
    def is_spot(self) -> bool:
        return self.purchase == SPOT


def is_load(role: str, load: bool | None) -> bool:
    """Checks whether the nodes of a role only generate load: as the file states, otherwise by the role's name."""
    if load is not None:
        return load
    return any(word.removesuffix("s") in LOAD_ROLES for word in role.split("-"))


@dataclass(frozen=True)
class Phase:
    """One script, run at the same time on all nodes of some roles.

    Attributes:
        roles: roles whose nodes run the script; the others wait.
        script: the name of one of the benchmark's files.
        timeout: seconds the script may take; more than ``warm_up + measured``.
        start_together: whether all nodes start at the same instant.
        warm_up: seconds at its beginning that are not counted.
        measured: counted seconds after the warm-up; 0 for a phase that measures nothing.
        expected: expected seconds of the script, for the cost estimate; None if the file does not state them.
    """

    name: str
    roles: tuple[str, ...]
    script: str
    timeout: int
    start_together: bool = False
    warm_up: int = 0
    measured: int = 0
    expected: int | None = None

    @property
    def is_measured(self) -> bool:
        """Whether its summaries are results, which a lost node invalidates."""
        return self.measured > 0


@dataclass(frozen=True)
class Artifact:
    """A file too large for the benchmark's folder; staged under :func:`troop.bench.names.artifact_key`.

    Attributes:
        name: file name on the nodes.
        sha256: of its content, 64 lower-case hexadecimal digits.
        source: where the command got it, for the record; nothing reads it.
    """

    name: str
    sha256: str
    source: str


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
        attempts: maximum attempts at a cell when a lost node makes it INVALID; the last of several is on demand.
        standing: whether it is a standing fleet, which measures nothing and whose nodes run phases without a barrier.
        money: budget, billing and prices.
    """

    name: str
    description: str
    expires_after: int
    fleets: tuple[Fleet, ...]
    phases: tuple[Phase, ...]
    parameters: Mapping[str, Parameter]
    artifacts: tuple[Artifact, ...] = ()
    buckets: tuple[str, ...] = ()
    size: str | None = None
    files: tuple[str, ...] = ()
    attempts: int = 1
    standing: bool = False
    money: Money = field(default_factory=Money)

    @property
    def nodes(self) -> int:
        """Number of nodes of one cell, in all fleets."""
        return sum(fleet.count for fleet in self.fleets)

    @property
    def longest(self) -> int:
        """Seconds of all time-outs together: the longest a cell takes without launch and teardown."""
        return self.boot_timeout + sum(phase.timeout for phase in self.phases)

    @property
    def needed(self) -> int:
        """Maximum seconds of one attempt at a cell, with launch and teardown."""
        return self.longest + AROUND + BETWEEN * len(self.phases)

    @property
    def boot_timeout(self) -> int:
        """Seconds within which the nodes of all fleets must register: fleets boot in parallel."""
        return max(fleet.boot_timeout for fleet in self.fleets)

    def fleet(self, role: str) -> Fleet:
        """Returns the fleet of a role; raises KeyError if there is none."""
        return next((fleet for fleet in self.fleets if fleet.role == role), None) or _missing(role)

    def phase(self, name: str) -> Phase:
        """Returns the phase of a name; raises KeyError if there is none."""
        return next((phase for phase in self.phases if phase.name == name), None) or _missing(name)


def _missing(name: str) -> Any:
    raise KeyError(name)


def to_document(benchmark: Benchmark) -> dict[str, Any]:
    """Converts to JSON-like values; the reverse of :func:`from_document`. Omits None, except for ``size``, and a false
    ``standing``, which is not a key of benchmark files.
    """
    plain = _but(asdict(benchmark), "money")
    document: dict[str, Any] = {"format": FORMAT, **_lists(plain), **money_document(benchmark.money)}
    if not benchmark.standing:
        del document["standing"]
    document["fleets"] = {fleet["role"]: _but(fleet, "role") for fleet in document["fleets"]}
    for fleet in document["fleets"].values():
        if fleet["purchase"] == ON_DEMAND:
            del fleet["spot_timeout"]  # the file refuses it for on-demand
        fleet["volumes"] = [_present(volume) for volume in fleet["volumes"]]
        if fleet["load"] is None:
            del fleet["load"]
        fleet["license_fee"] = number(fleet["license_fee"])
        if not fleet["license_fee"]:
            del fleet["license_fee"]
    document["phases"] = [_present(phase) for phase in document["phases"]]
    return document


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
        known = {
            "fleets": tuple(_fleet(role, fleet) for role, fleet in document["fleets"].items()),
            "phases": tuple(_build(Phase, phase | {"roles": tuple(phase["roles"])}) for phase in document["phases"]),
            "parameters": {key: _tuples(value) for key, value in document["parameters"].items()},
            "artifacts": tuple(_build(Artifact, artifact) for artifact in document["artifacts"]),
            "buckets": tuple(document["buckets"]),
            "files": tuple(document["files"]),
            "money": money_of(document),
        }
        return _build(Benchmark, {**document, **known})
    except (KeyError, TypeError, AttributeError, ArithmeticError) as error:
        raise DefinitionError(
            f"the benchmark's stored definition is damaged ({error!r}): run the benchmark again"
        ) from None


def _fleet(role: str, fleet: Mapping[str, Any]) -> Fleet:
    volumes = tuple(_build(Volume, volume) for volume in fleet["volumes"])
    fee = exact(fleet.get("license_fee")) or ZERO
    return _build(Fleet, {**fleet, "role": role, "volumes": volumes, "license_fee": fee})


def _build(kind: type[_T], values: Mapping[str, Any]) -> _T:
    known = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    return kind(**{key: value for key, value in values.items() if key in known})


def _tuples(value: Any) -> Any:
    return tuple(value) if isinstance(value, (list, tuple)) else value


def _lists(value: Any) -> Any:
    """Replaces tuples by lists, so that the document equals the one read back from JSON."""
    if isinstance(value, Mapping):
        return {key: _lists(inner) for key, inner in value.items()}
    return [_lists(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def _present(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _but(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {k: v for k, v in values.items() if k != key}
