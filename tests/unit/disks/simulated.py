"""A node that behaves as the kernel does under the commands of a layout: it keeps what is stacked upon what."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from troop.disks.devices import EBS_MODEL, INSTANCE_STORE_MODEL, LSBLK
from troop.disks.errors import DiskError
from troop.disks.machine import Machine
from troop.disks.steps import Run, Step, Wait, Write

GIB = 1024**3


def ebs(number: int, size: int = 50) -> dict[str, Any]:
    return _disk(f"/dev/nvme{number}n1", EBS_MODEL, f"vol{number:017x}", size)


def instance_store(number: int, size: int = 300) -> dict[str, Any]:
    return _disk(f"/dev/nvme{number}n1", INSTANCE_STORE_MODEL, f"AWS{number:017X}", size)


def root() -> dict[str, Any]:
    part = {"name": "/dev/nvme0n1p1", "type": "part", "size": 8 * GIB, "mountpoint": "/", "fstype": "xfs"}
    return {**_disk("/dev/nvme0n1", EBS_MODEL, "vol00000000000000000", 8), "children": [part]}


def _disk(path: str, model: str, serial: str, size: int) -> dict[str, Any]:
    # lsblk pads models with blanks
    return {"name": path, "type": "disk", "size": size * GIB, "model": f"{model}   ", "serial": serial}


@dataclass
class Node(Machine):
    """Attributes:
    disks: as lsblk prints them, without what is stacked upon them.
    signatures: what wipefs reads, by path.
    stacks: the paths below each stacked device.
    lacks: commands without a package, and modules that the kernel does not have.
    breaks_at: a word in a command; the first command with it fails, as if the script were killed there.
    """

    disks: list[dict[str, Any]]
    signatures: dict[str, str] = field(default_factory=dict)
    stacks: dict[str, list[str]] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    mount: tuple[str, str, str] | None = None
    read_ahead: str = "256"
    lacks: frozenset[str] = frozenset()
    breaks_at: str = "nothing"
    root_type: str = "xfs"
    performed: list[str] = field(default_factory=list)

    def output(self, command: Sequence[str]) -> str:
        words = list(command)
        if tuple(words) == LSBLK:
            return json.dumps({"blockdevices": [self._entry(disk) for disk in self._bottom()]})
        if words[:2] == ["wipefs", "--no-act"]:
            return self.signatures.get(words[-1], "")
        if words[:2] == ["dmsetup", "targets"]:
            return "cache v2.2.0\nwritecache v1.6.0\nlinear v1.4.0\n"
        if words[:2] == ["dmsetup", "table"]:
            return self.tables[words[-1]]
        if words[:2] == ["blockdev", "--getra"]:
            return self.read_ahead
        if words[:2] == ["blockdev", "--setra"]:
            self.read_ahead = words[2]
        if words[0] == "findmnt":
            return f"/dev/nvme0n1p1 {self.root_type}\n"
        if words[0] in ("modprobe", "dnf") and self.lacks & set(words):
            raise DiskError(f"{' '.join(words)} failed with exit code 1: no such thing")
        return ""

    def text(self, path: str) -> str:
        if path == "/proc/mounts":
            return " ".join(self.mount) if self.mount else ""
        return self.texts.get(path, "")

    def has(self, command: str) -> bool:
        return command not in self.lacks

    def perform(self, steps: Sequence[Step]) -> None:
        for step in steps:
            try:
                self._simulate(step)
            except DiskError:
                if isinstance(step, Wait) or not step.may_fail:
                    raise

    def _simulate(self, step: Step) -> None:
        if isinstance(step, Run):
            words = list(step.command)
            if self.breaks_at in words:
                self.breaks_at = "nothing"
                raise DiskError("killed")
            self._command(words)
            self.performed.append(" ".join(words))
        elif isinstance(step, Write):
            self._write(step.path, step.text)

    def _write(self, path: str, text: str) -> None:
        if path.endswith("/stop"):
            self._remove("/dev/bcache0")
        if path.endswith("/cache_mode"):
            modes = ("writethrough", "writeback", "writearound", "none")
            self.texts[path] = " ".join(f"[{mode}]" if mode == text else mode for mode in modes)

    def _command(self, words: list[str]) -> None:
        below: Iterable[str]
        if words[0] == "mdadm" and words[1] == "--create":
            below = [word for word in words[2:] if word.startswith("/dev/nvme")]
            self._stack("/dev/md0", below, "linux_raid_member")
            chunk = next(int(word[8:-1]) for word in words if word.startswith("--chunk="))
            self.texts.update({"/sys/block/md0/md/level": "raid0", "/sys/block/md0/md/chunk_size": str(chunk * 1024)})
        elif words[0] == "mdadm":
            self._remove("/dev/md0")
        elif words[:2] == ["dmsetup", "create"]:
            self.tables[words[2]] = words[4]
            below = [word for word in words[4].split() if word.startswith("/dev/")]
            self._stack(f"/dev/mapper/{words[2]}", below, "")
        elif words[:2] == ["dmsetup", "remove"]:
            self._remove(f"/dev/mapper/{words[-1]}")
        elif words[0] == "make-bcache":
            if self.signatures.keys() & set(words):
                raise DiskError("already has a non-bcache superblock")
            self._stack("/dev/bcache0", [word for word in words if word.startswith("/dev/")], "bcache")
            self.texts["/sys/block/bcache0/bcache/state"] = "clean"
        elif words[0] == "losetup" and words[1] == "--detach":
            self._remove("/dev/loop100")
        elif words[0] == "losetup":
            self.stacks["/dev/loop100"] = []
        elif words[0].startswith("mkfs."):
            self.signatures[words[-1]] = words[0][5:]
        elif words[0] == "mount":
            self.mount = (words[-2], words[-1], words[2])
        elif words[0] == "umount":
            if self.mount is None:
                raise DiskError("not mounted")
            self.mount = None
        elif words[0] == "wipefs":
            if any(words[-1] in below for below in self.stacks.values()):
                raise DiskError(f"{words[-1]} is busy")
            self.signatures.pop(words[-1], None)
        elif words[0] == "blockdev":
            self.output(words)

    def _stack(self, path: str, below: Iterable[str], signature: str) -> None:
        if path in self.stacks:
            raise DiskError(f"{path} exists already")
        self.stacks[path] = list(below)
        for one in self.stacks[path]:
            if signature:
                self.signatures[one] = signature

    def _remove(self, path: str) -> None:
        if path not in self.stacks or (self.mount and self.mount[0] == path):
            raise DiskError(f"{path} does not exist, or is busy")
        if any(path in below for below in self.stacks.values()):
            raise DiskError(f"{path} is busy")
        del self.stacks[path]

    def _bottom(self) -> list[dict[str, Any]]:
        loops = [path for path in self.stacks if path.startswith("/dev/loop")]
        return [*self.disks, *({"name": path, "type": "loop", "size": GIB} for path in loops)]

    def _entry(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        path = entry["name"]
        above = [name for name, below in self.stacks.items() if path in below]
        children = [self._entry({"name": name, "type": "dm", "size": GIB}) for name in above]
        mounted = {"mountpoint": self.mount[1]} if self.mount and self.mount[0] == path else {}
        more = {"children": [*entry.get("children", []), *children]}
        return {"model": None, "serial": None, "mountpoint": None, **entry, **mounted, **more}
