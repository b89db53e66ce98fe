"""What the contract tests put into a local account: roles, functions, state machines, groups and schedules."""

from __future__ import annotations

import base64
import io
import json
import uuid
import zipfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from botocore.exceptions import ClientError

from local.launcher import LocalAccount
from tests.patience import eventually

ZONE = "Asia/Kathmandu"
"""5:45 ahead: neither its hour nor its minute is UTC's."""


def unique(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


def zipped(name: str, text: str) -> bytes:
    """An archive with one file; the same bytes at any time."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(zipfile.ZipInfo(name), text)
    return archive.getvalue()


def allow(action: str | list[str], resource: str | list[str] = "*", **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def code(error: pytest.ExceptionInfo[ClientError]) -> str:
    return str(error.value.response["Error"]["Code"])


WAITS = '#!/bin/sh\nuntil [ -e go ]; do sleep 0.05; done\ntouch "$READY_FILE"\nexec sleep infinity\n'
"""A script of an instance that boots when :meth:`Fleet.boot` lets it."""


class World:
    """Makes roles, functions and state machines in the account, and waits for things."""

    def __init__(self, account: LocalAccount) -> None:
        self.account = account
        self.iam = account.client("iam")
        self.functions = account.client("lambda")
        self.states = account.client("stepfunctions")

    def role(self, *statements: dict[str, Any]) -> str:
        """ARN of a new role that anybody of the account and every service may assume."""
        name = unique("role")
        trust = {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Action": "sts:AssumeRole",
                    "Principal": {
                        "AWS": "arn:aws:iam::000000000000:root",
                        "Service": [
                            f"{name}.amazonaws.com" for name in ("lambda", "states", "scheduler", "ec2", "events")
                        ],
                    },
                }
            ],
        }
        arn: str = self.iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(trust))["Role"]["Arn"]
        if statements:
            policy = {"Version": "2012-10-17", "Statement": list(statements)}
            self.iam.put_role_policy(RoleName=name, PolicyName="it", PolicyDocument=json.dumps(policy))
        return arn

    def profile(self, role: str) -> str:
        """ARN of a new instance profile with the role."""
        name = unique("profile")
        created = self.iam.create_instance_profile(InstanceProfileName=name)["InstanceProfile"]
        self.iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=role.rsplit("/", 1)[-1])
        return str(created["Arn"])

    def as_role(self, role: str) -> Any:
        """A session with the role's permissions."""
        sts = self.account.client("sts")
        issued = sts.assume_role(RoleArn=role, RoleSessionName="test")["Credentials"]
        return self.account.session(
            aws_access_key_id=issued["AccessKeyId"],
            aws_secret_access_key=issued["SecretAccessKey"],
            aws_session_token=issued["SessionToken"],
        )

    def function(
        self, body: str, role: str | None = None, timeout: int = 300, module: str = "main", layers: Sequence[str] = ()
    ) -> str:
        """ARN of a function whose module is `body` and defines `handler`."""
        created = self.functions.create_function(
            FunctionName=unique("function"),
            Runtime="python3.13",
            Handler=f"{module}.handler",
            Role=role or self.role(),
            Code={"ZipFile": zipped(f"{module.replace('.', '/')}.py", body)},
            Timeout=timeout,
            Layers=layers,
        )
        return str(created["FunctionArn"])

    def layer(self, module: str, body: str) -> str:
        """ARN of a layer with this module."""
        content = {"ZipFile": zipped(f"python/{module}.py", body)}
        published = self.functions.publish_layer_version(LayerName=unique("layer"), Content=content)
        return str(published["LayerVersionArn"])

    def machine(self, states: dict[str, Any], role: str, **more: Any) -> str:
        """ARN of a state machine that starts at the first of `states`."""
        definition = {"StartAt": next(iter(states)), "States": states, **more}
        created = self.states.create_state_machine(
            name=unique("machine"), definition=json.dumps(definition), roleArn=role
        )
        return str(created["stateMachineArn"])

    def start(self, machine: str, payload: Any = None) -> str:
        started = self.states.start_execution(stateMachineArn=machine, input=json.dumps(payload or {}))
        return str(started["executionArn"])

    def finish(self, execution: str) -> dict[str, Any]:
        """DescribeExecution once it is no longer RUNNING."""

        def ended() -> dict[str, Any] | None:
            seen: dict[str, Any] = self.states.describe_execution(executionArn=execution)
            return None if seen["status"] == "RUNNING" else seen

        return dict(eventually(ended))

    def run(self, machine: str, payload: Any = None) -> dict[str, Any]:
        return self.finish(self.start(machine, payload))


class Listener:
    """The events of the default bus that match a pattern, as a rule sends them to a queue."""

    def __init__(self, account: LocalAccount, pattern: dict[str, Any]) -> None:
        self._queues, bus = account.client("sqs"), account.client("events")
        self._url = self._queues.create_queue(QueueName=unique("events"))["QueueUrl"]
        attributes = self._queues.get_queue_attributes(QueueUrl=self._url, AttributeNames=["QueueArn"])["Attributes"]
        rule = unique("events")
        bus.put_rule(Name=rule, EventPattern=json.dumps(pattern))
        bus.put_targets(Rule=rule, Targets=[{"Id": "queue", "Arn": attributes["QueueArn"]}])
        self._seen: list[dict[str, Any]] = []

    def events(self) -> list[dict[str, Any]]:
        """All events so far, in the order of their delivery."""
        while messages := self._queues.receive_message(QueueUrl=self._url, MaxNumberOfMessages=10).get("Messages"):
            for message in messages:
                self._seen.append(json.loads(message["Body"]))
                self._queues.delete_message(QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])
        return self._seen


class Fleet:
    """Auto Scaling groups whose instances run a given script."""

    def __init__(self, account: LocalAccount) -> None:
        self.account = account
        self.ec2 = account.client("ec2")
        self.groups = account.client("autoscaling")
        self.subnets = self._network()

    def _network(self) -> list[str]:
        """Made where CloudFormation makes networks, so groups see them only if they are mirrored."""
        source = self.account.session().client(
            "ec2", endpoint_url=self.account.exports["AWS_ENDPOINT_URL"], verify=self.account.exports["AWS_CA_BUNDLE"]
        )
        vpc = source.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
        return [
            str(
                source.create_subnet(VpcId=vpc, CidrBlock=f"10.7.{number}.0/24", AvailabilityZone=f"us-east-1{zone}")[
                    "Subnet"
                ]["SubnetId"]
            )
            for number, zone in enumerate("abc")
        ]

    def template(self, script: str | None, **more: Any) -> str:
        """`more`: further launch template data."""
        data: dict[str, Any] = {"ImageId": "ami-12345678", "InstanceType": "t3.micro", **more}
        if script is not None:
            data["UserData"] = base64.b64encode(script.encode()).decode()
        created = self.ec2.create_launch_template(LaunchTemplateName=unique("template"), LaunchTemplateData=data)
        return str(created["LaunchTemplate"]["LaunchTemplateId"])

    def group(self, size: int, script: str | None = None, tags: dict[str, str] | None = None, **more: Any) -> str:
        """Name of a new group."""
        name = unique("group")
        if "MixedInstancesPolicy" not in more:
            more.setdefault("LaunchTemplate", {"LaunchTemplateId": self.template(script), "Version": "1"})
        self.groups.create_auto_scaling_group(
            AutoScalingGroupName=name,
            MinSize=0,
            MaxSize=20,
            DesiredCapacity=size,
            VPCZoneIdentifier=",".join(self.subnets),
            Tags=[{"Key": key, "Value": value, "PropagateAtLaunch": True} for key, value in (tags or {}).items()],
            **more,
        )
        return name

    def activities(self, group: str) -> list[dict[str, Any]]:
        """The group's activities, newest first."""
        return list(self.groups.describe_scaling_activities(AutoScalingGroupName=group)["Activities"])

    def describe(self, group: str) -> dict[str, Any]:
        response = self.groups.describe_auto_scaling_groups(AutoScalingGroupNames=[group])
        return dict(response["AutoScalingGroups"][0])

    def members(self, group: str) -> dict[str, str]:
        """Instance id -> lifecycle state."""
        return {one["InstanceId"]: one["LifecycleState"] for one in self.describe(group)["Instances"]}

    def in_service(self, group: str, count: int) -> dict[str, str]:
        """The members once exactly `count` of them are there and all are in service."""
        return dict(eventually(lambda: self._if_in_service(group, count)))

    def _if_in_service(self, group: str, count: int) -> dict[str, str] | None:
        members = self.members(group)
        return members if list(members.values()) == ["InService"] * count else None

    def instance(self, instance_id: str) -> dict[str, Any]:
        response = self.ec2.describe_instances(InstanceIds=[instance_id])
        return dict(response["Reservations"][0]["Instances"][0])

    def directory(self, instance_id: str) -> Path:
        return next(Path(one["directory"]) for one in self.account.instances() if one["id"] == instance_id)

    def boot(self, group: str, size: int) -> dict[str, str]:
        """Lets a group's instances boot, which run :data:`WAITS`; the members once `size` of them are in service."""

        def probe() -> dict[str, str] | None:
            waiting = self.members(group)
            for one in self.account.instances():
                if one["id"] in waiting:
                    (Path(one["directory"]) / "go").touch()
            return self._if_in_service(group, size)

        return dict(eventually(probe))


class Scheduled:
    """A state machine and the schedules that start it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.client = world.account.client("scheduler")
        self.machine = world.machine({"Done": {"Type": "Pass", "End": True}}, world.role())
        self.role = world.role(allow("states:StartExecution", self.machine))
        self.group = unique("schedules")
        self.client.create_schedule_group(Name=self.group)

    def create(self, name: str, expression: str, role: str | None = None, **more: Any) -> None:
        target: dict[str, Any] = {
            "Arn": self.machine,
            "RoleArn": role or self.role,
            "Input": json.dumps(
                {"name": name, "at": "<aws.scheduler.scheduled-time>", "id": "<aws.scheduler.execution-id>"}
            ),
            **more.pop("target", {}),
        }
        self.client.create_schedule(
            Name=unique(name),
            GroupName=self.group,
            ScheduleExpression=expression,
            FlexibleTimeWindow={"Mode": "OFF"},
            Target=target,
            **more,
        )

    def soon(self, name: str, role: str | None = None, **more: Any) -> str:
        """Creates a schedule for a moment ahead, in :data:`ZONE`; its name. A moment that has passed by the time the
        schedule is there would never come, so a busy machine gets a later one, under another name."""
        for ahead in (1.5, 6, 24, 96):
            numbered, moment = f"{name}-{ahead:g}", datetime.now(UTC) + timedelta(seconds=ahead)
            expression = f"at({moment.astimezone(ZoneInfo(ZONE)):%Y-%m-%dT%H:%M:%S})"
            self.create(numbered, expression, role, ScheduleExpressionTimezone=ZONE, **more)
            if datetime.now(UTC) < moment.replace(microsecond=0):
                return numbered
        raise AssertionError("a schedule takes longer to create than a minute and a half")

    def inputs(self) -> dict[str, list[dict[str, Any]]]:
        """Name of a schedule -> the inputs of the executions it has started, with the moment of their start."""
        inputs: dict[str, list[dict[str, Any]]] = {}
        for listed in self.world.states.list_executions(stateMachineArn=self.machine)["executions"]:
            seen = self.world.states.describe_execution(executionArn=listed["executionArn"])
            payload = json.loads(seen["input"])
            inputs.setdefault(payload["name"], []).append({**payload, "started": seen["startDate"]})
        return inputs
