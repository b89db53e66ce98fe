"""Implements standing fleets for the API: started once for each key, resized, extended, given work, and removed
permanently.

Starting and removing is shared with runs of benchmarks, and uses their code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from botocore.exceptions import ClientError

from troop.bench.admission.spending import Bought
from troop.bench.aws.fleet_record import FleetRecord
from troop.bench.aws.function_calls import FleetCalls
from troop.bench.aws.work_queues import MISSING, RefusedTask, WorkQueues
from troop.bench.aws.work_results import ResultPage, WorkResults
from troop.bench.definition import names, standing
from troop.bench.definition.limits import setting
from troop.bench.definition.problems import BadBenchmarkError, Problem
from troop.bench.definition.roster import Node
from troop.bench.definition.standing import GroupStatus, Standing
from troop.bench.fleets.queue_requests import Task
from troop.bench.flows.fleet_limits import FleetLimits
from troop.bench.flows.fleet_view import CELL, FleetView, standing_of
from troop.bench.flows.run_service import RunService
from troop.bench.money.costs import Cost
from troop.bench.records.record import Cell, Resource, Run
from troop.shared import moments
from troop.shared.errors import TroopError
from troop.shared.malformed import Malformed

TRIES = 5
"""Number of tries of a change while others change the same at the same time."""

LEAST_LEFT = timedelta(minutes=3)
"""Time before the end of a fleet in which it cannot be extended any more: groups and nodes must learn of it in time."""

LONGEST_EXTENSION = timedelta(days=7)
"""Time from now to the latest end that one request can set: the largest ``expires_after`` of a file."""

CHECKS_APART = timedelta(seconds=5)
"""Time after a check, or after they have woken a fleet, within which submitted tasks wake it no more: its next check
counts them, too. Many callers at a time would otherwise start as many checks.
"""


class FleetOverError(TroopError):
    """The fleet accepts no more changes."""

    def __init__(self, record: Run) -> None:
        how = "has ended" if record.ended_at else "is being removed" if record.closed_at else "has expired"
        super().__init__(f"the fleet {record.run} {how}: start another one")


class ScaledAtOnceError(TroopError):
    """Other callers, or the fleet itself, keep changing the size or the end."""

    def __init__(self, run: str) -> None:
        super().__init__(f"others are changing the fleet {run} at the same time: check its size, then try again")


class NoQueueError(TroopError):
    """The fleet takes no tasks."""


@dataclass(frozen=True)
class Submitted:
    """What became of submitted tasks.

    Attributes:
        sent: number of those that the queue has accepted.
        total: tasks that it has accepted since the fleet's launch.
    """

    sent: int
    refused: Sequence[RefusedTask]
    total: int


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
        queues: of their tasks.
        stored: the results of their tasks.
        clock: returns the current moment, aware.
    """

    every: RunService
    record: FleetRecord
    reader: FleetView
    calls: FleetCalls
    queues: WorkQueues
    stored: WorkResults
    clock: Callable[[], datetime]

    def scale(self, run: str, role: str | None, count: int, caller: str) -> Run:
        """Changes how many nodes a fleet should have, and starts the change at once. Repeating it changes nothing.

        Args:
            role: the role to resize; None if the fleet has only one.
            caller: ARN of the caller.

        Raises:
            MissingRunError: there is no such fleet.
            FleetOverError: it is closed.
            BadBenchmarkError: there is no such role, it keeps its size or follows its backlog, or there would be too
                many nodes: for the deployment's limits, beside other runs, or for the fleet's budget. It names all of
                these.
            ScaledAtOnceError: all tries met changes by others.
            ClientError: AWS refused; a retry is safe.
        """
        for _ in range(TRIES):
            record, fleet, now = self._open(run)
            desired, most = standing.scaled(fleet, role, count), self.every.settings.max_nodes_total
            if problems := self._limits.problems(record, fleet, desired, now):
                raise BadBenchmarkError(problems)
            if desired == fleet.desired or self.record.scale(run, fleet, desired, caller, now, most):
                self.calls.keep(run)
                return self.every.get(run)
        raise ScaledAtOnceError(run)

    def extend(self, run: str, expires_at: datetime) -> Run:
        """Moves the end of a fleet to a later moment, and begins to move that of its groups. Repeating it changes
        nothing.

        Raises:
            MissingRunError: there is no such fleet.
            FleetOverError: it is closed, or has expired.
            BadBenchmarkError: the moment is earlier than the end so far, that is too near or fixed, the moment is too
                late, or the fleet's budget does not pay for the time.
            ScaledAtOnceError: all tries met changes by others.
            ClientError: AWS refused; a retry is safe.
        """
        for _ in range(TRIES):
            record, fleet, now = self._open(run)
            if expires_at != record.expires_at:
                self._hold_end(record, fleet, expires_at, now)
            if expires_at == record.expires_at or self.record.extend(run, record.expires_at, expires_at):
                self.calls.keep(run)
                return self.every.get(run)
        raise ScaledAtOnceError(run)

    def _hold_end(self, record: Run, fleet: Standing, expires_at: datetime, now: datetime) -> None:
        """Raises BadBenchmarkError if a fleet must not live until this moment."""
        if expires_at < record.expires_at:
            end = moments.second(record.expires_at)
            allowed = f"{end} or later: the end of a fleet only moves later; to end it now, remove it"
            raise BadBenchmarkError([Problem(("expires_at",), f"is {moments.second(expires_at)}", allowed)])
        if not fleet.extends or record.expires_at - now < LEAST_LEFT:
            end = moments.second(record.expires_at)
            why = "is too near" if fleet.extends else "is known to its nodes, which an earlier version has launched"
            allowed = f"{end}: this end {why}. Start another fleet"
            raise BadBenchmarkError([Problem(("expires_at",), f"is {moments.second(expires_at)}", allowed)])
        latest, why = self._latest_end(record, now)
        if expires_at > latest:
            allowed = f"{moments.second(latest)} or earlier: {why}"
            raise BadBenchmarkError([Problem(("expires_at",), f"is {moments.second(expires_at)}", allowed)])
        budget = self._limits.budget(record, expires_at, now)
        if budget and (problem := budget.too_long(fleet.desired)):
            raise BadBenchmarkError([problem])

    def _latest_end(self, record: Run, now: datetime) -> tuple[datetime, str]:
        """Returns the latest end that a fleet can have at this moment, and why it can have no later one."""
        days = self.every.settings.results_retention_days
        latest, stored = now + LONGEST_EXTENSION, record.at + timedelta(days=days - 1)
        if latest < stored:
            return latest, f"at most {LONGEST_EXTENSION.days} days from now; extend it again before that"
        return stored, (
            f"the deployment's setting troop:results_retention_days is {days}, and S3 deletes what new nodes need so "
            "many days after the fleet's start"
        )

    def submit(self, run: str, tasks: Sequence[Task]) -> Submitted:
        """Sends tasks to a fleet's queue, and wakes a fleet that follows its backlog. A repeated request sends them
        again: of the results of one task, the first stands.

        Raises:
            MissingRunError: there is no such fleet.
            FleetOverError: it is closed, or has expired.
            NoQueueError: it has no queue, none yet, or none any more, or the deployment may not use it.
            ClientError: AWS refused all of them.
        """
        _, fleet, now = self._open(run)
        problem, remedy = setting("queues", "false", "true"), "set queue in its file, and start another fleet"
        if not self.every.settings.queues:
            also = "" if fleet.queue else f". Then {remedy}"
            raise NoQueueError(f"the fleet {run} takes no tasks: {problem}{also}")
        if fleet.queue is None:
            raise NoQueueError(f"the fleet {run} has no queue: {remedy}")
        try:
            refused = self.queues.send(run, CELL, tasks)
        except ClientError as error:
            if error.response["Error"]["Code"] not in MISSING:
                raise
            if fleet.seen_at is None:
                raise NoQueueError(f"{run} has no queue yet: try again when the fleet has started") from error
            raise NoQueueError(f"the queue of {run} is gone: remove the fleet, and start another one") from error
        if sent := len(tasks) - len(refused):
            self.record.count_submitted(run, sent)
            is_due = fleet.scales and (fleet.seen_at is None or now - fleet.seen_at >= CHECKS_APART)
            if is_due and self.record.wake(run, now - CHECKS_APART, now):
                self.calls.keep(run)
        return Submitted(sent, refused, standing_of(self.every.get(run)).submitted)

    def results(self, run: str, after: str | None) -> ResultPage:
        """Returns a page of the results of a fleet's tasks, also of one that has ended.

        Args:
            after: id of the last task of the page before; None for the first page.

        Raises:
            MissingRunError: there is no such fleet.
            ClientError: S3 refused.
        """
        self.every.get(run)
        return self.stored.page(run, after)

    @property
    def _limits(self) -> FleetLimits:
        return FleetLimits(self.every.runs, self.every.settings)

    def _open(self, run: str) -> tuple[Run, Standing, datetime]:
        """Reads a fleet that accepts changes.

        Raises:
            MissingRunError: there is no such fleet.
            FleetOverError: it is closed, or has expired.
        """
        record = self.every.get(run)
        now = self.clock()
        if record.closed_at is not None or now >= record.expires_at:
            raise FleetOverError(record)
        return record, standing_of(record), now

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
