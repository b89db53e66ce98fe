"""What the reaper does about runs that have not ended as they should, and about what is left of those that have.

It trusts neither the workflow nor the rule that hears of its end. It is never the first to act, either: all is left
alone for :data:`PATIENCE`, in which others may be at work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from troop.bench.names import RUN
from troop.bench.record import Cell, Run, RunStatus
from troop.bench.teardown import Seen

PATIENCE = timedelta(minutes=15)
"""Nothing younger is touched."""

TEARDOWN_TIME = timedelta(hours=2)
"""After which a teardown is over, one way or the other: the time limit of its workflow."""

ENDS_WITHIN = timedelta(minutes=10)
"""So much later than it expires, a run has closed itself, also if some looks have failed: of a standing fleet it is the
usual end, of a benchmark one that tells which of its cells were good.
"""

CELL_TIME = 2 * TEARDOWN_TIME + PATIENCE
"""After which a cell that was closed should have been taken down, by its own workflow, which tries twice. Its run goes
on, for days perhaps, and would remove what is left only in its end.
"""

RESTARTS = 3
"""So often a teardown that has failed is started anew when that is heard; after that, every quarter of an hour."""

ENDED_BADLY = frozenset({"FAILED", "TIMED_OUT", "ABORTED"})

_TEARDOWN = re.compile(rf"({RUN.pattern})-(\d)")


@dataclass(frozen=True)
class Start:
    """A teardown that is to be started.

    Attributes:
        name: of its execution; a second one of the same name does not start.
        reason: why the run has not SUCCEEDED.
        stop: whether its workflow is still going, and must be stopped first.
    """

    run: str
    name: str
    status: RunStatus
    reason: str
    stop: bool = False


def heard_of_run(name: str, status: str, run: Run | None) -> Start | None:
    """After the end of a run's workflow.

    Args:
        name: of the execution, which is the run's.
        status: of the execution.
        run: as it is on record.
    """
    if status not in ENDED_BADLY or run is None or run.ended_at:
        return None
    return Start(run.run, f"{name}-1", RunStatus.FAILED, _over(status))


def heard_of_teardown(name: str, work: Mapping[str, object], status: str, run: Run | None) -> Start | None:
    """After the end of a teardown. One of a single cell is left to the workflow of its run, which hears of it, too.

    Args:
        name: of the execution; the reaper's are called ``<run>-<number of the try>``.
        work: its input.
    """
    if status not in ENDED_BADLY or run is None or run.ended_at or work.get("cell"):
        return None
    tried = _TEARDOWN.fullmatch(name)
    following = int(tried[2]) + 1 if tried else 1
    if following > RESTARTS:
        return None
    return Start(run.run, f"{run.run}-{following}", RunStatus.FAILED, _over(status))


def overdue(run: Run, execution: str | None, tearing_down: bool, now: datetime) -> Start | None:
    """What is to be done about a run that has not ended.

    Args:
        execution: status of its workflow's execution; None when there is none.
        tearing_down: a teardown of it is under way.
    """
    if run.ended_at or tearing_down or now - run.at < PATIENCE:
        return None
    going = execution == "RUNNING"
    if going and run.closed_at and now - run.closed_at < TEARDOWN_TIME:
        return None  # its own teardown is under way
    if going and now < run.expires_at + ENDS_WITHIN:
        return None
    if going:
        reason = "it had not ended when it expired"
    else:
        reason = "its workflow was never started" if execution is None else _over(execution)
    return Start(run.run, f"{run.run}-{now.astimezone(UTC):%Y%m%dT%H%M}", RunStatus.FAILED, reason, stop=going)


def strays(seen: Iterable[Seen], runs: Mapping[str, Run | None], now: datetime) -> list[Seen]:
    """Of what exists that which nobody else removes: its run has ended, or expired some time ago.

    Args:
        seen: what the runs have created.
        runs: the record of every run that something was seen of; nothing of an unknown one is a stray.
    """
    return [one for one in seen if _is_stray(one, runs[one.run], now)]


def left_cells(seen: Iterable[Seen], cells: Iterable[Cell], now: datetime) -> list[str]:
    """Ids of the cells of an open run that are over, and of which something is left all the same.

    Args:
        seen: what exists of the run.
    """
    there = {one.cell for one in seen}
    late = (cell for cell in cells if cell.closed_at is not None and now - cell.closed_at >= CELL_TIME)
    return [cell.cell for cell in late if cell.cell in there]


def settled(seen: Iterable[Seen], now: datetime) -> list[Seen]:
    """What has been there long enough for everything about it to be visible."""
    return [one for one in seen if (born := one.created_at or _began(one.run)) is None or now - born >= PATIENCE]


def _is_stray(one: Seen, run: Run | None, now: datetime) -> bool:
    if run is None or not settled([one], now):
        return False
    since = run.ended_at or max(run.expires_at, run.closed_at or run.expires_at)
    return now - since >= PATIENCE


def _began(run: str) -> datetime | None:
    """When a run began, by its id: nothing of it is older. None for what is no run's id."""
    if not RUN.fullmatch(run):
        return None
    try:
        return datetime.strptime(run[:15], "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None


def _over(status: str) -> str:
    how = {"FAILED": "failed", "TIMED_OUT": "took too long", "ABORTED": "was stopped", "SUCCEEDED": "has ended"}
    return f"its workflow {how.get(status, status)}"
