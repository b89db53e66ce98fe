"""Judges measurements with a set rate: whether it was reached, and whether times are response or service times.

A closed loop sends an operation when an earlier one has ended, so it sends less to a slow system and omits the times
that users would have waited. Only times from the moment when an operation was due contain them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from troop.bench.measuring.open_loop import Counted, done, misses
from troop.bench.measuring.verdicts import name_some
from troop.measure.operations import MIXED, RESPONSE
from troop.report.document import Cell, Phase
from troop.shared.formatting import plain

_UNABLE = {"jmeter": "JMeter", "k6": "k6", "locust": "Locust"}
"""Tools that send at a rate, but report only times since they sent a request."""

WORDS = {RESPONSE: "response", MIXED: "mixed"}
"""What times mean, in a word; all others are service times."""


def findings(phase: Phase) -> Iterator[str]:
    """Yields a sentence for each set rate that was missed, in either direction."""
    for role, target in phase.targets.items():
        yield from _missed(phase, role, target)


def timing_sentences(cells: Iterable[Cell]) -> list[str]:
    """Returns sentences about times that are no response times although a rate is set. Those of cells and points with
    the same tool are the same, so each is listed once.
    """
    return list(dict.fromkeys(text for cell in cells for phase in cell.phases for text in _timing_sentences(phase)))


def _timing_sentences(phase: Phase) -> Iterator[str]:
    for role in phase.targets:
        yield from _no_response_times(phase, role)
    for one in phase.operations:
        if one.timing == MIXED:
            yield (
                f"{phase.phase}, {one.operation} of {one.role}: response times and service times are in one histogram. "
                "Its percentiles are neither: use separate names, or record all with the moment when they were due."
            )


def _missed(phase: Phase, role: str, target: float) -> Iterator[str]:
    achieved, nodes = _done(phase, role), sum(one.role == role for one in phase.members)
    if not misses(target, achieved, phase.measured_seconds, nodes):
        return
    rate = achieved / phase.measured_seconds
    did = f"{phase.title}: {role} did {plain(rate)} operations a second, {rate / target:.1%} of the rate of "
    if rate > target:
        yield (
            f"{did}{plain(target)} that is set. So the load was another one: a tool that was slow in its warm-up can "
            "catch up in the measured time. Use a longer warm-up, and check that the load generators are not the limit."
        )
        return
    if RESPONSE in _timings(phase, {role}):
        meaning = "The queue grew, so response times would be longer in a longer measurement."
    else:
        meaning = "Operations were sent late or not at all, and service times do not contain this delay."
    yield (
        f"{did}{plain(target)} that is set. {meaning} Find the rate that the system sustains, and check that the "
        "load generators are not the limit."
    )


def _done(phase: Phase, role: str) -> float:
    seconds = phase.measured_seconds
    merged = [Counted(one.count, one.errors, one.per_second) for one in phase.operations if one.role == role]
    known = [(one, one.per_second) for one in phase.separate if one.role == role and one.per_second is not None]
    return done(merged, [Counted(rate * seconds, one.errors) for one, rate in known], seconds)


def _no_response_times(phase: Phase, role: str) -> Iterator[str]:
    operations: dict[str, list[str]] = {}
    for one in phase.operations:
        if one.role == role and one.timing not in (RESPONSE, MIXED) and one.max_ms is not None:
            operations.setdefault(", ".join(one.tools), []).append(one.operation)
    known = {(one.node, one.operation) for one in phase.separate if one.timing == RESPONSE}
    for row in phase.separate:
        names = operations.setdefault(row.tool, [])
        if row.role == role and row.timing != RESPONSE and (row.node, row.operation) not in known:
            names += [row.operation] if row.operation not in names else []
    for tool, names in operations.items():
        if names:
            yield (
                f"{phase.phase}: a rate is set for {role}, but {_why(tool)}. Times of {name_some(names)} are service "
                "times: they leave out how long operations waited to be sent while earlier ones were slow."
            )


def _why(tool: str) -> str:
    unable = [name for key, name in _UNABLE.items() if key in tool.lower()]
    if unable:
        return f"{' and '.join(unable)} cannot report response times, and only knows when a request was sent"
    if tool:
        return f"{tool} reported no response times"
    return "its script did not record when operations were due"


def is_labelled(cells: Iterable[Cell]) -> bool:
    """Checks whether tables and charts must say what their times mean: a rate is set, or there are response times."""
    return any(phase.targets or _timings(phase, None) & {RESPONSE, MIXED} for cell in cells for phase in cell.phases)


def _timings(phase: Phase, roles: Collection[str] | None) -> set[str | None]:
    """Returns what the times of roles mean; of all roles for None."""
    merged = [(one.role, one.timing) for one in phase.operations]
    apart = [(one.role, one.timing) for one in phase.separate]
    return {timing for role, timing in (*merged, *apart) if roles is None or role in roles}


def explained(cells: Iterable[Cell]) -> str:
    """Returns a sentence that says which operations have which times; "" if nothing needs a label."""
    cells = list(cells)
    if not is_labelled(cells):
        return ""
    by_word: dict[str, dict[str, None]] = {}
    for one in (one for cell in cells for phase in cell.phases for one in phase.operations):
        if one.max_ms is not None:
            by_word.setdefault(word(one.timing), {})[one.operation] = None
    parts = [f"{kind} times of {name_some(list(names))}" for kind, names in sorted(by_word.items())]
    return f"Latencies are {' and '.join(parts)}." if parts else ""


def word(timing: str | None) -> str:
    """Returns what times mean in a word."""
    return WORDS.get(timing or "", "service")
