"""Defines the guards: everything that can prevent a termination, in one ordered list.

A guard examines the facts of one unit, and refuses or passes. The first refusal is the recorded reason. Guards about
single groups or instances narrow the candidates: they refuse only when no candidate is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache, wraps
from math import ceil

from troop.chaos.claim_rules import LAST_CALL, latest
from troop.chaos.events import in_words as event_in_words
from troop.chaos.facts import Facts
from troop.chaos.groups import Group, Instance
from troop.chaos.inside import consent_of, no_consent, none_fit
from troop.chaos.roll import by_rank, due_at, last_due
from troop.shared.calendars import MARGIN_MINUTES, Calendar, clock
from troop.shared.choice import Choice
from troop.shared.formatting import counted
from troop.shared.tags import CONSENT_TO_INSTALL, FLEET_TAG, UNTOUCHABLE_TAGS

NEEDED_PROCESSES = frozenset({"Launch", "Terminate", "HealthCheck", "ReplaceUnhealthy", "AddToLoadBalancer"})
"""Auto Scaling processes without which a terminated instance is not detected or not replaced."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why a unit is skipped, from :data:`REASONS`, and a sentence with the numbers."""

    reason: str
    detail: str


Guard = Callable[[Facts], Refusal | Facts | None]
"""Refuses, narrows the facts to fewer groups, or passes (None)."""


GroupGuard = Callable[[Facts, Group], str | None]
"""Returns the objection to one group, in words that follow its name; None passes it."""


def each_group(reason: str) -> Callable[[GroupGuard], Guard]:
    """Makes a guard that keeps the groups without objections. It refuses if none is left, and quotes all objections."""

    def guard_of(why: GroupGuard) -> Guard:
        @wraps(why)
        def guard(facts: Facts) -> Refusal | Facts | None:
            for group in facts.groups:
                if why(facts, group):
                    return narrowed(facts)
            return None

        def narrowed(facts: Facts) -> Refusal | Facts:
            words = {group.name: why(facts, group) for group in facts.groups}
            left = tuple(group for group in facts.groups if not words[group.name])
            if left:
                return replace(facts, groups=left)
            return Refusal(reason, "; ".join(f"{name} {words_of_group}" for name, words_of_group in words.items()))

        return guard

    return guard_of


def protecting_tag(group: Group) -> str | None:
    """Returns the tag that protects a group from Troop, whatever the tag's value; None if there is none."""
    # The fleet tag first, whatever other tags people add.
    return next((tag for tag in reversed(UNTOUCHABLE_TAGS) if tag in group.tags), None)


@each_group("protected")
def protected(_facts: Facts, group: Group) -> str | None:
    tag = protecting_tag(group)
    return "belongs to one of Troop's own fleets" if tag == FLEET_TAG else f"is tagged {tag}" if tag else None


def malformed(facts: Facts) -> Refusal | None:
    return Refusal("malformed", "; ".join(facts.policy.problems)) if facts.policy.problems else None


def halted(facts: Facts) -> Refusal | None:
    if not facts.switch.halted:
        return None
    itself = facts.switch.itself
    return Refusal("halted", itself.in_brief if itself else "chaos is halted by the switch")


def calendar_closed(facts: Facts) -> Refusal | None:
    closure = facts.today.closure
    return Refusal(closure.kind, closure.detail) if closure else None


def change_calendar_closed(facts: Facts) -> Refusal | None:
    document, period = facts.calendar.change_calendar, facts.change
    if document is None or (period and period.is_open):
        return None
    state = period.in_words() if period else "has not been read"  # an unknown state is not open
    return Refusal("change-calendar", f"SSM Change Calendar {document} {state}")


def opted_out(facts: Facts) -> Refusal | None:
    takes_part = facts.policy.takes_part
    if takes_part.value:
        return None
    if takes_part.source == "settings":
        return Refusal("not-opted-in", "this deployment is opt-in and the unit has not opted in")
    until = f" until {facts.policy.until.value}" if facts.policy.until.value else ""
    because = f": {facts.policy.reason.value}" if facts.policy.reason.value else ""
    return Refusal("opted-out", f"opted out by {takes_part.source}{until}{because}")


def left_chaos(facts: Facts) -> Refusal | None:
    if not (event := facts.state.unrecovered):
        return None
    words = event_in_words(event)
    if facts.state.left_for == "broken":
        return Refusal("broken", f"broken by {words}: return it to chaos when the cause is known")
    return Refusal("unrecovered", f"did not recover from {words}: return it to chaos when it is healthy")


@each_group("operated")
def operated(_facts: Facts, group: Group) -> str | None:
    return f"is operated by {group.operator}: only this service may change it" if group.operator else None


def not_allowed_inside(facts: Facts) -> Refusal | None:
    """Refuses units all of whose faults are lasting ones, if these cannot happen: nothing of this is secret."""
    if any(choice.lasting is None for choice in facts.choices):
        return None
    refusal = _consenting(facts, facts.choices[0])
    return refusal if isinstance(refusal, Refusal) else None


def inside(facts: Facts) -> Refusal | Facts | None:
    choice = facts.choice
    if choice.lasting is None:
        return None
    verdict = _consenting(facts, choice)
    if isinstance(verdict, Refusal):
        return verdict
    if facts.inside.unread:
        return Refusal("inside", f"Systems Manager could not be asked for its instances: {facts.inside.unread}")
    return _with_fit_instances(verdict or facts) or verdict


def _consenting(facts: Facts, choice: Choice) -> Refusal | Facts | None:
    if facts.settings.inside_instances:
        return _consenting_groups(facts)
    return Refusal("inside", f"{choice.name} acts inside an instance, but troop:inside_instances is false")


@each_group("inside")
def _consenting_groups(_facts: Facts, group: Group) -> str | None:
    return no_consent(group) or None


@each_group("inside")
def _with_fit_instances(facts: Facts, group: Group) -> str | None:
    hittable = (i.instance_id for i in group.instances if may_be_hit(i, facts.protected_instances))
    return none_fit(facts.inside, hittable) or None


@each_group("suspended")
def suspended(_facts: Facts, group: Group) -> str | None:
    missing = group.suspended_processes & NEEDED_PROCESSES
    return "has suspended " + ", ".join(sorted(missing)) if missing else None


@each_group("refreshing")
def refreshing(facts: Facts, group: Group) -> str | None:
    under_way = facts.refreshing and group.name in facts.refreshing
    return "has an instance refresh under way" if under_way else None


@each_group("too-small")
def too_small(facts: Facts, group: Group) -> str | None:
    minimum = facts.policy.min_healthy.value
    if group.desired == 0:
        return "wants no instances"
    if len(group.instances) < minimum:
        return f"has {counted(len(group.instances), 'instance')}, fewer than min_healthy {minimum}"
    return None


@each_group("unhealthy")
def unhealthy(facts: Facts, group: Group) -> str | None:
    if facts.unread and group.sources:
        return f"has traffic sources whose health could not be read: {facts.unread}"
    minimum, weights, where = facts.policy.min_healthy.value, [i.weight for i in group.serving], "in service"
    if facts.balanced is not None and len(served := group.served(facts.balanced)) < len(weights):
        # Instances without traffic do not count here, as they do not count in the recovery check.
        weights, where = [i.weight for i in served], "in service and healthy in all its traffic sources"
    if len(weights) < minimum:
        return f"has {counted(len(weights), 'healthy instance')} {where}, fewer than min_healthy {minimum}"
    capacity = sum(weights)
    return f"has a capacity of {capacity} {where}, desired {group.desired}" if capacity < group.desired else None


@each_group("protected-instances")
def only_protected_instances(facts: Facts, group: Group) -> str | None:
    spared = facts.protected_instances
    for i in group.instances:  # usually ends at the first instance
        if may_be_hit(i, spared):
            return None
    return "has only protected instances in service"


def stop_alarm(facts: Facts) -> Refusal | None:
    if facts.alarms is None:
        return None
    objection = facts.policy.hypothesis.objection(facts.alarms)
    return Refusal("stop-alarm", objection) if objection else None


def too_soon(facts: Facts) -> Refusal | None:
    needed, last = facts.policy.min_days_between.value, facts.state.last_day
    if last is None or not needed or last >= facts.day:
        return None  # on the same day the reason is already-today
    passed = facts.calendar.business_days_since(last, facts.day, needed)
    if passed >= needed:
        return None
    return Refusal("too-soon", f"last on {last}, {counted(passed, 'business day')} ago; min_days_between {needed}")


def not_rolled(facts: Facts) -> Refusal | None:
    rolled, probability = facts.rolled, facts.policy.probability.value
    if rolled < probability:
        return None
    return Refusal("not-rolled", f"{rolled:.4f} >= probability {probability:g}")


def not_yet(facts: Facts) -> Refusal | None:
    calendar, day, takes = facts.calendar, facts.day, facts.choice.takes()
    if facts.now >= last_due(day, calendar, takes) or facts.now >= due_at(facts.salt, day, facts.unit, calendar, takes):
        return None
    return _later_than(facts.now, calendar)


@lru_cache(maxsize=64)
def _later_than(now: datetime, calendar: Calendar) -> Refusal:
    # Omits the minute itself, and the fault, which bounds it: predictable chaos tests nothing.
    last = clock(calendar.hours(calendar.at(now).day)[1] - MARGIN_MINUTES)
    return Refusal("not-yet", f"rolled for a minute later than {calendar.local(now):%H:%M}, before {last}")


def too_late(facts: Facts) -> Refusal | None:
    """Refuses a lasting fault that would not be over, with its proof, before the window closes."""
    choice = facts.choice
    takes = choice.takes(any(consent_of(group) == CONSENT_TO_INSTALL for group in facts.groups))
    if choice.lasting is None or facts.now + LAST_CALL < latest(facts.now, facts.calendar, facts.change, takes):
        return None
    minutes = ceil(takes / timedelta(minutes=1))
    return Refusal(
        "outside-window", f"{choice.name} and the proof of its end take {minutes} minutes: the window closes too soon"
    )


def already_today(facts: Facts) -> Refusal | None:
    if facts.state.last_day is not None and facts.state.last_day >= facts.day:
        return Refusal("already-today", f"has had its hit of {facts.state.last_day}")
    spent = facts.state.abandoned
    if spent is not None and spent.day >= facts.day:
        return Refusal("already-today", f"had its claim of {spent.day}, which was abandoned: {spent.why}")
    return None


def day_cap(facts: Facts) -> Refusal | None:
    count, cap = facts.counts.by_day.get(facts.day, 0), facts.settings.max_per_day
    return Refusal("day-cap", f"{counted(count, 'hit')} on {facts.day}, max_per_day {cap}") if count >= cap else None


def in_flight(facts: Facts) -> Refusal | None:
    count, most = facts.counts.in_flight, facts.settings.max_in_flight
    return Refusal("in-flight", f"{counted(count, 'hit')} in flight, max_in_flight {most}") if count >= most else None


def leashed(facts: Facts) -> Refusal | None:
    return Refusal("leashed", "due, but the deployment is leashed") if facts.switch.leashed else None


SCHEDULED: tuple[Guard, ...] = (
    protected,
    malformed,
    halted,
    calendar_closed,
    change_calendar_closed,
    opted_out,
    left_chaos,
    operated,
    not_allowed_inside,
    suspended,
    refreshing,
    too_small,
    unhealthy,
    only_protected_instances,
    inside,
    stop_alarm,
    too_soon,
    not_rolled,
    not_yet,
    already_today,
    too_late,
    day_cap,
    in_flight,
    leashed,
)
"""The guards of a scheduled termination, in order."""

BEFORE_CAPS = SCHEDULED[: SCHEDULED.index(day_cap)]
CAPS = (day_cap, in_flight)
""":data:`CAPS` depend on the terminations of other units; :data:`BEFORE_CAPS` are all guards before them."""

REASONS = (
    "protected",
    "malformed",
    "halted",
    "weekend",
    "holiday",
    "freeze",
    "outside-window",
    "change-calendar",
    "opted-out",
    "not-opted-in",
    "unrecovered",
    "broken",
    "operated",
    "inside",
    "suspended",
    "refreshing",
    "too-small",
    "unhealthy",
    "protected-instances",
    "stop-alarm",
    "too-soon",
    "not-rolled",
    "not-yet",
    "already-today",
    "day-cap",
    "in-flight",
    "leashed",
)
"""Every reason that a guard can return; a bounded set, suitable for a metric's dimension."""


def in_words(reason: str, detail: str = "") -> str:
    """Returns a reason as words for people, with its detail: ``opted out until 2026-12-04: a migration``."""
    words, detail = reason.replace("-", " "), detail.rstrip(".")
    return detail if detail.startswith(words) else f"{words}: {detail}" if detail else words


@dataclass(frozen=True, slots=True)
class Target:
    """The instance to terminate, and its group."""

    group: Group
    instance: Instance


def judge(facts: Facts, guards: Sequence[Guard] = SCHEDULED) -> Refusal | Target:
    """Returns the first guard's refusal or, if all pass, the instance that comes first in the day's order."""
    passed = pass_guards(facts, guards)
    if isinstance(passed, Refusal):
        return passed
    facts = passed
    owners = {i: group for group in facts.groups for i in candidates(facts, group)}
    chosen = by_rank(facts.salt, facts.day, owners)[0]
    return Target(owners[chosen], chosen)


def pass_guards(facts: Facts, guards: Sequence[Guard]) -> Refusal | Facts:
    """Returns the first guard's refusal or, if all pass, the facts narrowed to the remaining groups."""
    for guard in guards:
        verdict = guard(facts)
        if verdict is None:
            continue
        if isinstance(verdict, Refusal):
            return verdict
        facts = verdict
    return facts


def candidates(facts: Facts, group: Group) -> tuple[Instance, ...]:
    """Returns the instances of a group that may be hit, for a policy without problems."""
    hittable = tuple(i for i in group.instances if may_be_hit(i, facts.protected_instances))
    if facts.choice.lasting is None:
        return hittable
    return tuple(i for i in hittable if facts.inside.allows(i.instance_id))


def may_be_hit(instance: Instance, spared: frozenset[str]) -> bool:
    """Checks whether an instance serves, and nothing protects it. ``spared``: ids of those with the protecting tag."""
    return instance.serving and not instance.scale_in_protected and instance.instance_id not in spared
