"""CloudWatch in memory: alarms with their history, composite ones too, and the datapoints behind them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.model.dynamo import refusal
from tests.model.fleet import Emit

if TYPE_CHECKING:
    from tests.model.world import World

NAMES = ("errors", "web-slow", "db-slow", "site")
"""The alarms of a history; ``site`` is a composite one, and ``errors`` is shared by all units."""

OK, ALARM, MISSING = "OK", "ALARM", "INSUFFICIENT_DATA"
RECORDED = 1.5
"""Seconds within which a change may not be in an alarm's history yet."""

METRIC, COMPOSITE = "MetricAlarm", "CompositeAlarm"


@dataclass
class Alarm:
    """An alarm; a composite one goes off while a child is in ALARM.

    Attributes:
        missing: how it treats missing data.
        silent: since when its metric has had no datapoints; None while it has.
    """

    name: str
    state: str = OK
    period: int = 60
    periods: int = 1
    missing: str = "missing"
    children: tuple[str, ...] = ()
    silent: float | None = None
    quiet: list[tuple[float, float]] = field(default_factory=list)
    updated: float = 0.0
    configured: float = 0.0

    @property
    def kind(self) -> str:
        return COMPOSITE if self.children else METRIC


@dataclass(frozen=True)
class Change:
    """A change of an alarm: ``event`` is a state, or ``Create``, ``Update`` or ``Delete``. ``state``: after it."""

    at: float
    name: str
    kind: str
    event: str
    state: str
    data: str

    @property
    def is_configuration(self) -> bool:
        return self.event not in (OK, ALARM, MISSING)


class CloudWatch:
    """All alarms.

    Args:
        now: seconds, the true time.
        lagging: whether the history does not have a change yet that was made just now.
        emit: receives source, kind and detail of every event.
    """

    def __init__(self, now: Callable[[], float], lagging: Callable[[], bool], emit: Emit) -> None:
        self._now, self._lagging, self._emit = now, lagging, emit
        self.alarms: dict[str, Alarm] = {}
        self.history: list[Change] = []

    # What happens to alarms

    def create(self, alarm: Alarm) -> None:
        """Creates an alarm, or replaces its configuration: then its state stays."""
        now, before = self._now(), self.alarms.get(alarm.name)
        alarm.updated = now
        if before:
            alarm.state, alarm.updated = before.state, before.updated
            alarm.silent, alarm.quiet = before.silent, before.quiet
        alarm.configured = now
        self.alarms[alarm.name] = alarm
        self._configured(alarm, "Update" if before else "Create")

    def delete(self, name: str) -> None:
        if alarm := self.alarms.pop(name, None):
            self._configured(alarm, "Delete")

    def set(self, name: str, state: str) -> None:
        """Sets an alarm's state, and those of the composite ones above it."""
        alarm = self.alarms.get(name)
        if alarm is None or alarm.state == state:
            return
        now, before = self._now(), alarm.state
        alarm.state, alarm.updated = state, now
        data = {
            "version": "1.0",
            "oldState": {"stateValue": before, "stateReason": ""},
            "newState": {"stateValue": state, "stateReason": ""},
        }
        self.history.append(Change(now, name, alarm.kind, state, state, json.dumps(data)))
        detail = {
            "alarmName": name,
            "state": {"value": state, "reason": "", "timestamp": _aws(now)},
            "previousState": {"value": before, "reason": ""},
        }
        self._emit("aws.cloudwatch", "CloudWatch Alarm State Change", detail)
        for parent in self.alarms.values():
            if name in parent.children:
                states = [self.alarms[child].state for child in parent.children if child in self.alarms]
                self.set(parent.name, ALARM if ALARM in states else MISSING if MISSING in states else OK)

    def silence(self, name: str, silent: bool) -> None:
        """Ends or begins a metric's silence. What the alarm makes of it depends on how it treats missing data."""
        alarm = self.alarms.get(name)
        if alarm is None or alarm.children or silent == (alarm.silent is not None):
            return
        if silent:
            alarm.silent = self._now()
            self.set(name, {"missing": MISSING, "breaching": ALARM}.get(alarm.missing, alarm.state))
        else:
            assert alarm.silent is not None
            alarm.quiet.append((alarm.silent, self._now()))
            alarm.silent = None
            self.set(name, OK)

    def had_data(self, name: str, since: float, until: float) -> bool:
        """Whether an alarm's metric had a datapoint from ``since`` to ``until``; of a composite one, any below it."""
        alarm = self.alarms.get(name)
        if alarm is None:
            return False
        if alarm.children:
            return any(self.had_data(child, since, until) for child in alarm.children)
        return bool(self._datapoints(alarm, since, until, alarm.period))

    def _configured(self, alarm: Alarm, event: str) -> None:
        data, state = json.dumps({"version": "1.0", "type": event}), "" if event == "Delete" else alarm.state
        self.history.append(Change(self._now(), alarm.name, alarm.kind, event, state, data))

    # Its client

    def describe_alarms(
        self,
        AlarmNames: Sequence[str] = (),
        AlarmTypes: Sequence[str] = (METRIC,),
        ChildrenOfAlarmName: str = "",
        **paging: Any,
    ) -> dict[str, Any]:
        if ChildrenOfAlarmName:
            parent = self.alarms.get(ChildrenOfAlarmName)
            AlarmNames, AlarmTypes = parent.children if parent else (), (METRIC, COMPOSITE)
        named = [self.alarms[name] for name in AlarmNames if name in self.alarms]
        described = {
            METRIC: [_metric(a) for a in named if not a.children],
            COMPOSITE: [_composite(a) for a in named if a.children],
        }
        return {f"{kind}s": described[kind] if kind in AlarmTypes else [] for kind in (METRIC, COMPOSITE)}

    def describe_alarm_history(
        self,
        AlarmName: str = "",
        AlarmTypes: Sequence[str] = (METRIC,),
        HistoryItemType: str = "",
        StartDate: datetime | None = None,
        EndDate: datetime | None = None,
        ScanBy: str = "TimestampDescending",
        **paging: Any,
    ) -> dict[str, Any]:
        now = self._now()
        items = [
            {
                "AlarmName": one.name,
                "AlarmType": one.kind,
                "Timestamp": datetime.fromtimestamp(one.at, UTC),
                "HistoryItemType": _item_type(one),
                "HistorySummary": one.event,
                "HistoryData": one.data,
            }
            for one in self.history
            if one.name == AlarmName
            and one.kind in AlarmTypes
            and HistoryItemType in ("", _item_type(one))
            and (StartDate is None or StartDate.timestamp() <= one.at)
            and (EndDate is None or one.at <= EndDate.timestamp())
            and not (now - one.at < RECORDED and self._lagging())
        ]
        return {"AlarmHistoryItems": items if ScanBy == "TimestampAscending" else items[::-1]}

    def get_metric_data(
        self, MetricDataQueries: Sequence[dict[str, Any]], StartTime: datetime, EndTime: datetime, **paging: Any
    ) -> dict[str, Any]:
        results = []
        for query in MetricDataQueries:
            metric = query["MetricStat"]
            alarm = self.alarms.get(metric["Metric"]["MetricName"])
            if alarm is None:
                raise refusal("ValidationError", "GetMetricData", "no such metric")
            moments = self._datapoints(alarm, StartTime.timestamp(), EndTime.timestamp(), metric["Period"])
            results.append(
                {
                    "Id": query["Id"],
                    "Timestamps": [datetime.fromtimestamp(at, UTC) for at in moments],
                    "Values": [1.0] * len(moments),
                    "StatusCode": "Complete",
                }
            )
        return {"MetricDataResults": results}

    def _datapoints(self, alarm: Alarm, since: float, until: float, period: int) -> list[float]:
        """The beginnings of the periods of which the metric has data."""
        at, moments = since // period * period, []
        quiet = alarm.quiet + ([(alarm.silent, float("inf"))] if alarm.silent is not None else [])
        while at < min(until, self._now()):
            if at >= since and not any(begin <= at < end for begin, end in quiet):
                moments.append(at)
            at += period
        return moments


def _item_type(change: Change) -> str:
    return "ConfigurationUpdate" if change.is_configuration else "StateUpdate"


def _aws(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "+0000"


def _both(alarm: Alarm) -> dict[str, Any]:
    return {
        "AlarmName": alarm.name,
        "AlarmArn": f"arn:aws:cloudwatch:eu-central-1:123456789012:alarm:{alarm.name}",
        "StateValue": alarm.state,
        "StateUpdatedTimestamp": datetime.fromtimestamp(alarm.updated, UTC),
        "StateTransitionedTimestamp": datetime.fromtimestamp(alarm.updated, UTC),
        "AlarmConfigurationUpdatedTimestamp": datetime.fromtimestamp(alarm.configured, UTC),
    }


def _metric(alarm: Alarm) -> dict[str, Any]:
    return _both(alarm) | {
        "MetricName": alarm.name,
        "Namespace": "App",
        "Statistic": "Sum",
        "Dimensions": [],
        "Period": alarm.period,
        "EvaluationPeriods": alarm.periods,
        "DatapointsToAlarm": alarm.periods,
        "Threshold": 1.0,
        "ComparisonOperator": "GreaterThanThreshold",
        "TreatMissingData": alarm.missing,
    }


def _composite(alarm: Alarm) -> dict[str, Any]:
    return _both(alarm) | {"AlarmRule": " OR ".join(f'ALARM("{child}")' for child in alarm.children)}


def change_alarm(world: World, name: str) -> str:
    """Changes an alarm's configuration. Creates one that is missing: it has no data at first, and then is OK."""
    if name not in world.cloudwatch.alarms:
        add_alarm(world, name, MISSING)
        world.stage.at(world.stage.now + world.dice.uniform(1, 90), partial(world.cloudwatch.set, name, OK))
    else:
        add_alarm(world, name, OK)
    return name


def add_alarm(world: World, name: str, state: str) -> None:
    """Creates an alarm, or gives it another configuration."""
    dice = world.dice
    if name == "site":
        alarm = Alarm(name, state, children=dice.choice((("errors",), ("errors", "web-slow"))))
    else:
        missing = dice.choice(("missing", "missing", "notBreaching", "ignore", "breaching"))
        alarm = Alarm(name, state, dice.choice((10, 60, 60, 300)), dice.choice((1, 1, 3)), missing)
    world.cloudwatch.create(alarm)


def suffer(world: World, unit: str) -> None:
    """Lets an alarm go off, now and then, because a unit has lost an instance; and some do for no such reason."""
    dice, now = world.dice, world.stage.now
    if dice.random() < 0.6:
        return
    name = dice.choice(("errors", f"{unit}-slow", *NAMES))
    begin = now + dice.choice((1.0, 30.0, 90.0, 300.0)) * dice.random()
    for _ in range(dice.choice((1, 1, 2))):
        state = dice.choice((ALARM, ALARM, ALARM, MISSING))
        world.stage.at(begin, partial(world.cloudwatch.set, name, state))
        begin += dice.choice((2.0, 20.0, 200.0)) * dice.random()
        world.stage.at(begin, partial(world.cloudwatch.set, name, OK))
        begin += dice.uniform(0, 60)
