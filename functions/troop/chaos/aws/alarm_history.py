"""Reads alarms of CloudWatch: how long they need to go off, their states over time, and whether their metrics had data.

The permissions are on all alarms: CloudWatch shows composite ones only to callers that may see all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from troop.chaos.aws.groups import ALARM_TYPES, described_alarms
from troop.chaos.verdict import AlarmRecord, AlarmState
from troop.chaos.verdict_rules import ALARM, MOST_STATES
from troop.shared import moments

HISTORY_LASTS = timedelta(days=30)
"""How long CloudWatch keeps the history of an alarm."""

LISTED = timedelta(seconds=10)
"""For so long after a change, an alarm's history can lack it, or an earlier one. This is an assumption: AWS does not
publish how late changes are listed, or in which order.
"""

MOST_ENTRIES = 1000
"""The most entries of an alarm's history that are read: 10 calls."""

MOST_CHILDREN = 100
"""The most alarms below a composite one that are read. A rule names at most as many."""

MOST_QUERIES = 500
"""The most metrics of one call of GetMetricData."""

MOST_CALLS = 5
"""The most calls that look for data of one alarm; one for all plain metrics, others for queries of Metrics Insights."""

_STATES = re.compile(r"from (\w+) to (\w+)")


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm as it is now.

    Attributes:
        name: the alarm's.
        need: the time that it needs to go off: the period times the evaluation periods of the slowest alarm below it.
        state: its state.
        moved_at: when it got this state; None if CloudWatch does not say.
        changed_at: when it, or an alarm below it, was last created or changed.
        queries: requests for the data of its metrics, each of one call of GetMetricData.
        doubt: why its state proves nothing; "" for no such reason.
    """

    name: str
    need: timedelta
    state: str
    moved_at: datetime | None
    changed_at: datetime | None
    queries: tuple[list[dict[str, Any]], ...]
    doubt: str


@dataclass(frozen=True)
class AlarmHistory:
    """Reads the alarms of an account and Region."""

    cloudwatch: Any

    def alarms(self, names: Iterable[str]) -> dict[str, Alarm]:
        """Reads the alarms that exist, by name. One call for 100 names; for a composite alarm two for each level."""
        return {one["AlarmName"]: self._alarm(one) for one in described_alarms(self.cloudwatch, names)}

    def record(
        self, name: str, alarm: Alarm | None, since: datetime, until: datetime, now: datetime
    ) -> tuple[AlarmRecord, bool]:
        """Reads an alarm's states from ``since`` to ``until``, usually with one call. CloudWatch also has the history
        of a deleted alarm.

        Args:
            alarm: as it was read before this; None if there is none.

        Returns:
            The record; and whether the alarm has changed so recently that its history can lack a change.
        """
        doubts = [alarm.doubt] if alarm else ["there is no such alarm"]
        changes: list[tuple[datetime, str, str]] = []
        for number, entry in enumerate(self._entries(name, since)):
            at = entry["Timestamp"]
            if number == MOST_ENTRIES:
                doubts.append(f"its history has more than {MOST_ENTRIES} entries")
                break
            if entry["HistoryItemType"] == "ConfigurationUpdate" and at <= until:
                doubts.append(f"it was created, changed or deleted at {moments.second(at)}")
            if entry["HistoryItemType"] == "StateUpdate":
                changes.append((at, *_old_and_new(entry)))
                if at > until:
                    break
        if alarm and alarm.changed_at and alarm.changed_at > since:
            doubts.append(f"it was created or changed at {moments.second(alarm.changed_at)}")
        is_recent = _last_change(alarm, changes, since, until) > now - LISTED
        states = _states(alarm, changes, since, until, is_recent)
        if len(states) > MOST_STATES:
            doubts.append(f"it changed its state {len(states)} times")
        return AlarmRecord(name, _fewer(states), next(filter(None, doubts), "")), is_recent

    def had_data(self, alarm: Alarm, since: datetime, until: datetime) -> bool:
        """Checks whether any metric of an alarm had a datapoint; of a composite one, any metric below it."""
        return any(self._has_values(queries, since, until) for queries in islice(alarm.queries, MOST_CALLS))

    def _alarm(self, one: Mapping[str, Any]) -> Alarm:
        metric, doubts = ([one], []) if "AlarmRule" not in one else self._below(one)
        need = max(map(_need, metric), default=timedelta())
        for part in metric:
            if "EvaluationCriteria" in part:
                doubts.append(f"CloudWatch does not tell whether the query of {part['AlarmName']} had data")
            if part.get("EvaluationState"):
                doubts.append(f"CloudWatch could not evaluate {part['AlarmName']}: {part['EvaluationState']}")
        updates = [part.get("AlarmConfigurationUpdatedTimestamp") for part in (one, *metric)]
        return Alarm(
            name=one["AlarmName"],
            need=need,
            state=one["StateValue"],
            moved_at=one.get("StateTransitionedTimestamp"),
            changed_at=max(filter(None, updates), default=None),
            queries=tuple(_queries(metric)),
            doubt=next(iter(doubts), ""),
        )

    def _below(self, composite: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], list[str]]:
        """Reads the metric alarms below a composite one, and says what could not be read of them."""
        seen, waiting, doubts = {composite["AlarmName"]}, [composite], list[str]()
        metric: list[Mapping[str, Any]] = []
        while waiting:
            rule = waiting.pop()
            names = [name for name in self._children(rule) if name not in seen]
            if len(seen) + len(names) > MOST_CHILDREN + 1:
                doubts.append(f"more than {MOST_CHILDREN} alarms are below it")
                break
            seen.update(names)
            parts = list(described_alarms(self.cloudwatch, names))
            if len(parts) < len(names):
                doubts.append("an alarm of its rule is neither a metric alarm nor a composite one")
            waiting += [one for one in parts if "AlarmRule" in one]
            metric += [one for one in parts if "AlarmRule" not in one]
        return metric, doubts

    def _children(self, composite: Mapping[str, Any]) -> list[str]:
        pages = self.cloudwatch.get_paginator("describe_alarms").paginate(ChildrenOfAlarmName=composite["AlarmName"])
        kinds = ("MetricAlarms", "CompositeAlarms", "LogAlarms")
        names = [one["AlarmName"] for page in pages for kind in kinds for one in page.get(kind, [])]
        # Some emulations of AWS return all alarms.
        return [name for name in names if name in composite["AlarmRule"]]

    def _entries(self, name: str, since: datetime) -> Iterator[Mapping[str, Any]]:
        """Yields an alarm's history, the oldest entry first: a caller can stop early."""
        pages = self.cloudwatch.get_paginator("describe_alarm_history").paginate(
            AlarmName=name,
            AlarmTypes=list(ALARM_TYPES),
            StartDate=since,
            ScanBy="TimestampAscending",
            PaginationConfig={"PageSize": 100},
        )
        for page in pages:
            yield from page["AlarmHistoryItems"]

    def _has_values(self, queries: list[dict[str, Any]], since: datetime, until: datetime) -> bool:
        pages = self.cloudwatch.get_paginator("get_metric_data").paginate(
            MetricDataQueries=queries, StartTime=since, EndTime=until
        )
        return any(result.get("Values") for page in islice(pages, MOST_CALLS) for result in page["MetricDataResults"])


def _need(alarm: Mapping[str, Any]) -> timedelta:
    """Returns the time that a metric alarm needs to go off."""
    if criteria := alarm.get("EvaluationCriteria"):
        pending = criteria.get("PromQLCriteria", {}).get("PendingPeriod", 0)
        return timedelta(seconds=pending + alarm.get("EvaluationInterval", 0))
    metrics = alarm.get("Metrics", ())
    periods = [alarm.get("Period"), *(one.get("MetricStat", one).get("Period") for one in metrics)]
    # A window by the clock can begin up to a period later.
    late = "WallClockWindow" in alarm.get("EvaluationWindow", {})
    return timedelta(seconds=max(filter(None, periods), default=0) * (alarm["EvaluationPeriods"] + late))


def _queries(alarms: Iterable[Mapping[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yields requests for the data of metric alarms: one for all plain metrics, also those within expressions, and one
    for each alarm that has only expressions. Expressions over metrics can have values without data, by FILL.
    """
    plain, others = [], []
    for alarm in alarms:
        if "MetricName" in alarm:
            plain.append({"MetricStat": _metric_stat(alarm)})
        elif stats := [one for one in alarm.get("Metrics", ()) if "MetricStat" in one]:
            plain += [{key: one[key] for key in ("MetricStat", "AccountId") if key in one} for one in stats]
        elif "Metrics" in alarm:
            others.append(list(alarm["Metrics"]))
    if plain:
        yield [{"Id": f"m{number}", **query} for number, query in enumerate(plain[:MOST_QUERIES])]
    yield from others


def _metric_stat(alarm: Mapping[str, Any]) -> dict[str, Any]:
    metric = {key: alarm[key] for key in ("Namespace", "MetricName", "Dimensions") if alarm.get(key)}
    statistic = alarm.get("Statistic") or alarm.get("ExtendedStatistic")
    unit = {"Unit": alarm["Unit"]} if alarm.get("Unit") else {}
    return {"Metric": metric, "Period": alarm["Period"], "Stat": statistic, **unit}


def _old_and_new(entry: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the states before and after a change; "" for those that cannot be read."""
    try:
        data = json.loads(entry["HistoryData"])
        return data["oldState"]["stateValue"], data["newState"]["stateValue"]
    except (LookupError, TypeError, ValueError):
        # CloudWatch cuts long data.
        match = _STATES.search(entry.get("HistorySummary", ""))
        return (match[1], match[2]) if match else ("", "")


def _last_change(
    alarm: Alarm | None, changes: Sequence[tuple[datetime, str, str]], since: datetime, until: datetime
) -> datetime:
    """Returns the moment of the first change after ``until``; without one, of the last change."""
    last = changes[-1][0] if changes else since
    return max(last, alarm.moved_at) if last <= until and alarm and alarm.moved_at else last


def _states(
    alarm: Alarm | None,
    changes: Sequence[tuple[datetime, str, str]],
    since: datetime,
    until: datetime,
    is_recent: bool,
) -> list[AlarmState]:
    """Returns the states from ``since`` to ``until``. The first one follows from the first change, also from one after
    ``until``, unless that is so recent that an earlier one can be missing. Without any change, it is that of the alarm.
    So entries that CloudWatch has forgotten are not missed.
    """
    states = [AlarmState(at, new) for at, _, new in changes if at <= until]
    if changes and changes[0][0] > since and (states or not is_recent):
        states.insert(0, AlarmState(since, changes[0][1]))
    elif not changes and alarm and not (alarm.moved_at and alarm.moved_at > since):
        states = [AlarmState(since, alarm.state)]
    # The history can lack the last change for a moment.
    last = changes[-1][0] if changes else since
    shown = states[-1].state if states else ""
    if alarm and alarm.moved_at and last < alarm.moved_at <= until and alarm.state != shown:
        states.append(AlarmState(alarm.moved_at, alarm.state))
    return states


def _fewer(states: Sequence[AlarmState]) -> tuple[AlarmState, ...]:
    """Returns the first states and, if none of them is ALARM, the first one that is."""
    first, rest = states[:MOST_STATES], states[MOST_STATES:]
    loud = next((state for state in rest if state.state == ALARM), None)
    if loud and not any(state.state == ALARM for state in first):
        return (*first[:-1], loud)
    return tuple(first)
