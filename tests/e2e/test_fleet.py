"""A standing fleet by the command, as a person has it: up, larger, one node lost, smaller, down, and nothing left."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from local.simulated_nodes import SimulatedNodes
from tests.e2e.benches import LONG, NOTHING, SELDOM, Bench
from tests.e2e.conftest import eventually
from tests.e2e.roles import UNOBSERVED, allowed, is_of_queues, role_of
from troop.bench.definition import names

SOON = "fleets.workers.spot_timeout=30s"
PLAIN = """
name: plain
expires_after: 8h
fleets:
  workers: {count: 2, instance_type: c7g.large, purchase: spot, backup: on-demand}
setup: setup.sh
"""


def troop(bench: Bench, *words: str, code: int = 0) -> tuple[str, str]:
    """What `troop fleet` says, on stdout and on stderr."""
    done = bench.deployment.command("fleet", *words)
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    return done.stdout, done.stderr


def _role(detail: dict[str, Any]) -> dict[str, int]:
    (role,) = detail["fleet"]["roles"]
    return {key: value for key, value in role.items() if type(value) is int and value}


def _standing(count: int) -> dict[str, int]:
    return {"desired": count, "in_service": count, "ready": count, "spot": count}


def _eventually(probe: Callable[[], Any]) -> Any:
    return eventually(probe, LONG, SELDOM)


def test_a_fleet_from_up_to_down(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(PLAIN)
    (tmp_path / "setup.sh").write_text("#!/bin/sh\n")
    output, progress = troop(bench, "up", str(tmp_path), "--key", "a-standing-fleet", "--json", "--set", SOON)
    detail = json.loads(output)
    fleet = str(detail["fleet"]["fleet"])
    assert f"started: {fleet}" in progress
    assert "workers: 2 of 2 in service (2 on spot, 0 on demand), 2 ready" in progress
    assert (detail["fleet"]["status"], _role(detail)) == ("RUNNING", _standing(2))

    output, _ = troop(bench, "scale", fleet, "--count", "5")
    assert "workers: 5 of 5 in service (5 on spot, 0 on demand), 5 ready" in output
    detail = json.loads(troop(bench, "status", fleet, "--json")[0])
    assert _role(detail) == _standing(5)
    before = {node["id"] for node in detail["nodes"]}
    assert troop(bench, "scale", fleet, "--count", "100000", code=2)
    _, refused = troop(bench, "scale", fleet, "--count", "9999", code=10)
    assert "troop:max_nodes" in refused

    lost = min(before)
    bench.account.client("ec2").terminate_instances(InstanceIds=[lost])

    def is_replaced() -> set[str] | None:
        now = bench.fleet(fleet)
        ids = {node["id"] for node in now["nodes"]}
        return ids if _role(now) == _standing(5) and lost not in ids else None

    after = _eventually(is_replaced)
    assert len(after - before) == 1

    output, _ = troop(bench, "scale", fleet, "--count", "1")
    assert "is ready" in output
    _eventually(lambda: _role(bench.fleet(fleet)) == _standing(1))
    (left,) = bench.fleet(fleet)["nodes"]
    assert left["id"] in after

    def is_recorded() -> list[Any] | None:
        """The workflow's own look comes within two minutes, which pass faster here."""
        instances = [one for one in bench.fleet(fleet)["resources"] if one["kind"] == "instance"]
        there = [one["name"] for one in instances if one["gone_at"] is None]
        return instances if there == [left["id"]] and len(instances) == 6 else None

    _eventually(is_recorded)

    bench.account.make_scarce("c7g.large", left=0, market="spot")
    bench.account.interrupt(left["id"], 0)
    on_demand = {"desired": 1, "in_service": 1, "ready": 1, "on_demand": 1}
    _eventually(lambda: _role(bench.fleet(fleet)) == on_demand)
    bench.account.make_scarce("c7g.large", left=100, market="spot")
    # The node on demand stays for another five minutes, because spot must serve steadily.
    _eventually(lambda: _role(bench.fleet(fleet)).get("spot") == 1)
    output, _ = troop(bench, "status", fleet)
    assert "saved by spot: " in output
    ways = {"spot", "on-demand"}
    _eventually(lambda: {one["purchase"] for one in bench.fleet(fleet)["bought"]} == ways)

    output, _ = troop(bench, "down", fleet)
    assert f"{fleet} STOPPED: stopped by " in output
    assert bench.left(fleet) == NOTHING
    detail = bench.fleet(fleet)
    assert [one for one in detail["resources"] if one["gone_at"] is None] == []
    (listed,) = json.loads(troop(bench, "list", "--json")[0])["fleets"]
    assert (listed["fleet"], listed["status"]) == (fleet, "STOPPED")


RANKED = """
name: ranked
expires_after: 1h
fleets:
  servers: {count: 3, instance_type: c7g.large, zones: 3}
setup: setup.sh
ranks: true
"""


def test_a_replacement_takes_over_the_rank_of_a_lost_node(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(RANKED)
    (tmp_path / "setup.sh").write_text("#!/bin/sh\n")
    fleet = str(json.loads(troop(bench, "up", str(tmp_path), "--json")[0])["fleet"]["fleet"])
    s3, bucket = bench.account.client("s3"), bench.deployment.outputs["ResultsBucket"]

    def read(key: str) -> bytes:
        body: bytes = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        return body

    def seats() -> dict[int, Any]:
        return {seat["rank"]: seat for seat in json.loads(read(names.roster_key(fleet, "c001")))["nodes"]}

    before = seats()
    assert sorted(before) == [0, 1, 2]
    assert len({seat["zone"] for seat in before.values()}) == 3
    lost = before[1]
    request = {"group": names.fleet_name(fleet, "c001", "servers"), "idempotency_key": "ranked"}
    refused = bench.deployment.view.api.request("POST", "terminations", body=request)
    assert (refused.status, refused.body["reason"]) == (409, "protected"), "chaos never touches Troop's own fleets"
    bench.account.client("ec2").terminate_instances(InstanceIds=[lost["id"]])
    after = _eventually(lambda: seats() if seats()[1]["id"] != lost["id"] else None)
    assert {rank: after[rank]["id"] for rank in (0, 2)} == {rank: before[rank]["id"] for rank in (0, 2)}
    assert (after[1]["predecessor"], after[1]["zone"]) == (lost["address"], lost["zone"])
    _eventually(lambda: _role(bench.fleet(fleet)).get("ready") == 3)
    troop(bench, "down", fleet)
    assert bench.left(fleet) == NOTHING


HUNDREDS = """
name: hundreds
expires_after: 2h
queue: {lease: 1m, tries: 2}
fleets:
  workers:
    count: 1
    instance_type: c7g.large
    purchase: spot
    backup: on-demand
    scale: {backlog_per_node: 2, min: 0, max: 500, idle_after: 1m}
"""
"""The most nodes for which the default limits have room, with those of the backup."""


def test_a_submit_grows_a_fleet_to_hundreds_of_nodes_and_work_ends_them(bench: Bench, tmp_path: Path) -> None:
    bench.account.make_scarce("c7g.large", left=1000, market="spot")
    (tmp_path / "fleet.yaml").write_text(HUNDREDS)
    (tmp_path / "tasks").write_text("".join(f"task {number}\n" for number in range(3000)))
    fleet = str(json.loads(troop(bench, "up", str(tmp_path), "--json")[0])["fleet"]["fleet"])
    _eventually(lambda: not _role(bench.fleet(fleet)) or None)
    sent = json.loads(troop(bench, "submit", fleet, str(tmp_path / "tasks"), "--key", "many", "--json")[0])
    assert (sent["sent"], sent["refused"], sent["submitted"]) == (3000, [], 3000)

    def grows() -> bool | None:
        detail = bench.fleet(fleet)
        assert detail["withheld"] == [], "the default limits have room for all nodes, and for those of the backup"
        return True if _role(detail).get("in_service") == 500 else None

    _eventually(grows)
    detail = _eventually(lambda: None if _role(bench.fleet(fleet)) else bench.fleet(fleet))
    troop(bench, "extend", fleet, "--for", "1h")
    work = {key: detail["work"][key] for key in ("submitted", "done", "waiting", "in_work", "dead")}
    assert work == {"submitted": 3000, "done": 3000, "waiting": 0, "in_work": 0, "dead": 0}
    assert detail["fleet"]["scaled_by"] == "scale"
    output, _ = troop(bench, "results", fleet, "-o", str(tmp_path / "results"))
    assert "3,000 results" in output
    results = {path.name: path.read_text() for path in (tmp_path / "results").iterdir()}
    assert results == {f"many-{number + 1:06}": f"task {number}" for number in range(3000)}
    troop(bench, "down", fleet)
    assert bench.left(fleet) == NOTHING
    detail = bench.fleet(fleet)
    assert [one for one in detail["resources"] if one["gone_at"] is None] == []
    assert len([one for one in detail["resources"] if one["kind"] == "instance"]) == 1 + 500


HEALED = """
name: healed
expires_after: 1h
fleets:
  workers:
    count: 2
    instance_type: c7g.large
    health: {port: 8080, every: 5s, grace: 0s}
    heal: {do: replace, at_most: 1}
"""


def test_a_node_whose_application_fails_is_replaced(bench: Bench, nodes: SimulatedNodes, tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(HEALED)
    detail = json.loads(troop(bench, "up", str(tmp_path), "--json")[0])
    fleet, (failing, well) = str(detail["fleet"]["fleet"]), sorted(node["id"] for node in detail["nodes"])
    nodes.kill(failing)

    def is_replaced() -> dict[str, Any] | None:
        now = bench.fleet(fleet)
        ids = {node["id"] for node in now["nodes"]}
        return now if _role(now).get("ready") == 2 and failing not in ids else None

    detail = _eventually(is_replaced)
    assert well in {node["id"] for node in detail["nodes"]}
    assert [(one["do"], one["node"]) for one in detail["repairs"]] == [("replace", failing)]
    troop(bench, "down", fleet)
    assert bench.left(fleet) == NOTHING


def test_its_roles_may_do_what_they_do_and_no_more(bench: Bench) -> None:
    """After the fleets above."""
    fleet_roles = {role: actions for role, actions in allowed(bench.deployment).items() if "FleetRole" in role}
    assert len(fleet_roles) == 2, "of the function and of the workflow"
    entries = [entry for entry in bench.account.decisions() if role_of(entry["caller"]) in fleet_roles]
    assert [entry for entry in entries if entry["decision"] != "Allow"] == []
    for role, actions in fleet_roles.items():
        used = {entry["action"].lower() for entry in entries if role_of(entry["caller"]) == role}
        assert {action for action in actions if action.lower() not in used} - UNOBSERVED == set(), role


ONLY_AGAIN = {"sqs:GetQueueUrl", "sqs:ListQueueTags"}
"""What a launch needs that finds the queues of an earlier one."""


def test_launch_and_teardown_use_their_permissions_for_queues(bench: Bench) -> None:
    """After the fleets above. Those of nodes are used by the workers of test_workers.py."""
    used = {(role_of(one["caller"]), one["action"].lower()) for one in bench.account.decisions()}
    idle = {
        (role, action)
        for role, actions in allowed(bench.deployment).items()
        for action in actions
        if is_of_queues(action) and (role, action.lower()) not in used and action not in ONLY_AGAIN
    }
    assert {one for one in idle if "LaunchRole" in one[0] or "TeardownRole" in one[0]} == set()
