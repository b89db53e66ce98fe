"""Defines what is read of a deployment for its health checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from troop.chaos.change_calendars import ChangePeriod
from troop.chaos.earlier_tables import EarlierTable
from troop.chaos.self_halt import SelfHalt
from troop.chaos.strays import StrayRecord
from troop.chaos.tick_times import TickSpan
from troop.shared.concurrency import Concurrency
from troop.shared.release import RunningRelease

FAILURES_OF = timedelta(hours=24)
"""The period in which failures count."""


@dataclass(frozen=True)
class Unread:
    """A value that could not be read, and the reason."""

    why: str


@dataclass(frozen=True)
class Schedule:
    """A schedule of the deployment.

    Attributes:
        ticks: whether it starts the chaos workflow.
        changed: when it was created or last changed.
    """

    name: str
    enabled: bool
    ticks: bool
    changed: datetime


@dataclass(frozen=True)
class Runs:
    """The workflow's executions, by the moments at which they started.

    Attributes:
        newest: the moment of the newest with any outcome; None if there was none.
        newest_succeeded: the moment of the newest successful one.
        failed: the failed ones within :data:`FAILURES_OF`.
    """

    newest: datetime | None = None
    newest_succeeded: datetime | None = None
    failed: tuple[datetime, ...] = ()


@dataclass(frozen=True)
class Children:
    """The workflow's child executions, each of which terminates for one unit and checks its recovery.

    Attributes:
        failed: how many have failed within :data:`FAILURES_OF`.
        last_failed, last_succeeded: when the latest ended so, to within some minutes; None if none did.
    """

    failed: int = 0
    last_failed: datetime | None = None
    last_succeeded: datetime | None = None


@dataclass(frozen=True)
class Alarm:
    """An alarm that is on.

    Attributes:
        name: the name without the deployment's.
        act_now: whether its class is "act now".
        todo: where the instructions are.
    """

    name: str
    act_now: bool
    todo: str


@dataclass(frozen=True)
class HealthFacts:
    """Everything that was read.

    Attributes:
        tables: status by name.
        left: the units that have left chaos, each with why: ``unrecovered`` or ``broken``.
        self_halt: the halt that the deployment has given itself; None without one.
        alarms: the alarms that are on; None if not read.
        subscribers: the number of subscribers of act-now alarms; None if not read.
        strays: items whose key names no unit, as the last tick found them; None if not read.
        concurrency: how many functions the account may run at a time; None if not read.
        earlier: undecided tables of earlier deployments, the newest first; None if not read.
        changes: the current periods of the SSM Change Calendars that calendars name; None if not read.
        came: by calendar, the ticks expected on its last business day, and when ticks came around it, to within five
            minutes; None if not read.
        release: the release that runs; None if not read, or not recorded yet.
    """

    schedules: tuple[Schedule, ...] | Unread
    runs: Runs | Unread
    children: Children | Unread
    dead_letters: int | Unread
    tables: Mapping[str, str] | Unread
    left: Mapping[str, str] | Unread
    self_halt: SelfHalt | Unread | None = None
    alarms: tuple[Alarm, ...] | Unread | None = None
    subscribers: int | Unread | None = None
    strays: StrayRecord | Unread | None = None
    concurrency: Concurrency | Unread | None = None
    earlier: tuple[EarlierTable, ...] | Unread | None = None
    changes: tuple[ChangePeriod, ...] | None = None
    came: Mapping[str, tuple[TickSpan, tuple[datetime, ...]]] | Unread | None = None
    release: RunningRelease | Unread | None = None
