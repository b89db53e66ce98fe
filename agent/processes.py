"""Finds the processes that scripts have left running, to kill or to halt them.

The kernel makes the agent the parent of processes whose own parent has ended. So all that scripts have started descends
from it, also a daemon that clears its environment or begins a session of its own. What systemd starts does not.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from agent.errors import AgentError, FaultError

LONGEST = 10.0
"""Seconds after which processes that do not react are a failure."""
awaited: set[int] = set()
"""Children in sessions of their own that the agent itself waits for."""
awaiting = threading.Lock()
"""Is held from the start of such a child until it is among them."""

_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None, use_errno=True)
_PAUSE = 0.01
_ENDS = 0.1
_WAITED_FOR = 0.05
"""Seconds in which the agent waits for an own child that has ended."""
_ZOMBIE, _STOPPED = "ZX", "Tt"


@dataclass(frozen=True)
class Process:
    """A living process; ``state`` is the kernel's letter."""

    pid: int
    parent: int
    session: int
    state: str
    name: str


def notify_main(number: signal.Signals) -> None:
    """Sends a signal to the agent's main thread, whose wait it interrupts. A signal for the process may reach another
    thread.
    """
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, number)


def adopt() -> None:
    """Makes this process the parent of descendants that lose theirs, and waits for their end in a thread.

    Raises:
        AgentError: the kernel refuses.
    """
    if _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise AgentError(f"the agent cannot adopt processes: {os.strerror(ctypes.get_errno())}")
    threading.Thread(target=_wait_for_all, name="adopted", daemon=True).start()


def _wait_for_all() -> None:
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:
            ended = None
        with awaiting:
            if ended is not None and _is_adopted(ended.si_pid):
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(ended.si_pid, os.WNOHANG)
                continue
        time.sleep(_WAITED_FOR)


def _is_adopted(pid: int) -> bool:
    process = _read(pid)
    return process is not None and process.session != os.getsid(0) and pid not in awaited


def left() -> list[Process]:
    """Returns the living processes that scripts have started, parents first. They are in other sessions than the
    agent's own tools.
    """
    own, children = os.getsid(0), dict[int, list[Process]]()
    for process in _all():
        children.setdefault(process.parent, []).append(process)
    descendants = [one for one in children.get(os.getpid(), ()) if one.session != own]
    for process in descendants:  # grows meanwhile
        descendants += children.get(process.pid, ())
    return [one for one in descendants if one.state not in _ZOMBIE]


def kill() -> None:
    """Kills them until none is left.

    Raises:
        FaultError: there is none, or some do not end.
    """
    _signal_until_none(signal.SIGKILL, lambda _: True, "do not end")


def end(seconds: float) -> bool:
    """Asks them to end, and waits for that, for so many seconds at most. Returns whether none is left.

    Each gets one signal: a worker may take its time to hand back what it has.
    """
    until, notified = time.monotonic() + seconds, set[int]()
    while there := left():
        for one in there:
            if one.pid not in notified:
                notified.add(one.pid)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(one.pid, signal.SIGTERM)
        if time.monotonic() > until:
            return False
        time.sleep(_ENDS)
    return True


def pause() -> None:
    """Halts them.

    Raises:
        FaultError: there is none, or some do not halt.
    """
    _signal_until_none(signal.SIGSTOP, lambda one: one.state not in _STOPPED, "do not halt")


def resume() -> None:
    """Continues those that are halted.

    Raises:
        FaultError: some do not continue.
    """
    if left():
        _signal_until_none(signal.SIGCONT, lambda one: one.state in _STOPPED, "do not continue")


def _signal_until_none(number: signal.Signals, is_due: Callable[[Process], bool], problem: str) -> None:
    if not left():
        raise FaultError("the scripts of earlier phases have left no process running")
    until = time.monotonic() + LONGEST
    while due := [one for one in left() if is_due(one)]:
        if time.monotonic() > until:
            raise FaultError(f"there are processes that {problem}, such as {due[0].name}")
        for one in due:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one.pid, number)
        time.sleep(_PAUSE)


def _all() -> Iterator[Process]:
    for entry in os.listdir("/proc"):  # noqa: PTH208 - twice as fast, and called while the system is under load
        if entry.isdigit() and (process := _read(int(entry))) is not None:
            yield process


def _read(pid: int) -> Process | None:
    """Returns a process, which may have ended; None if it does not exist."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    head, _, tail = text.rpartition(")")
    state, parent, _, session = tail.split()[:4]
    return Process(pid, int(parent), int(session), state, head.partition("(")[2])
