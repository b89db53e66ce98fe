"""The instances outside Auto Scaling groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from cli.chaos import ungrouped
from cli.shared.errors import CliError, Exit


def test_instances_of_groups_do_not_count_and_terminated_ones_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(key, "testing")
    with mock_aws():
        ec2 = boto3.client("ec2", region_name="eu-central-1")
        autoscaling = boto3.client("autoscaling", region_name="eu-central-1")
        image = ec2.register_image(Name="any")["ImageId"]  # other tests let moto have none
        tags: list[Any] = [{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "bastion"}]}]
        launch: dict[str, Any] = {"ImageId": image, "InstanceType": "t3.micro", "MinCount": 1, "MaxCount": 1}
        alone = ec2.run_instances(**launch, TagSpecifications=tags)["Instances"][0]["InstanceId"]
        gone, stopped = (ec2.run_instances(**launch)["Instances"][0]["InstanceId"] for _ in range(2))
        ec2.terminate_instances(InstanceIds=[gone])
        ec2.stop_instances(InstanceIds=[stopped])
        autoscaling.create_launch_configuration(LaunchConfigurationName="web", ImageId=image, InstanceType="t3.micro")
        autoscaling.create_auto_scaling_group(
            AutoScalingGroupName="web",
            LaunchConfigurationName="web",
            MinSize=2,
            MaxSize=2,
            AvailabilityZones=["eu-central-1a"],
        )
        document = ungrouped.read(ec2)
    assert (document["count"], document["limited"]) == (2, False)
    rows = [(row["instance_id"], row["name"], row["type"], row["state"]) for row in document["instances"]]
    assert rows == [(stopped, "", "t3.micro", "stopped"), (alone, "bastion", "t3.micro", "running")]
    assert document["instances"][1]["zone"].startswith("eu-central-1")


class Pages:
    """An EC2 with endless pages of one instance each."""

    def __init__(self) -> None:
        self.pages = 0

    def get_paginator(self, _operation: str) -> Pages:
        return self

    def paginate(self, **_: Any) -> Iterator[dict[str, Any]]:
        while True:
            self.pages += 1
            one = {"InstanceId": f"i-{self.pages}", "State": {"Name": "running"}}
            yield {"Reservations": [{"Instances": [one]}], "NextToken": "more"}


def test_a_very_large_account_takes_a_bounded_number_of_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    ec2 = Pages()
    monkeypatch.setattr(ungrouped, "SHOWN", 3)
    document = ungrouped.read(ec2)
    assert (ec2.pages, document["count"], document["limited"]) == (ungrouped.PAGES, ungrouped.PAGES, True)
    assert len(document["instances"]) == 3


def test_a_missing_permission_is_named() -> None:
    class Denied(Pages):
        def paginate(self, **_: Any) -> Iterator[dict[str, Any]]:
            raise ClientError({"Error": {"Code": "UnauthorizedOperation", "Message": "no"}}, "DescribeInstances")

    with pytest.raises(CliError, match="ec2:DescribeInstances") as error:
        ungrouped.read(Denied())
    assert error.value.code is Exit.FORBIDDEN
