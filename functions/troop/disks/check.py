"""Checks that what is mounted is exactly the layout of the parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from troop.disks.devices import Device, disks_below
from troop.disks.layout import BCACHE, DEFAULT_READ_AHEAD, DM_CACHE, DM_WRITECACHE
from troop.disks.plan import ARRAY, BCACHE_SYSFS, CACHED, MOUNT, Plan

ARRAY_SYSFS = "/sys/block/md0/md"
KERNEL_FILES = (
    f"{ARRAY_SYSFS}/level",
    f"{ARRAY_SYSFS}/chunk_size",
    f"{BCACHE_SYSFS}/cache_mode",
    f"{BCACHE_SYSFS}/state",
)
TABLE_COMMAND = ("dmsetup", "table", CACHED)


@dataclass(frozen=True)
class Facts:
    """What the kernel says.

    Attributes:
        devices: from lsblk.
        texts: contents of ``KERNEL_FILES`` that exist, by path.
        table: of the cached device of device-mapper; empty if there is none.
        read_ahead_kib: of the mounted device.
        mounted_type: the type of the file system at ``MOUNT``.
    """

    devices: Sequence[Device]
    texts: Mapping[str, str] = field(default_factory=dict)
    table: str = ""
    read_ahead_kib: int = 0
    mounted_type: str = ""


def differences(plan: Plan, facts: Facts) -> list[str]:
    """Returns a sentence for each difference between the plan and the node; none if the node is as planned."""
    return [*_differences(plan, facts)]


def _differences(plan: Plan, facts: Facts) -> Iterator[str]:
    layout = plan.layout
    top, below = disks_below(facts.devices, MOUNT)
    if top is None:
        yield f"nothing is mounted at {MOUNT}"
        return
    if top.path != plan.device:
        yield f"{top.path} is mounted at {MOUNT} instead of {plan.device}"
    if below != plan.disks:
        yield f"{MOUNT} is on {', '.join(sorted(below))} instead of {', '.join(sorted(plan.disks))}"
    if facts.mounted_type != layout.file_system:
        yield f"the file system is {facts.mounted_type or 'unknown'} instead of {layout.file_system}"
    if layout.read_ahead_kib not in (DEFAULT_READ_AHEAD, facts.read_ahead_kib):
        yield f"the read-ahead is {facts.read_ahead_kib} KiB instead of {layout.read_ahead_kib} KiB"
    if layout.striped:
        level, chunk = (facts.texts.get(f"{ARRAY_SYSFS}/{name}", "") for name in ("level", "chunk_size"))
        if level != "raid0":
            yield f"{ARRAY} is {level or 'no array'} instead of raid0"
        if chunk != str(layout.chunk_kib * 1024):
            yield f"{ARRAY} has chunks of {chunk or 'unknown'} bytes instead of {layout.chunk_kib * 1024}"
    words = facts.table.split()
    if layout.driver == DM_CACHE:
        yield from _cache_differences(words, layout.mode, layout.cache_block_kib * 2)
    elif layout.driver == DM_WRITECACHE and words[2:4] != ["writecache", "s"]:
        yield f"{CACHED} is {words[2] if len(words) > 2 else 'no device'} instead of writecache"
    elif layout.driver == BCACHE:
        modes, state = (facts.texts.get(f"{BCACHE_SYSFS}/{name}", "") for name in ("cache_mode", "state"))
        if f"[{layout.mode}]" not in modes:
            yield f"bcache's modes are {modes or 'unknown'} instead of [{layout.mode}]"
        if state not in ("clean", "dirty"):
            yield f"bcache's state is {state or 'unknown'}: the cache is not attached"


def _cache_differences(words: Sequence[str], mode: str, block_sectors: int) -> Iterator[str]:
    """Reads ``0 SECTORS cache META FAST ORIGIN BLOCK #FEATURES FEATURE... POLICY ...``, as dmsetup prints it."""
    if words[2:3] != ["cache"] or len(words) < 9:
        yield f"{CACHED} is {words[2] if len(words) > 2 else 'no device'} instead of cache"
        return
    count = int(words[7]) if words[7].isdecimal() else 0
    features, policy = words[8 : 8 + count], words[8 + count : 9 + count]
    if words[6] != str(block_sectors):
        yield f"the cache has blocks of {words[6]} sectors instead of {block_sectors}"
    if mode not in features:
        yield f"the cache is {' '.join(features)} instead of {mode}"
    if policy not in (["smq"], ["default"]):
        yield f"the cache's policy is {' '.join(policy) or 'unknown'} instead of smq"
