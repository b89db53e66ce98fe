"""Decides from a poll of a cell: go on, wait, or fail with a reason. Compares sets of ids, never counts.

Reasons are sentences for people with a limited length: they name a few nodes, count the rest, and cut external texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from troop.bench.definition.definition import Benchmark, Step
from troop.bench.definition.roster import Roster
from troop.bench.records.record import Cell, CellStatus, Run, RunStatus
from troop.shared.formatting import counted

GRACE = 120
"""Seconds after a phase's time-out to wait for a summary: the agent kills the script, collects its output and uploads
it.
"""

MOST_NAMED = 5
LONGEST_TEXT = 300
LONGEST_REASON = 2000


class State(StrEnum):
    """Where the workflow goes next."""

    WAITING = "waiting"
    READY = "ready"
    NEXT = "next"
    DONE = "done"
    FAILED = "failed"
    AGAIN = "again"
    SHORT = "short"


@dataclass(frozen=True)
class Verdict:
    """The result of a poll.

    Attributes:
        status: the cell's new status if the state is FAILED; otherwise None.
        reason: of the failure.
        nodes: ids of nodes whose scripts failed.
        wait_seconds: until the next poll; None for the usual time.
    """

    state: State
    status: CellStatus | None = None
    reason: str | None = None
    nodes: tuple[str, ...] = ()
    wait_seconds: int | None = None


@dataclass(frozen=True)
class NodeOutcome:
    """How a phase ended on a node, from its summary. ``outcome`` is ``ok`` or another word; ``lost`` means that the
    node, or the measured server on it, is gone. ``interrupted`` is set if spot takes the node back.
    """

    id: str
    outcome: str
    reason: str | None = None
    interrupted: bool = False

    @property
    def is_ok(self) -> bool:
        return self.outcome == "ok"

    @property
    def is_lost(self) -> bool:
        return self.outcome == "lost"


def step_verdict(
    step: Step,
    roster: Roster,
    live: frozenset[str],
    present: frozenset[str],
    outcomes: Iterable[NodeOutcome],
    elapsed: float,
    interrupted: frozenset[str] = frozenset(),
    excused: frozenset[str] = frozenset(),
) -> Verdict:
    """Decides about a phase, one of its points, or the script between two points.

    Lost nodes are checked first, because failures on other nodes are often their consequence. A cell that loses a node
    is INVALID in every phase, and between two points: its nodes changed, and another attempt can succeed. Only nodes
    that a planned fault has crashed may be missing.

    Args:
        live: ids of instances that run and are in service in their groups. Every node must live until the end of the
            last phase, even if it does not run the phase: other nodes may use it.
        present: ids of nodes with a summary.
        outcomes: summaries read so far; complete when all are present.
        elapsed: seconds since the phase began.
        interrupted: ids of nodes that spot takes back or has taken.
        excused: ids of nodes that a planned fault has crashed; see :func:`troop.bench.measuring.node_faults.excused`.

    Returns:
        NEXT when the phase has succeeded on all of its nodes.
    """
    phase = step.phase
    outcomes = list(outcomes)
    if taken := roster.ids() & (interrupted | {o.id for o in outcomes if o.interrupted}):
        reason = f"spot took {name_some(taken)} back during the phase {phase.name}"
        return invalid(reason)
    if lost := roster.ids() - live - excused:
        why = next((f": {cut(o.reason)}" for o in outcomes if o.id in lost and o.is_lost and o.reason), "")
        return invalid(f"{name_some(lost)} {_was(lost)} lost during the phase {phase.name}{why}")
    expected = roster.ids(phase.roles, step.limits) - excused
    bad = sorted((o for o in outcomes if o.id in expected and not o.is_ok), key=lambda o: (not o.is_lost, o.id))
    if bad:
        failures = "; ".join(f"{o.id} {o.outcome}{': ' + cut(o.reason) if o.reason else ''}" for o in bad[:MOST_NAMED])
        reason = f"{phase.script} failed on {counted(len(bad), 'node')} in the phase {phase.name}: {failures}"
        verdict = invalid(reason) if any(o.is_lost for o in bad) else failed(reason)
        return replace(verdict, nodes=tuple(o.id for o in bad))
    if not (late := expected - present):
        return Verdict(State.NEXT)
    if elapsed >= phase.timeout + GRACE:
        return failed(f"{name_some(late)} did not finish the phase {phase.name} within {phase.timeout} s")
    return Verdict(State.WAITING)


def closed_verdict(run: Run, now: datetime) -> Verdict | None:
    """Returns a verdict if the run is closed or has expired; None if it continues."""
    if run.closed_at is not None:
        status = CellStatus.FAILED if run.outcome is RunStatus.FAILED else CellStatus.STOPPED
        return Verdict(State.FAILED, status, run.reason or "the run was closed")
    if now >= run.expires_at:
        return failed("the run has expired: give it more time with expires_after")
    return None


def run_verdict(run: Run, cells: Sequence[Cell]) -> tuple[RunStatus, str | None]:
    """Returns the final status and reason of a run whose cells are over."""
    if run.closed_at is not None and run.outcome is not None:
        return run.outcome, run.reason
    good = [cell for cell in cells if cell.status is CellStatus.SUCCEEDED]
    bad = [cell for cell in cells if cell.status is not CellStatus.SUCCEEDED]
    if not bad and good:
        return RunStatus.SUCCEEDED, None
    longest = LONGEST_REASON if len(bad) == 1 else LONGEST_REASON // MOST_NAMED - 50
    cell_reasons = [f"{cell.cell} {cell.status}: {cell.reason or 'no reason was recorded'}"[:longest] for cell in bad]
    sentence = "; ".join([f"{len(good)} of {len(cells)} cells succeeded"] * bool(good) + cell_reasons[:MOST_NAMED])
    more = f"; and {len(bad) - MOST_NAMED} more" if len(bad) > MOST_NAMED else ""
    return RunStatus.PARTIAL if good else RunStatus.FAILED, sentence[: LONGEST_REASON - len(more)] + more


def error_text(error: str, cause: str) -> str:
    """Formats the error of a failed Step Functions state.

    Args:
        cause: for an exception in a function, JSON with its message.
    """
    try:
        message = json.loads(cause)["errorMessage"]
    except (ValueError, TypeError, KeyError, RecursionError):
        message = cause
    return f"{error}: {message}"[:LONGEST_REASON] if message else error


def with_output(reason: str, instance_id: str, tail: str) -> str:
    """Appends the last lines of a node's script to a reason."""
    return f"{reason}\nlast lines of {instance_id}:\n{tail}"[:LONGEST_REASON] if tail else reason


def name_some(ids: Iterable[str]) -> str:
    """Names the first ids and counts the rest: ``i-1, i-2 and 3 others``."""
    ordered = sorted(ids)
    shown, more = ordered[:MOST_NAMED], len(ordered) - MOST_NAMED
    return ", ".join(shown) + (f" and {more} {'other' if more == 1 else 'others'}" if more > 0 else "")


def failed(reason: str) -> Verdict:
    return Verdict(State.FAILED, CellStatus.FAILED, reason[:LONGEST_REASON])


def invalid(reason: str) -> Verdict:
    """Returns the verdict on a cell that another attempt can save."""
    return Verdict(State.FAILED, CellStatus.INVALID, reason[:LONGEST_REASON])


def unlisted_verdict(benchmark: Benchmark, nodes: Sequence[str], elapsed: float) -> Verdict:
    """Returns the verdict on nodes that serve and have registered, but that EC2 does not list as running (yet)."""
    if elapsed < max(fleet.boot_timeout for fleet in benchmark.fleets):
        return Verdict(State.WAITING)
    return invalid(f"EC2 does not list {name_some(nodes)} as running")


def _was(ids: frozenset[str]) -> str:
    return "was" if len(ids) == 1 else "were"


def cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_TEXT else line[:LONGEST_TEXT] + "..."
