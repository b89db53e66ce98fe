"""Summarises the hits of a period, in one pass over the events from the newest to the oldest. Pure.

A report shows a summary as a page, and the weekly letter is made of one.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from statistics import median
from typing import Any, NamedTuple

from troop.chaos.events import OPEN, WITHOUT_TERMINATION, Event, Status
from troop.chaos.slowness import Compared, Slowness, likeness
from troop.chaos.stage_times import STAGES, stage_seconds
from troop.chaos.verdict import VerdictValue
from troop.shared import moments

PENDING, UNJUDGED = "pending", "unjudged"
"""Of hits without a verdict: it is still to come; or an earlier version recorded none."""

VERDICTS = (*(value.value.lower() for value in VerdictValue), PENDING, UNJUDGED)

MOST_LISTED = 500
"""The most events in a list of a summary: the newest ones, and of slow recoveries those furthest beyond the usual."""

_WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a summary needs of an event.

    Attributes:
        owner: the unit's at the claim; "" if none is recorded.
        at: when it was claimed.
        seconds: of the recovery; None for an event without one.
        lasting: whether the fault is a lasting one.
        stays: whether its instance stays, because a probe has proven that the fault is over.
        stages: see :func:`troop.chaos.stage_times.stage_seconds`.
        verdict: one of :data:`VERDICTS`; "" for an event in which nothing hit.
        why: why the verdict is so, or how the event ended.
    """

    event_id: str
    unit: str
    owner: str
    day: date
    at: datetime
    status: Status
    method: str
    seconds: float | None
    stages: Mapping[str, float]
    verdict: str
    why: str
    lasting: bool = False
    stays: bool = False

    @classmethod
    def from_event(cls, event: Event) -> Outcome:
        """Returns the outcome of a stored event."""
        return cls(
            event_id=event.event_id,
            unit=event.unit,
            owner=event.owner,
            day=event.day,
            at=event.at,
            status=event.status,
            method=event.method,
            seconds=event.recovery_seconds,
            lasting=event.injection is not None,
            stays=event.victim_stays,
            stages=stage_seconds(None if event.victim_stays else event.recovers_from, event.stages, event.recovered_at),
            verdict=verdict_word(event.status, event.verdict.value if event.verdict else None, event.awaits_verdict),
            why=event.verdict.why if event.verdict else event.detail,
        )

    @property
    def has_failed(self) -> bool:
        """Whether the unit did not hold: its hypothesis is broken, or it has not recovered."""
        return self.verdict == "broken" or self.status is Status.UNRECOVERED


def verdict_word(status: Status, value: str | None, awaits: bool) -> str:
    """Returns the word of :data:`VERDICTS` for an event; "" if nothing hit.

    Args:
        value: of the stored verdict; None without one.
        awaits: whether the group has recovered and its verdict is still to come.
    """
    if status in WITHOUT_TERMINATION or status is Status.LEASHED or status is Status.CLAIMED:
        return ""
    if value is not None:
        return value.lower()
    return PENDING if awaits or status in OPEN else UNJUDGED


class _Recovery(NamedTuple):
    """A recovery that waits for the earlier ones; without what is only needed at once, because many wait."""

    event_id: str
    unit: str
    day: date


@dataclass(frozen=True, slots=True)
class UnitNow:
    """A unit as it is when the report is made.

    Attributes:
        state: whether it takes part, or in one or two words why not.
        why: the same with the numbers; "" for nothing that prevents a termination.
        endless: whether people have opted it out, without an end.
    """

    unit: str
    owner: str
    state: str
    why: str
    endless: bool


@dataclass(slots=True)
class _Counts:
    """What is counted of some hits. Recoveries of lasting faults are apart: they count from the fault's end."""

    injections: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    unrecovered: int = 0
    slower: int = 0
    recoveries: array[float] = field(default_factory=lambda: array("d"))
    after_faults: array[float] = field(default_factory=lambda: array("d"))
    stages: defaultdict[str, array[float]] = field(default_factory=lambda: defaultdict(lambda: array("d")))

    def add(self, outcome: Outcome) -> None:
        self.verdicts[outcome.verdict] += 1
        self.injections += outcome.lasting
        self.unrecovered += outcome.status is Status.UNRECOVERED
        if outcome.seconds is not None:
            (self.after_faults if outcome.lasting else self.recoveries).append(outcome.seconds)
        if not outcome.lasting:
            for stage, seconds in outcome.stages.items():
                self.stages[stage].append(seconds)

    def include(self, other: _Counts) -> None:
        self.injections += other.injections
        self.verdicts += other.verdicts
        self.unrecovered += other.unrecovered
        self.slower += other.slower
        self.recoveries.extend(other.recoveries)
        self.after_faults.extend(other.after_faults)
        for stage, seconds in other.stages.items():
            self.stages[stage].extend(seconds)

    def document(self) -> dict[str, Any]:
        return {
            "hits": self.verdicts.total(),
            "terminations": self.verdicts.total() - self.injections,
            "injections": self.injections,
            **{word: self.verdicts[word] for word in VERDICTS},
            "unrecovered": self.unrecovered,
            "slower": self.slower,
            "recovery": _spread(self.recoveries),
            "recovery_after_faults": _spread(self.after_faults),
            "stages": {stage: _spread(self.stages.get(stage, ())) for stage in STAGES},
        }


@dataclass(slots=True)
class _Unit(_Counts):
    """A unit in the period; ``held`` is its oldest HELD event up to now, in the order of reading."""

    owner: str = ""
    held: Outcome | None = None
    mended: tuple[Outcome, Outcome] | None = None
    failed: Outcome | None = None


class Period:
    """The summary of a period, which grows with each event.

    Per unit it stores counts and 8 bytes for each time of a stage; of events it stores at most :data:`MOST_LISTED` for
    each list.
    """

    def __init__(self, since: datetime, until: datetime, first: date, last: date) -> None:
        """Begins an empty summary.

        Args:
            since, until: the events that count; ``until`` is not included.
            first, last: the same as local days, both included.
        """
        self.since, self.until, self.first, self.last = since, until, first, last
        self.oldest: datetime | None = None
        self._units: defaultdict[str, _Unit] = defaultdict(_Unit)
        self._weeks: defaultdict[date, _Counts] = defaultdict(_Counts)
        self._others: Counter[str] = Counter()
        self._lists: dict[str, list[dict[str, Any]]] = {"broken": [], "unknown": []}
        self._slowest: list[tuple[float, str, Compared[_Recovery]]] = []
        self._listed: Counter[str] = Counter()
        self._slowness: Slowness[_Recovery] = Slowness()

    @property
    def is_complete(self) -> bool:
        """Whether events before the period would change nothing: each recovery has the earlier ones to compare with."""
        return not self._slowness.waiting

    def add(self, outcome: Outcome) -> None:
        """Adds an event, not newer than those before it. One before the period is only compared with."""
        self.oldest = outcome.at
        counts = self.since <= outcome.at < self.until
        if counts and outcome.verdict:
            self._count(outcome)
        elif counts:
            self._others[outcome.status.value] += 1
        if outcome.seconds is not None and outcome.at < self.until:
            subject = _Recovery(outcome.event_id, outcome.unit, outcome.day) if counts else None
            like = likeness(outcome.method, outcome.stays)
            for compared in self._slowness.add(outcome.unit, like, outcome.at, outcome.seconds, subject):
                self._compare(compared)

    def _count(self, outcome: Outcome) -> None:
        unit, week = self._units[outcome.unit], self._weeks[_monday(outcome.day)]
        unit.add(outcome)
        week.add(outcome)
        unit.owner = unit.owner or outcome.owner
        if outcome.has_failed:
            self._list("broken", outcome)
            if unit.held is None:
                unit.failed = unit.failed or outcome
            else:
                unit.mended = unit.mended or (outcome, unit.held)
        elif outcome.verdict == "held":
            unit.held = outcome
        elif outcome.verdict == "unknown":
            self._list("unknown", outcome)

    def _compare(self, compared: Compared[_Recovery]) -> None:
        if not compared.is_slow:
            return
        one = compared.subject
        self._units[one.unit].slower += 1
        self._weeks[_monday(one.day)].slower += 1
        self._listed["slower"] += 1
        heapq.heappush(self._slowest, (compared.times, one.event_id, compared))
        if len(self._slowest) > MOST_LISTED:
            heapq.heappop(self._slowest)

    def _list(self, name: str, outcome: Outcome) -> None:
        self._listed[name] += 1
        if len(self._lists[name]) < MOST_LISTED:
            self._lists[name].append(_event(outcome))

    def document(self, units_now: Iterable[UnitNow] | None = None) -> dict[str, Any]:
        """Returns the summary in JSON's types. Call it once, when all events are added.

        Args:
            units_now: all units; None if they are not read. Then the units that were never hit, and those opted out
                without an end, are not known.
        """
        for compared in self._slowness.rest():
            self._compare(compared)
        now = None if units_now is None else {one.unit: one for one in units_now}
        owners = {unit: its.owner for unit, its in self._units.items()}
        owners |= {unit: one.owner for unit, one in (now or {}).items() if not owners.get(unit)}
        total = _Counts()
        for its in self._units.values():
            total.include(its)
        units = [
            {"unit": unit, "owner": owners[unit] or None} | its.document() for unit, its in sorted(self._units.items())
        ]
        hit = self._units.keys()
        never = None if now is None else [_now(one) for one in now.values() if one.unit not in hit]
        document = {
            "since": moments.iso(self.since),
            "until": moments.iso(self.until),
            "first": self.first.isoformat(),
            "last": self.last.isoformat(),
            "units_hit": len(units),
            "totals": total.document(),
            "without_termination": dict(self._others),
            "weeks": list(self._every_week()),
            "owners": [],
            "units": units,
            **{
                name: [event | {"owner": owners[event["unit"]] or None} for event in events]
                for name, events in self._lists.items()
            },
            "slower": [_slow(compared, owners) for _, _, compared in sorted(self._slowest, reverse=True)],
            "mended": [
                {"unit": unit, "owner": owners[unit] or None, "failed": _event(pair[0]), "held": _event(pair[1])}
                for unit, its in sorted(self._units.items())
                if (pair := its.mended)
            ],
            "not_mended": [
                {"unit": unit, "owner": owners[unit] or None, "failed": _event(its.failed)}
                for unit, its in sorted(self._units.items())
                if its.failed
            ],
            "never_hit": never,
            "opted_out": None if now is None else [_now(one) for one in now.values() if one.endless],
            "not_listed": {name: max(0, self._listed[name] - MOST_LISTED) for name in ("broken", "unknown", "slower")},
        }
        return document | {"owners": self._by_owner(owners, document)}

    def _every_week(self) -> Iterator[dict[str, Any]]:
        monday = min([_monday(self.first), *self._weeks])
        while monday <= max([self.last, *self._weeks]):
            yield {"week": monday.isoformat()} | self._weeks.get(monday, _Counts()).document()
            monday += _WEEK

    def _by_owner(self, owners: Mapping[str, str], document: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Returns the sums of each owner's units; those with the most broken ones first, units without owner last."""
        sums: dict[str, _Counts] = {}
        units = Counter(owners[unit] for unit in self._units)
        for unit, its in self._units.items():
            sums.setdefault(owners[unit], _Counts()).include(its)
        lists = ("never_hit", "opted_out", "mended", "not_mended")
        named = {name: Counter(one["owner"] or "" for one in document[name] or ()) for name in lists}
        names = {*sums, *(owner for counts in named.values() for owner in counts)}
        rows = [
            {"owner": owner or None, "units_hit": units[owner]}
            | sums.get(owner, _Counts()).document()
            | {name: None if document[name] is None else named[name][owner] for name in lists}
            for owner in names
        ]
        return sorted(rows, key=lambda row: (row["owner"] is None, -row["broken"], -row["hits"], row["owner"] or ""))


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _slow(compared: Compared[_Recovery], owners: Mapping[str, str]) -> dict[str, Any]:
    one = compared.subject
    return {
        "event_id": one.event_id,
        "unit": one.unit,
        "owner": owners[one.unit] or None,
        "day": one.day.isoformat(),
        "seconds": round(compared.seconds, 1),
        "usual_seconds": round(compared.usually or 0.0, 1),
    }


def _event(outcome: Outcome) -> dict[str, Any]:
    return {
        "event_id": outcome.event_id,
        "unit": outcome.unit,
        "day": outcome.day.isoformat(),
        "status": outcome.status.value,
        "why": outcome.why,
    }


def _now(one: UnitNow) -> dict[str, Any]:
    return {"unit": one.unit, "owner": one.owner or None, "state": one.state, "why": one.why}


def _spread(values: Sequence[float]) -> dict[str, Any]:
    """Returns how many values there are, their median, and the one that nine of ten do not exceed, in seconds."""
    if not values:
        return {"count": 0, "median": None, "p90": None}
    ordered = sorted(values)
    p90 = ordered[math.ceil(9 * len(ordered) / 10) - 1]
    return {"count": len(ordered), "median": round(median(ordered), 1), "p90": round(p90, 1)}
