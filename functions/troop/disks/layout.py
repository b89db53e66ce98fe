"""Reads the layout of a node's storage from a benchmark's parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from troop.disks.errors import DiskError

ROOT, EBS, EBS_RAID0, INSTANCE, INSTANCE_RAID0 = "root", "ebs", "ebs-raid0", "instance-store", "instance-store-raid0"
LAYOUTS = (ROOT, EBS, EBS_RAID0, INSTANCE, INSTANCE_RAID0)
STRIPED = (EBS_RAID0, INSTANCE_RAID0)

BCACHE, DM_CACHE, DM_WRITECACHE = "bcache", "dm-cache", "dm-writecache"
WRITETHROUGH, WRITEBACK = "writethrough", "writeback"
CACHES: dict[str, tuple[str, str]] = {
    "none": ("", ""),
    "bcache-writethrough": (BCACHE, WRITETHROUGH),
    "bcache-writeback": (BCACHE, WRITEBACK),
    "dm-cache-writethrough": (DM_CACHE, WRITETHROUGH),
    "dm-cache-writeback": (DM_CACHE, WRITEBACK),
    "dm-writecache": (DM_WRITECACHE, WRITEBACK),
}
"""The driver and the mode by the value of the parameter ``cache``."""

FILE_SYSTEMS = ("xfs", "ext4")
DEFAULT_READ_AHEAD = -1
"""The kernel's own read-ahead."""
LEAST_DM_CACHE_BLOCK_KIB, MOST_DM_CACHE_BLOCK_KIB = 32, 1024 * 1024
MOST_KIB = 1024 * 1024
MOST_GIB = 64 * 1024
MOST_VOLUMES = 11


@dataclass(frozen=True)
class Layout:
    """What a node's storage must be.

    Attributes:
        kind: one of ``LAYOUTS``.
        cache: a key of ``CACHES``.
        volumes: the number of EBS volumes of ``ebs-raid0``, besides the root volume.
        chunk_kib: of a stripe in RAID-0.
        cache_block_kib: of dm-cache.
        cache_gib: the part of the cache disk in use; 0 for all of it.
        origin_gib: the size of the file below a cache for the root volume.
        read_ahead_kib: of the device with the file system; -1 for the kernel's.
    """

    kind: str
    cache: str = "none"
    volumes: int = 1
    file_system: str = "xfs"
    chunk_kib: int = 512
    cache_block_kib: int = LEAST_DM_CACHE_BLOCK_KIB
    cache_gib: int = 0
    origin_gib: int = 64
    read_ahead_kib: int = DEFAULT_READ_AHEAD

    @property
    def driver(self) -> str:
        """The cache's driver; empty without a cache."""
        return CACHES[self.cache][0]

    @property
    def mode(self) -> str:
        return CACHES[self.cache][1]

    @property
    def striped(self) -> bool:
        return self.kind in STRIPED

    @property
    def in_folder(self) -> bool:
        """Whether the data is a folder of the root volume, so that there is nothing to assemble."""
        return self.kind == ROOT and not self.cached

    @property
    def cached(self) -> bool:
        return bool(self.driver)

    def __str__(self) -> str:
        return f"{self.kind}, cache {self.cache}"


def layout_of(parameters: Mapping[str, Any]) -> Layout:
    """Returns the layout that a benchmark's parameters describe. Parameters that are missing have their defaults.

    Raises:
        DiskError: a value is not allowed; the message has the allowed ones.
    """
    layout = Layout(
        kind=_one_of(parameters, "layout", LAYOUTS, ROOT),
        cache=_one_of(parameters, "cache", tuple(CACHES), "none"),
        volumes=_number(parameters, "volumes", 1, 1, MOST_VOLUMES),
        file_system=_one_of(parameters, "file_system", FILE_SYSTEMS, "xfs"),
        chunk_kib=_number(parameters, "chunk_kib", 512, 4, MOST_KIB),
        cache_block_kib=_number(parameters, "cache_block_kib", 32, LEAST_DM_CACHE_BLOCK_KIB, MOST_DM_CACHE_BLOCK_KIB),
        cache_gib=_number(parameters, "cache_gib", 0, 0, MOST_GIB),
        origin_gib=_number(parameters, "origin_gib", 64, 1, MOST_GIB),
        read_ahead_kib=_number(parameters, "read_ahead_kib", DEFAULT_READ_AHEAD, DEFAULT_READ_AHEAD, MOST_KIB),
    )
    if layout.kind == EBS_RAID0 and layout.volumes < 2:
        raise DiskError(f"volumes is {layout.volumes}: {EBS_RAID0} must have at least 2, in the file's fleet and here")
    if layout.chunk_kib & (layout.chunk_kib - 1):
        raise DiskError(f"chunk_kib is {layout.chunk_kib}: must be a power of 2")
    if layout.cache_block_kib % LEAST_DM_CACHE_BLOCK_KIB:
        raise DiskError(f"cache_block_kib is {layout.cache_block_kib}: must be a multiple of 32")
    return layout


def _one_of(parameters: Mapping[str, Any], key: str, allowed: tuple[str, ...], default: str) -> str:
    value = parameters.get(key, default)
    if value not in allowed:
        raise DiskError(f"{key} is {value}: must be one of {', '.join(allowed)}")
    return str(value)


def _number(parameters: Mapping[str, Any], key: str, default: int, least: int, most: int) -> int:
    value = parameters.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise DiskError(f"{key} is {value}: must be a whole number from {least} to {most}")
    return value
