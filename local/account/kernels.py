"""Boots an instance as a real Linux kernel of its own, which is a process of this machine (User-Mode Linux).

Its root is the machine's own file system, so user data finds the same programs. Its folder ``shared`` is on a disk of
its own, with XFS as on Amazon Linux. It uses only the standard library.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from .network import GUEST_SIDE, HOST_SIDE, TAPS, Door

PACKAGES = {"linux.uml": "user-mode-linux", "mkfs.xfs": "xfsprogs", "modprobe": "kmod"}
"""Debian packages by their command."""
MODULES = Path("/usr/lib/uml/modules")
MEMORY_MIB = 512
DISK_GIB = 8
"""The size of a disk, which takes only the space of its content."""
_INIT = Path(__file__).resolve().parent / "kernel_init.sh"


def problem() -> str | None:
    """Says which programs are missing and how to install them; None if all exist."""
    lacking = [command for command in PACKAGES if shutil.which(command) is None]
    if not lacking:
        return None
    return f"{', '.join(lacking)} missing; on Debian: apt-get install -y {' '.join(map(PACKAGES.__getitem__, lacking))}"


def command(
    home: Path, address: str, environment: Mapping[str, str], doors: Sequence[Door], managed: bool = False
) -> list[str]:
    """Prepares an instance's folder, and returns the command that boots its kernel in its network.

    Args:
        home: the folder with its user data.
        environment: of the user data.
        managed: whether Systems Manager manages the instance: then inside/room.py runs its user data.
    """
    disk = home / "shared" / "disk.img"  # below the disk itself; what removes a node's files removes it, too
    disk.parent.mkdir(exist_ok=True)
    with disk.open("wb") as image:
        image.truncate(DISK_GIB << 30)
    modules = home / "kernel" / "lib" / "modules"
    modules.mkdir(parents=True, exist_ok=True)
    for version in MODULES.iterdir():
        if not (modules / version.name).exists():
            (modules / version.name).symlink_to(version)
    (home / "kernel" / "network").write_text(_network(address, doors), encoding="ascii")
    lines = (f"export {name}={shlex.quote(value)}\n" for name, value in environment.items())
    (home / "kernel" / "environment").write_text("".join(lines), encoding="utf-8")
    return [
        *("linux.uml", f"mem={MEMORY_MIB}M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "rw", "quiet"),
        *("con=null", "con0=fd:0,fd:1", f"init={_INIT}", f"NODE_HOME={home}", f"ubda={disk}"),
        *((f"ROOM={sys.executable}",) if managed else ()),
        *(f"vec{number}:transport=tap,ifname={tap},depth=64,gro=1" for number, tap in enumerate(TAPS)),
    ]


def _network(address: str, doors: Sequence[Door]) -> str:
    """Returns commands of iproute2. A door is not on the kernel's own loopback interface, also if its address is."""
    lines = [
        "link set lo up",
        f"address add {address}/8 dev vec0",
        "link set vec0 up",
        f"address add {GUEST_SIDE} dev vec1",
        "link set vec1 up",
        "rule add pref 10 lookup local",
        "rule del pref 0",
        f"route add default via {HOST_SIDE.partition('/')[0]} dev vec1 table 100",
        *(f"rule add pref 1 to {host} ipproto {protocol} dport {port} lookup 100" for protocol, host, port in doors),
    ]
    return "\n".join(lines) + "\n"
