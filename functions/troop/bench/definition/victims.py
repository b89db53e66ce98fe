"""Chooses the nodes that a planned fault hits."""

from __future__ import annotations

from collections.abc import Collection
from itertools import takewhile

from troop.bench.definition.definition import Phase
from troop.bench.definition.planned_fault import CRASH, SCRIPT, STOP, PlannedFault
from troop.bench.definition.roster import Member, Roster


def victims(fault: PlannedFault, roster: Roster, phase: Phase) -> tuple[Member, ...]:
    """Returns the nodes that a fault hits, by role, and the highest ranks first; none for a fault on a unit, and if
    fewer are left than it is to hit.

    Nodes that earlier faults of the phase have crashed are not hit again, and those that they have stopped only by
    scripts. Zones count among those of the roles that it can hit, in the order of their names.
    """
    gone: set[str] = set()
    for earlier in takewhile(lambda one: one != fault, phase.faults):
        if earlier.method == CRASH or (earlier.method == STOP and fault.method != SCRIPT):
            gone |= {one.id for one in _hit(earlier, roster, phase, gone)}
    return _hit(fault, roster, phase, gone)


def _hit(fault: PlannedFault, roster: Roster, phase: Phase, gone: Collection[str]) -> tuple[Member, ...]:
    if fault.unit is not None:
        return ()
    waiting = [one for one in roster.members if one.role not in phase.roles and fault.role in (None, one.role)]
    zones = sorted({one.zone for one in waiting})
    there = [
        one for one in waiting if one.id not in gone and (fault.zone is None or zones.index(one.zone) == fault.zone - 1)
    ]
    count = fault.count or (1 if fault.zone is None else len(there))
    return tuple(sorted(there, key=lambda one: (one.role, -one.rank))[:count]) if count <= len(there) else ()
