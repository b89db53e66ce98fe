"""Standing fleets that are asked for: what is on record, and what is refused before anything is there."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.unit.account.asking import ask, get
from tests.unit.account.standing import FILE, MACHINES, Stand
from troop.bench.definition import names
from troop.bench.definition.definition import from_document
from troop.bench.definition.living import Heal, Health, Queue, Scale
from troop.bench.flows.fleet_view import standing_of


def test_a_fleet_is_on_record_when_its_workflow_starts(stand: Stand) -> None:
    status, fleet = stand.ask_up(set={"fleets.workers.count": 3})
    assert status == 202
    assert (fleet["name"], fleet["status"], fleet["expires_at"]) == ("workers", "ADMITTED", "2026-11-21T06:46:00.000Z")
    run = fleet["fleet"]
    assert stand.started("fleet") == {run: {"run": run}}
    assert stand.started("benchmark") == {}
    assert fleet["execution"] == f"{MACHINES.replace('stateMachine', 'execution')}fleet:{run}"
    definition = from_document(stand.bench.get(names.definition_key(run)))
    assert definition.standing
    assert [(p.name, p.script, p.roles, p.timeout) for p in definition.phases] == [
        ("setup", "setup.sh", ("workers",), 600)
    ]
    assert fleet["ready_within"] == 600 + 600 + 300, "to boot, to set up, and to launch"
    document = stand.get_fleet(run)
    assert document["fleet"] == fleet
    assert (document["nodes"], document["resources"]) == ([], [])
    assert stand.ask_up(set={"fleets.workers.count": 3})[0] == 200, "the same key is the same fleet"
    assert stand.ask_up()[0] == 409


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"fleets": {"workers": {"count": 11, "instance_type": "c7g.large"}}}, "fleets", "at most 10 in all"),
    ({"fleets": {"workers": {"count": 1, "instance_type": "c7g.huge"}}}, "fleets.workers.instance_type", "that this"),
    ({"setup": "other.sh"}, "setup", "a file in the fleet's folder: setup.sh"),
    ({"expires_after": "15m"}, "expires_after", "at least 25m"),
    ({"expires_after": "169h"}, "expires_after", "a duration from 10m to 168h"),
    ({"phases": []}, "phases", "is not known: must be one of"),
    ({"artifacts": [{"name": "d", "source": "./d", "sha256": "0f" * 32}]}, "artifacts.0.sha256", "uploaded first"),
]


@pytest.mark.parametrize(("changes", "where", "words"), REFUSED, ids=[where for _, where, _ in REFUSED])
def test_bad_definition_is_refused_before_anything_is_created(
    stand: Stand, changes: dict[str, Any], where: str, words: str
) -> None:
    status, body = stand.ask_up({**FILE, **changes})
    assert status == 400
    assert [
        p["problem"] for p in body["problems"] if p["where"] == f"body.definition.{where}" and words in p["problem"]
    ]
    assert get("/fleets")["fleets"] == []


def test_nodes_store_results_only_where_the_operator_allows_it(stand: Stand) -> None:
    status, body = stand.ask_up({**FILE, "own_data": True})
    assert status == 400
    assert "the deployment's setting troop:own_data is false" in body["problems"][0]["problem"]


@pytest.mark.parametrize("settings", [{"own_data": True}], indirect=True)
def test_nodes_of_a_fleet_know_that_they_may_store_results(stand: Stand) -> None:
    run = stand.up(definition={**FILE, "own_data": True})
    assert stand.bench.get(names.definition_key(run))["own_data"] is True


WORKING: dict[str, Any] = {
    **FILE,
    "queue": True,
    "fleets": {
        "workers": {
            "count": 2,
            "instance_type": "c7g.large",
            "zones": 2,
            "health": {"port": 8080},
            "heal": {"after": 2},
            "scale": {"backlog_per_node": 20, "min": 0, "max": 50},
        }
    },
}


@pytest.mark.parametrize("settings", [{"queues": True}], indirect=True)
def test_a_fleet_with_a_queue_is_on_record_with_what_its_file_says(stand: Stand) -> None:
    standing = standing_of(stand.runs.get(stand.up(definition=WORKING)))
    assert standing.queue == Queue()
    assert standing.scales == {"workers": Scale(20, 0, 50)}
    assert (standing.heals, standing.healths) == ({"workers": Heal(2)}, {"workers": Health(8080)})
    assert standing.watched == {"workers"}


@pytest.mark.parametrize("settings", [{"queues": True}], indirect=True)
def test_the_estimate_of_a_queue_has_its_endpoint_and_says_how_far_it_grows(stand: Stand) -> None:
    files = {"setup.sh": base64.b64encode(b"#!/bin/sh\n").decode()}
    status, quote = ask("POST", "/fleets/estimate", {"definition": WORKING, "files": files})
    assert status == 200, quote
    (endpoint,) = [one for one in quote["cells"][0]["items"] if one["what"] == "endpoint of the queue"]
    assert (endpoint["quantity"], endpoint["unit"], endpoint["price"]) == (16, "zone-hour", 0.012), "8 h in 2 zones"
    (nodes,) = [one for one in quote["warnings"] if one.startswith("scale can demand")]
    assert "scale can demand 50 nodes in all, of which it gets at most 10: the deployment's setting" in nodes
    (money,) = [one for one in quote["warnings"] if one.startswith("with 50 nodes all the time")]
    assert "it would cost $3" in money
    assert [one for one in quote["warnings"] if "leave out the requests to SQS" in one]


@pytest.mark.parametrize("settings", [{"max_nodes": 600, "max_nodes_total": 700}], indirect=True)
def test_500_spot_nodes_with_their_backup_fit_the_default_limits(stand: Stand) -> None:
    status, fleet = stand.ask_up(FIVE_HUNDRED)
    assert status == 202, fleet
    assert stand.runs.reservations.read().nodes == {fleet["fleet"]: 600}


@pytest.mark.parametrize("settings", [{"max_nodes_total": 20, "max_run_cost": 100}], indirect=True)
def test_one_refusal_of_a_fleet_names_limits_of_nodes_money_and_queues(stand: Stand) -> None:
    status, body = stand.ask_up({**FIVE_HUNDRED, "queue": True, "own_data": True})
    assert status == 400
    for setting in ("max_nodes is 10", "max_nodes_total is 20", "max_run_cost is $100.00", "queues is", "own_data is"):
        assert f"troop:{setting}" in body["message"]
    assert "body.definition.queue" in [one["where"] for one in body["problems"]]


FIVE_HUNDRED: dict[str, Any] = {
    **FILE,
    "fleets": {
        "workers": {"count": 500, "instance_type": "c7g.large", "purchase": "spot", "backup": "on-demand"},
    },
}


def test_buckets_that_the_deployment_does_not_allow(stand: Stand) -> None:
    assert stand.ask_up({**FILE, "buckets": ["other"]})[0] == 403


def test_fleets_and_runs_of_benchmarks_have_separate_lists(stand: Stand) -> None:
    stand.bench.admit(key="a-benchmark")
    run, fleet = stand.bench.run, stand.up(key="a-fleet")
    assert [one["fleet"] for one in get("/fleets")["fleets"]] == [fleet]
    assert [one["run"] for one in get("/benchmarks")["runs"]] == [run]
    for method, path in [("GET", f"/benchmarks/{fleet}"), ("DELETE", f"/benchmarks/{fleet}")]:
        status, answer = ask(method, path)
        assert (status, answer["code"]) == (404, "no-such-run")
    for method in ("GET", "DELETE", "PATCH"):
        status, answer = ask(method, f"/fleets/{run}", {"count": 1} if method == "PATCH" else None)
        assert (status, answer["code"]) == (404, "no-such-fleet")
