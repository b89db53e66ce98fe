"""Hypothesis looks for an account in which a tick would break a rule that must never be broken.

The rules are said here a second time, from the raw values and by other means than the core's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from fnmatch import fnmatchcase
from typing import Any
from zoneinfo import ZoneInfo

import holidays
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.unit.chaos.build import SALT, SUN_TO_THU, account, calendars, raw_calendar, settings
from troop.chaos.decisions import TERMINATE, Decision, decide_all
from troop.chaos.facts import AbandonedClaim, Account, Counts, Switch, UnitState, facts_of_units
from troop.chaos.groups import Group, Instance
from troop.chaos.inside import Inside
from troop.shared.settings import Settings

FREEZE = (date(2026, 11, 23), date(2026, 11, 25))
RAW_CALENDARS = {
    **calendars(freezes=[{"from": str(FREEZE[0]), "to": str(FREEZE[1]), "reason": "sales"}]),
    "il": raw_calendar(time_zone="Asia/Jerusalem", country="IL", weekdays=SUN_TO_THU, open="09:30", close="16:45"),
    "night": raw_calendar(
        time_zone="Europe/Vienna",
        country="AT",
        weekdays=["SAT", "SUN", "MON"],
        open="00:30",
        close="24:00",
        extra_dates=[{"date": "2026-10-24", "name": "a party"}],
    ),
}
PATTERNS = {"web-*": "web"}

# ------------------------------------------------------------------ accounts: mostly well, each ailment now and then


def often(usual: Any, *rare: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from([usual] * (8 * len(rare)) + list(rare))


AILMENTS: list[dict[str, Any]] = [
    {"lifecycle": "Pending"},
    {"lifecycle": "Standby"},
    {"lifecycle": "Terminating:Wait"},
    {"health": "Unhealthy"},
    {"scale_in_protected": True},
    {"weight": 4},
]
TAGS = [
    *({"troop:opt_out": value} for value in ("true", "false", "maybe")),
    *({"troop:opt_in": value} for value in ("true", "true", "false")),
    *({"troop:until": value} for value in ("2026-10-25", "2026-11-24", "2027-01-01", "soon")),
    *({"troop:probability": value} for value in ("0", "0.5", "2")),
    *({"troop:min_healthy": value} for value in ("1", "3", "0")),
    {"troop:min_days_between": "3"},
    *({"troop:calendar": value} for value in ("il", "night", "moon")),
    *({"troop:protected": value} for value in ("", "false")),
    {"troop:fleet": "run-1"},
    *({"troop:unit": value} for value in ("web", "db")),
    {"troop:opt_out": "true", "troop:opt_in": "true"},
    {"troop:opt_out": "true", "troop:until": "2026-10-25"},
    {"troop:opt_in": "true", "troop:calendar": "il"},
]
METHODS = [
    *({"troop:method": value} for value in ("drain", "crash, cpu", "cpu")),
    *({"troop:method": "cpu", "troop:inside": value} for value in ("yes", "yes", "install")),
    *({"troop:method": f"latency seconds={value}", "troop:inside": "yes"} for value in (10, 900, 900)),
    *({"troop:method": "crash, shutdown, io seconds=600", "troop:inside": "install"} for _ in range(3)),
]
ITEMS = [
    {key.removeprefix("troop:"): value for key, value in tags.items()} for tags in TAGS if "troop:unit" not in tags
]
ITEMS = [item for item in ITEMS if not {"protected", "fleet"} & set(item)]
UNITS = ("web", "db", "batch")


@st.composite
def groups(draw: st.DrawFn, name: str, first: int, methods: dict[str, str]) -> Group:
    ailments = draw(st.lists(often({}, *AILMENTS), min_size=1, max_size=4))
    instances = tuple(Instance(f"i-{first + n:017x}", **ailment) for n, ailment in enumerate(ailments))
    serving = sum(i.weight for i in instances if (i.lifecycle, i.health) == ("InService", "Healthy"))
    tags = draw(st.sampled_from([{}] * 20 + TAGS)) | methods | draw(often({}, *METHODS))
    return Group(
        name=name,
        desired=serving + draw(often(0, 1)) if draw(often(True, False)) else 0,
        instances=instances,
        tags=tags,
        propagated=frozenset(tags) if draw(often(True, False)) else frozenset(),
        suspended_processes=draw(often(frozenset(), frozenset({"Launch"}), frozenset({"AZRebalance"}))),
    )


@st.composite
def known_inside(draw: st.DrawFn, members: list[Group]) -> Inside:
    """Most instances have their group's tag, are known to Systems Manager, and had no fault before."""
    all_ids = [instance.instance_id for group in members for instance in group.instances]
    consents = {
        instance.instance_id: group.tags["troop:inside"]
        for group in members
        for instance in group.instances
        if group.tags.get("troop:inside") in ("yes", "install") and draw(often(True, False))
    }
    hits = {one: "2026-10-02#x" for one in all_ids if draw(often(False, True))}
    reachable = draw(often(None, frozenset(all_ids), frozenset(all_ids[1:])))
    return Inside(consents, hits, reachable, draw(often("", "ClientError: no")))


DAYS = [date(2026, 10, 20) + timedelta(days=n) for n in range(80)]
"""Both clock changes of autumn, a freeze, holidays of three countries and a year's end."""
TIMES = [time(hour, minute) for hour in (*range(24), *[22] * 60) for minute in (0, 14, 29, 44, 59)]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Account, Settings, datetime]:
    names = draw(st.sampled_from([("web-1",), ("db",), ("web-1", "web-2"), ("web-1", "db"), ("web-1", "db", "batch")]))
    methods = draw(st.sampled_from([{}] * 8 + METHODS))  # of all groups: members without a common one are malformed
    members = [draw(groups(name, 10 * n, methods)) for n, name in enumerate(names)]
    now = datetime.combine(draw(st.sampled_from(DAYS)), draw(st.sampled_from(TIMES)), UTC)
    passed = draw(often(None, -1, 0, 1, 2, 5))
    last = None if passed is None else now.date() - timedelta(days=passed)
    spent = None if last is None else AbandonedClaim(last, "x", "chaos was leashed")
    abandoned = draw(often(None, spent))
    state = UnitState(None if abandoned else last, draw(often(None, "2026-10-01#x")), abandoned=abandoned)
    read = account(
        *members,
        inside=draw(known_inside(members)),
        items={draw(st.sampled_from(UNITS)): draw(st.sampled_from([{}] * 20 + ITEMS))},
        states={draw(st.sampled_from(UNITS)): state},
        switch=draw(often(Switch(False, False), Switch(True, False), Switch(False, True))),
        counts=Counts({now.date(): draw(often(0, 1, 3, 4))}, draw(often(0, 2, 4))),
        protected_instances=frozenset(draw(often((), (members[0].instances[0].instance_id,)))),
    )
    chosen = OPT_IN if draw(often(False, True)) else OPT_OUT
    return read, replace(chosen, inside_instances=draw(often(True, False))), now


OPT_OUT = settings(
    units=PATTERNS,
    calendars=RAW_CALENDARS,
    max_per_day=4,
    max_in_flight=3,
    min_healthy=2,
    lowest_min_healthy=2,
    inside_instances=True,
)
OPT_IN = replace(OPT_OUT, participation="opt-in")


# ------------------------------------------------------------------ the rules, from the raw values


HOLIDAYS = {code: holidays.country_holidays(code, years=[2026, 2027]) for code in ("US", "AT", "IL")}


def open_by_the_wall(calendar: str, now: datetime) -> bool:
    raw = RAW_CALENDARS[calendar]
    wall = now.astimezone(ZoneInfo(raw["time_zone"]))
    day, clock = wall.date(), f"{wall:%H:%M}"
    return (
        wall.strftime("%a").upper() in raw["weekdays"]
        and raw["open"] <= clock < raw["close"]
        and day not in HOLIDAYS[raw["country"]]
        and str(day) not in [extra["date"] for extra in raw["extra_dates"]]
        and not any(f["from"] <= str(day) <= f["to"] for f in raw["freezes"])
    )


def raw_policies(unit: str, members: list[Group], read: Account) -> list[dict[str, str]]:
    """What each member is told, the item's word over the tags'."""
    return [{k.removeprefix("troop:"): v for k, v in g.tags.items()} | dict(read.items.get(unit, {})) for g in members]


def unit_by_hand(group: Group) -> str:
    by_pattern = next((unit for glob, unit in PATTERNS.items() if fnmatchcase(group.name, glob)), group.name)
    return group.tags.get("troop:unit", by_pattern)


def check(decision: Decision, read: Account, chosen: Settings, now: datetime) -> None:
    """Every rule that a termination could break."""
    assert decision.target
    group, instance = decision.target.group, decision.target.instance
    members = [g for g in read.groups if unit_by_hand(g) == decision.unit]
    policies = raw_policies(decision.unit, members, read)
    state = read.states.get(decision.unit, UnitState())
    calendar = policies[0].get("calendar", "default")

    assert group in members
    assert instance in group.instances
    assert not {"troop:protected", "troop:fleet"} & set(group.tags)
    assert instance.instance_id not in read.protected_instances
    assert not instance.scale_in_protected
    assert (instance.lifecycle, instance.health) == ("InService", "Healthy")

    assert not any("maybe" in t.values() or "soon" in t.values() for t in policies)
    assert not any(t.get("probability") in ("0", "2") or t.get("min_healthy") == "0" for t in policies)
    assert {t.get("calendar", "default") for t in policies} == {calendar}
    assert open_by_the_wall(calendar, now)

    assert read.switch == Switch(halted=False, leashed=False)
    assert not opted_out(read.items.get(decision.unit, {}), members, chosen.participation, decision.day)
    assert state.unrecovered is None
    assert state.last_day is None or (decision.day and state.last_day < decision.day)
    assert state.abandoned is None or (decision.day and state.abandoned.day < decision.day)

    serving = [i for i in group.instances if i.lifecycle == "InService" and i.health == "Healthy"]
    assert len(serving) >= max(2, *(int(t.get("min_healthy", "2")) for t in policies))
    assert sum(i.weight for i in serving) >= group.desired > 0
    assert "Launch" not in group.suspended_processes

    methods = [t.get("method", "crash") for t in policies]
    assert decision.choice
    assert all(decision.choice.text in method.split(", ") for method in methods)
    if decision.choice.name in ("crash", "shutdown", "drain"):
        return
    assert chosen.inside_instances
    assert group.tags["troop:inside"] in ("yes", "install")
    assert "troop:inside" in group.propagated
    assert instance.instance_id in read.inside.consents
    assert instance.instance_id not in read.inside.hits
    assert read.inside.reachable is None or instance.instance_id in read.inside.reachable
    assert not read.inside.unread
    seconds = int(dict(decision.choice.parameters).get("seconds", "300"))
    # An hour of the night on which the clocks change is there twice, or not at all.
    assert open_by_the_wall(calendar, now + timedelta(seconds=seconds + 120 - 1))


def opted_out(item: Mapping[str, Any], members: list[Group], participation: str, day: date | None) -> bool:
    def in_force(says: Mapping[str, Any]) -> bool:
        last = says.get("until")
        return says.get("opt_out", "true" if last else "false") == "true" and (last is None or str(day) <= last)

    if in_force(item) or item.get("opt_in") == "false":
        return True
    if "opt_in" in item:
        return False
    for member in members:
        tags = {k.removeprefix("troop:"): v for k, v in member.tags.items()}
        if in_force(tags) and item.get("opt_out") != "false":
            return True
        if tags.get("opt_in", "true" if participation == "opt-out" else "false") == "false":
            return True
    return False


def decided(world: tuple[Account, Settings, datetime]) -> list[Decision]:
    read, chosen, now = world
    return decide_all(list(facts_of_units(read, chosen, SALT, now)))


@pytest.mark.slow
def test_no_termination_breaks_a_rule() -> None:
    seen: Counter[str] = Counter()

    @hypothesis_settings(max_examples=500)
    @given(worlds())
    def search(world: tuple[Account, Settings, datetime]) -> None:
        read, chosen, now = world
        decisions = decided(world)
        seen.update(d.reason for d in decisions)
        terminated = [d for d in decisions if d.reason == TERMINATE]
        for decision in terminated:
            check(decision, read, chosen, now)
            seen["lasting"] += bool(decision.choice and decision.choice.lasting)
        assert len(terminated) <= max(0, 3 - read.counts.in_flight)
        per_day = Counter(d.day for d in terminated)
        assert all(n <= max(0, 4 - read.counts.by_day.get(d or date.min, 0)) for d, n in per_day.items())
        assert all(d.target is None for d in decisions if d.reason not in (TERMINATE, "leashed"))

    search()
    assert seen[TERMINATE] >= 30, f"the search has hardly met a termination: {seen}"
    assert seen["lasting"] >= 3, f"the search has hardly met a lasting fault: {seen}"
    assert seen["inside"] >= 3, f"the search has hardly met a lasting fault that may not be: {seen}"
    assert len(seen) >= 16, f"the search has met few reasons: {seen}"


@given(worlds())
def test_leash_and_halt_stop_what_would_else_be_terminated(world: tuple[Account, Settings, datetime]) -> None:
    read, chosen, now = world
    for switch in (Switch(False, True), Switch(True, False), Switch(True, True)):
        decisions = decided((replace(read, switch=switch), chosen, now))
        assert TERMINATE not in {d.reason for d in decisions}
        assert not switch.halted or all(d.target is None for d in decisions)


@given(worlds())
def test_deciding_again_says_the_same(world: tuple[Account, Settings, datetime]) -> None:
    assert decided(world) == decided(world)


@given(worlds(), st.sampled_from(UNITS))
def test_opt_out_removes_its_unit_and_overrides_no_guard_of_another(
    world: tuple[Account, Settings, datetime], unit: str
) -> None:
    read, chosen, now = world
    before = {d.unit: d for d in decided(world)}
    after = {d.unit: d for d in decided((replace(read, items={**read.items, unit: {"opt_out": True}}), chosen, now))}
    for name, decision in after.items():
        if name == unit:
            assert decision.reason != TERMINATE
        elif any(group.name == unit and unit_by_hand(group) == name for group in read.groups):
            assert decision.reason != TERMINATE  # the item's key is the name of one of its groups
        elif decision.reason == TERMINATE:
            assert before[name].reason in (TERMINATE, "day-cap", "in-flight")
        else:
            assert decision.reason == before[name].reason or "cap" in before[name].reason + decision.reason
