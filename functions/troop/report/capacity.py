"""Computes what the nodes of a cell provide: processors, memory, storage, IOPS and bandwidth, by zone and in total."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from troop.bench.definition.definition import Benchmark, Volume
from troop.bench.definition.roster import Member, Roster
from troop.bench.fleets.type_facts import MB, TypeFacts
from troop.bench.money.prices import IOPS_INCLUDED, THROUGHPUT_INCLUDED
from troop.report.document import Capacity, InstanceType

MIB = 1024**2
_IO_BYTES = 256 * 1024
"""The largest operation of EBS: the throughput of io2, which has no limit of its own, follows from its IOPS."""

_GP2_LARGE_GIB = 334
"""The size from which gp2 has its full throughput without bursts."""

_HARD_DISKS = {"st1": (40, 500), "sc1": (12, 250)}
"""MiB a second for each TiB, and at most."""

_WHOLE = ("vcpus", "memory_mib", "store_gb", "volumes_gib", "ebs_iops", "ebs_peak_iops")
_FRACTIONS = ("ebs_mbps", "ebs_peak_mbps", "network_gbps", "network_peak_gbps")


def instance_types(types: Mapping[str, TypeFacts], roster_types: Iterable[str]) -> list[InstanceType]:
    """Returns the known types of a run's nodes, in their order."""
    return [InstanceType(name=name, **vars(types[name])) for name in dict.fromkeys(roster_types) if name in types]


@dataclass(frozen=True)
class _Node:
    role: str
    zone: str
    parts: Mapping[str, float | None]


def capacity(benchmark: Benchmark | None, roster: Roster | None, types: Mapping[str, TypeFacts]) -> list[Capacity]:
    """Returns the capacity of each role in each zone, of each role, and of all roles; empty without facts of types.

    Without a roster, the planned nodes count, whose zones are unknown.
    """
    if not types or (benchmark is None and roster is None):
        return []
    volumes = {fleet.role: fleet.volumes for fleet in benchmark.fleets} if benchmark else {}
    nodes = [
        _Node(role, zone, _parts(types.get(instance_type, TypeFacts()), volumes.get(role)))
        for role, zone, instance_type in _places(benchmark, roster)
    ]
    capacities = []
    for role in dict.fromkeys([*volumes, *(node.role for node in nodes)]):
        its = [node for node in nodes if node.role == role]
        zones = sorted({node.zone for node in its if node.zone})
        if len(zones) > 1:
            capacities += [_sum(role, zone, [node for node in its if node.zone == zone]) for zone in zones]
        if its:
            capacities.append(_sum(role, zones[0] if len(zones) == 1 else "", its))
    if len({one.role for one in capacities}) > 1:
        capacities.append(_sum("", "", nodes))
    return capacities


def _places(benchmark: Benchmark | None, roster: Roster | None) -> list[tuple[str, str, str]]:
    """Returns the role, zone and instance type of each node."""
    members: Sequence[Member] = roster.members if roster else ()
    if members or benchmark is None:
        return [(one.role, one.zone, one.instance_type) for one in members]
    return [(fleet.role, "", fleet.instance_type) for fleet in benchmark.fleets for _ in range(fleet.count)]


def _parts(facts: TypeFacts, volumes: Sequence[Volume] | None) -> dict[str, float | None]:
    """Returns what one node provides; None for unknown volumes."""
    parts: dict[str, float | None] = {
        "vcpus": facts.vcpus,
        "memory_mib": facts.memory_mib,
        "store_gb": facts.store_gb,
        "network_gbps": facts.network_gbps,
        "network_peak_gbps": facts.network_peak_gbps,
    }
    if volumes is not None:
        iops, throughput = _total(map(_iops, volumes)), _total(map(_throughput, volumes))
        mbps = None if throughput is None else throughput / MB
        parts["volumes_gib"] = sum(volume.size_gib for volume in volumes)
        parts["ebs_iops"], parts["ebs_peak_iops"] = _least(iops, facts.ebs_iops), _least(iops, facts.ebs_peak_iops)
        parts["ebs_mbps"], parts["ebs_peak_mbps"] = _least(mbps, facts.ebs_mbps), _least(mbps, facts.ebs_peak_mbps)
    return parts


def _iops(volume: Volume) -> float | None:
    """Returns IOPS; None for an unknown type.

    Those of gp2 follow from its size: https://docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html. Those of
    st1 and sc1 are operations of a MiB: https://docs.aws.amazon.com/ebs/latest/userguide/hdd-vols.html.
    """
    if volume.type == "gp2":
        return min(max(3 * volume.size_gib, 100), 16_000)
    if volume.type in _HARD_DISKS:
        return _mib_of_disk(volume)
    return volume.iops or IOPS_INCLUDED.get(volume.type)


def _throughput(volume: Volume) -> float | None:
    """Returns bytes per second without bursts; None for an unknown type. Sources are those of :func:`_iops`."""
    if volume.type == "gp3":
        return (volume.throughput_mib or THROUGHPUT_INCLUDED) * MIB
    if volume.type == "gp2":
        return (128 if volume.size_gib < _GP2_LARGE_GIB else 250) * MIB
    if volume.type in _HARD_DISKS:
        return _mib_of_disk(volume) * MIB
    iops = _iops(volume)
    return None if iops is None else iops * _IO_BYTES


def _mib_of_disk(volume: Volume) -> float:
    a_tib, most = _HARD_DISKS[volume.type]
    return min(a_tib * volume.size_gib / 1024, most)


def _total(values: Iterable[float | None]) -> float | None:
    known = list(values)
    return None if None in known else sum(value or 0 for value in known)


def _least(provided: float | None, limit: float | None) -> float | None:
    """Returns what volumes provide, limited by the instance; None if either is unknown."""
    if provided is None:
        return None
    if not provided:
        return 0
    return None if limit is None else min(provided, limit)


def _sum(role: str, zone: str, nodes: Sequence[_Node]) -> Capacity:
    sums = {}
    for name in (*_WHOLE, *_FRACTIONS):
        values = [node.parts.get(name) for node in nodes]
        total = None if None in values else sum(value or 0 for value in values)
        sums[name] = total if total is None or name in _FRACTIONS else int(total)
    return Capacity.model_validate({"role": role, "zone": zone, "nodes": len(nodes), **sums})
