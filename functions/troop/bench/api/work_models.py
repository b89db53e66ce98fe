"""Defines the requests and answers about the work and the health of standing fleets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel, Field, StrictInt, StringConstraints, model_validator

from troop.bench.aws.work_results import PAGE
from troop.bench.definition.living import AGED, Grade, MergedCheck, RoleDigest
from troop.bench.definition.money import rounded
from troop.bench.definition.standing import Standing
from troop.bench.fleets.queue_requests import LONGEST_TASK, LONGEST_TASKS, MOST_TASKS, TASK_ID, TASK_KEY, Task
from troop.bench.living.scaling import done_an_hour
from troop.bench.money.costs import Cost
from troop.shared.api.models import In, Moment, Out

MOST_REPAIRS = 20
"""The most repairs in one answer, newest first."""

MOST_CHECKS = 5
"""The most checks of each role in a list of fleets: those that do not pass."""

_HOUR = timedelta(hours=1)


class TaskIn(In):
    """A task for the workers of a fleet."""

    id: Annotated[str, StringConstraints(pattern=f"^{TASK_ID}$")] | None = Field(
        None, description="Its id, which names its result; null: the key and its number"
    )
    body: str = Field(description=f"What workers get; at most {LONGEST_TASK:,} bytes")


class TasksIn(In):
    """Tasks to submit. A repeated request submits them again: of the results of one task, the first stands."""

    tasks: list[TaskIn] = Field(
        min_length=1,
        max_length=MOST_TASKS,
        description=f"The bodies can have at most {LONGEST_TASKS:,} bytes together",
    )
    key: Annotated[str, StringConstraints(pattern=f"^{TASK_KEY}$")] = Field(
        description="The beginning of the ids of tasks without one"
    )
    first: StrictInt = Field(1, ge=0, le=10**9, description="The number of the first of these tasks, for such ids")

    @model_validator(mode="after")
    def _bounded(self) -> TasksIn:
        sizes = [len(task.body.encode(errors="replace")) for task in self.tasks]
        if (largest := max(sizes)) > LONGEST_TASK:
            raise ValueError(
                f"the body of task {sizes.index(largest)} has {largest:,} bytes: at most {LONGEST_TASK:,} are allowed; "
                "store it in a bucket, and submit its key"
            )
        if sum(sizes) > LONGEST_TASKS:
            raise ValueError(f"the bodies have {sum(sizes):,} bytes together: submit at most {LONGEST_TASKS:,} at once")
        seen = set[str]()
        for task in self.named():
            if task.id in seen:
                raise ValueError(f"two tasks have the id {task.id}: only one result of an id stands")
            seen.add(task.id)
        return self

    def named(self) -> list[Task]:
        """Returns the tasks, each with an id."""
        return [
            Task(task.id if task.id is not None else f"{self.key}-{number:06}", task.body)
            for number, task in enumerate(self.tasks, self.first)
        ]


class RefusedTaskOut(Out):
    """A task that is not on the queue."""

    id: str
    problem: str


class SubmittedOut(BaseModel):
    """What became of submitted tasks."""

    sent: int = Field(description="The number of these tasks that are on the queue")
    refused: list[RefusedTaskOut] = Field(description="The others, with the reason: submit them again")
    submitted: int = Field(description="The tasks that the queue has accepted since the fleet's launch")


class ResultOut(Out):
    """The result of a task."""

    id: str = Field(description="The id of the task")
    size: int = Field(description="In bytes")
    at: Moment = Field(description="When it was delivered")
    url: str = Field(description="An address that returns it, for an hour, or as long as the API's own credentials")


class ResultsOut(BaseModel):
    """A page of results, by the ids of their tasks."""

    results: list[ResultOut] = Field(description=f"At most {PAGE:,}")
    cursor: str | None = Field(description="Pass it to get the next page; null on the last page")


class CheckOut(Out):
    """One check of a role, over all of its nodes."""

    name: str
    status: Grade = Field(description="The worst")
    nodes: int = Field(description="The number of nodes with this status")
    node_ids: list[str] = Field(description="Some of these nodes")
    value: float | None = Field(description="The worst of these nodes; null if the check has no number")
    threshold: float | None
    detail: str
    todo: str = Field(description="What to do about it")
    actionable: bool = Field(description="Whether somebody must act now if it fails")


class RoleHealthOut(BaseModel):
    """The health of one role: its nodes by the worst of their checks."""

    role: str
    ok: int
    warn: int
    fail: int
    silent: int = Field(description="Ready nodes without a current report; they count as failing")
    draining: int = Field(description="Nodes that take no more tasks")
    new: int = Field(description="Nodes whose failures do not count yet")
    checks: list[CheckOut] = Field(description="The worst first")


class WorkOut(BaseModel):
    """The tasks of a fleet. SQS counts approximately."""

    at: Moment
    submitted: int = Field(description="Accepted since the fleet's launch")
    done: int = Field(
        description="Accepted tasks that are neither on the queue nor dead letters; tasks that SQS deleted after 14 "
        "days count, too, and dead letters that expired or were deleted"
    )
    waiting: int
    in_work: int = Field(description="Leased by workers")
    dead: int = Field(
        description="Dead letters: tasks that were leased as often as tries allows; each lease counts, also if "
        "the node was lost"
    )
    oldest_seconds: int | None = Field(description="The age of the oldest task; null if unknown, and without any")
    may_lack_tasks: bool = Field(
        description=f"Whether a task has waited for more than {AGED.days} days, so that SQS may have deleted some; "
        "then done is doubtful, and done_an_hour and cost_per_job stay null"
    )
    done_an_hour: float | None = Field(description="Within the last hour; null for less than 5 minutes")
    cost_per_job: float | None = Field(
        description="The fleet's cost so far for each task that is done; null if unknown, and in lists"
    )


class RepairOut(Out):
    """A repair of a node."""

    at: Moment
    node: str
    role: str
    do: str = Field(description="restart or replace")
    number: int = Field(description="Of the repairs of this node, from 1")
    reason: str


class WithheldOut(BaseModel):
    """Why a role has fewer nodes than its work needs."""

    role: str
    reason: str


def health_of(fleet: Standing, *, short: bool = False) -> list[RoleHealthOut]:
    """Returns the health of each role.

    Args:
        short: whether to leave out the checks that pass, and all but some of the others.
    """
    return [_health(role, digest, short=short) for role, digest in fleet.digest.items()]


def _health(role: str, digest: RoleDigest, *, short: bool) -> RoleHealthOut:
    checks: Iterable[MergedCheck] = digest.checks
    if short:
        checks = [check for check in checks if check.status is not Grade.OK][:MOST_CHECKS]
    return RoleHealthOut(
        role=role,
        ok=digest.ok,
        warn=digest.warn,
        fail=digest.fail,
        silent=digest.silent,
        draining=digest.draining,
        new=digest.new,
        checks=[CheckOut.model_validate(check) for check in checks],
    )


def work_of(fleet: Standing, cost: Cost | None = None) -> WorkOut | None:
    """Returns the tasks of a fleet; None without a queue, and before they were first counted.

    Args:
        cost: of the fleet so far.
    """
    work = fleet.work
    if work is None:
        return None
    is_known = work.done > 0 and not fleet.may_lack_tasks
    return WorkOut(
        at=work.at,
        submitted=max(fleet.submitted, work.submitted),
        done=work.done,
        waiting=work.waiting,
        in_work=work.in_work,
        dead=work.dead,
        oldest_seconds=work.oldest_seconds,
        may_lack_tasks=fleet.may_lack_tasks,
        done_an_hour=None if fleet.may_lack_tasks else done_an_hour(fleet.samples, work),
        cost_per_job=float(rounded(cost.amount / work.done)) if is_known and cost is not None else None,
    )


def repairs_of(fleet: Standing) -> list[RepairOut]:
    """Returns the latest repairs, newest first."""
    return [RepairOut.model_validate(one) for one in reversed(fleet.repairs[-MOST_REPAIRS:])]


def repaired(fleet: Standing) -> int:
    """Returns the number of repairs in the hour before the last check."""
    return sum(fleet.seen_at is not None and fleet.seen_at - one.at <= _HOUR for one in fleet.repairs)


def withheld_of(withheld: Mapping[str, str]) -> list[WithheldOut]:
    return [WithheldOut(role=role, reason=reason) for role, reason in withheld.items()]
