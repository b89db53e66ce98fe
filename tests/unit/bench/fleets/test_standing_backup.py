"""Backups of standing fleets on spot: when they grow and shrink, and that enough nodes serve whatever spot does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.bench.definition.definition import surge
from troop.bench.definition.roster import Node
from troop.bench.definition.standing import GroupStatus, Market, Member, Place, Resize, Standing
from troop.bench.fleets.standing_backup import STEADY, Nodes, Sizes, purchases, sizes

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)
TIMEOUT = 300


def decide(count: int, spot: Nodes, backup: Nodes, market: Market | None = None, now: datetime = NOW) -> Sizes:
    return sizes(count, TIMEOUT, spot, backup, market or Market(), now)


def full(size: int) -> Nodes:
    return Nodes(size, size, size)


SHORT, SURPLUS = Market(short_since=LONG_AGO), Market(surplus_since=LONG_AGO)

CASES = {
    "spot has all": (10, full(10), full(0), Market(), (10, 0)),
    "spot begins to lack": (10, Nodes(10, 7, 7), full(0), Market(), (10, 0)),
    "spot has lacked for long": (10, Nodes(10, 7, 7), full(0), SHORT, (9, 3)),
    "spot has none": (10, Nodes(10, 0, 0), full(0), SHORT, (2, 10)),
    "more is taken back": (10, Nodes(9, 5, 5), full(3), SHORT, (7, 5)),
    "the backup serves": (10, Nodes(9, 7, 7), full(3), SURPLUS, (9, 3)),
    "the backup starts": (10, Nodes(9, 7, 7), Nodes(3, 3, 0), SURPLUS, (9, 3)),
    "the backup gets none, either": (10, Nodes(9, 7, 7), Nodes(3, 0, 0), Market(), (9, 3)),
    "spot starts again": (10, Nodes(9, 9, 7), full(3), SURPLUS, (9, 3)),
    "spot has just served again": (10, full(9), full(3), Market(), (9, 3)),
    "spot serves steadily": (10, full(9), full(3), SURPLUS, (10, 1)),
    "spot serves, its rest starts": (10, Nodes(10, 10, 9), full(1), SURPLUS, (10, 1)),
    "spot serves all": (10, full(10), full(1), SURPLUS, (10, 0)),
    "spot serves, the backup never came": (10, full(9), Nodes(3, 0, 0), SURPLUS, (10, 1)),
    "which node goes is not known": (10, full(9), Nodes(3, 3, 1), SURPLUS, (9, 3)),
    "setup fails everywhere": (10, Nodes(10, 10, 0), full(0), SHORT, (10, 0)),
    "the fleet grows": (20, Nodes(9, 7, 7), full(3), Market(), (20, 3)),
    "the fleet shrinks": (5, Nodes(9, 7, 7), full(3), Market(), (5, 1)),
    "the fleet has no nodes": (0, Nodes(9, 7, 7), full(3), Market(), (0, 0)),
    "one node on spot": (1, Nodes(1, 0, 0), full(0), SHORT, (1, 1)),
    "one node is back": (1, full(1), full(1), SURPLUS, (1, 0)),
}


@pytest.mark.parametrize(("count", "spot", "backup", "market", "expected"), CASES.values(), ids=CASES)
def test_the_sizes(count: int, spot: Nodes, backup: Nodes, market: Market, expected: tuple[int, int]) -> None:
    decided = decide(count, spot, backup, market)
    assert (decided.spot, decided.backup) == expected


def test_the_backup_waits_for_spot_and_shrinks_only_after_it_has_served() -> None:
    lacking, market = Nodes(10, 7, 7), Market()
    for seconds in (0, TIMEOUT - 1):
        decided = decide(10, lacking, full(0), market, NOW + timedelta(seconds=seconds))
        assert (decided.backup, decided.market) == (0, Market(short_since=NOW))
        market = decided.market
    assert decide(10, lacking, full(0), market, NOW + timedelta(seconds=TIMEOUT)).backup == 3
    assert decide(10, full(10), full(0), market).market == Market(), "spot has all again: the time begins anew"
    serving, market = full(8), Market()
    for elapsed in (timedelta(0), STEADY - timedelta(seconds=1)):
        decided = decide(10, serving, full(3), market, NOW + elapsed)
        assert (decided.backup, decided.market) == (3, Market(surplus_since=NOW))
        market = decided.market
    assert decide(10, serving, full(3), market, NOW + STEADY).backup == 2
    assert decide(10, full(7), full(3), market).market == Market(), "spot has lost one: the time begins anew"


def test_decision_after_a_failed_call_is_the_same() -> None:
    lacking = Nodes(10, 7, 7)
    first = decide(10, lacking, full(0), SHORT)
    assert decide(10, lacking, full(0), first.market) == first
    again = decide(10, full(9), full(3), SURPLUS)
    assert decide(10, full(9), full(3), again.market) == again


def test_spot_waits_for_the_place_of_nodes_of_the_backup_that_drain() -> None:
    spot, backup = full(9), full(3)
    at_once = sizes(10, TIMEOUT, spot, backup, SURPLUS, NOW)
    assert (at_once.spot, at_once.backup) == (10, 1)
    draining = sizes(10, TIMEOUT, spot, backup, SURPLUS, NOW, drains=True)
    assert (draining.spot, draining.backup) == (9, 1), "twelve nodes are the most"


@st.composite
def nodes_of_group(draw: st.DrawFn, most: int = 30) -> Nodes:
    size = draw(st.integers(0, most))
    here = draw(st.integers(0, size))
    return Nodes(size, here, draw(st.integers(0, here)))


MARKETS = st.sampled_from([Market(), SHORT, SURPLUS, Market(LONG_AGO, LONG_AGO), Market(NOW, NOW)])


@given(count=st.integers(0, 25), spot=nodes_of_group(), backup=nodes_of_group(), market=MARKETS)
def test_no_decision_takes_nodes_that_are_needed(count: int, spot: Nodes, backup: Nodes, market: Market) -> None:
    decided = decide(count, spot, backup, market)
    assert 0 <= decided.spot <= count
    assert decided.spot >= min(count, spot.here), "spot loses no node to a backup"
    # In the worst case, all nodes that go are ready ones.
    stay = min(spot.ready, decided.spot) + max(0, backup.ready - max(0, backup.here - decided.backup))
    assert stay >= min(count, spot.ready + backup.ready)
    if decided.backup > backup.size:
        assert decided.backup == count - spot.here
    assert decided.spot + decided.backup <= max(count + surge(count), min(count, spot.here) + backup.size)


@dataclass
class Cloud:
    """Two groups and what spot gives them: nodes boot within a step, and what a group lacks it launches."""

    offer: int
    spot: Nodes
    backup: Nodes

    def step(self) -> None:
        here = min(self.offer, self.spot.size)
        self.spot = Nodes(self.spot.size, here, min(here, self.spot.here))
        self.backup = Nodes(self.backup.size, self.backup.size, min(self.backup.size, self.backup.here))


@given(count=st.integers(1, 20), gifts=st.lists(st.tuples(st.integers(0, 20), st.integers(1, 30)), max_size=8))
def test_whatever_spot_does_enough_nodes_exist_and_never_many_more(count: int, gifts: list[tuple[int, int]]) -> None:
    """Spot gives so many nodes for so many minutes; at last it gives all."""
    cloud, market, now, changes = Cloud(count, full(count), full(0)), Market(), NOW, 0
    for most, minutes in [*gifts, (count, 400)]:
        cloud.offer = most
        lacking = 0
        for _ in range(minutes):
            now += timedelta(minutes=1)
            cloud.step()
            decided = sizes(count, TIMEOUT, cloud.spot, cloud.backup, market, now)
            changes += decided.backup < cloud.backup.size
            market = decided.market
            cloud.spot = replace(cloud.spot, size=decided.spot, here=min(cloud.spot.here, decided.spot))
            cloud.backup = Nodes(
                decided.backup, min(cloud.backup.here, decided.backup), min(cloud.backup.ready, decided.backup)
            )
            assert cloud.spot.here + cloud.backup.here <= count + surge(count)
            lacking = lacking + 1 if cloud.spot.here + cloud.backup.size < count else 0
            assert lacking <= TIMEOUT / 60 + 1, "the backup makes up for what spot lacks"
    assert (cloud.spot, cloud.backup.size) == (full(count), 0), "in the end, spot has all"
    assert changes <= (now - NOW) / STEADY, "it does not flap"


def _group(size: int, *ids: str, is_backup: bool = False) -> GroupStatus:
    members = tuple(Member(i, "a", "t", Place.SERVING) for i in ids)
    return GroupStatus("w", size, size, members, is_backup=is_backup, is_spot=not is_backup)


def test_groups_that_shrink_come_first() -> None:
    standing = Standing({"w": 5, "v": 1}, backups={"w": 60}, market={"w": SHORT})
    own, backup = _group(5, "i-1", "i-2"), _group(0, is_backup=True)
    nodes = {i: Node(i, "w") for i in ("i-1", "i-2")}
    bought = purchases(standing, [own, backup, GroupStatus("v", 9, 9)], nodes, NOW)
    assert bought.resizes == (Resize("w", 3), Resize("w", 3, is_backup=True)), "v has no backup"
    assert (bought.market, bought.is_settled) == ({"w": SHORT}, False)
    assert purchases(standing, [own, replace(backup, exists=False)], nodes, NOW).resizes == ()


def test_a_node_that_leaves_or_failed_its_setup_does_not_serve() -> None:
    places = {"i-1": Place.SERVING, "i-2": Place.SERVING, "i-3": Place.STARTING, "i-4": Place.LEAVING}
    group = GroupStatus("w", 4, 4, tuple(Member(i, "a", "t", place) for i, place in places.items()))
    nodes = {"i-1": Node("i-1", "w"), "i-2": Node("i-2", "w", error="no bucket"), "i-4": Node("i-4", "w")}
    assert Nodes.from_group(group, nodes) == Nodes(4, 3, 1)
    assert Nodes.from_group(replace(group, desired=1), nodes) == Nodes(1, 1, 1)
