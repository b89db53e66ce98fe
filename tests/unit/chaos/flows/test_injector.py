"""Lasting faults, from the claim to the proof of their end, whatever fails in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from tests.unit.account.account import SETTINGS, WEB, Account, Call, Kill, before, calls, cuts
from tests.unit.account.insides import PROBE, Insides
from troop import faults
from troop.chaos.aws.event_table import StepRefused
from troop.chaos.aws.injection_steps import InjectionSteps
from troop.chaos.events import AbandonReason, Event, Status
from troop.chaos.flows.clock_check import ClockError
from troop.chaos.injection import Injection, Way
from troop.chaos.injection_rules import UNPROVEN, comment_of, deadline, first_backstop, latest_end
from troop.chaos.probe import Probe
from troop.shared import moments
from troop.shared.aws.dynamo import typed
from troop.shared.choice import parse_choice
from troop.shared.wiring import environment

pytestmark = pytest.mark.parametrize(
    "settings", [SETTINGS | {"inside_instances": True, "max_per_day": 500}], indirect=True
)

PARAMETERS = {"kill": " process=nginx", "blackhole": " port=8080"}
LASTS = 60
METHODS = [f"{fault.name}{PARAMETERS.get(fault.name, '')} seconds={LASTS}" for fault in faults.LASTING]
CPU, LATENCY, KILL = f"cpu seconds={LASTS}", f"latency seconds={LASTS}", f"kill process=nginx seconds={LASTS}"


@pytest.fixture
def insides(account: Account, monkeypatch: pytest.MonkeyPatch) -> Iterator[Insides]:
    insides = Insides(clock=account.clock)
    monkeypatch.setattr(environment, "sleep", lambda seconds: account.clock.forward(seconds=seconds))
    with calls(monkeypatch, insides):
        yield insides


def claimed(account: Account, insides: Insides, method: str = CPU, unit: str = "web", **policy: Any) -> Event:
    """Claims an instance for a fault."""
    account.group(unit, tags={"troop:method": method}, propagated={"troop:inside": "yes"})
    if policy:
        account.policy(unit, **policy)
    insides.register(*account.instances(unit))
    answer = account.terminate(account.item(unit))
    assert (answer["status"], answer["next"]) == ("CLAIMED", "inject"), answer
    return account.event(answer["event_id"])


def wait(account: Account, event_id: str = WEB, token: str = "token") -> dict[str, str]:
    """The workflow's step Inject, entered now."""
    return account.inject(event_id=event_id, entered=moments.iso(account.clock()), token=token)


def come_back(account: Account, event_id: str = WEB) -> dict[str, str]:
    """A backstop, due now."""
    return account.inject(event_id=event_id, due=moments.iso(account.clock()))


def command_changed(account: Account, event: Event) -> dict[str, str]:
    detail = {"instance-id": event.instance_id, "status": "Success"}
    return account.inject(source="aws.ssm", time=moments.iso(account.clock()), detail=detail)


def policy_changed(account: Account, unit: str = "web") -> dict[str, str]:
    return account.inject(Records=[_record(account, "GroupTags", {"unit": unit})])


def switch_changed(account: Account) -> dict[str, str]:
    return account.inject(Records=[_record(account, "State", {"key": "switch"})])


def _record(account: Account, table: str, keys: dict[str, str]) -> dict[str, Any]:
    change = {
        "ApproximateCreationDateTime": account.clock().timestamp(),
        "SequenceNumber": "1",
        "NewImage": typed(keys),
    }
    return {"eventSourceARN": f"arn:aws:dynamodb:::table/{table}/stream/1", "dynamodb": change}


def alarm_went_off(account: Account, name: str) -> dict[str, str]:
    account.alarm(name, "ALARM")
    detail = {"alarmName": name, "state": {"value": "ALARM", "timestamp": moments.iso(account.clock())}}
    return account.inject(source="aws.cloudwatch", time=moments.iso(account.clock()), detail=detail)


def injection_of(event: Event) -> Injection:
    assert event.injection
    return event.injection


def running(account: Account, insides: Insides, method: str = CPU, **policy: Any) -> Event:
    """Injects a fault."""
    claimed(account, insides, method, **policy)
    wait(account)
    event = account.event(WEB)
    assert event.status is Status.RUNNING
    assert len(insides.injected) == 1
    return event


def over(account: Account, insides: Insides, until: timedelta = timedelta(minutes=5), event_id: str = WEB) -> Event:
    """Lets the workflow enter its step again and again, until it is answered."""
    end = account.clock() + until
    while not insides.answers and account.clock() < end:
        account.clock.forward(seconds=20)
        wait(account, event_id)
    return account.event(event_id)


@pytest.mark.parametrize("method", METHODS)
def test_from_the_claim_to_the_proof_and_the_recovery(account: Account, insides: Insides, method: str) -> None:
    claim = claimed(account, insides, method)
    assert wait(account) == {WEB: "RUNNING"}
    event, (command,) = account.event(WEB), insides.injected
    fault = parse_choice(method).lasting
    assert fault
    assert (command.document, command.instance_id, command.comment) == (
        fault.document,
        claim.instance_id,
        comment_of(WEB),
    )
    assert command.parameters == fault.request(injection_of(claim).parameters) | {"InstallDependencies": "False"}
    assert (event.attempts, injection_of(event).command_id) == (1, command.command_id)
    assert insides.present(command.at + timedelta(seconds=1))
    event = over(account, insides)
    injection = injection_of(event)
    assert not insides.present()
    assert injection.proof
    assert injection.proof.by is Way.PROBE
    assert insides.answers == [("token", {"event_id": WEB, "status": "RUNNING", "settles_at": None})]
    assert len(insides.injected) == 1
    account.wait_for_recovery(WEB, "another")
    event = account.event(WEB)
    assert (event.status, account.gone()) == (Status.RECOVERED, [])
    assert event.recovery_seconds is not None
    assert event.recovery_seconds < 10
    assert event.verdict
    assert event.verdict.why.startswith("the fault was proven over after ")
    assert account.count("in-flight") == 0


def test_an_event_of_systems_manager_starts_the_proof_at_once(account: Account, insides: Insides) -> None:
    event = running(account, insides)
    account.clock.moment = insides.injected[0].ends
    assert command_changed(account, event) == {WEB: "RUNNING"}
    proof = injection_of(account.event(WEB)).proof
    assert proof
    assert proof.at - insides.injected[0].ends <= timedelta(seconds=5)
    assert [token for token, _ in insides.answers] == ["token"]


def test_the_backstop_exists_before_the_fault(
    account: Account, insides: Insides, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimed(account, insides)
    seen: list[bool] = []

    def watched(number: int, operation: str, call: Call) -> Any:
        if operation == "TransactWriteItems" and not seen:
            seen.append(bool(insides.schedules))
        return insides(number, operation, call)

    with calls(monkeypatch, watched):
        wait(account)
    assert seen == [True]
    ((_, expression, call),) = insides.schedules
    ends_by = injection_of(account.event(WEB)).ends_by
    assert ends_by
    assert expression == f"at({first_backstop(ends_by, account.clock()):%Y-%m-%dT%H:%M}:00)"
    assert call == {"event_id": WEB, "due": "<aws.scheduler.scheduled-time>"}


def _backstops_alone(account: Account, insides: Insides, until: datetime) -> None:
    """Nobody but backstops calls, each as late as Scheduler may."""
    called: set[str] = set()
    while True:
        due = sorted(
            (datetime.fromisoformat(expression[3:-1] + "+00:00"), name)
            for name, expression, _ in insides.schedules
            if name not in called
        )
        if not due or due[0][0] > until:
            return
        moment, name = due[0]
        called.add(name)
        account.clock.moment = max(account.clock(), moment + timedelta(seconds=59))
        come_back(account)


@pytest.mark.parametrize("method", METHODS)
def test_a_dead_workflow_is_replaced_by_backstops(account: Account, insides: Insides, method: str) -> None:
    event = running(account, insides, method)
    ends_by = injection_of(event).ends_by
    assert ends_by
    _backstops_alone(account, insides, ends_by + UNPROVEN)
    proof = injection_of(account.event(WEB)).proof
    assert proof
    assert proof.at <= ends_by + UNPROVEN
    assert not insides.present()
    assert len(insides.schedules) <= 4


def test_backstops_repair_what_a_dead_agent_has_left(account: Account, insides: Insides) -> None:
    event = running(account, insides)
    ends_by, insides.dead_since = injection_of(event).ends_by, account.clock()
    assert ends_by
    _backstops_alone(account, insides, ends_by + UNPROVEN)
    event = account.event(WEB)
    assert (event.status, account.gone()) == (Status.TERMINATED, [event.instance_id])
    assert event.terminated_at
    assert event.terminated_at <= ends_by + UNPROVEN


def test_a_round_of_all_faults_finds_one_that_has_lost_its_backstop(account: Account, insides: Insides) -> None:
    """Such as that of a deployment from which the setting was removed while a fault ran."""
    event = running(account, insides)
    insides.schedules.clear()
    account.clock.forward(hours=2)
    assert account.inject(due=moments.iso(account.clock())) == {WEB: "TERMINATED"}
    assert account.gone() == [event.instance_id]
    assert len(insides.schedules) == 1
    account.clock.forward(minutes=15)
    assert account.inject(due=moments.iso(account.clock())) == {WEB: "TERMINATED"}
    assert len(insides.schedules) == 1


def test_a_late_backstop_arms_another_and_does_nothing_else(account: Account, insides: Insides) -> None:
    """Its clock can be wrong: then it would end the fault too soon, and the next one comes too late. So it fails, and
    Lambda repeats it.
    """
    running(account, insides)
    scheduled = account.clock()
    account.clock.forward(minutes=20)
    with pytest.raises(ClockError):
        account.inject(event_id=WEB, due=moments.iso(scheduled))
    assert len(insides.schedules) == 2
    assert (account.event(WEB).status, account.gone()) == (Status.RUNNING, [])


def test_a_backstop_of_what_is_over_arms_no_other(account: Account, insides: Insides) -> None:
    running(account, insides)
    over(account, insides)
    assert come_back(account) == {WEB: "RUNNING"}
    assert len(insides.schedules) == 1


def test_a_workflow_whose_clock_is_not_the_function_s_injects_nothing(account: Account, insides: Insides) -> None:
    claimed(account, insides)
    with pytest.raises(ClockError):
        account.inject(event_id=WEB, entered=moments.iso(account.clock() - timedelta(hours=1)), token="token")
    assert insides.sent == []


# Once


def test_a_lost_answer_counts_as_injected_and_is_never_repeated(account: Account, insides: Insides) -> None:
    document = faults.LASTING[0].document
    insides.lost = {document}
    claimed(account, insides)
    wait(account)
    event = account.event(WEB)
    assert (event.status, len(insides.injected)) == (Status.RUNNING, 1)
    event = over(account, insides)
    injection = injection_of(event)
    assert len(insides.injected) == 1
    assert injection.command_id == insides.injected[0].command_id
    assert injection.proof
    assert injection.proof.by is Way.PROBE


def test_a_command_that_no_list_shows_is_not_sent_again_but_repaired(account: Account, insides: Insides) -> None:
    claimed(account, insides)
    insides.lost, insides.hidden_for = {faults.LASTING[0].document}, timedelta()
    real = insides._ListCommandInvocations
    insides._ListCommandInvocations = lambda request: (  # type: ignore[method-assign]
        real(request) if "CommandId" in request else {"CommandInvocations": []}
    )
    event = over(account, insides)
    assert (event.status, len(insides.injected)) == (Status.TERMINATED, 1)
    assert account.gone() == [event.instance_id]


@pytest.mark.parametrize(
    ("code", "status"), [("ThrottlingException", 400), ("AccessDeniedException", 400), ("InvalidInstanceId", 400)]
)
def test_a_claim_that_aws_certainly_refuses_is_abandoned(
    account: Account, insides: Insides, code: str, status: int
) -> None:
    insides.refusals[faults.LASTING[0].document] = code, status
    event = claimed(account, insides)
    wait(account)
    event = account.event(WEB)
    assert (event.status, event.cause) == (Status.ABANDONED, AbandonReason.REFUSED)
    assert code in event.detail
    assert (account.count("in-flight"), account.count(f"day#{event.day}")) == (0, 0)
    assert insides.answers == [("token", {"event_id": WEB, "status": "ABANDONED", "settles_at": None})]


@pytest.mark.parametrize(("code", "status"), [("InternalServerError", 500), ("RequestTimeout", 408)])
def test_a_request_in_doubt_counts_as_injected(account: Account, insides: Insides, code: str, status: int) -> None:
    insides.refusals[faults.LASTING[0].document] = code, status
    claimed(account, insides)
    wait(account)
    assert account.event(WEB).status is Status.RUNNING
    insides.refusals.clear()
    assert over(account, insides).status is Status.TERMINATED
    assert insides.injected == []


def test_a_request_that_would_be_late_is_not_sent(account: Account, insides: Insides, monkeypatch: Any) -> None:
    """It would begin after the moment by which the fault ends."""
    claimed(account, insides)

    def slow(number: int, operation: str, call: Call) -> Any:
        if operation == "TransactWriteItems" and "ends_by" in str(call.args[-1]):
            account.clock.forward(seconds=11)
        return insides(number, operation, call)

    with calls(monkeypatch, slow):
        wait(account)
    assert insides.injected == []
    assert account.event(WEB).status is Status.ABANDONED


def test_calls_at_the_same_time_inject_once(account: Account, insides: Insides, monkeypatch: Any) -> None:
    """Another call does everything just before each write of the first."""
    claimed(account, insides)
    for operation in ("UpdateItem", "TransactWriteItems", "SendCommand", "CreateSchedule"):
        other = before(operation, lambda: wait(account, token="other"), times=2)

        def both(number: int, name: str, call: Call, other: Any = other) -> Any:
            return other(number, name, lambda: insides(number, name, call))

        with calls(monkeypatch, both):
            wait(account)
    event = over(account, insides)
    assert len(insides.injected) == 1
    assert injection_of(event).proof


WRITES = frozenset(
    {"UpdateItem", "TransactWriteItems", "SendCommand", "CreateSchedule", "CancelCommand", "SendTaskSuccess"}
)


def test_a_call_that_ends_anywhere_injects_at_most_once_and_the_end_is_proven(
    account: Account, insides: Insides, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each write is once the last that a function makes, before it acts or after it."""
    start, reached = account.clock(), 0
    for number, acts in cuts(range(100)):
        account.clock.moment = start
        insides.sent, insides.schedules, insides.answers = [], [], []
        unit = f"u{number}{acts}"
        event_id, left = claimed(account, insides, unit=unit).event_id, [number]

        def stop(at: int, name: str, call: Call, left: list[int] = left, acts: bool = acts) -> Any:
            left[0] -= name in WRITES
            if name not in WRITES or left[0] != -1:
                return insides(at, name, call)
            if acts:
                with suppress(Exception):
                    insides(at, name, call)
            raise Kill(name)

        def ended(event_id: str = event_id) -> None:
            while not insides.answers and account.clock() < start + timedelta(minutes=4):
                wait(account, event_id)
                account.clock.forward(seconds=20)

        with calls(monkeypatch, stop), suppress(Kill):
            ended()
        ended()
        event = account.event(event_id)
        assert len(insides.injected) <= 1, (number, acts)
        assert event.status in (Status.ABANDONED, Status.TERMINATED) or injection_of(event).proof, (number, acts)
        assert not insides.present() or event.instance_id in account.gone(), (number, acts)
        account.drop_group(unit)
        account.clock.forward(minutes=20)
        account.sweep()
        reached = number
        if left[0] >= 0:
            break  # it has ended before it was cut
    assert 15 < reached < 99


# The proof


def test_a_probe_is_recorded_only_after_the_command_was_over(account: Account, insides: Insides) -> None:
    event = running(account, insides)
    steps = InjectionSteps(account.events)
    with pytest.raises(StepRefused):
        steps.send_probe(event, Probe("0" * 32, account.clock()))
    assert injection_of(account.event(WEB)).after is None


@pytest.mark.parametrize(
    ("forged", "why"),
    [
        (lambda reading: reading.update(token="0" * 32), "cannot be read"),
        (lambda reading: reading.update(boot="boot-2"), "booted again"),
        (lambda reading: reading.update(stress=None), "could not read stress"),
        (lambda reading: reading.update(stress=1), "found stress 1, before 0"),
    ],
)
def test_an_instance_without_proof_is_terminated(
    account: Account, insides: Insides, forged: Callable[[dict[str, Any]], object], why: str
) -> None:
    event = running(account, insides)
    insides.forged = forged
    event = over(account, insides)
    assert (event.status, account.gone()) == (Status.TERMINATED, [event.instance_id])
    assert "terminated, because the end of its fault was not proven" in event.detail
    assert why in event.detail
    assert injection_of(event).proof is None
    assert insides.answers == [("token", {"event_id": WEB, "status": "TERMINATED", "settles_at": None})]
    account.wait_for_recovery(WEB, "another")
    event = account.event(WEB)
    proof = injection_of(event).proof
    assert proof
    assert (event.status, proof.by) == (Status.RECOVERED, Way.REPLACED)


def test_silence_after_the_fault_is_no_proof(account: Account, insides: Insides) -> None:
    running(account, insides)
    account.clock.moment = insides.injected[0].ends
    insides.dead_since = account.clock()
    event = over(account, insides)
    over_at, terminated_at = injection_of(event).over_at, event.terminated_at
    assert over_at
    assert terminated_at
    assert deadline(event) <= terminated_at <= min(over_at, latest_end(event)) + UNPROVEN


def test_an_event_is_not_closed_before_ec2_has_ended_the_instance(
    account: Account, insides: Insides, monkeypatch: pytest.MonkeyPatch
) -> None:
    running(account, insides)
    insides.forged = lambda reading: reading.update(stress=1)
    event = over(account, insides)

    def shutting_down(number: int, operation: str, call: Call) -> Any:
        answer = insides(number, operation, call)
        if operation == "DescribeInstances":
            for reservation in answer["Reservations"]:
                for instance in reservation["Instances"]:
                    if instance["InstanceId"] == event.instance_id:
                        instance["State"]["Name"] = "shutting-down"
        return answer

    with calls(monkeypatch, shutting_down):
        account.wait_for_recovery(WEB)
    event = account.event(WEB)
    assert (event.status, injection_of(event).proof) == (Status.TERMINATED, None)
    account.wait_for_recovery(WEB)
    assert account.event(WEB).status is Status.RECOVERED


def test_a_rollback_that_comes_late_is_waited_for(account: Account, insides: Insides) -> None:
    running(account, insides, LATENCY)
    account.switch(halted=True)
    switch_changed(account)
    event = over(account, insides)
    injection = injection_of(event)
    assert (event.status, injection.status) == (Status.RUNNING, "Cancelled")
    assert injection.proof
    assert injection.over_at
    assert not insides.present(injection.proof.at)


def test_a_fault_that_no_timer_undoes_is_replaced_within_two_minutes(account: Account, insides: Insides) -> None:
    running(account, insides, LATENCY)
    insides.has_atd, begun = False, account.clock()
    account.switch(halted=True)
    switch_changed(account)
    event = over(account, insides)
    assert event.status is Status.TERMINATED
    assert event.terminated_at
    assert event.terminated_at - begun <= timedelta(seconds=120)


@pytest.mark.parametrize("seconds", [5, 40])
def test_a_killed_process_is_over_when_it_runs_again(account: Account, insides: Insides, seconds: int) -> None:
    insides.restarts_after = timedelta(seconds=seconds)
    running(account, insides, KILL)
    event = over(account, insides)
    proof = injection_of(event).proof
    assert proof
    assert "run again" in proof.why
    assert not insides.present(proof.at)


def test_a_process_that_does_not_come_back_costs_its_instance(account: Account, insides: Insides) -> None:
    insides.restarts_after = None
    running(account, insides, KILL)
    event = over(account, insides)
    assert (event.status, account.gone()) == (Status.TERMINATED, [event.instance_id])


def test_a_list_that_fails_does_not_delay_the_repair(account: Account, insides: Insides) -> None:
    event = running(account, insides)
    insides.lists_fail = True
    event = over(account, insides)
    ends_by = injection_of(event).ends_by
    assert ends_by
    assert event.status is Status.TERMINATED
    assert event.terminated_at
    assert event.terminated_at <= ends_by + UNPROVEN


# What ends a fault before its time


def _halt(account: Account) -> dict[str, str]:
    account.switch(halted=True)
    return switch_changed(account)


def _leash(account: Account) -> dict[str, str]:
    account.switch(leashed=True)
    return switch_changed(account)


def _halt_itself(account: Account) -> dict[str, str]:
    account.halt_itself()
    return switch_changed(account)


def _opt_out(account: Account) -> dict[str, str]:
    account.policy("web", opted_out=True, stop_alarms="stop")
    return policy_changed(account)


def _alarm(account: Account) -> dict[str, str]:
    return alarm_went_off(account, "stop")


def _untag_instances(account: Account) -> dict[str, str]:
    account.ec2.delete_tags(Resources=account.instances("web"), Tags=[{"Key": "troop:inside"}])
    return wait(account)


def _protect_group(account: Account) -> dict[str, str]:
    _tag_group(account, "troop:protected")
    return wait(account)


def _protect_instance(account: Account) -> dict[str, str]:
    account.ec2.create_tags(Resources=[account.event(WEB).instance_id], Tags=[{"Key": "troop:protected", "Value": ""}])
    return wait(account)


def _tag_group(account: Account, key: str) -> None:
    tag = {
        "ResourceId": "web",
        "ResourceType": "auto-scaling-group",
        "Key": key,
        "Value": "",
        "PropagateAtLaunch": False,
    }
    account.autoscaling.create_or_update_tags(Tags=[tag])


ENDS = [_halt, _leash, _halt_itself, _opt_out, _alarm, _untag_instances, _protect_group, _protect_instance]


@pytest.mark.parametrize("end", ENDS)
def test_the_end_is_requested_in_one_call(
    account: Account, insides: Insides, end: Callable[[Account], dict[str, str]]
) -> None:
    account.alarm("stop", "OK")
    running(account, insides, stop_alarms="stop")
    account.clock.forward(seconds=20)
    begun = account.clock()
    assert end(account) == {WEB: "RUNNING"}
    injection = injection_of(account.event(WEB))
    assert injection.end_request
    assert injection.end_request.at == begun
    assert insides.injected[0].cancelled_at == begun
    event = over(account, insides)
    assert not insides.present()
    assert injection_of(event).proof
    assert account.gone() == []


def test_an_alarm_stops_the_fault_whoever_hears_of_it_first(account: Account, insides: Insides) -> None:
    account.alarm("stop", "OK")
    running(account, insides, stop_alarms="stop")
    account.clock.forward(seconds=20)
    detail = {"alarmName": "stop", "state": {"value": "ALARM", "timestamp": moments.iso(account.clock())}}
    assert account.hear("aws.cloudwatch", detail, kind="CloudWatch Alarm State Change") == [WEB]
    event = account.event(WEB)
    assert event.abort
    assert "the fault is being ended" in event.detail
    assert alarm_went_off(account, "stop") == {WEB: "RUNNING"}
    assert injection_of(account.event(WEB)).end_request


def test_other_alarms_and_units_end_nothing(account: Account, insides: Insides) -> None:
    running(account, insides)
    assert alarm_went_off(account, "other") == {}
    assert policy_changed(account, "other") == {}
    assert insides.injected[0].cancelled_at is None


def test_an_unhealthy_group_does_not_end_the_fault(account: Account, insides: Insides) -> None:
    """That is what the fault is for."""
    event = running(account, insides)
    account.autoscaling.set_instance_health(InstanceId=event.instance_id, HealthStatus="Unhealthy")
    wait(account)
    assert injection_of(account.event(WEB)).end_request is None


def test_cancelling_is_repeated_until_the_command_is_over(account: Account, insides: Insides) -> None:
    running(account, insides)
    real, requests = insides._CancelCommand, []

    def deaf(request: dict[str, Any]) -> Any:
        requests.append(account.clock())
        return real(request) if len(requests) > 3 else {}

    insides._CancelCommand = deaf  # type: ignore[method-assign]
    account.switch(halted=True)
    switch_changed(account)
    assert len(requests) == 1
    wait(account)
    assert len(requests) == 4
    assert requests[-1] - requests[0] <= timedelta(seconds=10)


@pytest.mark.parametrize("end", [_halt, _opt_out])
def test_repairs_go_on_although_chaos_was_stopped(
    account: Account, insides: Insides, end: Callable[[Account], dict[str, str]]
) -> None:
    account.alarm("stop", "OK")
    running(account, insides, LATENCY, stop_alarms="stop")
    insides.has_atd = False
    end(account)
    event = over(account, insides)
    assert (event.status, account.gone()) == (Status.TERMINATED, [event.instance_id])


# The two exceptions


def _scale_in(account: Account, event: Event) -> Callable[[], object]:
    def protect(on: bool) -> None:
        account.autoscaling.set_instance_protection(
            InstanceIds=[event.instance_id], AutoScalingGroupName="web", ProtectedFromScaleIn=on
        )

    protect(True)
    return lambda: protect(False)


def _termination(account: Account, event: Event) -> Callable[[], object]:
    def protect(on: bool) -> None:
        account.ec2.modify_instance_attribute(InstanceId=event.instance_id, DisableApiTermination={"Value": on})

    protect(True)
    return lambda: protect(False)


def _instance_tag(account: Account, event: Event) -> Callable[[], object]:
    tags = {"Resources": [event.instance_id], "Tags": [{"Key": "troop:protected", "Value": "x"}]}
    account.ec2.create_tags(**tags)
    return lambda: account.ec2.delete_tags(**tags)


def _group_tag(account: Account, event: Event) -> Callable[[], object]:
    _tag_group(account, "troop:protected")
    tag = {"ResourceId": "web", "ResourceType": "auto-scaling-group", "Key": "troop:protected"}
    return lambda: account.autoscaling.delete_tags(Tags=[tag])


def _alone(account: Account, event: Event) -> Callable[[], object]:
    others = [one for one in account.instances("web") if one != event.instance_id]

    def set_health(health: str) -> None:
        for one in others:
            account.autoscaling.set_instance_health(InstanceId=one, HealthStatus=health)

    set_health("Unhealthy")
    return lambda: set_health("Healthy")


@pytest.mark.parametrize("protect", [_scale_in, _termination, _instance_tag, _group_tag, _alone])
def test_a_protected_instance_stays_until_it_may_go(
    account: Account, insides: Insides, protect: Callable[[Account, Event], Callable[[], object]]
) -> None:
    event = running(account, insides)
    insides.forged = lambda reading: reading.update(stress=1)
    release = protect(account, event)
    event = over(account, insides)
    assert (event.status, account.gone(), insides.answers) == (Status.RUNNING, [], [])
    assert injection_of(event).unproven
    assert account.count("in-flight") == 1
    release()
    event = over(account, insides)
    assert (event.status, account.gone()) == (Status.TERMINATED, [event.instance_id])
    assert injection_of(event).unproven == ""


def test_a_protected_instance_can_still_be_proven(account: Account, insides: Insides) -> None:
    event = running(account, insides)
    insides.forged = lambda reading: reading.update(stress=1)
    _scale_in(account, event)
    over(account, insides)
    insides.forged = lambda reading: None
    event = over(account, insides)
    assert injection_of(event).proof


def test_a_refusal_of_aws_leaves_it_open(account: Account, insides: Insides, monkeypatch: pytest.MonkeyPatch) -> None:
    running(account, insides)
    insides.forged = lambda reading: reading.update(stress=1)
    refused = True

    def refuse(number: int, operation: str, call: Call) -> Any:
        if operation == "TerminateInstances" and refused:
            from botocore.exceptions import ClientError

            raise ClientError({"Error": {"Code": "UnauthorizedOperation", "Message": "no"}}, operation)
        return insides(number, operation, call)

    with calls(monkeypatch, refuse):
        event = over(account, insides)
        assert event.status is Status.RUNNING
        assert "UnauthorizedOperation" in injection_of(event).unproven
        assert injection_of(event).repair_at is None
        refused = False
        assert over(account, insides).status is Status.TERMINATED


def _ends_itself(account: Account, event: Event) -> None:
    account.ec2.terminate_instances(InstanceIds=[event.instance_id])


def _asks_twice(account: Account, event: Event) -> None:
    come_back(account)


@pytest.mark.parametrize(
    ("meanwhile", "by", "status"),
    [(_ends_itself, Way.GONE, Status.RUNNING), (_asks_twice, None, Status.TERMINATED)],
)
def test_an_instance_that_ends_before_the_request_was_not_terminated_by_troop(
    account: Account, insides: Insides, monkeypatch: pytest.MonkeyPatch, meanwhile: Any, by: Way | None, status: Status
) -> None:
    """Unless it was another call of Troop that has terminated it in that moment."""
    event = running(account, insides)
    insides.forged = lambda reading: reading.update(stress=1)
    left = [meanwhile]

    def between(number: int, operation: str, call: Call) -> Any:
        if operation == "TerminateInstances" and left:
            left.pop()(account, event)
        return insides(number, operation, call)

    with calls(monkeypatch, between):
        event = over(account, insides)
    proof = injection_of(event).proof
    assert (event.status, proof and proof.by, left) == (status, by, [])
    assert (event.terminated_at is None) == (status is Status.RUNNING)
    assert injection_of(event).repair_at is None


def test_no_probe_proves_anything_while_a_request_to_terminate_is_in_doubt(
    account: Account, insides: Insides, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = running(account, insides)
    insides.forged = lambda reading: reading.update(stress=1)
    lost = True

    def lose(number: int, operation: str, call: Call) -> Any:
        if operation == "TerminateInstances" and lost:
            raise ReadTimeoutError(endpoint_url="https://ec2")
        return insides(number, operation, call)

    with calls(monkeypatch, lose):
        assert injection_of(over(account, insides)).repair_at
        insides.forged = lambda reading: None
        for _ in range(4):
            come_back(account)
            account.clock.forward(seconds=60)
        event = account.event(WEB)
        assert (event.status, injection_of(event).proof) == (Status.RUNNING, None)
        lost = False
        assert over(account, insides).status is Status.TERMINATED


def test_an_unproven_fault_is_counted_every_time(account: Account, insides: Insides, capsys: Any) -> None:
    event = running(account, insides)
    insides.forged = lambda reading: reading.update(stress=1)
    _scale_in(account, event)
    over(account, insides)
    capsys.readouterr()
    come_back(account)
    assert '"UnprovenFaults":[1.0]' in capsys.readouterr().out
    account.clock.forward(minutes=1)
    account.sweep()
    assert '"UnprovenFaults":[1.0]' in capsys.readouterr().out
    assert account.event(WEB).status is Status.RUNNING


# Claims that inject nothing


@pytest.mark.parametrize(
    ("forged", "why"),
    [
        (lambda reading: reading.update(rollbacks=1), "the instance is not clean: the probe found rollbacks 1"),
        (lambda reading: reading.update(missing=["stress-ng"]), "install stress-ng in its image"),
        (lambda reading: reading.update(stress=None), "could not read stress"),
        (lambda reading: reading.update(token="0" * 32), "has no answer"),
        (lambda reading: reading.update(boot=""), "has no answer"),
    ],
)
def test_an_instance_that_is_not_as_it_must_be_has_no_fault(
    account: Account, insides: Insides, forged: Callable[[dict[str, Any]], object], why: str
) -> None:
    insides.forged = forged
    claimed(account, insides)
    wait(account)
    event = account.event(WEB)
    assert (event.status, insides.injected, insides.schedules) == (Status.ABANDONED, [], [])
    assert why in event.detail
    assert insides.answers == [("token", {"event_id": WEB, "status": "ABANDONED", "settles_at": None})]
    assert account.gone() == []


def test_a_silent_instance_has_no_fault(account: Account, insides: Insides) -> None:
    insides.dead_since = account.clock()
    claimed(account, insides)
    event = over(account, insides)
    assert (event.status, insides.injected) == (Status.ABANDONED, [])
    assert "no answer within 60 s" in event.detail


@pytest.mark.parametrize("answer", [("InternalServerError", 500), ("ThrottlingException", 400)])
def test_a_probe_that_aws_has_not_taken_is_sent_again(
    account: Account, insides: Insides, answer: tuple[str, int]
) -> None:
    claimed(account, insides)
    insides.refusals[PROBE] = answer
    wait(account)
    assert account.event(WEB).status is Status.CLAIMED
    insides.refusals.clear()
    account.clock.forward(seconds=11)
    wait(account)
    assert (account.event(WEB).status, len(insides.probes)) == (Status.RUNNING, 1)


STOPS = [
    (_halt, AbandonReason.SWITCHED_OFF),
    (_leash, AbandonReason.SWITCHED_OFF),
    (_halt_itself, AbandonReason.SWITCHED_OFF),
    (_opt_out, AbandonReason.REFUSED),
    (_alarm, AbandonReason.ALARM),
    (_untag_instances, AbandonReason.REFUSED),
    (_protect_group, AbandonReason.REFUSED),
    (_protect_instance, AbandonReason.REFUSED),
]


@pytest.mark.parametrize(("stop", "cause"), STOPS)
@pytest.mark.parametrize("probed", [False, True])
def test_a_stop_of_chaos_before_the_fault_abandons_the_claim(
    account: Account,
    insides: Insides,
    monkeypatch: pytest.MonkeyPatch,
    stop: Callable[[Account], dict[str, str]],
    cause: AbandonReason,
    probed: bool,
) -> None:
    account.alarm("stop", "OK")
    claimed(account, insides, stop_alarms="stop")
    if probed:  # the last moment at which it can matter
        with calls(monkeypatch, before_backstop(insides, lambda: stop(account))):
            wait(account)
    else:
        stop(account)
    wait(account)
    event = account.event(WEB)
    assert (event.status, event.cause, insides.injected) == (Status.ABANDONED, cause, [])
    assert bool(insides.probes) is probed


def before_backstop(insides: Insides, do: Callable[[], object]) -> Any:
    other = before("CreateSchedule", do)
    return lambda number, name, call: other(number, name, partial(insides, number, name, call))


def test_an_answer_that_comes_after_the_end_of_the_event_changes_nothing(account: Account, insides: Insides) -> None:
    steps = InjectionSteps(account.events)
    sent = Probe("0" * 32, account.clock())
    probed = steps.send_probe(claimed(account, insides), sent)
    closed = account.events.close(probed, Status.ABANDONED, "opted out")
    answered = replace(sent, answered_at=account.clock(), failure="no answer")
    for late in (lambda: steps.probe_sent(probed, "a-command"), lambda: steps.probe_answered(probed, answered)):
        with pytest.raises(StepRefused):
            late()
    assert account.event(WEB) == closed


def test_a_claim_without_time_left_is_abandoned(account: Account, insides: Insides) -> None:
    event = claimed(account, insides)
    assert event.deadline
    account.clock.moment = event.deadline - timedelta(seconds=30)
    wait(account)
    event = account.event(WEB)
    assert (event.status, event.detail, insides.sent) == (Status.ABANDONED, "no time was left for the fault", [])


def test_a_stale_claim_is_abandoned_by_a_sweep(account: Account, insides: Insides) -> None:
    event = claimed(account, insides)
    account.ec2.terminate_instances(InstanceIds=[event.instance_id])
    account.clock.forward(minutes=12)
    account.sweep()
    assert account.event(WEB).status is Status.ABANDONED


# Instances that end by themselves


@pytest.mark.parametrize("deleted", [False, True])
def test_an_instance_that_ends_during_its_fault_is_a_proof(account: Account, insides: Insides, deleted: bool) -> None:
    event = running(account, insides)
    if deleted:
        account.drop_group("web")
    else:
        account.autoscaling.terminate_instance_in_auto_scaling_group(
            InstanceId=event.instance_id, ShouldDecrementDesiredCapacity=False
        )
    insides.dead_since = account.clock()
    wait(account)
    event = account.event(WEB)
    proof = injection_of(event).proof
    assert proof
    assert (event.status, proof.by) == (Status.RUNNING, Way.GONE)
    assert injection_of(event).end_request is None  # nobody has asked for that
    account.wait_for_recovery(WEB)
    assert account.event(WEB).status is (Status.GROUP_DELETED if deleted else Status.RECOVERED)


def test_a_fault_ends_early_when_its_instance_leaves_its_group(account: Account, insides: Insides) -> None:
    event = running(account, insides)
    account.autoscaling.detach_instances(
        InstanceIds=[event.instance_id], AutoScalingGroupName="web", ShouldDecrementDesiredCapacity=True
    )
    account.clock.forward(seconds=20)
    wait(account)
    request = injection_of(account.event(WEB)).end_request
    assert request
    assert request.why == f"{event.instance_id} is not in web any more"
    assert [one.cancelled_at for one in insides.injected] == [request.at]


def test_an_instance_that_has_left_its_group_stays_open(account: Account, insides: Insides) -> None:
    event = running(account, insides)
    account.autoscaling.detach_instances(
        InstanceIds=[event.instance_id], AutoScalingGroupName="web", ShouldDecrementDesiredCapacity=True
    )
    insides.forged = lambda reading: reading.update(stress=1)
    event = over(account, insides)
    assert (event.status, account.gone()) == (Status.RUNNING, [])
    assert "is not in web any more" in injection_of(event).unproven


def test_a_group_that_stays_short_after_the_proof_is_unrecovered(account: Account, insides: Insides) -> None:
    event = running(account, insides)
    over(account, insides)
    others = [one for one in account.instances("web") if one != event.instance_id]
    account.autoscaling.set_instance_health(InstanceId=others[0], HealthStatus="Unhealthy")
    account.wait_for_recovery(WEB)
    assert account.event(WEB).status is Status.RUNNING
    account.clock.forward(hours=3)
    account.wait_for_recovery(WEB)
    event = account.event(WEB)
    assert (event.status, account.state("unit#web")["left_for"]) == (Status.UNRECOVERED, "unrecovered")
