"""Launches a node as a fleet does, and returns what AWS answers as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any
from uuid import uuid4

from cli.prove.judgements import ALLOWED
from cli.prove.ledger import PREFIX
from cli.prove.probe import Probe, error_code, step_outcomes
from cli.shared import aws
from troop.bench.definition.definition import PARTITION, SPOT, Fleet
from troop.bench.fleets.fleet_requests import (
    IMAGE_PARAMETER,
    Image,
    group_request,
    placement_request,
    tag_specification,
    template_data,
)

_INITIALIZATION_RATE = 100
"""MiB a second."""
_REQUESTS = 4
"""Steps that launch nothing."""
_LEAVE = timedelta(minutes=20)
"""Time after which Auto Scaling ends the node of a group, should this command be killed."""


class LaunchProbes(Probe):
    """Steps that create what a node is launched from, and a node."""

    def launch_requests(self) -> list[dict[str, str]]:
        """Creates what a fleet on spot in two zones is launched from, with a group of size 0."""
        return step_outcomes(islice(self._launching("launch-requests"), _REQUESTS))

    def launch(self) -> list[dict[str, str]]:
        """Creates the same, and has the group launch one node, which runs no script and can reach nothing."""
        return step_outcomes(self._launching("launch"))

    def _launching(self, question: str) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Yields steps: first the requests, then those around a node."""
        ec2, scaling, marks = self._client("ec2"), self._client("autoscaling"), {"troop:prove": question}
        ids = self._resources("AWS::EC2::Subnet")
        described = ec2.describe_subnets(SubnetIds=ids)["Subnets"] if ids else []
        subnets = list({one["AvailabilityZone"]: one["SubnetId"] for one in described}.values())[:2]
        if len(subnets) < 2:
            return
        image = self._client("ssm").get_parameter(Name=f"{IMAGE_PARAMETER}arm64")["Parameter"]["Value"]
        placement, template, group = (
            f"{PREFIX}{part}-{uuid4().hex[:8]}" for part in ("placement", "template", "group")
        )
        for kind, name in (("placement group", placement), ("launch template", template), ("group", group)):
            self.ledger.add(kind, name)
        fleet = Fleet("nodes", 2, "t4g.small", 2, 300, 8, purchase=SPOT)
        data = template_data(fleet, Image(image, "/dev/xvda"), (), "", "", marks, placement)
        # No role to pass, and no script.
        del data["IamInstanceProfile"], data["UserData"]
        data["BlockDeviceMappings"][0]["Ebs"]["VolumeInitializationRate"] = _INITIALIZATION_RATE
        chosen, group_name = {"LaunchTemplateName": template, "Version": "1"}, {"AutoScalingGroupName": group}

        def try_launch() -> None:
            # Not beside the interface: EC2 refuses a subnet of the instance if the template has an interface.
            interface = {**data["NetworkInterfaces"][0], "SubnetId": subnets[0]}
            request = {"LaunchTemplate": chosen, "NetworkInterfaces": [interface], "MinCount": 1, "MaxCount": 1}
            code = error_code(lambda: ec2.run_instances(**request, DryRun=True))
            if code != ALLOWED:
                raise ValueError(f"EC2 answers {code}")

        def balance() -> None:
            (described,) = ec2.describe_launch_templates(LaunchTemplateNames=[template])["LaunchTemplates"]
            request = group_request(fleet, group, described["LaunchTemplateId"], subnets, marks)
            scaling.create_auto_scaling_group(**request | {"MaxSize": 0, "DesiredCapacity": 0})

        def launch_one() -> None:
            empty = {"MinSize": 0, "MaxSize": 0, "DesiredCapacity": 0}
            scaling.put_scheduled_update_group_action(
                **group_name, **empty, ScheduledActionName="end", StartTime=datetime.now(UTC) + _LEAVE
            )
            scaling.update_auto_scaling_group(**group_name, MaxSize=1, DesiredCapacity=1)
            self._await(lambda: bool(nodes()), lambda: f"the group has no node: {refusal()}")

        def nodes() -> list[str]:
            (described,) = scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[group])["AutoScalingGroups"]
            return [one["InstanceId"] for one in described["Instances"] if one["LifecycleState"] == "InService"]

        def refusal() -> str:
            activities = scaling.describe_scaling_activities(**group_name)["Activities"]
            return next((one["StatusMessage"] for one in activities if one.get("StatusMessage")), "no reason is given")

        def on_spot() -> None:
            (reservation,) = ec2.describe_instances(InstanceIds=nodes())["Reservations"]
            (instance,) = reservation["Instances"]
            facts = instance.get("InstanceLifecycle"), instance["Placement"].get("GroupName")
            if facts != (SPOT, placement):
                raise ValueError(f"the node has the lifecycle and the placement group {facts}")

        def initialized() -> None:
            filters = [{"Name": "attachment.instance-id", "Values": nodes()}]
            rates = {one.get("VolumeInitializationRate") for one in ec2.describe_volumes(Filters=filters)["Volumes"]}
            if rates != {_INITIALIZATION_RATE}:
                raise ValueError(f"the volumes have the rates {rates}")

        def console() -> None:
            if aws.is_local():
                raise ValueError("a node of local AWS without a script has no console")

            def has_output() -> bool:
                return bool(ec2.get_console_output(InstanceId=nodes()[0], Latest=True).get("Output"))

            self._await(has_output, lambda: "the node's console stays empty")

        def end() -> None:
            request = {"InstanceId": nodes()[0], "ShouldDecrementDesiredCapacity": True}
            scaling.terminate_instance_in_auto_scaling_group(**request)
            self._await(lambda: not nodes(), lambda: "the node stays in service")

        yield (
            "placement group",
            lambda: ec2.create_placement_group(**placement_request(placement, PARTITION, marks)),
        )
        yield (
            "launch template with an initialization rate",
            lambda: ec2.create_launch_template(
                LaunchTemplateName=template,
                LaunchTemplateData=data,
                TagSpecifications=tag_specification("launch-template", marks),
            ),
        )
        yield "dry run of a launch", try_launch
        yield "balanced group on spot", balance
        yield "node in service", launch_one
        yield "on spot, in the placement group", on_spot
        yield "volume with an initialization rate", initialized
        yield "latest output of the console", console
        yield "end by Auto Scaling", end
