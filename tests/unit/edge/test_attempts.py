"""A cell that is run again, since a lost node has made what it measured worthless."""

from __future__ import annotations

from dataclasses import replace

from handlers import launch as launch_handler
from tests.unit.edge.account import CONTEXT
from tests.unit.edge.benches import BENCHMARK, CELL, Bench
from troop.bench.record import CellStatus, RunStatus
from troop.tags import CELL_TAG


def _invalid(bench: Bench, attempts: int = 3) -> Bench:
    """A cell in which a node was lost while it measured, and of which nothing is left."""
    bench.admit(replace(BENCHMARK, attempts=attempts), "again").measuring()
    bench.lose(bench.nodes("drivers")[0])
    assert bench.check(1) == "failed"
    bench.step("fail")
    bench.drop()
    bench.runs.cells.close(bench.run, CELL, bench.account.clock())
    return bench


def test_an_invalid_cell_is_run_again_and_only_the_last_attempt_counts(bench: Bench) -> None:
    _invalid(bench)
    first = bench.cell()
    for _ in range(2):  # its answer may have been lost
        answer = bench.step("again")
        assert (answer["state"], answer["cell"], answer["run"]) == ("again", "c001-2", bench.run)
    assert [c.cell for c in bench.runs.cells.of(bench.run)] == [CELL, "c001-2"]
    assert bench.open() == [{"run": bench.run, "cell": CELL}], "its child goes on with it"
    bench.runs.cells.change(bench.run, "c001-2", status=CellStatus.SUCCEEDED)
    assert bench.step("again", cell="c001-2")["state"] == "done"
    assert bench.step("settle")["status"] == "SUCCEEDED"
    assert bench.cell().reason == first.reason, "what became of the first one stays on record"


def test_another_attempt_is_launched_with_resources_of_its_own(bench: Bench) -> None:
    _invalid(bench).step("again")
    launch_handler.handler({"run": bench.run, "cell": "c001-2"}, CONTEXT)
    assert {tag["Value"] for g in bench.groups().values() for tag in g["Tags"] if tag["Key"] == CELL_TAG} == {"c001-2"}
    assert bench.runs.cells.get(bench.run, "c001-2").status is CellStatus.RUNNING


def test_there_is_no_attempt_too_many_nor_one_for_a_closed_run(bench: Bench) -> None:
    assert _invalid(bench, attempts=1).step("again")["state"] == "done"
    other = bench.again("other")
    _invalid(other)
    other.runs.close(other.run, RunStatus.STOPPED, "enough", bench.account.clock())
    assert other.step("again")["state"] == "done"
    assert [c.cell for c in other.runs.cells.of(other.run)] == [CELL]
