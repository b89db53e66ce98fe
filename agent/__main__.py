"""Runs the agent: ``python3 agent.pyz boot.json``, in the folder for the node's files.

With the further argument ``rebooted``, it only reports that the node rebooted.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Callable

from agent import boot as boots
from agent import metadata
from agent.errors import AgentError, Lost
from agent.expiry import ORDER_SECONDS, Expiry, shut_down
from agent.log import about, say
from agent.place import Place
from agent.session import Session
from agent.store import Store
from troop.measure.summary import FAILED

REBOOTED = "rebooted"
"""The argument that user data's script for further boots passes."""


def main() -> int:
    """Runs the agent. Returns 0 if it went through every phase or the workflow ended the run."""
    path = Path(sys.argv[1]).resolve()
    try:
        boot = boots.read(path)
        os.environ.setdefault("HOME", str(path.parent))  # cloud-init runs user data without HOME
        os.environ["AWS_DEFAULT_REGION"] = boot.region
        _open_files()
        expiry = Expiry(boot.expires_at, least=ORDER_SECONDS if boot.standing else 0.0)
        signal.signal(signal.SIGTERM, _ended)
        signal.signal(signal.SIGINT, _ended)
        expiry.start()
        about(run=boot.run, cell=boot.cell)
        identity = metadata.identity()
        about(node=identity.id)
        session = Session(
            Place(path.parent, boot, identity),
            Store(boot.bucket, boot.region),
            expiry,
        )
        if sys.argv[2:] == [REBOOTED]:
            return _reported(session.report_reboot)
        session.watch.start()
    except (AgentError, Lost) as error:
        say(f"cannot start: {error}")
        return 1
    code = _run(session)
    if expiry.over:
        shut_down()
    return code


def _open_files() -> None:
    """Raises the soft limit of open files to the hard limit.

    systemd starts units with 1,024. A load generator with many connections would report the shortage as errors of the
    system under test.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _run(session: Session) -> int:
    try:
        return _ended_with(session)
    finally:
        session.watch.finish()


def _ended_with(session: Session) -> int:
    try:
        if session.run():
            return 0
        session.leave()
    except Lost as lost:
        session.leave()
        _report(session, str(lost))
    except AgentError as error:
        _report(session, str(error), FAILED)
    except Exception as error:  # noqa: BLE001 - the workflow must learn of every failure
        _report(session, f"the agent failed: {error!r}", FAILED)
    return 1


def _report(session: Session, problem: str, *outcome: str) -> None:
    say(problem)
    _reported(lambda: session.report(problem, *outcome))


def _reported(report: Callable[[], None]) -> int:
    """Returns 0 if the report was delivered."""
    try:
        report()
    except (AgentError, OSError, Lost) as error:
        say(f"cannot report the problem: {error}")
        return 1
    return 0


def _ended(number: int, _: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # no second signal: the report follows
    raise Lost(f"the agent received {signal.Signals(number).name}: the node is shutting down")


if __name__ == "__main__":
    sys.exit(main())
