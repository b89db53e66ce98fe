"""Reads how often the instance exceeded its network allowances, from the driver of its network interfaces (ENA).

It asks the kernel as the program ``ethtool -S`` does, which an image need not contain. Interfaces of other drivers do
not report these counters.
"""

from __future__ import annotations

import fcntl
import socket
import struct
from array import array
from pathlib import Path
from typing import Any, Callable

from troop.measure.devices import INTERFACE
from troop.measure.summary import NETWORK_EXCEEDED

NAMES = dict(
    zip(
        (
            "bw_in_allowance_exceeded",
            "bw_out_allowance_exceeded",
            "pps_allowance_exceeded",
            "conntrack_allowance_exceeded",
            "linklocal_allowance_exceeded",
        ),
        NETWORK_EXCEEDED,
    )
)
"""The driver's names of the counters."""

SIOCETHTOOL = 0x8946
GSTRINGS, GSTATS, GSSET_INFO = 0x1B, 0x1D, 0x37
SS_STATS = 1
"""The set of strings that names the statistics."""
STRING = 32
"""Bytes of a name."""
HEADER = 12
"""Bytes before the names."""
RESERVE = 1024
"""Statistics for which there is more room: the kernel writes as many as the driver has, even if queues were added."""

Ioctl = Callable[[int, int, Any], Any]
Counters = dict[str, int]


class EthtoolError(OSError):
    """The interface has no such counters; the message says why."""


class Interface:
    """The statistics of one network interface.

    Raises:
        OSError: the interface does not report the allowances.
    """

    def __init__(self, name: str, fd: int, ioctl: Ioctl = fcntl.ioctl) -> None:
        self.name, self._fd, self._ioctl = name, fd, ioctl
        self._open()

    def _open(self) -> None:
        self._count = self._count_of_statistics()
        names = self._names()
        self._places = {NAMES[name]: place for place, name in enumerate(names) if name in NAMES}
        if not self._places:
            raise EthtoolError(f"the driver of {self.name} does not report network allowances")
        self._buffer = array("Q", bytes(8 * (1 + 2 * self._count + RESERVE)))

    def read(self) -> Counters:
        """Returns the counters since boot, by name of a series.

        Raises:
            OSError: the interface is gone.
        """
        struct.pack_into("=II", self._buffer, 0, GSTATS, self._count)
        self._ask(self._buffer)
        _, count = struct.unpack_from("=II", self._buffer, 0)
        if count != self._count:  # its queues have changed, so the places have, too
            self._open()
            return self.read()
        return {name: self._buffer[1 + place] for name, place in self._places.items()}

    def _count_of_statistics(self) -> int:
        # struct ethtool_sset_info: command, reserved, mask of the sets, one number for each set that exists
        buffer = array("B", struct.pack("=IIQI", GSSET_INFO, 0, 1 << SS_STATS, 0))
        self._ask(buffer)
        _, _, mask, count = struct.unpack("=IIQI", buffer.tobytes())
        return int(count) if mask else 0

    def _names(self) -> list[str]:
        # struct ethtool_gstrings: command, set, number of names, names of 32 bytes
        buffer = array("B", bytes(HEADER + STRING * (2 * self._count + RESERVE)))
        struct.pack_into("=III", buffer, 0, GSTRINGS, SS_STATS, self._count)
        self._ask(buffer)
        count = min(struct.unpack_from("=III", buffer, 0)[2], self._count)
        raw = buffer.tobytes()
        names = (raw[HEADER + STRING * n : HEADER + STRING * (n + 1)] for n in range(count))
        return [name.split(b"\0", 1)[0].decode("ascii", "replace") for name in names]

    def _ask(self, buffer: array[int]) -> None:
        # struct ifreq: a name of 16 bytes, then a union of 24, here a pointer
        request = struct.pack("16sP16x", self.name.encode(), buffer.buffer_info()[0])
        self._ioctl(self._fd, SIOCETHTOOL, request)


class NetworkLimits:
    """The allowances of all network interfaces of this node.

    Attributes:
        problem: why no interface reports them; None if one does.
    """

    def __init__(self, classes: Path = Path("/sys/class/net"), ioctl: Ioctl = fcntl.ioctl) -> None:
        self._socket: socket.socket | None = None
        self._interfaces: list[Interface] = []
        self.problem: str | None = "there is no network interface"
        try:
            names = sorted(path.name for path in classes.iterdir() if INTERFACE.fullmatch(path.name))
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        except OSError as error:
            self.problem = str(error)
            return
        for name in names:
            try:
                self._interfaces.append(Interface(name, self._socket.fileno(), ioctl))
                self.problem = None
            except OSError as error:
                if not self._interfaces:
                    self.problem = str(error)

    def read(self) -> dict[str, Counters] | None:
        """Returns the counters by interface; None if none reports them."""
        counters: dict[str, Counters] = {}
        for interface in self._interfaces:
            try:
                counters[interface.name] = interface.read()
            except OSError:  # detached meanwhile
                continue
        return counters or None

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
