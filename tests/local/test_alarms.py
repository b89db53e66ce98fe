"""Alarms as CloudWatch runs them: a history of states and of configurations, events, and the alarms of a rule."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.aws_facts.test_events import DOCUMENTED
from tests.patience import eventually
from troop.chaos.aws.alarm_history import LISTED, Alarm, AlarmHistory
from troop.chaos.verdict import AlarmRecord

from .helpers import Listener, World, allow, code, unique

CHANGE = "CloudWatch Alarm State Change"


class Alarms:
    """Alarms of the account."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.client = world.account.client("cloudwatch")

    def metric(self, name: str = "", **more: Any) -> str:
        """Creates or changes a metric alarm; returns its name."""
        name = name or unique("alarm")
        self.client.put_metric_alarm(
            AlarmName=name,
            Namespace="shop",
            MetricName="errors",
            Dimensions=[{"Name": "service", "Value": "web"}],
            **{
                "Statistic": "Sum",
                "Period": 60,
                "EvaluationPeriods": 1,
                "Threshold": 1,
                "ComparisonOperator": "GreaterThanThreshold",
                **more,
            },
        )
        return name

    def composite(self, rule: str) -> str:
        name = unique("steady")
        self.client.put_composite_alarm(AlarmName=name, AlarmRule=rule)
        return name

    def set(self, name: str, state: str, reason: str = "a test") -> None:
        self.client.set_alarm_state(AlarmName=name, StateValue=state, StateReason=reason)

    def history(self, name: str, kinds: tuple[str, ...] = (), **more: Any) -> list[dict[str, Any]]:
        """The entries of an alarm, oldest first."""
        pages = self.client.get_paginator("describe_alarm_history").paginate(
            AlarmName=name, ScanBy="TimestampAscending", **({"AlarmTypes": list(kinds)} if kinds else {}), **more
        )
        return [item for page in pages for item in page["AlarmHistoryItems"]]


@pytest.fixture(scope="module")
def alarms(world: World) -> Alarms:
    return Alarms(world)


@pytest.fixture(scope="module")
def listener(world: World) -> Listener:
    return Listener(world.account, {"source": ["aws.cloudwatch"], "detail-type": [CHANGE]})


def test_a_changed_state_is_in_the_history_and_an_event(alarms: Alarms, listener: Listener) -> None:
    name, before = alarms.metric(AlarmDescription="Errors of the shop"), datetime.now(UTC)
    alarms.set(name, "OK", "all is well")
    alarms.set(name, "ALARM", "errors")
    first, second = alarms.history(name, HistoryItemType="StateUpdate")
    assert second["HistorySummary"] == "Alarm updated from OK to ALARM"
    data = json.loads(second["HistoryData"])
    assert data["oldState"] == {"stateValue": "OK", "stateReason": "all is well"}
    assert data["newState"] == {"stateValue": "ALARM", "stateReason": "errors"}
    assert before - timedelta(milliseconds=1) <= first["Timestamp"] <= second["Timestamp"], "cut to seconds"
    (described,) = alarms.client.describe_alarms(AlarmNames=[name])["MetricAlarms"]
    assert described["StateTransitionedTimestamp"] == described["StateUpdatedTimestamp"] == second["Timestamp"]

    def events() -> dict[str, dict[str, Any]]:
        heard = [one for one in listener.events() if one["detail"]["alarmName"] == name]
        return {one["detail"]["state"]["value"]: one for one in heard}

    event = eventually(lambda: len(events()) == 2 and events())["ALARM"]
    detail = event["detail"]
    assert detail.keys() == DOCUMENTED["aws.cloudwatch", CHANGE]
    assert event["resources"] == [described["AlarmArn"]]
    assert (detail["previousState"]["value"], detail["previousState"]["reason"]) == ("OK", "all is well")
    assert detail["state"]["reason"] == "errors"
    assert datetime.fromisoformat(detail["state"]["timestamp"]) == second["Timestamp"]
    (metric,) = detail["configuration"]["metrics"]
    assert metric["metricStat"] == {
        "metric": {"dimensions": {"service": "web"}, "name": "errors", "namespace": "shop"},
        "period": 60,
        "stat": "Sum",
    }


def test_a_composite_alarm_follows_its_rule_with_an_event(alarms: Alarms, listener: Listener) -> None:
    child = alarms.metric()
    name = alarms.composite(f'ALARM("{child}")')
    alarms.set(child, "ALARM")
    assert alarms.history(name) == [], "metric alarms only, unless AlarmTypes says otherwise"
    entries = alarms.history(name, ("CompositeAlarm",))
    summaries = [one["HistorySummary"] for one in entries]
    assert summaries[0] == f'Alarm "{name}" created'
    assert summaries[1:] == ["Alarm updated from INSUFFICIENT_DATA to OK", "Alarm updated from OK to ALARM"]
    (triggering,) = json.loads(entries[-1]["HistoryData"])["newState"]["stateReasonData"]["triggeringAlarms"]
    assert triggering["arn"].endswith(child)

    def rules() -> list[dict[str, Any]]:
        heard = [one["detail"] for one in listener.events() if one["detail"]["alarmName"] == name]
        return [one["configuration"] for one in heard if one["state"]["value"] == "ALARM"]

    assert eventually(rules) == [{"alarmRule": f'ALARM("{child}")'}]


def test_configurations_are_in_the_history(alarms: Alarms) -> None:
    name = alarms.metric()
    alarms.set(name, "OK")
    alarms.metric(name, Threshold=7)
    alarms.client.delete_alarms(AlarmNames=[name])
    created, updated, deleted = alarms.history(name, HistoryItemType="ConfigurationUpdate")
    assert [one["HistorySummary"].split()[-1] for one in (created, updated, deleted)] == [
        "created",
        "updated",
        "deleted",
    ]
    data = json.loads(updated["HistoryData"])
    assert (data["type"], data["originalUpdatedFields"]["threshold"], data["updatedAlarm"]["threshold"]) == (
        "Update",
        1,
        7,
    )
    assert json.loads(deleted["HistoryData"])["deletedAlarm"]["alarmName"] == name
    kinds = [one["HistoryItemType"] for one in alarms.history(name)]
    assert kinds == ["ConfigurationUpdate", "StateUpdate", "ConfigurationUpdate", "ConfigurationUpdate"]


def test_a_change_of_the_configuration_keeps_the_state(alarms: Alarms) -> None:
    name = alarms.metric()
    alarms.set(name, "OK")
    (before,) = alarms.client.describe_alarms(AlarmNames=[name])["MetricAlarms"]
    alarms.metric(name, Threshold=7)
    (after,) = alarms.client.describe_alarms(AlarmNames=[name])["MetricAlarms"]
    assert after["StateTransitionedTimestamp"] == before["StateTransitionedTimestamp"]
    assert after["AlarmConfigurationUpdatedTimestamp"] > before["AlarmConfigurationUpdatedTimestamp"]
    assert after["StateValue"] == "OK"


def test_a_history_has_pages_and_a_range(alarms: Alarms) -> None:
    name = alarms.metric()
    for state in ("OK", "ALARM", "OK", "ALARM"):
        alarms.set(name, state)
    entries = alarms.history(name)
    assert alarms.history(name, PaginationConfig={"PageSize": 2}) == entries
    third = entries[2]["Timestamp"]
    assert alarms.history(name, StartDate=third)[0] == entries[2]
    assert alarms.history(name, EndDate=third)[-1] == entries[2]


def test_a_rule_has_children_and_they_have_parents(alarms: Alarms) -> None:
    first, second, other = alarms.metric(), alarms.metric(), alarms.metric()
    inner = alarms.composite(f"OK({second})")
    outer = alarms.composite(f'ALARM("{first}") OR ALARM("{inner}")')
    children = alarms.client.describe_alarms(ChildrenOfAlarmName=outer)
    assert [one["AlarmName"] for one in children["MetricAlarms"]] == [first]
    assert [one["AlarmName"] for one in children["CompositeAlarms"]] == [inner]
    assert children["MetricAlarms"][0].keys() == {"AlarmName", "AlarmArn", "StateValue", "StateUpdatedTimestamp"}
    pages = alarms.client.get_paginator("describe_alarms").paginate(
        ChildrenOfAlarmName=outer, PaginationConfig={"PageSize": 1}
    )
    assert len(list(pages)) == 2
    parents = alarms.client.describe_alarms(ParentsOfAlarmName=second)["CompositeAlarms"]
    assert [one["AlarmName"] for one in parents] == [inner]
    assert alarms.client.describe_alarms(ChildrenOfAlarmName=other)["MetricAlarms"] == []
    with pytest.raises(ClientError) as both:
        alarms.client.describe_alarms(ChildrenOfAlarmName=outer, AlarmTypes=["MetricAlarm"])
    assert code(both) == "ValidationError"


def test_a_metric_without_dimensions_is_one_of_its_own(alarms: Alarms) -> None:
    name, now = unique("metric"), datetime.now(UTC)
    alarms.client.put_metric_data(
        Namespace="shop", MetricData=[{"MetricName": name, "Dimensions": [{"Name": "a", "Value": "b"}], "Value": 1}]
    )

    def values(*dimensions: dict[str, str]) -> list[float]:
        metric = {"Namespace": "shop", "MetricName": name, "Dimensions": list(dimensions)}
        query = {"Id": "m1", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Sum"}}
        span = {"StartTime": now - timedelta(minutes=2), "EndTime": now + timedelta(minutes=2)}
        (result,) = alarms.client.get_metric_data(MetricDataQueries=[query], **span)["MetricDataResults"]
        return list(result["Values"])

    assert values({"Name": "a", "Value": "b"}) == [1]
    assert values() == []


def test_alarms_are_shown_to_those_who_may_see_all(alarms: Alarms) -> None:
    name = alarms.composite("TRUE")
    arn = f"arn:aws:cloudwatch:us-east-1:000000000000:alarm:{name}"
    world = alarms.world

    def reads(resource: str) -> list[Any]:
        role = world.role(allow("cloudwatch:DescribeAlarmHistory", resource), allow("cloudwatch:GetMetricData"))
        client = world.account.client("cloudwatch", world.as_role(role))
        now = datetime.now(UTC)
        client.get_metric_data(MetricDataQueries=[], StartTime=now - timedelta(minutes=1), EndTime=now)
        history = client.describe_alarm_history(AlarmName=name, AlarmTypes=["CompositeAlarm"])
        return list(history["AlarmHistoryItems"])

    assert reads("*")
    with pytest.raises(ClientError) as narrow:
        reads(arn)
    assert code(narrow) in ("AccessDenied", "AccessDeniedException")


def test_a_verdict_reads_what_alarms_did(alarms: Alarms) -> None:
    inner = alarms.metric(EvaluationPeriods=2)
    data = {"MetricName": "errors", "Dimensions": [{"Name": "service", "Value": "web"}], "Value": 0}
    alarms.client.put_metric_data(Namespace="shop", MetricData=[data])
    alarms.set(inner, "OK")
    outer, quiet = alarms.composite(f'ALARM("{inner}")'), alarms.metric()
    alarms.set(quiet, "OK")
    history, names = AlarmHistory(alarms.client), [inner, outer, quiet]
    eventually(lambda: {one.state for one in history.alarms(names).values()} == {"OK"})
    time.sleep(1.1)  # moments of the emulation can be whole seconds
    since = datetime.now(UTC)
    alarms.set(inner, "ALARM")
    eventually(lambda: history.alarms([outer])[outer].state == "ALARM")
    alarms.set(inner, "OK")
    eventually(lambda: history.alarms([outer])[outer].state == "OK")
    until, read = datetime.now(UTC) + timedelta(seconds=60), history.alarms(names)
    assert {read[name].need for name in (inner, outer)} == {timedelta(seconds=120)}

    def record(name: str, alarm: Alarm | None) -> AlarmRecord:
        return history.record(name, alarm, since, until, until + LISTED)[0]

    records = {name: record(name, read[name]) for name in names}
    assert [record.doubt for record in records.values()] == ["", "", ""]
    states = {name: [state.state for state in record.states] for name, record in records.items()}
    assert states == {inner: ["OK", "ALARM", "OK"], outer: ["OK", "ALARM", "OK"], quiet: ["OK"]}
    assert history.had_data(read[outer], since - timedelta(minutes=1), until)
    alarms.metric(quiet, Threshold=2)
    assert "changed" in record(quiet, history.alarms([quiet])[quiet]).doubt
    alarms.client.delete_alarms(AlarmNames=[quiet])
    assert record(quiet, None).doubt == "there is no such alarm"
