"""An AWS account in moto with the half of a deployment that runs benchmarks, and somebody else's things beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from handlers import reaper, teardown
from tests.tables import create_table
from tests.unit.account.account import CONTEXT, Clock, inputs
from tests.unit.account.fast_moto import calls_are_usual, once
from tests.unit.account.fixtures import functions_at
from tests.unit.bench.flows.removal.tables import NOON, RUN, a_cell, a_run
from troop.bench.aws.run_table import RunTable
from troop.bench.definition import names
from troop.bench.definition.standing import Standing
from troop.bench.records.record import Kind, Launch, Resource
from troop.bench.wiring import removal
from troop.shared import moments
from troop.shared.aws.clients import client
from troop.shared.state_keys import REAPER_OFF, SWITCH
from troop.shared.tables import RUNS, STATE
from troop.shared.tags import DEPLOYMENT_TAG, RUN_TAG

DEPLOYMENT = "Troop"
PREFIX = "arn:aws:states:eu-central-1:123456789012"
ENVIRONMENT = {
    "TROOP_BENCHMARK_MACHINE": f"{PREFIX}:stateMachine:benchmark",
    "TROOP_TEARDOWN_MACHINE": f"{PREFIX}:stateMachine:teardown",
    "TROOP_FLEET_MACHINE": f"{PREFIX}:stateMachine:fleet",
    "TROOP_NODE_PROFILE": "arn:aws:iam::123456789012:instance-profile/nodes",
}
PROFILE = ENVIRONMENT["TROOP_NODE_PROFILE"]


@dataclass
class World:
    """The account. Its clock stands still until it is turned."""

    clock: Clock = field(default_factory=lambda: Clock(NOON))
    vpc: str = ""
    subnet: str = ""
    strangers: list[tuple[str, str]] = field(default_factory=list)

    @property
    def runs(self) -> RunTable:
        return RunTable(client("dynamodb"), "Runs", sleep=lambda seconds: None)

    @property
    def ec2(self) -> Any:
        return client("ec2")

    @property
    def autoscaling(self) -> Any:
        return client("autoscaling")

    @property
    def sqs(self) -> Any:
        return client("sqs")

    @property
    def states(self) -> Any:
        return client("stepfunctions")

    @property
    def now(self) -> datetime:
        return self.clock()

    def forward(self, **time: float) -> None:
        self.clock.forward(**time)

    def deploy(self) -> None:
        once("deploy", self._deploy)

    def _deploy(self) -> None:
        create_table(client("dynamodb"), RUNS)
        create_table(client("dynamodb"), STATE)
        self.vpc = self.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        self.subnet = self.ec2.create_subnet(VpcId=self.vpc, CidrBlock="10.0.0.0/20")["Subnet"]["SubnetId"]
        wait = json.dumps({"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 60, "End": True}}})
        for name in ("benchmark", "teardown", "fleet"):
            self.states.create_state_machine(
                name=name, definition=wait, roleArn="arn:aws:iam::123456789012:role/states", type="STANDARD"
            )

    # Runs

    def admit(self, run: str = RUN, cells: int = 1, at: datetime | None = None) -> str:
        every = [a_cell(run, names.cell_id(number + 1)) for number in range(cells)]
        assert self.runs.create(a_run(run, at or self.now, cells), every)
        return run

    def admit_fleet(self, run: str = RUN) -> str:
        """A standing fleet instead of a benchmark's run."""
        assert self.runs.create(replace(a_run(run, self.now), standing=Standing({"drivers": 2})), [a_cell(run)])
        return run

    def expire_in(self, run: str = RUN, **time: float) -> None:
        """Gives a run another end."""
        self.runs.client.update_item(
            TableName=self.runs.table,
            Key={"run": {"S": run}, "item": {"S": "run"}},
            UpdateExpression="SET expires_at = :then",
            ExpressionAttributeValues={":then": {"S": moments.iso(self.now + timedelta(**time))}},
        )

    def launch(
        self, run: str = RUN, cell: str = "c001", *, deployment: str = DEPLOYMENT, lease: Launch | None = None
    ) -> None:
        """What the step Launch does, as far as teardown is concerned; with a lease it keeps to the rules of it, and the
        cell has a queue.
        """
        common = names.tags(deployment, run, cell, moments.iso(self.now + timedelta(hours=2)))
        fleet = names.fleet_name(run, cell, "drivers")

        def record(kind: Kind, name: str) -> None:
            if lease:
                self.runs.resources.created([Resource(run, cell, kind, name, self.now)], self.now)

        def check() -> None:
            if lease:
                self.runs.launches.check_open(run, cell)

        check()
        group = self.security_group(names.security_group_name(run, cell), common)
        record(Kind.SECURITY_GROUP, names.security_group_name(run, cell))
        if lease:
            check()
            self.endpoint(group, common | {"Name": names.security_group_name(run, cell)})
            record(Kind.ENDPOINT, names.security_group_name(run, cell))
            for name in (names.dead_queue_name(run, cell), names.queue_name(run, cell)):
                check()
                self.queue(name, common)
                record(Kind.QUEUE, name)
        check()
        self.placement_group(fleet, names.fleet_tags(common, "drivers"))
        record(Kind.PLACEMENT_GROUP, fleet)
        check()
        self.template(fleet, group, names.fleet_tags(common, "drivers"), placement=fleet)
        record(Kind.LAUNCH_TEMPLATE, fleet)
        check()
        self.group(fleet, names.fleet_tags(common, "drivers"))
        record(Kind.AUTO_SCALING_GROUP, fleet)

    def launched(self) -> None:
        """Admits a run, and launches its cell as a workflow does."""
        self.admit()
        self.launch_by_the_rules()

    def swept(self) -> None:
        """Lets the reaper look after a while, and tears the run down once more."""
        self.forward(minutes=16)
        removal.reaper().sweep()
        self.tear_down()

    def launch_by_the_rules(self, run: str = RUN, cell: str = "c001") -> None:
        """With a lease, and everything written down before it is created."""
        once(f"launch {run} {cell}", lambda: self._launch_by_the_rules(run, cell))

    def _launch_by_the_rules(self, run: str, cell: str) -> None:
        lease = self.runs.launches.begin(run, cell, self.now + timedelta(seconds=310))
        fleet = names.fleet_name(run, cell, "drivers")
        planned = (
            (Kind.SECURITY_GROUP, names.security_group_name(run, cell)),
            (Kind.ENDPOINT, names.security_group_name(run, cell)),
            (Kind.QUEUE, names.queue_name(run, cell)),
            (Kind.QUEUE, names.dead_queue_name(run, cell)),
            *((kind, fleet) for kind in (Kind.PLACEMENT_GROUP, Kind.LAUNCH_TEMPLATE, Kind.AUTO_SCALING_GROUP)),
        )
        self.runs.resources.plan(Resource(run, cell, kind, name, self.now) for kind, name in planned)
        self.launch(run, cell, lease=lease)
        self.runs.launches.end(lease)

    def start_workflow(self, run: str = RUN, machine: str = "BENCHMARK") -> str:
        """ARN of a run's execution, which runs until it is stopped."""
        execution = self.states.start_execution(
            stateMachineArn=ENVIRONMENT[f"TROOP_{machine}_MACHINE"], name=run, input=json.dumps({"run": run})
        )
        return str(execution["executionArn"])

    def security_group(self, name: str, tags: dict[str, str]) -> str:
        answer = self.ec2.create_security_group(
            GroupName=name, Description="x", VpcId=self.vpc, TagSpecifications=tagged("security-group", tags)
        )
        return str(answer["GroupId"])

    def endpoint(self, group: str, tags: dict[str, str]) -> str:
        """An endpoint of SQS with a security group. Its id. Unlike moto, EC2 refuses a group that is gone."""
        answer = self.ec2.create_vpc_endpoint(
            VpcEndpointType="Interface",
            VpcId=self.vpc,
            ServiceName="com.amazonaws.eu-central-1.sqs",
            SubnetIds=[self.subnet],
            SecurityGroupIds=[group],
            TagSpecifications=tagged("vpc-endpoint", tags),
        )
        ident = str(answer["VpcEndpoint"]["VpcEndpointId"])
        if not self.ec2.describe_security_groups(Filters=[{"Name": "group-id", "Values": [group]}])["SecurityGroups"]:
            self.ec2.delete_vpc_endpoints(VpcEndpointIds=[ident])
            raise ClientError({"Error": {"Code": "InvalidGroup.NotFound", "Message": group}}, "CreateVpcEndpoint")
        return ident

    def queue(self, name: str, tags: dict[str, str]) -> str:
        return str(self.sqs.create_queue(QueueName=name, tags=tags)["QueueUrl"])

    def placement_group(self, name: str, tags: dict[str, str]) -> None:
        self.ec2.create_placement_group(
            GroupName=name, Strategy="cluster", TagSpecifications=tagged("placement-group", tags)
        )

    def template(
        self, name: str, group: str, tags: dict[str, str], profile: str = PROFILE, placement: str = ""
    ) -> None:
        self.ec2.create_launch_template(
            LaunchTemplateName=name,
            LaunchTemplateData={
                "ImageId": "ami-12345678",
                "InstanceType": "c7g.large",
                **({"IamInstanceProfile": {"Arn": profile}} if profile else {}),
                "SecurityGroupIds": [group],
                **({"Placement": {"GroupName": placement}} if placement else {}),
                "TagSpecifications": tagged("instance", tags) + tagged("volume", tags),
            },
            TagSpecifications=tagged("launch-template", tags),
        )

    def group(self, name: str, tags: dict[str, str], count: int = 2, template: str = "") -> None:
        self.autoscaling.create_auto_scaling_group(
            AutoScalingGroupName=name,
            LaunchTemplate={"LaunchTemplateName": template or name, "Version": "1"},
            MinSize=0,
            MaxSize=count,
            DesiredCapacity=count,
            VPCZoneIdentifier=self.subnet,
            Tags=[{"Key": k, "Value": v, "PropagateAtLaunch": True, "ResourceId": name} for k, v in tags.items()],
        )

    def volume_of_a_node(self, instance: str, tags: dict[str, str]) -> str:
        """As one that an instance is launched with: EC2 deletes it with the instance. moto attaches it without that."""
        ident = self.volume(tags)
        self.ec2.attach_volume(Device="/dev/sdf", InstanceId=instance, VolumeId=ident)
        mapping = {"DeviceName": "/dev/sdf", "Ebs": {"DeleteOnTermination": True}}
        self.ec2.modify_instance_attribute(InstanceId=instance, BlockDeviceMappings=[mapping])
        return ident

    def members(self, group: str) -> list[str]:
        """Ids of the instances of an Auto Scaling group."""
        (description,) = self.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[group])[
            "AutoScalingGroups"
        ]
        return sorted(one["InstanceId"] for one in description["Instances"])

    def switch_reaper(self, off: bool) -> None:
        item = {"key": {"S": SWITCH}, REAPER_OFF: {"BOOL": off}}
        client("dynamodb").put_item(TableName="State", Item=item)

    def volume(self, tags: dict[str, str]) -> str:
        zone = self.ec2.describe_subnets(SubnetIds=[self.subnet])["Subnets"][0]["AvailabilityZone"]
        answer = self.ec2.create_volume(AvailabilityZone=zone, Size=8, TagSpecifications=tagged("volume", tags))
        return str(answer["VolumeId"])

    def doubles(self, run: str = RUN) -> None:
        """Somebody else's: the same names and tags, but another deployment's tag, or none, or no run's."""
        once(f"doubles {run}", lambda: self._doubles(run))

    def _doubles(self, run: str) -> None:
        self.launch(run, "c002", deployment="Other")
        run_tags = names.tags(DEPLOYMENT, run, "c001", moments.iso(self.now))
        for number, missing in enumerate((DEPLOYMENT_TAG, RUN_TAG)):
            tags = {key: value for key, value in run_tags.items() if key != missing}
            name = f"troop-{run}-c001-like-{number}"
            self.template(name, self.security_group(name, tags), tags)
            self.group(name, tags, count=1)
            self.volume(tags)
        self.volume({DEPLOYMENT_TAG: "troop", RUN_TAG: run})
        self.strangers = self.existing()

    # What exists

    def existing(self) -> list[tuple[str, str]]:
        """Everything in the account that is not gone, by kind and name or id."""
        ec2, in_vpc = self.ec2, [{"Name": "vpc-id", "Values": [self.vpc]}]
        groups = _paged(self.autoscaling, "describe_auto_scaling_groups", "AutoScalingGroups")
        instances = [i for r in _paged(ec2, "describe_instances", "Reservations") for i in r["Instances"]]
        security_groups = _paged(ec2, "describe_security_groups", "SecurityGroups", Filters=in_vpc)
        templates = _paged(ec2, "describe_launch_templates", "LaunchTemplates")
        resources = [("group", one["AutoScalingGroupName"]) for one in groups]
        resources += [("instance", one["InstanceId"]) for one in instances if one["State"]["Name"] != "terminated"]
        resources += [("volume", one["VolumeId"]) for one in _paged(ec2, "describe_volumes", "Volumes")]
        placements = ec2.describe_placement_groups()["PlacementGroups"]
        resources += [("placement group", one["GroupName"]) for one in placements]
        resources += [("template", one["LaunchTemplateName"]) for one in templates]
        endpoints = _paged(ec2, "describe_vpc_endpoints", "VpcEndpoints")
        resources += [("endpoint", one["VpcEndpointId"]) for one in endpoints if one["State"] != "deleted"]
        resources += [("queue", str(url).rpartition("/")[2]) for url in _paged(self.sqs, "list_queues", "QueueUrls")]
        resources += [("security group", one["GroupId"]) for one in security_groups if one["GroupName"] != "default"]
        return sorted(resources)

    def left(self) -> list[tuple[str, str]]:
        """What exists and is not the look-alikes'."""
        return [one for one in self.existing() if one not in self.strangers]

    # The workflow

    def step(self, step: str, work: dict[str, Any]) -> dict[str, Any]:
        event = {"step": step, "work": work, "execution": "e"}
        answer: dict[str, Any] = teardown.handler(event, CONTEXT)
        return answer

    def tear_down(self, run: str = RUN, *, hurry: float = 1, **more: str) -> int:
        """The workflow, with its waits, each ``hurry`` times as long; how many looks it took."""
        work = self.step("close", {"run": run} | more)
        while True:
            work = self.step("remove", work)
            if work["over"]:
                break
            self.forward(seconds=work["wait_seconds"] * hurry)
        self.step("conclude", work)
        return int(work["passes"])

    def detach(self, instances: list[str]) -> None:
        """Takes instances out of the group of the run's drivers, which then wants fewer."""
        self.autoscaling.detach_instances(
            AutoScalingGroupName=names.fleet_name(RUN, "c001", "drivers"),
            InstanceIds=instances,
            ShouldDecrementDesiredCapacity=True,
        )

    def reap(self, event: dict[str, Any] | None = None) -> dict[str, Any]:
        answer: dict[str, Any] = reaper.handler(event or {"id": "1"}, CONTEXT)
        return answer

    def teardowns(self) -> dict[str, dict[str, Any]]:
        """Input by name of the teardowns that were started."""
        return inputs(ENVIRONMENT["TROOP_TEARDOWN_MACHINE"])


def _paged(service: Any, call: str, field: str, **filters: Any) -> list[Any]:
    return [one for page in service.get_paginator(call).paginate(**filters) for one in page.get(field, [])]


def tagged(kind: str, tags: dict[str, str]) -> list[dict[str, Any]]:
    """``TagSpecifications``, which may be empty, but not have no tags."""
    return [{"ResourceType": kind, "Tags": [{"Key": k, "Value": v} for k, v in tags.items()]}] if tags else []


@contextmanager
def set_up(monkeypatch: Any) -> Iterator[World]:
    """An account of its own with a deployment in it."""
    world = World()
    monkeypatch.delenv("TROOP_NETWORK_VPC", raising=False)
    with functions_at(world.clock, monkeypatch):
        calls_are_usual((world.clock, "moment"), (world, "vpc", "subnet", "strangers"), is_new=True)
        world.deploy()
        monkeypatch.setenv("TROOP_NETWORK_VPC", world.vpc)
        yield world
