"""A run of a benchmark in moto: what the API leaves behind, the workflow's steps, and what nodes write."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from moto.core import DEFAULT_ACCOUNT_ID
from moto.ec2 import ec2_backends

from handlers import cell as cell_handler
from handlers import launch as launch_handler
from tests.tables import create_table
from tests.unit.account.account import CONTEXT, Account
from tests.unit.account.fast_moto import Holder, calls_are_usual, once
from troop.bench.admission.spending import Terms
from troop.bench.aws.cell_store import encoded
from troop.bench.aws.run_table import RunTable
from troop.bench.definition import names
from troop.bench.definition.definition import Benchmark, Fleet, Phase, Volume, to_document
from troop.bench.definition.plan import Plan, PlannedCell, Variant, to_plan_document
from troop.bench.records.record import Cell, Run
from troop.measure.histogram import Histogram
from troop.measure.live import Live, LiveOperation
from troop.measure.operations import Operation
from troop.measure.separate import Separate
from troop.measure.summary import Summary
from troop.measure.windows import Windows
from troop.shared.aws.clients import client
from troop.shared.service_roles import AUTO_SCALING, SPOT
from troop.shared.tables import RUNS

BUCKET = "results-bucket"
CELL = "c001"
AGENT = b"the agent"
ROLE_ID = "AROA0123456789EXAMPLE"
WRITER = f"{ROLE_ID}:"
"""Before the id of a node in the names of what it writes."""
PROFILE = "arn:aws:iam::123456789012:instance-profile/node"

ENDPOINT_SERVICE = {
    "ServiceName": "com.amazonaws.eu-central-1.sqs",
    "AvailabilityZones": ["eu-central-1a", "eu-central-1b"],
    "PrivateDnsName": "sqs.eu-central-1.amazonaws.com",
}

BENCHMARK = Benchmark(
    name="ranges",
    description="",
    expires_after=7200,
    fleets=(
        Fleet("servers", 2, "c7g.large", 2, 600, 8, (Volume("/dev/sdf", 100, "gp3", 4000, 250),)),
        Fleet("drivers", 3, "c5.large", 1, 300, 8),
    ),
    phases=(
        Phase("prepare", ("servers", "drivers"), "prepare.sh", 600),
        Phase("measure", ("drivers",), "read.py", 600, start_together=True, warm_up=30, measured=300),
    ),
    parameters={"threads": 4},
    files=("prepare.sh", "read.py"),
)


@dataclass
class Bench:
    """One run, and the account it is in."""

    account: Account
    benchmark: Benchmark = BENCHMARK
    images: dict[str, str] = field(default_factory=dict)
    run: str = ""
    variant: Variant = field(default_factory=Variant)
    roles: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.s3, self.ec2, self.autoscaling = client("s3"), client("ec2"), client("autoscaling")
        self.runs = RunTable(client("dynamodb"), "Runs", sleep=lambda seconds: None)

    def admit(self, benchmark: Benchmark | None = None, key: str = "k", terms: Terms | None = None) -> Bench:
        """What ``POST /benchmarks`` does; this, with the run."""
        self.benchmark = benchmark or self.benchmark
        return self.once(f"admit {key} {terms}", lambda: self._admit(key, terms))

    def _admit(self, key: str, terms: Terms | None) -> None:
        now = self.account.clock()
        self.run = names.run_id(now, key)
        expires = now + timedelta(seconds=self.benchmark.expires_after)
        run = Run(self.run, self.benchmark.name, now, expires, "arn:me", 1, self.benchmark.nodes)
        self.put(names.definition_key(self.run), to_document(self.benchmark))
        plan = Plan((PlannedCell(CELL, self.variant, self.benchmark),))
        self.put(names.plan_key(self.run), to_plan_document(plan))
        assert self.runs.create(run, [Cell(self.run, CELL, variant=self.variant)], terms)

    def once(self, label: str, do: Callable[[], Any]) -> Bench:
        """Does something to this and its account, or copies what that led to in one like it."""
        once(label, lambda: bool(do()), self.holder)
        return self

    @property
    def holder(self) -> Holder:
        """What is copied together with the account."""
        return self, "benchmark", "run", "roles", "places"

    def again(self, key: str, benchmark: Benchmark | None = None) -> Bench:
        """Another run in the same account."""
        return replace(self, run="").admit(benchmark, key)

    # The workflow's steps

    def step(self, name: str, **more: Any) -> dict[str, Any]:
        answer: dict[str, Any] = cell_handler.handler({"step": name, "run": self.run, "cell": CELL, **more}, CONTEXT)
        return answer

    def open(self) -> list[dict[str, str]]:
        answer = self.step("open", execution="arn:execution")
        items: list[dict[str, str]] = self.get(answer["key"])
        return items

    def launch(self) -> dict[str, Any]:
        answer: dict[str, Any] = launch_handler.handler({"run": self.run, "cell": CELL}, CONTEXT)
        return answer

    def gather(self) -> str:
        return str(self.step("gather")["state"])

    def check(self, phase: int) -> str:
        return str(self.step("check", phase_index=phase)["state"])

    def launched(self) -> Bench:
        """A cell that is launched, without a node that has registered."""
        return self.once("launched", lambda: (self.open(), self.launch()))

    def gathered(self) -> Bench:
        """A cell whose nodes are all on the roster."""
        return self.once("gathered", self._gather_all)

    def _gather_all(self) -> None:
        self.launched()
        self.register(self.nodes())
        assert self.gather() == "ready"

    def measuring(self) -> Bench:
        """A cell whose first phase is over, and whose second has begun a minute ago."""
        return self.once("measuring", self._measure)

    def _measure(self) -> None:
        self.gathered()
        self.step("release", phase_index=0)
        self.finish("prepare", self.nodes())
        assert self.check(0) == "next"
        self.step("release", phase_index=1)
        self.account.clock.forward(minutes=1)

    # What nodes do

    def nodes(self, role: str | None = None) -> list[str]:
        """Ids of a fleet's instances, or of all."""
        roles = [role] if role else [fleet.role for fleet in self.benchmark.fleets]
        roles_by_node = {i: r for r in roles for i in self.account.instances(names.fleet_name(self.run, CELL, r))}
        self.roles |= roles_by_node
        return sorted(roles_by_node)

    def role_of(self, node: str) -> str:
        """Also of one that is gone."""
        if node not in self.roles:
            self.nodes()
        return self.roles[node]

    def register(self, nodes: Iterable[str], **more: Any) -> None:
        described = {
            i["InstanceId"]: i
            for page in self.ec2.get_paginator("describe_instances").paginate()
            for r in page["Reservations"]
            for i in r["Instances"]
        }
        zones = {fleet.role: fleet.zones for fleet in self.benchmark.fleets}
        for node in nodes:
            instance, zone = described[node], described[node]["Placement"]["AvailabilityZone"]
            if (wide := zones.get(self.role_of(node), 1)) > 1:  # moto puts all into one; Auto Scaling does not
                zone = self.places.setdefault(node, self._emptiest(node, described, wide))
                ec2_backends[DEFAULT_ACCOUNT_ID]["eu-central-1"].get_instance(node)._placement.zone = zone
            self.put(
                f"{names.nodes_prefix(self.run, CELL)}{WRITER}{node}.json",
                {
                    "format": "troop.node/1",
                    "id": node,
                    "role": self.role_of(node),
                    "zone": zone,
                    "address": instance["PrivateIpAddress"],
                    "instance_type": instance["InstanceType"],
                    "clock": {"offset_seconds": 0.01, "uncertainty_seconds": 0.25},
                }
                | more,
            )

    def _emptiest(self, node: str, described: dict[str, Any], wide: int) -> str:
        """Of so many zones the first one with the fewest nodes of the same group that run."""
        mates = [i for i, one in described.items() if _group(one) == _group(described[node]) and _runs(one)]
        zones = [self.places.get(mate) for mate in mates]
        return min((f"eu-central-1{letter}" for letter in "abc"[:wide]), key=zones.count)

    def cannot_start(self, node: str, error: str) -> None:
        document = {"format": "troop.node/1", "id": node, "role": self.role_of(node), "error": error}
        self.put(f"{names.nodes_prefix(self.run, CELL)}{WRITER}{node}.json", document)

    def finish(self, phase: str, nodes: Iterable[str], outcome: str = "ok", reason: str | None = None) -> None:
        """Summaries of a step; of a measured one with 1,000 reads a node, one of them slow, and 2 time-outs."""
        measured = next(step.phase.measured for step in self.benchmark.steps if step.name == phase)
        for rank, node in enumerate(nodes):
            operations: dict[str, Operation] = {}
            wrk: tuple[Separate, ...] = ()
            if measured:
                times, over_time = Histogram(), Windows(1, 1)
                for micros in (*range(100, 1099), 2_000_000 + rank):
                    times.record(micros)
                over_time.take(1, times)
                operations["read"] = Operation(times, {"timeout": 2}, bytes=1_000_000, over_time=over_time)
                wrk = (Separate("wrk", "get", rank),)
            summary = Summary(
                node=node, role=self.role_of(node), rank=rank, phase=phase, outcome=outcome, started_at=1.0,
                ended_at=2.0, reason=reason, exit_code=0, measured_from=1.0 if measured else None,
                measured_seconds=float(measured), operations=operations, warm_up_seconds=measured / 10, separate=wrk,
            )  # fmt: skip
            self.put(f"{names.phase_prefix(self.run, CELL, phase)}{WRITER}{node}.json", summary.document())

    def measured(self, phase: str, node: str, count: int, **changes: Any) -> None:
        """A running summary, 20 seconds after the measured time began: so many reads of a millisecond, one error."""
        read = LiveOperation(count, 1, {96: count}, {96: count}, 1)
        live = Live(node, self.role_of(node), phase, 1020, 15, 1000.0, 300.0, operations={"read": read})
        self.put(f"{names.live_prefix(self.run, CELL)}{WRITER}{node}.json", live.document() | changes)

    def printed(self, phase: str, node: str, text: str) -> None:
        key = f"{names.output_prefix(self.run, CELL, phase)}{WRITER}{node}.log.gz"
        self.s3.put_object(Bucket=BUCKET, Key=key, Body=gzip.compress(text.encode()))

    def lose(self, node: str) -> None:
        """The machine dies; nobody asked Auto Scaling."""
        self.ec2.terminate_instances(InstanceIds=[node])

    def fail_status_check(self, node: str) -> None:
        """EC2's status check fails once. The mark stays, as on AWS; without its health checks a group sets none."""
        for group in self.groups().values():
            checks = "HealthCheck" not in {one["ProcessName"] for one in group["SuspendedProcesses"]}
            if checks and node in {one["InstanceId"] for one in group["Instances"]}:
                self.autoscaling.set_instance_health(InstanceId=node, HealthStatus="Unhealthy")

    def drop(self) -> None:
        """What teardown does, as far as another launch needs it; moto lists no more than 15 templates."""
        for name in self.groups():
            self.account.drop_group(name)
        for name in self.templates():
            self.ec2.delete_launch_template(LaunchTemplateName=name)

    # What is there

    def cell(self) -> Cell:
        return self.runs.cells.get(self.run, CELL)

    def put(self, key: str, document: Any) -> None:
        self.s3.put_object(Bucket=BUCKET, Key=key, Body=encoded(document))

    def get(self, key: str) -> Any:
        return json.loads(self.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read())

    def objects(self) -> list[str]:
        return [o["Key"] for o in self.s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])]

    def barrier(self, phase: str) -> Any:
        return self.get(names.barrier_key(self.run, CELL, phase))

    def text(self, key: str) -> str:
        return gzip.decompress(self.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()).decode()

    def groups(self) -> dict[str, Any]:
        """Auto Scaling groups by their names."""
        pages = self.autoscaling.get_paginator("describe_auto_scaling_groups").paginate()
        return {g["AutoScalingGroupName"]: g for page in pages for g in page["AutoScalingGroups"]}

    def templates(self) -> dict[str, str]:
        """Ids of launch templates by their names, the account's own aside."""
        pages = self.ec2.get_paginator("describe_launch_templates").paginate()
        templates = {t["LaunchTemplateName"]: t["LaunchTemplateId"] for page in pages for t in page["LaunchTemplates"]}
        return {name: template for name, template in templates.items() if name != "nodes"}

    def template_data(self, name: str) -> Any:
        versions = self.ec2.describe_launch_template_versions(LaunchTemplateName=name, Versions=["1"])
        return versions["LaunchTemplateVersions"][0]["LaunchTemplateData"]

    def security_groups(self) -> list[Any]:
        """Those that are not a network's own."""
        return [g for g in self.ec2.describe_security_groups()["SecurityGroups"] if g["GroupName"] != "default"]


def deploy_benchmarks(account: Account, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    """Adds to an account what the half of the stack that runs benchmarks makes."""
    vpc, subnets, images = once("deploy benchmarks", lambda: _create(account))
    agent = tmp_path / "agent.pyz"
    agent.write_bytes(AGENT)
    environment = {
        "TROOP_RUNS_TABLE": "Runs",
        "TROOP_RESULTS_BUCKET": BUCKET,
        "TROOP_NETWORK_VPC": vpc,
        "TROOP_NETWORK_IS_OWN": "true",
        "TROOP_NETWORK_SUBNETS": ",".join(subnets),
        "TROOP_NODE_PROFILE": PROFILE,
        "TROOP_NODE_ROLE_ID": ROLE_ID,
        "TROOP_AGENT_FILE": str(agent),
        "TROOP_REQUEST_FUNCTION": "request",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    bench = Bench(account, images=images)
    real = BaseClient._make_api_call  # type: ignore[attr-defined]

    def call(self: Any, operation: str, parameters: dict[str, Any]) -> Any:
        name = parameters.get("AutoScalingGroupName")
        if operation == "CreateAutoScalingGroup" and name in bench.groups():  # moto would put another in its place
            raise ClientError({"Error": {"Code": "AlreadyExists", "Message": f"{name} exists"}}, operation)
        if operation == "DescribeVpcEndpointServices":  # moto's filter fails
            return {"ServiceDetails": [ENDPOINT_SERVICE]}
        if operation != "GetParameter":  # moto knows the parameters of AWS, but not the images they name
            return real(self, operation, parameters)
        prefix, _, architecture = parameters["Name"].rpartition("-")
        assert prefix == "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default"
        return {"Parameter": {"Value": bench.images[architecture]}}

    monkeypatch.setattr(BaseClient, "_make_api_call", call)
    calls_are_usual()
    return bench


def _create(account: Account) -> tuple[str, list[str], dict[str, str]]:
    """The network, its subnets, and images by architecture."""
    ec2 = client("ec2")
    create_table(account.dynamodb, RUNS)
    where = {"LocationConstraint": "eu-central-1"}
    client("s3").create_bucket(Bucket=BUCKET, CreateBucketConfiguration=where)
    vpc = ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
    subnets = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.7.{16 * i}.0/20", AvailabilityZone=f"eu-central-1{zone}")
        for i, zone in enumerate("cab")
    ]
    images = {
        architecture: ec2.register_image(Name=f"al2023-{architecture}", RootDeviceName="/dev/xvda")["ImageId"]
        for architecture in ("arm64", "x86_64")
    }
    for role in (AUTO_SCALING, SPOT):
        path = f"/aws-service-role/{role.service}/"
        client("iam").create_role(Path=path, RoleName=role.name, AssumeRolePolicyDocument="{}")
    return vpc, [subnet["Subnet"]["SubnetId"] for subnet in subnets], images


def _group(instance: dict[str, Any]) -> str:
    return next((tag["Value"] for tag in instance["Tags"] if tag["Key"] == "aws:autoscaling:groupName"), "")


def _runs(instance: dict[str, Any]) -> bool:
    return bool(instance["State"]["Name"] == "running")
