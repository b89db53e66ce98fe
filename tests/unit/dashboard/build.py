"""Views to be rendered: a deployment on a Friday afternoon in Los Angeles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from troop.bench.definition.living import Grade, MergedCheck, Queue, Repair, RoleDigest, WorkSample
from troop.bench.definition.standing import Counts, Standing
from troop.bench.money.costs import Cost
from troop.bench.records.live_view import CellView, Figures, LiveView, OperationFigures, RoleView, Watched
from troop.bench.records.record import Expected, Run, RunStatus
from troop.chaos.changes import Change
from troop.chaos.events import Event, Status, on_demand_id, scheduled_id
from troop.chaos.facts import Switch, UnitState
from troop.chaos.groups import Group, Instance
from troop.chaos.outlook import Outlook
from troop.chaos.policy import Policy, SourcedValue
from troop.dashboard.commands import Shell
from troop.dashboard.console import Console
from troop.dashboard.page import Frame
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
)
from troop.dashboard.widget_request import Viewer, WidgetRequest, parse
from troop.shared.choice import Choice

NOW = datetime(2026, 11, 20, 22, 46, tzinfo=UTC)
FRIDAY = date(2026, 11, 20)
ARN = "arn:aws:lambda:eu-central-1:123456789012:function:Troop-FunctionsWidgets-1"
LEASHED = Switch(halted=False, leashed=True)
TODAY = [Today(FRIDAY, [("default", "America/Los_Angeles")])]
UNITS = ("web", "checkout", "search-index", "payments", "recommendations")


def frame(viewer: Viewer = Viewer(), arn: str = ARN) -> Frame:  # noqa: B008 it is frozen
    console = Console.from_arn(arn)
    return Frame(arn, viewer, console, Shell("Troop", console.region), NOW, "troop-results")


def looked_at(*, dark: bool = False, width: int | None = None) -> Viewer:
    return Viewer(dark, width, timezone(timedelta(hours=1)))


def request(widget: str, **parameters: Any) -> WidgetRequest:
    return parse({"widget": widget, **parameters})


def event(status: Status, unit: str = "web", minutes: int = 5, **more: Any) -> Event:
    at = NOW - timedelta(minutes=minutes)
    ended = status in (Status.RECOVERED, Status.UNRECOVERED)
    fields: dict[str, Any] = {
        "event_id": scheduled_id(FRIDAY, unit),
        "unit": unit,
        "day": FRIDAY,
        "status": status,
        "at": at,
        "group": f"{unit}-v12",
        "instance_id": "i-0a1b2c3d4e5f60718",
        "zone": "eu-central-1a",
        "method": "crash",
        "rolled": 0.1234,
        "probability": 0.2,
        "desired": 6,
        "terminated_at": at if ended or status is Status.TERMINATED else None,
        "recovered_at": at + timedelta(seconds=143) if status is Status.RECOVERED else None,
    }
    return Event(**(fields | more))


def sourced(value: Any, source: str = "settings") -> SourcedValue[Any]:
    return SourcedValue(value, source)


def policy(**values: Any) -> Policy:
    fields: dict[str, Any] = {
        "takes_part": sourced(True),
        "until": sourced(None),
        "probability": sourced(0.2),
        "min_healthy": sourced(2),
        "min_days_between": sourced(0),
        "method": sourced((Choice("crash"),)),
        "calendar": sourced("default"),
        "stop_alarms": sourced(()),
        "success_alarms": sourced(()),
        "recovery_within": sourced(None),
        "under_load": sourced(False),
        "reason": sourced(""),
        "owner": sourced(""),
    }
    return Policy(**(fields | values))


def group(name: str, size: int = 3) -> Group:
    return Group(name, size, tuple(Instance(f"i-{i:017x}") for i in range(size)))


def row(unit: str, reason: str = "not-rolled", minutes: int = 1, **more: Any) -> DecisionRow:
    fields: dict[str, Any] = {
        "unit": unit,
        "tick": NOW - timedelta(minutes=minutes),
        "reason": reason,
        "detail": "0.7312 >= probability 0.2",
        "rolled": 0.7312,
        "probability": 0.2,
        "group": None,
        "instance_id": None,
    }
    return DecisionRow(**(fields | more))


def events_view(**parameters: Any) -> EventsView:
    on_demand = on_demand_id("payments", "k1")
    return EventsView(
        request("events", **parameters),
        LEASHED,
        [
            event(Status.TERMINATED, "web", 1),
            event(Status.RECOVERED, "checkout", 31),
            event(Status.RECOVERED, "payments", 92, event_id=on_demand, rolled=None),
            event(Status.UNRECOVERED, "search-index", 180, detail="not whole again within 30 minutes"),
            event(Status.ABANDONED, "recommendations", 200, detail="past its deadline; the instance lives"),
            event(Status.LEASHED, "web", 1500),
        ],
        "2026-11-19T22:00:00.000Z#2026-11-19#web",
    )


def decisions_view(**parameters: Any) -> DecisionsView:
    due = "i-0a1b2c3d4e5f60718 of web-v12 is to be terminated"
    rows = [
        row("web", "terminate", detail=due, rolled=0.02, group="web-v12", instance_id="i-0a1b2c3d4e5f60718"),
        row("web", "already-today", detail="has had its hit of 2026-11-20", rolled=0.02),
        row("checkout", "opted-out", detail="opted out by item until 2026-12-01: month-end closing"),
        row("payments", "too-small", detail="payments-v3 has 1 of 2 healthy instances in service"),
        row("search-index"),
        row("recommendations"),
    ]
    matches = [one for one in rows if parameters.get("reason") in (None, one.reason)]
    counts = [("not-rolled", 1412), ("already-today", 20), ("opted-out", 7), ("too-small", 3), ("terminate", 1)]
    tokyo = Today(date(2026, 11, 21), [("tokyo", "Asia/Tokyo")])
    return DecisionsView(request("decisions", **parameters), LEASHED, [tokyo, *TODAY], counts, matches, 4, 1000, False)


def unit_decisions_view() -> UnitDecisionsView:
    rows = [row("web", minutes=15 * i) for i in range(5)]
    return UnitDecisionsView(request("decisions", unit="web"), LEASHED, TODAY, rows, None)


def unit_row(unit: str, state: UnitState = UnitState(), groups: int = 1, **values: Any) -> UnitRow:  # noqa: B008
    members = [group(f"{unit}-v{i + 1}") for i in range(groups)]
    return UnitRow(unit, members, policy(**values), state, outlook_of(policy(**values), state))


def outlook_of(policy: Policy, state: UnitState) -> Outlook:
    """As far as policy and state tell it."""
    tag = policy.takes_part.source.removeprefix("tag ") if policy.takes_part.source.startswith("tag troop:") else ""
    reasons = {
        "protected": tag and f"vault-v1 is tagged {tag}",
        "malformed": "; ".join(policy.problems),
        "opted-out": "" if policy.takes_part.value else f"opted out by item until 2026-12-01: {policy.reason.value}",
        "unrecovered": "did not recover from its hit of 2026-11-18" if state.unrecovered else "",
    }
    reason = next((reason for reason, detail in reasons.items() if detail), None)
    return Outlook(reason is None, reason, reasons.get(reason or "", ""), None if reason else NOW + timedelta(days=3))


def units_view(**parameters: Any) -> UnitsView:
    item = "item"
    rows = [
        unit_row(
            "web", UnitState(last_day=FRIDAY), 2, probability=sourced(0.05, "tag of web-v1"), owner=sourced("team-a")
        ),
        unit_row(
            "checkout",
            takes_part=sourced(False, item),
            until=sourced(date(2026, 12, 1), item),
            reason=sourced("month-end closing", item),
        ),
        unit_row("payments", UnitState(unrecovered="2026-11-18#payments", last_day=date(2026, 11, 18))),
        unit_row("search-index", problems=("attribute probability is '20%': must be a number from 0 to 1",)),
        unit_row("vault", takes_part=sourced(False, "tag troop:protected")),
        unit_row(
            "recommendations",
            method=sourced((Choice("drain"),), "tag of recommendations-v1"),
            min_healthy=sourced(4, item),
        ),
    ]
    matches = [one for one in rows if one.is_left_out or parameters.get("show") != "left-out"]
    return UnitsView(request("units", **parameters), LEASHED, matches, 6, "token" * 20)


def unit_view(unit: str = "web", **values: Any) -> UnitView:
    changed: Mapping[str, tuple[Any, Any]] = {"probability": (None, 0.05), "owner": ("", "team-a")}
    caller = "arn:aws:sts::123456789012:assumed-role/Owners/anna"
    return UnitView(
        request=request("units", unit=unit),
        switch=LEASHED,
        unit=unit,
        known=True,
        groups=[group("web-v11"), group("web-v12", 6)],
        policy=policy(**({"probability": sourced(0.05, "item"), "owner": sourced("team-a", "item")} | values)),
        state=UnitState(last_day=FRIDAY),
        outlook=outlook_of(policy(**values), UnitState()),
        decision=row(unit, "already-today", detail="has had its hit of 2026-11-20"),
        events=[event(Status.RECOVERED, unit, 31), event(Status.UNRECOVERED, unit, 3000)],
        changes=[Change(f"unit#{unit}", NOW - timedelta(days=2), caller, changed)],
    )


def run(status: RunStatus = RunStatus.SUCCEEDED, hours: float = 2, **more: Any) -> Run:
    at = NOW - timedelta(hours=hours)
    ended = status not in (RunStatus.ADMITTED, RunStatus.RUNNING, RunStatus.STOPPING)
    fields: dict[str, Any] = {
        "run": f"{at:%Y%m%d-%H%M%S}-1f0c9b2e",
        "name": "cassandra-writes",
        "at": at,
        "expires_at": at + timedelta(hours=4),
        "requested_by": "arn:aws:iam::123456789012:user/anna",
        "cells": 4,
        "nodes": 60,
        "status": status,
        "ended_at": at + timedelta(minutes=66) if ended else None,
        "estimate": Expected(Decimal("12.5"), Decimal(20), "USD"),
        "cost": Cost(Decimal("11.94")) if ended else None,
    }
    return Run(**(fields | more))


def runs_view(**parameters: Any) -> RunsView:
    lost = "node i-0a1b2c3d4e5f60718 was lost while it was measured"
    rows = [
        RunRow(run(RunStatus.RUNNING, 0.5), 58),
        RunRow(run(), 0),
        RunRow(run(RunStatus.PARTIAL, 30, name="s3-range-reads", cells=1, reason=lost), 0),
        RunRow(run(RunStatus.FAILED, 50, cost=Cost(Decimal(3), unknown=("c9g.large",)), reason="c003: " + lost), 0),
    ]
    return RunsView(request("runs", **parameters), True, rows, f"2026-11-18T20:00:00.000Z#{rows[-1].run.run}")


def fleets_view() -> RunsView:
    checks = (
        MergedCheck("latency", Grade.FAIL, 5, ("i-1", "i-2"), detail="p99 is above the limit", todo="look at the log"),
        MergedCheck("disk", Grade.WARN, 1, ("i-3",), detail="81 % full", todo="delete old files"),
        MergedCheck("answer", Grade.OK, 484),
    )
    standing = Standing(
        {"workers": 500},
        seen={"workers": Counts(498, 2, 0, 490, 0)},
        queue=Queue(),
        digest={"workers": RoleDigest(484, 1, 5, 3, draining=2, checks=checks)},
        work=WorkSample(NOW - timedelta(minutes=1), 10_000, 1800, 78, 2, 185),
        may_lack_tasks=True,
        repairs=tuple(
            Repair(f"r{n}", f"i-{n}", "workers", "replace", NOW - timedelta(minutes=minutes))
            for n, minutes in enumerate((90, 50, 2))
        ),
        withheld={"workers": "its work needs 600 nodes, but limits allow 500"},
    )
    fleet = run(RunStatus.RUNNING, 70, name="spot-workers", cells=1, nodes=500, standing=standing)
    return RunsView(request("runs", kind="fleets"), True, [RunRow(fleet, 498)])


def live_view(seconds: int = 5, name: str = "cassandra-write", text: str = "n6") -> LiveRunView:
    """What a run does, so many seconds after the merge."""
    run = Run("20261120-210000-1f0c9b2e", name, NOW, NOW, "arn:me", 1, 9, status=RunStatus.RUNNING)
    read = OperationFigures(12_345.67, 0.25, 1.7, 120.4, "drivers", text)
    cell = CellView(
        "c001",
        text,
        text,
        is_measured=True,
        seconds_left=200.0,
        warm_up_seconds_left=20.0,
        total=Figures(12_345.67, 0.25, 1.7, 120.4),
        operations=[read],
        roles=[RoleView("drivers", 2, 3, 71.2, 88.0), RoleView(text, 6, None, None, None)],
    )
    at = NOW - timedelta(seconds=seconds)
    return LiveRunView(request("live"), True, Watched(run, LiveView(run.run, at, [cell]), NOW))


def views() -> dict[str, View]:
    """One of each, by name."""
    return {
        "events": events_view(),
        "events-filtered": events_view(unit="web", status="RECOVERED", position="2026-11-20T00:00:00.000Z#x"),
        "events-none": replace(events_view(), events=[], position=None),
        "decisions": decisions_view(),
        "decisions-reason": decisions_view(reason="not-rolled", page=2),
        "decisions-unit": unit_decisions_view(),
        "units": units_view(),
        "units-left-out": units_view(show="left-out"),
        "unit": unit_view(),
        "runs": runs_view(),
        "fleets": fleets_view(),
        "runs-off": RunsView(request("runs"), on=False),
        "live": live_view(),
        "live-none": LiveRunView(request("live"), True),
        "live-off": LiveRunView(request("live"), on=False),
    }
