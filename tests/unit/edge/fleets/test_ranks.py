"""Standing fleets with ranks: the roster in the bucket, from EC2's facts, and its changes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.edge.benches import CELL
from tests.unit.edge.standing import FILE, Stand
from troop.aws.bench.cell_store import CellStore
from troop.aws.bench.fleet_reader import FleetReader
from troop.aws.clients import client
from troop.bench import names
from troop.flows.bench.fleet import FleetView, standing_of
from troop.wiring.bench import cell_store, fleet_steps, runs

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


def test_a_node_that_ec2_omits_keeps_its_rank_and_one_that_has_ended_does_not(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    groups, nodes = fleet_steps().view.describe(run, standing_of(runs().get(run)))
    client("ec2").terminate_instances(InstanceIds=[before[1]])
    with monkeypatch.context() as patch:  # the group does not know it yet
        patch.setattr(FleetView, "describe", lambda *_: (groups, nodes))
        stand.keep(run)
        assert ranks(stand, run) == {0: before[0]}


def test_a_fleet_without_ranks_has_no_roster(stand: Stand) -> None:
    run = stand.ready()
    assert cell_store().find(names.roster_key(run, CELL)) is None


def test_of_two_checks_at_once_one_changes_the_roster(stand: Stand) -> None:
    """The other one was based on an earlier state, and the next check reads the newer one."""
    run = stand.launched(definition=RANKED)
    stand.keep(run)
    store: CellStore = cell_store()
    document, version = store.find_version(names.roster_key(run, CELL))
    assert store.replace(names.roster_key(run, CELL), {**document, "nodes": []}, version)
    assert not store.replace(names.roster_key(run, CELL), document, version)
    assert not store.replace(names.roster_key(run, CELL), document, "")
    assert roster(stand, run)["nodes"] == []
