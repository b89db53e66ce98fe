"""A layout on a node: complete or refused, again after an interruption, and never on the disks of others."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from tests.unit.disks.simulated import Node, ebs, instance_store, root
from troop.disks.assemble import assemble, verified
from troop.disks.assemble import instance_store as instance_store_of
from troop.disks.errors import DiskError
from troop.disks.layout import CACHES, LAYOUTS
from troop.disks.machine import packages_of_modules

SSD = [instance_store(number) for number in range(10, 13)]
PAIRS = [pair for pair in itertools.product(LAYOUTS, CACHES) if pair != ("root", "none")]


def node(layout: str, **more: Any) -> Node:
    volumes = {"ebs": 1, "ebs-raid0": 4}.get(layout, 0)
    return Node([root(), *(ebs(number) for number in range(1, 1 + volumes)), *SSD], **more)


def parameters(layout: str, cache: str = "none", **more: Any) -> dict[str, Any]:
    return {"layout": layout, "cache": cache, "volumes": 4, "system": True, **more}


@pytest.mark.parametrize(("layout", "cache"), PAIRS)
def test_a_second_start_keeps_a_complete_layout(layout: str, cache: str, tmp_path: Path) -> None:
    machine = node(layout)
    place = assemble(parameters(layout, cache), tmp_path, machine)
    before = list(machine.performed)
    assert assemble(parameters(layout, cache), tmp_path, machine) == place
    assert verified(parameters(layout, cache), tmp_path, machine) == place
    assert machine.performed == before
    assert place.folder == Path("/mnt/troop-data")


@pytest.mark.parametrize(("layout", "cache"), PAIRS)
def test_a_start_after_an_interruption_begins_with_empty_disks(layout: str, cache: str, tmp_path: Path) -> None:
    machine = node(layout, breaks_at="mount")
    with pytest.raises(DiskError, match="killed"):
        assemble(parameters(layout, cache), tmp_path, machine)
    assert assemble(parameters(layout, cache), tmp_path, machine).disks
    assert sum(command.startswith("mount ") for command in machine.performed) == 1


def test_one_layout_follows_another_on_the_same_disks(tmp_path: Path) -> None:
    machine = node("ebs-raid0")
    for cache in ("none", "dm-cache-writeback", "bcache-writethrough", "dm-writecache", "none"):
        place = assemble(parameters("ebs-raid0", cache), tmp_path, machine)
        assert (len(place.disks) == 5) == (cache != "none")


@pytest.mark.parametrize("content", ["dos", "xfs", "linux_raid_member"])
def test_a_disk_with_the_content_of_others_stays_as_it_is(content: str, tmp_path: Path) -> None:
    machine = node("ebs-raid0", signatures={"/dev/nvme3n1": content})
    with pytest.raises(DiskError, match=rf"/dev/nvme3n1 has content .* \({content}\).*wipefs --all /dev/nvme3n1"):
        assemble(parameters("ebs-raid0"), tmp_path, machine)
    assert machine.performed == []


def test_a_disk_that_others_use_stays_as_it_is(tmp_path: Path) -> None:
    machine = node("ebs", stacks={"/dev/mapper/theirs": ["/dev/nvme1n1"]})
    with pytest.raises(DiskError, match="/dev/nvme1n1 is in use: it carries /dev/mapper/theirs"):
        assemble(parameters("ebs"), tmp_path, machine)
    machine = node("ebs", mount=("/dev/nvme1n1", "/data", "xfs"))
    with pytest.raises(DiskError, match="is mounted at /data"):
        assemble(parameters("ebs"), tmp_path, machine)
    assert machine.performed == []


def test_disks_of_others_stay_after_an_interruption_too(tmp_path: Path) -> None:
    machine = node("ebs", breaks_at="mount")
    with pytest.raises(DiskError, match="killed"):
        assemble(parameters("ebs"), tmp_path, machine)
    machine.signatures["/dev/nvme12n1"] = "ext4"
    with pytest.raises(DiskError, match="/dev/nvme12n1 has content"):
        assemble(parameters("ebs", "dm-writecache"), tmp_path, machine)
    assert machine.signatures["/dev/nvme12n1"] == "ext4"


@pytest.mark.parametrize(
    ("layout", "cache", "lacks", "message"),
    [
        ("ebs-raid0", "none", "mdadm", "mdadm is missing, and its package mdadm cannot be installed"),
        ("ebs", "bcache-writeback", "make-bcache", "make-bcache is missing, and its package bcache-tools cannot"),
        ("ebs", "bcache-writeback", "bcache", "the kernel .* has no module bcache"),
        ("ebs", "dm-writecache", "dm-writecache", "the kernel .* has no module dm-writecache"),
        ("ebs", "dm-cache-writethrough", "dm-cache-smq", "the kernel .* has no module dm-cache-smq"),
        ("instance-store-raid0", "none", "raid0", "the kernel .* has no module raid0"),
    ],
)
def test_missing_tool_of_the_node_is_named_and_nothing_is_assembled(
    layout: str, cache: str, lacks: str, message: str, tmp_path: Path
) -> None:
    package = {"make-bcache": "bcache-tools"}.get(lacks, lacks)
    machine = node(layout, lacks=frozenset({lacks, package}))
    with pytest.raises(DiskError, match=message):
        assemble(parameters(layout, cache), tmp_path, machine)
    assert machine.performed == []


DIFFERENCES = [
    ("ebs-raid0", "none", {"texts": {"/sys/block/md0/md/chunk_size": "4096"}}, "chunks of 4096 bytes"),
    ("ebs-raid0", "none", {"texts": {"/sys/block/md0/md/level": "linear"}}, "/dev/md0 is linear instead of raid0"),
    ("ebs", "none", {"mount": None}, "nothing is mounted at /mnt/troop-data"),
    ("ebs", "none", {"mount": ("/dev/nvme0n1p1", "/mnt/troop-data", "xfs")}, "nothing is mounted|instead of"),
    ("ebs", "none", {"mount": ("/dev/nvme1n1", "/mnt/troop-data", "ext4")}, "is ext4 instead of xfs"),
    ("ebs", "dm-cache-writethrough", {"mount": ("/dev/nvme1n1", "/mnt/troop-data", "xfs")}, "on /dev/nvme1n1 instead"),
    (
        "ebs",
        "dm-cache-writethrough",
        {"tables": {"troop-cached": "0 9 cache 253:0 253:1 259:1 64 1 passthrough smq 0"}},
        "the cache is passthrough instead of writethrough",
    ),
    (
        "ebs",
        "dm-cache-writethrough",
        {"tables": {"troop-cached": "0 9 cache 253:0 253:1 259:1 512 2 metadata2 writethrough cleaner 0"}},
        "blocks of 512 sectors instead of 64; the cache's policy is cleaner",
    ),
    ("ebs", "dm-writecache", {"tables": {"troop-cached": "0 9 linear 259:1 0"}}, "linear instead of writecache"),
    ("ebs", "bcache-writeback", {"texts": {"/sys/block/bcache0/bcache/state": "no cache"}}, "not attached"),
    (
        "ebs",
        "bcache-writeback",
        {"texts": {"/sys/block/bcache0/bcache/cache_mode": "[writethrough] writeback"}},
        r"instead of \[writeback\]",
    ),
]


@pytest.mark.parametrize(("layout", "cache", "change", "message"), DIFFERENCES)
def test_layout_that_was_changed_is_not_measured(
    layout: str, cache: str, change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    machine = node(layout)
    assemble(parameters(layout, cache), tmp_path, machine)
    for name, value in change.items():
        setattr(machine, name, {**getattr(machine, name), **value} if isinstance(value, dict) else value)
    with pytest.raises(DiskError, match=message):
        verified(parameters(layout, cache), tmp_path, machine)


def test_a_read_ahead_that_others_have_changed_is_not_measured(tmp_path: Path) -> None:
    machine = node("ebs")
    assemble(parameters("ebs", read_ahead_kib=64), tmp_path, machine)
    machine.read_ahead = "256"
    with pytest.raises(DiskError, match="the read-ahead is 128 KiB instead of 64 KiB"):
        verified(parameters("ebs", read_ahead_kib=64), tmp_path, machine)


def test_the_root_volume_has_a_folder_and_stays_as_it_is(tmp_path: Path) -> None:
    machine = node("root")
    assert assemble(parameters("root"), tmp_path, machine).folder == tmp_path / "data"
    assert machine.performed == []
    with pytest.raises(DiskError, match="the root volume has xfs: file_system must be that"):
        assemble(parameters("root", file_system="ext4"), tmp_path, machine)
    machine.root_type = "tmpfs"
    with pytest.raises(DiskError, match="is in memory"):
        assemble(parameters("root"), tmp_path, machine)


def test_without_system_nothing_is_formatted(tmp_path: Path) -> None:
    machine = node("ebs")
    with pytest.raises(DiskError, match=r"formats disks, which requires parameters.system: true"):
        assemble(parameters("ebs", system=False), tmp_path, machine)
    assert machine.performed == []
    assert assemble(parameters("root", system=False, file_system="ext4"), tmp_path, machine).folder.is_dir()


def test_only_empty_disks_of_the_instance_store_are_preconditioned() -> None:
    machine = node("ebs")
    assert instance_store_of(parameters("ebs", "dm-writecache"), machine) == ["/dev/nvme12n1"]
    assert instance_store_of(parameters("ebs"), machine) == []
    machine.signatures["/dev/nvme10n1"] = "xfs"
    with pytest.raises(DiskError, match="/dev/nvme10n1 has content"):
        instance_store_of(parameters("instance-store"), machine)


def test_modules_come_from_the_package_of_the_running_kernel() -> None:
    assert packages_of_modules("6.12.40-64.114.amzn2023.x86_64") == [
        "kernel-modules-extra-6.12.40-64.114.amzn2023",
        "kernel6.12-modules-extra-6.12.40-64.114.amzn2023",
    ]
