"""Judges planned faults by what the load did before, during and after them. Pure.

- The window before begins with the measured time, or when the load has settled after the fault before. It is judged
  first: if it is unsteady, or its rate below the set one, nothing can be said about the fault. Then no figure is
  stated.
- The window during begins with the second of the fault. It ends when the fault has ended, and rate and p99 are back.
- The window after ends with the second of the next fault, or with the measured time. If something is not back, there is
  none.

So operations during and after, over all faults of a phase, are each counted once.

Few operations vary by chance. So there are two moments at which something is back: from the first one on, chance
explains what is missing, and from the sure one on, nothing is missing. A time between them is neither held nor broken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from troop.bench.definition.planned_fault import CRASH, CUT, PAUSE, SCRIPT, SLOW, STOP, Expectation, PlannedFault
from troop.bench.results.fault_windows import FOLLOWING, HOLD, Counted, UncountedError, counted
from troop.bench.results.steadiness import SHORTEST, is_p99_back, is_rate_back, unsteady
from troop.measure.operations import UNFINISHED, Operation
from troop.shared.formatting import counted as nouns
from troop.shared.formatting import plain

DONE, REFUSED, FAILED = "DONE", "REFUSED", "FAILED"
"""What became of a planned fault."""
HELD: Final = "HELD"
BROKEN: Final = "BROKEN"
UNKNOWN: Final = "UNKNOWN"
"""Verdicts on an expectation. UNKNOWN is also the one on a fault without an expectation whose figures are unknown."""
WORST: Final[tuple[Literal["BROKEN", "UNKNOWN", "HELD"], ...]] = (BROKEN, UNKNOWN, HELD)
"""The verdicts from the one that decides over several faults."""

SETTLED = 10
"""Seconds after a fault from which on the load may be steady again: what is back can still be slower than before. Also
after a fault that was never over, on another level.
"""

UNCOUNTED = "failures are not counted by this tool"
"""Stands for the number of operations that failed, if it is unknown."""

TOO_FEW = "too few operations to tell"
"""Begins the reason of an expectation that chance alone may hold."""

SHARE = Expectation.share
"""The part of the rate before from which the rate is back, without an expectation."""


@dataclass(frozen=True)
class Load:
    """What the roles that generate load did in a phase.

    Attributes:
        operations: of all of these roles, merged.
        begin: of the measured time, seconds since 1970; None if unknown.
        seconds: its length.
        set_rate: operations per second of all their nodes together; None if not every role has a rate.
    """

    operations: Sequence[Operation]
    begin: float | None
    seconds: float
    set_rate: float | None = None


@dataclass(frozen=True)
class Happened:
    """A planned fault, and what became of it. Moments are seconds since 1970.

    Attributes:
        number: from 1, in the order of the file.
        text: the fault in words, such as ``stop 1 of servers``.
        nodes: its victims: ``{"id", "role", "rank", "zone", "began_at", "ended_at"}``; empty for a unit.
        candidates: the number of nodes that it could hit; 0 if unknown.
        requested_at: when a fault on a unit was asked for.
        began_at: of the first victim; None if it never began.
        ended_at: of the last victim; None if it has no end.
        outcome: :data:`DONE`, :data:`REFUSED` or :data:`FAILED`.
        why: it is not DONE.
        event: of Troop's chaos, for a fault on a unit.
    """

    number: int
    fault: PlannedFault
    text: str
    nodes: tuple[Mapping[str, Any], ...] = ()
    candidates: int = 0
    requested_at: float | None = None
    began_at: float | None = None
    ended_at: float | None = None
    outcome: str = DONE
    why: str | None = None
    event: Mapping[str, Any] | None = None


class UnjudgedError(ValueError):
    """A fault cannot be judged, whatever the load did; the message says why."""


@dataclass(frozen=True)
class Figures:
    """What the load did around a fault.

    Attributes:
        windows: before, during and after; after is None if something is not back.
        rate_during: until the rate is back, and the fault has ended; so p99, which may take longer, dilutes no loss.
        rate_back, p99_back: seconds from the fault until it is back, and stays, as far as chance allows; 0 if it never
            was away; None if it is not back.
        rate_chance, p99_chance: seconds from the fault until which only chance explains that it is back; None if
            nothing is left to chance.
        rate_fell: until then, the part of the rate before.
        p99_rose: until then, p99 in milliseconds.
        watched: seconds from the fault to the end of its last window.
        failed: errors from the fault on, without unfinished operations; None if a tool does not count failures.
        unfinished: likewise.
        fewer: successes that are missing in the window during, at the set rate or the rate before.
    """

    windows: dict[str, dict[str, Any] | None]
    rate_before: float
    rate_during: float
    rate_back: float | None
    p99_back: float | None
    rate_chance: float | None
    p99_chance: float | None
    rate_fell: float
    p99_rose: float | None
    watched: float
    failed: int | None
    unfinished: int | None
    fewer: int


def entries(happened: Sequence[Happened], load: Load) -> list[dict[str, Any]]:
    """Returns the entries of a phase's planned faults in its results, in the order of ``happened``.

    Each fault is judged from when the one before it was over until the next one, see the module.

    Returns:
        ``[{"number", "at", "method", "what", "unit", "nodes", "requested_at", "began_at", "ended_at", "outcome", "why",
        "event", "rate_before", "rate_during", "set_rate", "share", "windows": {"before", "during", "after"}, "back":
        {"rate_s", "p99_s", "rate_chance_s", "p99_chance_s"}, "failed", "unfinished", "fewer", "fewer_is_estimate",
        "expect", "verdict", "reasons", "unjudged", "sentence"}]``.
        ``unjudged`` is why the verdict is UNKNOWN, if the reason is not the load: the fault did not happen, or was not
        measured.
        A window is ``{"from", "seconds", "count", "per_second", "errors": {kind: n}, "mean_ms", "p50_ms", "p99_ms",
        "max_ms"}``; it begins ``from`` seconds from the fault.
        Errors are None if a tool does not count failures. The verdict is None if there is no expectation, and all
        figures are known.
    """
    by_number = dict[int, dict[str, Any]]()
    every: Counted | str
    try:
        every = counted(load.operations)
    except UncountedError as error:
        every = str(error)
    moments = {one.number: _moment(one, load) for one in happened}
    order = sorted(happened, key=lambda one: (moments[one.number] is None, moments[one.number] or 0, one.number))
    seconds = [math.floor(moment) for one in order if (moment := moments[one.number]) is not None]
    before = math.ceil(load.begin or 0)
    for one, until in zip(order, [*seconds[1:], *[None] * len(order)], strict=False):
        unjudged: str | None = None
        figures: Figures | str
        try:
            figures = _figures(one, load, every, before, until)
        except UnjudgedError as error:
            figures = unjudged = str(error)
        if (moment := moments[one.number]) is not None:
            before = _settled(one, moment, figures, until)
        by_number[one.number] = _entry(one, load, figures, unjudged)
    return [by_number[one.number] for one in happened]


def _moment(one: Happened, load: Load) -> float | None:
    """Returns when a fault began; of one that failed, which may have begun in part, when it was to begin."""
    if one.began_at is None and one.outcome == FAILED and load.begin is not None:
        return load.begin + one.fault.at
    return one.began_at


def _settled(one: Happened, began: float, figures: Figures | str, until: int | None) -> int:
    """Returns the second from which on the load is steady again after a fault, or should be; earlier if the window
    before the next fault would be too short.

    Args:
        until: the second of the next fault; None without one.
    """
    over = math.ceil(one.ended_at or began)
    if isinstance(figures, Figures) and (after := figures.windows["after"]):
        over = round(began + float(after["from"]))
    return over + SETTLED if until is None else max(over, min(over + SETTLED, until - SHORTEST))


def _figures(one: Happened, load: Load, every: Counted | str, begin: int, until: int | None) -> Figures | str:
    """Returns the figures, or why the load before leaves them unknown.

    Args:
        begin: the first second of the window before.
        until: the second of the next fault; None for the end of the measured time.

    Raises:
        UnjudgedError: they are unknown for another reason.
    """
    if one.outcome != DONE:
        raise UnjudgedError(one.why or "the reason was not recorded")
    if load.begin is None:
        raise UnjudgedError("the measured time is not on record")
    if one.began_at is None:
        raise UnjudgedError("its moment is not on record")
    if isinstance(every, str):
        raise UnjudgedError(every)
    zero, first = one.began_at, math.floor(one.began_at)
    if why := unsteady(every, begin, first, load.set_rate):
        return why
    end = load.begin + load.seconds if until is None else float(until)
    if end < first + FOLLOWING:
        raise UnjudgedError(f"only {max(0.0, end - zero):.1f} s follow it")
    whole, last = math.floor(end), max(every.until, math.ceil(end)) if until is None else until
    before = every.window(begin, first, zero)
    rate = before["count"] / (first - begin)
    share = one.fault.expect.share if one.fault.expect else SHARE
    rate_at = _back(is_rate_back(every, begin, first, share), first, whole, 1)
    p99_at = _back(is_p99_back(every, begin, first), first, whole, HOLD)
    rate_sure = _sure(is_rate_back(every, begin, first, share, deviations=0), rate_at, whole)
    p99_sure = _sure(is_p99_back(every, begin, first, deviations=0), p99_at, whole)
    rates = rate_sure or rate_at
    cut = max(first + 1, math.ceil(one.ended_at or 0), rates or 0, p99_sure or p99_at or 0)
    is_back = rate_at is not None and p99_at is not None and cut < whole
    during = every.window(first, cut if is_back else end, zero, cut if is_back else last)
    # The first second alone says little of a rate that did not fall.
    lasted = max(first + (HOLD if rates == first else 1), math.ceil(one.ended_at or 0), rates or whole)
    lost = every.window(first, lasted, zero) if lasted < whole else every.window(first, end, zero, last)
    after = every.window(cut, end, zero, last) if is_back else None
    # Of one second alone, rate and p99 can be as before, although five seconds are not.
    fell, rose = (
        [every.window(first, over, zero) for over in (first + HOLD, max(first + 1, sure or whole))]
        for sure in (rate_sure, p99_sure)
    )
    failed = every.failed(first, last)
    unfinished = failed.pop(UNFINISHED, 0)
    return Figures(
        windows={"before": before, "during": during, "after": after},
        rate_before=rate,
        rate_during=lost["per_second"],
        rate_back=None if rate_at is None else round(max(0.0, rate_at - zero), 3),
        p99_back=None if p99_at is None else round(max(0.0, p99_at - zero), 3),
        rate_chance=None if rate_at == rate_sure else round((rate_sure or end) - zero, 3),
        p99_chance=None if p99_at == p99_sure else round((p99_sure or end) - zero, 3),
        rate_fell=min(window["per_second"] for window in fell) / rate,
        p99_rose=max((window["p99_ms"] for window in rose if window["p99_ms"] is not None), default=None),
        watched=round(end - zero, 3),
        failed=sum(failed.values()) if every.has_failures else None,
        unfinished=unfinished if every.has_failures else None,
        fewer=max(0, round((load.set_rate or rate) * during["seconds"] - during["count"])),
    )


def _back(is_back: Callable[[int, int], bool], first: int, until: int, shortest: int) -> int | None:
    """Returns the first second from which on all :data:`HOLD` seconds are back, and all that follow together, until the
    end; None if there is none. Much less than before can pass for chance in few seconds, but not in many: at least
    :data:`FOLLOWING` must be left.

    Args:
        is_back: whether the seconds from one to before another are like those before the fault.
        first: the second of the fault.
        until: the second after the last whole one.
        shortest: the seconds with which it begins, and which are back by themselves.
    """
    begin = until - HOLD + 1
    while begin > first and is_back(begin - 1, begin - 1 + HOLD):
        begin -= 1
    later = range(begin, until - FOLLOWING + 1)
    return next((at for at in later if is_back(at, at + shortest) and is_back(at, until)), None)


def _sure(is_back: Callable[[int, int], bool], back: int | None, until: int) -> int | None:
    """Returns the first second at or after ``back`` whose :data:`HOLD` seconds are back without chance; None without
    one.

    Args:
        is_back: as of :func:`_back`, but leaves nothing to chance.
        back: what :func:`_back` has returned.
        until: as of :func:`_back`.
    """
    if back is None:
        return None
    return next((at for at in range(back, until - FOLLOWING + 1) if is_back(at, at + HOLD)), None)


def _entry(one: Happened, load: Load, figures: Figures | str, unjudged: str | None) -> dict[str, Any]:
    fault, expect = one.fault, one.fault.expect
    known = figures if isinstance(figures, Figures) else None
    verdict, missed = _judged(expect, known) if known else (UNKNOWN, {"": str(figures)})
    if verdict == UNKNOWN and UNCOUNTED in missed.values():
        unjudged = UNCOUNTED
    return {
        "number": one.number,
        "at": fault.at,
        "method": fault.method,
        "what": one.text,
        "unit": fault.unit,
        "nodes": [dict(node) for node in one.nodes],
        "requested_at": one.requested_at,
        "began_at": one.began_at,
        "ended_at": one.ended_at,
        "outcome": one.outcome,
        "why": one.why,
        "event": one.event and dict(one.event),
        "rate_before": known and round(known.rate_before, 3),
        "rate_during": known and round(known.rate_during, 3),
        "set_rate": load.set_rate,
        "share": expect.share if expect else SHARE,
        "windows": known.windows if known else {"before": None, "during": None, "after": None},
        "back": {
            "rate_s": known and known.rate_back,
            "p99_s": known and known.p99_back,
            "rate_chance_s": known and known.rate_chance,
            "p99_chance_s": known and known.p99_chance,
        },
        "failed": known and known.failed,
        "unfinished": known and known.unfinished,
        "fewer": known and known.fewer,
        "fewer_is_estimate": load.set_rate is None,
        "expect": expect and {key: value for key, value in asdict(expect).items() if value is not None},
        "verdict": verdict,
        "reasons": list(missed.values()),
        "unjudged": unjudged,
        "sentence": _sentence(one, figures, missed),
    }


def _judged(expect: Expectation | None, known: Figures) -> tuple[str | None, dict[str, str]]:
    """Returns the verdict on an expectation, and the reason of each part that is not held, or unknown."""
    if expect is None:
        return None, {}
    broken, unknown = dict[str, str](), dict[str, str]()
    for key, name, back, chance in (
        ("rate_back_within", "rate", known.rate_back, known.rate_chance),
        ("p99_back_within", "p99", known.p99_back, known.p99_chance),
    ):
        within = getattr(expect, key)
        if within is None or (back is not None and max(back, chance or 0) <= within):
            continue
        if back is None and known.watched < within + FOLLOWING:
            unknown[key] = f"{known.watched:.1f} s after the fault are too few to see {name} back within {within} s"
        elif back is None or back > within:
            broken[key] = f"{name} {_back_after(back, chance, known)}; expected within {within} s"
        else:
            unknown[key] = (
                f"{TOO_FEW}: until {chance:.1f} s, chance can explain {name}; expected back within {within} s"
            )
    if expect.rate is not None and known.rate_during < expect.rate * known.rate_before:
        part = known.rate_during / known.rate_before
        broken["rate"] = f"{part:.1%} of the rate before during the fault; expected at least {expect.rate:.1%}"
    if expect.failed_at_most is not None and known.failed is None:
        unknown["failed_at_most"] = UNCOUNTED
    elif expect.failed_at_most is not None and known.failed is not None and known.failed > expect.failed_at_most:
        broken["failed_at_most"] = f"{known.failed:,} operations failed; expected at most {expect.failed_at_most:,}"
    return BROKEN if broken else UNKNOWN if unknown else HELD, {**broken, **unknown}


def _back_after(back: float | None, chance: float | None, known: Figures) -> str:
    if back is None:
        return f"not back within {known.watched:.1f} s"
    return f"back after {back:.1f}{f' to {chance:.1f}' if chance else ''} s"


def _sentence(one: Happened, figures: Figures | str, missed: Mapping[str, str]) -> str:
    """Says what happened in one sentence, and what was expected where that is not held."""
    fault, expect = one.fault, one.fault.expect
    clock = f"{fault.at // 60}:{fault.at % 60:02d}"
    if one.outcome != DONE:
        subject = one.text[:1].upper() + one.text[1:]
        return f"{subject} at {clock}: {'refused' if one.outcome == REFUSED else 'failed'}, because {figures}."
    if isinstance(figures, str):
        return f"{_subject(one)} at {clock}: unknown, because {figures}."

    def noted(text: str, key: str) -> str:
        if key not in missed or expect is None:
            return text
        value = getattr(expect, key)
        bound = f"within {value} s" if key.endswith("within") else f"at most {value:,}"
        return f"{text} (expected {bound}{f': {TOO_FEW}' if missed[key].startswith(TOO_FEW) else ''})"

    rate, p99 = figures.rate_back, figures.p99_back
    chance = f"which chance can explain at {plain(figures.rate_before)} operations a second"
    rates = "the rate did not fall" if rate == 0 else f"the rate was {_back_after(rate, figures.rate_chance, figures)}"
    if rate == 0 and figures.rate_chance:
        rates = f"the rate fell to {figures.rate_fell:.1%}, {chance}"
    times = "p99 did not rise" if p99 == 0 else f"p99 was {_back_after(p99, figures.p99_chance, figures)}"
    if p99 == 0 and figures.p99_chance:
        times = f"p99 rose to {figures.p99_rose} ms, {chance}"
    if rate and p99:
        times = times.replace("was back ", "")
    if figures.failed is None:
        failed = UNCOUNTED
    else:
        failed = f"{nouns(figures.failed, 'operation') if figures.failed else 'no operation'} failed"
    parts = [
        f"{noted(rates, 'rate_back_within')}{';' if chance in rates else ','} {noted(times, 'p99_back_within')}",
        noted(failed, "failed_at_most") + (f", and {figures.unfinished:,} did not end" if figures.unfinished else ""),
        *([missed["rate"].replace("; expected", " (expected") + ")"] if "rate" in missed else []),
    ]
    return f"{_subject(one)} at {clock}: {'; '.join(parts)}."


_HIT = {STOP: "stopped", PAUSE: "paused", CRASH: "crashed", CUT: "cut from the network"}


def _subject(one: Happened) -> str:
    """Describes victims and fault: ``1 of 6 servers paused for 10 s``."""
    fault = one.fault
    if fault.unit is not None:
        return f"An instance of {fault.unit} hit" + (f" by {fault.method}" if fault.method else "")
    if not one.nodes:
        return one.text
    whom = f"{len(one.nodes)}{f' of {one.candidates}' if one.candidates else ''} {fault.role or 'nodes'}"
    where = f" in zone {fault.zone}" if fault.zone else ""
    hit = f"slowed by {fault.delay} ms" if fault.method == SLOW else f"hit by {fault.script}"
    lasted = f" for {fault.lasts} s" if fault.lasts else ""
    return f"{whom}{where} {_HIT.get(fault.method or SCRIPT, hit)}{lasted}"
