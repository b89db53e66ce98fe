"""The state of a unit, and when it can be hit next: window, holidays, freezes, opt-outs, distances; never the roll."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.chaos.build import FRIDAY, at, calendars, facts, group, raw_calendar, settings, tagged
from tests.unit.chaos.guard_cases import CASES, ONLY_TICKS, Case
from tests.unit.chaos.test_rules_hold import worlds
from troop.chaos.facts import AbandonedClaim, Account, Counts, Switch, UnitState, facts_of_units
from troop.chaos.groups import Group
from troop.chaos.guards import (
    REASONS,
    SCHEDULED,
    Refusal,
    already_today,
    calendar_closed,
    not_rolled,
    opted_out,
    pass_guards,
    too_late,
    too_soon,
)
from troop.chaos.outlook import HORIZON, LASTING, TAKING_PART, Outlook, next_possible, outlook, policy_at
from troop.shared.settings import Settings

START = datetime(2026, 1, 1, tzinfo=UTC)
MONDAY, TUESDAY, WEDNESDAY = (FRIDAY + timedelta(days=n) for n in (3, 4, 5))
AFTER_THANKSGIVING = date(2026, 11, 27)
FROZEN = calendars(freezes=[{"from": "2026-11-20", "to": "2026-11-23", "reason": "release"}])
FOR_EVER = calendars(freezes=[{"from": "2026-11-20", "to": "2099-12-31", "reason": "no more"}])
SUNDAYS = {"default": raw_calendar(weekdays=["SUN"], country=None)}


def _next(
    now: datetime, item: dict[str, Any] | None = None, chosen: Settings | None = None, **state: Any
) -> datetime | None:
    return _next_of([group()], item or {}, chosen or settings(), UnitState(**state), now)


def _next_of(
    groups: list[Group], item: dict[str, Any], chosen: Settings, state: UnitState, now: datetime
) -> datetime | None:
    return next_possible(policy_at(groups, item, chosen, now), groups, item, chosen, state, now)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (at("00:00"), at("09:00")),
        (at("08:59:59"), at("09:00")),
        (at("09:00"), at("09:00")),
        (at("12:34:56"), at("12:34:56")),
        (at("14:59:59"), at("14:59:59")),
        (at("15:00"), at("09:00", MONDAY)),
        (at("12:00", FRIDAY + timedelta(days=1)), at("09:00", MONDAY)),
        (at("16:00", WEDNESDAY), at("09:00", AFTER_THANKSGIVING)),
    ],
)
def test_the_window_of_the_next_business_day(now: datetime, expected: datetime) -> None:
    assert _next(now) == expected


@pytest.mark.parametrize(
    ("item", "state", "expected"),
    [
        ({}, {"last_day": FRIDAY}, at("09:00", MONDAY)),
        ({}, {"last_day": FRIDAY - timedelta(days=1)}, at("12:00")),
        ({}, {"abandoned": AbandonedClaim(FRIDAY, "x", "")}, at("09:00", MONDAY)),
        ({}, {"abandoned": AbandonedClaim(FRIDAY - timedelta(days=1), "x", "")}, at("12:00")),
        ({"min_days_between": 2}, {"abandoned": AbandonedClaim(FRIDAY, "x", "")}, at("09:00", MONDAY)),
        ({"min_days_between": 1}, {"last_day": FRIDAY - timedelta(days=1)}, at("12:00")),
        ({"min_days_between": 2}, {"last_day": FRIDAY - timedelta(days=1)}, at("09:00", MONDAY)),
        ({"min_days_between": 5}, {"last_day": FRIDAY}, at("09:00", date(2026, 11, 30))),
        ({"min_days_between": 5}, {"last_day": date(1999, 1, 1)}, at("12:00")),
        ({"min_days_between": 5}, {}, at("12:00")),
        ({"opt_out": True, "until": "2026-11-23"}, {}, at("09:00", TUESDAY)),
        ({"until": "2026-11-20"}, {}, at("09:00", MONDAY)),
        ({"until": "2026-11-19"}, {}, at("12:00")),
        ({"until": "2026-11-25", "min_days_between": 1}, {"last_day": FRIDAY}, at("09:00", AFTER_THANKSGIVING)),
    ],
)
def test_distance_and_opt_outs_that_end(item: dict[str, Any], state: dict[str, Any], expected: datetime) -> None:
    assert _next(at("12:00"), item, **state) == expected


@pytest.mark.parametrize(
    ("item", "state", "chosen"),
    [
        ({"opt_out": True}, {}, settings()),
        ({"opt_out": True, "until": "9999-12-31"}, {}, settings()),
        ({}, {}, settings(participation="opt-in")),
        ({"probability": 0}, {}, settings()),
        ({"probability": "often"}, {}, settings()),
        ({"calendar": "moon"}, {}, settings()),
        ({}, {"unrecovered": "2026-11-19#web"}, settings()),
        ({}, {}, settings(calendars=FOR_EVER)),
        ({}, {"last_day": date(9999, 12, 30)}, settings()),
        ({"min_days_between": 3}, {"last_day": date(9999, 12, 30)}, settings()),
    ],
)
def test_never_without_somebodys_doing(item: dict[str, Any], state: dict[str, Any], chosen: Settings) -> None:
    assert _next(at("12:00"), item, chosen, **state) is None


def test_a_freeze_is_waited_for() -> None:
    assert _next(at("12:00"), chosen=settings(calendars=FROZEN)) == at("09:00", TUESDAY)


def test_item_opt_out_can_end_inside_a_longer_one_of_the_tags() -> None:
    groups = [tagged(until="2026-11-24")]
    item = {"until": "2026-11-23"}
    assert _next_of(groups, item, settings(), UnitState(), at("12:00")) == at("09:00", WEDNESDAY)
    forever = [tagged(opt_out="true")]
    assert _next_of(forever, item, settings(), UnitState(), at("12:00")) is None


def test_a_unit_without_groups_goes_by_its_item() -> None:
    assert _next_of([], {"until": "2026-11-20"}, settings(), UnitState(), at("12:00")) == at("09:00", MONDAY)


def test_the_longest_distance_on_the_rarest_calendar_is_within_the_horizon() -> None:
    earliest = _next(at("12:00"), {"min_days_between": 250}, settings(calendars=SUNDAYS), last_day=date(2026, 11, 15))
    assert earliest == at("09:00", date(2026, 11, 15) + timedelta(weeks=250))
    assert earliest - at("12:00") < HORIZON


def test_next_moment_reveals_nothing_of_the_roll() -> None:
    """The same for units that rolled low, high, early and late."""
    moments = {_next_of([group(f"g{n}")], {}, settings(), UnitState(), at("10:00")) for n in range(50)}
    assert moments == {at("10:00")}


@given(
    now=st.integers(0, 2 * 365 * 24 * 3600).map(lambda seconds: START + timedelta(seconds=seconds)),
    ago=st.one_of(st.none(), st.integers(0, 40)),
    distance=st.integers(0, 20),
    until=st.one_of(st.none(), st.integers(-3, 30)),
    zone=st.sampled_from(["America/Los_Angeles", "Europe/Vienna", "Pacific/Auckland", "Africa/Casablanca"]),
    hours=st.sampled_from([("09:00", "15:00"), ("00:00", "24:00"), ("01:30", "03:00")]),
)
def test_no_guard_of_the_calendar_or_the_policy_refuses_then_and_one_does_before(
    now: datetime, ago: int | None, distance: int, until: int | None, zone: str, hours: tuple[str, str]
) -> None:
    chosen = settings(calendars=calendars(time_zone=zone, open=hours[0], close=hours[1]))
    today = chosen.calendars["default"].at(now).day
    item: dict[str, Any] = {"min_days_between": distance}
    if until is not None:
        item["until"] = (today + timedelta(days=until)).isoformat()
    state = UnitState(last_day=None if ago is None else today - timedelta(days=ago))
    earliest = _next_of([group()], item, chosen, state, now)
    assert earliest is not None
    assert earliest >= now

    def refused(moment: datetime) -> list[str]:
        looked = facts(item=item, chosen=chosen, now=moment, state=state)
        verdicts = [guard(looked) for guard in (calendar_closed, opted_out, too_soon, already_today)]
        return [v.reason for v in verdicts if isinstance(v, Refusal)]

    assert refused(earliest) == []
    moment = now
    while moment < earliest:  # every hour, and the last minute before
        assert refused(moment), moment
        moment += timedelta(hours=1)
    if earliest > now:
        assert refused(earliest - timedelta(milliseconds=1))


def _outlook(**changes: Any) -> Outlook:
    return outlook(facts(**changes), changes.get("item") or {})


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.reason}: {case.detail[:30]}")
def test_the_outlook_gives_the_reason_of_the_decision_unless_only_a_tick_knows_it(case: Case) -> None:
    seen = _outlook(**case.refused)
    if case.guard in ONLY_TICKS:
        assert (seen.reason, seen.takes_part) == (None, True)
    elif case.reason == "leashed":
        assert (seen.reason, seen.takes_part) == ("leashed", True)
    elif case.reason == "not-rolled":  # secret, but for a probability of 0
        assert seen.takes_part
    else:
        assert (seen.reason, seen.detail) == (case.reason, case.detail)
        lasting = any(guard is case.guard for guard in LASTING)
        assert seen.takes_part is not lasting
        assert seen.state == (case.reason.replace("-", " ") if lasting else TAKING_PART)


def test_no_reason_is_forgotten() -> None:
    reached = {_outlook(**case.refused).reason for case in CASES}
    only_ticks = {case.reason for case in CASES if case.guard in ONLY_TICKS} - {"inside", "outside-window"}
    assert reached >= set(REASONS) - only_ticks - {"not-rolled"}
    assert reached <= {None, *REASONS}


@pytest.mark.parametrize(
    ("changes", "reason", "possible"),
    [
        ({}, None, at("14:45")),
        ({"groups": (group(size=0),)}, "too-small", None),  # not "now", although calendar and policy would allow it
        ({"now": at("16:00")}, "outside-window", at("09:00", MONDAY)),
        ({"now": at("16:00"), "groups": (group(size=0),)}, "too-small", None),
        ({"now": at("16:00"), "item": {"opt_out": True, "until": "2026-11-23"}}, "opted-out", at("09:00", TUESDAY)),
        ({"item": {"opt_out": True, "until": "2026-11-23"}, "groups": (group(size=0),)}, "opted-out", None),
        ({"switch": Switch(halted=True, leashed=False)}, "halted", None),
        ({"switch": Switch(halted=False, leashed=True)}, "leashed", None),
        ({"switch": Switch(halted=False, leashed=True), "now": at("16:00")}, "outside-window", None),
        ({"state": UnitState(last_day=FRIDAY)}, "already-today", at("09:00", MONDAY)),
        ({"counts": Counts({FRIDAY: 20})}, "day-cap", None),
        ({"counts": Counts({}, 5)}, "in-flight", None),
        ({"item": {"probability": 0}}, "not-rolled", None),
    ],
)
def test_the_next_possible_moment_is_one_at_which_nothing_known_prevents_it(
    changes: dict[str, Any], reason: str | None, possible: datetime | None
) -> None:
    seen = _outlook(**changes)
    assert (seen.reason, seen.next_possible) == (reason, possible)


def test_a_unit_without_groups_takes_no_part() -> None:
    nobody = replace(facts(), groups=())
    assert outlook(nobody, {}).state == "no groups"
    out = {"opt_out": True}
    assert outlook(replace(facts(item=out), groups=()), out).state == "opted out"


KNOWN = [guard for guard in SCHEDULED if guard not in ONLY_TICKS | {not_rolled}]


@given(worlds())
def test_the_outlook_prevents_exactly_what_the_public_guards_do(world: tuple[Account, Settings, datetime]) -> None:
    read, chosen, now = world
    for one in facts_of_units(replace(read, protected_instances=frozenset()), chosen, b"", now):
        item = read.items.get(one.unit, {})
        seen = outlook(one, item)
        never = not one.policy.problems and one.policy.probability.value == 0
        assert (seen.reason is not None) is (isinstance(pass_guards(one, KNOWN), Refusal) or never)
        assert seen.takes_part or seen.reason is not None
        if seen.next_possible is not None and seen.takes_part and seen.next_possible > now:
            assert isinstance(pass_guards(one, [*KNOWN, too_late]), Refusal)
