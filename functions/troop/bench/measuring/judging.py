"""Judges the merged results of a measured phase, or of one of its points, by the limits of the benchmark's file.

Figures of the whole measured time are those of the table of results: exact, with percentiles to three digits. Parts of
the measured time follow one another without a gap. Only whole parts count, from the first step after its beginning.

- Percentiles and maxima of parts are precise to a sixteenth. The largest possible value counts, so a limit never
  passes by lack of precision.
- A part without operations does not hold a limit: a system that stands still completes nothing, and nothing is slow.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from troop.bench.definition.phase_limits import BYTES, ERROR_RATE, PER_SECOND, RATES, TIMES, TIMES_OVER_TIME, PhaseLimit
from troop.bench.definition.plan import Variant
from troop.bench.definition.planned_fault import MOST_FAULTS
from troop.bench.measuring.failure import HELD, WORST
from troop.bench.measuring.open_loop import Counted, allowed, done, misses
from troop.measure.histogram import buckets_at
from troop.measure.merge import PERCENTILES, row
from troop.measure.operations import TOTAL, Operation, Operations, PerSecond, total_of
from troop.measure.windows import Windows, WindowsError, highest_in

NAMED = 5
"""The most operations that a reason names."""

LONGEST_REASON, LONGEST_SETTING = 200, 200
"""Maximum characters in the cell's record: a run can have thousands of entries in one answer of the API."""

LONGEST_SENTENCE = 300
"""Likewise: maximum characters of a planned fault's sentence."""

_PERCENTS = {**PERCENTILES, "max_ms": 100}


@dataclass(frozen=True)
class Judgement:
    """How results compare with one limit.

    Attributes:
        role: "" if no role has results to judge.
        operation: :data:`~troop.measure.operations.TOTAL` for the total.
        value: the figure, or the worst of all parts of the measured time; None if unknown.
        held: whether the limit is held.
        reason: why it is not, as a phrase; None if it is.
    """

    limit: PhaseLimit
    role: str
    operation: str
    value: float | None
    held: bool
    reason: str | None = None

    def document(self) -> dict[str, Any]:
        """Returns JSON-like values for the stored results."""
        known = {"figure": self.limit.figure, "at_most": self.limit.at_most, "at_least": self.limit.at_least}
        place = {"every": self.limit.every, "role": self.role, "operation": self.operation}
        return {**known, **place, "value": self.value, "held": self.held, "reason": self.reason}


def judge(
    limits: Sequence[PhaseLimit],
    roles: Mapping[str, Operations],
    generating: Collection[str],
    begin: float | None,
    seconds: float,
) -> list[Judgement]:
    """Compares merged results with limits. Without a role of its own, a limit concerns each role that generates load;
    if none of them has its operations, each role that has. Roles are never added up.

    Args:
        roles: merged operations by role.
        generating: the roles that generate load.
        begin: start of the measured time, seconds since 1970; None if unknown.
        seconds: the measured time.
    """
    judgements = []
    for limit in limits:
        its = {role: operations for role, operations in roles.items() if _concerns(limit, role, operations)}
        chosen = {role: its[role] for role in its if role in generating} if limit.role is None else {}
        for role, operations in (chosen or its).items():
            judgements.append(_judge_role(limit, role, operations, begin, seconds))
        if not its:
            judgements.append(_failed(limit, limit.role or "", _unmeasured(limit, roles)))
    return judgements


def judge_rates(phase: Mapping[str, Any], targets: Mapping[str, float]) -> list[Judgement]:
    """Returns a failed judgement for each role that missed its set rate: then the results are those of another load
    than the limits are meant for.

    Args:
        phase: the merged results, see :meth:`troop.measure.merge.Merger.document`.
        targets: operations per second by role, see :func:`troop.bench.measuring.open_loop.targets`.
    """
    seconds, judgements = phase["measured_seconds"], []
    for role, target in targets.items():
        merged = [one for one in phase["table"] if one["role"] == role and one["operation"] != TOTAL]
        alone = [one for one in phase["separate"] if one["role"] == role and one.get("per_second") is not None]
        achieved = done(
            [Counted(one["count"], one["errors"], one["per_second"]) for one in merged],
            [Counted(one["per_second"] * seconds, one.get("errors", {})) for one in alone],
            seconds,
        )
        nodes = len(phase["roles"][role]["nodes"])
        if misses(target, achieved, seconds, nodes):
            rate, leeway = achieved / seconds, allowed(target, seconds, nodes) / seconds
            if rate < target:
                limit = PhaseLimit(PER_SECOND, at_least=target - leeway, role=role)
            else:
                limit = PhaseLimit(PER_SECOND, at_most=target + leeway, role=role)
            text = f"{role} did {shown(PER_SECOND, rate)}, {rate / target:.1%} of the set rate of {target:,g}/s"
            judgements.append(Judgement(limit, role, TOTAL, rate, held=False, reason=text))
    return judgements


def entry(phase: Mapping[str, Any], *, is_searched: bool = False) -> dict[str, Any] | None:
    """Summarizes the judgements of a merged phase or point for the cell's record; None without limits.

    A point of a search with planned faults holds what the search is for if all expectations of its faults are HELD. A
    load that was unsteady or too slow before a fault does not hold it; of :func:`unjudged` ones, nobody knows.
    Other faults have entries of their own, see :func:`fault_entries`.

    Args:
        phase: a phase of the results, with the documents of its judgements in ``limits``, those of its planned faults
            in ``faults``, and whether it ``is_baseline``.
        is_searched: whether it is a point of a search.

    Returns:
        ``{"phase", "point", "repeat", "setting", "held", "reason"}``, and "is_baseline" if it is. The setting is the
        point in short, such as ``threads=50, #2``. The reason is that of the first limit that is not held, with the
        number of others.
    """
    missed = [one["reason"] for one in phase.get("limits") or () if not one["held"]]
    expected = [one for one in phase.get("faults") or () if one["expect"]] if is_searched else []
    missed += [one["sentence"] for one in expected if one["verdict"] != HELD]
    if (not phase.get("limits") and not expected) or unjudged(expected):
        return None
    more = f"; and {len(missed) - 1} more" if len(missed) > 1 else ""
    return {
        **_place(phase),
        "held": not missed,
        "reason": f"{missed[0]}"[:LONGEST_REASON] + more if missed else None,
        **({"is_baseline": True} if phase.get("is_baseline") else {}),
    }


def unjudged(faults: Sequence[Mapping[str, Any]]) -> str | None:
    """Returns why the first planned fault that the load does not explain has no verdict; None without one.

    Args:
        faults: of a phase of the results; those of earlier versions lack this reason.
    """
    return next((f"{one['what']}: {why}" for one in faults if (why := one.get("unjudged"))), None)


def fault_entries(phase: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Summarizes the planned faults of a merged phase or point for the cell's record.

    Returns:
        ``[{"phase", "point", "repeat", "setting", "number", "what", "verdict", "sentence"}]``.
    """
    return [
        {
            **_place(phase),
            "number": one["number"],
            "what": one["what"],
            "verdict": one["verdict"],
            "sentence": one["sentence"][:LONGEST_SENTENCE],
        }
        for one in phase.get("faults") or ()
    ]


def stored_faults(entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns as many entries of :func:`fault_entries` as the cell's record holds, in their order: those with the worst
    verdicts. The results have all.
    """
    order = (*WORST, None)
    places = sorted(range(len(entries)), key=lambda n: order.index(entries[n]["verdict"]))
    return [entries[n] for n in sorted(places[:MOST_FAULTS])]


def _place(phase: Mapping[str, Any]) -> dict[str, Any]:
    repeat = phase.get("repeat", 1)
    values = {name: tuple(v) if isinstance(v, list) else v for name, v in phase.get("parameters", {}).items()}
    return {
        "phase": phase["phase"],
        "point": phase.get("point"),
        "repeat": repeat,
        "setting": Variant(None, values, repeat).label[:LONGEST_SETTING],
    }


def with_entry(entries: Sequence[dict[str, Any]] | None, new: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the entries with a new one, in place of an earlier one of the same phase and point."""
    place = (new["phase"], new["point"])
    return [*(one for one in entries or () if (one["phase"], one["point"]) != place), new]


def shown(figure: str, value: float | None) -> str:
    """Formats a value with its unit: ``312 ms``, ``0.25 %``, ``980/s``."""
    if value is None:
        return "unknown"
    if figure in TIMES:
        return f"{value:,.4g} ms" if value < 1000 else f"{value:,.0f} ms"
    if figure == ERROR_RATE:
        return f"{100 * value:.4g} %"
    number = f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"
    return f"{number} bytes/s" if figure == BYTES else f"{number}/s"


def bound(limit: PhaseLimit) -> str:
    """Formats a limit's bound: ``at most 300 ms in every 10 s``."""
    word, value = ("at most", limit.at_most) if limit.at_least is None else ("at least", limit.at_least)
    return f"{word} {shown(limit.figure, value)}" + (f" in every {limit.every} s" if limit.every else "")


def _concerns(limit: PhaseLimit, role: str, operations: Operations) -> bool:
    named = limit.operation in operations if limit.operation else bool(operations)
    return named and limit.role in (None, role)


def _unmeasured(limit: PhaseLimit, roles: Mapping[str, Operations]) -> str:
    measured = sorted({name for role, its in roles.items() if limit.role in (None, role) for name in its})
    more = f" and {len(measured) - NAMED} more" if len(measured) > NAMED else ""
    known = f"; measured were {', '.join(measured[:NAMED])}{more}" if measured else ""
    return f"{limit.operation or 'no operation'} was {'not ' if limit.operation else ''}measured{known}"


def _judge_role(limit: PhaseLimit, role: str, operations: Operations, begin: float | None, seconds: float) -> Judgement:
    if limit.operation:
        name, parts = limit.operation, [operations[limit.operation]]
    else:
        name, parts = (TOTAL if len(operations) > 1 else next(iter(operations))), list(operations.values())
    whole = parts[0] if len(parts) == 1 else total_of(parts)
    if whole is None:
        return _failed(limit, role, "a tool reports only rates, which have no total: name an operation", name)
    if limit.every is None:
        value = _figure(limit.figure, whole, seconds)
        if value is None:
            return _failed(limit, role, _without(whole, limit.figure), name)
        if not value and not whole.count and limit.at_most is not None and limit.figure in RATES:
            return _failed(limit, role, "no operation succeeded", name)
        held = _holds(limit, value)
        reason = None if held else f"{limit.figure} of {name} was {shown(limit.figure, value)}; {bound(limit)}"
        return Judgement(limit, role, name, value, held, reason)
    try:
        values = list(_over_time(limit, limit.every, parts, begin, seconds))
    except _UnknownError as unknown:
        return _failed(limit, role, str(unknown), name)
    return _worst(limit, role, name, values)


def _failed(limit: PhaseLimit, role: str, reason: str, operation: str = "") -> Judgement:
    return Judgement(limit, role, operation or limit.operation or TOTAL, None, held=False, reason=reason)


def _holds(limit: PhaseLimit, value: float) -> bool:
    return value >= limit.at_least if limit.at_least is not None else value <= (limit.at_most or 0)


def _figure(figure: str, operation: Operation, seconds: float) -> float | None:
    """Returns a figure of the whole measured time, as in the table of results."""
    if figure == ERROR_RATE:
        errors = sum(operation.errors.values())
        if operation.rate and not operation.count:  # the tool reports no counts
            return None if errors or not operation.rate.per_second else 0.0
        return errors / (operation.count + errors) if operation.count + errors else None
    value: float | None = row("", "", operation, seconds)[figure]
    if value is None and figure in (PER_SECOND, BYTES) and not operation.rate and seconds:
        return 0.0
    return value


def _without(operation: Operation, figure: str) -> str:
    if operation.rate:
        return "its tool does not report it"
    return "no operation ended" if figure == ERROR_RATE else "no operation succeeded"


class _UnknownError(Exception):
    """A figure over time is not in the results; the message says why."""


def _worst(limit: PhaseLimit, role: str, name: str, values: Sequence[tuple[float, float | None]]) -> Judgement:
    """Judges the parts of the measured time, each with its first second and its value."""
    if limit.at_most is not None and limit.figure in RATES:  # what does nothing is below any bound
        values = [(at, value or None) for at, value in values]
    missed = [(at, value) for at, value in values if value is None or not _holds(limit, value)]
    known = [value for _, value in values if value is not None]
    worst = min(known, default=None) if limit.at_least is not None else max(known, default=None)
    if not missed:
        return Judgement(limit, role, name, worst, held=True)
    least = limit.at_least is not None
    at, value = min(
        missed, key=lambda one: (one[1] is not None, 0 if one[1] is None else one[1] * (1 if least else -1))
    )
    place = f"in the {limit.every} s from {int(at) // 60}:{int(at) % 60:02d}"
    if value is None:
        finding = f"no operation of {name} {'succeeded' if limit.figure in TIMES else 'ended'} {place}"
    else:
        finding = f"{limit.figure} of {name} was {shown(limit.figure, value)} {place}"
    return Judgement(
        limit, role, name, worst, False, f"{finding}; {bound(limit)} ({len(missed)} of {len(values)} missed)"
    )


def _over_time(
    limit: PhaseLimit, every: int, parts: Sequence[Operation], begin: float | None, seconds: float
) -> Iterator[tuple[float, float | None]]:
    """Yields the seconds from the start of the measured time to each of its parts, and the figure there.

    Raises:
        _UnknownError: the results do not have it.
    """
    if begin is None:
        raise _UnknownError("the start of the measured time is unknown")
    windows = _times(parts) if limit.figure in TIMES_OVER_TIME else None
    counts = _counts(parts) if windows is None else PerSecond()
    step = windows.step_seconds if windows else 1
    if every % step:
        raise _UnknownError(f"times over time have steps of {step} s: every {every} s must be a multiple of that")
    first, until = math.ceil(begin / step) * step, math.floor((begin + seconds) / step) * step
    if first + every > until:
        raise _UnknownError(f"the measured time does not contain whole {every} s")
    for second in range(first, until - every + 1, every):
        if windows:
            value = _percentile(limit.figure, windows.buckets_within(second, every))
        else:
            value = _rate(limit.figure, counts, second, every)
        yield max(0.0, second - begin), value


def _times(parts: Sequence[Operation]) -> Windows:
    total: Windows | None = None
    for one in parts:
        if one.lacks.times or (one.rate and one.count):
            raise _UnknownError("not all times over time are on record")
        if one.over_time is None:
            continue
        if total is None:
            total = one.over_time.copy()
        else:
            try:
                total.add(one.over_time)
            except WindowsError as error:
                raise _UnknownError(f"times over time have no total: {error}") from None
    if total is None:
        raise _UnknownError("no operation succeeded")
    return total


def _percentile(figure: str, counts: Mapping[int, int]) -> float | None:
    (index,) = buckets_at(counts, (_PERCENTS[figure],))
    return None if index is None else highest_in(index) / 1000


def _counts(parts: Sequence[Operation]) -> PerSecond:
    total = PerSecond()
    for one in parts:
        if one.lacks.successes or one.lacks.errors:
            raise _UnknownError("not all operations were counted by second")
        if one.rate:
            raise _UnknownError("a tool reports only rates, without counts by second")
        total.add(one.per_second)
    return total


def _rate(figure: str, counts: PerSecond, second: int, every: int) -> float | None:
    low, high = (max(0, at - counts.start) for at in (second, second + every))
    successes, errors = sum(counts.count[low:high]), sum(counts.errors[low:high])
    if figure == PER_SECOND:
        return successes / every
    return errors / (successes + errors) if successes + errors else None
