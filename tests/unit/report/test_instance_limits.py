"""Capacity of a cell, what its nodes and devices did, and the limits that they met."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.report.runs import TYPES, archive, benchmark, members
from tests.unit.report.test_build import report_of
from troop.bench.definition.definition import Benchmark, Volume
from troop.report.activity import devices, nodes
from troop.report.capacity import capacity
from troop.report.document import Capacity, Cell, Node, Phase, Report
from troop.report.fleets import Place
from troop.report.instance_limits import bursts, findings


def with_volumes(*volumes: Volume) -> Benchmark:
    plain = benchmark("n3")
    servers, drivers = plain.fleets
    return replace(plain, fleets=(replace(servers, volumes=volumes), drivers))


def row(role: str, zone: str, *volumes: Volume) -> Capacity:
    rows = capacity(with_volumes(*volumes), members("c001", "n3"), TYPES)
    (match,) = [one for one in rows if (one.role, one.zone) == (role, zone)]
    return match


# ------------------------------------------------------------------ capacity


def test_capacity_is_by_zone_by_role_and_in_total() -> None:
    rows = capacity(benchmark("n6"), members("c003", "n6"), TYPES)
    assert [(one.role, one.zone, one.nodes, one.vcpus, one.memory_mib, one.store_gb) for one in rows] == [
        ("servers", "a", 2, 4, 32_768, 936),
        ("servers", "b", 2, 4, 32_768, 936),
        ("servers", "c", 2, 4, 32_768, 936),
        ("servers", "", 6, 12, 98_304, 2808),
        ("drivers", "a", 2, 4, 8192, 0),
        ("", "", 8, 16, 106_496, 2808),
    ]
    assert rows[-1].network_gbps == pytest.approx(6 * 0.781 + 2 * 0.937)


def test_volumes_provide_what_was_provisioned_but_no_more_than_the_instance_may_use() -> None:
    """The type's baseline is 2,500 IOPS and 78 MB/s, its maximum 40,000 IOPS and 1,250 MB/s."""
    small = row("servers", "", Volume("/dev/sdf", 100))
    assert (small.volumes_gib, small.ebs_iops, small.ebs_peak_iops) == (300, 7500, 9000)
    assert small.ebs_mbps == pytest.approx(3 * 78.125)
    assert small.ebs_peak_mbps == pytest.approx(3 * 125 * 1.048576)
    large = row("servers", "a", *[Volume(f"/dev/sd{n}", 500, "gp3", 16_000, 1000) for n in "fgh"])
    assert (large.volumes_gib, large.ebs_peak_iops, large.ebs_peak_mbps) == (1500, 40_000, 1250)
    assert row("servers", "", Volume("/dev/sdf", 10, "io2", 1000)).ebs_iops == 3000


@pytest.mark.parametrize(
    ("volume", "iops", "mib"),
    [
        (Volume("/dev/sdf", 10, "gp2"), 100, 128),
        (Volume("/dev/sdf", 1000, "gp2"), 3000, 250),
        (Volume("/dev/sdf", 16_000, "gp2"), 16_000, 250),
        (Volume("/dev/sdf", 1024, "st1"), 40, 40),
        (Volume("/dev/sdf", 16_384, "st1"), 500, 500),
        (Volume("/dev/sdf", 2048, "sc1"), 24, 24),
    ],
)
def test_volumes_without_provisioned_performance_have_that_of_their_size(volume: Volume, iops: int, mib: int) -> None:
    its = row("servers", "", volume)
    assert its.ebs_peak_iops == 3 * iops
    assert its.ebs_peak_mbps == pytest.approx(3 * mib * 1.048576)


def test_a_volume_of_an_unknown_type_is_not_nothing() -> None:
    its = row("servers", "", Volume("/dev/sdf", 10), Volume("/dev/sdg", 10, "gp9"))
    assert (its.ebs_peak_iops, its.ebs_peak_mbps, its.volumes_gib) == (None, None, 60)


def test_without_volumes_ebs_provides_nothing_and_without_facts_nothing_is_known() -> None:
    assert (row("servers", "").ebs_iops, row("servers", "").volumes_gib) == (0, 0)
    assert capacity(benchmark("n3"), members("c001", "n3"), {}) == []
    unknown = capacity(with_volumes(Volume("/dev/sdf", 9)), members("c001", "n3"), {"c7g.large": TYPES["c7g.large"]})
    servers = next(one for one in unknown if one.role == "servers" and not one.zone)
    assert (servers.vcpus, servers.ebs_iops, servers.volumes_gib) == (None, None, 27)


def test_without_a_roster_the_planned_nodes_count() -> None:
    assert [(one.role, one.zone, one.vcpus) for one in capacity(benchmark("n12"), None, TYPES)] == [
        ("servers", "", 24),
        ("drivers", "", 8),
        ("", "", 32),
    ]


# ------------------------------------------------------------------ limits


def node(number: int = 1, **its: Any) -> Node:
    fields = {"node": f"i-{number}", "role": "servers", "rank": number, "outcome": "ok", "count": 9, "errors": 0}
    return Node.model_validate({**fields, "instance_type": "i4i.large", "cpu": 40.0, **its})


def sentences(*members: Node, measured: float = 600) -> list[str]:
    phase = Phase(phase="measure", nodes=len(members), measured_seconds=measured, members=list(members))
    return [one.text for one in findings(Cell(cell="c001", status="SUCCEEDED", phases=[phase]), TYPES)]


@pytest.mark.parametrize(
    ("its", "key", "text"),
    [
        (
            {"network_sent_bytes": 125e6},
            "network_out",
            "measure, servers: outbound network traffic was a burst on 1 of 2 nodes: up to 1.00 Gbit/s, and the "
            "baseline of i4i.large is 0.781. EC2 allows it only for a while: measure longer, or use larger instances.",
        ),
        ({"network_received_bytes": 98e6}, "network_in", "inbound network traffic was a burst on 1 of 2 nodes"),
        ({"ebs_bytes": 79e6}, "ebs_bandwidth", "EBS bandwidth was a burst on 1 of 2 nodes: up to 79.0 MB/s"),
        ({"ebs_operations": 2501}, "ebs_iops", "EBS operations was a burst on 1 of 2 nodes: up to 2,501 IOPS"),
    ],
)
def test_use_above_the_baseline_is_a_burst(its: dict[str, float], key: str, text: str) -> None:
    above, below = node(1, **its), node(2, **{name: value / 2 for name, value in its.items()})
    (sentence,) = sentences(above, below)
    assert text in sentence
    assert bursts([above, below], TYPES) == {"servers": [key]}
    assert sentences(below) == []
    assert bursts([below], TYPES) == {}


def test_a_figure_of_a_type_without_facts_is_no_burst() -> None:
    assert sentences(node(1, instance_type="x9.large", network_sent_bytes=1e12)) == []


def test_packets_beyond_an_allowance_are_named_with_their_nodes() -> None:
    (sentence,) = sentences(
        node(1, exceeded={"network_out_exceeded": 12_345, "conntrack_exceeded": 1}), node(2, exceeded={}), node(3)
    )
    assert "packets of i-1 beyond" in sentence
    assert "(12,345 for outbound bandwidth, 1 for tracked connections)" in sentence


def test_exceeded_ebs_limit_counts_from_a_hundredth_of_the_time() -> None:
    assert sentences(node(exceeded={"volume_iops_exceeded": 5_900_000})) == []
    (sentence,) = sentences(node(exceeded={"volume_iops_exceeded": 6_000_000, "instance_throughput_exceeded": 9}))
    assert "IOPS of a volume for 6 s of 600 s measured" in sentence


@pytest.mark.parametrize(
    ("again", "share", "is_high"), [(99, 0.5, False), (100, 0.001, False), (100, 0.0011, True), (None, None, False)]
)
def test_retransmits_are_high_from_a_thousandth(again: int | None, share: float | None, is_high: bool) -> None:
    texts = sentences(node(retransmits=again, retransmit_share=share))
    assert bool(texts) == is_high
    assert not texts or "0.11% of the segments (i-1)" in texts[0]


@pytest.mark.parametrize(
    ("busiest", "cpu", "is_hot"), [(99, 13, True), (95, 13, False), (99, 80, False), (None, 13, False)]
)
def test_a_busy_core_in_an_idle_node_is_a_finding(busiest: float | None, cpu: float, is_hot: bool) -> None:
    texts = sentences(node(busiest=busiest, cpu=cpu))
    assert bool(texts) == is_hot
    assert not texts or "one core was busy for 99 % of the time on i-1, and all cores together for 13 %" in texts[0]


# ------------------------------------------------------------------ nodes and devices


def line(devices: dict[str, Any] | None = None, /, **means: Any) -> dict[str, Any]:
    plain = {"rank": 0, "outcome": "ok", "count": 5, "errors": 0, "means": means, "interval_seconds": 2}
    return plain if devices is None else {**plain, "devices": devices}


def member_with(line: dict[str, Any], instance_type: str) -> Node:
    place = {"i-1": Place("servers", "a", "spot", instance_type)}
    (member,) = nodes({"servers": {"nodes": {"i-1": line}}}, place, TYPES)
    return member


DISKS = {"disk_reads": 10, "disk_writes": 20, "disk_read_bytes": 1000, "disk_write_bytes": 3000}


def test_rates_of_a_node_are_per_second_whatever_the_interval() -> None:
    member = member_with(line(None, **DISKS, network_sent_bytes=500), "c7g.large")
    assert (member.disk_operations, member.disk_bytes, member.network_sent_bytes) == (15, 2000, 250)


def test_only_volumes_count_for_ebs() -> None:
    """An instance store has no baseline at EBS."""
    each = {"label": "x", "size_bytes": None, "seconds": 10, "operations": 50, "read_bytes": 700, "write_bytes": 300}
    both = {
        "nvme0n1": {**each, "kind": "ebs"},
        "nvme1n1": {**each, "kind": "instance-store"},
        "md0": {**each, "kind": "stacked"},
    }
    member = member_with(line(both, **DISKS), "i4i.large")
    assert (member.ebs_operations, member.ebs_bytes) == (5, 100)
    assert member_with(line(None, **DISKS), "c7g.large").ebs_bytes == 2000, (
        "all disks of a type without an instance store"
    )
    assert member_with(line(None, **DISKS), "i4i.large").ebs_bytes is None


def test_a_device_has_means_per_operation_and_the_node_where_it_is_busiest() -> None:
    slow = {"kind": "ebs", "label": "/dev/sdf", "size_bytes": 9, "seconds": 10, "operations": 100, "reads": 100}
    slow |= {"read_bytes": 409_600, "wait_micros": 900_000, "queue_millis": 5000, "busy_millis": 9000}
    fast = {**slow, "operations": 300, "wait_micros": 300_000, "busy_millis": 1000, "read_bytes": 1_228_800}
    lines = {"i-1": line({"nvme1n1": slow}), "i-2": line({"nvme2n1": fast})}
    (device,) = devices({"servers": {"nodes": lines}})
    assert (device.device, device.kind, device.devices, device.size_bytes) == ("/dev/sdf", "ebs", 2, 9)
    assert (device.operations, device.request_bytes, device.wait_ms) == (20, 4096, 3)
    assert (device.queue, device.busy, device.busiest, device.busiest_node) == (0.5, 50, 90, "i-1")
    assert (device.writes, device.write_wait_ms) == (None, None)
    assert device.service_ms == 10_000 / 400, "busy milliseconds by operations, of both nodes"


def test_results_of_an_earlier_version_have_no_devices() -> None:
    assert devices({"servers": {"nodes": {"i-1": line()}}}) == []


# ------------------------------------------------------------------ the report


@pytest.fixture(scope="module")
def report() -> Report:
    return report_of(archive())


def test_a_report_knows_types_capacity_and_devices_without_aws(report: Report) -> None:
    assert [one.name for one in report.instance_types] == ["i4i.large", "c7g.large"]
    assert report.instance_types[0].ebs_peak_mbps == 1250.0
    cell = report.cells[0]
    assert next(one for one in cell.capacity if not one.role).vcpus == 8
    (phase,) = cell.phases
    assert {(one.role, one.device, one.kind) for one in phase.devices} == {
        ("servers", "nvme1n1", "instance-store"),
        ("drivers", "nvme1n1", "instance-store"),
    }
    assert phase.devices[0].wait_ms == 2
    servers = [one for one in phase.members if one.role == "servers"]
    assert {one.instance_type for one in servers} == {"i4i.large"}


def test_devices_are_series_over_time_by_role_and_by_node(report: Report) -> None:
    (phase,) = report.cells[0].phases
    role_values = {
        (one.role, one.name): one.values[10] for one in phase.series if one.device == "nvme1n1" and not one.node
    }
    assert role_values["servers", "disk_reads"] == 3 * 1500
    assert role_values["servers", "disk_wait_ms"] == 2
    assert role_values["servers", "disk_busy"] == 75
    assert role_values["servers", "disk_queue"] == 4
    node = phase.members[-1]
    (busy,) = [one for one in phase.series if (one.node, one.name) == (node.node, "disk_busy")]
    assert (busy.role, busy.device, busy.values[10]) == (node.role, "nvme1n1", 75)


def test_a_run_without_facts_of_types_has_a_report() -> None:
    older = report_of(archive().without("instance-types.json"))
    assert older.instance_types == []
    assert not any(cell.capacity for cell in older.cells)
    damaged = report_of(archive().put({"instance-types.json": b"[]"}))
    assert any("instance-types.json cannot be read" in one.text for one in damaged.findings)
