"""Finds where more threads brought no more throughput, and what was full: processors, the network, the service.

Points of a cell that differ only in a number of threads, or of clients or connections, share their nodes. So their
throughput over that number shows where these are full.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Final

from troop.bench.definition.definition import is_load
from troop.bench.definition.plan import shown_value
from troop.bench.fleets.type_facts import GBIT, TypeFacts
from troop.report.document import Cell, Finding, Operation, Phase
from troop.report.processors import loads, waits
from troop.report.totals import rows_of
from troop.shared.formatting import plain

COUNTS: Final = ("threads", "clients", "connections", "concurrency")
"""Parameters that say how many operations are under way at a time."""
FLAT: Final = 1.1
"""The factor by which a later point must exceed a point, so that throughput is not flat from there on."""
LONGER: Final = 2.0
"""The factor by which the number must grow after that point."""
NEAR: Final = 0.9
"""The part of the network's baseline from which it is full: EC2 holds nodes at about the baseline."""
_SLOW_DOWN = re.compile(r"slow[-_. ]?down", re.IGNORECASE)


@dataclass(frozen=True)
class _Line:
    """The points of one setting, ascending: a number of threads, operations a second, and the phases with it."""

    phase: str
    role: str
    operation: str
    others: str
    points: Sequence[tuple[float, float, Sequence[Phase]]]


def findings(cell: Cell, types: Mapping[str, TypeFacts]) -> Iterator[Finding]:
    """Yields the findings of one cell."""
    for phase in cell.phases:
        for one in phase.operations:
            if text := _refused(phase, one):
                yield Finding(severity="warning", cell=cell.cell, cause="The service refused operations", text=text)
    for name in COUNTS:
        for line in _lines(cell, name):
            if text := _flat(cell, name, line, types):
                subject = f"{line.phase}, {line.operation} of {line.role}{f' ({line.others})' if line.others else ''}"
                cause = f"More {name} bring no more throughput"
                yield Finding(severity="warning", cell=cell.cell, cause=cause, text=f"{subject}: {text}")


def _refused(phase: Phase, one: Operation) -> str:
    count = _slowed(one)
    if not count:
        return ""
    every = one.count + sum(one.errors.values())
    return (
        f"{phase.title}, {one.operation} of {one.role}: the service answered SlowDown to {count:,} of {every:,} "
        f"operations ({count / every:.2%}). This is the limit of its request rate, and not of the nodes. S3 raises the "
        "limit under load, within minutes to hours: warm up for longer, or spread the keys over more prefixes."
    )


def _slowed(one: Operation) -> int:
    """Returns the number of operations that the service refused because there were too many."""
    return sum(count for kind, count in one.errors.items() if _SLOW_DOWN.search(kind))


def _lines(cell: Cell, name: str) -> Iterator[_Line]:
    """Yields a line over the number ``name`` for the main operation of each role, and each setting of the others.

    Roles with a set rate are left out: their throughput is what they were told to do. So are phases with planned
    faults.
    """
    phases: dict[tuple[str, str, str, str], dict[float, list[tuple[float, Phase]]]] = {}
    for phase in cell.phases:
        number = phase.parameters.get(name)
        if isinstance(number, bool) or not isinstance(number, int | float) or phase.faults:
            continue
        others = {key: value for key, value in sorted(phase.parameters.items()) if key != name}
        for one in {row.role: row for row in reversed(rows_of(phase))}.values():  # the first row of each role
            if one.per_second and one.role not in phase.targets:
                key = phase.phase, one.role, one.operation, json.dumps(others)
                phases.setdefault(key, {}).setdefault(number, []).append((one.per_second, phase))
    for (phase_name, role, operation, others_text), by_number in phases.items():
        shown = ", ".join(f"{key}={shown_value(value)}" for key, value in json.loads(others_text).items())
        points = [
            (number, geometric_mean(rate for rate, _ in each), [phase for _, phase in each])
            for number, each in sorted(by_number.items())
        ]
        yield _Line(phase_name, role, operation, shown, points)


def _flat(cell: Cell, name: str, line: _Line, types: Mapping[str, TypeFacts]) -> str:
    """Returns from where on a line is flat, and why; empty if it grows to its end."""
    most, _, _ = line.points[-1]
    for place, (number, rate, _) in enumerate(line.points[:-1]):
        later = line.points[place + 1 :]
        best = max(beyond for _, beyond, _ in later)
        if most >= LONGER * number and best <= FLAT * rate:
            change = f"at most {best / rate - 1:.0%} higher" if best > rate else "never higher"
            phases = [phase for _, _, each in later for phase in each]
            return (
                f"throughput grows up to {name}={number:g} ({rate:,.0f} a second), and up to {name}={most:g} it is "
                f"{change}. {_why(cell, line.role, phases, types)}"
            )
    return ""


def _why(cell: Cell, role: str, phases: Sequence[Phase], types: Mapping[str, TypeFacts]) -> str:
    """Returns what was full beyond the point, from the most certain reason to the least."""
    reasons = []
    if any(_slowed(one) for phase in phases for one in phase.operations if one.role == role):
        reasons.append("the service answered SlowDown, so its request rate is the limit")
    generates = {fleet.role: fleet.is_load for fleet in cell.fleets}
    seen = []
    every = loads(use for phase in phases for use in phase.use)
    for one in every:
        its = one.role
        kind = "generate the load" if generates.get(its, is_load(its, None)) else "are the system"
        if one.is_full:
            reasons.append(f"processors of {its}, which {kind}, were busy for {one.busy:.0f} % of the time")
        elif one.has_full_core:
            reasons.append(f"one processor of {its}, which {kind}, was busy for {one.core:.0f} % of the time")
        elif one.busy is not None:
            seen.append(f"processors of {its} were busy for {one.busy:.0f} %")
        for direction, text in (("in", "received"), ("out", "sent")):
            moved = _network(phases, its, direction, types)
            if moved and moved[0] >= NEAR * moved[1]:
                reasons.append(
                    f"nodes of {its} {text} {plain(moved[0])} Gbit/s each, and the baseline of their network is "
                    f"{plain(moved[1])}"
                )
            elif moved and direction == "in":
                seen.append(f"nodes of {its} received {plain(moved[0])} of {plain(moved[1])} Gbit/s")
    waiting = waits(every)
    if reasons:
        also = f" Processors waited for disks (iowait): {waiting}." if waiting else ""
        return f"What is full: {'; '.join(reasons)}.{also}"
    if waiting:
        idle = f"were not full ({'; '.join(seen)}), but " if seen else ""
        return f"The processors {idle}waited for disks (iowait): {waiting}. The disks may be the limit."
    if seen:
        return f"The nodes were not full ({'; '.join(seen)}): the limit is the service, or beyond the nodes."
    return "The load of nodes was not measured, so the reason is unknown."


def _network(
    phases: Sequence[Phase], role: str, direction: str, types: Mapping[str, TypeFacts]
) -> tuple[float, float] | None:
    """Returns the largest mean traffic of a node in Gbit/s, and the baseline of its type; None if one is unknown."""
    known = []
    for phase in phases:
        for node in phase.members:
            facts = types.get(node.instance_type)
            moved = node.network_received_bytes if direction == "in" else node.network_sent_bytes
            if node.role == role and facts and facts.network_gbps and moved is not None:
                known.append((moved / GBIT, facts.network_gbps))
    return max(known, key=lambda pair: pair[0] / pair[1], default=None)
