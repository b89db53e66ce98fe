"""Counts the AWS calls of one cell with hundreds of nodes on local AWS, and measures the workflow's share of its time.

    python -m perf.cell [--servers 288] [--drivers 60] [--wait-scale 1]

A separate deployment on local AWS runs one benchmark without processes: simulated nodes register, wait and write
their summaries at once. The remaining time is the workflow's: its tasks, and its waits between checks. Calls are
counted by kind as IAM sees them: a call that names many resources counts once for each. Histories and payloads cover
every execution of the run. Step Functions on AWS records more events than local AWS: about nine for a task with its
wait and its choice.
"""

from __future__ import annotations

import argparse
import base64
import itertools
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cli.client.signed_api import SignedApi
from local.launcher import LocalAccount
from local.settings import local_settings
from local.simulated_nodes import SimulatedNodes
from perf import say

EVENTS_A_TASK = 9
"""Events on AWS: five of a task, two of the choice after it, two of the wait before the next task."""
LIMIT_EVENTS, LIMIT_BYTES = 25_000, 256 << 10
LONGEST_SECONDS = 1800


@dataclass(frozen=True)
class Execution:
    """One execution of the run, with figures from its history.

    Attributes:
        tasks: the number of finished tasks.
        task_seconds: their total duration.
        payload: bytes of the largest input or output.
    """

    name: str
    tasks: int
    task_seconds: float
    payload: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=288)
    parser.add_argument("--drivers", type=int, default=60)
    parser.add_argument("--wait-scale", type=float, default=1, help="part of the workflow's waits that takes place")
    options = parser.parse_args()
    context = local_settings(datetime.now(UTC)) | {"troop:deployment": "Cell", "troop:leashed": True}
    with LocalAccount("perf-cell", processes=False, wait_scale=options.wait_scale, progress=say) as account:
        outputs = account.deploy(context)
        api = SignedApi(outputs["ApiUrl"], account.session(), account.exports["AWS_CA_BUNDLE"])
        account.forget_decisions()
        with SimulatedNodes(account, outputs["ResultsBucket"]):
            record = _run(api, _definition(options.servers, options.drivers))
        machines = [outputs[f"{name}StateMachineArn"] for name in ("Benchmark", "Teardown")]
        _report(record, list(_executions(account, machines)), account.decisions())


def _definition(servers: int, drivers: int) -> dict[str, Any]:
    """Returns a benchmark with servers in three zones and drivers in one, as for the scale-out of a database."""
    zones = min(3, servers)
    return {
        "name": "scale-out",
        "expires_after": "1h",
        "fleets": {
            "servers": {"count": servers, "instance_type": "m7g.large", "zones": zones},
            "drivers": {"count": drivers, "instance_type": "c7g.large"},
        },
        "phases": [
            {"name": "prepare", "roles": ["servers", "drivers"], "script": "do.sh", "timeout": "10m"},
            {
                "name": "measure",
                "roles": ["drivers"],
                "script": "do.sh",
                "start_together": True,
                "measured": "5s",
                "timeout": "10m",
            },
        ],
    }


def _run(api: SignedApi, definition: dict[str, Any]) -> dict[str, Any]:
    """Runs the benchmark to its end; returns its record."""
    files = {"do.sh": base64.b64encode(b"#!/bin/sh\n").decode()}
    request = {"definition": definition, "files": files, "key": f"perf-{time.time_ns()}"}
    answer = api.request("POST", "benchmarks", body=request)
    if answer.status != 202:
        sys.exit(f"the API did not admit the run: {answer.status} {answer.body}")
    until, seen = time.monotonic() + LONGEST_SECONDS, ""
    while time.monotonic() < until:
        record: dict[str, Any] = api.get(f"benchmarks/{answer.body['run']}").body
        steps = " ".join(step["phase"] for step in record["cells"][0]["steps"])
        if steps != seen:
            say(f"{record['run']['status']}: {steps}")
            seen = steps
        if record["run"]["ended_at"]:
            return record
        time.sleep(1)
    sys.exit(f"the run did not end within {LONGEST_SECONDS} s: {record['run']}")


def _executions(account: LocalAccount, machines: list[str]) -> Iterator[Execution]:
    states = account.client("stepfunctions")

    def listed(**filters: str) -> list[dict[str, Any]]:
        pages = states.get_paginator("list_executions").paginate(**filters)
        return [execution for page in pages for execution in page["executions"]]

    for machine in machines:
        for parent in listed(stateMachineArn=machine):
            yield _read(states, parent)
            for run in states.list_map_runs(executionArn=parent["executionArn"])["mapRuns"]:
                for child in listed(mapRunArn=run["mapRunArn"]):
                    yield _read(states, child)


def _read(states: Any, execution: dict[str, Any]) -> Execution:
    arn = execution["executionArn"]
    pages = states.get_paginator("get_execution_history").paginate(executionArn=arn)
    began, tasks, seconds, payload = None, 0, 0.0, 0
    for event in (event for page in pages for event in page["events"]):
        details: dict[str, Any] = next((value for key, value in event.items() if key.endswith("EventDetails")), {})
        payload = max([payload, *(len(str(details.get(key) or "").encode()) for key in ("input", "output"))])
        if event["type"] == "TaskScheduled":
            began = event["timestamp"]
        elif began and event["type"].startswith("Task"):
            tasks, seconds, began = tasks + 1, seconds + (event["timestamp"] - began).total_seconds(), None
    return Execution(arn.split(":", 6)[-1], tasks, seconds, payload)


def _report(record: dict[str, Any], executions: list[Execution], decisions: list[dict[str, Any]]) -> None:
    run, cell = record["run"], record["cells"][0]
    left = [one for one in record["resources"] if not one["gone_at"]]
    print(f"\n{run['nodes']} nodes: {run['status']}, {len(record['resources'])} resources, of which {len(left)} remain")
    moments = [(step["phase"], datetime.fromisoformat(step["at"])) for step in cell["steps"]]
    moments.append(("", datetime.fromisoformat(run["ended_at"])))
    for (name, at), (_, later) in itertools.pairwise(moments):
        print(f"  {name:<20}{(later - at).total_seconds():>8.1f} s")
    print(f"\n{'execution':<90}{'tasks':>6}{'in them':>10}{'events on AWS':>15}{'largest payload':>17}")
    for one in executions:
        events = one.tasks * EVENTS_A_TASK
        print(f"{one.name[-88:]:<90}{one.tasks:>6}{one.task_seconds:>8.1f} s{events:>15,}{one.payload:>15,} B")
    print(f"{'allowed':<90}{'':>16}{LIMIT_EVENTS:>15,}{LIMIT_BYTES:>15,} B")
    calls: Counter[str] = Counter()
    for entry in decisions:
        if entry["decision"] == "Allow" and "Role" in entry["caller"]:
            calls[entry["action"]] += entry["count"]
    print(f"\n{'call':<44}{'times':>8}")
    for action, count in calls.most_common():
        print(f"{action:<44}{count:>8,}")


if __name__ == "__main__":
    main()
