"""Describes block devices from the output of lsblk, and chooses those that a layout consists of."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from troop.disks.errors import DiskError
from troop.disks.layout import EBS, EBS_RAID0, INSTANCE, ROOT, Layout

LSBLK = (
    *("lsblk", "--json", "--bytes", "--paths"),
    *("--output", "NAME,TYPE,SIZE,MODEL,SERIAL,MOUNTPOINT,FSTYPE"),
)
EBS_MODEL, INSTANCE_STORE_MODEL = "Amazon Elastic Block Store", "Amazon EC2 NVMe Instance Storage"


@dataclass(frozen=True)
class Device:
    """A block device with all that is stacked upon it.

    Attributes:
        path: such as ``/dev/nvme1n1``.
        kind: lsblk's type: ``disk``, ``part``, ``raid0``, ``dm``, ``loop``.
        model, serial: of disks; empty if unknown. An EBS volume's serial is its id.
        mounted_at: empty if not mounted.
    """

    path: str
    kind: str
    size: int
    model: str = ""
    serial: str = ""
    mounted_at: str = ""
    file_system: str = ""
    children: tuple[Device, ...] = ()

    @property
    def identity(self) -> str:
        """What stays the same when the kernel numbers devices anew."""
        return self.serial or self.path

    def tree(self) -> Iterator[Device]:
        """Yields this device and all above it."""
        yield self
        for child in self.children:
            yield from child.tree()


def parse(output: str) -> list[Device]:
    """Returns the devices at the bottom, from the JSON that ``LSBLK`` prints.

    Raises:
        DiskError: the output is not that of lsblk.
    """
    try:
        return [_device(entry) for entry in json.loads(output)["blockdevices"]]
    except (ValueError, KeyError, TypeError) as error:
        raise DiskError(f"cannot read the output of lsblk: {error!r}") from error


def _device(entry: Mapping[str, Any]) -> Device:
    return Device(
        path=str(entry["name"]),
        kind=str(entry["type"]),
        size=int(entry["size"] or 0),
        model=str(entry.get("model") or "").strip(),
        serial=str(entry.get("serial") or "").strip(),
        mounted_at=str(entry.get("mountpoint") or ""),
        file_system=str(entry.get("fstype") or ""),
        children=tuple(_device(child) for child in entry.get("children") or ()),
    )


@dataclass(frozen=True)
class Choice:
    """The disks of a layout.

    Attributes:
        origin: those that hold the data, in the order of their names; none for the root volume.
        cache: the disk of the cache, if the layout has one.
    """

    origin: tuple[Device, ...]
    cache: Device | None = None

    @property
    def all(self) -> tuple[Device, ...]:
        return (*self.origin, self.cache) if self.cache else self.origin


def choose(layout: Layout, devices: Iterable[Device]) -> Choice:
    """Returns exactly the disks that a layout asks for.

    The cache is the last disk of the instance store; a layout of the instance store has the disks before it.

    Raises:
        DiskError: disks are missing, or there are more volumes than the layout has. The message names them.
    """
    disks = [device for device in devices if device.kind == "disk"]
    volumes = sorted((disk for disk in disks if disk.model == EBS_MODEL and not _is_root(disk)), key=_by_path)
    instance_store = sorted((disk for disk in disks if disk.model == INSTANCE_STORE_MODEL), key=_by_path)
    cache = None
    if layout.cached:
        if not instance_store:
            raise DiskError(
                f"cache is {layout.cache}, but this instance type has no instance store: choose a type with NVMe disks"
            )
        cache = instance_store.pop()
    if layout.kind == ROOT:
        return Choice((), cache)
    if layout.kind in (EBS, EBS_RAID0):
        count = 1 if layout.kind == EBS else layout.volumes
        if len(volumes) != count:
            raise DiskError(
                f"layout is {layout.kind}, with {_counted(count, 'volume')} besides the root volume, but the node has "
                f"{_listed(volumes)}: change the fleet's volumes or the parameter volumes"
            )
        return Choice(tuple(volumes), cache)
    least = 1 if layout.kind == INSTANCE else 2
    if len(instance_store) < least:
        besides = " besides the cache's" if cache else ""
        raise DiskError(
            f"layout is {layout.kind}, which needs {_counted(least, 'disk')} of the instance store{besides}, but the "
            f"node has {_listed(instance_store)}: choose another instance type"
        )
    return Choice(tuple(instance_store[:1] if layout.kind == INSTANCE else instance_store), cache)


def disks_below(devices: Iterable[Device], folder: str) -> tuple[Device | None, set[str]]:
    """Returns the device that is mounted at a folder, and the paths of the bottom devices that carry it."""
    top, below = None, set()
    for device in devices:
        for one in device.tree():
            if one.mounted_at == folder:
                top = one
                below.add(device.path)
    return top, below


def in_use(device: Device) -> str:
    """Says what is on a device according to the kernel: partitions, arrays, a mount. Empty if there is nothing."""
    if device.mounted_at:
        return f"it is mounted at {device.mounted_at}"
    if device.children:
        return f"it carries {_listed(device.children)}"
    return ""


def _is_root(disk: Device) -> bool:
    return any(device.mounted_at == "/" for device in disk.tree())


def _by_path(device: Device) -> tuple[int, str]:
    return len(device.path), device.path


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _listed(devices: Iterable[Device]) -> str:
    return ", ".join(device.path for device in devices) or "none"
