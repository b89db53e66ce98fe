"""Chooses the nodes that a planned fault hits."""

from __future__ import annotations

from troop.bench.definition.definition import Phase
from troop.bench.definition.planned_fault import PlannedFault
from troop.bench.definition.roster import Member, Roster


def victims(fault: PlannedFault, roster: Roster, phase: Phase) -> tuple[Member, ...]:
    """Returns the nodes that a fault hits, by role, and the highest ranks first; none for a fault on a unit.

    Zones count among those in which it can hit nodes, in the order of their names.
    """
    if fault.unit is not None:
        return ()
    waiting = [one for one in roster.members if one.role not in phase.roles and fault.role in (None, one.role)]
    zones = sorted({one.zone for one in waiting})
    there = [one for one in waiting if fault.zone is None or zones.index(one.zone) == fault.zone - 1]
    most = fault.count or (1 if fault.zone is None else len(there))
    return tuple(sorted(there, key=lambda one: (one.role, -one.rank))[:most])
