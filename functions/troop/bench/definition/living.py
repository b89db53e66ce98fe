"""Defines how the nodes of a standing fleet stay at work: the keys of its file, and what its record has about them.

The agent asks for the health of its node and reports it. The workflow merges the reports to one digest for each role,
repairs nodes, and fits their number to the work.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum

from troop.bench.definition.keys import amount, duration, key, matching, one_of, whole
from troop.bench.definition.money import number
from troop.shared.codec import stored

RESTART, REPLACE = "restart", "replace"
"""Repairs of a node."""

ANSWER, WORK = "answer", "work"
"""Checks that the agent adds to those of the health document: whether there is an answer, and whether work is done."""

AGED = timedelta(days=12)
"""Age from which a task may soon be lost: SQS deletes it 14 days after its submission, worked on or not."""

FAIL_AFTER = 3
"""Failures in a row of which people are notified, of a role that is not healed."""

MOST_NODE_IDS = 5
"""The most nodes that a merged check names."""

_OMIT = stored(omit=True)


class Grade(StrEnum):
    """The result of a check."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Health:
    """Where the agent asks for the health of its node. Durations are seconds.

    Attributes:
        grace: seconds after a node is ready in which failures do not count.
    """

    port: int = field(
        metadata=key(
            "TCP port of the health document",
            whole(1, 65_535),
            "The agent asks on the node itself, so no rule of a network is needed: at TROOP_ADDRESS, and on EC2 at "
            "127.0.0.1 if that refuses the connection.",
        )
    )
    path: str = field(
        default="/health",
        metadata=key(
            "Path of the health document",
            matching(r"/[A-Za-z0-9._~!$&'()*+,;=:@%/?-]{0,199}", "a path of at most 200 characters, such as /health"),
            "It answers 200, or 503 if a check fails.",
        ),
    )
    every: int = field(default=10, metadata=key("Time between two requests", duration("5s", "5m")))
    timeout: int = field(
        default=2, metadata=key("Time after which no answer is a failure", duration("1s", "30s"), "Less than `every`.")
    )
    grace: int = field(
        default=120, metadata=key("Time after a node is ready in which failures do not count", duration("0s", "1h"))
    )


@dataclass(frozen=True)
class Work:
    """The work that each node must do, as its counter of work shows. It need do none while the queue is empty.

    Attributes:
        every: seconds in which the counter must rise by ``at_least``.
    """

    at_least: int = field(
        metadata=key("Least work of a node in `every`", whole(1, 1_000_000_000), "In tasks, or in what scripts count.")
    )
    every: int = field(metadata=key("Time in which a node must do so much", duration("1m", "24h")))


@dataclass(frozen=True)
class Heal:
    """The repair of nodes whose checks fail.

    Attributes:
        after: failed checks in a row that a repair needs.
        do: :data:`RESTART` or :data:`REPLACE`.
        script: of the fleet's folder, which restarts the application; None unless ``do`` is :data:`RESTART`.
        at_most: share of the role's nodes that may be repaired in an hour; at least one node may.
    """

    after: int = field(default=3, metadata=key("Failed checks in a row before a repair", whole(1, 100)))
    do: str = field(default=REPLACE, metadata=key("How to repair a node", one_of(RESTART, REPLACE)))
    script: str | None = field(default=None, metadata=_OMIT)
    at_most: Decimal = field(
        default=Decimal("0.1"),
        metadata=key(
            "Largest share of the role's nodes to repair in an hour",
            amount(0.01, 1),
            "At least one node. Beyond it, an alarm calls for a person.",
            encode=number,
        ),
    )


@dataclass(frozen=True)
class Scale:
    """How the number of nodes follows the backlog: the tasks that wait or are in work.

    Attributes:
        least, most: bounds of the number of nodes; a backup group stays within what ``most`` reserves.
        idle_after: seconds for which fewer nodes must be enough before some of them go.
    """

    backlog_per_node: int = field(
        metadata=key("Tasks for each node", whole(1, 100_000), "Troop starts a node for each so many tasks.")
    )
    least: int = field(metadata=key("Smallest number of nodes", whole(0, 10_000), name="min"))
    most: int = field(metadata=key("Largest number of nodes", whole(1, 10_000), name="max"))
    idle_after: int = field(
        default=600,
        metadata=key("Time for which fewer nodes must be enough before some go", duration("1m", "24h")),
    )


@dataclass(frozen=True)
class Queue:
    """The queue of a fleet's tasks.

    Attributes:
        lease: seconds after which a task returns to the queue, unless its worker renews the lease.
        tries: how often a task is leased before it is a dead letter. Tasks that workers hand back count, too.
    """

    lease: int = field(
        default=300,
        metadata=key(
            "Time after which a task returns, unless its worker renews the lease",
            duration("30s", "2h"),
            "Workers renew it as long as they live.",
        ),
    )
    tries: int = field(
        default=10,
        metadata=key(
            "How often a task is leased before it is a dead letter",
            whole(1, 100),
            "Each lease counts, also if the node was lost, or its worker handed the task back.",
        ),
    )


@dataclass(frozen=True)
class MergedCheck:
    """One check of a role, over all of its nodes.

    Attributes:
        status: the worst.
        nodes: number of nodes with this status.
        node_ids: of some of them, at most :data:`MOST_NODE_IDS`.
        value: the worst of these nodes; None if the check has no number.
        threshold: of the same node; None for none.
        detail, todo: what that node reports, and what to do about it; "" for nothing.
        actionable: whether somebody must act now if it fails.
    """

    name: str
    status: Grade
    nodes: int
    node_ids: tuple[str, ...] = ()
    value: float | None = field(default=None, metadata=_OMIT)
    threshold: float | None = field(default=None, metadata=_OMIT)
    detail: str = field(default="", metadata=_OMIT)
    todo: str = field(default="", metadata=_OMIT)
    actionable: bool = True


@dataclass(frozen=True)
class RoleDigest:
    """The health of one role at one check.

    Attributes:
        ok, warn, fail: nodes by the worst of their checks.
        silent: ready nodes without a current report.
        checks: the worst first.
        draining: nodes that are to end soon, whatever their checks.
        new: nodes whose first report is due, or whose grace goes on.
    """

    ok: int = 0
    warn: int = 0
    fail: int = 0
    silent: int = 0
    checks: tuple[MergedCheck, ...] = ()
    draining: int = field(default=0, metadata=_OMIT)
    new: int = field(default=0, metadata=_OMIT)


@dataclass(frozen=True)
class WorkSample:
    """The tasks of a fleet at one check. SQS counts approximately.

    Attributes:
        submitted: accepted since the fleet's launch.
        waiting, in_work, dead: on the queue, leased, and dead letters.
        oldest_seconds: age of the oldest task that waits; None if unknown, and without any.
    """

    at: datetime
    submitted: int
    waiting: int = 0
    in_work: int = 0
    dead: int = 0
    oldest_seconds: int | None = field(default=None, metadata=_OMIT)

    @property
    def done(self) -> int:
        """Tasks that are neither on the queue nor dead letters: also those that SQS or somebody has deleted."""
        return max(0, self.submitted - self.waiting - self.in_work - self.dead)

    @property
    def is_aged(self) -> bool:
        """Whether a task waits that SQS deletes soon."""
        return self.oldest_seconds is not None and self.oldest_seconds > AGED.total_seconds()

    @property
    def backlog(self) -> int:
        return self.waiting + self.in_work


@dataclass(frozen=True)
class Need:
    """A number of nodes that the work of a role has needed.

    Attributes:
        until: until when; of the latest one, when it was read.
    """

    nodes: int
    until: datetime


@dataclass(frozen=True)
class Repair:
    """A repair of a node.

    Attributes:
        id: which the node's report repeats when it is done.
        do: :data:`RESTART` or :data:`REPLACE`.
        number: of the repairs of this node, from 1.
        reason: as a phrase, such as ``answer failed 3 times``.
    """

    id: str
    node: str
    role: str
    do: str
    at: datetime
    number: int = 1
    reason: str = field(default="", metadata=_OMIT)


@dataclass(frozen=True)
class Announcement:
    """A check that does not pass, and that people are notified of once.

    Attributes:
        status: of the notification.
        at: when a check of the fleet took the notification on.
        sent: whether the topic has accepted it.
        ok_since: since when the check has passed again; None while it does not.
    """

    status: Grade
    at: datetime
    sent: bool = field(default=False, metadata=_OMIT)
    ok_since: datetime | None = field(default=None, metadata=_OMIT)
