"""Turns this node off at once, as a machine that fails: nothing is written, and no process is told."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from pathlib import Path

from agent import metadata, processes
from agent.errors import FaultError

MARK = "off"
"""The file in TROOP_NODE_HOME by which local AWS knows that an instance has turned itself off."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_POWER_OFF = 0x4321FEDC
_KERNEL_AS_PROCESS = "User Mode Linux"


def crash() -> None:
    """Turns the node off. By its launch template, EC2 then terminates it.

    A node of local AWS is a process, or a kernel of its own. Such a process ends itself and all that scripts have left
    running, and leaves the machine alone.

    Raises:
        FaultError: the node is still there.
    """
    home = os.environ.get("TROOP_NODE_HOME")
    if metadata.is_real():
        raise FaultError(f"cannot turn the node off: {_turn_off()}")
    if not home:
        raise FaultError("cannot turn the node off: nothing tells that it is not a part of its machine")
    (Path(home) / MARK).touch()
    if _has_own_kernel():
        raise FaultError(f"cannot turn the node off: {_turn_off()}")
    for process in processes.left():
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def _has_own_kernel() -> bool:
    return _KERNEL_AS_PROCESS in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")


def _turn_off() -> str:
    """Asks the kernel; returns its error."""
    _LIBC.reboot(_POWER_OFF)
    return os.strerror(ctypes.get_errno())
