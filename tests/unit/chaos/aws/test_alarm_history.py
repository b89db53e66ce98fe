"""Alarms as they are read from CloudWatch: needs, states over time, doubts, and data."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.unit.chaos.aws.recorded_alarms import RecordedAlarms, entry, state_update
from tests.unit.chaos.build import at
from troop.chaos.aws.alarm_history import MOST_ENTRIES, Alarm, AlarmHistory
from troop.chaos.verdict import AlarmRecord
from troop.chaos.verdict_rules import MOST_STATES

SINCE, UNTIL = at("12:00:02"), at("12:08:02")


@pytest.fixture
def world() -> RecordedAlarms:
    return RecordedAlarms()


def read(world: RecordedAlarms, name: str = "errors") -> Alarm:
    return AlarmHistory(world.client()).alarms([name])[name]


def record(world: RecordedAlarms, name: str = "errors") -> AlarmRecord:
    seen, _ = record_at(world, at("14:00"), name)
    return seen


def record_at(world: RecordedAlarms, now: datetime, name: str = "errors") -> tuple[AlarmRecord, bool]:
    history = AlarmHistory(world.client())
    return history.record(name, history.alarms([name]).get(name), SINCE, UNTIL, now)


def states(seen: AlarmRecord) -> list[tuple[datetime, str]]:
    return [(state.at, state.state) for state in seen.states]


# ------------------------------------------------------------------ how long an alarm needs


def _stat(period: int, **more: Any) -> dict[str, Any]:
    return {"MetricStat": {"Metric": {"Namespace": "shop", "MetricName": "m"}, "Period": period, "Stat": "Sum"}, **more}


MATH = [
    {"Id": "e", "Expression": "FILL(a, 0) / b", "ReturnData": True},
    {"Id": "a", **_stat(60), "ReturnData": False},
    {"Id": "b", **_stat(300), "ReturnData": False, "AccountId": "123456789012"},
]
BAND = [
    {"Id": "m1", **_stat(120), "ReturnData": True},
    {"Id": "ad1", "Expression": "ANOMALY_DETECTION_BAND(m1, 2)", "ReturnData": True},
]
INSIGHTS = [{"Id": "q", "Expression": "SELECT MAX(Latency) FROM shop", "Period": 60, "ReturnData": True}]
NO_METRIC: dict[str, Any] = dict.fromkeys(("MetricName", "Namespace", "Dimensions", "Statistic", "Period"))


@pytest.mark.parametrize(
    ("definition", "seconds"),
    [
        ({}, 180),
        ({"Period": 300, "EvaluationPeriods": 5, "DatapointsToAlarm": 1}, 1500),
        ({"Period": 10, "EvaluationPeriods": 1}, 10),
        ({**NO_METRIC, "Metrics": MATH}, 900),
        ({**NO_METRIC, "Metrics": BAND, "ThresholdMetricId": "ad1"}, 360),
        ({**NO_METRIC, "Metrics": INSIGHTS, "EvaluationPeriods": 2}, 120),
        ({"EvaluationWindow": {"WallClockWindow": {"Timezone": "UTC"}}}, 240),
        ({"EvaluationWindow": {"SlidingWindow": {}}}, 180),
    ],
)
def test_an_alarm_needs_all_its_periods(world: RecordedAlarms, definition: dict[str, Any], seconds: int) -> None:
    world.metric("errors", **definition)
    assert (read(world).need, read(world).doubt) == (timedelta(seconds=seconds), "")


def test_a_promql_alarm_needs_its_pending_time_and_proves_nothing(world: RecordedAlarms) -> None:
    criteria = {"PromQLCriteria": {"Query": "up == 0", "PendingPeriod": 120}}
    world.metric("errors", **NO_METRIC, EvaluationPeriods=None, EvaluationCriteria=criteria, EvaluationInterval=60)
    world.alarms["errors"]["Metrics"] = []
    assert read(world).need == timedelta(minutes=3)
    assert read(world).doubt == "CloudWatch does not tell whether the query of errors had data"


def test_an_alarm_that_cloudwatch_cannot_evaluate_proves_nothing(world: RecordedAlarms) -> None:
    world.metric("errors", EvaluationState="EVALUATION_ERROR")
    assert read(world).doubt == "CloudWatch could not evaluate errors: EVALUATION_ERROR"


def test_a_composite_alarm_needs_what_the_slowest_below_it_does(world: RecordedAlarms) -> None:
    world.metric("fast")
    world.metric("slow", Period=300)
    world.metric("other", Period=3600)
    world.composite("inner", "slow", "outer")
    world.composite("outer", "fast", "inner")
    assert read(world, "outer").need == timedelta(minutes=15)
    assert read(world, "outer").doubt == ""


def test_only_alarms_of_the_rule_count_as_below_a_composite_one(world: RecordedAlarms) -> None:
    """Some emulations of AWS list all alarms as children."""
    world.metric("fast")
    world.metric("slow", Period=600)
    world.composite("both", "fast")
    world.children["both"] = ["fast", "slow"]
    assert read(world, "both").need == timedelta(minutes=3)


def test_a_log_alarm_below_a_composite_one_proves_nothing(world: RecordedAlarms) -> None:
    world.metric("fast")
    world.composite("both", "fast", "logs")
    assert read(world, "both").doubt == "an alarm of its rule is neither a metric alarm nor a composite one"


def test_not_all_alarms_below_a_large_tree_are_read(world: RecordedAlarms) -> None:
    for number in range(60):
        world.metric(f"left-{number}")
        world.metric(f"right-{number}")
    world.composite("left", *(f"left-{number}" for number in range(60)))
    world.composite("right", *(f"right-{number}" for number in range(60)))
    world.composite("top", "left", "right")
    assert read(world, "top").doubt == "more than 100 alarms are below it"


def test_missing_alarms_are_not_returned(world: RecordedAlarms) -> None:
    world.metric("errors")
    assert list(AlarmHistory(world.client()).alarms(["errors", "gone"])) == ["errors"]


def test_many_names_are_read_in_parts(world: RecordedAlarms) -> None:
    names = [f"a{number:03}" for number in range(150)]
    for name in names:
        world.metric(name)
    assert sorted(AlarmHistory(world.client()).alarms(names)) == names
    assert world.operations() == ["DescribeAlarms", "DescribeAlarms"]


# ------------------------------------------------------------------ the states


def test_an_alarm_without_changes_has_its_present_state(world: RecordedAlarms) -> None:
    world.metric("errors", StateTransitionedTimestamp=at("08:00"))
    world.entries["errors"] = [state_update(at("08:00"), "ALARM", "OK")]
    assert states(record(world)) == [(SINCE, "OK")]
    assert record(world).doubt == ""


def test_the_first_state_is_that_before_the_first_change(world: RecordedAlarms) -> None:
    world.metric("errors", StateValue="ALARM", StateTransitionedTimestamp=at("12:20"))
    world.entries["errors"] = [
        state_update(at("12:04"), "OK", "INSUFFICIENT_DATA"),
        state_update(at("12:05"), "INSUFFICIENT_DATA", "OK"),
        state_update(at("12:20"), "OK", "ALARM"),
    ]
    expected = [(SINCE, "OK"), (at("12:04"), "INSUFFICIENT_DATA"), (at("12:05"), "OK")]
    assert states(record(world)) == expected
    assert record(world).doubt == ""


def test_a_change_after_the_span_tells_the_state_in_it(world: RecordedAlarms) -> None:
    world.metric("errors", StateValue="OK", StateTransitionedTimestamp=at("12:30"))
    world.entries["errors"] = [state_update(at("12:20"), "ALARM", "OK"), state_update(at("12:30"), "OK", "ALARM")]
    assert states(record(world)) == [(SINCE, "ALARM")]


def test_a_recent_change_after_the_span_does_not_tell_the_state_in_it(world: RecordedAlarms) -> None:
    """An alarm goes on and off within a second, and the history has only the second change yet."""
    world.metric("errors", StateTransitionedTimestamp=at("12:08:05"))
    world.entries["errors"] = [state_update(at("12:08:05"), "ALARM", "OK")]
    seen, is_recent = record_at(world, at("12:08:06"))
    assert (states(seen), is_recent) == ([], True)
    world.entries["errors"].insert(0, state_update(at("12:08:04"), "OK", "ALARM"))
    seen, is_recent = record_at(world, at("12:08:16"))
    assert (states(seen), is_recent) == ([(SINCE, "OK")], False)


@pytest.mark.parametrize(
    ("entries", "moved_at", "is_recent"),
    [
        ([], "08:00", False),
        ([], "12:08:01", True),
        (["12:04"], "12:04", False),
        (["12:08:01"], "12:08:01", True),
        (["12:04"], "12:08:03", True),
        (["12:07:30", "12:08:05"], "12:08:05", True),
    ],
)
def test_a_recent_change_can_hide_others(
    world: RecordedAlarms, entries: list[str], moved_at: str, is_recent: bool
) -> None:
    world.metric("errors", StateTransitionedTimestamp=at(moved_at))
    world.entries["errors"] = [state_update(at(one), "INSUFFICIENT_DATA", "OK") for one in entries]
    assert record_at(world, at("12:08:06"))[1] is is_recent
    assert record_at(world, at("12:08:15.001"))[1] is False


def test_only_the_first_change_after_the_span_counts_as_recent(world: RecordedAlarms) -> None:
    """An alarm that flaps for long does not put off a verdict for long."""
    world.metric("errors", StateTransitionedTimestamp=at("12:30"))
    world.entries["errors"] = [state_update(at("12:20"), "OK", "ALARM"), state_update(at("12:30"), "ALARM", "OK")]
    seen, is_recent = record_at(world, at("12:30:01"))
    assert (states(seen), is_recent) == ([(SINCE, "OK")], False)


def test_a_change_at_the_moment_of_the_termination_is_the_first_state(world: RecordedAlarms) -> None:
    world.metric("errors")
    world.entries["errors"] = [state_update(SINCE, "ALARM", "OK")]
    assert states(record(world)) == [(SINCE, "OK")]


def test_the_summary_is_read_where_cloudwatch_has_cut_the_data(world: RecordedAlarms) -> None:
    world.metric("errors")
    world.entries["errors"] = [state_update(at("12:04"), "OK", "ALARM", data='{"version":"1.0","oldS')]
    assert states(record(world)) == [(SINCE, "OK"), (at("12:04"), "ALARM")]


def test_a_change_that_the_history_lacks_for_a_moment_counts(world: RecordedAlarms) -> None:
    world.metric("errors", StateValue="ALARM", StateTransitionedTimestamp=at("12:07:59"))
    assert states(record(world)) == [(at("12:07:59"), "ALARM")]
    world.entries["errors"] = [state_update(at("12:02"), "OK", "INSUFFICIENT_DATA")]
    expected = [(SINCE, "OK"), (at("12:02"), "INSUFFICIENT_DATA"), (at("12:07:59"), "ALARM")]
    assert states(record(world)) == expected
    world.entries["errors"] = [state_update(at("12:07:58.900"), "OK", "ALARM")]
    assert states(record(world)) == [(SINCE, "OK"), (at("12:07:58.900"), "ALARM")]


def test_composite_alarms_have_a_history_too(world: RecordedAlarms) -> None:
    world.metric("fast")
    world.composite("both", "fast")
    world.entries["both"] = [state_update(at("12:04"), "OK", "ALARM")]
    assert states(record(world, "both")) == [(SINCE, "OK"), (at("12:04"), "ALARM")]


def test_a_deleted_alarm_keeps_its_history(world: RecordedAlarms) -> None:
    world.entries["errors"] = [state_update(at("12:04"), "OK", "ALARM"), entry(at("12:05"), "ConfigurationUpdate")]
    seen = record(world)
    assert states(seen) == [(SINCE, "OK"), (at("12:04"), "ALARM")]
    assert seen.doubt == "there is no such alarm"


def test_an_alarm_that_never_existed_has_no_states(world: RecordedAlarms) -> None:
    assert record(world) == AlarmRecord("errors", (), "there is no such alarm")


@pytest.mark.parametrize("kind", ["Action", "AlarmContributorStateUpdate", "AlarmContributorAction"])
def test_entries_of_other_kinds_change_nothing(world: RecordedAlarms, kind: str) -> None:
    world.metric("errors")
    world.entries["errors"] = [entry(at("12:04"), kind), state_update(at("12:05"), "OK", "ALARM")]
    assert states(record(world)) == [(SINCE, "OK"), (at("12:05"), "ALARM")]
    assert record(world).doubt == ""


@pytest.mark.parametrize(("clock", "doubt"), [("12:04", True), ("12:08:02", True), ("12:09", False), ("12:00", False)])
def test_a_changed_configuration_is_a_doubt(world: RecordedAlarms, clock: str, doubt: bool) -> None:
    world.metric("errors")
    world.entries["errors"] = [entry(at(clock), "ConfigurationUpdate", 'Alarm "errors" updated')]
    assert record(world).doubt.startswith("it was created, changed or deleted at") is doubt


def test_a_change_below_a_composite_alarm_is_a_doubt(world: RecordedAlarms) -> None:
    world.metric("fast", AlarmConfigurationUpdatedTimestamp=at("12:04"))
    world.composite("both", "fast", AlarmConfigurationUpdatedTimestamp=at("08:00"))
    assert record(world, "both").doubt == "it was created or changed at 2026-11-20T20:04:00Z"


def _flapping(count: int, *states: str) -> list[dict[str, Any]]:
    moments = [SINCE + timedelta(milliseconds=100 * number) for number in range(1, count + 1)]
    turns = [states[number % len(states)] for number in range(count + 1)]
    return [state_update(moment, old, new) for moment, old, new in zip(moments, turns, turns[1:], strict=False)]


def test_a_flapping_alarm_is_read_and_stored_in_part(world: RecordedAlarms) -> None:
    world.metric("errors")
    world.entries["errors"] = _flapping(MOST_ENTRIES + 300, "OK", "INSUFFICIENT_DATA")
    seen = record(world)
    assert len(seen.states) == MOST_STATES
    assert seen.doubt == f"its history has more than {MOST_ENTRIES} entries"
    assert len(world.operations()) - 1 == (MOST_ENTRIES + 2) // 3, "no page after the limit"


def test_a_late_alarm_of_many_changes_is_stored(world: RecordedAlarms) -> None:
    world.metric("errors")
    world.entries["errors"] = [
        *_flapping(80, "OK", "INSUFFICIENT_DATA"),
        state_update(at("12:05"), "OK", "ALARM"),
        state_update(at("12:06"), "ALARM", "OK"),
    ]
    seen = record(world)
    assert len(seen.states) == MOST_STATES
    assert states(seen)[-1] == (at("12:05"), "ALARM")
    assert seen.doubt == "it changed its state 83 times"


def test_reading_ends_with_the_first_change_after_the_span(world: RecordedAlarms) -> None:
    world.metric("errors")
    world.entries["errors"] = [state_update(UNTIL + timedelta(minutes=n), "OK", "ALARM") for n in range(1, 50)]
    record(world)
    assert world.operations() == ["DescribeAlarms", "DescribeAlarmHistory"]


# ------------------------------------------------------------------ data


def had_data(world: RecordedAlarms, name: str = "errors") -> bool:
    history = AlarmHistory(world.client())
    return history.had_data(history.alarms([name])[name], SINCE, UNTIL)


def queries(world: RecordedAlarms) -> list[list[dict[str, Any]]]:
    return [request["MetricDataQueries"] for operation, request in world.requests if operation == "GetMetricData"]


def test_data_are_those_of_the_alarm(world: RecordedAlarms) -> None:
    world.metric("errors", Unit="Count", Statistic=None, ExtendedStatistic="p99")
    assert had_data(world)
    metric = {"Namespace": "shop", "MetricName": "errors", "Dimensions": [{"Name": "service", "Value": "web"}]}
    stat = {"Metric": metric, "Period": 60, "Stat": "p99", "Unit": "Count"}
    assert queries(world) == [[{"Id": "m0", "MetricStat": stat}]]
    world.data.clear()
    assert not had_data(world)


def test_an_expression_has_data_where_one_of_its_metrics_has(world: RecordedAlarms) -> None:
    world.metric("errors", **NO_METRIC, Metrics=MATH)
    world.data = {"e": [0.0]}
    assert not had_data(world), "FILL makes values of nothing"
    (query,) = queries(world)
    assert query == [{"Id": "m0", **_stat(60)}, {"Id": "m1", **_stat(300), "AccountId": "123456789012"}]
    world.data = {"m1": [0.0]}
    assert had_data(world)


def test_a_query_of_metrics_insights_stays_as_it_is(world: RecordedAlarms) -> None:
    world.metric("errors", **NO_METRIC, Metrics=INSIGHTS)
    world.data = {"q": [2.0]}
    assert had_data(world)
    assert queries(world) == [INSIGHTS]


def test_a_composite_alarm_has_data_where_an_alarm_below_it_has(world: RecordedAlarms) -> None:
    world.metric("fast")
    world.metric("query", **NO_METRIC, Metrics=INSIGHTS)
    world.composite("both", "fast", "query")
    world.data = {"q": [2.0]}
    assert had_data(world, "both")
    world.data = {}
    assert not had_data(world, "both")


def test_a_composite_alarm_without_alarms_has_no_data(world: RecordedAlarms) -> None:
    world.composite("never")
    assert not had_data(world, "never")
    assert queries(world) == []
