"""Implements the steps of a standing fleet's workflow besides its launch: open, keep and settle it.

Each step can be repeated at any time. The step keep can also run at any other moment, because it uses only the record.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from troop.bench.aws.fleet_record import FleetRecord
from troop.bench.aws.run_table import RunTable
from troop.bench.definition import names, standing
from troop.bench.fleets import standing_backup
from troop.bench.fleets.booting import SETTLED
from troop.bench.flows.fleet_health import FleetHealth, HealthRound
from troop.bench.flows.fleet_view import CELL, FleetView, Reading, standing_of
from troop.bench.flows.fleet_work import FleetWork
from troop.bench.flows.seating import Seating
from troop.bench.living import healing, orders
from troop.bench.measuring import verdicts
from troop.bench.measuring.verdicts import State
from troop.bench.records.record import CellStatus, RunStatus
from troop.shared.errors import RunClosedError

EXPIRED = "its time has expired: expires_after"

LONGEST_EXECUTION = timedelta(hours=6)
"""Time after which an execution starts the next one, because its history is limited."""

DRAIN_WAIT = 20
"""Maximum seconds between two checks while nodes drain: each of them costs money until a check finds that it has."""


@dataclass(frozen=True)
class FleetRound:
    """The result of one check for the workflow: WAITING, AGAIN to continue in another execution, or DONE when the fleet
    is over.

    Attributes:
        wait_seconds: until the next check.
        name: of the fleet.
        withheld: resizes that wait, with the reason, as text.
        health: what the nodes report, and what was done about it.
        failures: what AWS refused; everything else was done, and the next check tries again.
    """

    state: State
    wait_seconds: int = 0
    name: str = ""
    withheld: tuple[str, ...] = ()
    health: HealthRound = field(default_factory=HealthRound)
    failures: tuple[str, ...] = ()


@dataclass(frozen=True)
class FleetSteps:
    """The steps of a standing fleet."""

    runs: RunTable
    record: FleetRecord
    view: FleetView
    health: FleetHealth
    work: FleetWork
    seating: Seating
    clock: Callable[[], datetime]

    def open(self, run: str, execution: str) -> None:
        """Marks the fleet as running.

        Raises:
            RunClosedError: it was closed before.
            MissingRunError: there is no such fleet.
        """
        self.runs.set_running(run, execution)

    def keep(self, run: str, began: datetime | None = None) -> FleetRound:
        """Checks the nodes' health, resizes the groups to the desired sizes, records what exists, and returns when to
        check again.

        Args:
            began: when the execution of the workflow did; None for a call of the API.

        Raises:
            MissingRunError: there is no such fleet.
            ClientError: AWS refused; the next check tries again.
        """
        record, its, now = self.runs.get(run), self.runs.cells.get(run, CELL), self.clock()
        fleet = standing_of(record)
        left = (record.expires_at - now).total_seconds()
        if record.closed_at is not None or left <= 0:
            return FleetRound(State.DONE)
        if its.phase == names.LAUNCH:  # called before anything exists
            return FleetRound(State.WAITING, standing.FIRST_WAIT)
        elapsed = (now - its.phases[names.BOOT]).total_seconds()
        reading = self.view.read(record, now)
        gone = dict.fromkeys(group.role for group in reading.groups if not group.exists)
        if gone and elapsed >= SETTLED:
            reason = f"the Auto Scaling group of the fleet {', '.join(gone)} was deleted"
            self.runs.cells.change(run, CELL, status=CellStatus.FAILED, reason=reason)
            return FleetRound(State.DONE)
        try:
            reading, checked = self.health.check(reading)
            reading, worked = self.work.check(reading)
        except RunClosedError:
            return FleetRound(State.DONE)
        counts = standing.counted(reading.groups, reading.nodes)
        self.record.record_seen(run, counts, checked.digests, now)
        self._order(reading)
        if standing.is_complete(fleet.desired, counts, fleet.backups) and names.STANDING not in its.phases:
            self.runs.cells.change(run, CELL, phase=names.STANDING, at=now)
        wait = standing.wait(elapsed, left)
        if fleet.ranks:
            wait = min(wait, standing_backup.LONGEST_WAIT)  # a replacement waits for its rank
            self.seating.seat(run, CELL, fleet.desired, reading.groups)
        if fleet.watched or not worked.is_settled:
            wait = min(wait, standing_backup.LONGEST_WAIT)
        if reading.fleet.drains:
            wait = min(wait, DRAIN_WAIT)
        state = State.AGAIN if began and is_long(began, now) else State.WAITING
        failures = (*checked.failures, *worked.failures)
        return FleetRound(state, wait, record.name, worked.withheld, checked, failures)

    def _order(self, reading: Reading) -> None:
        """Writes the orders that follow from the record, if they differ from the stored ones. If another check writes
        at the same time, the next check compares again.
        """
        store, key = self.view.store, names.orders_key(reading.run, CELL)
        restarts = healing.to_restart(reading.fleet.repairs, reading.reports, reading.at)
        document = orders.to_document(reading.record.expires_at, reading.fleet.drains, restarts)
        stored, version = store.find_version(key)
        if stored:  # nodes know this end, which never moves back: a slow check has read an old one
            document["expires_at"] = max(document["expires_at"], int(stored["expires_at"]))
        if document != stored:
            store.replace(key, document, version)

    def settle(self, run: str, error: str = "", cause: str = "") -> tuple[RunStatus, str | None]:
        """Returns the fleet's final status, and the reason.

        Args:
            error: with which a step finally failed; "" if none did.
        """
        record, its = self.runs.get(run), self.runs.cells.get(run, CELL)
        if record.closed_at is not None and record.outcome is not None:
            return record.outcome, record.reason
        if its.status is CellStatus.FAILED:
            return RunStatus.FAILED, its.reason
        if error:
            return RunStatus.FAILED, verdicts.error_text(error, cause)
        if self.clock() >= record.expires_at:
            return RunStatus.STOPPED, EXPIRED
        return RunStatus.FAILED, "its workflow ended without a result"


def is_long(began: datetime, now: datetime) -> bool:
    """Checks whether an execution that began then is to start the next one."""
    return now - began >= LONGEST_EXECUTION
