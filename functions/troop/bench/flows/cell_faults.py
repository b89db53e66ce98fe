"""Follows the planned faults of a cell's steps: what its nodes say, and what becomes of hits on units.

A fault that does not happen is a result, so nothing here fails a cell whose step runs once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from troop.bench.aws.cell_store import CellStore
from troop.bench.aws.unit_requests import UnansweredError, UnitRequests
from troop.bench.definition import names
from troop.bench.definition.definition import Benchmark, Step
from troop.bench.definition.planned_fault import PlannedFault
from troop.bench.definition.roster import Roster
from troop.bench.definition.victims import victims
from troop.bench.fleets import doubts
from troop.bench.measuring import node_faults, verdicts
from troop.bench.measuring.barriers import began, is_released
from troop.bench.measuring.failure import DONE, FAILED, Happened
from troop.bench.measuring.node_faults import Carried, Reports
from troop.bench.measuring.verdicts import GRACE, State, Verdict

LATEST = 10
"""Seconds after its moment until which a unit is hit: later, it would be a fault of another moment of the load. Only
the function that hits it knows whether an earlier request, whose answer was lost, was in time.
"""

RECOVERY = 120
"""Seconds after the measured time in which the workflow waits for what becomes of a hit unit."""

POLL = 15
"""Seconds between two looks at an event."""


@dataclass(frozen=True)
class CellFaults:
    """The planned faults of cells."""

    store: CellStore
    requests: UnitRequests
    clock: Callable[[], datetime]

    # On nodes

    def announced(self, run: str, cell: str, benchmark: Benchmark, step: Step) -> dict[str, float]:
        """Returns the nodes that announce a crash, in this step or an earlier one, with the moment from which each may
        be lost, in seconds since 1970.

        A node that crashes because it cannot end a fault makes a step with points fail, so that no later step needs it.
        """
        moments: dict[str, float] = {}
        for one in benchmark.steps:
            is_this = one.name == step.name
            if one.phase.faults and (is_this or one.point is None):
                for node, moment in self._announced_in(run, cell, one).items():
                    moments.setdefault(node, moment)
            if is_this:
                break
        return moments

    def _announced_in(self, run: str, cell: str, step: Step) -> dict[str, float]:
        planned = self._planned(run, cell, step)
        return node_faults.announced(planned, self._reports(run, cell, step, planned)) if planned else {}

    def verdict(self, run: str, cell: str, step: Step, began_at: datetime) -> Verdict | None:
        """Returns WAITING until all nodes have said how their faults went, and INVALID if one failed in a point, whose
        results would look like those of a point with the fault; None if neither is so.
        """
        if not step.phase.faults:
            return None
        planned = self._planned(run, cell, step)
        reports, lost = self._reports(run, cell, step, planned), self._lost(run, cell)
        each = dict(node_faults.all_carried(planned, reports, lost))
        if any(one.unfinished for one in each.values()) and self.clock() < _end(step, began_at, GRACE):
            return Verdict(State.WAITING)
        for number, one in each.items():
            if step.point is not None and one.why is not None:
                fault = step.phase.faults[number - 1].text
                return verdicts.invalid(f"the fault {fault} failed in {step.name}: {verdicts.cut(one.why)}")
        return None

    def _planned(self, run: str, cell: str, step: Step) -> list[dict[str, Any]]:
        document = self.store.read(names.barrier_key(run, cell, step.name))
        return list(document.get("faults", ())) if is_released(document) else []

    def _reports(self, run: str, cell: str, step: Step, planned: list[dict[str, Any]]) -> Reports:
        listed = self.store.listed(names.faults_prefix(run, cell, step.name))
        nodes = {node for fault in planned for node in fault["nodes"]}
        documents = self.store.documents(listed[node] for node in sorted(nodes & listed.keys()))
        return {node: node_faults.parse(node, step.name, document) for node, document in documents}

    def _lost(self, run: str, cell: str) -> frozenset[str]:
        """Returns the nodes that the last check missed."""
        return frozenset(doubts.from_document(self.store.find_document(names.doubts_key(run, cell))))

    # On units

    def hit(self, run: str, cell: str, step: Step, began_at: datetime) -> None:
        """Hits the units whose moment has come, each once, and stores what the answer is. Repeating it changes nothing.

        Args:
            began_at: when the step began.
        """
        for number, fault in enumerate(step.phase.faults, 1):
            due, now = began_at + timedelta(seconds=step.phase.warm_up + fault.at), self.clock()
            if fault.unit is None or now < due or self._answered(run, cell, step, number):
                continue
            answer: dict[str, Any] = {"requested_at": now.timestamp()}
            try:
                answer |= self._request(run, cell, step, number, began_at)
            except UnansweredError as error:
                answer |= _failed(str(error))
            self._store(run, cell, step, number, answer)

    def _request(self, run: str, cell: str, step: Step, number: int, began_at: datetime) -> dict[str, Any]:
        """Requests the hit of a unit. Later it finds out whether an earlier request has claimed an instance."""
        fault, now = step.phase.faults[number - 1], self.clock()
        latest = began_at + timedelta(seconds=step.phase.warm_up + fault.at + LATEST)
        return self.requests.hit(run, cell, step.name, number, str(fault.unit), fault.method, now, latest)

    def is_waiting(self, run: str, cell: str, benchmark: Benchmark) -> bool:
        """Checks whether the recovery of a hit unit may still become known, at most :data:`RECOVERY` seconds after the
        measured time. Stores what is known.
        """
        waiting = False
        for step in _with_units(benchmark):
            began_at = began(self.store.read(names.barrier_key(run, cell, step.name)))
            if self.clock() < _end(step, began_at, RECOVERY):
                waiting = not all([*self._followed(run, cell, step)]) or waiting
        return waiting

    def _followed(self, run: str, cell: str, step: Step) -> Iterator[bool]:
        """Reads the events of a step again, and stores them. Yields for each whether its recovery is known, or over.

        A request without an answer may have claimed an instance, so it is repeated. The first one that fails is the
        last: each can take minutes.
        """
        is_answering = True
        for number, fault in enumerate(step.phase.faults, 1):
            if fault.unit is None or not (answer := self._answered(run, cell, step, number)):
                continue
            event = answer.get("event") or {}
            if is_answering and not event.get("over") and (event or answer["outcome"] == FAILED):
                try:
                    newer = self._again(run, cell, step, number, event.get("event_id"))
                except UnansweredError:
                    is_answering = False
                else:
                    if event := newer["event"] or {}:
                        self._store(run, cell, step, number, {**answer, **newer})
            yield not event or bool(event.get("over")) or event.get("recovery_seconds") is not None

    def _again(self, run: str, cell: str, step: Step, number: int, event_id: str | None) -> dict[str, Any]:
        if event_id is not None:
            return self.requests.read(event_id)
        return self._request(run, cell, step, number, began(self.store.read(names.barrier_key(run, cell, step.name))))

    def _answered(self, run: str, cell: str, step: Step, number: int) -> dict[str, Any] | None:
        document: dict[str, Any] | None = self.store.find_document(names.unit_fault_key(run, cell, step.name, number))
        return document

    def _store(self, run: str, cell: str, step: Step, number: int, answer: Mapping[str, Any]) -> None:
        self.store.write(names.unit_fault_key(run, cell, step.name, number), answer)

    # Results

    def happened(self, run: str, cell: str, step: Step, roster: Roster) -> list[Happened]:
        """Returns what became of the faults of a step, in the order of the file."""
        for _ in self._followed(run, cell, step):
            pass
        planned = self._planned(run, cell, step)
        reports, lost = self._reports(run, cell, step, planned), self._lost(run, cell)
        each = dict(node_faults.all_carried(planned, reports, lost))
        return [
            self._to_unit(run, cell, step, number, fault)
            if fault.unit is not None
            else _to_nodes(number, fault, each[number], step, roster)
            for number, fault in enumerate(step.phase.faults, 1)
        ]

    def _to_unit(self, run: str, cell: str, step: Step, number: int, fault: PlannedFault) -> Happened:
        answer = self._answered(run, cell, step, number) or _failed("the workflow did not ask")
        event = answer.get("event")
        return Happened(
            number,
            fault,
            fault.text,
            requested_at=answer.get("requested_at"),
            began_at=event["hit_at"] if event else None,
            outcome=answer["outcome"],
            why=answer.get("why"),
            event=event,
        )


def _to_nodes(number: int, fault: PlannedFault, carried: Carried, step: Step, roster: Roster) -> Happened:
    own = [carried.nodes.get(one.id) for one in victims(fault, roster, step.phase)]
    began = [one.began_at for one in own if one and one.began_at is not None]
    ended = [one.ended_at for one in own if one and one.ended_at is not None]
    return Happened(
        number,
        fault,
        fault.text,
        nodes=tuple(
            {
                "id": member.id,
                "role": member.role,
                "rank": member.rank,
                "zone": member.zone,
                "began_at": one.began_at if one else None,
                "ended_at": one.ended_at if one else None,
            }
            for member, one in zip(victims(fault, roster, step.phase), own, strict=True)
        ),
        candidates=sum(one.role not in step.phase.roles and fault.role in (None, one.role) for one in roster.members),
        began_at=min(began, default=None),
        ended_at=max(ended, default=None),
        outcome=DONE if carried.why is None else FAILED,
        why=carried.why,
    )


def _end(step: Step, began_at: datetime, later: int) -> datetime:
    """Returns the end of a step's measured time, so many seconds later."""
    return began_at + timedelta(seconds=step.phase.warm_up + step.phase.measured + later)


def _failed(why: str) -> dict[str, Any]:
    return {"outcome": FAILED, "why": why, "event": None}


def _with_units(benchmark: Benchmark) -> list[Step]:
    return [step for step in benchmark.steps if any(fault.unit is not None for fault in step.phase.faults)]
