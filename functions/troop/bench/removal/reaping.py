"""Decides what the reaper does about overdue runs and about leftovers of ended ones.

The reaper relies neither on the workflow nor on the rule for its end. It acts only after :data:`PATIENCE`, to leave
others time for their work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from troop.bench.definition.names import RUN
from troop.bench.records.record import Cell, Run, RunStatus
from troop.bench.removal.teardown import Seen

PATIENCE = timedelta(minutes=15)
"""Minimum age of everything that the reaper touches."""

TEARDOWN_TIME = timedelta(hours=2)
"""Maximum duration of a teardown: the time limit of its workflow."""

ENDS_WITHIN = timedelta(minutes=10)
"""Time after its expiry within which a run closes itself, even if some polls fail. Standing fleets normally end so; a
benchmark that does reports which of its cells succeeded.
"""

CELL_TIME = 2 * TEARDOWN_TIME + PATIENCE
"""Time after which its own workflow, which tries twice, should have torn down a closed cell. Otherwise leftovers would
stay until the end of the run, perhaps for days.
"""

RESTARTS = 3
"""Number of immediate restarts of a failed teardown; after that, the reaper restarts it every quarter of an hour."""

ENDED_BADLY = frozenset({"FAILED", "TIMED_OUT", "ABORTED"})

_TEARDOWN = re.compile(rf"({RUN.pattern})-(\d)")


@dataclass(frozen=True)
class Start:
    """A teardown to start.

    Attributes:
        name: of its execution; a second one of the same name does not start.
        reason: why the run has not SUCCEEDED.
        stop: whether the run's workflow is still running and must be stopped first.
    """

    run: str
    name: str
    status: RunStatus
    reason: str
    stop: bool = False


def start_after_run(name: str, status: str, run: Run | None) -> Start | None:
    """Decides whether to start a teardown after the end of a run's workflow.

    Args:
        name: of the execution. If another one continues the workflow, its end means nothing.
        status: of the execution.
        run: the run's record.
    """
    if status not in ENDED_BADLY or run is None or run.ended_at or run.execution_name != name:
        return None
    return Start(run.run, f"{run.run}-1", RunStatus.FAILED, _over(status))


def start_after_teardown(name: str, work: Mapping[str, object], status: str, run: Run | None) -> Start | None:
    """Decides whether to restart a teardown after its end. The workflow of the run handles teardowns of single cells.

    Args:
        name: of the execution; the reaper's are named ``<run>-<number of the try>``.
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
    """Decides whether to start a teardown for a run that has not ended.

    Args:
        execution: status of its workflow's execution; None if there is none.
        tearing_down: whether a teardown of it is running.
    """
    if run.ended_at or tearing_down or now - run.at < PATIENCE:
        return None
    going = execution == "RUNNING"
    if going and run.closed_at and now - run.closed_at < TEARDOWN_TIME:
        return None  # its own teardown is running
    if going and now < run.expires_at + ENDS_WITHIN:
        return None
    if going:
        reason = "it had not ended when it expired"
    else:
        reason = "its workflow was never started" if execution is None else _over(execution)
    return Start(run.run, f"{run.run}-{now.astimezone(UTC):%Y%m%dT%H%M}", RunStatus.FAILED, reason, stop=going)


def strays(seen: Iterable[Seen], runs: Mapping[str, Run | None], now: datetime) -> list[Seen]:
    """Lists leftovers: resources whose run ended or expired some time ago, so that nothing else removes them.

    Args:
        seen: existing resources of runs.
        runs: record of every run with a seen resource; resources of an unknown run are not leftovers.
    """
    return [one for one in seen if _is_stray(one, runs[one.run], now)]


def left_cells(seen: Iterable[Seen], cells: Iterable[Cell], now: datetime) -> list[str]:
    """Lists the ids of an open run's cells that are over, but have leftovers.

    Args:
        seen: existing resources of the run.
    """
    there = {one.cell for one in seen}
    late = (cell for cell in cells if cell.closed_at is not None and now - cell.closed_at >= CELL_TIME)
    return [cell.cell for cell in late if cell.cell in there]


def settled(seen: Iterable[Seen], now: datetime) -> list[Seen]:
    """Lists the resources that are old enough for all of their properties to be visible."""
    return [one for one in seen if (born := one.created_at or _began(one.run)) is None or now - born >= PATIENCE]


def _is_stray(one: Seen, run: Run | None, now: datetime) -> bool:
    if run is None or not settled([one], now):
        return False
    since = run.ended_at or max(run.expires_at, run.closed_at or run.expires_at)
    return now - since >= PATIENCE


def _began(run: str) -> datetime | None:
    """Returns when a run began, by its id; None if it is not a run's id. Its resources cannot be older."""
    if not RUN.fullmatch(run):
        return None
    try:
        return datetime.strptime(run[:15], "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None


def _over(status: str) -> str:
    how = {"FAILED": "failed", "TIMED_OUT": "took too long", "ABORTED": "was stopped", "SUCCEEDED": "has ended"}
    return f"its workflow {how.get(status, status)}"
