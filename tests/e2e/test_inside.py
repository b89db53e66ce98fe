"""Faults inside instances, from the request to the proof of their end, on processes of this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.launcher import LocalAccount, obstacle
from tests.e2e.conftest import BUSY, Deployment, eventually
from troop.chaos.aws.event_items import from_item
from troop.chaos.events import Event, Status, from_url
from troop.chaos.injection import Injection, Way

pytestmark = pytest.mark.skipif(bool(obstacle("inside.room")), reason=obstacle("inside.room"))

UNIT = "inside-web"
AGENT = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
TRUST = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}


@pytest.fixture(scope="module")
def deployment(account: LocalAccount) -> Iterator[Deployment]:
    deployment = Deployment(account, "Inside")
    deployment.switch(halted=False, leashed=False)
    tags = [{"Key": "troop:inside", "Value": "yes", "PropagateAtLaunch": True}]
    deployment.group(UNIT, size=3, profile=_profile(account), Tags=tags)  # an instance has one fault in its life
    systems = account.client("ssm")

    def managed() -> bool | None:
        listed = systems.describe_instance_information()["InstanceInformationList"]
        return deployment.ids(UNIT) <= {one["InstanceId"] for one in listed} or None

    eventually(managed, BUSY)
    yield deployment
    deployment.groups.delete(UNIT)


def _profile(account: LocalAccount) -> str:
    """ARN of an instance profile with which Systems Manager's agent can register."""
    iam = account.client("iam")
    document = json.dumps({"Version": "2012-10-17", "Statement": [TRUST]})
    iam.create_role(RoleName=UNIT, AssumeRolePolicyDocument=document)
    iam.attach_role_policy(RoleName=UNIT, PolicyArn=AGENT)
    profile = iam.create_instance_profile(InstanceProfileName=UNIT)["InstanceProfile"]
    iam.add_role_to_instance_profile(InstanceProfileName=UNIT, RoleName=UNIT)
    return str(profile["Arn"])


def event_of(deployment: Deployment, event_id: str) -> Event:
    key = {"event_id": {"S": from_url(event_id)}}
    return from_item(deployment.dynamodb.get_item(TableName=deployment.outputs["EventsTable"], Key=key)["Item"])


def over(deployment: Deployment, event_id: str) -> tuple[Event, Injection]:
    """The event once it is closed."""

    def probe() -> Event | None:
        event = event_of(deployment, event_id)
        return None if event.status in (Status.CLAIMED, Status.RUNNING, Status.TERMINATED) else event

    event: Event = eventually(probe, 2 * BUSY)
    assert event.injection is not None
    return event, event.injection


def stressed(instance_id: str) -> bool:
    """Whether a process of stress-ng runs on the instance: they have its id in their environment."""
    for name in Path("/proc").glob("[0-9]*/comm"):
        try:
            if name.read_text().startswith("stress-ng") and instance_id in (name.parent / "environ").read_text():
                return True
        except OSError:
            continue
    return False


def claim(deployment: Deployment, method: str) -> dict[str, Any]:
    body = {"group": UNIT, "idempotency_key": method.replace(" ", "-").replace("=", "-"), "method": method}
    answer = deployment.view.api.request("POST", "terminations", body=body)
    assert answer.status == 202, answer
    return dict(answer.body)


def test_a_fault_is_injected_ends_and_is_proven_to_be_over(deployment: Deployment) -> None:
    before = deployment.ids(UNIT)
    done = deployment.command("terminate", UNIT, "--method", "cpu seconds=10", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    event, injection = over(deployment, answer["id"])
    assert (answer["status"], event.status) == ("RECOVERED", Status.RECOVERED)
    assert (injection.status, injection.end_request) == ("Success", None)
    assert injection.proof is not None
    assert injection.proof.by is Way.PROBE
    assert injection.before is not None
    assert injection.after is not None
    assert injection.before.token != injection.after.token
    assert deployment.ids(UNIT) == before, "the instance stays"


def test_a_halt_ends_a_fault_which_is_proven_all_the_same(deployment: Deployment) -> None:
    before = deployment.ids(UNIT)
    claimed = claim(deployment, "cpu seconds=600")
    eventually(lambda: stressed(claimed["instance_id"]) or None, BUSY, pause=0.1)
    assert [one for one in deployment.schedules() if "Backstops" in one["GroupName"]], "if the workflow dies"
    answer = deployment.view.api.request("PATCH", "switch", body={"halted": True, "reason": "enough"})
    assert answer.status == 200, answer
    event, injection = over(deployment, claimed["id"])
    deployment.switch(halted=False, leashed=False)
    assert not stressed(claimed["instance_id"])
    assert (event.status, injection.status) == (Status.RECOVERED, "Cancelled")
    assert injection.end_request is not None
    assert injection.over_at is not None
    assert injection.proof is not None
    assert injection.end_request.at <= injection.over_at <= injection.proof.at
    assert injection.proof.by is Way.PROBE
    assert deployment.ids(UNIT) == before


def test_a_fault_is_proven_to_be_over_although_its_workflow_was_stopped(deployment: Deployment) -> None:
    states, machine = deployment.account.client("stepfunctions"), deployment.outputs["OnDemandStateMachineArn"]
    claimed = claim(deployment, "cpu seconds=60")  # longer than the call that the workflow has made
    eventually(lambda: stressed(claimed["instance_id"]) or None, BUSY, pause=0.1)
    (execution,) = states.list_executions(stateMachineArn=machine, statusFilter="RUNNING")["executions"]
    states.stop_execution(executionArn=execution["executionArn"])

    def proven() -> Injection | None:
        injection = event_of(deployment, claimed["id"]).injection
        return injection if injection and injection.proof else None

    injection: Injection = eventually(proven, 2 * BUSY)
    assert (injection.status, injection.end_request) == ("Success", None), "it lasted as long as it should"
    assert injection.proof is not None
    assert injection.proof.by is Way.PROBE
    assert not stressed(claimed["instance_id"])
    stopped = states.describe_execution(executionArn=execution["executionArn"])
    assert stopped["status"] == "ABORTED"
