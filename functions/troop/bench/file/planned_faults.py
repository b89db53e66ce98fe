"""Models and checks the planned faults of a measured phase."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from troop.bench.definition.keys import written
from troop.bench.definition.planned_fault import (
    CRASH,
    ENDING,
    LASTING,
    LONGEST_PHASE,
    METHODS,
    SCRIPT,
    SLOW,
    STOP,
    Expectation,
    PlannedFault,
)
from troop.bench.definition.problems import Place, Problem
from troop.bench.file.fields import described, model_of, plain_values
from troop.shared.choice import parse_choice
from troop.shared.values import BadValue

BEFORE, AFTER = 11, 10
"""Least seconds of undisturbed load before a fault, and after its end: windows of fewer say little. A load that begins
within a second has 10 whole ones in 11 s."""

_BOUNDS = ("rate", "rate_back_within", "p99_back_within", "failed_at_most")
_BY_METHOD = {"for": (ENDING, ENDING | {SCRIPT}), "script": ({SCRIPT},) * 2, "delay": ({SLOW},) * 2}
"""For some keys, the methods that need them, and those that can have them."""


class ExpectationIn(model_of(Expectation)):  # type: ignore[misc]
    """What the load must bear: the hypothesis, which the results hold or break."""

    def build(self) -> Expectation:
        return Expectation(**plain_values(Expectation, self))


class FaultIn(model_of(PlannedFault)):  # type: ignore[misc]
    """A failure under load. It has exactly one of role, unit, and zone; a role can also have a zone."""

    expect: ExpectationIn | None = described(
        f"a mapping with at least one of {', '.join(_BOUNDS)}; and share",
        "What the load must bear",
        "Without it, the report shows what happened, and has no verdict.",
        default=None,
    )

    def build(self) -> PlannedFault:
        return PlannedFault(**plain_values(PlannedFault, self), expect=self.expect.build() if self.expect else None)


def problems(place: Place, phase: Any, fleets: Collection[str], files: Collection[str] | None) -> Iterator[Problem]:
    """Lists what is wrong with the faults of a phase, whatever the number of nodes.

    Args:
        phase: the phase in the file.
        fleets: the file's roles.
        files: names of the files in the benchmark's folder; None if unknown.
    """
    if not phase.faults:
        return
    if not phase.measured:
        yield Problem((*place, "measured"), "is missing", "set: a phase with faults needs it")
        return
    if not phase.start_together:
        allowed = "true in a phase with faults: they begin at moments of the common clock"
        yield Problem((*place, "start_together"), "is false", allowed)
    if phase.limits:
        yield Problem((*place, "limits"), "is set", "left out in a phase with faults: a fault has expect")
    if (recorded := phase.longest_warm_up + phase.measured) > LONGEST_PHASE:
        allowed = f"at most {written(LONGEST_PHASE)} in a phase with faults, which stores times by second"
        yield Problem((*place, "measured"), f"is {written(recorded)} with the warm-up", allowed)
    others = [role for role in fleets if role not in phase.roles]
    for n, fault in enumerate(phase.faults):
        at = (*place, "faults", n)
        yield from _victims(at, fault, others)
        yield from _on_nodes(at, fault, files) if fault.unit is None else _on_unit(at, fault)
        if fault.expect and all(getattr(fault.expect, bound) is None for bound in _BOUNDS):
            yield Problem((*at, "expect"), "has no bound", f"set with at least one of {', '.join(_BOUNDS)}")
    yield from _several(place, phase)
    yield from _moments(place, phase)


def _victims(at: Place, fault: FaultIn, others: Collection[str]) -> Iterator[Problem]:
    """Args: others: roles that do not run the phase's script."""
    kinds = [key for key in ("role", "unit") if getattr(fault, key) is not None]
    if len(kinds) == 2 or (not kinds and fault.zone is None):
        allowed = "set with exactly one of role and unit, or with zone alone"
        yield Problem(at, f"has {' and '.join(kinds) or 'none of role, unit and zone'}", allowed)
    there = f"one of {', '.join(others)}, which do not run the phase's script"
    if fault.role is not None and fault.role not in others:
        yield Problem((*at, "role"), f"is {fault.role!r}", there if others else _NOBODY)
    if fault.zone is not None and not kinds:
        if not others:
            yield Problem((*at, "zone"), f"is {fault.zone}", _NOBODY)
        if fault.count is not None:
            yield Problem((*at, "count"), f"is {fault.count}", "left out without role: it hits all nodes of the zone")


_NOBODY = "left out: all roles of the file run the phase's script"


def _on_unit(at: Place, fault: FaultIn) -> Iterator[Problem]:
    try:
        if fault.method is not None:
            parse_choice(fault.method)
    except BadValue as bad:
        yield Problem((*at, "method"), f"is {fault.method!r}", str(bad))
    values = {"zone": fault.zone, "count": fault.count, **_dependent(fault)}
    for key in (key for key, value in values.items() if value is not None):
        yield Problem((*at, key), "is set", "left out with a unit, of which Troop's chaos hits one instance")


def _on_nodes(at: Place, fault: FaultIn, files: Collection[str] | None) -> Iterator[Problem]:
    method = fault.method
    if method not in METHODS:
        message = "is missing" if method is None else f"is {method!r}"
        yield Problem((*at, "method"), message, f"one of {', '.join(METHODS)} without a unit")
        return
    for key, value in _dependent(fault).items():
        needed, possible = _BY_METHOD[key]
        if value is None and method in needed:
            yield Problem((*at, key), "is missing", f"set for the method {method}")
        elif value is not None and method not in possible:
            yield Problem((*at, key), "is set", f"left out for the method {method}")
    if files is not None and fault.script is not None and fault.script not in files:
        there = ", ".join(sorted(files)) or "none"
        yield Problem((*at, "script"), f"is {fault.script!r}", f"a file in the benchmark's folder: {there}")


def _dependent(fault: FaultIn) -> dict[str, Any]:
    return {"for": fault.lasts, "script": fault.script, "delay": fault.delay}


def _several(place: Place, phase: Any) -> Iterator[Problem]:
    """Lists what a phase with points cannot have, because each must begin in the same state."""
    kind = "a search" if phase.search else "points" if phase.points else "repeat"
    if not (phase.search or phase.points or phase.repeat > 1):
        return
    if phase.between is None:
        allowed = f"set in a phase with faults and {kind}: it restores the state before the next point"
        yield Problem((*place, "between"), "is missing", allowed)
    for n, fault in enumerate(phase.faults):
        at = (*place, "faults", n)
        if fault.unit is not None:
            allowed = f"left out in a phase with {kind}: nothing restores the account's unit before the next point"
            yield Problem((*at, "unit"), f"is {fault.unit!r}", allowed)
        elif fault.method in LASTING:
            allowed = f"another one in a phase with {kind}, in which each fault has an end (for)"
            yield Problem((*at, "method"), f"is {fault.method!r}", allowed)
        elif fault.method == SCRIPT and fault.lasts is None:
            yield Problem((*at, "for"), "is missing", f"set in a phase with {kind}, in which each fault has an end")
        if phase.search and fault.expect is None:
            allowed = "set in a phase with a search, which needs to know which values pass"
            yield Problem((*at, "expect"), "is missing", allowed)


def _moments(place: Place, phase: Any) -> Iterator[Problem]:
    """Lists faults without undisturbed load before or after them. A fault ends, and so do the times of its
    expectation.
    """
    least, why = BEFORE, f"the first {written(BEFORE)} show the load without a fault"
    for n, fault in enumerate(phase.faults):
        if fault.at < least:
            yield Problem((*place, "faults", n, "at"), f"is {written(fault.at)}", f"at least {written(least)}: {why}")
        over = fault.build().judged
        if over + AFTER > phase.measured:
            allowed = f"at least {written(over + AFTER)}: {_until(fault)} + {written(AFTER)}, for fault {n + 1}"
            yield Problem((*place, "measured"), f"is {written(phase.measured)}", allowed)
        least = over + AFTER + BEFORE
        why = f"{written(AFTER + BEFORE)} after the end of the one before; count and zone hit several nodes at once"


def _until(fault: FaultIn) -> str:
    """Says of what the time until a fault has been judged consists."""
    expect = fault.expect
    times = {"for": fault.lasts, **{key: getattr(expect, key, None) for key in ("rate_back_within", "p99_back_within")}}
    longest, key = max((seconds or 0, key) for key, seconds in times.items())
    return written(fault.at) + (f" + {written(longest)} of {key}" if longest else "")


def without_victims(phases: Iterable[Any], fleets: Mapping[str, Any]) -> Iterator[Problem]:
    """Lists faults for which there are not enough nodes, see :func:`troop.bench.definition.victims.victims`.

    That does not know the nodes that earlier phases have crashed, so a phase with crashes is the last with faults on
    nodes.

    Args:
        phases: all phases in the file.
        fleets: all fleets in the file, by role.
    """
    crashes = ""
    for number, phase in enumerate(phases):
        on_nodes = [fault for fault in phase.faults if fault.unit is None]
        if crashes and on_nodes:
            allowed = f"within the phase {crashes}, because that one crashes nodes"
            yield Problem(("phases", number, "faults"), "is set", allowed)
        yield from _too_few(("phases", number), phase, fleets)
        crashes = crashes or (phase.name if any(fault.method == CRASH for fault in on_nodes) else "")


def _too_few(place: Place, phase: Any, fleets: Mapping[str, Any]) -> Iterator[Problem]:
    gone: Counter[tuple[str, str]] = Counter()
    for n, fault in enumerate(phase.faults):
        at, role, zone = (*place, "faults", n), fault.role, fault.zone
        others = [fleets[one].zones for one in fleets if one not in phase.roles and role in (None, one)]
        if fault.unit is None and zone is not None and zone > max(others, default=zone):
            yield Problem((*at, "zone"), f"is {zone}", f"at most {max(others)}, the zones of their fleets (zones)")
        if (fleet := fleets.get(role)) is None:
            continue
        earlier = gone[role, CRASH] + (0 if fault.method == SCRIPT else gone[role, STOP])
        count, left, where = fault.count or 1, fleet.count - earlier, f"nodes of {role}"
        if zone is not None:
            left, where = min(left, fleet.count // fleet.zones), f"{where} in each zone"
        if count > left:
            message = f"is {count}{' by default' if fault.count is None else ''}"
            leave = " that earlier faults leave" if earlier else ""
            yield Problem((*at, "count"), message, f"at most {max(left, 0)}, the {where}{leave}")
        if fault.method in LASTING:
            gone[role, fault.method] += count
