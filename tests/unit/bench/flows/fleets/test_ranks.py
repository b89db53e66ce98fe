"""Standing fleets with ranks: the roster in the bucket, from EC2's facts, and its changes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.account.benches import CELL
from tests.unit.account.standing import FILE, Stand
from troop.bench.aws.cell_store import CellStore
from troop.bench.aws.fleet_reader import FleetReader
from troop.bench.definition import names
from troop.bench.flows.fleet_view import FleetView, standing_of
from troop.bench.wiring.fleet import fleet_steps
from troop.bench.wiring.store import cell_store, runs
from troop.shared.aws.clients import client

RANKED = {**FILE, "ranks": True}


def roster(stand: Stand, run: str) -> dict[str, Any]:
    document: dict[str, Any] = cell_store().read(names.roster_key(run, CELL))
    return document


def ranks(stand: Stand, run: str) -> dict[int, str]:
    return {seat["rank"]: seat["id"] for seat in roster(stand, run)["nodes"] if seat["is_present"]}


def test_nodes_have_ranks_and_their_replacements_take_them_over(stand: Stand) -> None:
    run = stand.launched(definition=RANKED)
    assert stand.step(run, "keep")["wait_seconds"] <= 60
    assert roster(stand, run)["complete"]
    before = ranks(stand, run)
    assert sorted(before) == [0, 1]
    assert set(before.values()) == set(stand.nodes(run))
    described = client("ec2").describe_instances(InstanceIds=[before[1]])["Reservations"][0]["Instances"][0]
    (seat,) = (one for one in roster(stand, run)["nodes"] if one["rank"] == 1)
    assert (seat["address"], seat["zone"]) == (
        described["PrivateIpAddress"],
        described["Placement"]["AvailabilityZone"],
    )
    client("autoscaling").terminate_instance_in_auto_scaling_group(
        InstanceId=before[1], ShouldDecrementDesiredCapacity=False
    )
    stand.keep(run)
    after = ranks(stand, run)
    assert after[0] == before[0]
    assert after[1] not in before.values()
    (now,) = (one for one in roster(stand, run)["nodes"] if one["rank"] == 1)
    assert now["predecessor"] == seat["address"]


def test_omitted_node_retains_its_rank_and_ended_node_does_not(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stand.launched(definition=RANKED)
    stand.keep(run)
    before = ranks(stand, run)
    described = FleetReader.described

    def omits(reader: FleetReader, run: str, cell: str) -> dict[str, Any]:
        return {node: facts for node, facts in described(reader, run, cell).items() if node != before[1]}

    with monkeypatch.context() as patch:
        patch.setattr(FleetReader, "described", omits)
        stand.keep(run)
        assert ranks(stand, run) == before
    reading = fleet_steps().view.read(runs().get(run), stand.account.clock())
    client("ec2").terminate_instances(InstanceIds=[before[1]])
    with monkeypatch.context() as patch:  # the group does not know it yet
        patch.setattr(FleetView, "read", lambda *_: reading)
        stand.keep(run)
        assert ranks(stand, run) == {0: before[0]}


def test_a_fleet_without_ranks_has_no_roster(stand: Stand) -> None:
    run = stand.ready()
    assert cell_store().find(names.roster_key(run, CELL)) is None


def test_only_one_of_two_concurrent_checks_changes_the_roster(stand: Stand) -> None:
    """The other one was based on an earlier state, and the next check reads the newer one."""
    run = stand.launched(definition=RANKED)
    stand.keep(run)
    store: CellStore = cell_store()
    document, version = store.find_version(names.roster_key(run, CELL))
    assert store.replace(names.roster_key(run, CELL), {**document, "nodes": []}, version)
    assert not store.replace(names.roster_key(run, CELL), document, version)
    assert not store.replace(names.roster_key(run, CELL), document, "")
    assert roster(stand, run)["nodes"] == []


def _with(**roles: bool | None) -> dict[str, Any]:
    one = {"count": 1, "instance_type": "c7g.large"}
    fleets = {role: one if may is None else {**one, "resizable": may} for role, may in roles.items()}
    return {**FILE, "fleets": fleets}


@pytest.mark.parametrize(
    ("definition", "fixed"),
    [
        (_with(servers=None, drivers=None), set()),
        (_with(servers=False, drivers=None), {"servers"}),
        ({**_with(servers=None, drivers=None), "ranks": True}, {"servers", "drivers"}),
        ({**_with(servers=None, drivers=True), "ranks": True}, {"servers"}),
        ({**_with(servers=True, drivers=True), "ranks": True}, set()),
    ],
)
def test_the_file_says_which_roles_may_change_their_size(
    stand: Stand, definition: dict[str, Any], fixed: set[str]
) -> None:
    """A ring of another size takes tokens of its own: servers that are full would lose what an empty one takes."""
    run = stand.launched(definition=definition)
    shown = {one["role"] for one in stand.get_fleet(run)["fleet"]["roles"] if not one["resizable"]}
    assert shown == fixed
    for role in ("servers", "drivers"):
        assert stand.scale(run, 1, role=role)[0] == 200, "it has this size"
        for count in (0, 2):
            status, body = stand.scale(run, count, role=role)
            assert status == (400 if role in fixed else 200)
            if role in fixed:
                assert [one["where"] for one in body["problems"]] == ["body.count"]
                assert f"count is {count}: must be 1: {role} keep their number" in body["message"]
    desired = standing_of(runs().get(run)).desired
    assert desired == {role: 1 if role in fixed else 2 for role in ("servers", "drivers")}


def test_a_fleet_with_ranks_of_an_earlier_version_keeps_its_sizes(stand: Stand) -> None:
    """Its record does not say which roles may change."""
    run = stand.launched(definition={**_with(servers=True, drivers=True), "ranks": True})
    key = {"run": {"S": run}, "item": {"S": "run"}}
    removal = {"UpdateExpression": "REMOVE #f", "ExpressionAttributeNames": {"#f": "fixed"}}
    client("dynamodb").update_item(TableName="Runs", Key=key, **removal)
    assert standing_of(runs().get(run)).fixed == {"servers", "drivers"}
    assert stand.scale(run, 2, role="servers")[0] == 400
