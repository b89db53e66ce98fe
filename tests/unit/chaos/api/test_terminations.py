"""POST /terminations: claims at once, starts one workflow for each key, and says what speaks against it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.unit.account.account import FRIDAY, Account, Cut, before, calls, raising, refusing
from tests.unit.account.asking import ask, get
from troop.chaos.events import Status
from troop.chaos.hypothesis import Hypothesis
from troop.faults import FAULTS
from troop.shared.aws.clients import client

SUNDAY_NIGHT = datetime(2026, 11, 22, 23, 0, tzinfo=UTC)
EVENT = "od#web#k1"
MACHINE = "arn:aws:states:eu-central-1:123456789012:stateMachine:on-demand"


@pytest.fixture(autouse=True)
def machine(account: Account) -> None:
    role = client("iam").create_role(RoleName="od", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    answer = client("stepfunctions").create_state_machine(name="on-demand", definition="{}", roleArn=role)
    assert answer["stateMachineArn"] == MACHINE


def executions() -> list[dict[str, Any]]:
    """Inputs of the executions that were started."""
    states = client("stepfunctions")
    summaries = states.list_executions(stateMachineArn=MACHINE)["executions"]
    descriptions = [states.describe_execution(executionArn=e["executionArn"]) for e in summaries]
    return [json.loads(t["input"]) | {"arn": t["executionArn"]} for t in descriptions]


def post(group: str = "web", key: str = "k1", **more: Any) -> tuple[int, Any]:
    return ask("POST", "/terminations", {"group": group, "idempotency_key": key, **more})


def test_from_the_request_to_the_termination_whatever_the_day(account: Account) -> None:
    account.clock.moment = SUNDAY_NIGHT
    account.group("web", tags={"troop:probability": "0"})
    status, event = post()
    assert (status, event["event_id"], event["status"]) == (202, EVENT, "CLAIMED")
    assert (event["rolled"], event["probability"], event["method"]) == (None, None, "crash")
    assert get(f"/events/{event['id']}") == event
    (work,) = executions()
    assert work.pop("arn") == work["execution"] == event["execution"]
    assert account.gone() == []
    assert account.terminate(work)["status"] == "TERMINATED"
    assert account.gone() == [event["instance_id"]]
    assert account.count(f"day#{event['day']}") == account.count("in-flight") == 1


def test_the_event_has_the_hypothesis_of_the_policy(account: Account) -> None:
    account.group("web", tags={"troop:recovery_within": "300", "troop:success_alarms": "orders"})
    account.alarm("orders", "OK")
    post()
    assert account.event(EVENT).hypothesis == Hypothesis(("orders",), (), 300)


def test_the_same_key_terminates_once(account: Account) -> None:
    account.group("web")
    _, first = post()
    assert post() == (200, first)
    (work,) = executions()
    account.terminate(work)
    status, again = post()
    assert (status, again["status"], again["instance_id"]) == (200, "TERMINATED", first["instance_id"])
    assert account.all_events() == [EVENT]
    assert account.terminate(work)["status"] == "TERMINATED"
    assert len(account.gone()) == len(executions()) == 1


def test_two_of_one_key_at_the_same_time_claim_once(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")
    answers: list[tuple[int, Any]] = []
    with calls(monkeypatch, before("TransactWriteItems", lambda: answers.append(post()))):
        status, second = post()
    assert (answers[0][0], status) == (202, 200), "only one is the first request of its key"
    assert answers[0][1]["instance_id"] == second["instance_id"]
    assert account.all_events() == [EVENT]
    assert len(executions()) == 1


def test_two_keys_at_the_same_time_never_take_two_instances(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """Although the group still shows all of its instances in service."""
    account.group("web")
    account.terminate(account.item("web"))
    account.check_recovery(f"{FRIDAY}#web"), account.check_recovery(f"{FRIDAY}#web")
    answers: list[tuple[int, Any]] = []
    with calls(monkeypatch, before("TransactWriteItems", lambda: answers.append(post(key="first")))):
        status, refused = post(key="second")
    assert answers[0][0] == 202
    assert (status, refused["reason"]) == (409, "in-flight")
    assert "od#web#first is CLAIMED" in refused["message"]


def test_next_request_completes_one_that_was_cut_after_its_claim(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.group("web")

    with calls(monkeypatch, raising("StartExecution", Cut())):
        assert post()[0] == 500
    assert account.event(EVENT).status is Status.CLAIMED
    assert executions() == []
    assert post()[0] == 200
    (work,) = executions()
    assert account.terminate(work)["status"] == "TERMINATED"


def test_instance_that_ec2_protects_is_not_chosen(account: Account) -> None:
    account.group("web")
    first, spared, left = account.instances("web")
    for instance in (first, spared):
        account.ec2.modify_instance_attribute(InstanceId=instance, DisableApiTermination={"Value": True})
    assert post()[1]["instance_id"] == left


def test_sweep_abandons_a_request_that_never_started(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")
    post()
    account.clock.forward(minutes=12)
    account.sweep()
    assert account.event(EVENT).status is Status.ABANDONED
    assert account.count("in-flight") == 0
    (work,) = executions()
    assert account.terminate(work)["status"] == "ABANDONED"
    assert account.gone() == []


def test_unclaimed_request_is_not_executed(account: Account) -> None:
    account.group("web")
    answer = account.terminate(account.item("web") | {"event_id": "od#web#forged"})
    assert (answer["status"], answer["reason"]) == ("REFUSED", "unclaimed")
    assert account.all_events() == account.gone() == []


def test_termination_on_demand_counts_as_the_one_of_the_day(account: Account) -> None:
    account.group("web")
    post()
    account.terminate(executions()[0])
    account.check_recovery(EVENT), account.check_recovery(EVENT)
    account.decide()
    assert account.decisions()["web"]["reason"] == "already-today"
    assert post(key="k2")[0] == 202, "but another one may be asked for"


def test_the_request_chooses_the_method(account: Account) -> None:
    account.group("web")
    assert post(method="drain")[1]["method"] == "drain"


REFUSED: dict[str, tuple[int, str, Callable[[Account], Any]]] = {
    "halted": (409, "halted", lambda a: a.switch(halted=True)),
    "leashed": (409, "leashed", lambda a: a.switch(leashed=True)),
    "opted out": (409, "opted-out", lambda a: a.policy("web", opt_out=True)),
    "malformed": (409, "malformed", lambda a: a.policy("web", probability="often")),
    "too small": (409, "too-small", lambda a: a.policy("web", min_healthy=4)),
    "another group of the unit": (409, "opted-out", lambda a: a.group(
        "b", tags={"troop:unit": "web", "troop:opt_out": "true"})),
    "refreshing": (409, "refreshing", lambda a: a.refreshes.update(web="InProgress")),
    "an alarm": (409, "stop-alarm", lambda a: a.policy("web", stop_alarms="errors")),
    "a success alarm": (409, "stop-alarm", lambda a: a.policy("web", success_alarms="errors")),
    "none left": (410, "protected-instances", lambda a: a.autoscaling.set_instance_protection(
        AutoScalingGroupName="web", InstanceIds=a.instances("web"), ProtectedFromScaleIn=True)),
    "empty": (410, "too-small", lambda a: a.autoscaling.set_desired_capacity(
        AutoScalingGroupName="web", DesiredCapacity=0)),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refusal_has_its_reason(account: Account, case: str) -> None:
    account.group("web")
    status, reason, against = REFUSED[case]
    against(account)
    answer = post()
    assert (answer[0], answer[1]["reason"]) == (status, reason), answer
    assert answer[1]["message"].startswith(f"{reason}: ")
    assert answer[1]["desired"] == (0 if case == "empty" else 3)
    assert account.all_events() == executions() == []


def test_protection_by_tag(account: Account) -> None:
    account.group("web", tags={"troop:protected": "yes"})
    assert post()[1]["reason"] == "protected"


def test_troops_own_fleets_are_refused_though_no_tick_decides_about_them(account: Account) -> None:
    account.group("troop-run-c001-servers", tags={"troop:run": "run", "troop:fleet": "servers"})
    status, answer = post("troop-run-c001-servers")
    assert (status, answer["reason"]) == (409, "protected")
    assert executions() == []


@pytest.mark.parametrize("settings", [{"max_per_day": 1}], indirect=True)
def test_caps_hold(account: Account) -> None:
    account.group("web"), account.group("db")
    assert post()[0] == 202
    assert post("db")[1]["reason"] == "day-cap"


@pytest.mark.parametrize("settings", [{"on_demand": False}], indirect=True)
def test_a_deployment_can_take_no_requests(account: Account) -> None:
    account.group("web")
    status, answer = post()
    assert status == 403
    assert "troop:on_demand" in answer["message"]


def test_unknown_groups_and_bad_requests(account: Account) -> None:
    assert post("nobody")[0] == 404
    assert post(key="a#b")[0] == 400
    assert post(method="nuke")[0] == 400
    for method, words in (
        ("crash, latency", "must be one fault"),
        ("latency delay=fast", "latency with delay as a whole number from 1 to 5,000"),
        ("kill", "kill with process, such as kill process=..."),
    ):
        status, answer = post(method=method)
        assert status == 400
        assert words in answer["message"], answer
    assert ask("POST", "/terminations", {"group": "web"})[0] == 400
    status, answer = ask("POST", "/terminations", {"group": "web", "key": "x"})
    assert status == 400
    assert "idempotency_key" in answer["message"]


def test_a_key_is_of_one_group(account: Account) -> None:
    account.group("web-v1"), account.group("web-v2")
    assert post("web-v1")[0] == 202
    assert post("web-v2")[0] == 409


def test_a_refusal_of_step_functions_is_no_silent_claim(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")

    with calls(monkeypatch, refusing("StartExecution", "ThrottlingException")):
        assert post()[0] == 500
    assert post()[0] == 200
    assert len(executions()) == 1


def _protect(account: Account) -> None:
    tag = {"Key": "troop:protected", "Value": "", "ResourceId": "web", "ResourceType": "auto-scaling-group"}
    account.autoscaling.create_or_update_tags(Tags=[tag | {"PropagateAtLaunch": False}])


def _shield(account: Account) -> None:
    for instance in account.instances("web"):
        account.ec2.modify_instance_attribute(InstanceId=instance, DisableApiStop={"Value": True})


def _stand_by(account: Account) -> None:
    instances = account.instances("web")
    account.autoscaling.enter_standby(
        AutoScalingGroupName="web", InstanceIds=list(instances)[1:], ShouldDecrementDesiredCapacity=True
    )


@pytest.mark.parametrize("method", [fault.name for fault in FAULTS])
def test_instance_that_somebody_else_terminated_is_gone_elsewhere(account: Account, method: str) -> None:
    account.group("web")
    _, event = post(method=method)
    account.ec2.terminate_instances(InstanceIds=[event["instance_id"]])
    assert account.terminate(executions()[0])["status"] == "GONE_ELSEWHERE"
    assert account.event(EVENT).attempts == 0
    assert account.count("in-flight") == 0


def test_a_member_that_joined_since_the_claim_has_its_say(account: Account) -> None:
    account.group("web")
    post()
    account.group("late", tags={"troop:unit": "web", "troop:opt_out": "true"})
    assert account.terminate(executions()[0])["status"] == "ABANDONED"
    assert "opted-out" in account.event(EVENT).detail


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda account: account.switch(leashed=True), "chaos was leashed"),
        (lambda account: account.switch(halted=True, leashed=False), "chaos was halted"),
        (lambda account: account.policy("web", opt_out=True), "opted-out"),
        (_protect, "protected"),
        (_shield, "protected by EC2"),
        (_stand_by, "unhealthy"),
    ],
)
def test_change_after_the_claim_abandons_it(account: Account, change: Callable[[Account], Any], why: str) -> None:
    """Minutes can lie between the claim and its workflow, when the request was cut off and is repeated."""
    account.group("web")
    post()
    (work,) = executions()
    change(account)
    account.clock.forward(minutes=8)
    assert account.terminate(work)["status"] == "ABANDONED"
    assert why in account.event(EVENT).detail
    assert account.gone() == []
    assert account.count("in-flight") == 0


def test_a_scheduled_one_waits_until_the_one_of_the_night_before_is_over(account: Account) -> None:
    account.clock.moment = SUNDAY_NIGHT
    account.group("web")
    post()
    (work,) = executions()
    assert account.terminate(work)["status"] == "TERMINATED"
    account.clock.moment = datetime(2026, 11, 23, 22, 46, tzinfo=UTC)
    account.group("web-new", tags={"troop:unit": "web"})  # whole, whatever the other one says of itself
    (item,) = account.work(account.decide())
    refused = account.terminate(item)
    assert (refused["status"], refused["reason"]) == ("REFUSED", "in-flight")
