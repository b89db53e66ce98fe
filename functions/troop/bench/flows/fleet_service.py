"""Implements standing fleets for the API: started once for each key, resized, and removed permanently.

Everything but resizing is shared with runs of benchmarks, and uses their code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from troop.bench.admission import spending
from troop.bench.admission.spending import Bought
from troop.bench.aws.fleet_record import FleetRecord
from troop.bench.aws.function_calls import FleetCalls
from troop.bench.definition import names, standing
from troop.bench.definition.limits import no_room
from troop.bench.definition.problems import BadBenchmarkError, Problem
from troop.bench.definition.roster import Node
from troop.bench.definition.standing import GroupStatus, Standing
from troop.bench.flows.fleet_view import CELL, FleetView, standing_of
from troop.bench.flows.run_service import RunService
from troop.bench.money.costs import Cost
from troop.bench.records.record import Cell, Resource, Run
from troop.shared.errors import TroopError
from troop.shared.malformed import Malformed

TRIES = 5
"""Number of tries of a resize while others change the size at the same time."""


class FleetOverError(TroopError):
    """The fleet accepts no more changes."""

    def __init__(self, record: Run) -> None:
        how = "has ended" if record.ended_at else "is being removed"
        super().__init__(f"the fleet {record.run} {how}: start another one")


class ScaledAtOnceError(TroopError):
    """Other callers keep changing the size."""

    def __init__(self, run: str) -> None:
        super().__init__(f"others are scaling the fleet {run} at the same time: check its size, then try again")


@dataclass(frozen=True)
class FleetDetail:
    """The full view of a fleet.

    Attributes:
        at: when it was read.
        groups: as they were at that time; empty before the launch and after the end.
        nodes: the registrations of their instances, by id.
        refusals: why missing nodes could not be launched, newest first, by what should have launched them: the role,
            or ``workers on spot`` and ``workers on demand`` of a role with a backup.
        resources: in the order of their creation.
        cost_so_far: of a fleet that has not ended; None if unknown.
        bought: its nodes so far, by role and purchase; empty if unknown.
        malformed: resources and terms that cannot be read. The costs are then unknown.
    """

    run: Run
    cell: Cell
    at: datetime
    groups: list[GroupStatus]
    nodes: Mapping[str, Node]
    refusals: Mapping[str, tuple[str, ...]]
    resources: list[Resource]
    cost_so_far: Cost | None = None
    bought: tuple[Bought, ...] = ()
    malformed: tuple[Malformed, ...] = ()


@dataclass(frozen=True)
class FleetService:
    """What the API does with fleets.

    Attributes:
        every: admits, lists and removes fleets.
        calls: calls the function that maintains fleets.
        clock: returns the current moment, aware.
    """

    every: RunService
    record: FleetRecord
    reader: FleetView
    calls: FleetCalls
    clock: Callable[[], datetime]

    def scale(self, run: str, role: str | None, count: int, caller: str) -> Run:
        """Changes how many nodes a fleet should have, and starts the change at once. Repeating it changes nothing.

        Args:
            role: the role to resize; None if the fleet has only one.
            caller: ARN of the caller.

        Raises:
            MissingRunError: there is no such fleet.
            FleetOverError: it is closed.
            BadBenchmarkError: there is no such role, it keeps its size, or there would be too many nodes: for the
                deployment's limits, beside other runs, or for the fleet's budget. It names all of these.
            ScaledAtOnceError: all tries met changes by others.
            ClientError: AWS refused; a retry is safe.
        """
        for _ in range(TRIES):
            record = self.every.get(run)
            fleet = standing_of(record)
            now = self.clock()
            if record.closed_at is not None or now >= record.expires_at:
                raise FleetOverError(record)
            desired, most = standing.scaled(fleet, role, count), self.every.settings.max_nodes_total
            self._hold_limits(record, fleet, desired, now)
            if desired == fleet.desired or self.record.scale(
                run, fleet.desired, desired, caller, now, most, fleet.backups
            ):
                self.calls.keep(run)
                return self.every.get(run)
        raise ScaledAtOnceError(run)

    def _hold_limits(self, record: Run, fleet: Standing, desired: Mapping[str, int], now: datetime) -> None:
        """Raises BadBenchmarkError with all limits that the size exceeds. If it exceeds only that of all runs together,
        the change itself is refused, because it depends on the others at that moment.
        """
        settings, nodes = self.every.settings, standing.reserved(desired, fleet.backups)
        problems = [
            standing.too_many(fleet.desired, desired, settings.max_nodes, fleet.backups),
            self._too_expensive(record, fleet.desired, desired, now),
        ]
        if not any(problems):
            return
        others = self.every.runs.reservations.read().others(record.run)
        if nodes > standing.reserved(fleet.desired, fleet.backups):
            problems.append(no_room(("count",), nodes, others, settings.max_nodes_total))
        raise BadBenchmarkError([problem for problem in problems if problem is not None])

    def _too_expensive(
        self, record: Run, before: Mapping[str, int], desired: Mapping[str, int], now: datetime
    ) -> Problem | None:
        """Returns a problem if a role would grow beyond what the limit can pay for until the end; None otherwise."""
        role = next((name for name, count in desired.items() if count > before[name]), None)
        if role is None:
            return None
        runs = self.every.runs
        terms = runs.terms(record.run)
        if terms is None or terms.limit is None:
            return None
        spent = spending.actual(terms, runs.cells.get_all(record.run), runs.resources.get_all(record.run), now).amount
        left = (record.expires_at - now).total_seconds()
        return spending.too_many_nodes(terms, desired, role, spent, left)

    def view(self, run: str) -> FleetDetail:
        """Reads a fleet as it is now.

        Raises:
            MissingRunError: there is no such fleet.
            MalformedItemError: its cell cannot be read.
            ClientError: AWS refused.
        """
        view = self.every.view(run)
        cell = self.every.runs.cells.get(run, CELL) if not view.cells else view.cells[0]
        groups: list[GroupStatus] = []
        nodes: Mapping[str, Node] = {}
        fleet = standing_of(view.run)
        if cell.phase != names.LAUNCH and view.run.ended_at is None:
            groups, nodes = self.reader.describe(run, fleet)
        missing = [group for group in groups if group.exists and group.in_service < _size(group, fleet)]
        refusals = {_launcher(one, fleet): self.reader.groups.refusals(run, CELL, one) for one in missing}
        resources = view.resources or []
        return FleetDetail(
            view.run,
            cell,
            self.clock(),
            groups,
            nodes,
            refusals,
            resources,
            view.cost_so_far,
            view.bought,
            view.malformed,
        )


def _size(group: GroupStatus, fleet: Standing) -> int:
    return group.desired if group.role in fleet.backups else fleet.desired[group.role]


def _launcher(group: GroupStatus, fleet: Standing) -> str:
    if group.role not in fleet.backups:
        return group.role
    return f"{group.role} on {'demand' if group.is_backup else 'spot'}"
