"""Asks NVMe volumes of EBS what they are, and for how long their demand exceeded a limit of the volume or the instance.

It sends the volume two administrative commands of the NVMe standard, as AWS's own tool ``ebsnvme`` does; only root may.
The layouts are those that AWS publishes for its detailed performance statistics of EBS.
"""

from __future__ import annotations

import fcntl
import os
import re
import struct
from array import array
from pathlib import Path
from typing import Any, Callable

from troop.measure.summary import EBS_EXCEEDED

EBS_MODEL, INSTANCE_STORE_MODEL = "Amazon Elastic Block Store", "Amazon EC2 NVMe Instance Storage"

ADMIN_COMMAND = 0xC0484E41
"""The ioctl for an administrative command: ``_IOWR('N', 0x41, struct nvme_passthru_cmd)``."""
COMMAND = struct.Struct("=BBHIIIQQIIIIIIIIII")
"""The command: operation, flags, reserved, namespace, 2 and 3, metadata, address, lengths of both, 10 to 15, timeout
in milliseconds (0: the kernel's), result.
"""
GET_LOG_PAGE, IDENTIFY = 0x02, 0x06
PAGE = 4096
"""Bytes of an answer."""

STATISTICS = 0xD0
"""The log page with AWS's statistics."""
MAGIC = 0x3C23B510
"""The first number of that page, if it is of an EBS volume."""
FIELDS = struct.Struct("<II11Q")
"""Its beginning: magic, reserved, six totals of operations, bytes and times, four times over limits, queue length."""
FIRST_EXCEEDED = 8

VENDOR_SPECIFIC = 3072
"""The offset of the block device mapping's name in the answer to IDENTIFY."""
_DEVICE = re.compile(r"(?:/dev/)?((?:sd|xvd|vd)[a-z]+[0-9]*)")

NVME = re.compile(r"nvme\d+n\d+")

Ioctl = Callable[[int, int, Any], Any]
Counters = dict[str, int]


def exceeded(page: bytes) -> Counters:
    """Reads the microseconds over a limit since the volume was attached, by name of a series.

    Raises:
        ValueError: the page is not of an EBS volume.
    """
    if len(page) < FIELDS.size:
        raise ValueError(f"the page has {len(page)} bytes")
    values = FIELDS.unpack_from(page)
    if values[0] != MAGIC:
        raise ValueError("it is not of an EBS volume")
    return dict(zip(EBS_EXCEEDED, values[FIRST_EXCEEDED : FIRST_EXCEEDED + len(EBS_EXCEEDED)]))


def mapped_name(page: bytes) -> str | None:
    """Reads the device name that the volume has in the instance's block device mapping, such as ``/dev/sdf``; None if
    there is none.
    """
    raw = page[VENDOR_SPECIFIC : VENDOR_SPECIFIC + 32].split(b"\0", 1)[0].decode("ascii", "replace").strip()
    match = _DEVICE.fullmatch(raw)
    return f"/dev/{match[1]}" if match else None


def command(operation: int, address: int, ten: int, namespace: int) -> bytes:
    """Returns the command to read a page to an address of memory."""
    return COMMAND.pack(operation, 0, 0, namespace, 0, 0, 0, address, 0, PAGE, ten, 0, 0, 0, 0, 0, 0, 0)


class Volumes:
    """The EBS volumes of this node.

    Attributes:
        problem: why no volume reports its limits; None if one does.
    """

    def __init__(
        self, blocks: Path = Path("/sys/block"), files: Path = Path("/dev"), ioctl: Ioctl = fcntl.ioctl
    ) -> None:
        self._files, self._ioctl = files, ioctl
        self._names = [name for name in names_in(blocks) if NVME.fullmatch(name) and model(blocks, name) == EBS_MODEL]
        self.problem: str | None = None if self._names else "there is no NVMe volume of EBS"
        if self._names:
            self.read()

    def read(self) -> dict[str, Counters] | None:
        """Returns the microseconds over limits by volume; None if none reports them. A volume that once failed to
        answer is not asked again.
        """
        counters: dict[str, Counters] = {}
        for name in list(self._names):
            try:
                last_dword = PAGE // 4 - 1
                counters[name] = exceeded(self._page(name, GET_LOG_PAGE, STATISTICS | last_dword << 16, 1))
            except (OSError, ValueError) as error:
                self._names.remove(name)
                self.problem = f"{name}: {error}" if not self._names else self.problem
        return counters or None

    def mapped_name(self, name: str) -> str | None:
        """Returns a volume's device name in the block device mapping; None if it does not answer."""
        try:
            return mapped_name(self._page(name, IDENTIFY, 1, 0))
        except OSError:
            return None

    def _page(self, name: str, operation: int, ten: int, namespace: int) -> bytes:
        buffer = array("B", bytes(PAGE))
        # Opened for each command, so that nothing holds a volume that a script unmounts or detaches.
        fd = os.open(self._files / name, os.O_RDONLY)
        try:
            self._ioctl(fd, ADMIN_COMMAND, command(operation, buffer.buffer_info()[0], ten, namespace))
        finally:
            os.close(fd)
        return buffer.tobytes()


def names_in(blocks: Path) -> list[str]:
    """Returns the names of all block devices without partitions, ordered."""
    try:
        return sorted(path.name for path in blocks.iterdir())
    except OSError:
        return []


def model(blocks: Path, name: str) -> str:
    """Returns the model of a disk; "" if it is unknown."""
    try:
        return (blocks / name / "device" / "model").read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
