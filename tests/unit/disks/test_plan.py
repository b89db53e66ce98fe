"""What is planned for each layout with each cache: the disks, the order, the packages and modules."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.unit.disks.simulated import ebs, instance_store, root
from troop.disks.devices import choose, parse
from troop.disks.errors import DiskError
from troop.disks.layout import CACHES, LAYOUTS, layout_of
from troop.disks.plan import Plan, plan
from troop.disks.steps import Run

GIB = 1024**3
EBS4 = [root(), *(ebs(number) for number in range(1, 5))]
SSD3 = [instance_store(number) for number in range(10, 13)]
DISKS = {
    "root": ([root()], {"/dev/loop100"}),
    "ebs": ([root(), ebs(1)], {"/dev/nvme1n1"}),
    "ebs-raid0": (EBS4, {f"/dev/nvme{number}n1" for number in range(1, 5)}),
    "instance-store": ([root()], {"/dev/nvme10n1"}),
    "instance-store-raid0": ([root()], {"/dev/nvme10n1", "/dev/nvme11n1", "/dev/nvme12n1"}),
}
CACHE_DISK = "/dev/nvme12n1"
PAIRS = [pair for pair in itertools.product(LAYOUTS, CACHES) if pair != ("root", "none")]


def planned(parameters: Mapping[str, Any], disks: list[dict[str, Any]] | None = None) -> Plan:
    layout = layout_of({"volumes": 4, **parameters})
    devices = disks if disks is not None else [*DISKS[layout.kind][0], *SSD3]
    choice = choose(layout, parse(json.dumps({"blockdevices": devices})))
    return plan(layout, choice, "/shared/origin.img")


def commands(plan: Plan) -> list[str]:
    return [" ".join(step.command) for step in plan.steps if isinstance(step, Run)]


@pytest.mark.parametrize(("layout", "cache"), PAIRS)
def test_layout_uses_only_its_own_disks_and_the_last_one_for_the_cache(layout: str, cache: str) -> None:
    one = planned({"layout": layout, "cache": cache})
    below = set(DISKS[layout][1])
    assert one.disks == (below if cache == "none" else below | {CACHE_DISK})
    assert "/dev/nvme0n1" not in " ".join(commands(one))
    assert commands(one)[-1] == f"mount -t xfs -o noatime {one.device} /mnt/troop-data"


@pytest.mark.parametrize(("layout", "cache"), PAIRS)
def test_packages_and_modules_of_a_layout_are_planned(layout: str, cache: str) -> None:
    one = planned({"layout": layout, "cache": cache})
    assert ("mdadm" in one.packages) == ("raid0" in one.modules) == layout.endswith("raid0")
    assert ("make-bcache" in one.packages) == ("bcache" in one.modules) == cache.startswith("bcache")
    assert one.targets == {"dm-cache": ("cache",), "dm-writecache": ("writecache",)}.get(one.layout.driver, ())
    assert {step.command[0] for step in one.steps if isinstance(step, Run)} <= {
        *one.packages,
        *("mount", "mkdir", "dd", "losetup", "fallocate", "blockdev", "rm"),
    }


def test_raid0_stripes_all_volumes_with_the_chunk_of_the_parameters() -> None:
    one = planned({"layout": "ebs-raid0", "chunk_kib": 64})
    disks = " ".join(f"/dev/nvme{number}n1" for number in range(1, 5))
    assert commands(one)[0] == f"mdadm --create /dev/md0 --run --level=0 --chunk=64K --raid-devices=4 {disks}"


@pytest.mark.parametrize("mode", ["writethrough", "writeback"])
def test_dm_cache_has_metadata_for_all_of_its_blocks_before_them(mode: str) -> None:
    one = planned({"layout": "ebs", "cache": f"dm-cache-{mode}", "cache_block_kib": 96, "cache_gib": 100})
    meta, fast, _, cached, *_ = commands(one)
    blocks = 100 * GIB // (96 * 1024)
    meta_sectors = int(meta.split()[5])
    assert meta_sectors * 512 >= 4 * 1024**2 + 16 * blocks
    assert meta.endswith(f"--table 0 {meta_sectors} linear {CACHE_DISK} 0")
    fast_sectors = int(fast.split()[5])
    assert fast.endswith(f" linear {CACHE_DISK} {meta_sectors}")
    assert fast_sectors % 192 == 0
    assert 0 <= 100 * GIB - (meta_sectors + fast_sectors) * 512 < 96 * 1024
    names = "/dev/mapper/troop-meta /dev/mapper/troop-fast /dev/nvme1n1"
    assert cached == (
        f"dmsetup create troop-cached --table 0 {{sectors:/dev/nvme1n1}} cache {names} 192 1 {mode} smq 0"
    )


def test_dm_writecache_is_in_front_of_the_array() -> None:
    one = planned({"layout": "ebs-raid0", "cache": "dm-writecache"})
    assert commands(one)[4] == (
        "dmsetup create troop-cached --table 0 {sectors:/dev/md0} writecache s /dev/md0 /dev/mapper/troop-fast 4096 0"
    )


def test_bcache_has_blocks_of_4_kib_and_lets_nothing_pass() -> None:
    one = planned({"layout": "ebs", "cache": "bcache-writethrough"})
    texts = {
        step.path.rsplit("/", 1)[1]: step.text
        for step in one.steps
        if not isinstance(step, Run) and hasattr(step, "text")
    }
    assert "--block 4k" in commands(one)[0]
    assert "--writeback" not in commands(one)[0]
    assert texts["cache_mode"] == "writethrough"
    assert texts["sequential_cutoff"] == texts["congested_read_threshold_us"] == "0"
    assert "--writeback" in commands(planned({"layout": "ebs", "cache": "bcache-writeback"}))[0]


def test_read_ahead_and_file_system_are_parameters() -> None:
    one = planned({"layout": "ebs", "file_system": "ext4", "read_ahead_kib": 16})
    assert "blockdev --setra 32 /dev/nvme1n1" in commands(one)
    assert commands(one)[-1] == "mount -t ext4 -o noatime /dev/nvme1n1 /mnt/troop-data"
    assert "mkfs.ext4" in one.packages
    assert "blockdev" not in " ".join(commands(planned({"layout": "ebs"})))


MISSING = [
    ({"layout": "ebs"}, [root()], "1 volume besides the root volume, but the node has none"),
    ({"layout": "ebs"}, [root(), ebs(1), ebs(2)], "/dev/nvme1n1, /dev/nvme2n1"),
    ({"layout": "ebs-raid0"}, [root(), ebs(1), ebs(2), ebs(3)], "4 volumes .* but the node has .*nvme3n1: change"),
    ({"layout": "ebs", "cache": "dm-writecache"}, [root(), ebs(1)], "no instance store: choose a type"),
    ({"layout": "instance-store"}, [root(), ebs(1)], "needs 1 disk of the instance store, but the node has none"),
    ({"layout": "instance-store-raid0"}, [root(), SSD3[0]], "needs 2 disks .* has /dev/nvme10n1"),
    ({"layout": "instance-store", "cache": "bcache-writeback"}, [root(), SSD3[0]], "besides the cache's"),
    ({"layout": "instance-store-raid0", "cache": "bcache-writeback"}, [root(), *SSD3[:2]], "besides the cache's"),
    ({"layout": "ebs", "cache": "dm-writecache", "cache_gib": 301}, [root(), ebs(1), SSD3[0]], "has 300 GiB"),
    ({"layout": "ebs", "cache": "bcache-writeback", "cache_gib": 9}, [root(), ebs(1), SSD3[0]], "must be 0"),
]


@pytest.mark.parametrize(("parameters", "disks", "message"), MISSING)
def test_nothing_else_is_planned_if_a_disk_is_missing(
    parameters: dict[str, Any], disks: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(DiskError, match=message):
        planned(parameters, disks)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"layout": "tape"}, "layout is tape: must be one of root, ebs"),
        ({"cache": "lru"}, "cache is lru: must be one of none, bcache-writethrough"),
        ({"file_system": "zfs"}, "must be one of xfs, ext4"),
        ({"cache_block_kib": 16}, "from 32"),
        ({"cache_block_kib": 48}, "a multiple of 32"),
        ({"chunk_kib": 100}, "a power of 2"),
        ({"chunk_kib": True}, "a whole number"),
        ({"read_ahead_kib": -2}, "from -1"),
        ({"layout": "ebs-raid0", "volumes": 1}, "at least 2"),
    ],
)
def test_bad_parameters_are_refused_with_what_is_allowed(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(DiskError, match=message):
        layout_of(parameters)


def test_output_that_lsblk_does_not_print_is_refused() -> None:
    with pytest.raises(DiskError, match="cannot read the output of lsblk"):
        parse("lsblk: not found")
