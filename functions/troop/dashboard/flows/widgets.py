"""Reads what the widgets of dashboards show, with the adapters and steps of the API. Every read is bounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby

from troop.bench.aws.run_table import RunTable
from troop.bench.flows.live_runs import LiveRuns
from troop.bench.records.record import Kind, Run
from troop.chaos.aws.decision_queries import DecisionQueries, DecisionRecord
from troop.chaos.aws.event_queries import EventFilter, EventQueries
from troop.chaos.aws.state_table import StateTable
from troop.chaos.flows.units import GroupRow, Units
from troop.chaos.policy import has_values
from troop.dashboard.views import (
    DecisionRow,
    DecisionsView,
    EventsView,
    LiveRunView,
    RunRow,
    RunsView,
    Today,
    UnitDecisionsView,
    UnitRow,
    UnitsView,
    UnitView,
    View,
    latest,
)
from troop.dashboard.widget_request import Widget, WidgetRequest
from troop.shared.errors import MissingRunError
from troop.shared.malformed import MalformedItemError
from troop.shared.settings import Settings
from troop.shared.tables import BENCHMARK, FLEET

PAGE = 200
"""The decisions on one page of a day; reading it examines up to eight times as many."""

PAGES = 5
"""The most of these pages that a widget reads, for all days together."""

GROUPS = 50
"""The groups that one call to Auto Scaling reads when only some units are shown: the most that a page can have."""

CALLS = 4
"""The most of these calls."""

NEWEST = 20
"""The runs among which a widget looks for one that goes on."""

COUNTED = 5
"""The most runs on a page whose nodes are counted: those that have not ended, newest first."""


@dataclass(frozen=True)
class Widgets:
    """Reads what a widget shows.

    Attributes:
        runs: None if the deployment runs no benchmarks.
        live: returns what benchmarks do right now, which few widgets need; None without benchmarks.
    """

    settings: Settings
    events: EventQueries
    decisions: DecisionQueries
    units: Units
    state: StateTable
    runs: RunTable | None
    live: Callable[[], LiveRuns] | None = None

    def view(self, request: WidgetRequest, now: datetime) -> View:
        """Returns what the requested widget shows.

        Raises:
            BadPosition, BadToken, BadCursor: no page ended at this position, or it has expired.
            ClientError: AWS refused.
        """
        match request.widget:
            case Widget.EVENTS:
                return self._events(request)
            case Widget.DECISIONS:
                return self._unit_decisions(request, now) if request["unit"] else self._decisions(request, now)
            case Widget.UNITS:
                return self._unit(request, now) if request["unit"] else self._units(request, now)
            case Widget.RUNS:
                return self._runs(request)
            case Widget.LIVE:
                return self._live(request)

    def _events(self, request: WidgetRequest) -> EventsView:
        event_filter = EventFilter(unit=request["unit"], status=request["status"], verdict=request["verdict"])
        page = self.events.page(event_filter, request["limit"], request["position"])
        return EventsView(request, self.state.switch(), page.events, page.position)

    # Decisions

    def _decisions(self, request: WidgetRequest, now: datetime) -> DecisionsView:
        days = self._days(request["day"], now)
        rows: list[DecisionRow] = []
        examined, complete = 0, True
        for today in days:
            # Another calendar, for example one that is a day behind, may have decided on that day, too.
            calendars = {name for name, _ in today.calendars} if len(days) > 1 else None
            position = None
            for _ in range(max(1, PAGES // len(days))):
                page = self.decisions.day_page(today.day, PAGE, position)
                examined += len(page.decisions)
                rows += [_row(one) for one in page.decisions if calendars is None or one.calendar in calendars]
                position = page.position
                if position is None:
                    break
            complete = complete and position is None
        rows_by_tick = latest(sorted(rows, key=lambda row: row.tick, reverse=True))
        counts = Counter(row.reason for row in rows_by_tick)
        matching = [row for row in rows_by_tick if request["reason"] in (None, row.reason)]
        limit = request["limit"]
        return DecisionsView(
            request=request,
            switch=self.state.switch(),
            days=days,
            counts=sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])),
            rows=matching[(request["page"] - 1) * limit : request["page"] * limit],
            pages=-(-len(matching) // limit),
            examined=examined,
            complete=complete,
        )

    def _unit_decisions(self, request: WidgetRequest, now: datetime) -> UnitDecisionsView:
        unit, days = request["unit"], self._days(request["day"], now)
        day = request["day"] or self._today_of(unit, days)
        page = self.decisions.unit_page(unit, day, request["limit"], request["position"])
        shown = [today for today in days if today.day == day]
        return UnitDecisionsView(
            request, self.state.switch(), shown, [_row(one) for one in page.decisions], page.position
        )

    def _today_of(self, unit: str, days: list[Today]) -> date:
        """Returns today on the calendar of the unit's latest decision."""
        last = self.decisions.latest(unit) if len(days) > 1 else None
        days_by_calendar = {name: today.day for today in days for name, _ in today.calendars}
        return days_by_calendar.get(last.calendar if last else "default", days[0].day)

    def _days(self, day: date | None, now: datetime) -> list[Today]:
        """Returns the local days to show, latest first; today can differ between calendars."""
        every = [(day or one.at(now).day, name, one.time_zone) for name, one in sorted(self.settings.calendars.items())]
        by_day = groupby(sorted(every, key=lambda one: one[0], reverse=True), key=lambda one: one[0])
        return [Today(one, [(name, zone) for _, name, zone in those]) for one, those in by_day]

    # Units

    def _units(self, request: WidgetRequest, now: datetime) -> UnitsView:
        some = request["show"] != "all"
        position, examined = request["position"], 0
        rows: list[UnitRow] = []
        for _ in range(CALLS if some else 1):
            page, position = self.units.page(GROUPS if some else request["limit"], position, now)
            examined += len(page)
            rows += [row for row in _merged(page) if row.is_left_out or not some]
            if position is None or len(rows) >= request["limit"]:
                break
        return UnitsView(request, self.state.switch(), rows, examined, position)

    def _unit(self, request: WidgetRequest, now: datetime) -> UnitView:
        view = self.units.view(request["unit"], now)
        if not view.groups and not has_values(view.item) and (owner := self.units.owner(request["unit"])):
            view = self.units.view(owner, now)
        return UnitView(
            request=request,
            switch=self.state.switch(),
            unit=view.unit,
            known=bool(view.known or view.item),
            groups=view.groups,
            policy=view.policy,
            state=view.state,
            outlook=view.outlook,
            decision=_row(view.decision) if view.decision else None,
            events=view.events,
            changes=view.changes,
        )

    # Runs

    def _runs(self, request: WidgetRequest) -> RunsView:
        if self.runs is None:
            return RunsView(request, on=False)
        kind = FLEET if request["kind"] == "fleets" else BENCHMARK
        page = self.runs.page(request["limit"], request["position"], kind)
        alive = self._alive(self.runs, page.runs)
        return RunsView(request, True, [RunRow(run, alive.get(run.run)) for run in page.runs], page.cursor)

    def _live(self, request: WidgetRequest) -> LiveRunView:
        if self.runs is None or self.live is None:
            return LiveRunView(request, on=False)
        run = request["run"]
        if run is None:
            newest = self.runs.page(NEWEST, None, BENCHMARK).runs
            run = next((one.run for one in newest if one.ended_at is None), None)
        try:
            return LiveRunView(request, True, self.live().watch(run) if run else None)
        except (MissingRunError, MalformedItemError):
            return LiveRunView(request, True)

    def _alive(self, table: RunTable, runs: Sequence[Run]) -> Mapping[str, int]:
        """Returns the number of nodes by run, where known: 0 for ended runs, the last seen of standing fleets, else
        those on record.
        """
        alive = {run.run: 0 for run in runs if run.ended_at}
        alive |= {run.run: _in_service(run) for run in runs if run.standing and not run.ended_at}
        for run in [run for run in runs if run.run not in alive][:COUNTED]:
            nodes = (one for one in table.resources.readable(run.run).items if one.kind is Kind.INSTANCE)
            alive[run.run] = sum(one.created_at is not None and one.gone_at is None for one in nodes)
        return alive


def _merged(page: list[GroupRow]) -> list[UnitRow]:
    """Returns the units of a page of groups, in the order of each unit's first group."""
    rows: dict[str, GroupRow] = {}
    for row in page:
        rows.setdefault(row.unit, row)
    return [UnitRow(row.unit, row.members, row.unit_policy, row.state, row.outlook) for row in rows.values()]


def _in_service(run: Run) -> int:
    return sum(counts.in_service for counts in run.standing.seen.values()) if run.standing else 0


def _row(decided: DecisionRecord) -> DecisionRow:
    return DecisionRow(
        unit=decided.unit,
        tick=decided.tick,
        reason=decided.reason,
        detail=decided.detail,
        rolled=decided.rolled,
        probability=decided.probability,
        group=decided.group,
        instance_id=decided.instance_id,
    )
