"""Checks that overlap and end anywhere: the limit of repairs holds, and each repair happens once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.unit.bench.living.build import LONG_AGO, NOW, fleet, seen
from troop.bench.definition.living import RESTART, Grade, Heal
from troop.bench.definition.standing import Standing
from troop.bench.living.healing import Healing, heal, limit, to_replace, to_restart
from troop.bench.living.report import Check, Report

HOUR = timedelta(hours=1)

LONGEST = timedelta(seconds=120)
"""Time after which AWS ends a function."""


@dataclass
class Round:
    """A check of the fleet that goes on: what it has read, and what it has claimed."""

    at: datetime
    fleet: Standing
    serving: frozenset[str]
    reports: dict[str, Report]
    healing: Healing
    is_claimed: bool = False


class Overlap(RuleBasedStateMachine):
    """A record that accepts a claim only if it is based on its state, and three checks at a time.

    Attributes:
        standing: the record.
        sick, dead: nodes whose worker fails, and those whose agent does not report.
        orders: the restarts that nodes read.
        acts: moments of the beginnings of repairs, with the node and the entry.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.standing = fleet()
        self.nodes: list[str] = []
        self.ready: dict[str, datetime] = {}
        self.sick: set[str] = set()
        self.dead: set[str] = set()
        self.begun: dict[str, tuple[str, datetime]] = {}
        self.orders: dict[str, str] = {}
        self.rounds: dict[int, Round] = {}
        self.acts: list[tuple[datetime, str, str]] = []
        self.entries: set[str] = set()

    @initialize(size=st.integers(1, 12), share=st.sampled_from(["0.1", "0.3", "1"]), restarts=st.booleans())
    def launch(self, size: int, share: str, restarts: bool) -> None:
        own = Heal(3, RESTART, "restart.sh", Decimal(share)) if restarts else Heal(3, at_most=Decimal(share))
        self.standing = fleet(size, own)
        self.nodes = [f"i-{number:03}" for number in range(size)]
        self.ready = dict.fromkeys(self.nodes, LONG_AGO)

    # The nodes

    @rule(number=st.integers(0, 11), how=st.sampled_from(["sick", "dead", "well"]))
    def change(self, number: int, how: str) -> None:
        node = self.nodes[number % len(self.nodes)]
        self.sick -= {node}
        self.dead -= {node}
        if how != "well":
            (self.sick if how == "sick" else self.dead).add(node)

    @rule()
    def break_all(self) -> None:
        self.sick |= set(self.nodes)

    def _report(self, node: str) -> Report:
        status = Grade.FAIL if node in self.sick else Grade.OK
        repair, at = self.begun.get(node, ("", None))
        checks = (Check("answer", status),)
        return Report(node, self.now, status, 9 if node in self.sick else 0, checks, repair=repair, repaired_at=at)

    def _obey(self) -> None:
        for node, repair in self.orders.items():
            if node in self.nodes and node not in self.dead and self.begun.get(node, ("",))[0] != repair:
                self.begun[node] = (repair, self.now)
                self.acts.append((self.now, node, repair))

    # The checks

    @rule(number=st.integers(0, 2))
    def read(self, number: int) -> None:
        reports = {node: self._report(node) for node in self.nodes if node not in self.dead}
        nodes = seen(self.standing, self.nodes, self.ready, reports, self.now)
        healing = heal(self.standing, nodes, set(self.nodes), self.now)
        self.rounds[number] = Round(self.now, self.standing, frozenset(self.nodes), reports, healing)

    @rule(number=st.integers(0, 2))
    def claim(self, number: int) -> None:
        one = self.rounds.get(number)
        if one is None or one.is_claimed:
            return
        one.is_claimed = True
        if not one.healing.repairs or self.standing.decisions != one.fleet.decisions:
            return
        self.standing = replace(self.standing, repairs=one.healing.on_record, decisions=self.standing.decisions + 1)
        one.fleet = self.standing
        self.entries |= {entry.id for entry in one.healing.repairs}

    @rule(number=st.integers(0, 2))
    def carry_out(self, number: int) -> None:
        one = self.rounds.get(number)
        if one is None or not one.is_claimed:
            return
        for node in to_replace(one.fleet.repairs, one.serving, one.at):
            if node in self.nodes:
                latest = [entry.id for entry in one.fleet.repairs if entry.node == node][-1]
                self.acts.append((self.now, node, latest))
                self.nodes.remove(node)
                new = f"i-new-{len(self.acts)}"
                self.nodes.append(new)
                self.ready[new] = self.now
        self.orders = to_restart(one.fleet.repairs, one.reports, one.at)
        self._obey()

    @rule()
    def crash_after_a_claim(self) -> None:
        """The entries are carried out by a later check, up to a minute later."""
        self.sick |= set(self.nodes)
        self.read(3)
        self.claim(3)
        self.crash(3)

    @rule(number=st.integers(0, 2))
    def crash(self, number: int) -> None:
        self.rounds.pop(number, None)

    @rule(seconds=st.integers(1, 60))
    def wait(self, seconds: int) -> None:
        """The nodes read their orders; the workflow checks at least each minute."""
        self.now += timedelta(seconds=seconds)
        self._obey()
        self.rounds = {number: one for number, one in self.rounds.items() if self.now - one.at <= LONGEST}
        self._check()

    @rule(minutes=st.sampled_from([5, 12, 45, 75]))
    def go_on(self, minutes: int) -> None:
        for _ in range(minutes):
            self.wait(60)

    def _check(self) -> None:
        self.read(9)
        self.claim(9)
        self.carry_out(9)

    # What must hold

    @invariant()
    def no_hour_exceeds_the_limit(self) -> None:
        most = limit(self.standing.heals["workers"], len(self.nodes)) if self.nodes else 0
        moments = [at for at, _, _ in self.acts]
        for at in moments:
            assert sum(at <= other < at + HOUR for other in moments) <= most

    @invariant()
    def each_repair_has_one_entry_and_happens_once(self) -> None:
        entries = [entry for _, _, entry in self.acts]
        assert len(set(entries)) == len(entries)
        assert set(entries) <= self.entries

    def teardown(self) -> None:
        """No repair is lost: a node that goes on failing, and had fewer than three, is repaired."""
        if not self.nodes:
            return
        self.rounds = {}
        before = len(self.acts)
        self.sick, self.dead = set(self.nodes), set()
        self.go_on(90)
        left_alone = {entry.node for entry in self.standing.repairs if entry.number >= 3}
        assert len(self.acts) > before or set(self.nodes) <= left_alone


Overlap.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestOverlap = Overlap.TestCase
