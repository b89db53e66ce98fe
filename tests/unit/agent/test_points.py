"""A node in a phase with points: each one with its own barrier, parameters, folder and summary."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from tests.unit.agent.node import BUCKET, CELL, ID, ROLE, RUN, Node
from troop.bench.definition import names
from troop.measure import summary as summaries

SHOWS = """
import json, os
print(json.dumps({
    "parameters": json.load(open(os.environ["TROOP_PARAMETERS"])),
    "file": os.environ["TROOP_PARAMETERS"],
    **{name: os.environ["TROOP_" + name] for name in ("PHASE", "POINT", "RESULTS", "DATA")},
    "files": os.listdir(),
}))
open("mine", "w").close()
"""
STEPS = ("measure.1", "measure.2.between", "measure.2", "measure.3")
MEASURE: dict[str, Any] = {
    "name": "measure",
    "points": [{"threads": 8}, {"threads": 16}],
    "repeat": 2,
    "between": {"script": "reset.py", "roles": [ROLE], "timeout": 60},
}


def environment_of(node: Node, step: str) -> Any:
    return json.loads(gzip.decompress(node.output(step)))


def begin(node: Node, *phases: dict[str, Any], rank: int = 3) -> None:
    node.benchmark(*phases, files={"run.py": SHOWS, "reset.py": SHOWS})
    node.join(rank)


@pytest.mark.parametrize(
    ("own_data", "data"), [(True, f"s3://{BUCKET}/{names.data_prefix(RUN, CELL)}"), (False, ""), (None, "")]
)
def test_scripts_know_where_to_create_objects_only_if_the_file_asks(
    node: Node, own_data: bool | None, data: str
) -> None:
    more = {} if own_data is None else {"own_data": own_data}
    node.benchmark({"name": "last"}, files={"run.py": SHOWS}, **more)
    node.join(0)
    node.barrier("last")
    node.summary("last")
    assert environment_of(node, "last")["DATA"] == data


def test_node_executes_one_point_after_another_with_its_own_parameters(node: Node) -> None:
    begin(node, MEASURE, {"name": "last"})
    node.barrier("measure.1", point=1, parameters={"threads": 8}, measured_seconds=1)
    first = summaries.parse(node.summary("measure.1"))
    assert (first.phase, first.outcome, first.measured_seconds) == ("measure.1", "ok", 1.0)
    node.barrier("measure.2.between", point=2, parameters={"threads": 16}, script="reset.py")
    assert node.summary("measure.2.between")["outcome"] == "ok"
    node.barrier("measure.2", point=2, parameters={"threads": 16})
    assert node.summary("measure.2")["outcome"] == "ok"
    # A point that was chosen late: all that the node knows of it comes with its release.
    node.barrier("measure.3.between", point=3, parameters={"threads": 99}, script="reset.py")
    assert node.summary("measure.3.between")["outcome"] == "ok"
    node.barrier("measure.3", point=3, parameters={"threads": 99})
    assert node.summary("measure.3")["outcome"] == "ok"
    environments = {step: environment_of(node, step) for step in STEPS}
    assert {step: (one["PHASE"], one["POINT"], one["parameters"]["threads"]) for step, one in environments.items()} == {
        "measure.1": ("measure", "1", 8),
        "measure.2.between": ("measure", "2", 16),
        "measure.2": ("measure", "2", 16),
        "measure.3": ("measure", "3", 99),
    }
    assert all(one["parameters"]["keys"] == ["a", "b"] for one in environments.values()), "with those of the benchmark"
    assert [one["files"] for one in environments.values()] == [["results"]] * 4, "its folder is empty at first"
    assert (
        len({one["file"] for one in environments.values()})
        == len({one["RESULTS"] for one in environments.values()})
        == 4
    )
    assert json.loads((node.home / "points" / "measure.1.json").read_text())["threads"] == 8, "nothing changes it later"
    node.barrier("measure.4.between", "end")
    assert node.over() == 0


def test_a_phase_that_runs_once_has_the_parameters_of_the_benchmark(node: Node) -> None:
    begin(node, {"name": "measure", "points": [{"threads": 8}]}, {"name": "last"})
    node.barrier("measure.1", point=1, parameters={"threads": 8})
    assert node.summary("measure.1")["outcome"] == "ok"
    node.barrier("last")
    assert node.summary("last")["outcome"] == "ok"
    environments = environment_of(node, "last")
    assert (environments["POINT"], environments["parameters"]["threads"], environments["file"]) == (
        "",
        4,
        str(node.home / "parameters.json"),
    )
    assert node.over() == 0


def test_a_node_beyond_the_limit_of_a_point_waits_for_the_next(node: Node) -> None:
    begin(node, {"name": "measure", "points": [{"clients": 3}, {"clients": 4}]}, rank=3)
    node.barrier("measure.1", point=1, parameters={"clients": 3}, nodes={ROLE: 3})
    node.barrier("measure.2", point=2, parameters={"clients": 4}, nodes={ROLE: 4, "servers": 1})
    summary = summaries.parse(node.summary("measure.2"))
    assert (summary.outcome, summary.rank) == ("ok", 3)
    assert node.over() == 0
    assert not [key for key in node.account.objects if f"measure.1/{ID}" in key]
    assert not (node.home / "phases" / "measure.1").exists()
    assert "measure.1: takes no part" in node.console()
