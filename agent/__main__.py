"""``python3 agent.pyz boot.json``, in the directory that the node's files go to."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from pathlib import Path

from agent import boot as boots
from agent import metadata
from agent.errors import AgentError, Lost
from agent.expiry import Expiry, shut_down
from agent.log import about, say
from agent.place import Place
from agent.session import Session
from agent.store import Store
from troop.measure.summary import FAILED


def main() -> int:
    """Exit code 0: every phase was gone through, or the workflow said that it is over."""
    path = Path(sys.argv[1]).resolve()
    try:
        boot = boots.read(path)
        os.environ.setdefault("HOME", str(path.parent))  # cloud-init runs user data without one
        os.environ["AWS_DEFAULT_REGION"] = boot.region
        _open_files()
        expiry = Expiry(boot.expires_at)
        signal.signal(signal.SIGTERM, _ended)
        signal.signal(signal.SIGINT, _ended)
        expiry.start()
        about(run=boot.run, cell=boot.cell)
        identity = metadata.identity()
        about(node=identity.id)
        session = Session(
            Place(path.parent, boot, identity),
            Store(boot.bucket, boot.region),
        )
        session.watch.start()
    except (AgentError, Lost) as error:
        say(f"cannot begin: {error}")
        return 1
    code = _run(session)
    if expiry.over:
        shut_down()
    return code


def _open_files() -> None:
    """Lets scripts have as many open files as they may: systemd's units begin with 1,024, and a load generator of many
    connections would take the shortage for errors of what it measures.
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
        return 0 if session.run() else 1
    except Lost as lost:
        _report(session, str(lost))
    except AgentError as error:
        _report(session, str(error), FAILED)
    except Exception as error:  # noqa: BLE001 - the workflow must hear of it, whatever it is
        _report(session, f"the agent failed: {error!r}", FAILED)
    return 1


def _report(session: Session, problem: str, *outcome: str) -> None:
    say(problem)
    try:
        session.report(problem, *outcome)
    except (AgentError, OSError, Lost) as error:
        say(f"nobody could be told: {error}")


def _ended(number: int, _: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: what follows is the farewell
    raise Lost(f"the agent was ended by {signal.Signals(number).name}: the node is shutting down")


if __name__ == "__main__":
    sys.exit(main())
