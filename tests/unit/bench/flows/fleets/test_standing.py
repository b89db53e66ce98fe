"""Fleets that stand: when they are ready, what is replaced, and what is told of nodes."""

from __future__ import annotations

import pytest

from tests.unit.account.asking import get
from tests.unit.account.standing import Stand
from troop.bench.api import response_size
from troop.bench.api.fleet_models import FleetDetailOut
from troop.bench.definition import names
from troop.bench.definition.standing import LONGEST_WAIT
from troop.bench.records.record import RunStatus
from troop.shared.aws.clients import client


def test_fleet_is_standing_once_all_nodes_are_ready(stand: Stand) -> None:
    run = stand.launched()
    assert stand.runs.get(run).status is RunStatus.RUNNING
    assert stand.step(run, "keep") == {
        "run": run, "cell": "c001", "state": "waiting", "wait_seconds": 5, "following": f"{run}-2",
        "status": "", "reason": "",
    }  # fmt: skip
    assert stand.roles(run) == {"workers": {"desired": 2, "in_service": 2, "on_demand": 2}}
    assert names.STANDING not in stand.bench.cell().phases
    stand.register(run)
    stand.account.clock.forward(minutes=1)
    assert stand.step(run, "keep")["wait_seconds"] == 20
    assert stand.bench.cell().phase == names.STANDING
    assert stand.roles(run) == {"workers": {"desired": 2, "in_service": 2, "ready": 2, "on_demand": 2}}
    assert {node["id"]: (node["place"], node["ready"]) for node in stand.get_fleet(run)["nodes"]} == dict.fromkeys(
        stand.nodes(run), ("in-service", True)
    )
    assert stand.on_record(run, gone=False) == set(stand.nodes(run))
    (listed,) = get("/fleets")["fleets"]
    assert (listed["roles"][0]["ready"], listed["seen_at"]) == (2, "2026-11-20T22:47:00.000Z")
    stand.account.clock.forward(hours=2)
    assert stand.get_fleet(run)["fleet"]["seen_at"] == "2026-11-21T00:47:00.000Z", "it was looked at just now"
    assert stand.step(run, "keep")["wait_seconds"] == LONGEST_WAIT


def test_lost_node_of_a_standing_fleet_is_replaced(stand: Stand) -> None:
    """Auto Scaling is left free to do so, unlike in a benchmark's fleets."""
    run = stand.ready()
    assert stand.group(run)["SuspendedProcesses"] == [], "a zone that has capacity again gets its nodes back"
    before = set(stand.nodes(run))
    lost = min(before)
    client("autoscaling").terminate_instance_in_auto_scaling_group(
        InstanceId=lost, ShouldDecrementDesiredCapacity=False
    )
    assert stand.keep(run) == "waiting"
    assert stand.on_record(run, gone=True) == {lost}
    assert stand.on_record(run, gone=False) == set(stand.nodes(run)) != before


def test_node_whose_setup_fails_is_reported_and_stays(stand: Stand) -> None:
    run = stand.launched()
    good, bad = sorted(stand.nodes(run))
    stand.bench.roles |= {good: "workers", bad: "workers"}
    stand.bench.register([good])
    stand.bench.cannot_start(bad, "setup.sh ended with exit code 3")
    assert stand.keep(run) == "waiting"
    assert stand.roles(run) == {"workers": {"desired": 2, "in_service": 2, "ready": 1, "failed": 1, "on_demand": 2}}
    problems = {node["id"]: node["problem"] for node in stand.get_fleet(run)["nodes"]}
    assert problems == {good: None, bad: "setup.sh ended with exit code 3"}


def test_large_answer_omits_nodes_and_resources_that_do_not_fit(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stand.launched()
    good, bad = sorted(stand.nodes(run))
    stand.bench.roles |= {good: "workers", bad: "workers"}
    stand.bench.register([good])
    stand.keep(run)
    whole = stand.get_fleet(run)
    assert (len(whole["nodes"]), whole["nodes_left_out"]) == (2, 0)
    assert whole["resources_created"] == whole["resources_left"] == len(whole["resources"]) > 3
    monkeypatch.setattr(response_size, "MOST_RESOURCES", 3)
    first = stand.get_fleet(run)
    assert first["resources"] == whole["resources"][:3]
    assert first["resources_created"] == whole["resources_created"]
    gone = whole["resources"][0]
    stand.runs.resources.gone(
        [r for r in stand.runs.resources.get_all(run) if r.name == gone["name"]], stand.account.clock()
    )
    later = stand.get_fleet(run)
    assert later["resources"] == whole["resources"][1:4], "what is gone can wait"
    assert later["resources_left"] == whole["resources_left"] - 1
    with_one = FleetDetailOut.model_validate({**later, "nodes": later["nodes"][:1]})
    monkeypatch.setattr(response_size, "LARGEST", response_size.size(with_one) + 20)
    short = stand.get_fleet(run)
    assert ([node["id"] for node in short["nodes"]], short["nodes_left_out"]) == ([bad], 1)


def test_answer_says_why_nodes_are_missing(stand: Stand) -> None:
    run = stand.ready()
    stand.refusals = ["You have requested more vCPU capacity than your current vCPU limit"]
    assert stand.get_fleet(run)["refusals"] == [], "none is missing"
    assert stand.scale(run, 5)[0] == 200
    assert stand.get_fleet(run)["refusals"] == [f"workers: {stand.refusals[0]}"]


def test_a_group_that_somebody_has_deleted_ends_the_fleet(stand: Stand) -> None:
    run = stand.ready()
    stand.account.drop_group(names.fleet_name(run, "c001", "workers"))
    assert stand.keep(run) == "waiting", "what was just made may not be seen yet"
    stand.account.clock.forward(minutes=1)
    assert stand.keep(run) == "done"
    settled = stand.step(run, "settle", error="", cause="")
    assert (settled["status"], settled["reason"]) == (
        "FAILED",
        "the Auto Scaling group of the fleet workers was deleted",
    )
