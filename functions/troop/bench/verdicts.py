"""What a look at a cell means: go on, wait, or give up, and why. Sets of ids are compared, never counts.

Reasons are sentences for people, and bounded: nodes beyond a few are counted, texts from elsewhere are cut.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from troop.bench.definition import Benchmark, Fleet, Phase
from troop.bench.record import Cell, CellStatus, Run, RunStatus
from troop.bench.roster import Node, Roster

GRACE = 120
"""Seconds beyond a phase's time-out for which a summary is waited for: the agent kills the script, gathers what it
left, and uploads it.
"""

SETTLED = 30
"""Seconds after which all of AWS knows a group that was made."""

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
    """What a look has shown.

    Attributes:
        status: the cell's, when it FAILED; else None.
        reason: why it did.
        nodes: ids of those whose scripts went wrong.
    """

    state: State
    status: CellStatus | None = None
    reason: str | None = None
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class FleetSeen:
    """A fleet's group as it is.

    Attributes:
        serving: ids of the instances that are in service and healthy.
        starting: ids of those that are in the group, but not that (yet).
        refusals: why launches have failed, newest first; read only when some are missing.
        exists: False when there is no such group, or it is being deleted.
        groups: names of those that there are: its own, and its backup.
        granted: how many nodes its own group has, and its backup is to have; means nothing on demand.
        backup_refusals: why launches of its backup have failed, as ``refusals``; None when there is no backup.
    """

    role: str
    serving: frozenset[str]
    starting: frozenset[str] = frozenset()
    refusals: tuple[str, ...] = ()
    exists: bool = True
    groups: tuple[str, ...] = ()
    granted: int = 0
    backup_refusals: tuple[str, ...] | None = None


@dataclass(frozen=True)
class NodeOutcome:
    """How a phase ended on a node, from its summary. ``outcome`` is ``ok`` or tells what else happened: ``lost`` says
    that the node, or the server on it that was measured, is there no more; ``interrupted``: because spot takes the
    node back.
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


PERMANENT = (
    "vcpulimitexceeded",
    "more vcpu capacity than your current vcpu limit",
    "enough free addresses in subnet",
    "insufficientfreeaddressesinsubnet",
    "instancelimitexceeded",
    "volumelimitexceeded",
    "maximum storage limit",
    "maxiopslimitexceeded",
    "not authorized",
    "unauthorized",
    "accessdenied",
    "optinrequired",
    "pendingverification",
    "blocked",
    "invalidamiid",
    "invalidparameter",
    "the requested configuration is currently not supported",
    "is not supported in your requested availability zone",
    "invalid iaminstanceprofile",
    "invalidkmskey",
    "client.internalerror",  # a volume's key that Auto Scaling may not use
    "launch template",
    "architecture",
)
"""What EC2 says, in lower case, when it would say the same of the next try: quotas, rights, and what does not exist.
Lack of capacity is not among it: that may pass.
"""


NO_SPOT = (
    "maxspotinstancecountexceeded",
    "max spot instance count exceeded",
    "spotmaxpricetoolow",
    "servicelinkedrole",
)
"""What is said, in lower case, when waiting for spot is of no use. Lack of capacity is not among it here either."""


def is_permanent(refusal: str) -> bool:
    """Whether a failed launch would fail again."""
    said = refusal.lower()
    return any(fragment in said for fragment in PERMANENT)


def is_vain(refusal: str) -> bool:
    """Whether a failed launch of a fleet that nothing stands in for would fail again, on demand or on spot."""
    return is_permanent(refusal) or any(said in refusal.lower() for said in NO_SPOT)


def of_boot(
    benchmark: Benchmark,
    fleets: Sequence[FleetSeen],
    nodes: Mapping[str, Node],
    elapsed: float,
    interrupted: frozenset[str] = frozenset(),
) -> Verdict:
    """Are all nodes there? SHORT: what spot has not given is to be launched on demand.

    Args:
        fleets: one for each of the benchmark's.
        nodes: the registrations, by id; of instances that are in no group any more they mean nothing.
        elapsed: seconds since the groups were made.
        interrupted: ids of those that spot takes back: they count as if they had not registered, until they are gone.
    """
    nodes = {i: node for i, node in nodes.items() if i not in interrupted}
    broken = [n for f in fleets for i in sorted(f.serving | f.starting) if (n := nodes.get(i)) and n.error is not None]
    if broken:
        said = "; ".join(f"{n.id}: {_cut(n.error or '')}" for n in broken[:MOST_NAMED])
        return _failed(f"{_nodes(len(broken))} could not start: {said}")
    seen = {fleet.role: fleet for fleet in fleets}
    missing = [fleet for fleet in benchmark.fleets if not _is_complete(fleet, seen[fleet.role], nodes)]
    if not missing:
        narrow = [why for fleet in benchmark.fleets if (why := _narrow(fleet, seen[fleet.role], nodes))]
        return _failed("; ".join(narrow)) if narrow else Verdict(State.READY)
    gone = sorted(fleet.role for fleet in missing if not seen[fleet.role].exists)
    if gone and elapsed >= SETTLED:
        return _failed(f"somebody has deleted the Auto Scaling group of the fleet {', '.join(gone)}")
    for fleet in missing:
        its = seen[fleet.role]
        refusals = (its.backup_refusals or ()) if fleet.is_spot else its.refusals
        refusal = next((r for r in refusals if is_permanent(r)), None)
        if refusal and len(seen[fleet.role].serving) < fleet.count:
            return _failed(f"{_launched(fleet, seen[fleet.role])}: {_cut(refusal)}")
    late = [fleet for fleet in missing if elapsed >= fleet.boot_timeout]
    if late:
        return _failed("; ".join(_late(fleet, seen[fleet.role], nodes) for fleet in late))
    return Verdict(State.SHORT if any(_is_short(f, seen[f.role], elapsed) for f in missing) else State.WAITING)


def _is_short(fleet: Fleet, seen: FleetSeen, elapsed: float) -> bool:
    """Whether nodes of a spot fleet are missing that nobody is to launch any more, or spot never will."""
    if not fleet.is_spot or seen.granted >= fleet.count or not seen.exists:
        return False
    is_backed_up = seen.backup_refusals is not None
    no_spot = any(is_vain(r) for r in seen.refusals)
    return elapsed >= fleet.spot_timeout or is_backed_up or no_spot


def _is_complete(fleet: Fleet, seen: FleetSeen, nodes: Mapping[str, Node]) -> bool:
    of_role = {i for i, node in nodes.items() if node.role == fleet.role}
    return len(seen.serving) == fleet.count and not seen.starting and seen.serving <= of_role


def _narrow(fleet: Fleet, seen: FleetSeen, nodes: Mapping[str, Node]) -> str | None:
    """What to say of a fleet that is in fewer zones than it is to be: Auto Scaling spreads as far as capacity goes, and
    such a cell is not to be compared with the others.
    """
    zones = {nodes[i].zone for i in seen.serving}
    if "" in zones or len(zones) >= fleet.zones:
        return None
    there = ", ".join(sorted(zones))
    return f"the fleet {fleet.role} is in {there} alone, and not in {fleet.zones} zones: others had no capacity for it"


def _launched(fleet: Fleet, seen: FleetSeen) -> str:
    return f"of {_nodes(fleet.count)} in the fleet {fleet.role}, {len(seen.serving)} could be launched"


def _late(fleet: Fleet, seen: FleetSeen, nodes: Mapping[str, Node]) -> str:
    silent = (seen.serving | seen.starting) - set(nodes)
    said = [
        f"of {_nodes(fleet.count)} in the fleet {fleet.role}, not all have registered within {fleet.boot_timeout} s"
    ]
    if silent:
        said.append(f"{name_some(silent)} never did, see output/boot/")
    if absent := fleet.count - len(seen.serving | seen.starting):
        refusals = seen.backup_refusals or seen.refusals
        why = f": {_cut(refusals[0])}" if refusals else ""
        said.append(f"{_nodes(absent)} {'was' if absent == 1 else 'were'} never launched{why}")
    return "; ".join(said)


def of_phase(
    phase: Phase,
    roster: Roster,
    live: frozenset[str],
    present: frozenset[str],
    outcomes: Iterable[NodeOutcome],
    elapsed: float,
    interrupted: frozenset[str] = frozenset(),
) -> Verdict:
    """How does a phase stand?

    A lost node comes first: what fails on others is most often its consequence. One that spot takes back is as good as
    lost, and nobody's fault: the cell is INVALID, whatever phase it is in.

    Args:
        live: ids of the instances that run, and serve in their groups. Every node must last to the end of the last
            phase, whether it does the phase or not: the others may talk to it.
        present: ids whose summary is there.
        outcomes: those of them that were read; when all are present, of all of them.
        elapsed: seconds since the phase began.
        interrupted: ids of the nodes that spot takes back, or has.

    Returns:
        NEXT when all have done it well.
    """
    outcomes = list(outcomes)
    if taken := roster.ids() & (interrupted | {o.id for o in outcomes if o.interrupted}):
        reason = f"spot took {name_some(taken)} back during the phase {phase.name}"
        return Verdict(State.FAILED, CellStatus.INVALID, reason)
    if lost := roster.ids() - live:
        status = CellStatus.INVALID if phase.is_measured else CellStatus.FAILED
        return Verdict(State.FAILED, status, f"{name_some(lost)} {_was(lost)} lost during the phase {phase.name}")
    expected = roster.ids(phase.roles)
    bad = sorted((o for o in outcomes if o.id in expected and not o.is_ok), key=lambda o: (not o.is_lost, o.id))
    if bad:
        said = "; ".join(f"{o.id} {o.outcome}{': ' + _cut(o.reason) if o.reason else ''}" for o in bad[:MOST_NAMED])
        reason = f"{phase.script} went wrong on {_nodes(len(bad))} in the phase {phase.name}: {said}"
        is_lost = phase.is_measured and any(o.is_lost for o in bad)
        status = CellStatus.INVALID if is_lost else CellStatus.FAILED
        return replace(_failed(reason), status=status, nodes=tuple(o.id for o in bad))
    if not (late := expected - present):
        return Verdict(State.NEXT)
    if elapsed >= phase.timeout + GRACE:
        return _failed(f"{name_some(late)} did not finish the phase {phase.name} within {phase.timeout} s")
    return Verdict(State.WAITING)


def of_closed(run: Run, now: datetime) -> Verdict | None:
    """Whether the run is over from outside: closed, or past its time; None when it goes on."""
    if run.closed_at is not None:
        return Verdict(State.FAILED, CellStatus.STOPPED, run.reason or "the run was closed")
    if now >= run.expires_at:
        return _failed("the run has expired: give it more time with expires_after")
    return None


def of_run(run: Run, cells: Sequence[Cell]) -> tuple[RunStatus, str | None]:
    """What a run ends with, once its cells are over."""
    if run.closed_at is not None and run.outcome is not None:
        return run.outcome, run.reason
    good = [cell for cell in cells if cell.status is CellStatus.SUCCEEDED]
    bad = [cell for cell in cells if cell.status is not CellStatus.SUCCEEDED]
    if not bad and good:
        return RunStatus.SUCCEEDED, None
    longest = LONGEST_REASON if len(bad) == 1 else LONGEST_REASON // MOST_NAMED - 50
    told = [f"{cell.cell} {cell.status}: {cell.reason or 'no reason was recorded'}"[:longest] for cell in bad]
    said = "; ".join([f"{len(good)} of {len(cells)} cells succeeded"] * bool(good) + told[:MOST_NAMED])
    more = f"; and {len(bad) - MOST_NAMED} more" if len(bad) > MOST_NAMED else ""
    return RunStatus.PARTIAL if good else RunStatus.FAILED, said[: LONGEST_REASON - len(more)] + more


def of_error(error: str, cause: str) -> str:
    """A sentence of what Step Functions says of a failed state.

    Args:
        cause: of a function's exception it is JSON with its message.
    """
    try:
        said = json.loads(cause)["errorMessage"]
    except (ValueError, TypeError, KeyError):
        said = cause
    return f"{error}: {said}"[:LONGEST_REASON] if said else error


def with_output(reason: str, instance_id: str, tail: str) -> str:
    """A reason with the last lines that a node's script printed."""
    return f"{reason}\nlast lines of {instance_id}:\n{tail}"[:LONGEST_REASON] if tail else reason


def name_some(ids: Iterable[str]) -> str:
    """``i-1, i-2 and 3 others``."""
    ordered = sorted(ids)
    shown, more = ordered[:MOST_NAMED], len(ordered) - MOST_NAMED
    return ", ".join(shown) + (f" and {more} {'other' if more == 1 else 'others'}" if more > 0 else "")


def _failed(reason: str) -> Verdict:
    return Verdict(State.FAILED, CellStatus.FAILED, reason[:LONGEST_REASON])


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


def _was(ids: frozenset[str]) -> str:
    return "was" if len(ids) == 1 else "were"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_TEXT else line[:LONGEST_TEXT] + "..."
