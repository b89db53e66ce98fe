"""Creates the Auto Scaling groups of the demo, waits for them, and lists their instances."""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SERVER = Path(__file__).with_name("server.py")
PORT = 8080


@dataclass(frozen=True)
class Member:
    """An instance of a group, with data from Auto Scaling and EC2."""

    instance_id: str
    state: str
    address: str


@dataclass(frozen=True)
class Groups:
    """Auto Scaling groups whose instances answer HTTP."""

    autoscaling: Any
    ec2: Any

    def create(self, name: str, size: int, user_data: bytes | None = None, profile: str = "", **more: Any) -> None:
        """Creates a group of ``size`` instances in the default subnets, which run ``user_data`` or the demo's server.

        ``profile``: ARN of their instance profile; empty for none. ``more``: further arguments of
        CreateAutoScalingGroup.
        """
        encoded = base64.b64encode(user_data or SERVER.read_bytes()).decode()
        self.ec2.create_launch_template(
            LaunchTemplateName=name,
            LaunchTemplateData={
                "ImageId": self._image(),
                "InstanceType": "t4g.nano",
                "UserData": encoded,
                "TagSpecifications": [{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": name}]}],
                **({"IamInstanceProfile": {"Arn": profile}} if profile else {}),
            },
        )
        subnets = self.ec2.describe_subnets(Filters=[{"Name": "default-for-az", "Values": ["true"]}])["Subnets"]
        self.autoscaling.create_auto_scaling_group(
            AutoScalingGroupName=name,
            LaunchTemplate={"LaunchTemplateName": name, "Version": "$Latest"},
            MinSize=size,
            MaxSize=size + 1,
            DesiredCapacity=size,
            VPCZoneIdentifier=",".join(s["SubnetId"] for s in subnets[:3]),
            HealthCheckType="EC2",
            **more,
        )

    def names(self) -> list[str]:
        """Lists the names of all groups of the account."""
        pages = self.autoscaling.get_paginator("describe_auto_scaling_groups").paginate()
        return [group["AutoScalingGroupName"] for page in pages for group in page["AutoScalingGroups"]]

    def delete(self, name: str) -> None:
        """Deletes the group, its instances and its launch template."""
        self.autoscaling.delete_auto_scaling_group(AutoScalingGroupName=name, ForceDelete=True)
        self.ec2.delete_launch_template(LaunchTemplateName=name)

    def _image(self) -> str:
        images = self.ec2.describe_images(Owners=["amazon"])["Images"]
        if not images:
            return str(
                self.ec2.register_image(Name="al2023", RootDeviceName="/dev/xvda", Architecture="arm64")["ImageId"]
            )
        return str(images[0]["ImageId"])

    def members(self, name: str) -> list[Member]:
        """Lists all instances of a group."""
        groups = self.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
        states = {i["InstanceId"]: i["LifecycleState"] for i in groups[0]["Instances"]} if groups else {}
        if not states:
            return []
        reservations = self.ec2.describe_instances(InstanceIds=list(states))["Reservations"]
        return [
            Member(i["InstanceId"], states[i["InstanceId"]], i.get("PrivateIpAddress", ""))
            for r in reservations
            for i in r["Instances"]
        ]

    def await_in_service(self, name: str, size: int, seconds: float) -> list[Member]:
        """Waits until ``size`` instances are in service.

        Raises:
            TimeoutError: fewer are in service after ``seconds``.
        """
        until = time.monotonic() + seconds
        while True:
            members = self.members(name)
            serving = [m for m in members if m.state == "InService"]
            if len(serving) >= size:
                return serving
            if time.monotonic() > until:
                raise TimeoutError(f"{name}: {len(serving)} of {size} in service after {seconds:g} seconds: {members}")
            time.sleep(0.5)
