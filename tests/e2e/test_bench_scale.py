"""Two fleets of several nodes in three zones: all phases, what they have measured, how little the workflow passes on.
What hundreds of nodes ask for is measured by perf/cell.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from cli.client.api import Answer
from tests.e2e.benches import BROKEN_AT_BOOT, INSTANCE_TYPE, LONG, Bench, assert_nothing_left
from tests.e2e.conftest import eventually

SERVERS, DRIVERS = 12, 3
MOST_BYTES = 2048
"""Of a workflow's state; 256 KiB are allowed, and hundreds of nodes must not come near that."""


@pytest.fixture(scope="module")
def detail(bench: Bench) -> dict[str, Any]:
    phases: list[dict[str, Any]] = [
        {"name": "prepare", "roles": ["servers", "drivers"], "script": "measure.sh", "timeout": "2m"},
        {
            "name": "load",
            "roles": ["drivers"],
            "script": "measure.sh",
            "start_together": True,
            "measured": "2s",
            "timeout": "2m",
        },
    ]
    fleets = {"servers": {"zones": 3}, "drivers": {}}
    return bench.ended(bench.start("scale", {"servers": SERVERS, "drivers": DRIVERS}, None, phases, fleets))


def test_two_fleets_go_through_all_phases(bench: Bench, detail: dict[str, Any]) -> None:
    assert_nothing_left(bench, detail["run"]["run"])
    assert (detail["run"]["status"], detail["run"]["nodes"]) == ("SUCCEEDED", SERVERS + DRIVERS), detail["run"]
    (cell,) = detail["cells"]
    steps = [step["phase"] for step in cell["steps"]]
    assert steps == ["launch", "boot", "prepare", "load", "collect", "teardown", "over"]
    (row,) = cell["results"]
    assert (row["phase"], row["role"], row["count"]) == ("load", "drivers", DRIVERS * 1000)
    kinds = [one["kind"] for one in detail["resources"]]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "security-group": 1,
        "launch-template": 2,
        "auto-scaling-group": 2,
        "instance": SERVERS + DRIVERS,
        "volume": SERVERS + DRIVERS,
    }


def test_who_is_where_has_ranks_that_go_round_the_zones(bench: Bench, detail: dict[str, Any]) -> None:
    nodes = json.loads(bench.objects(detail["run"]["run"], "roster.json")[""])["nodes"]
    servers = sorted((n for n in nodes if n["role"] == "servers"), key=lambda n: int(n["rank"]))
    assert [node["rank"] for node in servers] == list(range(SERVERS))
    zones = [node["zone"] for node in servers]
    assert len(set(zones)) == 3
    assert all(len(set(zones[at : at + 3])) == 3 for at in range(0, SERVERS, 3))
    assert {n["id"] for n in nodes} == {r["name"] for r in detail["resources"] if r["kind"] == "instance"}


def test_instances_need_not_be_processes_nor_secrets_random(
    bench: Bench, detail: dict[str, Any], fleets_secret: str
) -> None:
    assert bench.account.instances() == []
    nodes = json.loads(bench.objects(detail["run"]["run"], "roster.json")[""])["nodes"]
    networks = [ip_network(one["CidrBlock"]) for one in bench.account.client("ec2").describe_subnets()["Subnets"]]
    assert all(any(ip_address(node["address"]) in network for network in networks) for node in nodes)
    secrets = bench.account.client("secretsmanager")
    (salt,) = [one["ARN"] for one in secrets.list_secrets()["SecretList"] if "Salt" in one["Name"]]
    assert secrets.get_secret_value(SecretId=salt)["SecretString"] == fleets_secret


def test_payloads_of_the_workflow_are_small(bench: Bench, detail: dict[str, Any]) -> None:
    sizes = [
        len(str(details.get(name) or ""))
        for event in _events(bench, detail["run"]["run"])
        for key, details in event.items()
        if key.endswith("EventDetails")
        for name in ("input", "output")
    ]
    assert 0 < max(sizes) < MOST_BYTES


def _events(bench: Bench, run: str) -> Iterator[dict[str, Any]]:
    """The histories of the run's execution and of its cells'."""
    states, arn = bench.deployment.states, bench.execution(run)["executionArn"]
    (map_run,) = states.list_map_runs(executionArn=arn)["mapRuns"]
    children = states.list_executions(mapRunArn=map_run["mapRunArn"])["executions"]
    assert len(children) == 1
    for one in (arn, *(child["executionArn"] for child in children)):
        for page in states.get_paginator("get_execution_history").paginate(executionArn=one):
            yield from page["events"]


def test_cost_follows_from_the_nodes_that_ran(detail: dict[str, Any]) -> None:
    run, (cell,) = detail["run"], detail["cells"]
    assert 0 < run["estimate"]["expected"] < run["estimate"]["most"]
    hours = {item["what"]: item["quantity"] for item in run["cost"]["items"] if item["unit"] == "node-hour"}
    assert hours.keys() == {f"{role}, {INSTANCE_TYPE}, on-demand" for role in ("servers", "drivers")}
    least = {"servers": SERVERS, "drivers": DRIVERS}
    assert all(quantity >= least[item.split(",")[0]] * 60 / 3600 - 1e-5 for item, quantity in hours.items())
    assert run["cost"]["unknown"] == []
    assert 0 < cell["cost"]["amount"] == run["cost"]["amount"]


def test_a_run_beyond_its_budget_is_refused_and_starts_nothing(bench: Bench) -> None:
    definition = {
        "name": "dear",
        "expires_after": "1h",
        "budget": 0.01,
        "fleets": {"drivers": {"count": 40, "instance_type": INSTANCE_TYPE}},
        "phases": [{"name": "p", "roles": ["drivers"], "script": "p.sh", "timeout": "2m"}],
    }
    body = {"definition": definition, "files": {"p.sh": ""}}
    api = bench.deployment.view.api
    estimate = eventually(lambda: _answered(api.request("POST", "benchmarks/estimate", body=body)), LONG)
    assert (estimate.status, [one["where"] for one in estimate.body["problems"]]) == (200, ["budget"])
    refused = eventually(lambda: _answered(api.request("POST", "benchmarks", body={**body, "key": "dear"})), LONG)
    assert refused.status == 400
    assert "budget is 0.01: must be at least what it is expected to cost" in refused.body["message"]
    assert "dear" not in {run["name"] for run in api.get("benchmarks").body["runs"]}


SCARCE_IN_A_ZONE, REGION = "c7g.4xlarge", "us-east-1"
MANY = {"broken-servers": 288, "broken-drivers": 60}


def test_a_few_bad_nodes_of_hundreds_are_replaced(bench: Bench) -> None:
    """Almost every cell of this size has one: 3 of 348 do not come up, and what replaces them does."""
    fleets = {"broken-servers": {"zones": 3}}
    phases = [{"name": "prepare", "roles": list(MANY), "script": "measure.sh", "timeout": "2m"}]
    measure = {"name": "load", "roles": ["broken-drivers"], "script": "measure.sh", "measured": "2s", "timeout": "2m"}
    detail = bench.ended(bench.start("duds", MANY, None, [*phases, measure], fleets))
    run = detail["run"]["run"]
    assert_nothing_left(bench, run)
    assert detail["run"]["status"] == "SUCCEEDED", detail["run"]
    assert [cell["cell"] for cell in detail["cells"]] == ["c001"], "one attempt was enough"
    replaced = {name.removesuffix(".json") for name in bench.objects(run, "replaced/")}
    assert len(replaced) == sum(BROKEN_AT_BOOT[role] for role in MANY)
    nodes = {node["id"] for node in json.loads(bench.objects(run, "roster.json")[""])["nodes"]}
    assert len(nodes) == sum(MANY.values())
    assert not nodes & replaced
    assert nodes | replaced == {r["name"] for r in detail["resources"] if r["kind"] == "instance"}


def test_a_zone_without_capacity_ends_the_attempt_and_the_next_takes_others(bench: Bench) -> None:
    """Auto Scaling does not fill up the other zone, as the fleet would be uneven."""
    bench.account.make_scarce(SCARCE_IN_A_ZONE, 0, zone=f"{REGION}a")
    zones = {"instance_type": SCARCE_IN_A_ZONE, "zones": 2, "zone_names": [f"{REGION}{letter}" for letter in "abc"]}
    detail = bench.ended(bench.start("zone", {"drivers": 4}, fleets={"drivers": zones}, attempts=2))
    assert_nothing_left(bench, detail["run"]["run"])
    first, second = detail["cells"]
    assert (first["status"], second["status"], detail["run"]["status"]) == ("INVALID", "SUCCEEDED", "SUCCEEDED")
    assert f"capacity in the Availability Zone you requested ({REGION}a)" in first["reason"]
    assert f"the next attempt takes {SCARCE_IN_A_ZONE} in {REGION}b, {REGION}c" in first["reason"]
    launched = [(r["cell"], r["zone"][-1]) for r in detail["resources"] if r["kind"] == "instance"]
    assert sorted(launched) == [("c001", "b")] * 2 + [("c001-2", "b")] * 2 + [("c001-2", "c")] * 2


def _answered(answer: Answer) -> Answer | None:
    return answer if answer.status < 500 else None
