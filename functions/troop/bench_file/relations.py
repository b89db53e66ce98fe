"""What must be right between the file's values, each of which is right by itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from troop.bench import names
from troop.bench.problems import Place, Problem
from troop.bench_file.fields import written
from troop.bench_file.models import BenchmarkIn, PhaseIn, VolumeIn

OWN_STEPS = (names.LAUNCH, names.BOOT, names.COLLECT, names.TEARDOWN, names.OVER)
"""What a cell goes through besides the phases; a phase of such a name could not be told from it."""

AROUND = 5 * 60
"""Seconds that launching, collecting and taking down may take, besides all time-outs."""

BETWEEN = 60
"""Seconds until the workflow, which looks now and then, has seen that a phase is over."""

_GP3_IOPS = (3000, 80_000)
_GP3_IOPS_A_GIB = 500
_GP3_DEFAULT_IOPS = 3000
_GP3_IOPS_A_MIB = 4
_IO2_IOPS_A_GIB = 1000
_IO2_LEAST_GIB = 4


def problems(benchmark: BenchmarkIn, files: Collection[str] | None) -> list[Problem]:
    """All that does not fit together.

    Args:
        files: names of what lies beside the file; None when that is not known.
    """
    return [
        *_fleets(benchmark),
        *_phases(benchmark, files),
        *_once(((("artifacts", n, "name"), a.name) for n, a in enumerate(benchmark.artifacts)), "another artifact"),
        *_once(((("buckets", n), bucket) for n, bucket in enumerate(benchmark.buckets)), "another entry"),
        *_expiry(benchmark),
    ]


def _fleets(benchmark: BenchmarkIn) -> Iterator[Problem]:
    for role, fleet in benchmark.fleets.items():
        place: Place = ("fleets", role)
        if fleet.zones > fleet.count:
            allowed = f"at most {fleet.count}, which is its count"
            yield Problem((*place, "zones"), f"is {fleet.zones}", allowed)
        devices = ((*place, "volumes", n, "device") for n in range(len(fleet.volumes)))
        yield from _once(zip(devices, (v.device for v in fleet.volumes), strict=True), "another volume")
        for n, volume in enumerate(fleet.volumes):
            yield from (_gp3 if volume.type == "gp3" else _io2)((*place, "volumes", n), volume)


def _gp3(place: Place, volume: VolumeIn) -> Iterator[Problem]:
    low, high = _GP3_IOPS
    most = min(high, max(low, volume.size_gib * _GP3_IOPS_A_GIB))
    if volume.iops is not None and not low <= volume.iops <= most:
        allowed = f"a whole number from {low} to {most}, for gp3 of {volume.size_gib} GiB"
        yield Problem((*place, "iops"), f"is {volume.iops}", allowed)
    iops = volume.iops or _GP3_DEFAULT_IOPS
    if volume.throughput_mib is not None and volume.throughput_mib * _GP3_IOPS_A_MIB > iops:
        allowed = f"at most {iops // _GP3_IOPS_A_MIB}, a quarter of its {iops} IOPS"
        yield Problem((*place, "throughput_mib"), f"is {volume.throughput_mib}", allowed)


def _io2(place: Place, volume: VolumeIn) -> Iterator[Problem]:
    if volume.size_gib < _IO2_LEAST_GIB:
        yield Problem((*place, "size_gib"), f"is {volume.size_gib}", f"at least {_IO2_LEAST_GIB}, for io2")
    most = volume.size_gib * _IO2_IOPS_A_GIB
    if volume.iops is None:
        yield Problem((*place, "iops"), "is missing", f"given for io2: a whole number from 100 to {most}")
    elif volume.iops > most:
        yield Problem((*place, "iops"), f"is {volume.iops}", f"at most {most}, for io2 of {volume.size_gib} GiB")
    if volume.throughput_mib is not None:
        yield Problem((*place, "throughput_mib"), f"is {volume.throughput_mib}", "left out, for io2")


def _phases(benchmark: BenchmarkIn, files: Collection[str] | None) -> Iterator[Problem]:
    named = [(("phases", n, "name"), phase.name) for n, phase in enumerate(benchmark.phases)]
    yield from _once(named, "another phase")
    for place, name in named:
        if name in OWN_STEPS:
            yield Problem(place, f"is {name!r}", f"none of {', '.join(OWN_STEPS)}, which are steps of every run")
    for n, phase in enumerate(benchmark.phases):
        yield from _phase(("phases", n), phase, benchmark, files)


def _phase(place: Place, phase: PhaseIn, benchmark: BenchmarkIn, files: Collection[str] | None) -> Iterator[Problem]:
    roles = [((*place, "roles", n), role) for n, role in enumerate(phase.roles)]
    yield from _once(roles, "another role")
    for at, role in roles:
        if role not in benchmark.fleets:
            yield Problem(at, f"is {role!r}", f"one of {', '.join(benchmark.fleets)}, the fleets there are")
    if files is not None and phase.script not in files:
        there = ", ".join(sorted(files)) or "none"
        yield Problem((*place, "script"), f"is {phase.script!r}", f"a file beside the benchmark's: {there}")
    if phase.warm_up and not phase.measured:
        yield Problem((*place, "warm_up"), f"is {written(phase.warm_up)}", "left out where nothing is measured")
    if phase.timeout <= phase.warm_up + phase.measured:
        busy = written(phase.warm_up + phase.measured)
        allowed = f"longer than {busy}, its warm-up and measured time together"
        yield Problem((*place, "timeout"), f"is {written(phase.timeout)}", allowed)


def _expiry(benchmark: BenchmarkIn) -> Iterator[Problem]:
    longest, around = benchmark.made().longest, AROUND + BETWEEN * len(benchmark.phases)
    if benchmark.expires_after < longest + around:
        allowed = (
            f"at least {written(longest + around)}: the longest boot_timeout and all phases' time-outs, "
            f"{written(longest)}, and {written(around)} for launching, collecting, taking down, and between phases"
        )
        yield Problem(("expires_after",), f"is {written(benchmark.expires_after)}", allowed)


def _once(entries: Iterable[tuple[Place, str]], others: str) -> Iterator[Problem]:
    seen = set()
    for place, value in entries:
        if value in seen:
            yield Problem(place, f"is {value!r}", f"given once: {others} has it")
        seen.add(value)
