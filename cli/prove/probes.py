"""Asks AWS, and returns what it answers as JSON. Judges nothing."""

from __future__ import annotations

import gzip
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count, islice
from typing import Any
from uuid import uuid4

import boto3
from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError, ClientError, WaiterError
from botocore.httpsession import URLLib3Session

from cli.client.client import TroopClient
from cli.client.deployment import Deployment
from cli.prove import runs
from cli.prove.judgements import ALLOWED, SUCCESS
from cli.prove.ledger import PREFIX, Ledger, Remove, tags
from cli.prove.node.ask import MARK, PRESIGNED
from cli.prove.runs import Run
from cli.shared import aws
from cli.shared.errors import CliError, Exit
from troop.bench.definition.definition import PARTITION, SPOT, Fleet
from troop.bench.fleets.fleet_requests import (
    IMAGE_PARAMETER,
    Image,
    group_request,
    placement_request,
    tag_specification,
    template_data,
)
from troop.faults.crash import CRASH
from troop.shared.state_keys import SWITCH, UNIT
from troop.shared.tags import DEPLOYMENT_TAG

_MOST = 5
"""Instances to ask about."""
_INITIALIZATION_RATE = 100
"""MiB a second."""
_REQUESTS = 4
"""Steps that launch nothing."""
_FORBIDDEN = 403
_PAUSE_SECONDS, _MOST_TRIES = 10.0, 60
_LEAVE = timedelta(minutes=20)
"""Time after which Auto Scaling ends the node of a group, should this command be killed."""
_PROPAGATION_TRIES, _PROPAGATION_SECONDS, _POLICY_SECONDS = 12, 5.0, 15.0
_ABSENT = frozenset({"InvalidLaunchTemplateName.NotFoundException", "InvalidPlacementGroup.Unknown"})
GROUP_NAME_TAG = "aws:autoscaling:groupName"


@dataclass(frozen=True)
class Probes:
    """The steps, each a method without arguments.

    Attributes:
        run: starts a run, follows it, and returns its record.
        start_fleet: starts the fleet of :data:`runs.FLEET`, and returns its id.
        sleep: waits for seconds.
    """

    session: boto3.Session
    deployment: Deployment
    client: TroopClient
    ledger: Ledger
    run: Callable[[Run], Mapping[str, Any]]
    start_fleet: Callable[[], str]
    sleep: Callable[[float], None] = time.sleep

    def mapping_tags(self) -> dict[str, int]:
        client, mappings = self._client("lambda"), self._resources("AWS::Lambda::EventSourceMapping")
        lists = [
            client.list_tags(Resource=client.get_event_source_mapping(UUID=one)["EventSourceMappingArn"])["Tags"]
            for one in mappings
        ]
        return {"mappings": len(lists), "tagged": sum(DEPLOYMENT_TAG in one for one in lists)}

    def late_termination(self) -> list[dict[str, Any]]:
        victims = {event["instance_id"] for event in self.client.events({}, 100) if event.get("instance_id")}
        ended = [
            instance
            for instance in self._instances("terminated")
            if instance["InstanceId"] in victims or _has_group(instance)
        ][:_MOST]
        if not ended:
            return []
        statement = {
            "Effect": "Allow",
            "Action": "ec2:TerminateInstances",
            "Resource": "*",
            "Condition": {"Null": {f"aws:ResourceTag/{GROUP_NAME_TAG}": "false"}},
        }
        with self._role("late-termination", statement) as session:
            ec2 = self._client("ec2", session)

            def code(instance: str) -> str:
                # A dry run, on an instance that has already ended.
                return _code(lambda: ec2.terminate_instances(InstanceIds=[instance], DryRun=True))

            return [
                {
                    "has_tag": _has_group(instance),
                    "since": instance.get("StateTransitionReason", ""),
                    "code": code(instance["InstanceId"]),
                }
                for instance in ended
            ]

    def absent_role(self) -> str:
        resource = f"arn:{self._partition}:iam::{self.deployment.account}:role/aws-service-role/*"
        with self._role("absent-role", {"Effect": "Allow", "Action": "iam:GetRole", "Resource": resource}) as session:
            iam = self._client("iam", session)
            return _code(lambda: iam.get_role(RoleName="AWSServiceRoleForNothingOfTroop"))

    def leading_keys(self) -> dict[str, str]:
        """Writes an item of a table and its switch, alone and in transactions that check the other one."""
        dynamodb, table = self._client("dynamodb"), f"{PREFIX}{uuid4().hex[:8]}"
        self.ledger.add("table", table)
        arn = dynamodb.create_table(
            TableName=table,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
            Tags=tags("leading-keys"),
        )["TableDescription"]["TableArn"]
        dynamodb.get_waiter("table_exists").wait(TableName=table)
        item, switch = ({"TableName": table, "Key": {"key": {"S": key}}} for key in (f"{UNIT}probe", SWITCH))
        change = {"UpdateExpression": "SET #on = :on", "ExpressionAttributeNames": {"#on": "on"}}
        change["ExpressionAttributeValues"] = {":on": {"BOOL": True}}
        check = {"ConditionExpression": "attribute_not_exists(halted)"}
        with self._role("leading-keys", *state_policy(arn)) as session:
            limited = self._client("dynamodb", session)

            def transact(written: Mapping[str, Any], checked: Mapping[str, Any]) -> str:
                parts = [{"ConditionCheck": {**checked, **check}}, {"Update": {**written, **change}}]
                return _code(lambda: limited.transact_write_items(TransactItems=parts))

            return {
                "item": _code(lambda: limited.update_item(**item, **change)),
                "switch": _code(lambda: limited.update_item(**switch, **change)),
                "item_if_switch": transact(item, switch),
                "switch_if_item": transact(switch, item),
            }

    def alarm_states(self) -> dict[str, int]:
        names = self._resources("AWS::CloudWatch::Alarm")
        pages = self._client("cloudwatch").get_paginator("describe_alarms")
        alarms = [
            alarm
            for start in range(0, len(names), 100)
            for page in pages.paginate(AlarmNames=names[start : start + 100])
            for alarm in page["MetricAlarms"]
        ]
        filled = [
            alarm for alarm in alarms if any("FILL" in one.get("Expression", "") for one in alarm.get("Metrics", []))
        ]
        return dict(Counter(alarm["StateValue"] for alarm in filled))

    def attribute_condition(self) -> dict[str, str]:
        instances = [one["InstanceId"] for one in self._instances("running")][:1]
        if not instances:
            return {}
        statement = {
            "Effect": "Allow",
            "Action": "ec2:DescribeInstanceAttribute",
            "Resource": "*",
            "Condition": {"StringEqualsIgnoreCase": {"ec2:Attribute": "disableApiTermination"}},
        }
        with self._role("attribute-condition", statement) as session:
            ec2 = self._client("ec2", session)

            def read(attribute: str) -> str:
                request = {"InstanceId": instances[0], "Attribute": attribute, "DryRun": True}
                return _code(lambda: ec2.describe_instance_attribute(**request))

            return {"allowed": read("disableApiTermination"), "other": read("userData")}

    def runtime(self) -> dict[str, str]:
        client = self._client("lambda")
        return {
            "python3.14": _code(lambda: client.list_layers(CompatibleRuntime="python3.14", MaxItems=1), ""),
            "arm64": _code(lambda: client.list_layers(CompatibleArchitecture="arm64", MaxItems=1), ""),
        }

    def crashes(self) -> dict[str, Any]:
        events = [one for one in self.client.events({}, 1000) if one["method"] == CRASH.name]
        called = [one for one in events if one["os_shutdown"] is not None]
        shut_down = [one for one in called if one["os_shutdown"]]
        unclear = [one for one in events if one["os_shutdown"] or one["status"] == "ABANDONED"]
        return {
            "without_shutdown": len(called) - len(shut_down),
            "with_shutdown": len(shut_down),
            "details": sorted({one["detail"].replace(one["group"], "GROUP") for one in unclear}),
        }

    def stack_failures(self) -> list[str]:
        pages = self._client("cloudformation").get_paginator("describe_stack_events")
        events = [event for page in pages.paginate(StackName=self.deployment.name) for event in page["StackEvents"]]
        failed = [event for event in events if event["ResourceStatus"].endswith("_FAILED")]
        return [f"{one['ResourceType']}: {one.get('ResourceStatusReason', '')}" for one in failed]

    def table_import(self) -> list[dict[str, str]]:
        """Creates a table in one stack, and imports it into another, as a take-over of retained tables does."""
        stacks = self._client("cloudformation")
        first, second, table = (f"{PREFIX}{part}-{uuid4().hex[:8]}" for part in ("first", "second", "table"))
        for kind, name in (("table", table), ("stack", first), ("stack", second)):
            self.ledger.add(kind, name)
        template, with_stream = _table_template(table), _table_template(table, streams=True)
        before, after, change = {"StackName": first}, {"StackName": second}, {"ChangeSetName": f"{PREFIX}import"}
        resource = {
            "ResourceType": "AWS::DynamoDB::Table",
            "LogicalResourceId": "Table",
            "ResourceIdentifier": {"TableName": table},
        }
        imported = {"TemplateBody": template, "ChangeSetType": "IMPORT", "ResourcesToImport": [resource]}

        def carry_out(call: Callable[..., Any], waiter: str, target: Mapping[str, str], **request: Any) -> None:
            call(**target, **request)
            stacks.get_waiter(f"{waiter}_complete").wait(**target)

        def recorded() -> None:
            pages = stacks.get_paginator("list_stacks").paginate(StackStatusFilter=["DELETE_COMPLETE"])
            ids = [one["StackId"] for page in pages for one in page["StackSummaries"] if one["StackName"] == first]
            listed = [r for i in ids for r in stacks.list_stack_resources(StackName=i)["StackResourceSummaries"]]
            states = [one["ResourceStatus"] for one in listed if one["PhysicalResourceId"] == table]
            if states != ["DELETE_SKIPPED"]:
                raise ValueError(f"the record has the states {states}")

        return _outcomes(
            [
                ("create", partial(carry_out, stacks.create_stack, "stack_create", before, TemplateBody=template)),
                ("leave", partial(carry_out, stacks.delete_stack, "stack_delete", before)),
                ("look it up", recorded),
                (
                    "prepare",
                    partial(carry_out, stacks.create_change_set, "change_set_create", after | change, **imported),
                ),
                ("import", partial(carry_out, stacks.execute_change_set, "stack_import", after, **change)),
                (
                    "add a stream",
                    partial(carry_out, stacks.update_stack, "stack_update", after, TemplateBody=with_stream),
                ),
            ]
        )

    def conditional_writes(self) -> dict[str, str]:
        """Writes an object of a new bucket under conditions, each of which holds at first and then does not."""
        s3, bucket = self._client("s3"), f"{PREFIX}{uuid4().hex}"
        self.ledger.add("bucket", bucket)
        place = {} if s3.meta.region_name == "us-east-1" else {"LocationConstraint": s3.meta.region_name}
        s3.create_bucket(Bucket=bucket, **({"CreateBucketConfiguration": place} if place else {}))
        s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": tags("conditional-writes")})

        def put(body: bytes, **condition: str) -> str:
            return _code(lambda: s3.put_object(Bucket=bucket, Key="probe", Body=body, **condition))

        new, repeated = put(b"1", IfNoneMatch="*"), put(b"2", IfNoneMatch="*")
        version = s3.head_object(Bucket=bucket, Key="probe")["ETag"]
        return {"new": new, "same": put(b"3", IfMatch=version), "exists": repeated, "other": put(b"4", IfMatch=version)}

    def launch_requests(self) -> list[dict[str, str]]:
        """Creates what a fleet on spot in two zones is launched from, with a group of size 0."""
        return _outcomes(islice(self._launching("launch-requests"), _REQUESTS))

    def launch(self) -> list[dict[str, str]]:
        """Creates the same, and has the group launch one node, which runs no script and can reach nothing."""
        return _outcomes(self._launching("launch"))

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
            code = _code(lambda: ec2.run_instances(**request, DryRun=True))
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

    def _await(self, is_over: Callable[[], bool], problem: Callable[[], str]) -> None:
        for _ in range(_MOST_TRIES):
            if is_over():
                return
            self.sleep(_PAUSE_SECONDS)
        raise ValueError(problem())

    def fleet(self) -> list[dict[str, str]]:
        """Starts a standing fleet, doubles it, halves it, and ends it."""
        benchmarks, ids = self.client.benchmarks, list[str]()

        def view() -> Mapping[str, Any]:
            fleet: Mapping[str, Any] = benchmarks.fleet(ids[0])["fleet"]
            return fleet

        def start() -> None:
            ids.append(self.start_fleet())
            settle(1)

        def counts() -> list[dict[str, int]]:
            return [{name: role[name] for name in ("desired", "in_service", "ready")} for role in view()["roles"]]

        def settle(count: int) -> None:
            self._await(lambda: all({*one.values()} == {count} for one in counts()), lambda: str(counts()))

        def scale(count: int) -> None:
            benchmarks.scale_fleet(ids[0], {"count": count})
            settle(count)

        def end() -> None:
            benchmarks.remove_fleet(ids[0])
            self._await(lambda: bool(view()["ended_at"]), lambda: "the fleet has not ended")

        return _outcomes(
            [("up", start), ("two nodes", lambda: scale(2)), ("one node", lambda: scale(1)), ("down", end)]
        )

    def spot(self) -> dict[str, Any]:
        return _record(self.run(runs.SPOT))

    def caches(self) -> dict[str, Any]:
        return _record(self.run(runs.CACHES))

    def cassandra(self) -> dict[str, Any]:
        return _record(self.run(runs.CASSANDRA))

    def programs(self) -> list[dict[str, Any]]:
        run = runs.programs()
        return self._answers(self.run(run)) if run else []

    def node(self) -> list[dict[str, Any]]:
        """Asks a node; then tries from here the address that is for the nodes' network."""
        filtered = bool(self._resources("AWS::Route53Resolver::FirewallRuleGroupAssociation"))
        view = self.run(replace(runs.NODE, changes={"parameters.filtered": filtered}))
        answers = self._answers(view)
        for one in answers:
            if one["name"] == PRESIGNED and one["ok"]:
                status = _status(one["output"])
                one |= {"ok": status == _FORBIDDEN, "output": f"from here: {status}"}
        reasons = [cell["reason"] or "" for cell in view["cells"]]
        reported = any("rebooted" in reason for reason in reasons)
        return [*answers, {"name": "end", "ok": reported, "output": "; ".join(reasons)}] if answers else []

    def _answers(self, view: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Returns what the scripts of a run have printed."""
        s3, bucket = self._client("s3"), self.deployment.outputs["ResultsBucket"]
        listed = s3.list_objects_v2(Bucket=bucket, Prefix=f"runs/{view['run']['run']}/").get("Contents", [])
        keys = [one["Key"] for one in listed if "/output/" in one["Key"]]
        texts = [gzip.decompress(s3.get_object(Bucket=bucket, Key=key)["Body"].read()).decode() for key in keys]
        answers = [answer for text in texts for answer in answers_in(text)]
        if not answers:
            raise ValueError("; ".join(cell["reason"] or "a node answered nothing" for cell in view["cells"]))
        return answers

    @property
    def _partition(self) -> str:
        return self.deployment.api_arn.split(":")[1]

    def _client(self, service: str, session: boto3.Session | None = None) -> Any:
        return aws.client(session or self.session, service)

    def _resources(self, kind: str) -> list[str]:
        pages = self._client("cloudformation").get_paginator("list_stack_resources")
        return [
            one["PhysicalResourceId"]
            for page in pages.paginate(StackName=self.deployment.name)
            for one in page["StackResourceSummaries"]
            if one["ResourceType"] == kind and one.get("PhysicalResourceId")
        ]

    def _instances(self, state: str) -> list[dict[str, Any]]:
        pages = self._client("ec2").get_paginator("describe_instances")
        filters = [{"Name": "instance-state-name", "Values": [state]}]
        return [
            instance
            for page in pages.paginate(Filters=filters)
            for reservation in page["Reservations"]
            for instance in reservation["Instances"]
        ]

    @contextmanager
    def _role(self, question: str, *statements: Mapping[str, Any]) -> Iterator[boto3.Session]:
        """Yields a session with only these permissions: that of a role which only this caller can assume."""
        caller = self._client("sts").get_caller_identity()
        trust = {
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:{self._partition}:iam::{self.deployment.account}:root"},
            "Action": "sts:AssumeRole",
            "Condition": {"StringEquals": {"aws:userid": caller["UserId"]}},
        }
        iam, name = self._client("iam"), f"{PREFIX}{uuid4().hex[:8]}"
        self.ledger.add("role", name)
        role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=_policy(trust), Tags=tags(question))["Role"]
        iam.put_role_policy(RoleName=name, PolicyName="probe", PolicyDocument=_policy(*statements))
        yield self._assumed(role["Arn"])

    def _assumed(self, arn: str) -> boto3.Session:
        sts = self._client("sts")
        for attempt in count(1):
            try:
                keys = sts.assume_role(RoleArn=arn, RoleSessionName="troop-prove", DurationSeconds=900)["Credentials"]
                break
            except ClientError as error:
                # A new role is not known everywhere at once.
                if attempt == _PROPAGATION_TRIES or error.response["Error"]["Code"] != "AccessDenied":
                    raise
                self.sleep(_PROPAGATION_SECONDS)
        self.sleep(_POLICY_SECONDS)  # nor is its policy
        return boto3.Session(
            keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"], self.session.region_name
        )


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


def _status(address: str) -> int | None:
    """Returns the status of an answer; None without an answer."""
    try:
        return int(URLLib3Session(timeout=20).send(AWSRequest("GET", address).prepare()).status_code)
    except BotoCoreError:
        return None


def _record(view: Mapping[str, Any]) -> dict[str, Any]:
    """Returns how the cells of a run ended, and what its nodes were."""
    facts, labels = ("role", "instance_type", "zone", "purchase"), {c["cell"]: c["label"] for c in view["cells"]}
    return {
        "cells": [{key: cell[key] for key in ("label", "status", "phase", "reason")} for cell in view["cells"]],
        "nodes": [
            {"label": labels[one["cell"]]} | {key: one[key] for key in facts}
            for one in view["resources"]
            if one["kind"] == "instance" and one["cell"] in labels
        ],
    }


def answers_in(text: str) -> list[dict[str, Any]]:
    """Returns the answers in the output of a node's script."""
    return [json.loads(line[len(MARK) :]) for line in text.splitlines() if line.startswith(MARK)]


def state_policy(table: str) -> list[dict[str, Any]]:
    """Returns statements like those of the functions that claim: they write units, and only check the switch.

    Args:
        table: the ARN of the table.
    """
    keys = "dynamodb:LeadingKeys"
    units = {"ForAllValues:StringLike": {keys: [f"{UNIT}*"]}, "Null": {keys: "false"}}
    switch = {"ForAnyValue:StringEquals": {keys: [SWITCH]}}
    return [
        {"Effect": "Allow", "Action": "dynamodb:UpdateItem", "Resource": table, "Condition": units},
        {"Effect": "Allow", "Action": "dynamodb:ConditionCheckItem", "Resource": table},
        {"Effect": "Deny", "Action": "dynamodb:UpdateItem", "Resource": table, "Condition": switch},
    ]


def _code(call: Callable[[], Any], succeeded: str = SUCCESS) -> str:
    """Returns the code of the error that a call raises."""
    try:
        call()
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return succeeded


def _outcomes(steps: Iterable[tuple[str, Callable[[], Any]]]) -> list[dict[str, str]]:
    """Carries out steps in order, until one fails."""
    outcomes: list[dict[str, str]] = []
    for step, call in steps:
        try:
            call()
        except (ClientError, CliError, WaiterError, ValueError) as error:
            return [*outcomes, {"step": step, "status": " ".join(str(error).split())}]
        outcomes.append({"step": step, "status": "done"})
    return outcomes


def _has_group(instance: Mapping[str, Any]) -> bool:
    return any(tag["Key"] == GROUP_NAME_TAG for tag in instance.get("Tags", []))


def _policy(*statements: Mapping[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def _table_template(name: str, *, streams: bool = False) -> str:
    properties: dict[str, Any] = {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "key", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "key", "KeyType": "HASH"}],
        "Tags": tags("table-import"),  # not of the stack: an import may not add tags
    }
    if streams:
        properties["StreamSpecification"] = {"StreamViewType": "NEW_IMAGE"}
    table = {"Type": "AWS::DynamoDB::Table", "DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
    return json.dumps({"Resources": {"Table": {**table, "Properties": properties}}})
