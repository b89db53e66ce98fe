"""What a reader must know of a cell before trusting its numbers: each a sentence, with what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import fmean, median
from typing import Literal

from troop.bench.record import CellStatus
from troop.bench.verdicts import name_some
from troop.measure.summary import OK
from troop.report.document import Cell, Finding, Node, Operation, Phase, Scaling
from troop.report.fleets import REBALANCE

UNEQUAL = 0.2
"""A node that has done so much less or more than its role's median is not like the others."""

BUSY = 85.0
"""Percent of a load generator's processors, from which on it may be what was measured."""

WAITING = 5.0
"""Percent of all processors' time that is spent waiting for disks, or for the hypervisor."""

CLOCK_SECONDS, CLOCK_SHARE = 0.1, 0.01
"""By which clocks may be wrong: seconds, and as a part of the measured time."""

MOVED_SECONDS = 0.5
"""By which a clock is wrong from where on a second is not the same second."""

BEYOND = 10
"""Operations beyond a percentile, with fewer of which it says little."""

GROWN = 0.7
"""Efficiency at the most nodes, below which a reader will ask why."""

_PERCENTILES = (("p99_9_ms", "p99.9", 0.001), ("p99_ms", "p99", 0.01), ("p95_ms", "p95", 0.05), ("p90_ms", "p90", 0.1))

MOST_KINDS = 3
"""Kinds of errors that are named."""

GENERATORS = ("driver", "client", "generator", "load")
"""What roles are called whose nodes bring the load."""


def findings(cell: Cell) -> list[Finding]:
    """All of one cell, in the order in which they matter."""
    of_phase: tuple[Callable[[Cell, Phase], Iterable[Finding]], ...] = (
        _outcomes,
        _errors,
        _busy,
        _unequal,
        _clocks,
        _few,
    )
    findings = [*_status(cell), *_earlier(cell), *_interruptions(cell), *_costs(cell)]
    for phase in cell.phases:
        for judge in of_phase:
            findings += judge(cell, phase)
    return findings


def of_growth(scaling: Sequence[Scaling], cells: Sequence[Cell]) -> Iterator[Finding]:
    """Where throughput grows much less than nodes do, and whether anything that was measured explains it: of each phase
    and role the operation that most is done of, and of it the combination that grows least.
    """
    most: dict[tuple[str, str, str], Scaling] = {}
    for one in scaling:
        key = one.phase, one.role, one.counted
        if key not in most or _rate(one) > _rate(most[key]):
            most[key] = one
    for (phase, role, counted), main in most.items():
        alike = [one for one in scaling if (one.phase, one.role, one.counted) == (phase, role, counted)]
        judged = [(*at_most, one) for one in alike if one.operation == main.operation and (at_most := _at_most(one))]
        efficiency, nodes, one = min(judged, key=lambda each: each[0], default=(1.0, 0, main))
        if efficiency < GROWN:
            there = {point.cell for point in one.points if point.nodes == nodes}
            label = f" ({one.label})" if one.label else ""
            why = _explained(phase, [cell for cell in cells if cell.cell in there])
            growth = f"at {nodes:,} {counted} {100 * efficiency:.0f} % of perfect growth"
            text = f"{phase}, {one.operation} of {role}{label}: {growth}: {why}."
            yield Finding(severity="warning", text=text)


def _rate(one: Scaling) -> float:
    return sum(point.per_second for point in one.points)


def _at_most(one: Scaling) -> tuple[float, int] | None:
    """Efficiency at the most nodes, the mean of the repetitions, and how many nodes these are."""
    nodes = max(point.nodes for point in one.points)
    known = [point.efficiency for point in one.points if point.nodes == nodes and point.efficiency is not None]
    return (fmean(known), nodes) if known else None


def _explained(phase: str, cells: Sequence[Cell]) -> str:
    busiest: dict[str, float] = {}
    for use in (use for cell in cells for one in cell.phases if one.phase == phase for use in one.use):
        if use.cpu is not None:
            busiest[use.role] = max(busiest.get(use.role, 0.0), use.cpu)
    if not busiest:
        return "how busy nodes were was not measured; look at what they load, and at what they share"
    if full := [f"{role} for {cpu:.0f} % of the time" for role, cpu in busiest.items() if cpu > BUSY]:
        return f"processors were busy, of {' and of '.join(full)}"
    usage = ", ".join(f"{role} {cpu:.0f} %" for role, cpu in busiest.items())
    return f"no processors explain it ({usage}); look at what the nodes load, and at what they share"


def _finding(cell: Cell, text: str, severity: Literal["error", "warning"] = "warning") -> Finding:
    return Finding(severity=severity, cell=cell.cell, text=text)


def _status(cell: Cell) -> Iterator[Finding]:
    if cell.status == CellStatus.SUCCEEDED:
        return
    if cell.status == CellStatus.PENDING:
        yield _finding(cell, "It was never begun.", "error")
        return
    reason = " ".join((cell.reason or "no reason is known").split("\n")[0].split())
    what = "It has no results" if cell.status not in list(CellStatus) else f"It is {cell.status}"
    yield _finding(cell, f"{what}, and counts neither for scaling nor for comparisons: {reason}.", "error")


def _earlier(cell: Cell) -> Iterator[Finding]:
    for one in cell.earlier:
        reason = f": {one.reason.splitlines()[0].rstrip('.')}" if one.reason else ""
        yield _finding(
            cell, f"{one.cell} was an earlier attempt, {one.status}{reason}. {cell.cell} counts in its place."
        )


def _interruptions(cell: Cell) -> Iterator[Finding]:
    taken = [one.node for one in cell.interruptions if one.action != REBALANCE]
    if taken:
        yield _finding(cell, f"Spot took {name_some(taken)} back, or said that it would.")
    if expected := [one.node for one in cell.interruptions if one.action == REBALANCE]:
        sentence = f"EC2 expected to take {name_some(expected)} back (a rebalance recommendation); nothing came of it."
        yield _finding(cell, sentence)


def _costs(cell: Cell) -> Iterator[Finding]:
    if cell.cost and cell.cost.unknown:
        what = ", ".join(cell.cost.unknown)
        text = f"What it has cost is more than is told: there is no price of {what}. Give it by hand, under prices."
        yield _finding(cell, text)
    elif cell.cost and cell.hourly is None and cell.status == CellStatus.SUCCEEDED:
        yield _finding(cell, "Costs of operations are not told: some nodes or volumes have no price. See prices.")


def _outcomes(cell: Cell, phase: Phase) -> Iterator[Finding]:
    if bad := [node for node in phase.members if node.outcome != OK]:
        outcomes = ", ".join(sorted({node.outcome for node in bad}))
        text = f"{phase.phase}: it did not go well on {name_some(node.node for node in bad)} ({outcomes})."
        yield _finding(cell, text, "error")


def _errors(cell: Cell, phase: Phase) -> Iterator[Finding]:
    for one in phase.operations:
        total = sum(one.errors.values())
        if not total:
            continue
        ordered = sorted(one.errors.items(), key=lambda pair: (-pair[1], pair[0]))
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in ordered[:MOST_KINDS])
        more = f", and {len(ordered) - MOST_KINDS} more kinds" if len(ordered) > MOST_KINDS else ""
        every = total + one.count
        what = f"{total:,} of {every:,} operations ({_percent(total / every)}) ended in an error"
        yield _finding(cell, f"{_named(phase, one)}: {what}: {kinds}{more}.", "error" if not one.count else "warning")


def _busy(cell: Cell, phase: Phase) -> Iterator[Finding]:
    generators = _generators(cell, phase)
    for use in phase.use:
        if use.role in generators and use.cpu is not None and use.cpu > BUSY:
            text = (
                f"{phase.phase}: processors of {use.role} were busy for {use.cpu:.0f} % of the time: they bring the "
                "load, and may be what was measured. Take more of them, or larger ones."
            )
            yield _finding(cell, text)
        if use.steal is not None and use.steal > WAITING:
            text = (
                f"{phase.phase}: the hypervisor kept processors of {use.role} waiting for {use.steal:.0f} % of the "
                "time (steal): burstable instances do so without credits. Take another instance type."
            )
            yield _finding(cell, text)
        if use.iowait is not None and use.iowait > WAITING:
            text = (
                f"{phase.phase}: processors of {use.role} waited for disks for {use.iowait:.0f} % of the time (iowait)."
            )
            yield _finding(cell, text)


def _generators(cell: Cell, phase: Phase) -> set[str]:
    """The roles that bring the load: by their names; else those that have counted operations, when others have not."""
    roles = {fleet.role for fleet in cell.fleets} | {use.role for use in phase.use}
    if named := {role for role in roles if any(word in role for word in GENERATORS)}:
        return named
    counted = {one.role for one in phase.operations if one.count}
    return counted if counted < roles else set()


def _unequal(cell: Cell, phase: Phase) -> Iterator[Finding]:
    by_role: dict[str, list[Node]] = {}
    for node in phase.members:
        by_role.setdefault(node.role, []).append(node)
    for role, nodes in by_role.items():
        middle = median(node.count for node in nodes)
        far = [node for node in nodes if middle and abs(node.count / middle - 1) > UNEQUAL]
        if far:
            furthest = max(far, key=lambda node: abs(node.count - middle))
            text = (
                f"{phase.phase}: of {len(nodes)} {role}, {name_some(node.node for node in far)} did not do as much as "
                f"the others: {furthest.node} did {furthest.count:,} operations, half of them more than {middle:,.0f}. "
                "Look at its output, its zone and its processors."
            )
            yield _finding(cell, text)


def _clocks(cell: Cell, phase: Phase) -> Iterator[Finding]:
    unknown = [node.node for node in phase.members if node.clock_uncertainty_seconds is None]
    if unknown and len(phase.members) > 1:
        text = f"{phase.phase}: the clock of {name_some(unknown)} could not be compared; it may be wrong by any time."
        yield _finding(cell, text)
    if len(phase.members) > 1 and (wrong := {node.node: off for node in phase.members if (off := _wrong_by(node))}):
        text = (
            f"{phase.phase}: the clock of {name_some(wrong)} was wrong, by {max(wrong.values()):.1f} s at most: what "
            "they did over time was moved by as much, in whole seconds and steps, so it may be a little too early or "
            "late. Look at what keeps their time."
        )
        yield _finding(cell, text)
    worst = max((node.clock_uncertainty_seconds or 0 for node in phase.members), default=0.0)
    allowed = min(CLOCK_SECONDS, CLOCK_SHARE * phase.measured_seconds)
    if len(phase.members) > 1 and worst > allowed:
        share = _percent(worst / phase.measured_seconds) if phase.measured_seconds else "all"
        text = (
            f"{phase.phase}: clocks of nodes may be wrong by {worst:.2f} s, {share} of the measured time: what they "
            "did in the same second may be told of two."
        )
        yield _finding(cell, text)


def _wrong_by(node: Node) -> float:
    """Seconds, where its clock was so certainly wrong that its times were moved; else 0."""
    off = abs(node.clock_offset_seconds or 0)
    return off if off > max(node.clock_uncertainty_seconds or 0, MOVED_SECONDS) else 0.0


def _few(cell: Cell, phase: Phase) -> Iterator[Finding]:
    """Percentiles that are told of too few operations, all of a phase in one sentence."""
    sentences = []
    for one in phase.operations:
        names = [
            name for key, name, share in _PERCENTILES if getattr(one, key) is not None and one.count * share < BEYOND
        ]
        if names:
            sentences.append(f"{', '.join(reversed(names))} of {one.role} {one.operation} ({one.count:,} operations)")
    if sentences:
        text = f"{phase.phase}: too few operations to rely on {_and(sentences)}: measure for longer."
        yield _finding(cell, text)


def _named(phase: Phase, one: Operation) -> str:
    return f"{phase.phase}, {one.operation} of {one.role}"


def _percent(share: float) -> str:
    return f"{share:.1%}" if share >= 0.001 else "less than 0.1 %"


def _and(parts: Sequence[str]) -> str:
    return "; ".join(parts)
