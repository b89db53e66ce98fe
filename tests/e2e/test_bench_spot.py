"""Fleets on spot: what does not come is launched on demand, and a cell that loses a node to it is run again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from tests.e2e.benches import LONG, TAKEN_ALWAYS, TAKEN_ONCE, Bench, assert_nothing_left
from tests.e2e.conftest import eventually
from troop.bench.definition import names
from troop.shared.tags import CELL_TAG, RUN_TAG

CELL = "c001"
SLOW, NEVER = "m7g.large", "m7g.2xlarge"
"""Instance types of which spot has one: it may have more later; it says that it will not."""

SPOT = {"purchase": "spot", "spot_timeout": "5m", "boot_timeout": "30m"}
RUNS: dict[str, tuple[Mapping[str, int], Mapping[str, Any], int]] = {
    "slow": ({"drivers": 3}, {"drivers": {**SPOT, "instance_type": SLOW}}, 1),
    "never": ({"drivers": 3, "servers": 1}, {"drivers": {**SPOT, "instance_type": NEVER}}, 1),
    "once": ({TAKEN_ONCE: 2}, {TAKEN_ONCE: SPOT}, 3),
    "always": ({TAKEN_ALWAYS: 2}, {TAKEN_ALWAYS: SPOT}, 3),
}
"""Nodes by role, further keys of their fleets, and attempts."""


@pytest.fixture(scope="module")
def run_of(bench: Bench) -> Iterator[Callable[[str], dict[str, Any]]]:
    """What the API tells of a run after its end; all are under way at once."""
    bench.account.make_scarce(SLOW, 1, market="spot")
    bench.account.make_scarce(NEVER, 1, "MaxSpotInstanceCountExceeded", "spot")
    with ThreadPoolExecutor(len(RUNS)) as pool:
        runs: dict[str, Future[dict[str, Any]]] = {name: pool.submit(_detail, bench, name) for name in RUNS}
        yield lambda name: runs[name].result()


def _detail(bench: Bench, name: str) -> dict[str, Any]:
    nodes, fleets, attempts = RUNS[name]
    run = bench.start(f"spot-{name}", nodes, fleets=fleets, attempts=attempts)
    if name == "slow":  # five minutes are not to be waited out
        cell = f"cell#{CELL}"
        eventually(lambda: bench.item(run, cell).get("phase", {}).get("S") == names.BOOT or None, LONG)
        bench.backdate(run, cell, "phases.boot", minutes=6)
    return bench.ended(run)


def _bought(bench: Bench, run: str, cell: str = CELL) -> dict[str, str]:
    """How each node on the roster was bought."""
    roster = json.loads(bench.objects(run, "roster.json", cell)[""])
    return {node["id"]: node["purchase"] for node in roster["nodes"]}


def _launched(bench: Bench, run: str, cell: str = CELL) -> set[str]:
    """Ids of all instances that a cell has ever had."""
    filters = [{"Name": f"tag:{RUN_TAG}", "Values": [run]}, {"Name": f"tag:{CELL_TAG}", "Values": [cell]}]
    reservations = bench.account.client("ec2").describe_instances(Filters=filters)["Reservations"]
    return {one["InstanceId"] for reservation in reservations for one in reservation["Instances"]}


@pytest.mark.parametrize("name", ["slow", "never"])
def test_nodes_that_spot_lacks_are_launched_on_demand(
    bench: Bench, run_of: Callable[[str], dict[str, Any]], name: str
) -> None:
    detail = run_of(name)
    run, nodes = detail["run"]["run"], sum(RUNS[name][0].values())
    assert (detail["run"]["status"], detail["run"]["reason"]) == ("SUCCEEDED", None)
    bought = _bought(bench, run)
    assert sorted(bought.values()) == ["on-demand"] * (nodes - 1) + ["spot"]
    assert _launched(bench, run) == bought.keys(), "not one node too many"
    groups = {one["name"] for one in detail["resources"] if one["kind"] == "auto-scaling-group"}
    assert names.backup_name(run, CELL, "drivers") in groups
    (phase,) = json.loads(bench.objects(run, "results.json")[""])["phases"]
    lines = {i: line for role in phase["roles"].values() for i, line in role["nodes"].items()}
    assert {i: line["purchase"] for i, line in lines.items()} == bought
    assert_nothing_left(bench, run)


@pytest.mark.parametrize(
    ("name", "statuses", "last"),
    [("once", ["INVALID", "SUCCEEDED"], "spot"), ("always", ["INVALID", "INVALID", "SUCCEEDED"], "on-demand")],
)
def test_a_cell_whose_node_spot_takes_back_is_run_again(
    bench: Bench, run_of: Callable[[str], dict[str, Any]], name: str, statuses: list[str], last: str
) -> None:
    detail = run_of(name)
    run = detail["run"]["run"]
    cells = [names.attempt_id(CELL, n + 1) for n in range(len(statuses))]
    assert [(cell["cell"], cell["status"]) for cell in detail["cells"]] == list(zip(cells, statuses, strict=True))
    assert (detail["run"]["status"], detail["run"]["reason"]) == ("SUCCEEDED", None)
    assert bench.execution(run)["status"] == "SUCCEEDED"
    assert detail["cells"][-1]["results"]
    for cell in detail["cells"][:-1]:
        (taken,) = [i for i in _bought(bench, run, cell["cell"]) if i in cell["reason"]]
        assert cell["reason"] == f"spot took {taken} back during the phase measure"
        assert set(_bought(bench, run, cell["cell"]).values()) == {"spot"}
        assert f"{taken}.json" in bench.objects(run, "interruptions/", cell["cell"])
    assert set(_bought(bench, run, cells[-1]).values()) == {last}
    assert_nothing_left(bench, run)
