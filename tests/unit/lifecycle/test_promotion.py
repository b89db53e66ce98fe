"""What the stage before has to show: the same code, for some business days, without an act-now alarm."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cli.shared import aws
from cli.shared.errors import CliError, Exit
from lifecycle import promotion
from lifecycle.promotion import Evidence, changed_code, objections, read_evidence, watched_since
from lifecycle.resources import Resource
from tests.unit.lifecycle.world import SESSION, synthesised
from troop.shared.calendars import parse_calendar
from troop.shared.outputs import RELEASE_METADATA
from troop.shared.release import Release, RunningRelease

HASHES = {name: f"{number:02x}" * 32 for number, name in enumerate(("functions", "runtime", "api", "agent"))}
RELEASE = Release("0.1.0", "1a" * 20, HASHES)
CALENDAR = parse_calendar(
    "troop:calendars", "default", {"time_zone": "Europe/Vienna", "open": "09:00", "close": "15:00", "country": "AT"}
)
FRIDAY = datetime(2026, 11, 20, 10, tzinfo=UTC)
MONDAY, TUESDAY, WEDNESDAY = (FRIDAY + timedelta(days=days) for days in (3, 4, 5))
EVENING = TUESDAY + timedelta(hours=8)
"""Of Tuesday: two windows have closed since Friday."""
AT_FRIDAY = Evidence("Troop-staging", RunningRelease(RELEASE, FRIDAY), RELEASE, CALENDAR, None)


def against(evidence: Evidence, new: Release | None = RELEASE, days: int = 2, now: datetime = EVENING) -> str:
    return "; ".join(objections(evidence, new, days, now))


@pytest.mark.parametrize(
    ("days", "now", "words"),
    [
        (0, FRIDAY, ""),
        (1, FRIDAY + timedelta(hours=12), "for 0 of 1 business days, since 2026-11-20T10:00:00Z: try again on Monday"),
        (1, MONDAY, "for 0 of 1 business days"),
        (1, datetime(2026, 11, 23, 13, 59, 59, tzinfo=UTC), "Monday, 2026-11-23 after 15:00 Europe/Vienna"),
        (1, datetime(2026, 11, 23, 14, tzinfo=UTC), ""),
        (2, TUESDAY, "for 1 of 2 business days"),
        (2, EVENING, ""),
        # The eighth of December is a holiday in Austria.
        (11, datetime(2026, 12, 6, tzinfo=UTC), "for 10 of 11 business days"),
        (12, datetime(2026, 12, 7, 15, tzinfo=UTC), "try again on Wednesday, 2026-12-09"),
    ],
)
def test_business_days_are_those_of_the_deployments_calendar(days: int, now: datetime, words: str) -> None:
    why = against(AT_FRIDAY, days=days, now=now)
    assert words in why if words else why == ""


@pytest.mark.parametrize("name", HASHES)
def test_other_code_is_refused_and_named(name: str) -> None:
    other = replace(RELEASE, assets=HASHES | {name: "ff" * 32})
    why = f"runs other code than this checkout has: {name} differ. It runs commit {RELEASE.commit}"
    assert against(AT_FRIDAY, replace(other, commit="2b" * 20)) == why
    advice = " too, packed by another version of zlib: use the machine or the artifact that built it"
    assert against(AT_FRIDAY, other) == why + advice


@pytest.mark.parametrize(
    ("there", "here", "words"),
    [
        ("1a" * 20, "2b" * 20, "use the commit that it runs"),
        ("1a" * 20, None, "this checkout is code of no commit"),
        (None, "1a" * 20, "runs code of no commit (commit the changes, or set TROOP_COMMIT)"),
        (None, None, "runs code of no commit"),
    ],
)
def test_same_code_of_another_or_no_commit_is_refused(there: str | None, here: str | None, words: str) -> None:
    release = replace(RELEASE, commit=there)
    evidence = replace(AT_FRIDAY, running=RunningRelease(release, FRIDAY), deployed=release)
    assert words in against(evidence, replace(RELEASE, commit=here))


def test_unrecorded_release_is_refused() -> None:
    assert "no release is recorded" in against(replace(AT_FRIDAY, running=None))
    assert "no release is recorded" in against(replace(AT_FRIDAY, deployed=None))
    assert "no release is recorded" in against(AT_FRIDAY, None)


def test_a_window_counts_from_the_next_morning_of_a_late_deployment_on() -> None:
    """Friday's window has closed a minute before, and the record is of the deployment's moment."""
    late = replace(AT_FRIDAY, running=RunningRelease(RELEASE, datetime(2026, 11, 20, 14, 1, tzinfo=UTC)))
    assert "for 0 of 1 business days" in against(late, days=1, now=datetime(2026, 11, 22, 23, 0, 30, tzinfo=UTC))
    assert against(late, days=1, now=datetime(2026, 11, 23, 14, tzinfo=UTC)) == ""
    early = replace(AT_FRIDAY, running=RunningRelease(RELEASE, datetime(2026, 11, 20, 8, tzinfo=UTC)))
    assert against(early, days=1, now=datetime(2026, 11, 20, 14, tzinfo=UTC)) == ""


def test_release_that_the_watchdog_has_yet_to_record_accuses_nobody() -> None:
    before = replace(RELEASE, commit="0d" * 20, assets=HASHES | {"functions": "aa" * 32})
    assert against(replace(AT_FRIDAY, running=RunningRelease(before, FRIDAY))) == (
        f"its watchdog has not recorded commit {RELEASE.commit} yet: try again in a quarter of an hour"
    )


def test_changed_code_and_alarms_are_refused() -> None:
    evidence = replace(AT_FRIDAY, changed=("FunctionsDecide",), alarms=(("Troop-staging-TicksFailed", MONDAY),))
    assert against(evidence) == (
        "somebody has changed the code of FunctionsDecide: deploy there again; the act-now alarm "
        "Troop-staging-TicksFailed was on at 2026-11-23T10:00:00Z, within the last 2 business days: this counts until "
        "Wednesday, 2026-11-25"
    )


@pytest.mark.parametrize(
    ("since", "days", "now", "begin"),
    [
        (FRIDAY, 1, MONDAY, FRIDAY),
        (FRIDAY, 5, MONDAY, FRIDAY),  # not long enough anyway
        (FRIDAY - timedelta(days=30), 1, MONDAY, datetime(2026, 11, 19, 23, tzinfo=UTC)),  # Friday in Vienna
        (FRIDAY - timedelta(days=30), 2, WEDNESDAY, datetime(2026, 11, 22, 23, tzinfo=UTC)),
        (FRIDAY - timedelta(days=30), 0, MONDAY, datetime(2026, 11, 22, 23, tzinfo=UTC)),
    ],
)
def test_alarms_count_only_within_the_last_business_days(
    since: datetime, days: int, now: datetime, begin: datetime
) -> None:
    assert watched_since(CALENDAR, since, days, now) == begin


class Staging:
    """AWS as the reader of evidence sees it: functions, layers, and alarms with their history."""

    def __init__(self) -> None:
        self.code = {"decide": HASHES["functions"], "arn:runtime": HASHES["runtime"], "arn:settings": "ee" * 32}
        self.states = {"Troop-TicksFailed": "OK", "Troop-WatchdogSilent": "OK", "Troop-Warned": "ALARM"}
        self.history: list[tuple[datetime, str]] = []
        self.silences: list[tuple[datetime, str]] = []
        self.created = FRIDAY - timedelta(days=300)

    def client(self, *_: Any, **__: Any) -> Any:
        return self

    def describe_stacks(self, StackName: str) -> dict[str, Any]:
        return {"Stacks": [{"CreationTime": self.created}]}

    def get_function_configuration(self, FunctionName: str) -> dict[str, Any]:
        return {"CodeSha256": base64.b64encode(bytes.fromhex(self.code[FunctionName])).decode()}

    def get_layer_version_by_arn(self, Arn: str) -> dict[str, Any]:
        return {"Content": self.get_function_configuration(Arn)}

    def describe_alarms(self, AlarmNames: list[str], AlarmTypes: list[str]) -> dict[str, Any]:
        return {"MetricAlarms": [{"StateValue": self.states[name]} for name in AlarmNames]}

    def get_paginator(self, operation: str) -> Any:
        assert operation == "describe_alarm_history"
        return self

    def paginate(self, **request: Any) -> list[Mapping[str, Any]]:
        assert (request["HistoryItemType"], request["ScanBy"]) == ("StateUpdate", "TimestampDescending")
        return [
            {"AlarmHistoryItems": [{"Timestamp": at, "HistorySummary": f"Alarm updated {change}"}]}
            for at, change in sorted(self.silences if "Silent" in request["AlarmName"] else self.history, reverse=True)
            if at >= request["StartDate"]
        ]


RESOURCES = {
    "FunctionsDecide": Resource("AWS::Lambda::Function", "decide"),
    "FunctionsRuntimeLayer": Resource("AWS::Lambda::LayerVersion", "arn:runtime"),
    "FunctionsSettingsLayer": Resource("AWS::Lambda::LayerVersion", "arn:settings"),
    "AlarmsTicksFailed": Resource("AWS::CloudWatch::Alarm", "Troop-TicksFailed"),
    "AlarmsWatchdogSilent": Resource("AWS::CloudWatch::Alarm", "Troop-WatchdogSilent"),
    "AlarmsWarned": Resource("AWS::CloudWatch::Alarm", "Troop-Warned"),
}
ALARMS: dict[str, Any] = {
    name: {"Type": "AWS::CloudWatch::Alarm", "Properties": {"AlarmActions": [{"Ref": topic}]}}
    for name, topic in (
        ("AlarmsTicksFailed", "ActNow"),
        ("AlarmsWatchdogSilent", "ActNow"),
        ("AlarmsWarned", "Warning"),
    )
}
ALARMS["AlarmsWatchdogSilent"]["Properties"]["TreatMissingData"] = "breaching"
OUTPUTS = {"ActNowTopicArn": {"Value": {"Ref": "ActNow"}}}
HEALTH = {"release": {**RELEASE.document(), "since": "2026-11-20T10:00:00.000Z"}}


@pytest.fixture
def staging(monkeypatch: pytest.MonkeyPatch) -> Staging:
    staging, template = Staging(), synthesised([])
    metadata = template["Metadata"] | {RELEASE_METADATA: json.dumps(RELEASE.document())}
    resources = {**template["Resources"], **ALARMS}
    template = {**template, "Metadata": metadata, "Resources": resources, "Outputs": OUTPUTS}
    monkeypatch.setattr(aws, "client", staging.client)
    monkeypatch.setattr(promotion, "resources_of", lambda *_: RESOURCES)
    monkeypatch.setattr(promotion, "template_of", lambda *_: template)
    return staging


def evidence_of(health: Mapping[str, Any] = HEALTH, days: int = 2, now: datetime = EVENING) -> Evidence:
    return read_evidence(SESSION, "Troop", "Troop-staging", health, days, now)


def test_a_quiet_deployment_with_its_own_code_has_nothing_against_it(staging: Staging) -> None:
    evidence = evidence_of()
    assert evidence.running == RunningRelease(RELEASE, FRIDAY)
    assert evidence.settings
    assert against(evidence) == ""


@pytest.mark.parametrize(
    ("resource", "name"), [("decide", "FunctionsDecide"), ("arn:runtime", "FunctionsRuntimeLayer")]
)
def test_code_that_somebody_uploaded_by_hand_is_noticed(staging: Staging, resource: str, name: str) -> None:
    staging.code[resource] = "dd" * 32
    assert evidence_of().changed == (name,)
    assert list(changed_code(SESSION, RESOURCES, RELEASE)) == [name]


@pytest.mark.parametrize(
    ("history", "state", "at"),
    [
        ([], "OK", None),
        ([], "ALARM", EVENING),
        ([(MONDAY, "from OK to INSUFFICIENT_DATA")], "OK", None),
        ([(MONDAY, "from OK to ALARM"), (MONDAY + timedelta(hours=1), "from ALARM to OK")], "OK", MONDAY),
        ([(MONDAY, "from ALARM to OK")], "OK", MONDAY),  # on before, and still on
        ([(FRIDAY - timedelta(hours=1), "from ALARM to OK")], "OK", None),  # the release before
    ],
)
def test_an_act_now_alarm_counts_if_it_was_on_while_the_release_ran(
    staging: Staging, history: list[tuple[datetime, str]], state: str, at: datetime | None
) -> None:
    staging.history, staging.states["Troop-TicksFailed"] = history, state
    alarms = evidence_of().alarms
    assert [name for name, _ in alarms] == (["Troop-TicksFailed"] if at else [])
    assert all(on.date() == at.date() for _, on in alarms if at)


def test_silence_counts_once_a_new_deployment_could_have_written_data(staging: Staging) -> None:
    staging.created = FRIDAY - timedelta(minutes=20)
    staging.silences = [(FRIDAY + timedelta(minutes=9), "from ALARM to OK")]
    assert evidence_of().alarms == ()
    staging.silences += [(MONDAY, "from OK to ALARM"), (MONDAY, "from ALARM to OK")]
    assert evidence_of().alarms == (("Troop-WatchdogSilent", MONDAY),)


def test_code_is_compared_with_the_template_and_not_with_the_record(staging: Staging) -> None:
    """After a deployment, the record is the watchdog's of before."""
    before = replace(RELEASE, commit="0d" * 20, assets=HASHES | {"functions": "aa" * 32})
    evidence = evidence_of({"release": {**before.document(), "since": "2026-11-20T10:00:00.000Z"}})
    assert evidence.deployed == RELEASE
    assert evidence.changed == ()


def test_record_of_an_earlier_stack_counts_from_the_creation_of_this_one(staging: Staging) -> None:
    staging.created = MONDAY
    running = evidence_of().running
    assert running
    assert running.since == MONDAY


def test_deployment_of_an_earlier_version_has_no_release(staging: Staging) -> None:
    assert evidence_of({"status": "ok"}).running is None


def test_deployment_without_a_record_of_its_calendar_is_refused(
    staging: Staging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(promotion, "template_of", lambda *_: {"Resources": {}})
    with pytest.raises(CliError, match="no record of its calendars") as refused:
        evidence_of()
    assert refused.value.code is Exit.FAILED


def test_alarms_of_more_than_cloudwatchs_history_are_not_taken_for_quiet() -> None:
    new_year = datetime(2027, 1, 8, 18, tzinfo=UTC)
    assert against(AT_FRIDAY, days=15, now=new_year) == ""
    assert "the history of alarms for 30 days: try fewer DAYS" in against(AT_FRIDAY, days=20, now=new_year)
