"""Finds what a reader must know to trust a cell's numbers: sentences that also say what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import fmean, median
from typing import Literal

from troop.bench.definition.definition import is_load
from troop.bench.measuring.verdicts import name_some
from troop.bench.records.record import CellStatus
from troop.measure.operations import MOST_LISTED, MOST_NAMES
from troop.measure.summary import OK
from troop.report import open_loop, processors, steadiness
from troop.report.document import Cell, Finding, Node, Operation, Phase, Scaling, Separate, Series
from troop.report.fleets import REBALANCE
from troop.report.points import is_beyond
from troop.report.processors import FULL, WAITING

UNEQUAL = 0.2
"""The relative difference from the role's median from which a node counts as unequal."""

CLOCK_SECONDS, CLOCK_SHARE = 0.1, 0.01
"""The accepted uncertainty of clocks: seconds, and as a fraction of the measured time."""

MOVED_SECONDS = 0.5
"""The clock error in seconds above which events fall into a different second."""

LATE_SHARE, LATE_GAPS = 0.01, 10
"""A load is late if it begins after as large a part of the measured time, and after as many mean times between its
operations.
"""

BEYOND = 10
"""The fewest operations beyond a reliable percentile."""

GROWN = 0.7
"""The efficiency at the most nodes below which the report explains the growth."""

TOOL_LIMITS = {
    "JMeter": "Times of {names} are whole milliseconds, because JMeter logs no fractions. Differences of a millisecond "
    "mean nothing.",
    "k6": "Times of {names} leave out name resolution, connecting and TLS: k6 measures from sending a request to the "
    "last byte of its answer.",
}
"""What a tool's times leave out or round, by its name: a reader of a report does not see how they were measured."""

_PERCENTILES = (("p99_9_ms", "p99.9", 0.001), ("p99_ms", "p99", 0.01), ("p95_ms", "p95", 0.05), ("p90_ms", "p90", 0.1))

Severity = Literal["error", "warning", "note"]

INVALID, COSTS, CLOCKS = "Cells without results that count", "Costs are incomplete", "Clocks of nodes are not exact"
"""Causes of several findings."""

MOST_KINDS = 3
"""The most kinds of errors to name."""


def findings(cell: Cell) -> list[Finding]:
    """Returns all findings of one cell, in order of importance."""
    phase_checks: tuple[Callable[[Cell, Phase], Iterable[Finding]], ...] = (
        _outcomes,
        _nothing,
        _late,
        _errors,
        _merged_names,
        _busy,
        _unequal,
        _clocks,
        _few,
        _open_loop,
        _unsteady,
    )
    disturbed = {_unequal, _open_loop, _unsteady}  # planned faults cause what these find
    findings = [*_status(cell), *_earlier(cell), *_interruptions(cell), *_costs(cell)]
    for phase in cell.phases:
        for judge in phase_checks:
            findings += [] if phase.faults and judge in disturbed else judge(cell, phase)
    return findings


def growth_findings(scaling: Sequence[Scaling], cells: Sequence[Cell]) -> Iterator[Finding]:
    """Yields a finding for each phase and role whose throughput grows much less than its nodes, with an explanation if
    possible.

    The most frequent operation is judged, by the combination that grows least.
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
            growth = f"at {nodes:,} {counted} {100 * efficiency:.0f} % of ideal growth"
            text = f"{phase}, {one.operation} of {role}{label}: {growth}: {why}."
            yield Finding(severity="warning", cause="Throughput grows less than the nodes", text=text)


def timing_findings(cells: Sequence[Cell]) -> Iterator[Finding]:
    """Yields findings about times that are no response times although a rate is set, and about what tools round."""
    for text in open_loop.timing_sentences(cells):
        yield Finding(severity="warning", cause="Some times are no response times", text=text)
    for text in tool_limits(cells):
        yield Finding(severity="note", cause="What tools measure", text=text)


def _rate(one: Scaling) -> float:
    return sum(point.per_second for point in one.points)


def _at_most(one: Scaling) -> tuple[float, int] | None:
    """Returns the efficiency at the most nodes, as the mean of the repetitions, and the number of nodes."""
    nodes = max(point.nodes for point in one.points)
    known = [point.efficiency for point in one.points if point.nodes == nodes and point.efficiency is not None]
    return (fmean(known), nodes) if known else None


def _explained(phase: str, cells: Sequence[Cell]) -> str:
    loads = processors.loads(use for cell in cells for one in cell.phases if one.phase == phase for use in one.use)
    known = [one for one in loads if one.busy is not None]
    waiting = processors.waits(loads)
    if not known:
        return "the load of nodes was not measured; check the system under load and shared resources"
    if full := " and ".join(f"{one.role} for {one.busy:.0f} % of the time" for one in known if one.is_full):
        return f"processors were busy: {full}" + (f", and waited for disks (iowait): {waiting}" if waiting else "")
    usage = ", ".join(f"{one.role} {one.busy:.0f} %" for one in known)
    if waiting:
        return f"processors were not busy ({usage}), but waited for disks (iowait): {waiting}; check the disks"
    return f"processors were not busy ({usage}); check the system under load and shared resources"


def _finding(cell: Cell, cause: str, text: str, severity: Severity = "warning") -> Finding:
    return Finding(severity=severity, cell=cell.cell, cause=cause, text=text)


def _status(cell: Cell) -> Iterator[Finding]:
    if cell.status == CellStatus.SUCCEEDED:
        return
    if cell.status == CellStatus.PENDING:
        yield _finding(cell, INVALID, "It never started.", "error")
        return
    reason = first_sentence(cell.reason or "the reason is unknown")
    state = "It has no results" if cell.status not in list(CellStatus) else f"It is {cell.status}"
    yield _finding(cell, INVALID, f"{state} and does not count for scaling or comparisons: {reason}", "error")


def first_sentence(reason: str) -> str:
    """Returns the first line of a reason, with a full stop if it does not end a sentence."""
    line = " ".join(reason.split("\n")[0].split())
    return line if line.endswith((".", "?", "!")) else f"{line}."


def _earlier(cell: Cell) -> Iterator[Finding]:
    for one in cell.earlier:
        reason = f": {one.reason.splitlines()[0].rstrip('.')}" if one.reason else ""
        text = f"The earlier attempt {one.cell} is {one.status}{reason}. {cell.cell} counts instead."
        yield _finding(cell, "Cells ran again", text)


def _interruptions(cell: Cell) -> Iterator[Finding]:
    taken = [one.node for one in cell.interruptions if one.action != REBALANCE]
    if taken:
        yield _finding(cell, "Spot took nodes back", f"Spot took back {name_some(taken)}, or announced it.")
    if expected := [one.node for one in cell.interruptions if one.action == REBALANCE]:
        sentence = f"EC2 recommended a rebalance for {name_some(expected)}, but did not interrupt."
        yield _finding(cell, "EC2 recommended a rebalance", sentence)


def _costs(cell: Cell) -> Iterator[Finding]:
    if cell.cost and cell.cost.unknown:
        items = ", ".join(cell.cost.unknown)
        text = f"The cost is incomplete: there is no price for {items}. Add it to the benchmark file under prices."
        yield _finding(cell, COSTS, text)
    elif cell.cost and cell.hourly is None and cell.status == CellStatus.SUCCEEDED:
        text = "Costs of operations are unknown, because some nodes or volumes have no price. See prices."
        yield _finding(cell, COSTS, text)


def _outcomes(cell: Cell, phase: Phase) -> Iterator[Finding]:
    if bad := [node for node in phase.members if node.outcome != OK]:
        outcomes = ", ".join(sorted({node.outcome for node in bad}))
        text = f"{phase.title}: the phase failed on {name_some(node.node for node in bad)} ({outcomes})."
        yield _finding(cell, "The phase failed on some nodes", text, "error")


def _nothing(cell: Cell, phase: Phase) -> Iterator[Finding]:
    rows: list[Operation | Separate] = [*phase.operations, *phase.separate]
    if cell.status == CellStatus.SUCCEEDED and not any(one.count or one.errors or one.per_second for one in rows):
        text = (
            f"{phase.title}: no operation ended in the measured time, so nothing was measured. Check the output of the "
            "load, and the unit and the clock of its timestamps."
        )
        yield _finding(cell, "Nothing was measured", text, "error")


def _late(cell: Cell, phase: Phase) -> Iterator[Finding]:
    """Yields a finding for each role whose load began after the measured time did, as the start of a JVM takes."""
    rates = [one for one in phase.series if one.name in ("per_second", "errors_per_second") and not one.node]
    for role in dict.fromkeys(one.role for one in phase.operations):
        before = min((_before_the_first(one) for one in rates if one.role == role), default=0)
        most = max((one.count for one in phase.operations if one.role == role), default=0)
        if before * most > LATE_GAPS * phase.measured_seconds and before > LATE_SHARE * phase.measured_seconds:
            text = (
                f"{phase.title}: {role} had no operation in the first {before:g} s of the measured time, which count "
                "in its rate. State as much start_up if the script waits for TROOP_START_AT, else a longer warm_up."
            )
            yield _finding(cell, "The load began late", text)


def _before_the_first(rates: Series) -> float:
    """Returns the seconds of the measured time before the first step with an operation."""
    first = next((number for number, value in enumerate(rates.values) if value), 0)
    return max(0.0, rates.start + first * rates.step_seconds)


def _errors(cell: Cell, phase: Phase) -> Iterator[Finding]:
    for one in phase.operations:
        total = sum(one.errors.values())
        if not total:
            continue
        ordered = sorted(one.errors.items(), key=lambda pair: (-pair[1], pair[0]))
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in ordered[:MOST_KINDS])
        more = f", and {len(ordered) - MOST_KINDS} more kinds" if len(ordered) > MOST_KINDS else ""
        every = total + one.count
        failures = f"{total:,} of {every:,} operations ({_percent(total / every)}) failed"
        severity: Severity = "note" if phase.faults or is_beyond(cell, phase) else "warning" if one.count else "error"
        yield _finding(cell, "Operations failed", f"{_named(phase, one)}: {failures}: {kinds}{more}.", severity)


def _merged_names(cell: Cell, phase: Phase) -> Iterator[Finding]:
    for one in phase.operations:
        if one.names:
            least = "at least " if len(one.names) >= MOST_LISTED else ""
            text = (
                f"{_named(phase, one)} contains {least}{len(one.names):,} kinds of operations, because a node had more "
                f"than {MOST_NAMES - 1}: {name_some(one.names)}. Use fewer labels in the tool to tell them apart."
            )
            yield _finding(cell, "Kinds of operations are counted together", text)


def _busy(cell: Cell, phase: Phase) -> Iterator[Finding]:
    generating = generators(cell, phase)
    for use in phase.use:
        if use.role in generating and use.cpu is not None and use.cpu > FULL:
            text = (
                f"{phase.title}: processors of {use.role} were busy for {use.cpu:.0f} % of the time. They generate "
                "the load and may limit the result: use more of them, or larger instances."
            )
            yield _finding(cell, "Processors that generate the load were busy", text)
        if use.steal is not None and use.steal > WAITING:
            text = (
                f"{phase.title}: processors of {use.role} waited for the hypervisor for {use.steal:.0f} % of the time "
                "(steal), as burstable instances without credits do. Use another instance type."
            )
            yield _finding(cell, "Processors waited for the hypervisor", text)
        if use.iowait is not None and use.iowait > WAITING:
            text = (
                f"{phase.title}: processors of {use.role} waited for disks for {use.iowait:.0f} % of the time "
                "(iowait). The disks may limit the result."
            )
            yield _finding(cell, "Processors waited for disks", text)


def generators(cell: Cell, phase: Phase) -> set[str]:
    """Returns the roles that generate load: by the file or their names, otherwise those with counted operations if
    others have none.
    """
    loads = {use.role: is_load(use.role, None) for use in phase.use}
    roles = loads | {fleet.role: fleet.is_load for fleet in cell.fleets}
    if named := {role for role, load in roles.items() if load}:
        return named
    counted = {one.role for one in phase.operations if one.count}
    return counted if counted < roles.keys() else set()


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
                f"{phase.title}: unequal work on {name_some(node.node for node in far)} (of {len(nodes)} {role}): "
                f"{furthest.node} did {furthest.count:,} operations, the median is {middle:,.0f}. "
                "Check its output, zone, processors and disks."
            )
            yield _finding(cell, "Nodes did unequal work", text)


def _clocks(cell: Cell, phase: Phase) -> Iterator[Finding]:
    unknown = [node.node for node in phase.members if node.clock_uncertainty_seconds is None]
    if unknown and len(phase.members) > 1:
        text = f"{phase.title}: the clock offset of {name_some(unknown)} is unknown and may be large."
        yield _finding(cell, CLOCKS, text)
    if len(phase.members) > 1 and (wrong := {node.node: off for node in phase.members if (off := _wrong_by(node))}):
        text = (
            f"{phase.title}: the clock of {name_some(wrong)} was wrong by up to {max(wrong.values()):.1f} s. "
            "Values over time were corrected in whole seconds and steps, and may be slightly early or late. "
            "Check the time synchronization."
        )
        yield _finding(cell, CLOCKS, text)
    worst = max((node.clock_uncertainty_seconds or 0 for node in phase.members), default=0.0)
    allowed = min(CLOCK_SECONDS, CLOCK_SHARE * phase.measured_seconds)
    if len(phase.members) > 1 and worst > allowed:
        share = _percent(worst / phase.measured_seconds) if phase.measured_seconds else "all"
        text = (
            f"{phase.title}: clocks of nodes may be wrong by {worst:.2f} s, {share} of the measured time. "
            "Operations of the same second may appear in two."
        )
        yield _finding(cell, CLOCKS, text)


def _wrong_by(node: Node) -> float:
    """Returns the seconds by which a clock was certainly wrong, so that its times were moved; otherwise 0."""
    off = abs(node.clock_offset_seconds or 0)
    return off if off > max(node.clock_uncertainty_seconds or 0, MOVED_SECONDS) else 0.0


def _few(cell: Cell, phase: Phase) -> Iterator[Finding]:
    """Yields one finding for all percentiles of a phase with too few operations."""
    sentences = []
    for one in phase.operations:
        names = [
            name for key, name, share in _PERCENTILES if getattr(one, key) is not None and one.count * share < BEYOND
        ]
        if names:
            sentences.append(f"{', '.join(reversed(names))} of {one.role} {one.operation} ({one.count:,} operations)")
    if sentences:
        text = f"{phase.title}: too few operations for a reliable {_and(sentences)}: measure longer."
        yield _finding(cell, "Too few operations for some percentiles: measure longer", text)


def _open_loop(cell: Cell, phase: Phase) -> Iterator[Finding]:
    for text in open_loop.findings(phase):
        yield _finding(cell, "The set rate was not kept", text, "note" if is_beyond(cell, phase) else "warning")


def _unsteady(cell: Cell, phase: Phase) -> Iterator[Finding]:
    for text in steadiness.findings(phase):
        yield _finding(cell, "No steady state", text)


def _named(phase: Phase, one: Operation) -> str:
    return f"{phase.title}, {one.operation} of {one.role}"


def _percent(share: float) -> str:
    return f"{share:.1%}" if share >= 0.001 else "less than 0.1 %"


def _and(parts: Sequence[str]) -> str:
    return "; ".join(parts)


def tool_limits(cells: Iterable[Cell]) -> list[str]:
    """Returns a sentence for each tool that measured operations with times."""
    names: dict[str, dict[str, None]] = {}
    for one in (one for cell in cells for phase in cell.phases for one in phase.operations):
        for tool in one.tools if one.max_ms is not None else ():
            names.setdefault(tool, {})[one.operation] = None
    return [
        TOOL_LIMITS[tool].format(names=name_some(list(each))) for tool, each in names.items() if tool in TOOL_LIMITS
    ]
