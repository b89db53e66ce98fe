"""Records what CloudWatch records of alarms: their states to the millisecond, and each creation, change and deletion.

MiniStack records states with their second, a creation as a change of the state, and nothing of changes and deletions.
It sends no events. CloudWatch sends one for each change of a state; those of configurations are not emulated.
"""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Callable
from typing import Any

from ministack.services import cloudwatch

from ..service_events import events
from ._wrap import wrap

_CONFIGURING = (
    *("_put_metric_alarm", "_put_composite_alarm", "_delete_alarms"),
    *("cloudformation_put_metric_alarm", "cloudformation_delete_metric_alarm"),
)
_MOMENTS = ("StateTransitionedTimestamp",)
"""What an alarm keeps when it is changed; MiniStack forgets it of metric alarms."""

_last: dict[str, dict[str, Any]] = {}
"""The last recorded state of an alarm by its ARN, as its history has it."""


def apply() -> None:
    @wrap(cloudwatch, "_json_timestamp")
    def to_json(_original: Callable[[Any], Any], value: Any) -> Any:
        epoch = cloudwatch._parse_ts(value) if isinstance(value, str) else None
        return value if epoch is None else round(epoch, 3)

    @wrap(cloudwatch, "_record_history")
    def record(
        _original: Callable[..., None],
        name: str,
        old: str,
        new: str,
        reason: str,
        kind: str = "MetricAlarm",
        reason_data: Any = None,
    ) -> None:
        if old != new:  # else MiniStack records a creation
            _change_state(_alarms()[name], old, new, reason, kind, reason_data)

    for call in _CONFIGURING:

        @wrap(cloudwatch, call)
        def configure(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            before, place = _alarms(), len(cloudwatch._history_entries())
            answer = original(*args, **kwargs)
            now, after = round(time.time(), 3), _alarms()
            for name in sorted(before.keys() | after.keys()):
                if before.get(name) is not after.get(name):
                    cloudwatch._history_entries().insert(
                        place, _configured(name, before.get(name), after.get(name), now)
                    )
            return answer


def _alarms() -> dict[str, dict[str, Any]]:
    return {**dict(cloudwatch._composite_alarms.items()), **dict(cloudwatch._alarms.items())}


def _change_state(alarm: dict[str, Any], old: str, new: str, reason: str, kind: str, reason_data: Any) -> None:
    now = round(time.time(), 3)
    alarm["StateUpdatedTimestamp"] = alarm["StateTransitionedTimestamp"] = now
    before = _last.get(alarm["AlarmArn"]) or {"stateValue": old}
    if before["stateValue"] != old:
        before = {"stateValue": old}
    after = {"stateValue": new, "stateReason": reason}
    if data := reason_data or _parsed(alarm.get("StateReasonData")):
        after["stateReasonData"] = data
    _last[alarm["AlarmArn"]] = {**after, "at": now}
    states = {"oldState": {key: value for key, value in before.items() if key != "at"}, "newState": after}
    summary = f"Alarm updated from {old} to {new}"
    cloudwatch._history_entries().append(_entry(alarm["AlarmName"], kind, "StateUpdate", summary, states, now))
    detail = {
        "alarmName": alarm["AlarmName"],
        "configuration": _configuration(alarm),
        "previousState": _state(before),
        "state": _state(_last[alarm["AlarmArn"]]),
    }
    events.send("aws.cloudwatch", "CloudWatch Alarm State Change", detail, [alarm["AlarmArn"]])


def _configured(name: str, before: dict[str, Any] | None, after: dict[str, Any] | None, now: float) -> dict[str, Any]:
    """Returns the entry of a creation (no alarm before), a change or a deletion (none after)."""
    alarm = after or before
    assert alarm is not None
    kind = "CompositeAlarm" if "AlarmRule" in alarm else "MetricAlarm"
    if after is not None:
        after["AlarmConfigurationUpdatedTimestamp"] = now
        if before is None:
            after.setdefault("StateTransitionedTimestamp", now)
            after["StateUpdatedTimestamp"] = max(now, after["StateUpdatedTimestamp"])
        else:
            after.update({key: before[key] for key in _MOMENTS if key in before})
    verb = "Create" if before is None else "Update" if after else "Delete"
    data: dict[str, Any] = {"type": verb, f"{verb.lower()}dAlarm": _described(alarm)}
    if before and after:
        data["originalUpdatedFields"] = {
            key: value for key, value in _described(before).items() if _described(after).get(key) != value
        }
    else:
        _last.pop(alarm["AlarmArn"], None)
    return _entry(name, kind, "ConfigurationUpdate", f'Alarm "{name}" {verb.lower()}d', data, now)


def _entry(name: str, kind: str, item: str, summary: str, data: dict[str, Any], now: float) -> dict[str, Any]:
    return {
        "AlarmName": name,
        "AlarmType": kind,
        "Timestamp": _iso(now).replace("+0000", "Z"),
        "HistoryItemType": item,
        "HistorySummary": summary,
        "HistoryData": json.dumps({"version": "1.0", **data}),
    }


def _described(alarm: dict[str, Any]) -> dict[str, Any]:
    """Returns an alarm as entries of the history describe it."""
    named = ((key, value) for key, value in alarm.items() if value is not None)
    return {
        "okactions" if key == "OKActions" else _lower(key): _iso(value) if key.endswith("Timestamp") else value
        for key, value in named
    }


def _configuration(alarm: dict[str, Any]) -> dict[str, Any]:
    """Returns the configuration of an alarm as its events describe it."""
    described = {"description": alarm["AlarmDescription"]} if alarm.get("AlarmDescription") else {}
    if "AlarmRule" in alarm:
        return {**described, "alarmRule": alarm["AlarmRule"]}
    queries = alarm.get("Metrics") or [
        {
            "Id": "m1",
            "MetricStat": {
                "Metric": {key: alarm.get(key) for key in ("Dimensions", "MetricName", "Namespace")},
                "Period": alarm["Period"],
                "Stat": alarm.get("ExtendedStatistic") or alarm["Statistic"],
            },
            "ReturnData": True,
        }
    ]
    return {**described, "metrics": [_query(one) for one in queries]}


def _query(query: dict[str, Any]) -> dict[str, Any]:
    lowered = {_lower(key): value for key, value in query.items() if key != "MetricStat"}
    if stat := query.get("MetricStat"):
        metric = stat["Metric"]
        dimensions = {one["Name"]: one["Value"] for one in metric.get("Dimensions") or ()}
        lowered["metricStat"] = {
            "metric": {"dimensions": dimensions, "name": metric["MetricName"], "namespace": metric.get("Namespace")},
            "period": stat["Period"],
            "stat": stat["Stat"],
        }
    return lowered


def _state(recorded: dict[str, Any]) -> dict[str, Any]:
    state = {
        "value": recorded["stateValue"],
        "reason": recorded.get("stateReason", "Unchecked: Initial alarm creation"),
    }
    if "stateReasonData" in recorded:
        state["reasonData"] = json.dumps(recorded["stateReasonData"])
    return {**state, "timestamp": _iso(recorded.get("at", time.time()))}


def _parsed(text: Any) -> Any:
    try:
        return json.loads(text or "null")
    except ValueError:
        return None


def _lower(key: str) -> str:
    return key[0].lower() + key[1:]


def _iso(epoch: float) -> str:
    return dt.datetime.fromtimestamp(epoch, dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "+0000")
