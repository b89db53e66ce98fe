"""Acknowledges cdk-nag's findings in the part that runs benchmarks, with reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from constructs import IConstruct

from infra.admission_permissions import READ_REPORTS, READ_RESULTS
from infra.bench_permissions import (
    ARTIFACT_OBJECTS,
    DATA_OBJECTS,
    REGISTRATIONS,
    REPORTS,
    ROSTERS,
    RUN_OBJECTS,
    WATCHED,
    WORK_RESULTS,
    WRITTEN_BY_REPORT,
)
from infra.benchmarks import Benchmarks
from infra.functions import Functions
from infra.launch_permissions import IMAGES
from infra.node_permissions import WRITTEN_BY_NODES
from infra.roles import logical_id
from infra.scheduled_runs import SCHEDULE_OBJECTS
from troop.bench.admission.images import PUBLIC_PARAMETERS
from troop.bench.admission.snapshots import ALL
from troop.bench.definition.names import GROUPS, WRITTEN_BY_CELL

_ACCOUNT = "<AWS::Region>:<AWS::AccountId>"
_TELEMETRY = "Setting up the delivery of logs and writing X-Ray traces support no resource-level permissions."
_CREATED = (
    "Resources get their ids at run time. The condition allows their creation only with this deployment's tag, and "
    "their change or use only with that tag and a run's."
)
_REMOVED = (
    "A run's resources are known only at run time. The condition limits the role to resources with this "
    "deployment's tag and a run's."
)
_OBJECTS = "Keys contain the run, its cells and its nodes, known only at run time; the role is limited to the prefix."
_EXECUTIONS = "Executions get their names at run time; the role is limited to those of one machine."


def bench_acknowledgements(
    benchmarks: Benchmarks, functions: Functions, buckets: Sequence[str]
) -> Iterator[tuple[IConstruct, str, str]]:
    """Yields (construct, finding, reason) for each."""
    for role, findings, reason in _role_findings(benchmarks, functions):
        for finding in findings:
            if "*" in finding:  # a question mark is no finding
                yield role, f"IAM5[Resource::{finding}]", reason
    for bucket in buckets:
        yield (
            benchmarks.nodes.role,
            f"IAM5[Resource::arn:<AWS::Partition>:s3:::{bucket}/*]",
            "Benchmarks may read any object of the buckets that the settings allow, and write to none of them.",
        )
    for name in benchmarks.images:
        if name.endswith("*"):
            account = "" if name.startswith(PUBLIC_PARAMETERS) else "<AWS::AccountId>"
            for reader in ("api", "start"):
                yield (
                    functions.roles[reader],
                    f"IAM5[Resource::arn:<AWS::Partition>:ssm:<AWS::Region>:{account}:parameter{name}]",
                    "The settings allow all parameters with this beginning, and the role only reads them.",
                )
    if ALL in benchmarks.snapshots:
        yield (
            functions.roles["launch"],
            "IAM5[Resource::arn:<AWS::Partition>:ec2:<AWS::Region>::snapshot/*]",
            "The settings allow all snapshots of the account; a condition on their owner leaves out all others.",
        )
    yield (
        benchmarks.data.results,
        "S1",
        "The table of runs records who started each run, and the functions log every request. Access logs would "
        "need a bucket of their own, and cost as much as the many small objects that nodes write.",
    )
    if benchmarks.network.vpc:
        yield (
            benchmarks.network.vpc,
            "VPC7",
            "The network's only way out is to named buckets of S3, and it contains only nodes of benchmarks, for "
            "minutes at a time. Flow logs cost by the packet, exactly when a benchmark sends the most.",
        )


def _role_findings(benchmarks: Benchmarks, functions: Functions) -> Iterator[tuple[IConstruct, Sequence[str], str]]:
    results = f"<{logical_id(benchmarks.data.results)}.Arn>"
    runs, artifacts = f"{results}/{RUN_OBJECTS}", f"{results}/{ARTIFACT_OBJECTS}"
    benchmark_executions, teardown_executions, fleet_executions = (
        f"arn:<AWS::Partition>:states:{_ACCOUNT}:execution:<{logical_id(machine)}.Name>"
        for machine in (benchmarks.benchmark, benchmarks.teardown, benchmarks.fleet)
    )
    groups = f"arn:<AWS::Partition>:autoscaling:{_ACCOUNT}:autoScalingGroup:*:autoScalingGroupName/{GROUPS}"
    placement = f"arn:<AWS::Partition>:ec2:{_ACCOUNT}:placement-group/{GROUPS}"
    removed = [*_ec2("instance", "launch-template", "security-group", "volume"), groups, placement]

    registrations = f"{results}/{REGISTRATIONS}"
    launch, cell = functions.roles["launch"], functions.roles["cell"]
    yield launch, [*removed, *_ec2("network-interface")], _CREATED
    yield launch, [runs], _OBJECTS
    yield (
        launch,
        _ec2("security-group-rule"),
        "Rules get their ids at run time and carry no tags. Each belongs to a security group, to which the "
        "conditions apply.",
    )
    yield (
        launch,
        _ec2("spot-instances-request"),
        "A spot request has no id before its creation; the conditions apply to everything that it launches.",
    )
    yield (
        launch,
        ["arn:<AWS::Partition>:ec2:<AWS::Region>::image/*", f"arn:<AWS::Partition>:ssm:<AWS::Region>::{IMAGES}"],
        "AWS publishes the latest image of Amazon Linux for an architecture at run time; images belong to no account.",
    )
    yield cell, [*_ec2("instance"), groups], _REMOVED
    yield cell, [runs, *(f"{results}/{keys}" for keys in WRITTEN_BY_CELL)], _OBJECTS
    for name in ("teardown", "reaper"):
        yield functions.roles[name], [*removed, *_ec2("vpc-endpoint")], _REMOVED
    if benchmarks.queues:
        yield launch, _ec2("vpc-endpoint"), _CREATED
        yield benchmarks.nodes.role, [f"{results}/{WORK_RESULTS}"], _OBJECTS
    own = [f"{results}/{DATA_OBJECTS}"] if benchmarks.own_data else []
    if own:
        yield functions.roles["teardown"], own, _OBJECTS
    yield functions.roles["reaper"], [f"{benchmark_executions}:*", f"{fleet_executions}:*"], _EXECUTIONS
    yield functions.roles["report"], [runs, *(f"{results}/{keys}" for keys in WRITTEN_BY_REPORT)], _OBJECTS
    yield functions.roles["api"], [runs, artifacts, registrations], _OBJECTS
    yield functions.roles["api"], [f"{results}/{READ_RESULTS if benchmarks.queues else READ_REPORTS}"], _OBJECTS
    for name in ("api", "widgets"):
        yield functions.roles[name], [f"{results}/{keys}" for keys in WATCHED], _OBJECTS
    yield functions.roles["api"], [f"{benchmark_executions}:*", f"{fleet_executions}:*"], _EXECUTIONS
    requests = f"{results}/{SCHEDULE_OBJECTS}"
    yield functions.roles["api"], [requests], _OBJECTS
    yield functions.roles["start"], [runs, artifacts, requests], _OBJECTS
    yield (
        functions.roles["api"],
        [f"arn:<AWS::Partition>:scheduler:{_ACCOUNT}:schedule/<{logical_id(benchmarks.scheduled.group)}>/*"],
        "Callers name schedules at run time; the role is limited to those of one group.",
    )
    yield functions.roles["fleet"], [groups], _REMOVED
    yield functions.roles["fleet"], [registrations, f"{results}/{ROSTERS}", f"{results}/{REPORTS}"], _OBJECTS
    yield benchmarks.fleet_role, [f"{teardown_executions}:*"], _EXECUTIONS
    # cdk-nag shows variables of IAM like references of CloudFormation.
    written = [f"{results}/{keys.replace('${', '<').replace('}', '>')}" for keys in WRITTEN_BY_NODES]
    yield benchmarks.nodes.role, [runs, artifacts, *written, *own], _OBJECTS
    for role in benchmarks.roles:
        yield role, ["*"], _TELEMETRY
    yield benchmarks.benchmark_role, [runs], _OBJECTS
    yield benchmarks.benchmark_role, [f"{teardown_executions}:*"], _EXECUTIONS
    yield benchmarks.map_children, [f"{benchmark_executions}:*", f"{benchmark_executions}/*"], _EXECUTIONS


def _ec2(*kinds: str) -> list[str]:
    return [f"arn:<AWS::Partition>:ec2:{_ACCOUNT}:{kind}/*" for kind in kinds]
