"""Checks the relations between a file's values, each of which is valid alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from troop.bench.admission.snapshots import least_read_seconds
from troop.bench.definition import names
from troop.bench.definition.definition import AROUND, CLUSTER, MOST_POINTS, READ, SPOT, SPREAD, WARM_UP, Benchmark
from troop.bench.definition.keys import written
from troop.bench.definition.problems import Place, Problem
from troop.bench.file import allowed_values, living, money_keys, phase_limits, planned_faults, points, searches
from troop.bench.file.fleet_models import FleetFileIn, StandingIn
from troop.bench.file.models import (
    MOST_FLEETS,
    MOST_PHASES,
    NOT_INITIALIZED,
    BenchmarkIn,
    BetweenIn,
    FleetIn,
    PhaseIn,
    TargetIn,
    VolumeIn,
)
from troop.bench.file.structure import parse_structure
from troop.bench.fleets.choices import number_of
from troop.bench.measuring.execution_history import LONGEST_CELL, most_seconds, steps_of

OWN_STEPS = (names.LAUNCH, names.BOOT, names.COLLECT, names.TEARDOWN, names.OVER)
"""Steps of a cell besides its phases. Phases cannot have these names, to be distinguishable."""

BACKUP_BOOT = 4 * 60
"""Seconds in which the nodes that stand in for missing spot nodes must be ready: twice the usual time."""

MOST_SPREAD = 7
"""Running instances of a spread placement group in one zone."""

GP3_IOPS = (3000, 80_000)
GP3_IOPS_A_GIB = 500
GP3_DEFAULT_IOPS = 3000
GP3_IOPS_A_MIB = 4
IOPS_A_GIB, MOST_IOPS = {"io1": 50, "io2": 1000}, {"io1": 64_000, "io2": 256_000}
"""Limits of types whose IOPS must be provisioned."""
GIB = {"gp2": (1, 16_384), "io1": (4, 16_384), "io2": (4, 65_536), "st1": (125, 16_384), "sc1": (125, 16_384)}
"""Smallest and largest size of types for which the file's schema allows more."""


def problems(benchmark: BenchmarkIn, files: Collection[str] | None) -> list[Problem]:
    """Lists all contradictions between the values of a benchmark's file.

    Args:
        files: names of the files in the benchmark's folder; None if unknown.
    """
    return [
        *_fleets(benchmark),
        *_too_many_choices(benchmark),
        *_phases(benchmark, files),
        *_lists(benchmark),
        *allowed_values.problems(benchmark, files),
        *_expiry(benchmark),
        *money_keys.problems(benchmark.prices),
    ]


def fleet_file_problems(fleet: FleetFileIn, files: Collection[str] | None) -> list[Problem]:
    """Lists all contradictions between the values of a standing fleet's file."""
    return [
        *_fleets(fleet),
        *_setup(fleet, files),
        *living.file_problems(fleet, files),
        *_lists(fleet),
        *_standing_expiry(fleet),
        *money_keys.fleet_file_problems(fleet.prices),
    ]


def part_problems(document: Any, files: Collection[str] | None, fleet_model: type[FleetIn]) -> Iterator[Problem]:
    """Lists contradictions within the valid fleets and phases of a file that has problems elsewhere, to report all of
    them together. Relations between the parts are checked when all parts are valid. Looks at no more fleets and phases
    than a file may have.

    Args:
        fleet_model: the model of the file's fleets.
    """
    fleets = _mapping(_mapping(document).get("fleets"))
    for role, value in islice(fleets.items(), MOST_FLEETS):
        fleet, wrong = parse_structure(value, fleet_model)
        if fleet is not None and not wrong:
            yield from _fleet(("fleets", role), fleet)
    phases = None if issubclass(fleet_model, StandingIn) else _mapping(document).get("phases")
    roles = [str(role) for role in islice(fleets, MOST_FLEETS)]
    for n, value in enumerate(phases[:MOST_PHASES] if isinstance(phases, list) and roles else ()):
        phase, wrong = parse_structure(value, PhaseIn)
        if phase is not None and not wrong:
            yield from _phase(("phases", n), phase, roles, files)


def _mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _setup(fleet: FleetFileIn, files: Collection[str] | None) -> Iterator[Problem]:
    if fleet.setup is not None and files is not None and fleet.setup not in files:
        there = ", ".join(sorted(files)) or "none"
        yield Problem(("setup",), f"is {fleet.setup!r}", f"a file in the fleet's folder: {there}")


def _standing_expiry(fleet: FleetFileIn) -> Iterator[Problem]:
    definition = fleet.build()
    if fleet.expires_after < (least := definition.longest + AROUND):
        allowed = (
            f"at least {written(least)}: the longest boot_timeout, the time for setup, and {written(AROUND)} for "
            "launching"
        )
        yield Problem(("expires_after",), f"is {written(fleet.expires_after)}", allowed)


def _varied(file: BenchmarkIn) -> Iterator[str]:
    """Yields the parameters that points and searches set."""
    for phase in file.phases:
        yield from (name for point in phase.points for name in point.parameters)
        if phase.search:
            yield phase.search.parameter


def _lists(file: BenchmarkIn | FleetFileIn) -> Iterator[Problem]:
    yield from _once(((("artifacts", n, "name"), a.name) for n, a in enumerate(file.artifacts)), "another artifact")
    known = {*file.parameters, *(_varied(file) if isinstance(file, BenchmarkIn) else ())}
    for n, artifact in enumerate(file.artifacts):
        for name in artifact.when:
            if name not in known:
                allowed = f"one of {', '.join(sorted(known))}" if known else "left out: the file has no parameters"
                yield Problem(("artifacts", n, "when", name), "is no parameter", allowed)
    yield from _once(((("buckets", n), bucket) for n, bucket in enumerate(file.buckets)), "another entry")
    for name, target in file.targets.items():
        yield from _target(("targets", name), target, file.fleets)


def _target(place: Place, target: TargetIn, fleets: Collection[str]) -> Iterator[Problem]:
    kinds = [key for key in ("load_balancer", "addresses", "security_group") if getattr(target, key)]
    if len(kinds) != 1:
        one_of = "set with exactly one of load_balancer, addresses and security_group"
        yield Problem(place, f"has {' and '.join(kinds) if kinds else 'none of them'}", one_of)
    for key in ("addresses", "ports", "roles"):
        entries = [((*place, key, n), entry) for n, entry in enumerate(getattr(target, key))]
        yield from _once(entries, "another entry")
    for n, role in enumerate(target.roles):
        if role not in fleets:
            yield Problem((*place, "roles", n), f"is {role!r}", f"one of {', '.join(fleets)}, the file's fleets")


def _fleets(benchmark: BenchmarkIn | FleetFileIn) -> Iterator[Problem]:
    for role, fleet in benchmark.fleets.items():
        yield from _fleet(("fleets", role), fleet)


def _fleet(place: Place, fleet: FleetIn) -> Iterator[Problem]:
    key, most = _most_nodes(fleet)
    if fleet.zones > max(1, most):
        allowed = f"at most {most}, which is its {key}"
        yield Problem((*place, "zones"), f"is {fleet.zones}", allowed)
    yield from _placement(place, fleet)
    yield from _choices(place, fleet)
    yield from _standing(place, fleet) if isinstance(fleet, StandingIn) else _spot(place, fleet)
    devices = ((*place, "volumes", n, "device") for n in range(len(fleet.volumes)))
    yield from _once(zip(devices, (v.device for v in fleet.volumes), strict=True), "another volume")
    for n, volume in enumerate(fleet.volumes):
        yield from (_gp3 if volume.type == "gp3" else _other_type)((*place, "volumes", n), volume)
        yield from _initialization((*place, "volumes", n, "initialize"), volume, fleet.boot_timeout)


def _spot(place: Place, fleet: FleetIn) -> Iterator[Problem]:
    least = fleet.build("").spot_timeout + BACKUP_BOOT
    if fleet.purchase == SPOT and fleet.boot_timeout < least:
        default = "" if fleet.spot_timeout is not None else " by default"
        its = f"its spot_timeout, {written(least - BACKUP_BOOT)}{default}"
        allowed = f"at least {written(least)}: {its}, and {written(BACKUP_BOOT)} for nodes on demand to launch and boot"
        yield Problem((*place, "boot_timeout"), f"is {written(fleet.boot_timeout)}", allowed)


def _choices(place: Place, fleet: FleetIn) -> Iterator[Problem]:
    types = [((*place, "fallback_types", n), kind) for n, kind in enumerate(fleet.fallback_types)]
    yield from _once([((*place, "instance_type"), fleet.instance_type), *types], "another choice")
    yield from _once((((*place, "zone_names", n), zone) for n, zone in enumerate(fleet.zone_names)), "another entry")
    if 0 < len(fleet.zone_names) < fleet.zones:
        allowed = f"at least {fleet.zones} zones, as many as its zones"
        yield Problem((*place, "zone_names"), f"names {len(fleet.zone_names)}", allowed)


def _too_many_choices(benchmark: BenchmarkIn) -> Iterator[Problem]:
    for role, fleet in benchmark.fleets.items():
        if (number := number_of(fleet.build(role))) > benchmark.attempts:
            key = "fallback_types" if fleet.fallback_types else "zone_names"
            allowed = f"at most {benchmark.attempts} with instance_type and zone_names together: each takes an attempt"
            yield Problem(("fleets", role, key), f"makes {number} choices", allowed)


def _most_nodes(fleet: FleetIn) -> tuple[str, int]:
    """Returns the key that limits the nodes of a role, and its value."""
    scale = fleet.scale if isinstance(fleet, StandingIn) else None
    return ("scale.max", scale.most) if scale else ("count", fleet.count)


def _placement(place: Place, fleet: FleetIn) -> Iterator[Problem]:
    if fleet.placement == CLUSTER and fleet.zones > 1:
        yield Problem((*place, "zones"), f"is {fleet.zones}", "1 with placement: cluster, which is within one zone")
    key, most = _most_nodes(fleet)
    if fleet.placement == SPREAD and most > fleet.zones * MOST_SPREAD:
        allowed = f"with a {key} of at most {fleet.zones * MOST_SPREAD}: {MOST_SPREAD} in each of its zones"
        yield Problem((*place, "placement"), f"is {SPREAD!r} for {most} nodes", allowed)


def _standing(place: Place, fleet: StandingIn) -> Iterator[Problem]:
    if fleet.purchase == SPOT and fleet.spot_timeout is not None and fleet.backup is None:
        allowed = "left out without backup: on-demand, because nothing stands in for missing spot nodes"
        yield Problem((*place, "spot_timeout"), f"is {written(fleet.spot_timeout)}", allowed)
    if fleet.load is not None:
        yield Problem((*place, "load"), "is set", "left out: a standing fleet measures nothing")
    if fleet.fallback_types:
        yield Problem((*place, "fallback_types"), "is set", "left out: a standing fleet waits for capacity")
    if len(fleet.zone_names) > fleet.zones:
        allowed = f"{fleet.zones} zones: a standing fleet waits for capacity, and tries no others"
        yield Problem((*place, "zone_names"), f"names {len(fleet.zone_names)}", allowed)
    yield from living.problems(place, fleet)


def _gp3(place: Place, volume: VolumeIn) -> Iterator[Problem]:
    low, high = GP3_IOPS
    most = min(high, max(low, volume.size_gib * GP3_IOPS_A_GIB))
    if volume.iops is not None and not low <= volume.iops <= most:
        allowed = f"a whole number from {low} to {most}, for gp3 of {volume.size_gib} GiB"
        yield Problem((*place, "iops"), f"is {volume.iops}", allowed)
    iops = volume.iops or GP3_DEFAULT_IOPS
    if volume.throughput_mib is not None and volume.throughput_mib * GP3_IOPS_A_MIB > iops:
        allowed = f"at most {iops // GP3_IOPS_A_MIB}, a quarter of its {iops} IOPS"
        yield Problem((*place, "throughput_mib"), f"is {volume.throughput_mib}", allowed)


def _initialization(place: Place, volume: VolumeIn, boot_timeout: int) -> Iterator[Problem]:
    if volume.initialize == NOT_INITIALIZED:
        return
    if volume.snapshot is None:
        yield Problem(place, f"is {volume.initialize!r}", "left out without a snapshot: an empty volume needs none")
    elif (least := least_read_seconds(volume.build())) >= boot_timeout:
        allowed = (
            f"with a boot_timeout above {written(least)}: the nodes read {volume.size_gib} GiB before they are ready"
        )
        yield Problem(place, f"is {READ!r}", allowed)


def _other_type(place: Place, volume: VolumeIn) -> Iterator[Problem]:
    kind, size, (low, high) = volume.type, volume.size_gib, GIB[volume.type]
    if not low <= size <= high:
        bound = f"at least {low}" if size < low else f"at most {high}"
        yield Problem((*place, "size_gib"), f"is {size}", f"{bound}, for {kind}")
    if kind not in MOST_IOPS:
        if volume.iops is not None:
            yield Problem((*place, "iops"), f"is {volume.iops}", f"left out, for {kind}")
    else:
        most = min(size * IOPS_A_GIB[kind], MOST_IOPS[kind])
        if volume.iops is None:
            yield Problem((*place, "iops"), "is missing", f"set for {kind}: a whole number from 100 to {most}")
        elif volume.iops > most:
            yield Problem((*place, "iops"), f"is {volume.iops}", f"at most {most}, for {kind} of {size} GiB")
    if volume.throughput_mib is not None:
        yield Problem((*place, "throughput_mib"), f"is {volume.throughput_mib}", f"left out, for {kind}")


def _phases(benchmark: BenchmarkIn, files: Collection[str] | None) -> Iterator[Problem]:
    named = [(("phases", n, "name"), phase.name) for n, phase in enumerate(benchmark.phases)]
    yield from _once(named, "another phase")
    for place, name in named:
        if name in OWN_STEPS:
            yield Problem(place, f"is {name!r}", f"none of {', '.join(OWN_STEPS)}, which are steps of every run")
    if WARM_UP in benchmark.parameters:
        allowed = "another name: points use this one for their own warm-up"
        yield Problem(("parameters", WARM_UP), f"is named {WARM_UP}", allowed)
    counts = {role: fleet.count for role, fleet in benchmark.fleets.items()}
    for n, phase in enumerate(benchmark.phases):
        yield from _phase(("phases", n), phase, benchmark.fleets, files)
        yield from points.unknown(("phases", n), phase.points, benchmark.parameters)
        yield from points.equal(("phases", n), phase, benchmark.parameters)
        yield from points.node_counts(("phases", n), phase, counts, benchmark.parameters)
        yield from points.rates(("phases", n), phase, benchmark.parameters)
        yield from points.short_warm_ups(("phases", n), phase, benchmark.parameters)
        yield from searches.unknown(("phases", n), phase, benchmark.parameters)
        yield from searches.values(("phases", n), phase, benchmark.parameters)
        yield from searches.node_counts(("phases", n), phase, counts)
    yield from planned_faults.without_victims(benchmark.phases, benchmark.fleets)


def _phase(place: Place, phase: PhaseIn, fleets: Collection[str], files: Collection[str] | None) -> Iterator[Problem]:
    yield from _script(place, phase, fleets, files)
    yield from planned_faults.problems(place, phase, fleets, files)
    for name in ("start_up", "warm_up"):
        if (seconds := getattr(phase, name)) and not phase.measured:
            yield Problem((*place, name), f"is {written(seconds)}", "left out in a phase that measures nothing")
    busy = phase.start_up + phase.longest_warm_up + phase.measured
    if phase.timeout <= busy:
        start = "start, " if phase.start_up else ""
        allowed = f"longer than {written(busy)}, its {start}warm-up and measured time together"
        yield Problem((*place, "timeout"), f"is {written(phase.timeout)}", allowed)
    yield from _points(place, phase)
    yield from phase_limits.problems(place, phase)
    yield from searches.problems(place, phase)
    if phase.between is not None:
        yield from _script((*place, "between"), phase.between, fleets, files)


def _script(
    place: Place, part: PhaseIn | BetweenIn, fleets: Collection[str], files: Collection[str] | None
) -> Iterator[Problem]:
    """Checks what a phase and the script between its points have in common."""
    roles = [((*place, "roles", n), role) for n, role in enumerate(part.roles)]
    yield from _once(roles, "another role")
    for at, role in roles:
        if role not in fleets:
            yield Problem(at, f"is {role!r}", f"one of {', '.join(fleets)}, the file's fleets")
    if files is not None and part.script not in files:
        there = ", ".join(sorted(files)) or "none"
        yield Problem((*place, "script"), f"is {part.script!r}", f"a file in the benchmark's folder: {there}")
    if part.expected is not None and part.expected > part.timeout:
        allowed = f"at most {written(part.timeout)}, its timeout"
        yield Problem((*place, "expected"), f"is {written(part.expected)}", allowed)


def _points(place: Place, phase: PhaseIn) -> Iterator[Problem]:
    if not phase.measured:
        for key in ("points", "between") if phase.repeat == 1 else ("points", "repeat", "between"):
            if getattr(phase, key):
                yield Problem((*place, key), "is set", "left out in a phase that measures nothing")


def longest(benchmark: Benchmark) -> int:
    """Returns the seconds that a cell can take, from its launch to the end of its teardown."""
    return benchmark.needed


def _expiry(benchmark: BenchmarkIn) -> Iterator[Problem]:
    if not all(phase.search is None or searches.is_right(phase.search) for phase in benchmark.phases):
        return
    cell = benchmark.build()
    count = sum(phase.number_of_points for phase in cell.phases if phase.has_points)
    if count > MOST_POINTS:
        allowed = f"phases with at most {MOST_POINTS} points together, repeats included"
        doubled = " with those of the baseline" if any(phase.paired for phase in cell.phases) else ""
        yield Problem(("phases",), f"have {count} points{doubled}", allowed)
        return
    longest, steps = cell.longest, steps_of(cell)
    around = cell.needed - longest
    if longest + around > max(most_seconds(steps), 0):
        limit = f"at most {written(LONGEST_CELL)} for one cell"
        if (most := most_seconds(steps)) < LONGEST_CELL:
            limit = f"at most {written(max(most, 0))} for one cell with {steps} phases, points and faults"
        allowed = f"{limit}, with all time-outs and the steps around the phases"
        yield Problem(("phases",), f"may take {written(longest + around)}", allowed)
    if benchmark.expires_after < longest + around:
        allowed = (
            f"at least {written(longest + around)}: the longest boot_timeout and all phases' time-outs, "
            f"{written(longest)}, and {written(around)} for launching, collecting, teardown, and between phases"
        )
        yield Problem(("expires_after",), f"is {written(benchmark.expires_after)}", allowed)


def _once(entries: Iterable[tuple[Place, str]], others: str) -> Iterator[Problem]:
    values: set[str] = set()
    for place, value in entries:
        if value in values:
            yield Problem(place, f"is {value!r}", f"unique: {others} has it")
        values.add(value)
