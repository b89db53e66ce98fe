"""Reads and writes the folder by which the agent and the workers of a node know of each other.

It has the queue's facts, a file for each worker's process with what the process does, and a file that tells workers to
stop.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

DRAIN, LEAVE = "drain", "leave"
"""Why workers stop: to take nothing more for now, or to hand back what they have, because the node ends."""

_UNREADABLE = (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError)


@dataclass(frozen=True)
class Counts:
    """What one process, or all processes of a node, have done and do.

    Attributes:
        done: tasks that are over.
        held: tasks in hand.
        receiving: requests for a task that are under way.
        idle_since: when the queue was first empty, in seconds since 1970; None while there is work, or if unknown.
    """

    done: int = 0
    held: int = 0
    receiving: int = 0
    idle_since: float | None = None


class WorkFolder:
    """The folder ``$TROOP_HOME/work``, which scripts find in ``TROOP_WORK``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stop = path / "stop"

    @property
    def queue(self) -> Path:
        """The file of the queue's facts."""
        return self.path / "queue.json"

    @property
    def reason(self) -> str | None:
        """Why workers must stop: :data:`DRAIN` or :data:`LEAVE`; None if they need not."""
        try:
            return LEAVE if self._stop.read_text(encoding="ascii").strip() == LEAVE else DRAIN
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            return DRAIN

    def stop(self, reason: str) -> None:
        """Tells workers to stop."""
        write_whole(self._stop, reason.encode())

    def resume(self) -> None:
        """Tells workers to go on."""
        self._stop.unlink(missing_ok=True)

    def store(self, counts: Counts) -> None:
        """Stores the counts of this process."""
        pid = os.getpid()
        document = {**asdict(counts), "begun": _begun(pid)}
        write_whole(self.path / f"{pid}.json", json.dumps(document).encode())

    def earlier(self) -> int:
        """Returns the number of tasks that an earlier process with this process's id has done."""
        return max((done for pid, done, _ in self._processes() if pid == os.getpid()), default=0)

    def counts(self) -> Counts | None:
        """Returns the sums of all processes, of which only living ones hold tasks; None if there was no worker."""
        processes = list(self._processes())
        if not processes:
            return None
        living = [counts for _, _, counts in processes if counts is not None]
        idle = [counts.idle_since for counts in living if counts.idle_since is not None]
        return Counts(
            done=sum(done for _, done, _ in processes),
            held=sum(counts.held for counts in living),
            receiving=sum(counts.receiving for counts in living),
            idle_since=max(idle) if idle and len(idle) == len(living) else None,
        )

    def _processes(self) -> Iterator[tuple[int, int, Counts | None]]:
        """Yields each process: its id, the tasks it has done, and its counts; None for those of one that has ended."""
        for path in self.path.glob("*.json"):
            if not path.stem.isdigit():
                continue
            try:
                document: dict[str, Any] = json.loads(path.read_bytes())
                done, idle_since = int(document["done"]), document["idle_since"]
                lives = document["begun"] == _begun(int(path.stem))
                counts = Counts(
                    done,
                    int(document["held"]),
                    int(document["receiving"]),
                    None if idle_since is None else float(idle_since),
                )
            except _UNREADABLE:
                continue
            yield int(path.stem), done, counts if lives else None


def write_whole(path: Path, content: bytes) -> None:
    """Replaces a file at once, because others read it at any time."""
    new = path.with_name(f".{path.name}.new")
    new.write_bytes(content)
    new.replace(path)


def _begun(pid: int) -> str:
    """Returns when a process began, as the kernel states it; empty if it has ended. Ids of processes are used again."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    parts = text.rpartition(")")[2].split()
    return "" if parts[0] in "ZX" else parts[19]
