"""Injects lasting faults in tests: claims, the workflow's step, and all that calls the function."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.unit.account.account import SETTINGS, WEB, Account
from tests.unit.account.insides import Insides
from troop import faults
from troop.chaos.events import Event, Status
from troop.chaos.injection import Injection
from troop.shared import moments
from troop.shared.aws.dynamo import typed

WITH_FAULTS = pytest.mark.parametrize(
    "settings", [SETTINGS | {"inside_instances": True, "max_per_day": 500}], indirect=True
)
"""A deployment that may inject lasting faults."""

PARAMETERS = {"kill": " process=nginx", "blackhole": " port=8080"}
LASTS = 60
METHODS = [f"{fault.name}{PARAMETERS.get(fault.name, '')} seconds={LASTS}" for fault in faults.LASTING]
CPU, LATENCY, KILL = f"cpu seconds={LASTS}", f"latency seconds={LASTS}", f"kill process=nginx seconds={LASTS}"


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


# What ends a fault before its time


def halt(account: Account) -> dict[str, str]:
    account.switch(halted=True)
    return switch_changed(account)


def leash(account: Account) -> dict[str, str]:
    account.switch(leashed=True)
    return switch_changed(account)


def halt_itself(account: Account) -> dict[str, str]:
    account.halt_itself()
    return switch_changed(account)


def opt_out(account: Account) -> dict[str, str]:
    account.policy("web", opted_out=True, stop_alarms="stop")
    return policy_changed(account)


def alarm(account: Account) -> dict[str, str]:
    return alarm_went_off(account, "stop")


def untag_instances(account: Account) -> dict[str, str]:
    account.ec2.delete_tags(Resources=account.instances("web"), Tags=[{"Key": "troop:inside"}])
    return wait(account)


def protect_group(account: Account) -> dict[str, str]:
    tag_group(account, "troop:protected")
    return wait(account)


def protect_instance(account: Account) -> dict[str, str]:
    account.ec2.create_tags(Resources=[account.event(WEB).instance_id], Tags=[{"Key": "troop:protected", "Value": ""}])
    return wait(account)


def tag_group(account: Account, key: str) -> None:
    tag = {
        "ResourceId": "web",
        "ResourceType": "auto-scaling-group",
        "Key": key,
        "Value": "",
        "PropagateAtLaunch": False,
    }
    account.autoscaling.create_or_update_tags(Tags=[tag])


ENDS = [halt, leash, halt_itself, opt_out, alarm, untag_instances, protect_group, protect_instance]
