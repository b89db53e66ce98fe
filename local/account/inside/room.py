"""Gives an instance a view of its own, in which Systems Manager's documents cannot harm this machine.

It is the first process of a managed instance: in namespaces of its own on this machine, or in a kernel of its own. The
instance has the machine's programs, but only its own processes, its own root volume with /var/tmp, its own /etc/hosts,
its own boot id, and its own folder of Systems Manager. The root volume is the disk of a kernel, otherwise memory. The
process starts user data, atd and the SSM agent. It starts the last two again when they end, as systemd does. It uses
only the standard library.

The files agent-off and atd-off in HOME/ssm keep them from running: tests create them.

Differences from EC2: the root volume is new after a reboot, and small if it is in memory. All other folders are the
machine's own.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Collection
from pathlib import Path

HERE = Path(__file__).resolve().parent
MARKER = Path("/.instance")
"""Exists only inside such a view. The agent refuses to run without it."""
_ROOT_MIB = 64
_SCRATCH = Path("/var/tmp")
"""The folder that I/O stress fills."""
_CHECK_SECONDS = 0.2
_BIND, _RECURSIVE, _PRIVATE, _UNBINDABLE = 0x1000, 0x4000, 0x40000, 0x20000
_LIBC = ctypes.CDLL(None, use_errno=True)


def problem() -> str | None:
    """Returns why this machine cannot give instances such a view; None if it can."""
    if shutil.which("unshare") is None:
        return "the command unshare is missing: install util-linux"
    words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "mount", "-t", "tmpfs", "trial", "/mnt"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return f"mount and process namespaces are not available ({done.stderr.strip()})" if done.returncode else None


def enter(home: Path) -> None:
    """Builds the view of the instance with this home, and moves this process into it. Raises OSError."""
    own = {Path("/var/lib/amazon"): home / "amazon", Path("/var/spool/at"): home / "spool"}
    if (modules := home / "kernel" / "lib" / "modules").exists():
        own[Path("/usr/lib/modules")] = modules
    (home / "amazon" / "ssm").mkdir(parents=True, exist_ok=True)
    (home / "spool").mkdir(exist_ok=True)
    (home / "boot-id").write_text(f"{uuid.uuid4()}\n", encoding="ascii")
    (home / "hosts").write_text("127.0.0.1 localhost\n", encoding="ascii")
    root = home / "root"
    root.mkdir(exist_ok=True)
    _mount("none", "/", "", _PRIVATE | _RECURSIVE)
    if (home / "kernel").exists():
        _mount(home / "shared", root, "", _BIND)
    else:
        _mount("root", root, "tmpfs", 0, f"size={_ROOT_MIB}m,mode=755")
    _mount("none", root, "", _UNBINDABLE)  # else the machine's folder around it would contain it again
    empty = {*own, Path("/proc"), _SCRATCH}
    _show(Path("/"), root, {above for path in empty for above in path.parents}, empty)
    for path, folder in own.items():
        place = root / path.relative_to("/")
        place.mkdir(parents=True, exist_ok=True)
        _mount(folder, place, "", _BIND)
    (root / _SCRATCH.relative_to("/")).chmod(0o1777)
    _mount("proc", root / "proc", "proc", 0)
    _mount(home / "boot-id", root / "proc/sys/kernel/random/boot_id", "", _BIND)
    if (root / "etc" / "hosts").exists():
        _mount(home / "hosts", root / "etc" / "hosts", "", _BIND)
    os.chroot(root)
    MARKER.touch()
    os.chdir(home)


def _show(source: Path, target: Path, opened: Collection[Path], own: Collection[Path]) -> None:
    """Shows in a folder of the view what is in a folder of the machine.

    Args:
        opened: folders that the instance's own are in: not those of the machine, but new ones with the same content.
        own: not shown.
    """
    for entry in os.scandir(source):
        path, place = Path(entry.path), target / entry.name
        if path in own or path == MARKER:
            place.mkdir()
        elif path in opened:
            place.mkdir()
            _show(path, place, opened, own)
        elif entry.is_symlink():
            place.symlink_to(path.readlink())
        elif entry.is_dir():
            place.mkdir()
            _mount(path, place, "", _BIND | _RECURSIVE)
        elif entry.is_file():
            place.touch()
            _mount(path, place, "", _BIND)


def _mount(source: Path | str, target: Path | str, kind: str, flags: int, data: str = "") -> None:
    words = (str(source).encode(), str(target).encode(), kind.encode() or None)
    if _LIBC.mount(*words, ctypes.c_ulong(flags), data.encode() or None):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(target))


class Service:
    """A program that runs unless the file `off` exists."""

    def __init__(self, command: list[str], off: Path) -> None:
        self._command, self._off = command, off
        self._pid = 0

    def check(self, ended: Collection[int]) -> None:
        """Starts the program if it does not run, or kills it if it must not. `ended`: processes that just ended."""
        if self._pid in ended:
            self._pid = 0
        if self._off.exists():
            if self._pid:
                os.kill(self._pid, signal.SIGKILL)
        elif not self._pid:
            self._pid = _start(self._command)


def _start(command: list[str]) -> int:
    standard_input = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
    return os.posix_spawnp(command[0], command, os.environ, file_actions=[standard_input], setsid=True)


def _ended() -> list[int]:
    """Returns the children that have ended, among them orphans of the whole instance."""
    ended: list[int] = []
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if not pid:
            return ended
        ended.append(pid)


def main() -> None:
    home = Path(os.environ["HOME"])
    orders = home / "ssm"
    orders.mkdir(exist_ok=True)
    enter(home)
    Path("/proc/self/comm").write_text("systemd", encoding="ascii")
    services = [
        Service([str(HERE / "bin" / "atd")], orders / "atd-off"),
        Service([sys.executable, "-IS", str(HERE / "ssm_agent.py"), *sys.argv[1:]], orders / "agent-off"),
    ]
    try:
        _start([str(home / "user-data")])
    except OSError as error:  # not a script: it never becomes ready
        print(f"user data cannot be run: {error}", flush=True)
    while True:
        ended = _ended()
        for service in services:
            service.check(ended)
        time.sleep(_CHECK_SECONDS)


if __name__ == "__main__":
    main()
