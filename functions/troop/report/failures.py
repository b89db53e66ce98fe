"""Prepares what pages say about planned faults: the verdict, the figures beside what was expected, the windows,
repetitions with their mean, and the picture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Final

from troop.bench.measuring.failure import WORST
from troop.bench.measuring.verdicts import name_some
from troop.bench.results.fault_windows import FOLLOWING
from troop.report.comparison import FaultPair, FaultSide
from troop.report.document import (
    Cell,
    Curve,
    Failure,
    FallenOperation,
    FaultEvent,
    FaultExpectation,
    FaultVerdict,
    FaultWindow,
    Phase,
    Report,
    Search,
    worst,
)
from troop.report.formatting import cell_name, number
from troop.report.scaling import combination
from troop.shared import formatting
from troop.statistics.means import mean_interval

MOST_DRAWN: Final = 60
"""The most phases or points of a page whose curves are drawn."""
AROUND: Final = 60.0
"""Seconds before a fault, and after the time until all is as before, that are drawn of a long phase."""
LONGEST_DRAWN: Final = 300.0
"""Seconds of a phase that is drawn whole."""


@dataclass(frozen=True)
class FaultRow:
    """A planned fault with its place in the run."""

    cell: Cell
    phase: Phase
    fault: Failure

    @property
    def began(self) -> float:
        """The second after the start of the measured time in which it began, or was to begin."""
        begin = self.phase.measured_from
        if self.fault.began_at is None or begin is None:
            return self.fault.at
        return self.fault.began_at - begin.timestamp()


@dataclass(frozen=True)
class FaultLine:
    """A figure of a fault, and what the file expects of it.

    Attributes:
        expected: "" without an expectation.
        verdict: None without an expectation.
    """

    figure: str
    value: str
    expected: str = ""
    verdict: FaultVerdict | None = None


@dataclass(frozen=True)
class Repeated:
    """Repetitions of one fault.

    Attributes:
        means: the mean of each figure with its interval: rate back, p99 back, operations that failed.
    """

    title: str
    rows: Sequence[FaultRow]
    means: Sequence[str]


def rows(cells: Iterable[Cell]) -> list[FaultRow]:
    """Returns the planned faults of all cells."""
    return [FaultRow(cell, phase, fault) for cell in cells for phase in cell.phases for fault in phase.faults]


def cell_verdict(phases: Iterable[Phase], searches: Iterable[Search]) -> FaultVerdict | None:
    """Returns a cell's :attr:`~troop.report.document.Cell.fault_verdict`."""
    searched = {one.phase for one in searches}
    return worst(fault.verdict for phase in phases if phase.phase not in searched for fault in phase.faults)


def name(row: FaultRow, every: Sequence[FaultRow]) -> str:
    """Returns a fault's place and what it does; with its moment if the phase has several."""
    moment = f" at {clock(row.fault.at)}" if len(row.phase.faults) > 1 else ""
    return " · ".join(part for part in (place(row, every), f"{row.fault.what}{moment}") if part)


def place(row: FaultRow, every: Sequence[FaultRow]) -> str:
    """Returns what distinguishes a fault's place from that of the others: its cell, and its phase or point."""
    cells, phases = {id(one.cell) for one in every}, {one.phase.title for one in every}
    parts = (cell_name(row.cell) if len(cells) > 1 else "", row.phase.title if len(phases) > 1 else "")
    return " · ".join(part for part in parts if part)


def deciding(report: Report) -> list[FaultRow]:
    """Returns the planned faults without those of searches, whose answers decide; first the one whose verdict is that
    of the whole report.
    """
    every = [row for row in rows(report.cells) if all(one.phase != row.phase.phase for one in row.cell.searches)]
    return sorted(every, key=lambda row: row.fault.verdict != report.fault_verdict)


def tally(every: Sequence[FaultRow]) -> str:
    """Counts the verdicts of several faults: ``5 planned faults: 4 HELD, 1 UNKNOWN.``; "" for one."""
    counts = Counter(row.fault.verdict for row in every if row.fault.verdict)
    if len(every) < 2 or not counts:
        return ""
    return f"{len(every):,} planned faults: {', '.join(f'{counts[one]:,} {one}' for one in WORST if counts[one])}."


def clock(at: float) -> str:
    """Formats a time since the start of the measured time: ``1:05``."""
    return f"{int(at) // 60}:{int(at) % 60:02}"


def seconds(value: float | None) -> str:
    """Formats a time until something is as before: ``10.6 s``."""
    return formatting.NOTHING if value is None else f"{value:,.1f}{formatting.SPACE}s"


def figures(fault: Failure) -> list[FaultLine]:
    """Returns the figures of a fault with what was expected of each. Without figures, only what was expected."""
    return [line for line in _figures(fault) if line.expected or fault.is_known]


def _figures(fault: Failure) -> Iterator[FaultLine]:
    expect, during = fault.expect or FaultExpectation(), fault.rate_during
    part = None if during is None or not fault.rate_before else during / fault.rate_before
    value = _UNKNOWN if during is None else f"{formatting.plain(during)}/s, {formatting.share(part)} of before"
    bound = "" if expect.rate is None else f"at least {formatting.share(expect.rate)}"
    yield _line(fault, "Rate during", value, bound, part, expect.rate, least=True)
    rate = f"Rate is back at {formatting.share(fault.share)} of before"
    for figure, back, chance, limit, steady in (
        (rate, fault.back.rate_s, fault.back.rate_chance_s, expect.rate_back_within, "did not fall"),
        ("p99 is back", fault.back.p99_s, fault.back.p99_chance_s, expect.p99_back_within, "did not rise"),
    ):
        known = "not until the end" if back is None else f"after {seconds(back)}" if back else steady
        if chance:
            known = f"after {back or 0:,.1f} to {seconds(chance)}, by chance"
        value = known if fault.is_known else _UNKNOWN
        bound = "" if limit is None else f"within {formatting.plain(limit)}{formatting.SPACE}s"
        line = _line(fault, figure, value, bound, back, limit)
        yield replace(line, verdict="UNKNOWN") if line.verdict == "HELD" and (chance or 0) > (limit or 0) else line
    most = expect.failed_at_most
    bound = "" if most is None else f"at most {most:,}"
    name = "Operations that failed"
    if fault.failed is None:
        value = "unknown" if fault.is_known else _UNKNOWN
        yield FaultLine(name, value, bound, None if most is None else "UNKNOWN")
    else:
        yield _line(fault, name, f"{fault.failed:,}", bound, fault.failed, most)
    if fault.unfinished:
        yield FaultLine("Operations that had not ended at the end", f"{fault.unfinished:,}")
    if fault.fewer is not None:
        than = "the rate before (an estimate)" if fault.fewer_is_estimate else "the set rate"
        yield FaultLine(f"Operations fewer than at {than}", f"{fault.fewer:,}")
    if fault.event is not None:
        verdict = f", {fault.event.verdict or fault.event.status or ''}".rstrip(", ")
        yield FaultLine(
            f"The group's own recovery, by event {fault.event.event_id}",
            f"{seconds(fault.event.recovery_seconds)}{verdict}",
        )


_UNKNOWN = formatting.NOTHING


def _line(
    fault: Failure,
    figure: str,
    value: str,
    expected: str,
    measured: float | None,
    bound: float | None,
    least: bool = False,
) -> FaultLine:
    return FaultLine(figure, value, expected, None if bound is None else _judged(fault, measured, bound, least))


def _judged(fault: Failure, measured: float | None, bound: float, least: bool) -> FaultVerdict:
    """Returns the verdict on one figure. A time without a value is broken if it was watched for long enough."""
    during = fault.windows.during
    if during is None:
        return "UNKNOWN"
    if measured is None:
        return "BROKEN" if during.start + during.seconds >= bound + FOLLOWING else "UNKNOWN"
    return "HELD" if (measured >= bound if least else measured <= bound) else "BROKEN"


def windows(fault: Failure) -> list[tuple[str, FaultWindow]]:
    """Returns the known windows of a fault with their names."""
    every = (("before", fault.windows.before), ("during", fault.windows.during), ("after", fault.windows.after))
    return [(name, window) for name, window in every if window is not None]


def fallen(row: FaultRow) -> list[FallenOperation]:
    """Returns the operations whose own rate fell after a fault."""
    return [one for one in row.phase.fallen if one.number == row.fault.number]


def fallen_warning(every: Sequence[FaultRow]) -> str | None:
    """Says that operations fell which the rate of all together may not show; None without any."""
    names = dict.fromkeys(f"{one.operation} of {one.role}" for row in every for one in fallen(row))
    if not names:
        return None
    hidden = all(row.fault.back.rate_s == 0 and not row.fault.back.rate_chance_s for row in every if fallen(row))
    begin = (
        "The rate of all operations together did not fall, but" if hidden else "Rate and verdict are of all together;"
    )
    return f"{begin} the own rate of {name_some(list(names))} fell below the share of the rate before."


def repeated(every: Sequence[FaultRow]) -> list[Repeated]:
    """Returns the faults that were repeated: by cells, or by points on the same nodes."""
    return [_repeated(group) for group in _groups(every).values() if len(group) > 1]


def _groups(every: Iterable[FaultRow]) -> dict[tuple[str, str, int], list[FaultRow]]:
    """Returns repetitions by what they have in common: label of the variant and the point, phase, number."""
    groups: dict[tuple[str, str, int], list[FaultRow]] = {}
    for row in every:
        parts = (row.cell.scale or "", combination(row.cell.values, None), row.phase.label)
        label = ", ".join(part for part in parts if part)
        groups.setdefault((label, row.phase.phase, row.fault.number), []).append(row)
    return groups


def _repeated(group: Sequence[FaultRow]) -> Repeated:
    known = [row.fault for row in group if row.fault.is_known]
    figures = (
        ([one.back.rate_s for one in known], seconds),
        ([one.back.p99_s for one in known], seconds),
        ([one.failed for one in known], formatting.plain),
    )
    means = [_mean([value for value in values if value is not None], len(known), shown) for values, shown in figures]
    if any(one.failed is None for one in known):
        means[-1] = "unknown"
    first = group[0]
    parts = (first.cell.scale or "", first.phase.phase, first.phase.label, first.fault.what)
    return Repeated(", ".join(part for part in parts if part), group, means)


def _mean(values: Sequence[float], number_of: int, shown: Any) -> str:
    """Formats a mean with its interval; says so if a figure of some repetition has no value, because it is not back."""
    if len(values) < number_of:
        return f"not back in {number_of - len(values)} of {number_of}"
    if len(values) < 2:
        return formatting.NOTHING
    mean, low, high = mean_interval(values)
    return f"{shown(mean)} ({shown(max(low, 0)).removesuffix(f'{formatting.SPACE}s')} to {shown(high)})"


def pictures(every: Sequence[FaultRow]) -> dict[str, Any] | None:
    """Returns what the charts draw; None for nothing.

    Returns:
        ``{"curves": [{"start", "rate", "failed", "p99"}], "views": [{"title", "curve", "from", "to", "level": {"value",
        "name"} | None, "windows": [[from, until, name]], "marks": [{"at", "what"}]}]}``. Times are seconds after the
        start of the measured time; ``curve`` is the place of a curve. A phase with several faults has a view of its
        own, too.
    """
    phases: dict[int, list[FaultRow]] = {}
    for row in every:
        if row.phase.curve is not None:
            phases.setdefault(id(row.phase), []).append(row)
    drawn = [*phases.values()][:MOST_DRAWN]
    if not drawn:
        return None
    curves, views = [], []
    for rows_of_phase in drawn:
        curve = rows_of_phase[0].phase.curve
        if curve is None:
            continue
        curves.append(_curve(curve, 0))
        groups = [[row] for row in rows_of_phase]
        if len(groups) > 1:
            groups.insert(0, rows_of_phase)
        views += [{"curve": len(curves) - 1, **_view(group, every)} for group in groups]
    return {"curves": curves, "views": views}


def _view(group: Sequence[FaultRow], every: Sequence[FaultRow]) -> dict[str, Any]:
    first, measured = group[0], group[0].phase.measured_seconds
    title = name(first, every)
    if len(group) > 1:
        title = " · ".join(part for part in (place(first, every), f"all {len(group)} faults") if part)
    begin, end = 0.0, measured
    shaded = [one for row in group for one in _shaded(row)]
    if len(group) == 1 and measured > LONGEST_DRAWN:
        until = max((until for _, until, name in shaded if name == "during"), default=first.began)
        begin, end = max(0.0, first.began - AROUND), min(measured, until + AROUND)
    level = first.fault.rate_before
    return {
        "title": title,
        "from": round(begin, 3),
        "to": round(end, 3),
        "level": {
            "value": number(level * first.fault.share),
            "name": f"{formatting.share(first.fault.share)} of the rate before",
        }
        if level
        else None,
        "windows": [one for one in shaded if len(group) == 1 or one[2] == "during"],
        "marks": [
            *({"at": round(row.began, 3), "what": row.fault.what} for row in group),
            *(_marks(first) if len(group) == 1 else ()),
        ],
    }


def _shaded(row: FaultRow) -> list[tuple[float, float, str]]:
    begins = [(row.began + window.start, window.seconds, name) for name, window in windows(row.fault)]
    return [(round(begin, 3), round(begin + length, 3), name) for begin, length, name in begins]


def _marks(row: FaultRow) -> Iterator[dict[str, Any]]:
    """Yields what happened after the beginning of a fault."""
    fault, began = row.fault, row.began
    if fault.began_at is not None:
        moments = {"fault ends": fault.ended_at, **_group_moments(fault.event)}
        for event, at in moments.items():
            if at is not None:
                yield _mark(began, at - fault.began_at, event) | ({} if event == "fault ends" else {"dash": "dashed"})
    yield from _backs(fault, began)


def _backs(fault: Failure, began: float) -> Iterator[dict[str, Any]]:
    for after, event in ((fault.back.rate_s, "rate is back"), (fault.back.p99_s, "p99 is back")):
        if after:  # at 0, it never was away
            yield _mark(began, after, event)


def _group_moments(event: FaultEvent | None) -> dict[str, float | None]:
    """Returns the moments of a group's own recovery by what happened."""
    if event is None:
        return {}
    stages = {f"group: {name.replace('_', ' ')}": at for name, at in (event.stages or {}).items() if name in _STAGES}
    ended = event.terminated_at
    recovered = None if ended is None or event.recovery_seconds is None else ended + event.recovery_seconds
    return {**stages, "group: recovered": recovered}


_STAGES = ("noticed", "launched", "in_service")
"""The stages that are marked; healthy is nearly the moment of recovery, and a node that runs is not yet in service."""


def _mark(began: float, after: float, event: str) -> dict[str, Any]:
    return {"at": round(began + after, 3), "what": f"{event} (+{seconds(after)})"}


def compared(a: Iterable[Cell], b: Iterable[Cell]) -> list[FaultPair]:
    """Returns the planned faults that both sides of a comparison have."""
    return [
        FaultPair(label=label, phase=phase, number=number, fault=ours[0].fault.what, a=_side(ours), b=_side(theirs))
        for (label, phase, number), (ours, theirs) in _pairs(a, b).items()
    ]


def fault_name(one: FaultPair) -> str:
    """Returns a fault's variant, phase and what it does."""
    return ", ".join(part for part in (one.label, one.phase, one.fault) if part)


def _pairs(a: Iterable[Cell], b: Iterable[Cell]) -> dict[tuple[str, str, int], tuple[list[FaultRow], list[FaultRow]]]:
    ours, theirs = _groups(rows(a)), _groups(rows(b))
    return {key: (group, theirs[key]) for key, group in ours.items() if key in theirs}


def _side(group: Sequence[FaultRow]) -> FaultSide:
    known = [row.fault for row in group if row.fault.is_known]

    def mean(values: Sequence[float | None]) -> float | None:
        times = [value for value in values if value is not None]
        return round(fmean(times), 3) if times and len(times) == len(values) else None

    return FaultSide(
        repetitions=len(group),
        known=len(known),
        verdict=worst(row.fault.verdict for row in group),
        rate_back_s=mean([one.back.rate_s for one in known]),
        p99_back_s=mean([one.back.p99_s for one in known]),
        failed=mean([one.failed for one in known]),
    )


def overlaid(a: Iterable[Cell], b: Iterable[Cell]) -> list[dict[str, Any]]:
    """Returns what the chart of a comparison draws: for each fault the curves of both sides, of their first repetition
    with figures, if there is one.

    Returns:
        ``[{"title", "from", "to", "windows", "marks", "sides": [{"name", "start", "rate", "failed", "p99"}]}]``, with
        times as seconds after the beginning of the fault.
    """
    views = []
    for (label, phase, _), groups in [*_pairs(a, b).items()][:MOST_DRAWN]:
        first = [next((row for row in group if row.fault.is_known), group[0]) for group in groups]
        sides = [
            {"name": letter, **_curve(curve, row.began)}
            for letter, row in zip("AB", first, strict=True)
            if (curve := row.phase.curve)
        ]
        if not sides:
            continue
        until = max(
            (until - row.began for row in first for _, until, window in _shaded(row) if window == "during"), default=0
        )
        marks = [
            {**mark, "what": f"{letter}: {mark['what']}", "side": side}
            for side, (letter, row) in enumerate(zip("AB", first, strict=True))
            for mark in _backs(row.fault, 0)
        ]
        views.append(
            {
                "title": ", ".join(part for part in (label, phase, first[0].fault.what) if part),
                "from": -min(AROUND, *(row.began for row in first)),
                "to": round(min(until + AROUND, *(row.phase.measured_seconds - row.began for row in first)), 3),
                "windows": [],
                "marks": [{"at": 0, "what": "fault"}, *marks],
                "sides": sides,
            }
        )
    return views


def _curve(curve: Curve, zero: float) -> dict[str, Any]:
    p99 = [number(one) for one in curve.p99_ms]
    return {"start": round(curve.start - zero, 3), "rate": curve.per_second, "failed": curve.failed, "p99": p99}
