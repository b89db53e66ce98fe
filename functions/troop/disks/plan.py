"""Plans the commands that assemble a layout, and those that take it apart. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from troop.disks.devices import Choice, Device
from troop.disks.errors import DiskError
from troop.disks.layout import BCACHE, DEFAULT_READ_AHEAD, DM_CACHE, DM_WRITECACHE, WRITEBACK, Layout
from troop.disks.steps import Step, Wait, Write, run

MOUNT = "/mnt/troop-data"
ARRAY, LOOP, BCACHE_DEVICE = "/dev/md0", "/dev/loop100", "/dev/bcache0"
META, FAST, CACHED = "troop-meta", "troop-fast", "troop-cached"
SECTOR = 512
KIB, MIB, GIB = 1024, 1024**2, 1024**3

META_BASE, META_OF_BLOCK = 4 * MIB, 16
"""Bytes of dm-cache's metadata: the kernel's documentation asks for 4 MiB and 16 bytes for each block."""
BCACHE_SYSFS = "/sys/block/bcache0/bcache"
WRITECACHE_BLOCK = 4096


@dataclass(frozen=True)
class Plan:
    """How a layout is assembled.

    Attributes:
        device: the one with the file system.
        disks: the paths of all bottom devices, which must carry the mounted file system.
        modules: of the kernel.
        targets: names of device-mapper's targets.
        packages: the distribution's package by each command that it provides.
    """

    layout: Layout
    device: str
    disks: frozenset[str]
    modules: tuple[str, ...]
    targets: tuple[str, ...]
    packages: dict[str, str]
    steps: tuple[Step, ...]
    undo: tuple[Step, ...]


def plan(layout: Layout, choice: Choice, file: str) -> Plan:
    """Plans a layout that has a file system of its own.

    Args:
        file: the path of the file below a cache for the root volume, which the loop device presents.

    Raises:
        DiskError: the cache disk is smaller than the part to use.
    """
    origin, modules = _origin_of(layout, choice)
    steps = [*_origin_steps(layout, choice, origin, file)]
    packages = {"lsblk": "util-linux", "wipefs": "util-linux"}
    packages.update({"mkfs.xfs": "xfsprogs"} if layout.file_system == "xfs" else {"mkfs.ext4": "e2fsprogs"})
    if layout.striped:
        packages["mdadm"] = "mdadm"
    device = origin
    targets: tuple[str, ...] = ()
    if layout.cached:
        if choice.cache is None:
            raise DiskError(f"cache is {layout.cache}, but there is no disk for it")
        device, more, targets, cache_steps = _cache(layout, origin, choice.cache)
        modules = (*modules, *more)
        packages.update({"make-bcache": "bcache-tools"} if layout.driver == BCACHE else {"dmsetup": "device-mapper"})
        steps += cache_steps
    steps += _file_system(layout, device)
    disks = frozenset([*(disk.path for disk in choice.all), *([] if choice.origin else [LOOP])])
    return Plan(layout, device, disks, modules, targets, packages, tuple(steps), tuple(undo(choice.all)))


def undo(disks: Iterable[Device]) -> Iterator[Step]:
    """Plans to take apart what an earlier script has left on its own disks, complete or not."""
    yield run("umount", MOUNT, may_fail=True)
    yield Write(f"{BCACHE_SYSFS}/stop", "1", may_fail=True)
    for name in (CACHED, META, FAST):
        yield run("dmsetup", "remove", "--retry", name, may_fail=True)
    yield run("mdadm", "--stop", ARRAY, may_fail=True)
    yield run("losetup", "--detach", LOOP, may_fail=True)
    # A set of bcache holds its disks until it is unregistered, also after the device is gone.
    yield run("sh", "-c", "for set in /sys/fs/bcache/*-*/unregister; do echo 1 > $set; done", may_fail=True)
    yield run("udevadm", "settle", "--timeout=30", may_fail=True)
    for disk in disks:
        yield run("wipefs", "--all", "--quiet", disk.path)


def _origin_of(layout: Layout, choice: Choice) -> tuple[str, tuple[str, ...]]:
    """Returns the device of the data below a cache, and its modules."""
    if not choice.origin:
        return LOOP, ("loop",)
    return (ARRAY, ("raid0",)) if layout.striped else (choice.origin[0].path, ())


def _origin_steps(layout: Layout, choice: Choice, origin: str, file: str) -> Iterator[Step]:
    if origin == LOOP:
        yield run("rm", "-f", file)
        yield run("fallocate", "--length", f"{layout.origin_gib}GiB", file)
        yield run("losetup", "--direct-io=on", LOOP, file)
    elif layout.striped:
        disks = [disk.path for disk in choice.origin]
        chunk = f"--chunk={layout.chunk_kib}K"
        count = f"--raid-devices={len(disks)}"
        yield run("mdadm", "--create", ARRAY, "--run", "--level=0", chunk, count, *disks)
    if not choice.origin or layout.striped:  # below the superblocks of an earlier layout is its file system
        yield run("wipefs", "--all", "--quiet", origin)


def _cache(layout: Layout, origin: str, disk: Device) -> tuple[str, tuple[str, ...], tuple[str, ...], list[Step]]:
    """Returns the cached device, modules, targets and steps."""
    size = layout.cache_gib * GIB or disk.size
    if size > disk.size:
        raise DiskError(
            f"cache_gib is {layout.cache_gib}, but {disk.path} has {disk.size // GIB} GiB: must be at most that"
        )
    if layout.driver == DM_CACHE:
        return (
            f"/dev/mapper/{CACHED}",
            ("dm-cache", "dm-cache-smq"),
            ("cache",),
            [*_dm_cache(layout, origin, disk, size)],
        )
    if layout.driver == DM_WRITECACHE:
        return f"/dev/mapper/{CACHED}", ("dm-writecache",), ("writecache",), [*_writecache(origin, disk, size)]
    if layout.cache_gib:
        raise DiskError("cache_gib is set, but bcache uses a whole disk: must be 0")
    return BCACHE_DEVICE, ("bcache",), (), [*_bcache(layout, origin, disk)]


def _dm_cache(layout: Layout, origin: str, disk: Device, size: int) -> Iterator[Step]:
    block = layout.cache_block_kib * KIB
    meta = -(-(META_BASE + META_OF_BLOCK * (size // block)) // MIB) * MIB
    fast = (size - meta) // block * block
    if fast <= 0:
        raise DiskError(f"{disk.path} is too small for a cache with blocks of {layout.cache_block_kib} KiB")
    yield _dm(META, f"0 {meta // SECTOR} linear {disk.path} 0")
    yield _dm(FAST, f"0 {fast // SECTOR} linear {disk.path} {meta // SECTOR}")
    # Metadata that begins with zeros is created, and anything else would be read.
    yield run("dd", "if=/dev/zero", f"of=/dev/mapper/{META}", "bs=4096", "count=1", "oflag=direct")
    names = f"/dev/mapper/{META} /dev/mapper/{FAST} {origin}"
    yield _dm(CACHED, f"0 {{sectors:{origin}}} cache {names} {block // SECTOR} 1 {layout.mode} smq 0")


def _writecache(origin: str, disk: Device, size: int) -> Iterator[Step]:
    yield _dm(FAST, f"0 {size // SECTOR} linear {disk.path} 0")
    yield run("dd", "if=/dev/zero", f"of=/dev/mapper/{FAST}", "bs=4096", "count=1", "oflag=direct")
    yield _dm(CACHED, f"0 {{sectors:{origin}}} writecache s {origin} /dev/mapper/{FAST} {WRITECACHE_BLOCK} 0")


def _dm(name: str, table: str) -> Step:
    return run("dmsetup", "create", name, "--table", table)


def _bcache(layout: Layout, origin: str, disk: Device) -> Iterator[Step]:
    mode = ["--writeback"] if layout.mode == WRITEBACK else []
    yield run("make-bcache", "--block", "4k", "--bucket", "512k", *mode, "--bdev", origin, "--cache", disk.path)
    for path in (disk.path, origin):  # udev may have been faster, and the kernel then refuses the second time
        yield Write("/sys/fs/bcache/register", path, may_fail=True)
    yield Wait(BCACHE_DEVICE)
    yield Wait(f"{BCACHE_SYSFS}/cache")
    yield Write(f"{BCACHE_SYSFS}/cache_mode", layout.mode)
    # Otherwise bcache sends long reads and writes, and all of them while the cache disk is busy, past the cache.
    yield Write(f"{BCACHE_SYSFS}/sequential_cutoff", "0")
    yield Write(f"{BCACHE_SYSFS}/cache/congested_read_threshold_us", "0")
    yield Write(f"{BCACHE_SYSFS}/cache/congested_write_threshold_us", "0")


def _file_system(layout: Layout, device: str) -> Iterator[Step]:
    if layout.file_system == "xfs":
        yield run("mkfs.xfs", "-f", "-q", device)
    else:  # without these options, ext4 would write its tables while the benchmark measures
        yield run("mkfs.ext4", "-F", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", device)
    if layout.read_ahead_kib != DEFAULT_READ_AHEAD:
        yield run("blockdev", "--setra", str(layout.read_ahead_kib * KIB // SECTOR), device)
    yield run("mkdir", "-p", MOUNT)
    yield run("mount", "-t", layout.file_system, "-o", "noatime", device, MOUNT)
