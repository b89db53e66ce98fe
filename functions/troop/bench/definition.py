"""What a benchmark asks for, as it was accepted: nothing left to be understood, every default filled in.

People write a YAML file; :mod:`troop.bench_file` checks it and makes this of it. It is stored once for each run, under
:func:`troop.bench.names.definition_key`, and never changes. Of it come the run's cells (:mod:`troop.bench.plan`), each
with a definition of its own, which the workflow and the nodes' agent read. The stored document has the keys that the
file has, in the same places, and ``format``, ``size`` and ``files`` besides.

All durations are whole seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypeVar

from troop.bench.money import Money, money_document, money_of
from troop.errors import TroopError

FORMAT = "troop.benchmark/1"

ON_DEMAND, SPOT = "on-demand", "spot"
"""How a fleet's nodes are bought."""

Scalar = str | int | float | bool
Parameter = Scalar | tuple[Scalar, ...]

AROUND = 5 * 60
"""Seconds that launching, collecting and taking down may take, besides all time-outs."""

BETWEEN = 60
"""Seconds until the workflow, which looks now and then, has seen that a phase is over."""

_T = TypeVar("_T")


class DefinitionError(TroopError):
    """A stored document that is no benchmark's, or one of a later version's."""


@dataclass(frozen=True)
class Volume:
    """A volume that each node of a fleet gets, empty, besides the one it boots from.

    Attributes:
        device: as EC2 names it, such as ``/dev/sdf``.
        type: ``gp3`` or ``io2``.
        iops: provisioned; never None for ``io2``, None for what ``gp3`` has by itself.
        throughput_mib: MiB a second, of ``gp3`` alone; None for what it has by itself.
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
        role: what the fleet is called.
        zones: over how many availability zones it is spread; at most ``count``.
        boot_timeout: seconds until all of its nodes must have registered.
        root_volume_gib: of the volume a node boots from.
        purchase: :data:`ON_DEMAND` or :data:`SPOT`.
        spot_timeout: seconds after which a backup group launches on demand what spot has not given; means nothing on
            demand.
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

    @property
    def is_spot(self) -> bool:
        return self.purchase == SPOT


@dataclass(frozen=True)
class Phase:
    """One script, run at the same time on all nodes of some roles.

    Attributes:
        roles: whose nodes do it; the others wait.
        script: the name of one of the benchmark's files.
        timeout: seconds the script may take; more than ``warm_up + measured``.
        start_together: all nodes start at one instant.
        warm_up: seconds at its beginning that are not counted.
        measured: seconds after those that are; 0 for a phase that is not measured.
        expected: seconds that the script is expected to take, for the estimate of what a run costs; None when the file
            does not say.
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
        """Whether its summaries are results, and a node that is lost makes them worthless."""
        return self.measured > 0


@dataclass(frozen=True)
class Artifact:
    """A file too large to stand beside the benchmark's; staged under :func:`troop.bench.names.artifact_key`.

    Attributes:
        name: of the file on the nodes.
        sha256: of its content, 64 lower-case hexadecimal digits.
        source: where the command got it, for the record; nothing reads it.
    """

    name: str
    sha256: str
    source: str


@dataclass(frozen=True)
class Benchmark:
    """All that a run does.

    Attributes:
        expires_after: seconds after which whatever exists of a run is removed.
        fleets: by role, in the file's order; at least one.
        phases: in the order in which they are done; at least one, but of a standing fleet.
        parameters: for the scripts.
        buckets: that nodes may read, besides the run's own files.
        size: which of the file's sizes was chosen; None for the file as it stands.
        files: names of what stands beside the benchmark's file and is copied to every node, sorted.
        attempts: how often a cell is run at most, when a lost node makes it INVALID; the last of several on demand.
        standing: a fleet that stays, which measures nothing: its nodes do the phases by themselves, without a barrier.
        money: what it may cost, and what is known of prices.
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
        """Of one cell, all fleets together."""
        return sum(fleet.count for fleet in self.fleets)

    @property
    def longest(self) -> int:
        """Seconds after which a cell is over at the latest, but for launching and taking down: all time-outs."""
        return self.boot_timeout + sum(phase.timeout for phase in self.phases)

    @property
    def needed(self) -> int:
        """Seconds that one attempt at a cell may take in all."""
        return self.longest + AROUND + BETWEEN * len(self.phases)

    @property
    def boot_timeout(self) -> int:
        """Seconds until the nodes of all fleets must have registered: fleets boot side by side."""
        return max(fleet.boot_timeout for fleet in self.fleets)

    def fleet(self, role: str) -> Fleet:
        """Raises KeyError when there is none of that role."""
        return next((fleet for fleet in self.fleets if fleet.role == role), None) or _missing(role)

    def phase(self, name: str) -> Phase:
        """Raises KeyError when there is none of that name."""
        return next((phase for phase in self.phases if phase.name == name), None) or _missing(name)


def _missing(name: str) -> Any:
    raise KeyError(name)


def to_document(benchmark: Benchmark) -> dict[str, Any]:
    """As JSON-like values; the reverse of :func:`from_document`. None is left out, but for ``size``; and ``standing``,
    which no benchmark's file has, where it is false.
    """
    plain = _but(asdict(benchmark), "money")
    document: dict[str, Any] = {"format": FORMAT, **_lists(plain), **money_document(benchmark.money)}
    if not benchmark.standing:
        del document["standing"]
    document["fleets"] = {fleet["role"]: _but(fleet, "role") for fleet in document["fleets"]}
    for fleet in document["fleets"].values():
        if fleet["purchase"] == ON_DEMAND:
            del fleet["spot_timeout"]  # which the file does not take then
        fleet["volumes"] = [_present(volume) for volume in fleet["volumes"]]
    document["phases"] = [_present(phase) for phase in document["phases"]]
    return document


def from_document(document: Mapping[str, Any]) -> Benchmark:
    """The benchmark of a stored document. Keys that it does not know are passed over: a later version's additions.

    Raises:
        DefinitionError: it is no such document.
    """
    if (format := document.get("format")) != FORMAT:
        raise DefinitionError(
            f"the benchmark's stored definition has the format {format!r}, not {FORMAT!r}: run it again"
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
        raise DefinitionError(f"the stored benchmark is damaged ({error!r}): run it again") from None


def _fleet(role: str, fleet: Mapping[str, Any]) -> Fleet:
    volumes = tuple(_build(Volume, volume) for volume in fleet["volumes"])
    return _build(Fleet, {**fleet, "role": role, "volumes": volumes})


def _build(kind: type[_T], values: Mapping[str, Any]) -> _T:
    known = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    return kind(**{key: value for key, value in values.items() if key in known})


def _tuples(value: Any) -> Any:
    return tuple(value) if isinstance(value, (list, tuple)) else value


def _lists(value: Any) -> Any:
    """As JSON has it: what is equal to the document that comes back from its text."""
    if isinstance(value, Mapping):
        return {key: _lists(inner) for key, inner in value.items()}
    return [_lists(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def _present(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _but(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {k: v for k, v in values.items() if k != key}
