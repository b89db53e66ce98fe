"""Repairs: who gets one, how, and how many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from tests.unit.bench.living.build import HEALTH, NOW, REPLACES, RESTARTS, fleet, node
from troop.bench.definition.living import REPLACE, RESTART, Grade, Heal, Repair, Work
from troop.bench.definition.standing import Standing
from troop.bench.living.digest import Watched
from troop.bench.living.healing import (
    CARRY_OUT,
    COUNTED,
    MOST_ON_RECORD,
    ORDER,
    Healing,
    heal,
    limit,
    to_replace,
    to_restart,
)
from troop.bench.living.report import Check, Report

FAILS = Check("answer", Grade.FAIL)
SECOND = timedelta(seconds=1)
SETTLE = timedelta(seconds=HEALTH.grace + 3 * HEALTH.every)


def sick(number: int = 1, failures: int = 3, at: datetime = NOW, **more: object) -> Watched:
    return replace(node(number, FAILS, failures=failures, at=at), **more)  # type: ignore[arg-type]


def silent(number: int = 1) -> Watched:
    return replace(node(number), report=None, is_silent=True)


def decided(standing: Standing, *nodes: Watched, now: datetime = NOW) -> Healing:
    return heal(standing, nodes, {one.id for one in nodes}, now)


def repair(number: int = 1, ago: timedelta = timedelta(), do: str = RESTART, nth: int = 1) -> Repair:
    return Repair(f"r-{number}-{nth}", f"i-{number:03}", "workers", do, NOW - ago, nth)


@pytest.mark.parametrize(
    ("rule", "one", "do"),
    [
        (REPLACES, sick(), REPLACE),
        (RESTARTS, sick(), RESTART),
        (RESTARTS, silent(), REPLACE),
        (REPLACES, silent(), REPLACE),
        (REPLACES, sick(failures=2), None),
        (REPLACES, node(1, replace(FAILS, status=Grade.WARN), failures=9), None),
        (REPLACES, node(1), None),
        (REPLACES, sick(is_draining=True), None),
        (REPLACES, replace(silent(), is_draining=True), None),
        (REPLACES, sick(ready_at=NOW - timedelta(seconds=119)), None),
        (REPLACES, sick(ready_at=NOW - timedelta(seconds=120)), REPLACE),
        (REPLACES, node(1, status=Grade.FAIL, problem="it is empty"), None),
    ],
)
def test_a_node_is_repaired_by_what_it_reports(rule: Heal, one: Watched, do: str | None) -> None:
    assert [other.do for other in decided(fleet(heal=rule), one).repairs] == ([do] if do else [])


def test_a_repair_says_which_node_and_why() -> None:
    (one,) = decided(fleet(), sick(failures=4)).repairs
    assert (one.node, one.role, one.at, one.number, one.reason) == (
        "i-001",
        "workers",
        NOW,
        1,
        "answer failed 4 times",
    )
    assert decided(fleet(), silent()).repairs[0].reason == "no report"


@pytest.mark.parametrize(("size", "share", "most"), [(10, "0.1", 1), (2, "0.1", 1), (29, "0.1", 2), (500, "0.1", 50)])
def test_the_limit_is_a_share_and_at_least_one(size: int, share: str, most: int) -> None:
    standing = fleet(size, Heal(at_most=Decimal(share)))
    assert limit(standing.heals["workers"], size) == most
    healing = decided(standing, *map(sick, range(size)))
    assert len(healing.repairs) == most
    assert healing.limited == (f"{size - most} more nodes of workers fail, but {most} repairs an hour are the limit",)


def test_the_longest_failing_and_silent_nodes_come_first() -> None:
    standing = fleet(30, Heal(at_most=Decimal("0.1")))
    healing = decided(standing, sick(1, 3), sick(2, 9), silent(3), sick(4, 5))
    assert [one.node for one in healing.repairs] == ["i-003", "i-002", "i-004"]


@pytest.mark.parametrize(("ago", "count"), [(COUNTED - SECOND, 0), (COUNTED, 1)])
def test_a_repair_counts_for_more_than_an_hour(ago: timedelta, count: int) -> None:
    assert timedelta(hours=1) + CARRY_OUT <= COUNTED
    standing = fleet(repairs=(repair(2, ago),))
    healing = decided(standing, sick())
    assert (len(healing.repairs), bool(healing.limited)) == (count, not count)


def test_a_slow_clock_neither_reorders_nor_exceeds_repairs() -> None:
    standing = fleet(repairs=(repair(2, -timedelta(seconds=20)),))
    assert decided(standing, sick()).repairs == ()
    assert decided(replace(standing, desired={"workers": 20}), sick()).repairs[0].at == NOW + timedelta(seconds=20)


def ran(last: Repair, ended: datetime | None) -> Callable[[Watched], Watched]:
    def change(one: Watched) -> Watched:
        assert one.report
        return replace(one, report=replace(one.report, repair=last.id, repaired_at=ended))

    return change


MINUTE = timedelta(minutes=1)
WIDE = fleet(100, Heal(3, RESTART, "restart.sh", Decimal("1")))


@pytest.mark.parametrize(
    ("last", "report", "is_repaired"),
    [
        (repair(ago=CARRY_OUT - SECOND), None, False),
        (repair(ago=CARRY_OUT), None, True),
        (repair(ago=CARRY_OUT - SECOND, do=REPLACE), None, False),
        (repair(ago=CARRY_OUT, do=REPLACE), None, True),
        (repair(ago=30 * MINUTE), ran(repair(), None), False),  # a slow script
        (repair(ago=5 * MINUTE), ran(repair(), NOW - SETTLE + SECOND), False),
        (repair(ago=5 * MINUTE), ran(repair(), NOW - SETTLE), True),
        (repair(ago=SETTLE - SECOND), ran(repair(), NOW - 60 * MINUTE), False),  # a slow clock of the node
    ],
)
def test_a_repair_has_time_to_show(
    last: Repair, report: Callable[[Watched], Watched] | None, is_repaired: bool
) -> None:
    one = report(sick()) if report else sick()
    assert bool(decided(replace(WIDE, repairs=(last,)), one).repairs) is is_repaired


def test_a_report_from_before_the_repair_counts_no_more() -> None:
    last = repair(ago=CARRY_OUT)
    assert decided(replace(WIDE, repairs=(last,)), sick(at=last.at)).repairs == ()


def test_work_has_its_own_time_after_a_repair() -> None:
    slow = replace(WIDE, works={"workers": Work(1, 3600)}, repairs=(repair(ago=MINUTE * 59),))
    assert decided(slow, ran(repair(), NOW - 59 * MINUTE)(sick())).repairs == ()
    assert decided(slow, ran(repair(), NOW - 63 * MINUTE)(sick())).repairs == ()
    old = replace(slow, repairs=(repair(ago=MINUTE * 63),))
    assert len(decided(old, ran(repair(), NOW - 63 * MINUTE)(sick())).repairs) == 1


def test_a_silent_node_is_replaced_even_if_its_restart_never_ended() -> None:
    one = replace(ran(repair(), None)(sick()), is_silent=True)
    (replaced,) = decided(replace(WIDE, repairs=(repair(ago=CARRY_OUT),)), one).repairs
    assert (replaced.do, replaced.number) == (REPLACE, 2)


def test_the_third_repair_calls_a_person_and_is_the_last() -> None:
    two, three = repair(ago=CARRY_OUT, nth=2), repair(ago=CARRY_OUT, nth=3)
    healing = decided(replace(WIDE, repairs=(two,)), sick())
    assert [one.number for one in healing.repairs] == [3]
    assert healing.limited == ("repairs do not help nodes of workers: i-001 had 3",)
    healing = decided(replace(WIDE, repairs=(three,)), sick())
    assert healing.repairs == ()
    assert healing.limited == ("repairs do not help nodes of workers: i-001 had 3",)
    assert decided(replace(WIDE, repairs=(three,)), node(1)).limited == (), "it has recovered"


def test_roles_have_limits_of_their_own() -> None:
    both = Standing({"a": 5, "b": 5}, heals={"a": REPLACES, "b": REPLACES}, watched=frozenset({"a", "b"}))
    healing = decided(both, *(sick(n, role="a" if n % 2 else "b") for n in range(6)))
    assert [one.role for one in healing.repairs] == ["a", "b"]
    assert len(healing.limited) == 2


def test_a_role_without_heal_is_left_alone() -> None:
    healing = decided(replace(fleet(), heals={}), sick())
    assert (healing.repairs, healing.limited) == ((), ())


def test_the_record_has_what_counts_and_the_last_repair_of_each_node() -> None:
    old = timedelta(hours=5)
    repairs = (repair(9, old), repair(1, old, nth=1), repair(1, old, nth=2), repair(2, MINUTE))
    healing = heal(fleet(repairs=repairs), [node(1)], {"i-001"}, NOW)
    assert [one.id for one in healing.on_record] == ["r-1-2", "r-2-1"]


def test_the_record_stays_bounded() -> None:
    standing = fleet(5_000, Heal(at_most=Decimal(1)))
    healing = decided(standing, *map(sick, range(2_000)))
    assert len(healing.repairs) == len(healing.on_record) == MOST_ON_RECORD
    assert healing.limited
    later = replace(standing, repairs=tuple(replace(one, at=NOW - COUNTED) for one in healing.on_record))
    again = decided(later, *map(sick, range(2_000)))
    assert len(again.on_record) == MOST_ON_RECORD
    assert set(again.repairs) <= set(again.on_record)


@pytest.mark.parametrize(("ago", "is_due"), [(timedelta(), True), (ORDER - SECOND, True), (ORDER, False)])
def test_an_entry_is_carried_out_for_some_minutes(ago: timedelta, is_due: bool) -> None:
    replaced, restarted = repair(1, ago, REPLACE), repair(2, ago)
    assert to_replace([replaced, restarted], {"i-001", "i-002"}, NOW) == (["i-001"] if is_due else [])
    assert to_restart([replaced, restarted], {}, NOW) == ({"i-002": "r-2-1"} if is_due else {})


def test_no_entry_is_carried_out_again_once_it_shows() -> None:
    assert to_replace([repair(do=REPLACE)], set(), NOW) == []
    begun = Report("i-001", NOW, repair="r-1-1")
    assert to_restart([repair()], {"i-001": begun}, NOW) == {}
    assert to_restart([repair(nth=2)], {"i-001": begun}, NOW) == {"i-001": "r-1-2"}
