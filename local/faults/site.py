"""A deployment of Troop in local AWS, with groups of kernels that it may inject faults into."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from troop.chaos.aws.event_items import from_item
from troop.chaos.events import Event, from_url
from troop.shared.tags import CONSENT, INSIDE_TAG

from ..demo.deployment_view import DeploymentView
from ..launcher import LocalAccount
from ..settings import open_settings

NODE = Path(__file__).with_name("node.py")
SIZE = 2
"""Instances of a group: the one with a fault, and the one whose client measures it."""
BOOT_SECONDS = 180
_AGENT = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
_NAME = "faults"
T = TypeVar("T")


class TooLate(RuntimeError):
    """Something did not happen in time."""


def settings(now: datetime) -> dict[str, Any]:
    """Returns the context of a deployment whose faults come on demand only."""
    return open_settings(now) | {
        "troop:deployment": "Faults",
        "troop:inside_instances": True,
        "troop:probability": 0,
        "troop:benchmarks": False,
        "troop:dashboards": False,
        "troop:max_per_day": 200,
    }


def until(probe: Callable[[], T | None], seconds: float, words: str) -> T:
    """Returns the first answer of `probe` that is not None.

    Raises:
        TooLate: there is none after so many seconds.
    """
    end = time.monotonic() + seconds
    while True:
        if (answer := probe()) is not None:
            return answer
        if time.monotonic() > end:
            raise TooLate(f"not within {seconds:.0f} s: {words}")
        time.sleep(0.1)


@dataclass(frozen=True)
class Round:
    """What a client has seen of an instance once.

    Attributes:
        at: when, in seconds since 1970.
        ms: how long an answer took; None without one.
        memory: how much memory was free there, in MiB.
        room: whether its root volume had room.
        lost: how many of ten packets were lost.
    """

    at: float
    ms: float | None
    memory: int | None
    room: bool | None
    lost: int


class Site:
    """The deployment, and what scenarios ask of it."""

    def __init__(self, account: LocalAccount, outputs: dict[str, str]) -> None:
        self.account = account
        self.outputs = outputs
        self.view = DeploymentView(account, outputs)
        self._dynamodb = account.client("dynamodb")
        self._autoscaling, self._ec2 = account.client("autoscaling"), account.client("ec2")
        self.systems = account.client("ssm")
        self._cloudwatch = account.client("cloudwatch")
        self._make_template()

    def _make_template(self) -> None:
        """Makes a launch template for kernels: instances that reach only each other, and have an agent."""
        iam, ec2 = self.account.client("iam"), self._ec2
        trust = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        iam.create_role(RoleName=_NAME, AssumeRolePolicyDocument=document)
        iam.attach_role_policy(RoleName=_NAME, PolicyArn=_AGENT)
        profile = iam.create_instance_profile(InstanceProfileName=_NAME)["InstanceProfile"]["Arn"]
        iam.add_role_to_instance_profile(InstanceProfileName=_NAME, RoleName=_NAME)
        self._subnet = ec2.describe_subnets()["Subnets"][0]
        closed = ec2.create_security_group(GroupName=_NAME, Description=_NAME, VpcId=self._subnet["VpcId"])["GroupId"]
        within = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": closed}]}
        everywhere = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
        ec2.authorize_security_group_egress(GroupId=closed, IpPermissions=[within])
        ec2.revoke_security_group_egress(GroupId=closed, IpPermissions=[everywhere])
        ec2.create_launch_template(
            LaunchTemplateName=_NAME,
            LaunchTemplateData={
                "InstanceType": "t3.micro",
                "ImageId": ec2.describe_images()["Images"][0]["ImageId"],
                "SecurityGroupIds": [closed],
                "IamInstanceProfile": {"Arn": profile},
                "UserData": base64.b64encode(NODE.read_bytes()).decode(),
            },
        )

    def add_group(self, name: str) -> None:
        """Creates a group whose owner consents, with an alarm of its unit that is OK."""
        self._cloudwatch.put_metric_alarm(
            AlarmName=name,
            MetricName="Errors",
            Namespace="Service",
            Statistic="Sum",
            Period=60,
            EvaluationPeriods=1,
            Threshold=1,
            ComparisonOperator="GreaterThanThreshold",
        )
        self.set_alarm(name, "OK")
        tags = {INSIDE_TAG: (CONSENT, True), "troop:stop_alarms": (name, False)}
        self._autoscaling.create_auto_scaling_group(
            AutoScalingGroupName=name,
            LaunchTemplate={"LaunchTemplateName": _NAME, "Version": "$Latest"},
            MinSize=SIZE,
            MaxSize=SIZE + 1,
            DesiredCapacity=SIZE,
            VPCZoneIdentifier=self._subnet["SubnetId"],
            Tags=[{"Key": key, "Value": value, "PropagateAtLaunch": on} for key, (value, on) in tags.items()],
        )

    def set_alarm(self, name: str, state: str) -> None:
        self._cloudwatch.set_alarm_state(AlarmName=name, StateValue=state, StateReason="a scenario")

    def opt_out(self, unit: str, out: bool) -> None:
        """Opts a unit out, or in again, as its owner does in the console."""
        if out:
            self.view.opt_out(unit, "a scenario", "")
        else:
            self._dynamodb.delete_item(TableName=self.outputs["GroupTagsTable"], Key={"unit": {"S": unit}})

    def halt(self, halted: bool) -> None:
        """Halts chaos for everybody, or lets it go on."""
        answer = self.view.api.request("PATCH", "switch", body={"halted": halted, "reason": "a scenario"})
        if answer.status != 200:
            raise RuntimeError(f"the switch: {answer}")

    def ready(self, group: str) -> Mapping[str, str]:
        """Waits until the group has all its instances, under Systems Manager, and their clients measure each other.

        Returns:
            The addresses of the instances by their ids.
        """
        return until(lambda: self._whole(group), BOOT_SECONDS, f"{group} has {SIZE} new instances")

    def _whole(self, group: str) -> Mapping[str, str] | None:
        listed = self._autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[group])["AutoScalingGroups"]
        serving = {i["InstanceId"] for i in listed[0]["Instances"] if i["LifecycleState"] == "InService"}
        managed = {
            one["InstanceId"]
            for one in self.systems.describe_instance_information()["InstanceInformationList"]
            if one["PingStatus"] == "Online"
        }
        addresses = {one["id"]: one["address"] for one in self.account.instances() if one["id"] in serving & managed}
        if len(addresses) < SIZE:
            return None
        for one in addresses:
            others = [address for other, address in addresses.items() if other != one]
            self._tell_peers(self.home(one) / "peers", "\n".join(others))
        seen = [self.seen(one, addresses) for one in addresses]
        calm = [rounds[-3:] for rounds in seen]
        fine = all(len(last) == 3 and all(one.ms is not None and one.lost == 0 for one in last) for last in calm)
        return addresses if fine else None

    @staticmethod
    def _tell_peers(path: Path, text: str) -> None:
        """Replaces the file at once: a kernel could read zeros of one that is written meanwhile."""
        if not path.exists() or path.read_text(encoding="ascii") != text:
            part = path.with_suffix(".part")
            part.write_text(text, encoding="ascii")
            part.rename(path)

    def home(self, instance_id: str) -> Path:
        return self.account.run / "instances" / instance_id

    def seen(self, instance_id: str, addresses: Mapping[str, str]) -> Sequence[Round]:
        """Returns what the neighbours' clients have last seen of an instance, the latest last."""
        rounds: list[Round] = []
        for other in addresses.keys() - {instance_id}:
            path = self.home(other) / "seen.json"
            rounds += [
                Round(one["at"], one["ms"], one["memory"], one["room"], one["lost"])
                for one in (json.loads(path.read_text(encoding="ascii")) if path.exists() else ())
                if one["address"] == addresses[instance_id]
            ]
        return sorted(rounds, key=lambda one: one.at)

    def request(self, group: str, method: str) -> tuple[str, str]:
        """Requests a fault on demand; returns the ids of the event and of its instance."""
        body = {"group": group, "method": method, "idempotency_key": f"{group}-{time.time():.0f}"}
        answer = self.view.api.request("POST", "terminations", body=body)
        if answer.status not in (200, 202):
            raise RuntimeError(f"{method} in {group} is refused: {answer.body}")
        return from_url(answer.body["id"]), str(answer.body["instance_id"])

    def event(self, event_id: str) -> Event:
        answer = self._dynamodb.get_item(
            TableName=self.outputs["EventsTable"], Key={"event_id": {"S": event_id}}, ConsistentRead=True
        )
        return from_item(answer["Item"])

    def commands(self, instance_id: str, document: str) -> int:
        """Returns how many commands of a document the instance has had."""
        listed = self.systems.list_command_invocations(InstanceId=instance_id)["CommandInvocations"]
        return sum(one["DocumentName"] == document for one in listed)

    def reboot(self, instance_id: str) -> None:
        self._ec2.reboot_instances(InstanceIds=[instance_id])

    def replace(self, instance_id: str) -> None:
        """Has an instance replaced which has had its fault: it never has another one. Returns when it is gone."""
        self._ec2.terminate_instances(InstanceIds=[instance_id])

        def gone() -> bool | None:
            return all(one["id"] != instance_id for one in self.account.instances()) or None

        until(gone, BOOT_SECONDS, f"{instance_id} is gone")
