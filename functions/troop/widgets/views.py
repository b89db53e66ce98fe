"""What is shown, widget by widget: what was read, before it becomes HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from troop.bench.record import Run
from troop.chaos.changes import Change
from troop.chaos.decisions import TERMINATE
from troop.chaos.events import Event
from troop.chaos.facts import Switch, UnitState
from troop.chaos.groups import Group
from troop.chaos.policy import Policy
from troop.widgets.widget_request import WidgetRequest


@dataclass(frozen=True)
class EventsView:
    """A page of events, newest first. ``position``: where it goes on; None when there is no more."""

    request: WidgetRequest
    switch: Switch
    events: Sequence[Event]
    position: str | None


@dataclass(frozen=True)
class DecisionRow:
    """What a tick decided about a unit; attributes as :class:`troop.aws.chaos.decision_queries.Decided` has them."""

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
    """A local day, and the calendars (name, time zone) on which it is."""

    day: date
    calendars: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class DecisionsView:
    """Decisions of a day.

    Attributes:
        days: which are shown.
        counts: (reason, how many), most first: of each unit's latest decision, and of every one to terminate.
        rows: one page of those, of the reason asked for.
        pages: how many there are.
        examined: decisions that were read.
        complete: whether these were all of the day.
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
    """What ticks have decided about one unit, newest first."""

    request: WidgetRequest
    switch: Switch
    days: Sequence[Today]
    rows: Sequence[DecisionRow]
    position: str | None


@dataclass(frozen=True)
class UnitRow:
    """A unit, as far as the page of groups knows it. ``policy``: of these groups, the strictest."""

    unit: str
    groups: Sequence[Group]
    policy: Policy
    state: UnitState

    @property
    def is_left_out(self) -> bool:
        return bool(not self.policy.takes_part.value or self.policy.problems or self.state.unrecovered)


@dataclass(frozen=True)
class UnitsView:
    """A page of units, by groups in Auto Scaling's order. ``examined``: how many groups were looked at."""

    request: WidgetRequest
    switch: Switch
    rows: Sequence[UnitRow]
    examined: int
    position: str | None


@dataclass(frozen=True)
class UnitView:
    """One unit from all sides; attributes as :class:`troop.flows.chaos.units.UnitView` has them.

    Attributes:
        known: False when nothing is known of it but what was asked for.
    """

    request: WidgetRequest
    switch: Switch
    unit: str
    known: bool
    groups: Sequence[Group]
    policy: Policy
    state: UnitState
    next_possible: datetime | None
    decision: DecisionRow | None
    events: Sequence[Event]
    changes: Sequence[Change]


@dataclass(frozen=True)
class RunRow:
    """A run. ``alive``: nodes that exist; None when nobody has counted."""

    run: Run
    alive: int | None


@dataclass(frozen=True)
class RunsView:
    """A page of runs, newest first. ``on``: whether the deployment runs benchmarks at all."""

    request: WidgetRequest
    on: bool
    rows: Sequence[RunRow] = ()
    position: str | None = None


View = EventsView | DecisionsView | UnitDecisionsView | UnitsView | UnitView | RunsView


def latest(rows: Sequence[DecisionRow]) -> list[DecisionRow]:
    """Of decisions, newest first, each unit's latest, and every one to terminate: later ones would hide it."""
    seen: set[str] = set()
    newest = []
    for row in rows:
        if row.unit not in seen or row.reason == TERMINATE:
            newest.append(row)
        seen.add(row.unit)
    return newest
