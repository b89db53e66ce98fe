"""Decides for every unit at one tick. Pure: all it looks at comes as arguments, all it says is data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from troop.chaos.facts import Counts, Facts, Switch, UnitState
from troop.chaos.groups import Group
from troop.chaos.guards import BEFORE_CAPS, CAPS, SCHEDULED, Refusal, Target, judge, pass_guards
from troop.chaos.participation import effective_participation
from troop.chaos.policy import Policy, effective_policy, says_anything
from troop.chaos.units import by_unit
from troop.records import record
from troop.settings import Settings

TERMINATE = "terminate"
"""The one reason that is no refusal."""


@dataclass(frozen=True, slots=True)
class Account:
    """What one tick has read of the account. Mappings are by unit; a unit without an entry has nothing stored."""

    groups: Sequence[Group]
    items: Mapping[str, Mapping[str, Any]]
    states: Mapping[str, UnitState]
    switch: Switch
    counts: Counts
    protected_instances: frozenset[str] = frozenset()


@record
class Decision:
    """What was decided for one unit at one tick, and why.

    Attributes:
        tick: the moment the decision is for.
        day: the local day on the unit's calendar; None when the unit has no calendar that exists.
        reason: ``terminate`` or the first guard's refusal.
        detail: a sentence with the numbers.
        groups: names of the unit's groups.
        rolled: the day's roll, 0..1; None without a day.
        takes_part: whether chaos may choose from it at all: neither opted out nor protected, malformed, or out of chaos
            because it has not recovered.
        target: what is to be terminated (or would be, were the deployment not leashed).
    """

    unit: str
    tick: datetime
    day: date | None
    reason: str
    detail: str
    groups: tuple[str, ...]
    rolled: float | None
    policy: Policy
    takes_part: bool
    target: Target | None = None

    @property
    def event_id(self) -> str:
        """The key of the scheduled event of this unit and day."""
        return f"{self.day}#{self.unit}"


def facts_of_units(account: Account, settings: Settings, salt: bytes, now: datetime) -> Iterator[Facts]:
    """The facts of every unit, in the units' order, with what costs a call per group left out."""
    days = {name: calendar.at(now).day for name, calendar in settings.calendars.items()}
    today = days.__getitem__
    nobody, no_state = Group("", 0), UnitState()
    shared = effective_policy([nobody], {}, settings, today)  # of all units for which nobody has set anything
    counts = _with_leashed(account) if account.switch.leashed else account.counts
    for unit, groups in by_unit(account.groups, settings.units).items():
        item = account.items.get(unit)
        plain = not item and not any(map(says_anything, groups))
        yield Facts(
            unit=unit,
            now=now,
            salt=salt,
            settings=settings,
            switch=account.switch,
            groups=groups,
            policy=shared if plain else effective_policy(groups, item or {}, settings, today),
            state=account.states.get(unit, no_state),
            counts=counts,
            protected_instances=account.protected_instances,
        )


def _with_leashed(account: Account) -> Counts:
    """The counts as they would be had all that is on record as leashed been terminated."""
    by_day = Counter(account.counts.by_day)
    by_day.update(state.leashed_day for state in account.states.values() if state.leashed_day)
    return replace(account.counts, by_day=by_day)


def is_on_record(facts: Facts) -> bool:
    """Whether the leashed event of this unit and day has been recorded by an earlier tick."""
    return facts.switch.leashed and facts.state.leashed_day == facts.day


def calendar_of(facts: Facts) -> str:
    """The calendar on whose ticks a unit is decided for; one that does not exist is reported by the default one's."""
    name = str(facts.policy.calendar.value)
    return name if name in facts.settings.calendars else "default"


def decide(facts: Facts) -> Decision:
    """The decision for one unit."""
    return _decision(facts, judge(facts, SCHEDULED))


def _decision(facts: Facts, verdict: Refusal | Target) -> Decision:
    on_a_day = facts.has_day
    target = None
    if isinstance(verdict, Target):
        reason, target = TERMINATE, verdict
        detail = f"{verdict.instance.instance_id} of {verdict.group.name} is to be terminated"
    else:
        reason, detail = verdict.reason, verdict.detail
        if reason == "leashed":
            unleashed = judge(replace(facts, switch=Switch(halted=False, leashed=False)), SCHEDULED)
            target = unleashed if isinstance(unleashed, Target) else None
    return Decision(
        unit=facts.unit,
        tick=facts.now,
        day=facts.day if on_a_day else None,
        reason=reason,
        detail=detail,
        groups=tuple([group.name for group in facts.groups]),
        rolled=facts.rolled if on_a_day else None,
        policy=facts.policy,
        takes_part=facts.state.unrecovered is None
        and bool(effective_participation(facts.groups, facts.policy).takes_part.value),
        target=target,
    )


def decide_all(facts: Iterable[Facts], read_details: Callable[[list[Facts]], list[Facts]] = list) -> list[Decision]:
    """The decisions of a tick, in the order of the facts. What one unit is granted counts against the caps of others.

    Order matters only when a cap is near: then whoever rolled lowest that day goes first, so that no unit is favoured
    for its name. Nothing is looked up for units that a cap refuses anyway.

    Args:
        facts: of every unit, see :func:`facts_of_units`; taken one by one, and kept only of units that are due.
        read_details: adds to the facts of units that are due what costs a call per group (refreshes, alarms).
    """
    decided: dict[str, Decision | None] = {}  # the place of a unit is its place in the answer
    due = []
    for unit in facts:
        passed = pass_guards(unit, BEFORE_CAPS)
        if isinstance(passed, Refusal):
            decided[unit.unit] = _decision(unit, passed)
        else:
            decided[unit.unit] = None
            due.append(unit)
    decided |= _grant(sorted(due, key=lambda f: (f.rolled, f.unit)), read_details)
    return [decision for decision in decided.values() if decision]


def _grant(due: list[Facts], read_details: Callable[[list[Facts]], list[Facts]]) -> Iterator[tuple[str, Decision]]:
    """Decides for units that only a cap, a closer look or the leash can still refuse, in their order.

    A leashed deployment keeps to the caps as well: what it records is what would have been terminated, and however many
    units are due, few have to be looked at. A unit that has its record is let be.
    """
    for unit in filter(is_on_record, due):
        yield unit.unit, _decision(unit, Refusal("leashed", "due, but the deployment is leashed: on record already"))
    due = [unit for unit in due if not is_on_record(unit)]
    counts = due[0].counts if due else Counts()
    seen: dict[str, Facts] = {}
    full: dict[date, Refusal] = {}  # what a cap refuses once that day, it refuses to all that follow
    for index, unit in enumerate(due):
        refused = full.get(unit.day)
        if refused is None:
            capped = pass_guards(replace(unit, counts=counts), CAPS)
            if isinstance(capped, Refusal):
                refused = full[unit.day] = capped
        if refused is not None:
            yield unit.unit, _decision(unit, refused)
            continue
        if unit.unit not in seen:
            seen = {f.unit: f for f in read_details(due[index : index + _room(unit, counts)])}
        decision = decide(replace(seen[unit.unit], counts=counts))
        if decision.target:
            counts = counts.plus_one(unit.day)
        yield unit.unit, decision


def _room(unit: Facts, counts: Counts) -> int:
    """How many more terminations the caps allow on the unit's day."""
    settings = unit.settings
    return min(settings.max_per_day - counts.by_day.get(unit.day, 0), settings.max_in_flight - counts.in_flight)
