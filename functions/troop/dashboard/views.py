"""Defines what each widget shows: the data, before it becomes HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from troop.bench.records.live_view import Watched
from troop.bench.records.record import Run
from troop.chaos.changes import Change
from troop.chaos.decisions import TERMINATE
from troop.chaos.events import Event
from troop.chaos.facts import Switch, UnitState
from troop.chaos.groups import Group
from troop.chaos.outlook import Outlook
from troop.chaos.policy import Policy
from troop.dashboard.widget_request import WidgetRequest


@dataclass(frozen=True)
class EventsView:
    """A page of events, newest first. ``position``: where the next page starts; None on the last page."""

    request: WidgetRequest
    switch: Switch
    events: Sequence[Event]
    position: str | None


@dataclass(frozen=True)
class DecisionRow:
    """A tick's decision about a unit; attributes as in :class:`troop.chaos.aws.decision_queries.DecisionRecord`."""

    unit: str
    tick: datetime
    reason: str
    detail: str
    rolled: float | None
    probability: float | None
    group: str | None
    instance_id: str | None


@dataclass(frozen=True)
class Today:
    """A local day, and the calendars (name, time zone) whose local day it is."""

    day: date
    calendars: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class DecisionsView:
    """The decisions of a day.

    Attributes:
        days: the days shown.
        counts: (reason, count), highest count first: of each unit's latest decision, and of every decision to
            terminate.
        rows: one page of those, with the requested reason.
        pages: the number of pages.
        examined: the number of decisions read.
        complete: whether these are all decisions of the day.
    """

    request: WidgetRequest
    switch: Switch
    days: Sequence[Today]
    counts: Sequence[tuple[str, int]]
    rows: Sequence[DecisionRow]
    pages: int
    examined: int
    complete: bool


@dataclass(frozen=True)
class UnitDecisionsView:
    """The ticks' decisions about one unit, newest first."""

    request: WidgetRequest
    switch: Switch
    days: Sequence[Today]
    rows: Sequence[DecisionRow]
    position: str | None


@dataclass(frozen=True)
class UnitRow:
    """A unit of a page of groups."""

    unit: str
    groups: Sequence[Group]
    policy: Policy
    state: UnitState
    outlook: Outlook

    @property
    def is_left_out(self) -> bool:
        return not self.outlook.takes_part


@dataclass(frozen=True)
class UnitsView:
    """A page of units, by groups in the order of Auto Scaling. ``examined``: the number of groups read."""

    request: WidgetRequest
    switch: Switch
    rows: Sequence[UnitRow]
    examined: int
    position: str | None


@dataclass(frozen=True)
class UnitView:
    """One unit in detail, with the attributes of :class:`troop.chaos.flows.units.UnitView`.

    Attributes:
        known: False if only its name is known.
    """

    request: WidgetRequest
    switch: Switch
    unit: str
    known: bool
    groups: Sequence[Group]
    policy: Policy
    state: UnitState
    outlook: Outlook
    decision: DecisionRow | None
    events: Sequence[Event]
    changes: Sequence[Change]


@dataclass(frozen=True)
class RunRow:
    """A run. ``alive``: the number of existing nodes; None if not counted."""

    run: Run
    alive: int | None


@dataclass(frozen=True)
class RunsView:
    """A page of runs, newest first. ``on``: whether the deployment runs benchmarks."""

    request: WidgetRequest
    on: bool
    rows: Sequence[RunRow] = ()
    position: str | None = None


@dataclass(frozen=True)
class LiveRunView:
    """What a run does right now.

    Attributes:
        on: whether the deployment runs benchmarks.
        watched: None if there is no such run, or none that goes on.
    """

    request: WidgetRequest
    on: bool
    watched: Watched | None = None


View = EventsView | DecisionsView | UnitDecisionsView | UnitsView | UnitView | RunsView | LiveRunView


def latest(rows: Sequence[DecisionRow]) -> list[DecisionRow]:
    """Returns each unit's latest decision, and every decision to terminate, because later ones would hide it. Takes
    and returns decisions newest first.
    """
    seen: set[str] = set()
    newest = []
    for row in rows:
        if row.unit not in seen or row.reason == TERMINATE:
            newest.append(row)
        seen.add(row.unit)
    return newest
