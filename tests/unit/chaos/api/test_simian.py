"""The original's API: what its clients send, and what they are told."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

import pytest

from handlers import api
from tests.unit.account.account import CONTEXT, OVERDUE, SETTINGS, Account, before, calls
from tests.unit.account.asking import ANNA, answered, ask
from tests.unit.chaos.api.test_terminations import executions, machine
from tests.unit.chaos.build import event
from troop.chaos.api import simian
from troop.chaos.aws.event_items import to_item
from troop.chaos.events import Status
from troop.chaos.injection import Injection
from troop.shared.wiring import environment

__all__ = ["machine"]
PATH = "/simianarmy/api/v1/chaos"
WEB = {"eventType": "CHAOS_TERMINATION", "groupType": "ASG", "groupName": "web"}


def post(body: Any = WEB, caller: str = ANNA, **headers: str) -> tuple[int, Any]:
    """As a client that sends no Content-Type, unless a header says so."""
    event = {
        "resource": PATH,
        "path": PATH,
        "httpMethod": "POST",
        "headers": headers,
        "multiValueHeaders": {name: [value] for name, value in headers.items()},
        "queryStringParameters": None,
        "multiValueQueryStringParameters": None,
        "requestContext": {"requestId": "r", "stage": "v1", "identity": {"userArn": caller}},
        "body": body if isinstance(body, str) else json.dumps(body),
        "isBase64Encoded": False,
    }
    answer = api.handler(event, CONTEXT)
    return answer["statusCode"], json.loads(answer["body"])


FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize("headers", [{}, {"Content-Type": "application/json"}, {"Content-Type": FORM}])
def test_a_termination_as_the_original_answers_it(account: Account, headers: dict[str, str]) -> None:
    account.group("web")
    status, answer = post(WEB | {"whatever": 1}, **headers)
    assert status == 200
    (work,) = executions()
    event = account.event(work["event_id"])
    assert answer == {
        "monkeyType": "CHAOS",
        "eventId": event.instance_id,
        "eventType": "CHAOS_TERMINATION",
        "eventTime": int(OVERDUE.timestamp() * 1000),
        "region": "eu-central-1",
        "groupType": "ASG",
        "groupName": "web",
        "chaosType": "ShutdownInstance",
    }
    assert ask("GET", PATH) == (200, [answer])


def recover(account: Account) -> None:
    """Carries out what is claimed, and sees the group whole again."""
    for work in executions():
        if account.event(work["event_id"]).status is Status.CLAIMED:
            account.terminate(work)
            account.check_recovery(work["event_id"]), account.check_recovery(work["event_id"])


def test_a_request_whose_connection_broke_counts_once(account: Account) -> None:
    account.group("web")
    account.clock.moment = OVERDUE.replace(second=58, microsecond=999_600)  # the minute of the clock ends in between
    first = post()
    account.clock.forward(seconds=3.9)
    assert post() == first
    recover(account)
    assert post() == first
    assert len(account.all_events()) == 1


def test_three_requests_five_seconds_apart_terminate_three_times(account: Account) -> None:
    """As the original's clients ask, of a group that recovers in between."""
    account.group("web")
    answers = []
    for _ in range(3):
        answers.append(post())
        recover(account)
        account.clock.forward(seconds=5)
    assert [status for status, _ in answers] == [200, 200, 200]
    instances = {answer["eventId"] for _, answer in answers}
    assert len(instances) == len(account.all_events()) == 3
    assert instances == set(account.gone())


def test_the_next_request_is_refused_while_the_unit_has_not_recovered(account: Account) -> None:
    """And is not answered with the instance of the last one, as if it were another termination."""
    account.group("web")
    post()
    account.clock.forward(seconds=5)
    status, answer = post()
    assert (status, answer["message"].partition(":")[0]) == (403, "in-flight")
    assert len(account.all_events()) == 1


@pytest.mark.parametrize(("hours", "status"), [(0, 200), (1, 500), (-1, 500)])
def test_a_function_with_a_wrong_clock_claims_nothing(account: Account, hours: int, status: int) -> None:
    account.group("web")
    event = {"resource": PATH, "path": PATH, "httpMethod": "POST", "headers": {}, "body": json.dumps(WEB)}
    stamp = int(OVERDUE.timestamp() * 1000) + hours * 3_600_000
    answer = api.handler(event | {"requestContext": {"requestTimeEpoch": stamp, "requestId": "r"}}, CONTEXT)
    assert answer["statusCode"] == status
    assert len(account.all_events()) == (status == 200)


def test_other_callers_bodies_and_keys_are_no_repeats(account: Account) -> None:
    account.group("web")
    assert post()[0] == 200
    for other in (post(caller="arn:other"), post(WEB | {"x": 1}), post(WEB | {"idempotencyKey": "k"})):
        assert other[0] == 403
        assert "in-flight" in other[1]["message"]


def test_a_key_says_what_is_the_same(account: Account) -> None:
    account.group("web")
    first = post(WEB | {"idempotencyKey": "k"})
    account.clock.forward(minutes=5)
    assert post(WEB | {"other": "fields"}, caller="arn:other", **{"idempotency-key": "k"}) == first
    assert account.all_events() == ["od#web#k"]


@pytest.mark.parametrize("chaos_type", ["", None, "shutdowninstance", "SHUTDOWNINSTANCE", "ShutdownInstance"])
def test_the_strategy_may_be_empty_and_in_any_case(account: Account, chaos_type: str | None) -> None:
    account.group("web")
    status, answer = post(WEB | {"chaosType": chaos_type})
    assert (status, answer["chaosType"]) == (200, "ShutdownInstance")


@pytest.mark.parametrize(
    ("body", "status", "echoed"),
    [
        (WEB | {"groupName": "nobody"}, 404, {"groupName": "nobody", "chaosType": "ShutdownInstance"}),
        (WEB | {"chaosType": "BurnCpu"}, 400, {"groupName": "web", "chaosType": "BurnCpu"}),
        (WEB | {"eventType": "OTHER"}, 400, {"eventType": "OTHER", "groupName": "web"}),
        (WEB | {"groupType": "TAG"}, 400, {"groupType": "TAG"}),
        (WEB | {"chaosType": ""}, 403, {"chaosType": "ShutdownInstance"}),
        ({"groupName": ["web"]}, 400, {"eventType": None, "groupType": None, "groupName": None}),
        ({}, 400, {"eventType": None, "groupType": None, "groupName": None, "chaosType": "ShutdownInstance"}),
    ],
)
def test_errors_repeat_the_request(account: Account, body: Any, status: int, echoed: dict[str, Any]) -> None:
    account.group("web")
    account.policy("web", opt_out=True)
    code, answer = post(body)
    assert (code, answer["statusCode"]) == (status, status)
    assert list(answer)[:4] == ["eventType", "groupType", "groupName", "chaosType"]
    assert answer.items() >= echoed.items()
    assert answer["message"]


@pytest.mark.parametrize(
    "body",
    [
        "",
        "no json",
        "[]",
        {k: v for k, v in WEB.items() if k != "groupName"},
        WEB | {"groupName": ""},
    ],
)
def test_missing_and_unknown_values_are_refused(account: Account, body: Any) -> None:
    status, answer = post(body)
    assert status == 400
    assert answer["message"]


def test_a_body_of_any_depth_is_read_or_refused(account: Account) -> None:
    head = json.dumps(WEB)[:-1]
    statuses = {depth: post(f'{head}, "x": {"[" * depth}{"]" * depth}}}')[0] for depth in (*range(1, 99), 900, 100_000)}
    assert statuses == {depth: 404 if depth < 32 else 400 for depth in statuses}


def test_refusals_are_the_originals(account: Account) -> None:
    assert post()[0] == 404
    account.group("web")
    account.switch(leashed=True)
    status, answer = post()
    assert (status, answer["message"].partition(":")[0]) == (500, "leashed")
    account.switch(leashed=False)
    account.policy("web", opt_out=True)
    assert post()[0] == 403
    account.policy("web")
    account.autoscaling.set_desired_capacity(AutoScalingGroupName="web", DesiredCapacity=0)
    assert post()[0] == 410
    assert account.all_events() == []


def _leashed(account: Account) -> None:
    account.switch(leashed=True)
    account.terminate(executions()[0])


def _foreign(account: Account) -> None:
    account.ec2.terminate_instances(InstanceIds=[account.event(account.all_events()[0]).instance_id])
    account.terminate(executions()[0])


def _standby(account: Account) -> None:
    (event_id,) = account.all_events()
    account.autoscaling.enter_standby(
        AutoScalingGroupName="web",
        InstanceIds=[account.event(event_id).instance_id],
        ShouldDecrementDesiredCapacity=True,
    )
    account.terminate(executions()[0])


def _opted_out(account: Account) -> None:
    account.policy("web", opt_out=True)
    account.terminate(executions()[0])


def test_repeat_of_an_abandoned_request_is_a_new_request(account: Account) -> None:
    """A repeat of a request that came to nothing would be told of what never happened."""
    account.group("web")
    assert post()[0] == 200
    _leashed(account)
    status, answer = post()
    assert (status, answer["message"].partition(":")[0]) == (500, "leashed")
    account.switch(leashed=False)
    status, again = post()
    assert status == 200
    assert post() == (200, again), "and that one stands for its repeats"
    newest = max(map(account.event, account.all_events()), key=lambda event: event.event_id)
    assert [newest.status, *(e for e in account.all_events() if account.event(e).status is Status.CLAIMED)] == [
        Status.CLAIMED,
        newest.event_id,
    ]
    assert len(account.all_events()) == 2


def test_two_concurrent_repeats_of_an_abandoned_request_make_one(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.group("web")
    post()
    _leashed(account)
    account.switch(leashed=False)
    answers: list[Any] = []
    with calls(monkeypatch, before("TransactWriteItems", lambda: answers.append(post()))):
        second = post()
    assert second == answers[0]
    assert len(account.all_events()) == 2


@pytest.mark.parametrize(
    ("against", "status", "words"),
    [
        (_leashed, 500, "chaos was leashed"),
        (_foreign, 410, "terminated by somebody else"),
        (_standby, 403, "is no longer fit to be terminated"),
        (_opted_out, 403, "opted-out: "),
    ],
)
def test_with_a_key_what_was_abandoned_is_an_error(account: Account, against: Any, status: int, words: str) -> None:
    account.group("web")
    request = WEB | {"idempotencyKey": "k"}
    assert post(request)[0] == 200
    against(account)
    code, answer = post(request)
    assert code == status
    assert answer["message"].startswith("od#web#k is ")
    assert words in answer["message"]


@pytest.mark.parametrize(
    ("cause", "status"), [("switched-off", 500), ("gone", 410), ("of-a-later-version", 403), (None, 403)]
)
def test_only_the_recorded_cause_of_an_abandoned_claim_counts(account: Account, cause: str | None, status: int) -> None:
    """Its sentence does not; earlier versions recorded no cause."""
    account.group("web")
    request = WEB | {"idempotencyKey": "k"}
    post(request)
    _leashed(account)
    account.dynamodb.update_item(
        TableName="Events",
        Key={"event_id": {"S": "od#web#k"}},
        **(
            {"UpdateExpression": "SET cause = :cause", "ExpressionAttributeValues": {":cause": {"S": cause}}}
            if cause
            else {"UpdateExpression": "REMOVE cause"}
        ),
    )
    assert post(request)[0] == status


@pytest.mark.parametrize("settings", [{"on_demand": False}], indirect=True)
def test_not_allowed(account: Account) -> None:
    account.group("web")
    assert post()[0] == 403


def test_the_listing_is_filtered_and_newest_first(account: Account) -> None:
    account.group("web"), account.group("db"), account.group("leashed")
    account.terminate(account.item("web"))
    account.clock.forward(seconds=1)
    account.terminate(account.item("db"))
    account.clock.forward(seconds=1)
    account.switch(leashed=True)
    account.decide()
    status, events = ask("GET", PATH)
    assert (status, [e["groupName"] for e in events]) == (200, ["db", "web"])

    def names(**query: Any) -> list[str]:
        return [e["groupName"] for e in ask("GET", PATH, **query)[1]]

    assert names(groupName="web") == ["web"]
    assert names(groupName="web", eventId=events[0]["eventId"]) == []
    assert names(eventTime=events[0]["eventTime"]) == ["db"]
    assert names(nothing="web") == []
    assert names(since=events[0]["eventTime"]) == ["db"]
    assert names(since=0, region="eu-central-1") == ["db", "web"]
    account.clock.forward(hours=25)
    assert names() == []
    assert names(since=0) == ["db", "web"]


@pytest.mark.parametrize(
    ("since", "expected"),
    [("0", 1), ("-1", 1), ("-9999999999999999", 1), ("-" + "9" * 5000, 1), ("9" * 16, 0), ("9" * 5000, 0)],
    ids=["zero", "just-before", "long-before", "endlessly-before", "beyond-the-years", "endlessly-late"],
)
def test_since_can_be_any_number(account: Account, since: str, expected: int) -> None:
    account.group("web")
    account.terminate(account.item("web"))
    status, events = ask("GET", PATH, since=since)
    assert (status, len(events)) == (200, expected)


def _many(account: Account, first: int, count: int, status: Status) -> None:
    """Events a second apart, each of so many bytes that some 800 fill an answer of DynamoDB."""
    puts = []
    for number in range(first, first + count):
        at = OVERDUE - timedelta(seconds=number)
        stored = event(
            event_id=f"{at.date()}#u{number}",
            unit=f"u{number}",
            day=at.date(),
            status=status,
            at=at,
            group="old" if number % 50 == 0 else "web",
            instance_id=f"i-{number:017x}",
            detail="x" * 1000,
        )
        puts.append({"PutRequest": {"Item": to_item(stored)}})
    for i in range(0, count, 25):  # as many as one call takes
        assert not account.dynamodb.batch_write_item(RequestItems={"Events": puts[i : i + 25]})["UnprocessedItems"]


def listed(**query: Any) -> tuple[list[Any], str | None]:
    """What is found, and the header that says how far back it reaches."""
    answer = answered("GET", PATH, **query)
    assert answer["statusCode"] == 200, answer
    (header,) = answer["multiValueHeaders"].get(simian.COMPLETE_AFTER, [None])
    return json.loads(answer["body"]), header


def test_everything_since_is_looked_at_however_much_else_there_is(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    _many(account, 0, 750, Status.LEASHED)
    _many(account, 750, 800, Status.RECOVERED)
    with calls(monkeypatch) as operations:
        events, header = listed(groupName="old")
    assert [e["eventId"] for e in events] == [f"i-{n:017x}" for n in range(750, 1550, 50)]
    assert header is None
    assert operations.count("Query") > 1
    assert len(listed()[0]) == 800
    assert listed(groupName="old", eventId="i-0") == ([], None)
    assert [e["groupName"] for e in listed(eventId=events[3]["eventId"])[0]] == ["old"]


def test_listing_that_runs_out_of_time_says_where_it_ends(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    _many(account, 0, 1550, Status.RECOVERED)
    ticking = count(0, 16)
    monkeypatch.setattr(environment, "seconds", lambda: next(ticking))
    events, header = listed(groupName="old")
    assert 10 < len(events) < 31
    assert header is not None
    assert int(header) <= events[-1]["eventTime"]
    monkeypatch.setattr(environment, "seconds", lambda: 0.0)
    complete = [e for e in listed(groupName="old")[0] if e["eventTime"] > int(header)]
    assert events[: len(complete)] == complete


def test_listing_that_runs_out_of_room_says_where_it_ends(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    _many(account, 0, 40, Status.RECOVERED)
    everything, header = listed()
    assert (len(everything), header) == (40, None)
    monkeypatch.setattr("troop.chaos.flows.listing.LARGEST", 5000)
    events, header = listed()
    assert 10 < len(events) < 40
    assert events == everything[: len(events)]
    assert int(header or 0) == everything[len(events)]["eventTime"]


def test_a_filter_that_nothing_can_match_reads_nothing(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    _many(account, 0, 3, Status.RECOVERED)
    with calls(monkeypatch) as operations:
        for filters in ({"nothing": "web"}, {"groupName": ""}, {"since": "9" * 16}):
            assert listed(**filters) == ([], None)
    assert operations == []
    assert listed(groupType="TAG") == ([], None)


def test_caller_with_a_new_session_of_his_role_is_the_same(account: Account) -> None:
    """SDKs call each session by another name."""
    role = "arn:aws:sts::123456789012:assumed-role/Deployer"
    account.group("web")
    first = post(caller=f"{role}/botocore-session-1795219200")
    assert post(caller=f"{role}/botocore-session-1795219230") == first
    assert len(account.all_events()) == 1
    assert post(caller="arn:aws:sts::123456789012:assumed-role/Other/botocore-session-1795219200")[0] == 403


@pytest.mark.parametrize("since", ["yesterday", "1.5", "", "-", "1e3", "inf", "nan", "٣"])
def test_since_must_be_a_number(account: Account, since: str) -> None:
    status, answer = ask("GET", PATH, since=since)
    assert status == 400
    assert "milliseconds" in answer["message"]


@pytest.mark.parametrize("settings", [SETTINGS | {"inside_instances": True}], indirect=True)
@pytest.mark.parametrize(("method", "expected"), [("cpu", "crash"), ("drain, cpu", "drain"), ("cpu, io", "crash")])
def test_the_original_terminates_whatever_faults_the_policy_has(account: Account, method: str, expected: str) -> None:
    account.group("web", tags={"troop:method": method})
    assert post()[0] == 200
    (work,) = executions()
    event = account.event(work["event_id"])
    assert (event.method, event.injection) == (expected, None)


def test_a_lasting_fault_is_listed_only_if_it_ended_in_a_termination(account: Account) -> None:
    injection = Injection({"seconds": "60"})
    for name, terminated in (("stays", None), ("repaired", OVERDUE)):
        one = event(event_id=f"2026-11-20#{name}", group=name, injection=injection, method="cpu", at=OVERDUE)
        one = replace(one, status=Status.RECOVERED, terminated_at=terminated)
        account.put("Events", to_item(one))
    assert [one["groupName"] for one in ask("GET", PATH)[1]] == ["repaired"]
