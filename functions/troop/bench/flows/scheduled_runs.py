"""Schedules runs of benchmarks, and starts them: each start passes the same admission as a request, and a budget of its
own.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from troop.bench.admission.units import units_of
from troop.bench.aws.stored_schedules import RefusedExpressionError, ScheduleGroup, ScheduleRequests, ScheduleStates
from troop.bench.definition.money import shown
from troop.bench.definition.problems import BadBenchmarkError
from troop.bench.file.read import read_all
from troop.bench.flows.run_service import BucketError, OtherRunError, RunService
from troop.bench.records.next_start import next_start
from troop.bench.records.record import Expected
from troop.bench.records.schedule import Schedule, check_expression, check_name, check_zone
from troop.shared import moments
from troop.shared.errors import TroopError
from troop.shared.malformed import Malformed, MalformedItemError, read
from troop.shared.values import BadValue

_LONGEST_REFUSAL = 1000
_LATEST = timedelta(days=1)
"""The most time between the moment of a start and now: much longer than the scheduler tries to deliver it."""


class BadScheduleError(TroopError):
    """The name, the expression or the time zone of a schedule cannot be used."""


class ScheduleExistsError(TroopError):
    """There is a schedule of this name with another content."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is another schedule {name!r}: remove it first, or choose another name")


class MissingScheduleError(TroopError):
    """There is no schedule of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no schedule {name!r}: GET /benchmarks/schedules lists them")


class RefusedStartError(TroopError):
    """Schedules are off, or the month's budget does not suffice."""


@dataclass(frozen=True)
class Listing:
    """All schedules.

    Attributes:
        schedules: each with its next start.
        off: whether the switch stops all of them.
        month: such as 2027-01, in UTC.
        cost: the worst cases of all runs that schedules have started in this month; None if it cannot be read.
        budget: for them; None for no limit.
        malformed: schedules that cannot be read.
    """

    schedules: Sequence[tuple[Schedule, datetime | None]]
    off: bool
    month: str
    cost: Decimal | None
    budget: Decimal | None
    malformed: Sequence[Malformed] = ()


@dataclass(frozen=True)
class Outcome:
    """What a start has done. Both are None if the schedule was removed meanwhile."""

    run: str | None = None
    refusal: str | None = None


@dataclass(frozen=True)
class ScheduledStarts:
    """Starts runs for schedules.

    Attributes:
        clock: returns the current moment, aware.
    """

    runs: RunService
    states: ScheduleStates
    requests: ScheduleRequests
    clock: Callable[[], datetime]

    def start(self, name: str, digest: str, scheduled: datetime) -> Outcome:
        """Starts a run for a schedule, and records the outcome. A repeated start returns the same run.

        Args:
            digest: of the schedule that called; another schedule of this name starts nothing.
            scheduled: when it was to start, as the caller says. One that is more than a day away starts and records
                nothing.

        Raises:
            ClientError: AWS refused; a retry is safe.
        """
        schedule = self.states.find(name)
        if schedule is None or schedule.digest != digest:
            return Outcome()
        if abs(scheduled - self.clock()) > _LATEST:
            return Outcome(refusal=f"the start of {moments.iso(scheduled)} is more than a day away")
        try:
            outcome = Outcome(run=self._started(schedule, scheduled))
        except (BadBenchmarkError, BucketError, OtherRunError, RefusedStartError) as refused:
            outcome = Outcome(refusal=str(refused)[:_LONGEST_REFUSAL])
        except Exception as error:
            self.states.record(schedule, scheduled, None, f"the start failed: {error}"[:_LONGEST_REFUSAL])
            raise
        self.states.record(schedule, scheduled, outcome.run, outcome.refusal)
        return outcome

    def _started(self, schedule: Schedule, scheduled: datetime) -> str:
        request = self.requests.get(schedule.name, schedule.digest)
        files = _files(request)
        read = read_all(request["definition"], files, request["size"], request["set"])
        key = f"schedule/{schedule.name}/{schedule.digest[:16]}/{scheduled:%Y-%m-%dT%H:%M:%SZ}"

        def approve(cost: Expected) -> None:  # of a new run only: a repeated start returns its run
            if self.states.off():
                raise RefusedStartError("all schedules are switched off: `troop schedules on` switches them on")
            month, budget = _month(max(scheduled, self.clock())), self._budget
            if not self.states.count(key, month, cost.most, budget, self.clock()):
                raise RefusedStartError(_beyond(cost, budget or Decimal(0), self.states.cost(month), month))

        caller = f"{schedule.created_by} (schedule {schedule.name})"
        return self.runs.admit(read.benchmark, read.plan, files, key, caller, approve).run.run

    @property
    def _budget(self) -> Decimal | None:
        budget = self.runs.settings.max_scheduled_cost
        return None if budget is None else Decimal(str(budget))


@dataclass(frozen=True)
class ScheduledRuns(ScheduledStarts):
    """Creates, lists and removes schedules.

    Attributes:
        group: where they are in EventBridge Scheduler.
    """

    group: ScheduleGroup

    def create(
        self,
        name: str,
        expression: str,
        time_zone: str,
        request: Mapping[str, Any],
        caller: str,
        approve: Callable[[Sequence[str]], None],
    ) -> tuple[Schedule, bool]:
        """Creates a schedule, or completes one whose creation was interrupted. Starts nothing.

        Args:
            request: the body of a request to run, without its key.
            caller: ARN of the caller.
            approve: checks whether the caller may schedule a benchmark that hits these units; raises an error to
                refuse it. Starts need no other approval.

        Returns:
            The schedule, and whether it existed already.

        Raises:
            BadScheduleError: the name, the expression or the time zone cannot be used.
            ScheduleExistsError: there is another schedule of this name.
            TooManySchedulesError: there are too many.
            BadBenchmarkError: the benchmark cannot run, or its worst case exceeds the budget.
            BucketError: it reads a bucket that is not allowed.
        """
        now = self.clock()
        _check("name", name, lambda: check_name(name))
        _check("time_zone", time_zone, lambda: check_zone(time_zone))
        digest = _digest(expression, time_zone, request)
        earlier = self.states.find(name)
        if earlier is not None and earlier.digest != digest:
            raise ScheduleExistsError(name)
        if earlier is not None:
            self.requests.put(name, digest, request)
            self.group.create(earlier, next_start(earlier, now))
            return earlier, True
        _check("expression", expression, lambda: check_expression(expression, time_zone, now))
        read = read_all(request["definition"], _files(request), request["size"], request["set"])
        judged = self.runs.estimate(read.benchmark, read.plan)
        if judged.problems:
            raise BadBenchmarkError(judged.problems)
        approve(units_of(read.plan))
        cost = judged.expected
        budget = self._budget
        if budget is not None and cost.most > budget:
            raise BadScheduleError(_beyond(cost, budget, Decimal(0), "a month"))
        schedule = Schedule(
            name=name,
            expression=expression,
            time_zone=time_zone,
            digest=digest,
            benchmark=read.benchmark.name,
            size=request["size"],
            expected=cost.expected,
            most=cost.most,
            currency=cost.currency,
            created_at=now,
            created_by=caller,
        )
        self.requests.put(name, digest, request)
        if not self.states.create(schedule):
            raise ScheduleExistsError(name)
        try:
            self.group.create(schedule, next_start(schedule, now))
        except RefusedExpressionError as refused:
            self.delete(name)
            raise BadScheduleError(
                f"expression is {expression!r}: EventBridge Scheduler refuses it: {refused}"
            ) from None
        return schedule, False

    def delete(self, name: str) -> Schedule:
        """Removes a schedule; its runs stay.

        Raises:
            MissingScheduleError: there is none of this name.
        """
        schedule = self.states.find(name)
        if schedule is None:
            raise MissingScheduleError(name)
        # The record goes last, so that an interrupted removal can be repeated.
        self.group.delete(name)
        self.requests.delete(name, schedule.digest)
        self.states.delete(name, self.clock())
        return schedule

    def list(self) -> Listing:
        """Returns all schedules, and the month's cost. Costs 3 items and 1 for each schedule."""
        now = self.clock()
        month, off = _month(now), self.states.off()
        stored = self.states.all()
        every = read(
            stored.items, lambda one: (one, None if off else next_start(one, now)), lambda one: f"State: {one.name}"
        )
        malformed, cost = (*stored.malformed, *every.malformed), None
        try:
            cost = self.states.cost(month)
        except MalformedItemError as error:
            malformed = (*malformed, error.malformed)
        return Listing(every.items, off, month, cost, self._budget, malformed)

    def next_start(self, schedule: Schedule) -> datetime | None:
        """Returns the next start of a schedule; None if there is none, or while all are switched off. Costs 1 item."""
        return None if self.states.off() else next_start(schedule, self.clock())


def _beyond(cost: Expected, budget: Decimal, spent: Decimal, month: str) -> str:
    currency = cost.currency
    return (
        f"a run can cost {shown(cost.most, currency)}; scheduled runs have counted {shown(spent, currency)} of the "
        f"{shown(budget, currency)} for {month} that the deployment's setting troop:max_scheduled_cost allows"
    )


def _check(key: str, value: str, check: Callable[[], None]) -> None:
    try:
        check()
    except BadValue as bad:
        raise BadScheduleError(f"{key} is {value!r}: must be {bad}") from None


def _month(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m}"


def _files(request: Mapping[str, Any]) -> dict[str, bytes]:
    return {name: base64.b64decode(content) for name, content in request["files"].items()}


def _digest(expression: str, time_zone: str, request: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps([expression, time_zone, request], sort_keys=True).encode()).hexdigest()
