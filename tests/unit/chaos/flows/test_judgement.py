"""Judgement: when a verdict is given, what it waits for, and what it makes of alarms that cannot be read."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.unit.chaos.aws.recorded_alarms import RecordedAlarms, state_update
from tests.unit.chaos.build import at, event
from troop.chaos.aws.alarm_history import AlarmHistory
from troop.chaos.events import Abort, Event, Status, Watch
from troop.chaos.flows.judgement import Judgement
from troop.chaos.hypothesis import Hypothesis
from troop.chaos.verdict import Verdict, VerdictValue
from troop.chaos.verdict_rules import repeated

HELD, BROKEN, UNKNOWN = VerdictValue.HELD, VerdictValue.BROKEN, VerdictValue.UNKNOWN
WHOLE, CLOSED, SETTLED = at("12:02:02"), at("12:02:06"), at("12:06:02")
"""The alarm ``errors`` needs 3 minutes, and a verdict one more."""


@pytest.fixture
def world() -> RecordedAlarms:
    world = RecordedAlarms()
    world.metric("errors")
    return world


def recovered(*alarms: str, **changes: Any) -> Event:
    watch = Watch(whole=2, short_at=at("12:02"))
    values = {"status": Status.RECOVERED, "recovered_at": WHOLE, "watch": watch, "hypothesis": Hypothesis(alarms)}
    return event(**{**values, **changes})


def awaiting(*alarms: str, **changes: Any) -> Event:
    return recovered(*alarms, **{"settles_at": SETTLED, **changes})


def outcome(world: RecordedAlarms, ended: Event, now: datetime) -> tuple[Verdict | None, datetime | None]:
    return Judgement(AlarmHistory(world.client())).verdict(ended, now)


def verdict(world: RecordedAlarms, ended: Event, now: datetime = SETTLED) -> Verdict:
    judged, _ = outcome(world, ended, now)
    assert judged
    assert repeated(replace(ended, verdict=judged)) == judged, "the stored event gives it again"
    return judged


def test_a_recovery_waits_until_its_alarms_had_time(world: RecordedAlarms) -> None:
    assert outcome(world, recovered("errors"), CLOSED) == (None, SETTLED)
    assert outcome(world, awaiting("errors"), SETTLED - timedelta(seconds=1)) == (None, SETTLED)
    held = verdict(world, awaiting("errors"))
    assert (held.value, held.since, held.until, held.at) == (HELD, at("12:00:02"), SETTLED, SETTLED)


def test_a_late_verdict_is_on_the_same_span(world: RecordedAlarms) -> None:
    world.entries["errors"] = [state_update(at("12:30"), "OK", "ALARM")]
    world.alarms["errors"]["StateValue"] = "ALARM"
    late = verdict(world, awaiting("errors"), at("14:00"))
    assert (late.value, late.until) == (HELD, SETTLED)


def test_a_recovery_known_late_needs_no_more_wait(world: RecordedAlarms) -> None:
    assert verdict(world, recovered("errors"), at("14:00")).until == SETTLED


def test_an_alarm_that_went_off_is_a_verdict_at_once(world: RecordedAlarms) -> None:
    world.entries["errors"] = [state_update(at("12:01"), "OK", "ALARM"), state_update(at("12:02"), "ALARM", "OK")]
    broken = verdict(world, recovered("errors"), CLOSED)
    assert (broken.value, broken.until) == (BROKEN, CLOSED)
    world.entries["errors"] = [state_update(at("12:05"), "OK", "ALARM")]
    assert outcome(world, recovered("errors"), CLOSED) == (None, SETTLED)
    assert verdict(world, awaiting("errors"), at("12:05:01")).value is BROKEN


def test_a_verdict_waits_for_a_history_that_can_lack_a_change(world: RecordedAlarms) -> None:
    """Just after the span, an alarm goes on and off; its history has the second change first."""
    off = SETTLED + timedelta(seconds=2)
    world.entries["errors"] = [state_update(off, "ALARM", "OK")]
    for ended in (recovered("errors"), awaiting("errors")):
        assert outcome(world, ended, off + timedelta(seconds=1)) == (None, SETTLED)
    world.entries["errors"].append(state_update(off - timedelta(seconds=1), "OK", "ALARM"))
    held = verdict(world, awaiting("errors"), off + timedelta(seconds=10))
    assert (held.value, held.until) == (HELD, SETTLED)


def test_an_event_without_recovery_waits_for_no_history(world: RecordedAlarms) -> None:
    world.entries["errors"] = [state_update(at("12:31:59"), "OK", "INSUFFICIENT_DATA")]
    ended = recovered("errors", status=Status.GROUP_DELETED, recovered_at=None)
    assert verdict(world, ended, at("12:32")).value is UNKNOWN


def test_a_recovery_that_took_too_long_is_a_verdict_at_once(world: RecordedAlarms) -> None:
    assert verdict(world, recovered(hypothesis=Hypothesis(("errors",), (), 60)), CLOSED).value is BROKEN


def test_a_doubt_waits_too(world: RecordedAlarms) -> None:
    """Until then, another alarm can go off."""
    assert outcome(world, recovered("errors", "gone"), CLOSED) == (None, SETTLED)
    unknown = verdict(world, awaiting("errors", "gone"))
    assert (unknown.value, unknown.why) == (UNKNOWN, "alarm gone: there is no such alarm")


def test_a_unit_without_alarms_is_judged_at_once_without_a_call(world: RecordedAlarms) -> None:
    for hypothesis in (Hypothesis((), ("stops",)), None):
        held = verdict(world, recovered(hypothesis=hypothesis), CLOSED)
        assert (held.value, held.until) == (HELD, WHOLE)
    assert world.requests == []


@pytest.mark.parametrize(("status", "value"), [(Status.UNRECOVERED, BROKEN), (Status.GROUP_DELETED, UNKNOWN)])
def test_an_end_without_recovery_is_judged_at_once(world: RecordedAlarms, status: Status, value: VerdictValue) -> None:
    ended = recovered("errors", status=status, recovered_at=None)
    judged = verdict(world, ended, at("12:32"))
    assert (judged.value, judged.until) == (value, at("12:32"))
    assert verdict(world, replace(ended, hypothesis=Hypothesis()), at("12:32")).value is value


def test_an_alarm_without_data_proves_nothing(world: RecordedAlarms) -> None:
    world.data = {}
    unknown = verdict(world, awaiting("errors"))
    assert (unknown.value, unknown.why) == (UNKNOWN, "alarm errors: its metric had no data at all")


def test_data_are_read_only_where_they_decide(world: RecordedAlarms) -> None:
    world.entries["errors"] = [state_update(at("12:04"), "OK", "INSUFFICIENT_DATA")]
    assert verdict(world, awaiting("errors")).value is UNKNOWN
    assert "GetMetricData" not in world.operations()


def test_an_event_about_an_alarm_that_its_history_lacks_is_a_doubt(world: RecordedAlarms) -> None:
    unknown = verdict(world, awaiting("errors", abort=Abort(at("12:04"), "errors")))
    assert unknown.value is UNKNOWN
    assert unknown.why == "alarm errors: an event of 2026-11-20T20:04:00Z says that it went off; its history does not"
    for abort in (Abort(at("12:04"), "stops"), Abort(at("12:07"), "errors"), Abort(at("11:00"), "errors")):
        assert verdict(world, awaiting("errors", abort=abort)).value is HELD


def test_an_event_about_an_alarm_that_its_history_confirms_is_no_doubt(world: RecordedAlarms) -> None:
    world.entries["errors"] = [state_update(at("12:04"), "OK", "ALARM")]
    broken = verdict(world, awaiting("errors", abort=Abort(at("12:04"), "errors")))
    assert (broken.value, [record.doubt for record in broken.alarms]) == (BROKEN, [""])


def test_a_forgotten_history_is_a_doubt(world: RecordedAlarms) -> None:
    unknown = verdict(world, awaiting("errors"), at("12:00") + timedelta(days=31))
    assert (unknown.value, unknown.why) == (UNKNOWN, "alarm errors: CloudWatch keeps its history for 30 days")


# ------------------------------------------------------------------ refusals

OPERATIONS = ["DescribeAlarms", "DescribeAlarmHistory", "GetMetricData"]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_alarms_that_may_not_be_read_make_it_unknown(world: RecordedAlarms, operation: str) -> None:
    world.refusals[operation] = ("AccessDenied", 403)
    unknown = verdict(world, awaiting("errors"))
    assert unknown.value is UNKNOWN
    assert "cannot be read: An error occurred (AccessDenied)" in unknown.why
    assert len(unknown.alarms[0].doubt) <= 200


def test_alarms_that_may_not_be_described_have_the_longest_time(world: RecordedAlarms) -> None:
    world.refusals["DescribeAlarms"] = ("AccessDenied", 403)
    assert outcome(world, recovered("errors"), CLOSED) == (None, at("13:03:02"))
    world.entries["errors"] = [state_update(at("12:01"), "OK", "ALARM")]
    assert verdict(world, recovered("errors"), CLOSED).value is BROKEN


@pytest.mark.parametrize(("code", "status"), [("Throttling", 400), ("InternalServiceError", 500)])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_failure_that_can_pass_is_raised_while_there_is_time(
    world: RecordedAlarms, operation: str, code: str, status: int
) -> None:
    world.refusals[operation] = (code, status)
    with pytest.raises(ClientError, match=code):
        outcome(world, awaiting("errors"), SETTLED)
    assert verdict(world, awaiting("errors"), SETTLED + timedelta(minutes=10)).value is UNKNOWN


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_failure_keeps_no_event_from_being_closed(world: RecordedAlarms, operation: str) -> None:
    world.refusals[operation] = ("Throttling", 400)
    settled = at("13:03:02") if operation == "DescribeAlarms" else SETTLED
    assert outcome(world, recovered("errors"), CLOSED) == (None, settled)
    assert outcome(world, recovered("errors"), settled) == (None, settled), "the next check can read them"
    ended = recovered("errors", status=Status.UNRECOVERED, recovered_at=None)
    assert verdict(world, ended, at("12:32")).value is BROKEN
    ended = recovered("errors", status=Status.GROUP_DELETED, recovered_at=None)
    assert verdict(world, ended, at("12:32")).value is UNKNOWN


def test_a_failure_before_the_alarms_have_settled_is_waited_out(world: RecordedAlarms) -> None:
    world.refusals["DescribeAlarmHistory"] = ("Throttling", 400)
    assert outcome(world, awaiting("errors"), CLOSED) == (None, SETTLED)


# ------------------------------------------------------------------ slow alarms


def test_an_alarm_that_needs_longer_than_an_hour_proves_nothing(world: RecordedAlarms) -> None:
    world.metric("errors", Period=3600, EvaluationPeriods=1)
    settled = at("13:03:02")
    assert outcome(world, recovered("errors"), CLOSED) == (None, settled)
    assert verdict(world, awaiting("errors", settles_at=settled), settled).value is HELD
    world.metric("errors", Period=3600, EvaluationPeriods=24)
    assert outcome(world, recovered("errors"), CLOSED) == (None, settled)
    unknown = verdict(world, awaiting("errors", settles_at=settled), settled)
    assert unknown.why == "alarm errors: it needs 1440 minutes to go off, and had 61 after the recovery"


def test_an_alarm_that_became_slower_proves_nothing(world: RecordedAlarms) -> None:
    world.metric("errors", Period=300)
    unknown = verdict(world, awaiting("errors"))
    assert unknown.why == "alarm errors: it needs 15 minutes to go off, and had 4 after the recovery"
