"""Decides while a cell's fleets boot: go on, wait, fail with a reason, or launch missing spot nodes on demand. Compares
sets of ids, never counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from troop.bench.definition.definition import Benchmark, Fleet
from troop.bench.definition.roster import Node
from troop.bench.fleets.refusals import is_permanent, is_vain, remedy
from troop.bench.measuring.verdicts import MOST_NAMED, State, Verdict, cut, failed, invalid, name_some
from troop.shared.formatting import counted

SETTLED = 30
"""Seconds after which a new group is visible everywhere in AWS."""


@dataclass(frozen=True)
class FleetStatus:
    """The observed state of a fleet's group.

    Attributes:
        serving: ids of the instances that are in service and healthy.
        starting: ids of the group's other instances.
        leaving: ids of those among them that are terminating.
        refusals: reasons of failed launches, newest first; read only if nodes are missing.
        exists: False if the group does not exist or is being deleted.
        groups: names of the existing groups: the fleet's group and its backup.
        granted: actual nodes of its group plus desired nodes of its backup; unused for on-demand.
        backup_refusals: reasons of failed launches of its backup, as ``refusals``; None if there is no backup.
    """

    role: str
    serving: frozenset[str]
    starting: frozenset[str] = frozenset()
    leaving: frozenset[str] = frozenset()
    refusals: tuple[str, ...] = ()
    exists: bool = True
    groups: tuple[str, ...] = ()
    granted: int = 0
    backup_refusals: tuple[str, ...] | None = None


def boot_verdict(
    benchmark: Benchmark,
    fleets: Sequence[FleetStatus],
    nodes: Mapping[str, Node],
    elapsed: float,
    interrupted: frozenset[str] = frozenset(),
    replaced: frozenset[str] = frozenset(),
) -> Verdict:
    """Decides whether all nodes are ready. SHORT: launch missing spot nodes on demand.

    INVALID: another attempt can succeed. FAILED: the cause is permanent, or common to all nodes of a fleet.

    Args:
        fleets: one for each fleet of the benchmark.
        nodes: registrations by id; those of instances outside the groups are ignored.
        elapsed: seconds since the groups were created.
        interrupted: ids of nodes that spot takes back; they count as not registered.
        replaced: ids of nodes that are replaced, which count as not registered either; see :mod:`.replacing`.
    """
    nodes = {i: node for i, node in nodes.items() if i not in interrupted}
    if verdict := _broken_verdict(benchmark, fleets, nodes, replaced):
        return verdict
    nodes = {i: node for i, node in nodes.items() if i not in replaced}
    by_role = {fleet.role: fleet for fleet in fleets}
    missing = [fleet for fleet in benchmark.fleets if not _is_complete(fleet, by_role[fleet.role], nodes)]
    if not missing:
        uneven = [why for fleet in benchmark.fleets if (why := _uneven(fleet, by_role[fleet.role], nodes))]
        return invalid("; ".join(uneven)) if uneven else Verdict(State.READY)
    gone = sorted(fleet.role for fleet in missing if not by_role[fleet.role].exists)
    if gone and elapsed >= SETTLED:
        return failed(f"the Auto Scaling group of the fleet {', '.join(gone)} was deleted")
    for fleet in missing:
        its = by_role[fleet.role]
        refusals = (its.backup_refusals or ()) if fleet.is_spot else its.refusals
        refusal = next((r for r in refusals if is_permanent(r, elapsed)), None)
        if refusal and len(by_role[fleet.role].serving) < fleet.count:
            advice = remedy(refusal)
            why = f"{cut(refusal).rstrip('.')}. {advice}" if advice else cut(refusal)
            return failed(f"{_launched(fleet, by_role[fleet.role])}: {why}")
    late = [fleet for fleet in missing if elapsed >= fleet.boot_timeout]
    if late:
        reason = "; ".join(_late(fleet, by_role[fleet.role], nodes) for fleet in late)
        return failed(reason) if any(_is_mute(by_role[fleet.role], nodes) for fleet in late) else invalid(reason)
    return Verdict(State.SHORT if any(_is_short(f, by_role[f.role], elapsed) for f in missing) else State.WAITING)


def _is_short(fleet: Fleet, status: FleetStatus, elapsed: float) -> bool:
    """Checks whether a spot fleet lacks nodes that no group is set to launch, or that spot will never provide."""
    if not fleet.is_spot or status.granted >= fleet.count or not status.exists:
        return False
    is_backed_up = status.backup_refusals is not None
    no_spot = any(is_vain(r, elapsed) for r in status.refusals)
    return elapsed >= fleet.spot_timeout or is_backed_up or no_spot


def _is_complete(fleet: Fleet, status: FleetStatus, nodes: Mapping[str, Node]) -> bool:
    registered = {i for i, node in nodes.items() if node.role == fleet.role}
    return len(status.serving) == fleet.count and not status.starting and status.serving <= registered


def _broken_verdict(
    benchmark: Benchmark, fleets: Sequence[FleetStatus], nodes: Mapping[str, Node], replaced: frozenset[str]
) -> Verdict | None:
    """Returns a verdict if more nodes reported an error than are replaced: FAILED if all nodes of a fleet did."""
    broken = []
    for fleet in fleets:
        failed_nodes = [
            n for i in sorted(fleet.serving | fleet.starting) if (n := nodes.get(i)) and n.error is not None
        ]
        if {node.id for node in failed_nodes} - replaced - fleet.leaving:
            if len(failed_nodes) >= max(2, benchmark.fleet(fleet.role).count):
                return failed(_could_not_start(failed_nodes))
            broken += [node for node in failed_nodes if node.id not in replaced | fleet.leaving]
    return invalid(_could_not_start(broken)) if broken else None


def _could_not_start(nodes: Sequence[Node]) -> str:
    failures = "; ".join(f"{node.id}: {cut(node.error or '')}" for node in nodes[:MOST_NAMED])
    return f"{counted(len(nodes), 'node')} could not start: {failures}"


def _is_mute(status: FleetStatus, nodes: Mapping[str, Node]) -> bool:
    """Checks whether a fleet has several nodes, and none has registered: their cause is a common one."""
    return len(status.serving) > 1 and not status.serving & nodes.keys()


def _uneven(fleet: Fleet, status: FleetStatus, nodes: Mapping[str, Node]) -> str | None:
    """Returns a reason if a fleet is in fewer zones than required, or if one has more than one node more than another:
    such a cell is not comparable with the others. Auto Scaling does not spread a spot fleet and its backup together.
    """
    zones = Counter(nodes[i].zone for i in status.serving)
    if "" in zones:
        return None
    if len(zones) < fleet.zones:
        there = ", ".join(sorted(zones))
        return f"the fleet {fleet.role} is only in {there}, not in {fleet.zones} zones: other zones had no capacity"
    if fleet.zones > 1 and max(zones.values()) - min(zones.values()) > 1:
        there = ", ".join(f"{count} in {zone}" for zone, count in sorted(zones.items()))
        return f"the nodes of the fleet {fleet.role} are not spread evenly over its zones: {there}"
    return None


def _launched(fleet: Fleet, status: FleetStatus) -> str:
    return f"of {counted(fleet.count, 'node')} in the fleet {fleet.role}, only {len(status.serving)} could be launched"


def _late(fleet: Fleet, status: FleetStatus, nodes: Mapping[str, Node]) -> str:
    silent = (status.serving | status.starting) - set(nodes)
    nodes_of_fleet = f"of {counted(fleet.count, 'node')} in the fleet {fleet.role}"
    reasons = [f"{nodes_of_fleet}, not all registered within {fleet.boot_timeout} s"]
    if silent:
        reasons.append(f"{name_some(silent)} never registered: see output/boot/")
    refusals = status.backup_refusals or status.refusals
    why = f": {cut(refusals[0])}" if refusals else ""
    if absent := fleet.count - len(status.serving | status.starting):
        reasons.append(f"{counted(absent, 'node')} {'was' if absent == 1 else 'were'} never launched{why}")
    elif why and len(status.serving) < fleet.count:  # instances launch, and die before they are in service
        reasons.append(f"launches have failed{why}")
    return "; ".join(reasons)
