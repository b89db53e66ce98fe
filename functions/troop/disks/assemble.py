"""Assembles a layout on this node, or finds it assembled; checks it; and takes nothing that is not its own.

    place = assemble(parameters, Path(os.environ["TROOP_SHARED"]))

Parameters: ``layout``, ``cache``, ``volumes``, ``file_system``, ``chunk_kib``, ``cache_block_kib``, ``cache_gib``,
``origin_gib``, ``read_ahead_kib``, and ``system``, whether the node may be changed. :mod:`troop.disks.layout` has the
allowed values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from troop.disks import check, plan
from troop.disks.devices import LSBLK, Choice, Device, choose, disks_below, in_use, parse
from troop.disks.errors import DiskError
from troop.disks.layout import DEFAULT_READ_AHEAD, Layout, layout_of
from troop.disks.machine import Machine

RECORD = "disks.json"
"""File in the folder that phases share: the disks that belong to the benchmark, and the layout on them."""
FOLDER = "data"
ORIGIN_FILE = "origin.img"
MEMORY_FILE_SYSTEMS = ("tmpfs", "ramfs")


@dataclass(frozen=True)
class Place:
    """Where the data is.

    Attributes:
        folder: for the benchmark's files.
        device: the one with the file system; empty if the node may not be changed.
        disks: the bottom devices.
    """

    folder: Path
    device: str = ""
    disks: tuple[str, ...] = ()


def assemble(parameters: Mapping[str, Any], shared: Path, machine: Machine | None = None) -> Place:
    """Assembles the layout of the parameters. Leaves it as it is if an earlier call has completed it.

    Raises:
        DiskError: something is missing, a disk has content of somebody else, or the result is not the layout.
    """
    machine = machine or Machine()
    layout = layout_of(parameters)
    if layout.in_folder:
        return _in_folder(layout, bool(parameters.get("system", True)), shared / FOLDER, machine)
    if not parameters.get("system", True):
        raise DiskError(f"layout is {layout}: it formats disks, which requires parameters.system: true")
    choice, planned = _planned(layout, shared, machine)
    machine.install(planned.packages)
    machine.load(planned.modules, planned.targets)
    record = _Record.read(shared / RECORD)
    if record.layout == asdict(layout) and not check.differences(planned, facts(machine)):
        print(f"{layout}: complete since an earlier script")
        return _place(planned)
    _clear(record, machine)
    choice, planned = _planned(layout, shared, machine)
    _refuse_content(choice, record, machine)
    _Record(tuple({*record.disks, *(disk.identity for disk in choice.all)})).write(shared / RECORD)
    machine.perform(planned.steps)
    machine.settle()
    place = verify(planned, machine)
    _Record(tuple(disk.identity for disk in choice.all), asdict(layout)).write(shared / RECORD)
    return place


def verified(parameters: Mapping[str, Any], shared: Path, machine: Machine | None = None) -> Place:
    """Returns the place of a layout that an earlier phase has assembled. Changes nothing.

    Raises:
        DiskError: the node no longer has exactly this layout.
    """
    machine = machine or Machine()
    layout = layout_of(parameters)
    if layout.in_folder:
        return _in_folder(layout, False, shared / FOLDER, machine)
    return verify(_planned(layout, shared, machine)[1], machine)


def verify(planned: plan.Plan, machine: Machine) -> Place:
    """Returns the place of a plan's layout.

    Raises:
        DiskError: the node differs from the plan; with all differences.
    """
    if problems := check.differences(planned, facts(machine)):
        raise DiskError(f"the layout is not {planned.layout}: {'; '.join(problems)}")
    print(f"{planned.layout}: {planned.device} on {', '.join(sorted(planned.disks))} at {plan.MOUNT}")
    return _place(planned)


def facts(machine: Machine) -> check.Facts:
    """Reads what the kernel says about the mounted layout."""
    devices = parse(machine.output(LSBLK))
    top, _ = disks_below(devices, plan.MOUNT)
    texts = {path: machine.text(path) for path in check.KERNEL_FILES}
    has_table = top is not None and top.path.startswith("/dev/mapper/")
    table = machine.output(check.TABLE_COMMAND).strip() if has_table else ""
    sectors = machine.output(["blockdev", "--getra", top.path]).strip() if top else "0"
    return check.Facts(devices, texts, table, int(sectors) // 2, mounted_type(machine.text("/proc/mounts"), plan.MOUNT))


def mounted_type(mounts: str, folder: str) -> str:
    """Returns the type of the file system at a folder, from the content of ``/proc/mounts``; empty if there is none."""
    types = [words[2] for words in map(str.split, mounts.splitlines()) if len(words) > 2 and words[1] == folder]
    return types[-1] if types else ""


def instance_store(parameters: Mapping[str, Any], machine: Machine | None = None) -> list[str]:
    """Returns the paths of a layout's instance-store disks, for their preconditioning before it is assembled.

    Raises:
        DiskError: a disk is missing, or already in use.
    """
    machine = machine or Machine()
    choice = choose(layout_of(parameters), parse(machine.output(LSBLK)))
    disks = [disk for disk in choice.all if disk.model != "Amazon Elastic Block Store"]
    _refuse_content(Choice(tuple(disks)), _Record(), machine)
    return [disk.path for disk in disks]


@dataclass(frozen=True)
class _Record:
    """What earlier scripts of this run have done on this node.

    Attributes:
        disks: identities of disks that they have written to.
        layout: the complete layout, if it is complete.
    """

    disks: tuple[str, ...] = ()
    layout: Mapping[str, Any] | None = None

    @classmethod
    def read(cls, path: Path) -> _Record:
        if not path.exists():
            return cls()
        document = json.loads(path.read_text(encoding="utf-8"))
        return cls(tuple(document["disks"]), document["layout"])

    def write(self, path: Path) -> None:
        partial = path.with_suffix(".part")
        partial.write_text(json.dumps(asdict(self)), encoding="utf-8")
        partial.replace(path)


def _planned(layout: Layout, shared: Path, machine: Machine) -> tuple[Choice, plan.Plan]:
    choice = choose(layout, parse(machine.output(LSBLK)))
    return choice, plan.plan(layout, choice, str(shared / ORIGIN_FILE))


def _place(planned: plan.Plan) -> Place:
    return Place(Path(plan.MOUNT), planned.device, tuple(sorted(planned.disks)))


def _clear(record: _Record, machine: Machine) -> None:
    """Takes apart what an earlier script has left."""
    if record.disks:
        devices = parse(machine.output(LSBLK))
        machine.perform([*plan.undo(device for device in devices if device.identity in record.disks)])
        machine.settle()


def _refuse_content(choice: Choice, record: _Record, machine: Machine) -> None:
    for disk in choice.all:
        if use := in_use(disk):
            raise DiskError(f"{disk.path} is in use: {use}. It stays as it is; give the node empty disks")
        if disk.identity not in record.disks and (signatures := _signatures(disk, machine)):
            raise DiskError(
                f"{disk.path} has content that this benchmark did not write ({signatures}). It stays as it is; give "
                f"the node empty disks, or clear it yourself: wipefs --all {disk.path}"
            )


def _signatures(disk: Device, machine: Machine) -> str:
    """Returns the kinds of partition tables, file systems and arrays on a disk; empty if there are none."""
    printed = machine.output(["wipefs", "--no-act", "--noheadings", "--output", "TYPE", disk.path])
    return ", ".join(sorted(set(printed.split())))


def _in_folder(layout: Layout, may_change: bool, folder: Path, machine: Machine) -> Place:
    folder.mkdir(parents=True, exist_ok=True)
    words = machine.output(["findmnt", "--noheadings", "--output", "SOURCE,FSTYPE", "--target", str(folder)]).split()
    source, kind = (words[0], words[1]) if len(words) == 2 else ("", "")
    if kind in MEMORY_FILE_SYSTEMS:
        raise DiskError(f"{folder} is in memory ({kind}), not on the root volume")
    if may_change:
        if kind != layout.file_system:
            raise DiskError(f"the root volume has {kind or 'no known file system'}: file_system must be that")
        if layout.read_ahead_kib != DEFAULT_READ_AHEAD:
            machine.output(["blockdev", "--setra", str(layout.read_ahead_kib * 2), source])
        print(f"{layout}: {source} ({kind}) at {folder}")
        return Place(folder, source)
    return Place(folder)
