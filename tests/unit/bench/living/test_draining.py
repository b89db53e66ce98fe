"""How groups shrink: nodes finish their tasks first, and a group that grows again keeps them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from troop.bench.definition.living import Grade
from troop.bench.definition.roster import Node
from troop.bench.definition.standing import GroupStatus, Member, Place, Resize
from troop.bench.living import draining
from troop.bench.living.draining import BOOTING, LONGEST_TASK, PATIENCE, Change, Draining, Nodes
from troop.bench.living.report import Report

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
LEASE = 300
LIMIT = PATIENCE + timedelta(seconds=LEASE)
SERVING, STARTING, LEAVING = Place.SERVING, Place.STARTING, Place.LEAVING


def member(i: str, place: Place = SERVING, *, is_protected: bool = True) -> Member:
    return Member(i, "eu-central-1a", "c7g.large", place, is_protected)


def group(*members: Member, desired: int | None = None) -> GroupStatus:
    size = len(members) if desired is None else desired
    return GroupStatus("workers", size, size, members)


def nodes(*ready: str, **reports: Report) -> Nodes:
    began = {i: NOON - timedelta(hours=1) for i in ready}
    return Nodes({i: Node(i, "workers") for i in ready}, began, reports)


def at_work(at: datetime = NOON, status: Grade = Grade.OK) -> Report:
    return Report("", at, status, held=1)


def idle(minutes: int = 1) -> Report:
    return Report("", NOON, idle_since=NOON - timedelta(minutes=minutes))


def drained(at: datetime = NOON) -> Report:
    return Report("", at, idle_since=at, draining=True, drained=True)


def decide(
    its: GroupStatus, size: int, known: Nodes, drains: dict[str, datetime] | None = None, now: datetime = NOON
) -> Draining:
    return draining.decide([(its, size)], known, drains or {}, LEASE, now)


def change(**how: object) -> Change:
    return Change("workers", False, **how)  # type: ignore[arg-type]


def test_a_group_that_shrinks_first_asks_its_nodes_to_finish() -> None:
    answer = decide(group(member("a"), member("b"), member("c")), 1, nodes("a", "b", "c"))
    assert answer == Draining({"a": NOON, "b": NOON}, ())


def test_only_drained_nodes_lose_their_protection_and_their_place() -> None:
    known = nodes("a", "b", "c", a=drained(), b=at_work())
    answer = decide(group(member("a"), member("b"), member("c")), 1, known, {"a": NOON, "b": NOON})
    assert answer.drains == {"a": NOON, "b": NOON}
    assert answer.changes == (change(releases=("a",), resize=Resize("workers", 2)),)


def test_a_repeated_check_shrinks_no_further_while_the_node_is_still_listed() -> None:
    known = nodes("a", "b", "c", a=drained())
    its = group(member("a", is_protected=False), member("b"), member("c"), desired=2)
    assert decide(its, 1, known, {"a": NOON, "b": NOON}).changes == ()


def test_a_node_that_goes_while_it_drains_is_not_replaced() -> None:
    answer = decide(group(member("b"), member("c"), desired=3), 1, nodes("b", "c"), {"a": NOON, "b": NOON})
    assert answer == Draining({"b": NOON}, (change(resize=Resize("workers", 2)),))


@pytest.mark.parametrize(
    ("report", "limit"),
    [
        (at_work(), LIMIT),
        (idle(), LIMIT),
        (at_work(NOON + LIMIT, Grade.FAIL), LIMIT),
        (at_work(NOON + LIMIT), LONGEST_TASK),
        (at_work(NOON + LIMIT, Grade.WARN), LONGEST_TASK),
    ],
    ids=["silent", "without a task", "fails", "at work", "at work with a warning"],
)
def test_a_node_that_drains_for_too_long_goes(report: Report, limit: timedelta) -> None:
    its, late = group(member("a"), member("b")), NOON + limit
    gone = (change(releases=("a",), resize=Resize("workers", 1)),)
    for moment, changes in ((late - timedelta(seconds=1), ()), (late, gone)):
        at = max(report.at, moment - timedelta(minutes=1)) if report.at > NOON else report.at
        known = nodes("a", "b", a=replace(report, at=at))
        assert decide(its, 1, known, {"a": NOON}, moment).changes == changes


def test_a_report_from_before_the_order_proves_nothing() -> None:
    known = nodes("a", "b", a=drained(NOON - timedelta(seconds=1)))
    assert decide(group(member("a"), member("b")), 1, known, {"a": NOON}).changes == ()


def test_growth_keeps_nodes_that_drain() -> None:
    its = group(member("a", is_protected=False), member("b"), member("c"), desired=2)
    drains = {"a": NOON, "b": NOON + timedelta(seconds=5)}
    answer = decide(its, 2, nodes("a", "b", "c", a=drained()), drains)
    assert answer == Draining({"a": NOON}, ()), "the one that has drained goes on"
    answer = decide(its, 3, nodes("a", "b", "c", a=drained()), drains)
    assert answer == Draining({}, (change(protects=("a",), resize=Resize("workers", 3)),))


def test_growth_beyond_all_nodes_launches_the_others() -> None:
    answer = decide(group(member("a")), 500, nodes("a"))
    assert answer == Draining({}, (change(resize=Resize("workers", 500)),))


@pytest.mark.parametrize(
    ("members", "known", "first"),
    [
        (("a", "b", "c"), nodes("a", "b"), "c"),
        (("a", "b", "c"), nodes("a", "b", "c", b=idle()), "b"),
        (("a", "b", "c"), nodes("a", "b", "c", b=idle(1), c=idle(9)), "c"),
        (("a", "b"), Nodes({"a": Node("a", "workers", error="no disk"), "b": Node("b", "workers")}), "a"),
        (
            ("a", "b"),
            Nodes(
                {i: Node(i, "workers") for i in "ab"},
                {"a": NOON, "b": NOON - timedelta(hours=2)},
                {i: at_work() for i in "ab"},
            ),
            "b",
        ),
    ],
    ids=["not ready", "idle", "idle longest", "failed", "oldest"],
)
def test_the_node_that_is_missed_least_goes_first(members: tuple[str, ...], known: Nodes, first: str) -> None:
    answer = decide(group(*map(member, members)), len(members) - 1, known)
    assert list(answer.drains) == [first]


def test_a_node_without_an_operating_system_goes_at_once() -> None:
    its = group(member("a"), member("b", STARTING, is_protected=False))
    answer = decide(its, 1, nodes("a"))
    assert answer == Draining({"b": NOON}, (change(resize=Resize("workers", 1)),)), "its protection comes later"


def test_a_node_that_never_began_to_work_goes_soon() -> None:
    its = group(member("a"), member("b"))
    assert decide(its, 1, nodes("a"), {"b": NOON}, NOON + BOOTING - timedelta(seconds=1)).changes == ()
    assert decide(its, 1, nodes("a"), {"b": NOON}, NOON + BOOTING).changes


def test_a_group_first_loses_the_nodes_that_it_lacks() -> None:
    answer = decide(group(member("a"), member("b"), desired=9), 5, nodes("a", "b"))
    assert answer == Draining({}, (change(resize=Resize("workers", 5)),))


def test_nodes_that_were_launched_beyond_the_size_do_not_raise_it() -> None:
    answer = decide(group(*map(member, "abcd"), desired=3), 2, nodes(*"abcd"))
    assert (len(answer.drains), answer.changes) == (2, ())


def test_a_node_that_somebody_unprotected_is_protected_again() -> None:
    its = group(member("a", is_protected=False), member("b"))
    assert decide(its, 2, nodes("a", "b")).changes == (change(protects=("a",)),)


def test_groups_that_shrink_come_first() -> None:
    spot = GroupStatus("workers", 3, 3, (member("a"), member("b"), member("c")), is_spot=True)
    backup = GroupStatus("workers", 1, 1, (member("d"),), is_backup=True)
    answer = draining.decide([(spot, 4), (backup, 0)], nodes(*"abcd", d=drained()), {"d": NOON}, LEASE, NOON)
    assert [(one.is_backup, one.resize and one.resize.size) for one in answer.changes] == [(True, 0), (False, 4)]


def test_a_leaving_node_gets_no_order() -> None:
    its = group(member("a"), member("b", LEAVING), desired=2)
    assert decide(its, 1, nodes("a", "b")) == Draining({}, (change(resize=Resize("workers", 1)),))


def test_a_huge_group_drains_in_parts() -> None:
    many = [f"i-{n:05}" for n in range(3_000)]
    answer = decide(group(*map(member, many)), 0, nodes(*many))
    assert len(answer.drains) == draining.MOST_DRAINS


@dataclass
class Worker:
    """A node of the world: ready some time after its launch, with tasks that take their time."""

    ready_at: datetime
    is_protected: bool = False
    held: int = 0
    busy_until: datetime = NOON
    idle_since: datetime | None = NOON
    is_draining: bool = False
    report: Report | None = None


@dataclass
class World:
    """A group of Auto Scaling whose nodes work. Everything random comes from ``dice``."""

    dice: random.Random
    now: datetime = NOON
    desired: int = 0
    workers: dict[str, Worker] = field(default_factory=dict)
    drains: dict[str, datetime] = field(default_factory=dict)
    launched: int = 0
    stuck: bool = False

    def status(self) -> GroupStatus:
        members = tuple(
            Member(i, "a", "m", SERVING if one.is_protected or i in self.serving else STARTING, one.is_protected)
            for i, one in self.workers.items()
        )
        return GroupStatus("workers", self.desired, self.desired, members)

    @property
    def serving(self) -> set[str]:
        return {i for i, one in self.workers.items() if one.ready_at - self.now <= timedelta(minutes=1)}

    @property
    def ready(self) -> set[str]:
        return {i for i, one in self.workers.items() if one.ready_at <= self.now}

    def settle(self) -> None:
        """What Auto Scaling does: launches, and terminates what is not protected."""
        while len(self.workers) < self.desired:
            self.launched += 1
            boot = timedelta(seconds=self.dice.choice((30, 90, 400)))
            self.workers[f"i-{self.launched:04}"] = Worker(self.now + boot)
        loose = [i for i, one in self.workers.items() if not one.is_protected]
        self.dice.shuffle(loose)
        for i in loose[: max(0, len(self.workers) - self.desired)]:
            one = self.workers.pop(i)
            ordered = self.drains.get(i)
            hangs = one.report is not None and one.report.status is Grade.FAIL
            limit = LIMIT if hangs else LONGEST_TASK
            assert not one.held or (ordered and self.now - ordered >= limit), "it holds a task"

    def work(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)
        for i, one in self.workers.items():
            one.is_protected = one.is_protected or (i in self.serving and i not in self.drains)
            if i not in self.ready:
                continue
            if one.held and one.busy_until <= self.now and not self.stuck:
                one.held, one.idle_since = 0, self.now
            one.is_draining = i in self.drains
            if not one.held and not one.is_draining and self.dice.random() < 0.7:
                one.held, one.idle_since = 1, None
                one.busy_until = self.now + timedelta(seconds=self.dice.choice((5, 60, 600, 3_000)))
            if self.dice.random() < 0.8:  # a report can be late
                is_drained = one.is_draining and not one.held
                one.report = Report(
                    i,
                    self.now,
                    Grade.FAIL if self.stuck else Grade.OK,
                    held=one.held,
                    idle_since=one.idle_since,
                    draining=one.is_draining,
                    drained=is_drained,
                )

    def check(self, size: int) -> None:
        registered = {i: Node(i, "workers") for i in self.ready}
        reports = {i: one.report for i, one in self.workers.items() if one.report}
        known = Nodes(registered, {i: self.workers[i].ready_at for i in registered}, reports)
        before = self.ready - set(self.drains)
        answer = decide(self.status(), size, known, self.drains, self.now)
        self.drains = dict(answer.drains)
        assert len(before - set(self.drains)) >= min(size, len(before)), "fewer take tasks than are wanted"
        for one in answer.changes:
            assert set(one.releases) <= set(self.drains)
            for i in one.protects:
                self.workers[i].is_protected = True
            for i in one.releases:
                self.workers[i].is_protected = False
            if one.resize:
                assert one.resize.size >= size
                self.desired = one.resize.size
        self.settle()


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.lists(st.integers(0, 12), min_size=1, max_size=8), st.booleans())
def test_no_node_ends_at_work_and_the_group_gets_its_size(seed: int, sizes: list[int], stuck: bool) -> None:
    world = World(random.Random(seed), stuck=stuck)
    for size in sizes:
        for _ in range(world.dice.choice((1, 2, 10))):
            world.work(world.dice.choice((1, 10, 60)))
            if world.workers and world.dice.random() < 0.1:  # spot takes one back
                world.workers.pop(world.dice.choice(sorted(world.workers)))
            if world.dice.random() < 0.8:  # a check can fail
                world.check(size)
    for _ in range(90):
        world.work(60)
        world.check(sizes[-1])
    assert (world.desired, len(world.workers), world.drains) == (sizes[-1], sizes[-1], {})
    launched = world.launched
    for _ in range(10):
        world.work(60)
        world.check(sizes[-1])
    assert world.launched == launched, "a group at its size replaces nothing"
