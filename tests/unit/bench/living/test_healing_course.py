"""Hours of a fleet whose workers are killed, hang, are slow, or come and go: how healing goes on, and when it stops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from tests.unit.bench.living.build import LONG_AGO, NOW, fleet, seen
from troop.bench.definition.living import REPLACE, RESTART, Grade, Heal
from troop.bench.definition.standing import Standing
from troop.bench.living.healing import MOST_OF_A_NODE, heal, to_replace, to_restart
from troop.bench.living.report import Check, Report

HOUR, ROUND, POLL = timedelta(hours=1), timedelta(seconds=60), timedelta(seconds=10)

Sick = Callable[[timedelta], bool]
"""Whether a worker fails, so long after its start."""


def never(age: timedelta) -> bool:
    return False


def killed_after(seconds: int) -> Sick:
    return lambda age: age >= timedelta(seconds=seconds)


def flapping(bad: int, good: int) -> Sick:
    """Fails for some polls, then passes for some."""
    return lambda age: age.total_seconds() % (10 * (bad + good)) >= 10 * good


@dataclass
class Worker:
    """A node with a worker.

    Attributes:
        behaviour: of the worker since its start.
        is_cured: whether a restart ends the failure for good.
    """

    name: str
    behaviour: Sick
    started: datetime
    ready_at: datetime
    is_cured: bool = True
    is_dead: bool = False
    failures: int = 0
    repair: str = ""
    repaired_at: datetime | None = None

    def poll(self, now: datetime) -> None:
        self.failures = self.failures + 1 if self.behaviour(now - self.started) else 0

    def restart(self, repair: str, now: datetime) -> None:
        self.repair, self.repaired_at, self.started = repair, now, now
        if self.is_cured:
            self.behaviour = never

    def report(self, now: datetime) -> Report:
        status = Grade.FAIL if self.failures else Grade.OK
        checks = (Check("answer", status),)
        return Report(self.name, now, status, self.failures, checks, repair=self.repair, repaired_at=self.repaired_at)


@dataclass
class Course:
    """A fleet whose checks do not overlap.

    Attributes:
        successor: the behaviour of the worker of a new node.
        acts: moments of all repairs that have begun.
        limited: moments of rounds that called a person.
    """

    standing: Standing
    workers: dict[str, Worker]
    successor: Sick = never
    now: datetime = NOW
    acts: list[tuple[datetime, str]] = field(default_factory=list)
    limited: list[datetime] = field(default_factory=list)
    launched: int = 0

    @classmethod
    def begin(cls, behaviours: list[Sick], heal: Heal, successor: Sick = never, is_cured: bool = True) -> Course:
        workers = {
            f"i-{number:03}": Worker(f"i-{number:03}", one, NOW, LONG_AGO, is_cured)
            for number, one in enumerate(behaviours)
        }
        return cls(fleet(len(behaviours), heal), workers, successor)

    def go_on(self, time: timedelta) -> Course:
        for _ in range(int(time / ROUND)):
            for _ in range(int(ROUND / POLL)):
                self.now += POLL
                for worker in self.workers.values():
                    worker.poll(self.now)
            self._check()
        return self

    def _check(self) -> None:
        reports = {name: one.report(self.now) for name, one in self.workers.items() if not one.is_dead}
        ready = {name: one.ready_at for name, one in self.workers.items()}
        nodes = seen(self.standing, self.workers, ready, reports, self.now)
        healing = heal(self.standing, nodes, set(self.workers), self.now)
        self.standing = replace(self.standing, repairs=healing.on_record)
        self.limited += [self.now] if healing.limited else []
        for name, repair in to_restart(self.standing.repairs, reports, self.now).items():
            if name in reports and self.workers[name].repair != repair:
                self.workers[name].restart(repair, self.now)
                self.acts.append((self.now, RESTART))
        for name in to_replace(self.standing.repairs, set(self.workers), self.now):
            del self.workers[name]
            self.launched += 1
            new = f"i-new-{self.launched}"
            self.workers[new] = Worker(new, self.successor, self.now, self.now)
            self.acts.append((self.now, REPLACE))

    @property
    def most_an_hour(self) -> int:
        moments = [at for at, _ in self.acts]
        return max((sum(at <= other < at + HOUR for other in moments) for at in moments), default=0)

    @property
    def alarms(self) -> int:
        """How often the alarm goes off: it ends a quarter of an hour after the last round that called a person."""
        return sum(_begins(self.limited))


def _begins(moments: list[datetime]) -> Iterator[bool]:
    for before, at in zip([None, *moments], moments, strict=False):
        yield before is None or at - before > timedelta(minutes=15)


def rule(do: str, share: str = "0.1") -> Heal:
    return Heal(3, do, "restart.sh" if do == RESTART else None, Decimal(share))


def kinds(course: Course) -> list[str]:
    return [kind for _, kind in course.acts]


def test_a_killed_worker_is_restarted_once() -> None:
    course = Course.begin([killed_after(600), *[never] * 9], rule(RESTART)).go_on(3 * HOUR)
    assert (kinds(course), course.alarms) == ([RESTART], 0)
    assert course.acts[0][0] - NOW <= timedelta(minutes=12)


def test_a_killed_node_is_replaced_once() -> None:
    course = Course.begin([never] * 10, rule(RESTART))
    course.workers["i-003"].is_dead = True
    assert (kinds(course.go_on(3 * HOUR)), course.alarms) == ([REPLACE], 0)


def test_a_hung_worker_that_no_restart_helps_is_left_alone() -> None:
    course = Course.begin([killed_after(0), *[never] * 99], rule(RESTART), is_cured=False).go_on(5 * HOUR)
    assert (kinds(course), course.alarms) == ([RESTART] * MOST_OF_A_NODE, 1)


def test_a_slow_worker_that_answers_in_time_again_needs_no_repair() -> None:
    """Two late answers in a row are fewer than the three that a repair needs."""
    course = Course.begin([flapping(2, 3)] * 10, rule(RESTART)).go_on(3 * HOUR)
    assert (course.acts, course.alarms) == ([], 0)


@pytest.mark.parametrize("do", [RESTART, REPLACE])
def test_flapping_workers_end_within_the_limits(do: str) -> None:
    flaps = flapping(30, 30)
    course = Course.begin([flaps] * 3 + [never] * 17, rule(do), flaps, is_cured=False).go_on(12 * HOUR)
    assert course.most_an_hour <= 2
    if do == RESTART:
        assert len(course.acts) <= 3 * MOST_OF_A_NODE
    assert course.limited


def test_a_fleet_that_fails_all_at_once_is_healed_slowly_with_one_alarm() -> None:
    course = Course.begin([killed_after(0)] * 20, rule(REPLACE), killed_after(0)).go_on(6 * HOUR)
    assert course.most_an_hour == 2
    assert 8 <= len(course.acts) <= 12
    assert course.alarms == 1


def test_a_fleet_that_recovers_by_itself_is_healed_no_further() -> None:
    ends = NOW + HOUR
    broken: Sick = lambda age: NOW + age < ends  # noqa: E731 - a behaviour like the others
    course = Course.begin([broken] * 20, rule(RESTART), is_cured=False).go_on(6 * HOUR)
    assert all(at <= ends + ROUND for at, _ in course.acts)
    assert course.limited[-1] <= ends + ROUND
