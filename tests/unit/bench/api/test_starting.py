"""Starting a run by the API: what is on record when its workflow starts, and one run for each key."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.account.account import calls, cut_at, cuts
from tests.unit.account.asking import BERT, get
from tests.unit.account.bench import CALLS, FILES, MACHINES, Half, changed, post
from troop.bench.definition.definition import from_document
from troop.bench.definition.plan import from_plan_document
from troop.bench.fleets import type_facts


def test_a_run_is_on_record_and_has_all_it_needs_when_its_workflow_starts(half: Half) -> None:
    status, run = post(caller=BERT, size="smoke", set={"parameters.threads": 8})
    assert status == 202, run
    assert (run["name"], run["status"], run["nodes"]) == ("reads", "ADMITTED", 1)
    assert run["requested_by"] == BERT
    assert run["at"] == "2026-11-20T22:46:00.000Z"
    assert run["expires_at"] == "2026-11-21T00:46:00.000Z"
    assert half.started() == {run["run"]: {"run": run["run"]}}
    assert run["execution"] == f"{MACHINES.replace('stateMachine', 'execution')}benchmark:{run['run']}"
    objects = half.objects()
    definition = from_document(json.loads(objects.pop(f"runs/{run['run']}/definition.json")))
    assert (definition.size, definition.nodes, definition.parameters["threads"]) == ("smoke", 1, 8)
    assert definition.files == ("ranges.csv", "read.py")
    plan = from_plan_document(json.loads(objects.pop(f"runs/{run['run']}/plan.json")))
    assert [(planned.cell, planned.benchmark) for planned in plan.cells] == [("c001", definition)]
    estimate = json.loads(objects.pop(f"runs/{run['run']}/estimate.json"))
    assert estimate["expected"] == run["estimate"]["expected"]
    types = type_facts.from_document(json.loads(objects.pop(f"runs/{run['run']}/instance-types.json")))
    assert set(types) == {fleet.instance_type for fleet in definition.fleets}
    assert all(facts.network_gbps and facts.ebs_iops for facts in types.values())
    assert objects == {f"runs/{run['run']}/files/{name}": content for name, content in FILES.items()}
    document = get(f"/benchmarks/{run['run']}")
    assert document["run"] == run
    assert run["size"] == "smoke"
    steps = ["boot", *(phase.name for phase in definition.phases), "teardown"]
    assert [step["step"] for step in document["timetable"]] == steps
    assert sum(step["seconds"] for step in document["timetable"]) == estimate["cells"][0]["seconds"]
    assert [(cell["cell"], cell["status"]) for cell in document["cells"]] == [("c001", "PENDING")]
    assert document["resources"] == []


def test_the_same_key_is_the_same_run(half: Half, monkeypatch: pytest.MonkeyPatch) -> None:
    _, first = post()
    half.account.clock.forward(minutes=1)
    with calls(monkeypatch) as operations:
        assert post() == (200, first)
    assert operations == ["GetItem", "GetItem", "StartExecution"]
    assert list(half.started()) == [first["run"]]
    _, second = post(key="k2")
    assert second["run"] != first["run"]


@pytest.mark.parametrize(
    "other", [{"definition": changed(name="other")}, {"size": "smoke"}, {"files": {**FILES, "read.py": b"else"}}]
)
def test_a_key_stands_for_one_request(half: Half, other: dict[str, Any]) -> None:
    _, first = post()
    status, body = post(**other)
    assert status == 409
    assert first["run"] in body["message"]
    assert list(half.started()) == [first["run"]]


@pytest.mark.parametrize(("number", "acted"), cuts(range(CALLS)))
def test_next_request_of_a_key_completes_an_interrupted_one(
    half: Half, monkeypatch: pytest.MonkeyPatch, number: int, acted: bool
) -> None:
    with calls(monkeypatch, cut_at(number, acted)) as operations:
        assert post()[0] == 500
    assert len(operations) == number + 1
    half.account.clock.forward(minutes=2)
    status, run = post()
    assert status in (200, 202)
    assert half.started() == {run["run"]: {"run": run["run"]}}
    assert [run.run for run in half.runs.page(10).runs] == [run["run"]]
    assert {key.split("/")[1] for key in half.objects()} == {run["run"]}


def test_a_request_costs_what_it_says(half: Half, monkeypatch: pytest.MonkeyPatch) -> None:
    with calls(monkeypatch) as operations:
        assert post()[0] == 202
    assert operations == [
        "GetItem",
        *("DescribeSubnets", "DescribeInstanceTypes", "DescribeInstanceTypeOfferings"),
        *("BatchGetItem", "GetServiceQuota", "GetItem"),  # the prices are kept; and the reservations of nodes
        *("UpdateItem", "GetItem"),
        *["PutObject"] * 6,
        *("GetItem", "TransactWriteItems"),
        "StartExecution",
    ]
    assert len(operations) == CALLS
