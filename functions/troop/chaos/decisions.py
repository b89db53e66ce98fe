"""Decides for every unit at one tick. Pure: all input comes as arguments, all output is data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import date, datetime

from troop.chaos.events import scheduled_id
from troop.chaos.facts import Counts, Facts, Switch
from troop.chaos.guards import BEFORE_CAPS, CAPS, SCHEDULED, Refusal, Target, judge, pass_guards
from troop.chaos.participation import effective_participation
from troop.chaos.policy import Policy
from troop.shared.choice import Choice
from troop.shared.records import record

TERMINATE = "terminate"
"""The only reason that is not a refusal; of lasting faults, too."""


@record
class Decision:
    """The decision for one unit at one tick, and its reason.

    Attributes:
        tick: the moment the decision is for.
        day: the local day on the unit's calendar; None if the unit's calendar does not exist.
        reason: ``terminate`` or the first guard's refusal.
        detail: a sentence with the numbers.
        groups: names of the unit's groups.
        rolled: the day's roll, 0..1; None without a day.
        takes_part: whether chaos may select the unit at all: it is not opted out, protected, malformed or unrecovered.
        target: the instance to hit or, in a leashed deployment, the one that would be hit.
        choice: the fault of the day; None if the policy has problems, or the unit has no day.
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
    choice: Choice | None = None

    @property
    def event_id(self) -> str:
        """The key of the scheduled event of this unit and day, for a decision that has a day."""
        assert self.day is not None
        return scheduled_id(self.day, self.unit)


def is_on_record(facts: Facts) -> bool:
    """Checks whether an earlier tick has recorded the leashed event of this unit and day."""
    return facts.switch.leashed and facts.state.leashed_day == facts.day


def calendar_of(facts: Facts) -> str:
    """Returns the calendar whose ticks decide for a unit; the default one if the unit's calendar does not exist."""
    name = str(facts.policy.calendar.value)
    return name if name in facts.settings.calendars else "default"


def decide(facts: Facts) -> Decision:
    """Returns the decision for one unit."""
    return _decision(facts, judge(facts, SCHEDULED))


def _decision(facts: Facts, verdict: Refusal | Target) -> Decision:
    on_a_day = facts.has_day
    target = None
    if isinstance(verdict, Target):
        reason, target = TERMINATE, verdict
        detail = f"{verdict.instance.instance_id} of {verdict.group.name} is to {facts.choice.in_words}"
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
        choice=facts.choice if on_a_day and not facts.policy.problems else None,
        takes_part=facts.state.unrecovered is None
        and bool(effective_participation(facts.groups, facts.policy).takes_part.value),
        target=target,
    )


def decide_all(facts: Iterable[Facts], read_details: Callable[[list[Facts]], list[Facts]] = list) -> list[Decision]:
    """Returns the decisions of a tick, in the order of the facts. Each termination counts against the caps of other
    units.

    Order matters only near a cap: the lowest roll of the day then goes first, so that a name gives no advantage. Units
    that a cap refuses cause no calls.

    Args:
        facts: the facts of every unit, see :func:`troop.chaos.facts.facts_of_units`; read one by one, and stored only
            for units that are due.
        read_details: adds the facts that cost a call per group (refreshes, alarms), for units that are due.
    """
    decided: dict[str, Decision | None] = {}  # in the order of the result
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
    """Decides, in their order, for units that only a cap, the details or the leash can still refuse.

    The caps apply to a leashed deployment too: it records what would have been terminated, and reads details of few
    units, however many are due. A unit that has its record is skipped.
    """
    for unit in filter(is_on_record, due):
        yield unit.unit, _decision(unit, Refusal("leashed", "due, but the deployment is leashed: already recorded"))
    due = [unit for unit in due if not is_on_record(unit)]
    counts = due[0].counts if due else Counts()
    seen: dict[str, Facts] = {}
    full: dict[date, Refusal] = {}  # after a cap's first refusal for a day, all later units of that day get the same
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
    """Returns how many more terminations the caps allow on the unit's day."""
    settings = unit.settings
    return min(settings.max_per_day - counts.by_day.get(unit.day, 0), settings.max_in_flight - counts.in_flight)
