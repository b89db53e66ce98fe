"""Reads what single nodes did in the measured time, and what the devices of a role's nodes did on average."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from troop.bench.fleets.type_facts import TypeFacts
from troop.measure.device_samples import EBS
from troop.measure.summary import BUSIEST, EBS_EXCEEDED, NETWORK_EXCEEDED, busy
from troop.report.document import DeviceUse, Node
from troop.report.fleets import Place

_NO_PLACE = Place("", "", "")


def nodes(roles: Mapping[str, Any], places: Mapping[str, Place], types: Mapping[str, TypeFacts]) -> list[Node]:
    """Returns the lines of all nodes of a phase, by role and rank.

    Args:
        types: facts of instance types; a type without an instance store has only disks of EBS.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: the lines are damaged.
    """
    return [
        _node(role, node, line, places.get(node, _NO_PLACE), types, (its.get("samples") or {}).get("interval_seconds"))
        for role, its in roles.items()
        for node, line in sorted(its["nodes"].items(), key=lambda pair: pair[1]["rank"])
    ]


def _node(
    role: str,
    node: str,
    line: Mapping[str, Any],
    place: Place,
    types: Mapping[str, TypeFacts],
    interval: int | None,
) -> Node:
    means, totals = line.get("means") or {}, line.get("totals") or {}
    interval = line.get("interval_seconds") or interval

    def rate(*names: str) -> float | None:
        values = [means.get(name) for name in names]
        return None if not interval or None in values else sum(value or 0 for value in values) / interval

    disk_operations, disk_bytes = rate("disk_reads", "disk_writes"), rate("disk_read_bytes", "disk_write_bytes")
    volumes = [one for one in (line.get("devices") or {}).values() if one["kind"] == EBS and one["seconds"]]
    facts = types.get(place.instance_type)
    ebs_operations: float | None
    ebs_bytes: float | None
    if volumes:
        ebs_operations, ebs_bytes = (_per_second(volumes, names) for names in (_OPERATIONS, _BYTES))
    else:
        only_ebs = facts is not None and not facts.store_gb
        ebs_operations, ebs_bytes = (disk_operations, disk_bytes) if only_ebs else (None, None)
    sent, again = totals.get("tcp_sent_segments"), totals.get("tcp_retransmits")
    return Node(
        node=node,
        role=role,
        rank=line["rank"],
        outcome=line["outcome"],
        count=line["count"],
        errors=line["errors"],
        zone=place.zone,
        purchase=line.get("purchase") or place.purchase,
        instance_type=place.instance_type,
        cpu=_percent(busy(means)),
        iowait=_percent(means.get("cpu_iowait")),
        busiest=_percent(means.get(BUSIEST)),
        memory_bytes=means.get("memory_used"),
        disk_operations=disk_operations,
        disk_bytes=disk_bytes,
        ebs_operations=ebs_operations,
        ebs_bytes=ebs_bytes,
        network_received_bytes=rate("network_received_bytes"),
        network_sent_bytes=rate("network_sent_bytes"),
        retransmits=again,
        retransmit_share=again / sent if sent and again is not None else None,
        exceeded={name: totals[name] for name in (*NETWORK_EXCEEDED, *EBS_EXCEEDED) if totals.get(name)},
        clock_offset_seconds=line.get("clock_offset_seconds"),
        clock_uncertainty_seconds=line.get("clock_uncertainty_seconds"),
    )


_OPERATIONS, _BYTES = ("operations",), ("bytes", "read_bytes", "write_bytes")


def _per_second(devices: Sequence[Mapping[str, Any]], names: Iterable[str]) -> float:
    return float(sum(one.get(name, 0) / one["seconds"] for one in devices for name in names))


def _percent(thousandths: float | None) -> float | None:
    return None if thousandths is None else thousandths / 10


def devices(roles: Mapping[str, Any]) -> list[DeviceUse]:
    """Returns the average load of each device by role and label.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: the lines are damaged.
    """
    return [one for role, its in roles.items() for one in _role_devices(role, its["nodes"])]


def _role_devices(role: str, lines: Mapping[str, Any]) -> Iterator[DeviceUse]:
    by_label: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for node, line in lines.items():
        for device in (line.get("devices") or {}).values():
            if device["seconds"]:
                by_label.setdefault(device["label"], []).append((node, device))
    for label, members in sorted(by_label.items()):
        yield _device(role, label, members)


def _device(role: str, label: str, members: Sequence[tuple[str, Mapping[str, Any]]]) -> DeviceUse:
    """Returns one line. Means per operation are weighted by operations, rates are averaged over devices."""
    each = [device for _, device in members]
    seconds = sum(device["seconds"] for device in each)

    def total(name: str) -> int | None:
        known = [device[name] for device in each if name in device]
        return sum(known) if known else None

    def rate(name: str, part: float = 1) -> float | None:
        value = total(name)
        return None if value is None else value * part / seconds

    def per(name: str, operations: str, part: float) -> float | None:
        value, count = total(name), total(operations)
        return None if value is None or not count else value * part / count

    moved = [value for name in _BYTES if (value := total(name)) is not None]
    operations = total("operations")
    busy = [
        (100 * device["busy_millis"] / 1000 / device["seconds"], node)
        for node, device in members
        if "busy_millis" in device
    ]
    busiest, busiest_node = max(busy, default=(None, ""))
    sizes = {device.get("size_bytes") for device in each}
    return DeviceUse(
        role=role,
        device=label,
        kind=each[0]["kind"],
        devices=len(each),
        size_bytes=sizes.pop() if len(sizes) == 1 else None,
        operations=rate("operations"),
        reads=rate("reads"),
        writes=rate("writes"),
        read_bytes=rate("read_bytes"),
        write_bytes=rate("write_bytes"),
        request_bytes=sum(moved) / operations if moved and operations else None,
        wait_ms=per("wait_micros", "operations", 1 / 1000),
        read_wait_ms=per("read_wait_micros", "reads", 1 / 1000),
        write_wait_ms=per("write_wait_micros", "writes", 1 / 1000),
        service_ms=per("busy_millis", "operations", 1),
        queue=rate("queue_millis", 1 / 1000),
        busy=rate("busy_millis", 1 / 10),
        busiest=busiest,
        busiest_node=busiest_node,
    )
