"""The proof that a lasting fault is over; what happens without one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from tests.unit.account.account import WEB, Account, Call, calls
from tests.unit.account.injecting import (
    KILL,
    LATENCY,
    WITH_FAULTS,
    come_back,
    injection_of,
    over,
    running,
    switch_changed,
    tag_group,
    wait,
)
from tests.unit.account.insides import Insides
from troop.chaos.aws.event_table import StepRefused
from troop.chaos.aws.injection_steps import InjectionSteps
from troop.chaos.events import Event, Status
from troop.chaos.injection import Way
from troop.chaos.injection_rules import UNPROVEN, deadline, latest_end
from troop.chaos.probe import Probe

pytestmark = WITH_FAULTS


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
    tag_group(account, "troop:protected")
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


def test_a_late_call_does_not_credit_troop_with_the_end_of_an_instance(account: Account, insides: Insides) -> None:
    """It has read of a request in doubt; meanwhile the answer says that the instance had ended before."""
    steps = InjectionSteps(account.events)
    in_doubt = steps.repairing(running(account, insides), account.clock())
    steps.ended_before(in_doubt)
    with pytest.raises(StepRefused):
        steps.terminated(in_doubt, account.clock(), "terminated", os_shutdown=False, is_certain=False)
    assert account.event(WEB).status is Status.RUNNING


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
