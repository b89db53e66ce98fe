"""What each guard refuses, in which words, and the nearest harmless thing that it lets pass; in the guards' order."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from tests.unit.chaos.build import FRIDAY, SALT, at, calendars, facts, group, instance, settings
from troop.chaos.change_calendars import ChangePeriod
from troop.chaos.facts import AbandonedClaim, Counts, Switch, UnitState
from troop.chaos.guards import (
    Guard,
    already_today,
    calendar_closed,
    change_calendar_closed,
    day_cap,
    halted,
    in_flight,
    inside,
    leashed,
    left_chaos,
    malformed,
    not_allowed_inside,
    not_rolled,
    not_yet,
    only_protected_instances,
    operated,
    opted_out,
    protected,
    refreshing,
    stop_alarm,
    suspended,
    too_late,
    too_small,
    too_soon,
    unhealthy,
)
from troop.chaos.inside import Inside
from troop.chaos.roll import due_at, roll
from troop.chaos.self_halt import SelfHalt

ROLL = roll(SALT, FRIDAY, "web")
LOW, HIGH = int(ROLL * 1e6) / 1e6, int(ROLL * 1e6 + 1) / 1e6
"""Probabilities to the left and to the right of the day's roll of ``web``."""

DUE = due_at(SALT, FRIDAY, "web", facts().calendar)

ALARMED = {"stop_alarms": ["errors", "latency"]}
FREEZE = [{"from": "2026-11-19", "to": "2026-11-21", "reason": "the great sale"}]


CHANGES = {"chosen": settings(calendars=calendars(change_calendar="prod"))}
NOON, EVENING = at("12:00"), at("18:00")

ONLY_TICKS = frozenset({change_calendar_closed, refreshing, stop_alarm, not_yet, inside, too_late})
"""The guards of which only a decision tells: they cost calls for each unit, or are secret until then."""


@dataclass(frozen=True)
class Case:
    """What one guard refuses, with its words; and the nearest thing it lets pass."""

    guard: Guard
    reason: str
    detail: str
    refused: dict[str, Any]
    passed: dict[str, Any] = field(default_factory=dict)


def members(**changes: Any) -> dict[str, Any]:
    return {"groups": (group(**changes),)}


def ill(count: int, total: int, **changes: Any) -> tuple[Any, ...]:
    """``total`` instances, the first ``count`` of them not as they should be."""
    return tuple(instance(n, **(changes if n < count else {})) for n in range(total))


def behind_two(new: tuple[int, ...], old: tuple[int, ...], desired: int = 3) -> dict[str, Any]:
    """Three instances behind two load balancers: which of them are healthy there."""
    seen = members(instances=ill(0, total=3), desired=desired, target_groups=("new",), load_balancers=("old",))
    here = {name: frozenset(instance(n).instance_id for n in which) for name, which in (("new", new), ("old", old))}
    return {**seen, "balanced": here}


CONSENTING = {"tags": {"troop:inside": "yes"}, "propagated": frozenset({"troop:inside"})}
ALL_THREE = [instance(n).instance_id for n in range(3)]
FIT = Inside(dict.fromkeys(ALL_THREE, "yes"), reachable=frozenset(ALL_THREE))


def lasting(method: str = "cpu", **changes: Any) -> dict[str, Any]:
    """A unit on which nothing prevents a lasting fault: ``crash, cpu`` has the choice cpu on :data:`FRIDAY`."""
    allowed = {"chosen": settings(inside_instances=True), "item": {"method": method}, "inside": FIT}
    return {**allowed, **members(**CONSENTING), **changes}


INSTALLING = members(tags={"troop:inside": "install"}, propagated=frozenset({"troop:inside"}))
OFF = "cpu acts inside an instance, but troop:inside_instances is false"


CHANGES_INSIDE: dict[str, Any] = {
    "chosen": settings(inside_instances=True, calendars=calendars(change_calendar="prod"))
}

CASES: list[Case] = [
    Case(
        protected,
        "protected",
        "web is tagged troop:protected",
        members(tags={"troop:protected": "false"}),
        members(tags={"protected": "true"}),
    ),
    Case(protected, "protected", "web belongs to one of Troop's own fleets", members(tags={"troop:fleet": "run-1"})),
    Case(
        protected,
        "protected",
        "web belongs to one of Troop's own fleets",
        members(tags={"troop:fleet": "servers", "troop:run": "run-1"}),
        members(tags={"troop:run": "run-1"}),
    ),
    Case(
        malformed,
        "malformed",
        "attribute probability is '2': must be a number from 0 to 1; "
        "attribute reson is unknown: must be spelled reason",
        {"item": {"probability": 2, "reson": "x"}},
        {"item": {"probability": 1, "reason": "x"}},
    ),
    Case(halted, "halted", "chaos is halted by the switch", {"switch": Switch(halted=True, leashed=False)}),
    Case(
        halted,
        "halted",
        "the deployment halted itself at 2026-11-20T20:00:00Z: 3 causes broke units within an hour: web (recovery)",
        {"switch": Switch(True, False, SelfHalt(at("12:00"), "3 causes broke units within an hour: web (recovery)"))},
    ),
    Case(
        calendar_closed,
        "outside-window",
        "15:05 is outside 09:00 to 15:00 America/Los_Angeles",
        {"now": at("15:05")},
        {"now": at("14:59")},
    ),
    Case(
        calendar_closed,
        "weekend",
        "Saturday is not a working day of calendar default",
        {"now": at("14:45", date(2026, 11, 21))},
    ),
    Case(
        calendar_closed,
        "holiday",
        "Thanksgiving Day",
        {"now": at("14:45", date(2026, 11, 26))},
        {"now": at("14:45", date(2026, 11, 27))},
    ),
    Case(
        calendar_closed,
        "freeze",
        "the great sale",
        {"chosen": settings(calendars=calendars(freezes=FREEZE))},
        {"chosen": settings(calendars=calendars(freezes=FREEZE)), "now": at("14:45", date(2026, 11, 18))},
    ),
    Case(
        change_calendar_closed,
        "change-calendar",
        "SSM Change Calendar prod is closed until 2026-11-21T02:00:00Z",
        {**CHANGES, "change": ChangePeriod("prod", NOON, EVENING, is_open=False)},
        {**CHANGES, "change": ChangePeriod("prod", NOON, EVENING, is_open=True)},
    ),
    Case(
        change_calendar_closed,
        "change-calendar",
        "SSM Change Calendar prod cannot be read: InvalidDocument",
        {**CHANGES, "change": ChangePeriod("prod", NOON, None, is_open=False, unread="InvalidDocument")},
        {"change": ChangePeriod("prod", NOON, None, is_open=False, unread="InvalidDocument")},
    ),
    Case(
        change_calendar_closed,
        "change-calendar",
        "SSM Change Calendar prod has not been read",
        {**CHANGES, "change": None},
    ),
    Case(
        opted_out,
        "opted-out",
        "opted out by item until 2026-11-20: a migration",
        {"item": {"opt_out": True, "until": "2026-11-20", "reason": "a migration"}},
        {"item": {"opt_out": True, "until": "2026-11-19", "reason": "a migration"}},
    ),
    Case(
        opted_out,
        "opted-out",
        "opted out by tag of web",
        members(tags={"troop:opt_out": "true"}),
        members(tags={"troop:opt_out": "false"}),
    ),
    Case(
        opted_out,
        "not-opted-in",
        "this deployment is opt-in and the unit has not opted in",
        {"chosen": settings(participation="opt-in")},
        {"chosen": settings(participation="opt-in"), "item": {"opt_in": True}},
    ),
    Case(
        left_chaos,
        "unrecovered",
        "did not recover from its hit of 2026-11-02: return it to chaos when it is healthy",
        {"state": UnitState(unrecovered="2026-11-02#web")},
        {"state": UnitState(last_day=date(2026, 11, 2))},
    ),
    Case(
        left_chaos,
        "broken",
        "broken by its hit of 2026-11-02: return it to chaos when the cause is known",
        {"state": UnitState(unrecovered="2026-11-02#web", left_for="broken")},
        {"state": UnitState(last_day=date(2026, 11, 2))},
    ),
    Case(
        operated,
        "operated",
        "web is operated by eks.amazonaws.com: only this service may change it",
        members(operator="eks.amazonaws.com"),
        members(operator=""),
    ),
    Case(not_allowed_inside, "inside", OFF, {"item": {"method": "cpu, memory"}}, lasting()),
    Case(
        not_allowed_inside,
        "inside",
        "web has no tag troop:inside: its owner has not consented to faults inside its instances",
        lasting(**members()),
        lasting(**INSTALLING),
    ),
    Case(
        not_allowed_inside,
        "inside",
        "web does not propagate its tag troop:inside to its instances",
        lasting(**members(tags={"troop:inside": "yes"}, propagated=frozenset({"Name"}))),
        lasting("shutdown", **members(tags={"troop:inside": "yes"}, propagated=frozenset({"Name"}))),
    ),
    Case(
        suspended,
        "suspended",
        "web has suspended HealthCheck, Launch",
        members(suspended_processes=frozenset({"Launch", "HealthCheck", "AZRebalance"})),
        members(suspended_processes=frozenset({"AZRebalance", "ScheduledActions", "AlarmNotification"})),
    ),
    Case(
        refreshing,
        "refreshing",
        "web has an instance refresh under way",
        {"refreshing": frozenset({"web"})},
        {"refreshing": frozenset({"another"})},
    ),
    Case(too_small, "too-small", "web has 1 instance, fewer than min_healthy 2", members(size=1), members(size=2)),
    Case(too_small, "too-small", "web wants no instances", members(desired=0)),
    Case(
        too_small,
        "too-small",
        "web has 4 instances, fewer than min_healthy 5",
        {**members(size=4), "item": {"min_healthy": 5}},
        {**members(size=5), "item": {"min_healthy": 5}},
    ),
    Case(
        unhealthy,
        "unhealthy",
        "web has 1 healthy instance in service, fewer than min_healthy 2",
        members(instances=ill(2, total=3, health="Unhealthy"), desired=1),
        members(instances=ill(1, total=3, health="Unhealthy"), desired=2),
    ),
    Case(
        unhealthy,
        "unhealthy",
        "web has 1 healthy instance in service, fewer than min_healthy 2",
        members(instances=ill(2, total=3, lifecycle="Terminating:Wait"), desired=1),
    ),
    Case(
        unhealthy,
        "unhealthy",
        "web has a capacity of 2 in service, desired 3",
        members(instances=ill(1, total=3, lifecycle="Pending"), desired=3),
    ),
    Case(
        unhealthy,
        "unhealthy",
        "web has a capacity of 8 in service, desired 10",
        members(instances=tuple(instance(n, weight=4) for n in range(2)), desired=10),
        members(instances=tuple(instance(n, weight=4) for n in range(3)), desired=10),
    ),
    Case(
        unhealthy,
        "unhealthy",
        "web has a capacity of 2 in service and healthy in all its traffic sources, desired 3",
        behind_two(new=(0, 1, 2), old=(1, 2)),
        behind_two(new=(0, 1, 2), old=(0, 1, 2)),
    ),
    Case(
        unhealthy,
        "unhealthy",
        "web has 1 healthy instance in service and healthy in all its traffic sources, fewer than min_healthy 2",
        behind_two(new=(0, 1), old=(1, 2), desired=1),
        behind_two(new=(0, 1), old=(0, 1, 2), desired=2),
    ),
    Case(
        only_protected_instances,
        "protected-instances",
        "web has only protected instances in service",
        members(instances=ill(3, total=3, scale_in_protected=True)),
        members(instances=ill(2, total=3, scale_in_protected=True)),
    ),
    Case(
        only_protected_instances,
        "protected-instances",
        "web has only protected instances in service",
        {"protected_instances": frozenset(instance(n).instance_id for n in range(3))},
        {"protected_instances": frozenset(instance(n).instance_id for n in range(2))},
    ),
    Case(inside, "inside", OFF, {"item": {"method": "crash, cpu"}}, {"item": {"method": "crash, shutdown"}}),
    Case(
        inside,
        "inside",
        "web has no tag troop:inside: its owner has not consented to faults inside its instances",
        lasting("crash, cpu", **members()),
        lasting("crash, cpu"),
    ),
    Case(
        inside,
        "inside",
        "web has no instance with the tag troop:inside: the group's tag reaches new instances only",
        lasting(inside=Inside()),
        lasting(inside=replace(FIT, consents={ALL_THREE[2]: "install"})),
    ),
    Case(
        inside,
        "inside",
        "web has only instances that have had a fault inside before",
        lasting(inside=replace(FIT, hits=dict.fromkeys(ALL_THREE, "2026-11-02#web"))),
        lasting(inside=replace(FIT, hits=dict.fromkeys(ALL_THREE[1:], "2026-11-02#web"))),
    ),
    Case(
        inside,
        "inside",
        "web has only instances that have had a fault inside before",
        lasting(inside=replace(FIT, hits={ALL_THREE[0]: "x"}), protected_instances=frozenset(ALL_THREE[1:])),
        lasting(inside=replace(FIT, hits={ALL_THREE[0]: "x"}), protected_instances=frozenset(ALL_THREE[:2])),
    ),
    Case(
        inside,
        "inside",
        "web has no instance with Linux that is online in Systems Manager",
        lasting(inside=replace(FIT, hits={ALL_THREE[0]: "x"}, reachable=frozenset(ALL_THREE[:1]))),
        lasting(inside=replace(FIT, reachable=None)),  # not read yet
    ),
    Case(
        inside,
        "inside",
        "Systems Manager could not be asked for its instances: ClientError: no",
        lasting(inside=replace(FIT, unread="ClientError: no")),
        lasting("crash", inside=replace(FIT, unread="ClientError: no")),
    ),
    Case(
        stop_alarm,
        "stop-alarm",
        "stop alarm latency is ALARM",
        {"item": ALARMED, "alarms": {"errors": "OK", "latency": "ALARM"}},
        {"item": ALARMED, "alarms": {"errors": "OK", "latency": "OK", "another": "ALARM"}},
    ),
    Case(
        stop_alarm,
        "stop-alarm",
        "stop alarm errors is INSUFFICIENT_DATA",
        {"item": ALARMED, "alarms": {"errors": "INSUFFICIENT_DATA", "latency": "OK"}},
    ),
    Case(
        stop_alarm,
        "stop-alarm",
        "success alarm orders is ALARM",
        {"item": {"success_alarms": ["orders"]}, "alarms": {"orders": "ALARM"}},
        {"item": {"success_alarms": ["orders"]}, "alarms": {"orders": "OK"}},
    ),
    Case(
        stop_alarm,
        "stop-alarm",
        "success alarm orders is INSUFFICIENT_DATA",
        {
            "item": ALARMED | {"success_alarms": ["orders"]},
            "alarms": dict.fromkeys(ALARMED["stop_alarms"], "OK") | {"orders": "INSUFFICIENT_DATA"},
        },
    ),
    Case(
        stop_alarm,
        "stop-alarm",
        "stop alarm latency is unknown: there is no such alarm",
        {"item": ALARMED, "alarms": {"errors": "OK"}},
    ),
    Case(
        too_soon,
        "too-soon",
        "last on 2026-11-18, 2 business days ago; min_days_between 3",
        {"item": {"min_days_between": 3}, "state": UnitState(last_day=date(2026, 11, 18))},
        {"item": {"min_days_between": 3}, "state": UnitState(last_day=date(2026, 11, 17))},
    ),
    Case(
        too_soon,
        "too-soon",
        "last on 2026-11-19, 1 business day ago; min_days_between 2",
        {"item": {"min_days_between": 2}, "state": UnitState(last_day=date(2026, 11, 19))},
        {"item": {"min_days_between": 1}, "state": UnitState(last_day=date(2026, 11, 19))},
    ),
    Case(
        not_rolled,
        "not-rolled",
        f"{ROLL:.4f} >= probability {LOW:g}",
        {"item": {"probability": LOW}},
        {"item": {"probability": HIGH}},
    ),
    Case(not_rolled, "not-rolled", f"{ROLL:.4f} >= probability 0", {"item": {"probability": 0}}),
    Case(not_yet, "not-yet", "rolled for a minute later than 09:00, before 14:45", {"now": at("09:00")}, {"now": DUE}),
    Case(
        already_today,
        "already-today",
        "has had its hit of 2026-11-20",
        {"state": UnitState(last_day=FRIDAY)},
        {"state": UnitState(last_day=date(2026, 11, 19))},
    ),
    Case(
        already_today,
        "already-today",
        "has had its hit of 2026-11-21",
        {"state": UnitState(last_day=date(2026, 11, 21)), "item": {"min_days_between": 3}},
    ),
    Case(
        already_today,
        "already-today",
        "had its claim of 2026-11-20, which was abandoned: chaos was leashed",
        {"state": UnitState(last_day=date(2026, 11, 19), abandoned=AbandonedClaim(FRIDAY, "x", "chaos was leashed"))},
        {"state": UnitState(abandoned=AbandonedClaim(date(2026, 11, 19), "x", "chaos was leashed"))},
    ),
    Case(
        too_late,
        "outside-window",
        "cpu and the proof of its end take 8 minutes: the window closes too soon",
        lasting(now=at("14:52:20")),
        lasting(now=at("14:52:19")),
    ),
    Case(
        too_late,
        "outside-window",
        "cpu and the proof of its end take 13 minutes: the window closes too soon",
        lasting(now=at("14:47:20"), **INSTALLING),
        lasting("cpu seconds=10", now=at("14:47:20"), **INSTALLING),
    ),
    Case(
        too_late,
        "outside-window",
        "cpu and the proof of its end take 8 minutes: the window closes too soon",
        lasting(**CHANGES_INSIDE, change=ChangePeriod("prod", NOON, at("14:52"), is_open=True)),
        lasting("crash", **CHANGES_INSIDE, change=ChangePeriod("prod", NOON, at("14:52"), is_open=True)),
    ),
    Case(
        day_cap,
        "day-cap",
        "20 hits on 2026-11-20, max_per_day 20",
        {"counts": Counts({FRIDAY: 20})},
        {"counts": Counts({FRIDAY: 19, date(2026, 11, 19): 99})},
    ),
    Case(
        in_flight,
        "in-flight",
        "5 hits in flight, max_in_flight 5",
        {"counts": Counts(in_flight=5)},
        {"counts": Counts(in_flight=4)},
    ),
    Case(leashed, "leashed", "due, but the deployment is leashed", {"switch": Switch(halted=False, leashed=True)}),
]
