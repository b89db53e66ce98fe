"""What was read of a deployment, for health to be judged by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from troop.concurrency import Concurrency

FAILURES_OF = timedelta(hours=24)
"""How far back failures count."""


@dataclass(frozen=True)
class Unread:
    """Stands for what could not be read, and says why."""

    why: str


@dataclass(frozen=True)
class Schedule:
    """A schedule of the deployment.

    Attributes:
        ticks: whether it starts the chaos workflow.
        changed: when it was made or changed last.
    """

    name: str
    enabled: bool
    ticks: bool
    changed: datetime


@dataclass(frozen=True)
class Runs:
    """The workflow's executions, by the moments at which they started.

    Attributes:
        newest: whatever became of it; None when there was none.
        newest_succeeded: of those that ended well.
        failed: of those that did not, within :data:`FAILURES_OF`.
    """

    newest: datetime | None = None
    newest_succeeded: datetime | None = None
    failed: tuple[datetime, ...] = ()


@dataclass(frozen=True)
class Children:
    """The workflow's child executions, each of which terminates for one unit and watches it recover.

    Attributes:
        failed: how many have failed within :data:`FAILURES_OF`.
        last_failed, last_succeeded: when the latest ended so, to some minutes; None when none did.
    """

    failed: int = 0
    last_failed: datetime | None = None
    last_succeeded: datetime | None = None


@dataclass(frozen=True)
class Alarm:
    """An alarm that is on.

    Attributes:
        name: without the deployment's.
        act_now: whether it is of the class that somebody has to act on.
        todo: where it is written what to do.
    """

    name: str
    act_now: bool
    todo: str


@dataclass(frozen=True)
class TableBeside:
    """A table that an earlier deployment of the same name has left, and that this one does not use.

    Attributes:
        part: what it holds, such as ``Events``.
        items: how many DynamoDB counted, some hours ago.
        stack: the id of the stack of this name that CloudFormation made it for; "" for a table that only carries the
            tags, which anybody can set.
    """

    name: str
    part: str
    created: datetime
    items: int
    stack: str = ""


@dataclass(frozen=True)
class Observed:
    """All that was read. ``tables``: status by name. ``unrecovered``: units that have left chaos.

    Attributes:
        alarms: those that are on; None when they were not looked at.
        subscribers: how many are told of alarms to act on; None when nobody looked.
        concurrency: how many functions the account may run at a time; None when nobody looked.
        beside: tables of earlier deployments, the newest first; None when nobody looked.
    """

    schedules: tuple[Schedule, ...] | Unread
    runs: Runs | Unread
    children: Children | Unread
    dead_letters: int | Unread
    tables: Mapping[str, str] | Unread
    unrecovered: tuple[str, ...] | Unread
    alarms: tuple[Alarm, ...] | Unread | None = None
    subscribers: int | Unread | None = None
    concurrency: Concurrency | Unread | None = None
    beside: tuple[TableBeside, ...] | Unread | None = None
