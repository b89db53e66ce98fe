"""Removes what steps create."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import boto3
from botocore.exceptions import ClientError

from cli.client.client import TroopClient
from cli.prove.ledger import Remove
from cli.shared import aws
from cli.shared.errors import CliError, Exit

_ABSENT = frozenset({"InvalidLaunchTemplateName.NotFoundException", "InvalidPlacementGroup.Unknown"})


def removers(session: boto3.Session, client: TroopClient) -> dict[str, Remove]:
    """Returns what removes each kind of thing that the steps create."""

    def role(name: str) -> None:
        iam = aws.client(session, "iam")
        with suppress(iam.exceptions.NoSuchEntityException):
            for policy in iam.list_role_policies(RoleName=name)["PolicyNames"]:
                iam.delete_role_policy(RoleName=name, PolicyName=policy)
            iam.delete_role(RoleName=name)

    def stack(name: str) -> None:
        stacks = aws.client(session, "cloudformation")
        stacks.delete_stack(StackName=name)
        stacks.get_waiter("stack_delete_complete").wait(StackName=name)

    def table(name: str) -> None:
        dynamodb = aws.client(session, "dynamodb")
        with suppress(dynamodb.exceptions.ResourceNotFoundException):
            dynamodb.delete_table(TableName=name)

    def placement_group(name: str) -> None:
        with _if_there():
            aws.client(session, "ec2").delete_placement_group(GroupName=name)

    def launch_template(name: str) -> None:
        with _if_there():
            aws.client(session, "ec2").delete_launch_template(LaunchTemplateName=name)

    def group(name: str) -> None:
        scaling = aws.client(session, "autoscaling")
        for existing in scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]:
            scaling.delete_auto_scaling_group(AutoScalingGroupName=name, ForceDelete=True)
            # The template and the placement group go only after the node.
            if ids := [one["InstanceId"] for one in existing["Instances"]]:
                aws.client(session, "ec2").get_waiter("instance_terminated").wait(InstanceIds=ids)

    def instance(name: str) -> None:
        ec2 = aws.client(session, "ec2")
        filters = [
            {"Name": "tag:Name", "Values": [name]},
            {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped", "shutting-down"]},
        ]
        reservations = ec2.describe_instances(Filters=filters)["Reservations"]
        if ids := [one["InstanceId"] for reservation in reservations for one in reservation["Instances"]]:
            ec2.terminate_instances(InstanceIds=ids)
            ec2.get_waiter("instance_terminated").wait(InstanceIds=ids)

    def instance_profile(name: str) -> None:
        iam = aws.client(session, "iam")
        with suppress(iam.exceptions.NoSuchEntityException):
            for attached in iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]["Roles"]:
                iam.remove_role_from_instance_profile(InstanceProfileName=name, RoleName=attached["RoleName"])
            iam.delete_instance_profile(InstanceProfileName=name)

    def bucket(name: str) -> None:
        s3 = aws.client(session, "s3")
        with suppress(s3.exceptions.NoSuchBucket):
            for item in s3.list_objects_v2(Bucket=name).get("Contents", []):
                s3.delete_object(Bucket=name, Key=item["Key"])
            s3.delete_bucket(Bucket=name)

    def fleet(name: str) -> None:
        with _if_there():
            if not client.benchmarks.fleet(name)["fleet"]["ended_at"]:
                client.benchmarks.remove_fleet(name)

    def run(name: str) -> None:
        with _if_there():
            if not client.benchmarks.run(name, resources=False)["run"]["ended_at"]:
                client.benchmarks.stop_run(name)

    return {
        "role": role,
        "stack": stack,
        "table": table,
        "placement group": placement_group,
        "launch template": launch_template,
        "group": group,
        "instance": instance,
        "instance profile": instance_profile,
        "bucket": bucket,
        "fleet": fleet,
        "run": run,
    }


@contextmanager
def _if_there() -> Iterator[None]:
    """Ignores errors of EC2 and of Troop that say that a thing does not exist."""
    try:
        yield
    except CliError as error:
        if error.code is not Exit.NO_SUCH_UNIT:
            raise
    except ClientError as error:
        if error.response["Error"]["Code"] not in _ABSENT:
            raise
