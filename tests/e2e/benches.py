"""Runs of benchmarks on nodes that are no processes, in an account whose workflows wait briefly; and what is left."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cli.client.api import UnreachableError
from local.launcher import LocalAccount
from local.simulated_nodes import Fault, FaultKind, SimulatedNodes
from tests.e2e.conftest import BUSY, Deployment, eventually
from troop.bench.definition import names
from troop.shared import moments
from troop.shared.tags import DEPLOYMENT_TAG, RUN_TAG

EXHAUSTIVE = bool(os.environ.get("TROOP_EXHAUSTIVE"))
"""Whether runs are stopped in every state and cut off at every call: minutes more, which ``make test-all`` takes."""

LONG = BUSY
"""Seconds after which something that is waited for will not happen any more, on the slowest of machines."""

SELDOM = 0.7
"""Seconds between two looks: many runs are under way at once, and each look is a call of the account."""

INSTANCE_TYPE = "c7g.large"

INTERFERENCE = Path(__file__).with_name("interference.py")
MACHINES = Path(__file__).parents[2] / "statemachines"
_FUNCTIONS = ("launch", "cell", "teardown", "report", "reaper")


FAULTS = {
    "mute": FaultKind.NEVER_REGISTERS,
    "failing": FaultKind.FAILS,
    "silent": FaultKind.SILENT,
    "dying": FaultKind.DIES,
}
"""Role -> what happens to the first node of it, in the phase ``measure`` where it is in one."""


TAKEN_ONCE, TAKEN_ALWAYS = "taken-once", "taken-always"
"""Roles of which spot takes the first node back while it measures: in the first attempt, or in each."""

BROKEN_AT_BOOT = {"broken-servers": 2, "broken-drivers": 1, "hopeless": 9}
"""Role -> how many of its nodes report an error in place of coming up; those that replace them are well."""

FLAKY = {"flaky": "c003"}
"""Role -> the cell in which the script fails on the first node of it, in the phase ``measure``; others are well."""


def simulated(account: LocalAccount, bucket: str) -> SimulatedNodes:
    """The nodes of all runs; those of the roles above with their faults."""
    faults = [Fault(kind, role, phase="measure") for role, kind in FAULTS.items()]
    faults += [Fault(FaultKind.FAILS, role, phase="measure", cell=cell) for role, cell in FLAKY.items()]
    faults += [Fault(FaultKind.CANNOT_START, role, nodes) for role, nodes in BROKEN_AT_BOOT.items()]
    for role, attempts in ((TAKEN_ONCE, 1), (TAKEN_ALWAYS, 9)):
        faults.append(Fault(FaultKind.INTERRUPTED, role, phase="measure", attempts=attempts))
    return SimulatedNodes(account, bucket, faults)


@dataclass(frozen=True)
class Bench:
    """A deployment that runs benchmarks, with :mod:`tests.e2e.interference` before its functions.

    Attributes:
        orders: where that finds its orders.
    """

    deployment: Deployment
    orders: Path
    account: LocalAccount = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "account", self.deployment.account)
        _interfere(self.deployment, self.orders)

    # Runs

    def start(
        self,
        key: str,
        nodes: Mapping[str, int] | None = None,
        orders: Mapping[str, Any] | None = None,
        phases: Iterable[Mapping[str, Any]] = (),
        fleets: Mapping[str, Mapping[str, Any]] | None = None,
        **more: Any,
    ) -> str:
        """A new run's id.

        Args:
            orders: what to do to it, see interference.py.
            key, nodes, phases, fleets, more: of :meth:`body`.
        """
        if orders:
            (self.orders / f"{suffix(key)}.json").write_text(json.dumps(orders))
        return str(self._ask("POST", "benchmarks", self.body(key, nodes, phases, fleets, **more))["run"])

    def body(
        self,
        key: str,
        nodes: Mapping[str, int] | None = None,
        phases: Iterable[Mapping[str, Any]] = (),
        fleets: Mapping[str, Mapping[str, Any]] | None = None,
        attempts: int = 1,
        **more: Any,
    ) -> dict[str, Any]:
        """The body of a request for a run.

        Args:
            key: under which it is asked for.
            nodes: how many of each role.
            phases: as in a benchmark's file; a measured one of all roles unless told otherwise.
            fleets: further keys of the fleets, by role.
            attempts: at a cell that a lost node makes INVALID.
            more: further keys of the file.
        """
        counts = nodes or {"drivers": 1}
        measure = {"name": "measure", "roles": list(counts), "script": "measure.sh", "measured": "1s", "timeout": "2m"}
        definition = {
            "name": "simulated",
            "expires_after": "1h",
            "fleets": {
                role: {"count": count, "instance_type": INSTANCE_TYPE, **(fleets or {}).get(role, {})}
                for role, count in counts.items()
            },
            "phases": list(phases) or [measure],
            "attempts": attempts,
            **more,
        }
        files = {"measure.sh": base64.b64encode(b"#!/bin/sh\n").decode()}
        return {"definition": definition, "files": files, "key": key}

    def stop(self, run: str) -> None:
        self._ask("DELETE", f"benchmarks/{run}")

    def detail(self, run: str) -> dict[str, Any]:
        """All that the API says of a run."""
        return self._ask("GET", f"benchmarks/{run}")

    def fleet(self, fleet: str) -> dict[str, Any]:
        """All that the API says of a fleet, which is what ``troop fleet status --json`` prints."""
        return self._ask("GET", f"fleets/{fleet}")

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """The API's answer; asked again, as all of it may be, where a busy machine was too slow to start it."""

        def ask() -> dict[str, Any] | None:
            try:
                answer = self.deployment.view.api.request(method, path, body=body)
            except UnreachableError:
                return None
            assert answer.status in (200, 202) or answer.status >= 500, answer
            return answer.body if answer.status < 500 else None

        document: dict[str, Any] = eventually(ask, LONG, SELDOM)
        return document

    def ended(self, run: str) -> dict[str, Any]:
        """What the API says of a run after its end, once nothing is at work on it any more. Rights to launch that its
        dead functions have held are over."""

        def probe() -> bool | None:
            self.forget_dead_launches(run)
            is_over = "ended_at" in self.item(run, "run") and self.execution(run)["status"] != "RUNNING"
            return True if is_over and not self._teardowns(run) else None

        eventually(probe, LONG, SELDOM)
        return self.detail(run)

    def execution(self, run: str) -> dict[str, Any]:
        """DescribeExecution's answer about the run's workflow."""
        machine = self.deployment.outputs["BenchmarkStateMachineArn"]
        description: dict[str, Any] = self.deployment.states.describe_execution(
            executionArn=f"{machine.replace(':stateMachine:', ':execution:')}:{run}"
        )
        return description

    def abort(self, run: str) -> None:
        self.deployment.states.stop_execution(executionArn=self.execution(run)["executionArn"])

    def abort_teardown(self, run: str) -> None:
        """Stops the teardown of the whole run that is under way."""
        (arn,) = [arn for arn, work in self._teardowns(run).items() if not work.get("cell")]
        self.deployment.states.stop_execution(executionArn=arn)

    def teardown_steps(self, run: str) -> int:
        """How many steps the longest of its teardowns that are under way has begun; 0 when there is none."""
        states, steps = self.deployment.states, [0]
        for arn in self._teardowns(run):
            events = states.get_execution_history(executionArn=arn)["events"]
            steps.append(sum(event["type"] == "TaskScheduled" for event in events))
        return max(steps)

    def _teardowns(self, run: str) -> dict[str, dict[str, Any]]:
        """The inputs of the teardowns of a run that are under way, by their executions' ARNs."""
        machine, states = self.deployment.outputs["TeardownStateMachineArn"], self.deployment.states
        going = states.list_executions(stateMachineArn=machine, statusFilter="RUNNING")["executions"]
        arns = [str(one["executionArn"]) for one in going]
        inputs = {arn: json.loads(states.describe_execution(executionArn=arn)["input"]) for arn in arns}
        return {arn: work for arn, work in inputs.items() if work["run"] == run}

    # Orders

    def cuts(self, folder: str, after: Iterable[str] = ()) -> dict[str, Any]:
        """Orders to cut functions off as often as the workflow bears. ``folder``: of those that share the places."""
        for part in ("seen", "cut"):
            (self.orders / folder / part).mkdir(parents=True, exist_ok=True)
        return {"cut": {"folder": folder, "after": list(after), "rows": _rows()}}

    def places(self, folder: str, part: str) -> set[str]:
        """Where functions came by ("seen") or were cut off ("cut")."""
        return {path.name for path in (self.orders / folder / part).iterdir()}

    def await_there(self, run: str) -> None:
        """Until a step has come to where its orders stop it."""
        there = self.orders / f"{run.rpartition('-')[2]}.there"
        eventually(lambda: there.exists() or None, LONG)  # costs nobody anything

    def let_go(self, run: str) -> None:
        (self.orders / f"{run.rpartition('-')[2]}.go").touch()

    # The record itself

    def item(self, run: str, item: str) -> dict[str, Any]:
        key = {"run": {"S": run}, "item": {"S": item}}
        answer = self.deployment.dynamodb.get_item(
            TableName=self.deployment.outputs["RunsTable"], Key=key, ConsistentRead=True
        )
        attributes: dict[str, Any] = answer.get("Item", {})
        return attributes

    def backdate(self, run: str, item: str, name: str, *, minutes: int = 60) -> None:
        """Sets a moment of the record to some time ago. ``name``: of the attribute, "phases.boot" of one in a map."""
        parts = name.split(".")
        self.deployment.dynamodb.update_item(
            TableName=self.deployment.outputs["RunsTable"],
            Key={"run": {"S": run}, "item": {"S": item}},
            UpdateExpression=f"SET {'.'.join(f'#n{i}' for i in range(len(parts)))} = :then",
            ExpressionAttributeNames={f"#n{i}": part for i, part in enumerate(parts)},
            ExpressionAttributeValues={":then": {"S": moments.iso(datetime.now(UTC) - timedelta(minutes=minutes))}},
        )

    def rewrite(self, run: str, part: str, **seconds: float) -> None:
        """Moves moments in one of the documents that the cell's steps read."""
        s3, bucket = self.account.client("s3"), self.deployment.outputs["ResultsBucket"]
        key = names.cell_prefix(run, names.cell_id(1)) + part
        document = json.load(s3.get_object(Bucket=bucket, Key=key)["Body"])
        document |= {name: document[name] + ahead for name, ahead in seconds.items()}
        s3.put_object(Bucket=bucket, Key=key, Body=json.dumps(document).encode())

    def forget_dead_launches(self, run: str) -> None:
        """A function that was killed while it launched has the right to for minutes; that time is not to be waited out.
        Once its cell has gone on, none of them lives: the step that has brought it there has given its own back.
        """
        if not (self.orders / f"{run.rpartition('-')[2]}.json").exists():
            return
        cell = self.item(run, f"cell#{names.cell_id(1)}")
        if cell.get("phase", {}).get("S", names.LAUNCH) == names.LAUNCH:
            return
        launches = self.deployment.dynamodb.query(
            TableName=self.deployment.outputs["RunsTable"],
            KeyConditionExpression="#run = :run AND begins_with(#item, :launch)",
            ExpressionAttributeNames={"#run": "run", "#item": "item"},
            ExpressionAttributeValues={":run": {"S": run}, ":launch": {"S": "launch#"}},
            ConsistentRead=True,
        )["Items"]
        for one in launches:
            if moments.parse(one["until"]["S"]) > datetime.now(UTC) - timedelta(minutes=30):
                self.backdate(run, one["item"]["S"], "until")

    # What there is

    def left(self, run: str) -> dict[str, list[str]]:
        """Whatever carries the run's tag and this deployment's, by kind, asked of EC2 and Auto Scaling themselves."""
        return left(self.account, {RUN_TAG: run, DEPLOYMENT_TAG: self.deployment.name})

    def objects(self, run: str, part: str, cell: str = names.cell_id(1)) -> dict[str, bytes]:
        """The objects of a cell of the run below a prefix, by what follows that."""
        s3, prefix = self.account.client("s3"), f"{names.cell_prefix(run, cell)}{part}"
        bucket = self.deployment.outputs["ResultsBucket"]
        keys = [one["Key"] for one in s3.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", [])]
        return {key.removeprefix(prefix): s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}


def states_of(machine: str) -> dict[str, dict[str, Any]]:
    """All states of a machine and of its maps' children, by name."""
    states_by_name: dict[str, dict[str, Any]] = {}

    def walk(states: Mapping[str, Any]) -> None:
        for name, state in states.items():
            states_by_name[name] = state
            walk(state.get("ItemProcessor", {}).get("States", {}))

    walk(json.loads((MACHINES / f"{machine}.asl.json").read_text(encoding="utf-8"))["States"])
    return states_by_name


def step_of(state: Mapping[str, Any]) -> str:
    """What the function does that a task calls, as interference.py knows it, of a cell."""
    payload = state["Parameters"]["Payload"]
    return str(payload.get("step", "launch" if "cell.$" in payload else "report"))


def _rows() -> dict[str, int]:
    """How often in a row each step may be cut off: so often the workflow tries it again."""
    rows: dict[str, int] = {}
    for machine, suffixes in {"benchmark": ("",), "teardown": ("", " run")}.items():
        for state in states_of(machine).values():
            if state["Type"] == "Task" and "Payload" in state["Parameters"]:
                attempts = next(r["MaxAttempts"] for r in state["Retry"] if "States.TaskFailed" in r["ErrorEquals"])
                rows |= {step_of(state) + suffix: attempts for suffix in suffixes}
    return rows


def suffix(key: str) -> str:
    """The last part of the id of a run that is asked for under a key."""
    return hashlib.sha256(key.encode()).hexdigest()[:8]


NOTHING: dict[str, list[str]] = {
    "groups": [],
    "instances": [],
    "templates": [],
    "security groups": [],
    "volumes": [],
    "interfaces": [],
    "placement groups": [],
    "endpoints": [],
    "queues": [],
}


def left(account: LocalAccount, tags: Mapping[str, str]) -> dict[str, list[str]]:
    """Ids of all that carries these tags, by kind; :data:`NOTHING` when there is nothing."""
    ec2, groups = account.client("ec2"), account.client("autoscaling")
    tagged = [{"Name": f"tag:{name}", "Values": [value]} for name, value in tags.items()]
    living = {"Name": "instance-state-name", "Values": ["pending", "running", "shutting-down", "stopping", "stopped"]}
    reservations = ec2.describe_instances(Filters=[*tagged, living])["Reservations"]
    scaling_groups = groups.describe_auto_scaling_groups(Filters=tagged)["AutoScalingGroups"]
    return {
        "groups": [one["AutoScalingGroupName"] for one in scaling_groups],
        "instances": [one["InstanceId"] for reservation in reservations for one in reservation["Instances"]],
        "templates": [o["LaunchTemplateId"] for o in ec2.describe_launch_templates(Filters=tagged)["LaunchTemplates"]],
        "security groups": [o["GroupId"] for o in ec2.describe_security_groups(Filters=tagged)["SecurityGroups"]],
        "volumes": [o["VolumeId"] for o in ec2.describe_volumes(Filters=tagged)["Volumes"]],
        "interfaces": [
            o["NetworkInterfaceId"] for o in ec2.describe_network_interfaces(Filters=tagged)["NetworkInterfaces"]
        ],
        "placement groups": [o["GroupName"] for o in ec2.describe_placement_groups(Filters=tagged)["PlacementGroups"]],
        "endpoints": [o["VpcEndpointId"] for o in ec2.describe_vpc_endpoints(Filters=tagged)["VpcEndpoints"]],
        "queues": [url for url in _queues(account) if tags.items() <= _queue_tags(account, url).items()],
    }


def _queues(account: LocalAccount) -> list[str]:
    pages = account.client("sqs").get_paginator("list_queues").paginate(QueueNamePrefix="troop-")
    return [url for page in pages for url in page.get("QueueUrls", [])]


def _queue_tags(account: LocalAccount, url: str) -> dict[str, str]:
    """The tags of a queue; none of one that has gone since it was listed."""
    sqs = account.client("sqs")
    try:
        tags: dict[str, str] = sqs.list_queue_tags(QueueUrl=url).get("Tags", {})
    except sqs.exceptions.QueueDoesNotExist:
        tags = {}
    return tags


def assert_nothing_left(bench: Bench, run: str) -> dict[str, Any]:
    """Neither in EC2 and Auto Scaling nor by the record; what the API says of the run."""
    detail = bench.detail(run)
    assert bench.left(run) == NOTHING
    assert detail["run"]["ended_at"] is not None
    assert [one for one in detail["resources"] if one["gone_at"] is None] == []
    assert {cell["phase"] for cell in detail["cells"]} == {names.OVER}
    return detail


def _interfere(deployment: Deployment, orders: Path) -> None:
    lambdas = deployment.account.client("lambda")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.writestr("python/interference.py", INTERFERENCE.read_text())
    layer = lambdas.publish_layer_version(LayerName="interference", Content={"ZipFile": archive.getvalue()})
    for function in _functions(deployment):
        variables = function["Environment"]["Variables"]
        lambdas.update_function_configuration(
            FunctionName=function["FunctionName"],
            Handler="interference.handler",
            Layers=[*(one["Arn"] for one in function.get("Layers", [])), layer["LayerVersionArn"]],
            Environment={
                "Variables": {**variables, "TROOP_TEST_HANDLER": function["Handler"], "TROOP_TEST_ORDERS": str(orders)}
            },
        )


def _functions(deployment: Deployment) -> list[dict[str, Any]]:
    pages = deployment.account.client("lambda").get_paginator("list_functions").paginate()
    functions = [one for page in pages for one in page["Functions"] if one["FunctionName"].startswith(deployment.name)]
    return [one for one in functions if one["Handler"] in {f"handlers.{name}.handler" for name in _FUNCTIONS}]
