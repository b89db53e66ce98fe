"""The record of runs: what is kept, who wins, and that nothing is launched for what is closed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.bench.flows.removal.tables import NOON, OTHER, RUN, a_cell, a_resource, a_run
from troop.bench.aws.run_items import cell_item, cell_of, run_item, run_of
from troop.bench.aws.run_rows import BadCursor
from troop.bench.aws.run_table import RunTable
from troop.bench.definition.definition import PointPlace
from troop.bench.definition.living import (
    RESTART,
    Announcement,
    Grade,
    Heal,
    Health,
    MergedCheck,
    Need,
    Queue,
    Repair,
    RoleDigest,
    Scale,
    WorkSample,
)
from troop.bench.definition.plan import Variant
from troop.bench.definition.standing import Standing
from troop.bench.money.costs import Cost
from troop.bench.records.record import CellStatus, Kind, RunStatus
from troop.shared import moments
from troop.shared.codec import DocumentError
from troop.shared.errors import MissingRunError, RunClosedError

LATER = NOON + timedelta(minutes=5)
LATEST = NOON + timedelta(minutes=10)
EXECUTION = "arn:aws:states:eu-central-1:123456789012:execution:benchmark:" + RUN


@pytest.fixture
def run_table(runs: RunTable) -> RunTable:
    assert runs.create(a_run(), [a_cell()])
    return runs


@pytest.mark.parametrize(
    ("item", "convert"), [(run_item(a_run()), run_of), (cell_item(a_cell()), cell_of)], ids=["run", "cell"]
)
def test_item_without_a_status_is_malformed(item: dict[str, Any], convert: Callable[[Any], Any]) -> None:
    del item["status"]
    with pytest.raises(DocumentError, match="status is missing"):
        convert(item)


def test_a_run_is_read_as_it_was_written(runs: RunTable) -> None:
    run = replace(
        a_run(), status=RunStatus.FAILED, execution=EXECUTION, outcome=RunStatus.FAILED, closed_at=LATER,
        ended_at=LATEST, reason="a node never booted",
    )  # fmt: skip
    cell = replace(
        a_cell(), status=CellStatus.FAILED, phase="boot", phases={"launch": NOON, "boot": LATER}, reason="no node",
        results=[{"role": "drivers", "count": 3, "p99_ms": 0.1, "errors": {}}], closed_at=LATER,
    )  # fmt: skip
    assert runs.create(run, [cell])
    assert runs.get(RUN) == run
    assert runs.cells.get(RUN, "c001") == cell
    assert list(runs.cells.get(RUN, "c001").phases) == ["launch", "boot"]


def test_a_fleet_at_work_is_read_as_it_was_written(runs: RunTable) -> None:
    check = MergedCheck("answer", Grade.FAIL, 2, ("i-1", "i-2"), 3.5, 1, "no answer", "look at its output")
    standing = Standing(
        {"workers": 2},
        queue=Queue(60, 3),
        scales={"workers": Scale(20, 0, 500)},
        heals={"workers": Heal(3, RESTART, "restart.sh", Decimal("0.05"))},
        healths={"workers": Health(8080)},
        watched=frozenset({"workers"}),
        submitted=10_000,
        digest={"workers": RoleDigest(1, 0, 2, 1, (check,))},
        work=WorkSample(LATER, 10_000, 20, 3, 1, 61),
        samples=(WorkSample(NOON, 0),),
        needs={"workers": (Need(5, LATER),)},
        withheld={"workers": "the limit"},
        repairs=(Repair("r1", "i-1", "workers", RESTART, LATER, 2, "answer failed 3 times"),),
        announced={"workers/answer": Announcement(Grade.FAIL, NOON, sent=True, ok_since=LATER)},
        drains={"i-2": LATEST},
    )
    run = replace(a_run(), standing=standing)
    assert runs.create(run, [a_cell()])
    assert runs.get(RUN) == run


def test_the_record_of_a_fleet_without_new_keys_stays_the_same() -> None:
    """Functions of the version before a deployment read it, too."""
    run = replace(a_run(), standing=Standing({"workers": 2}))
    assert set(run_item(run)) - set(run_item(a_run())) == {"desired", "seen"}


def test_a_run_is_created_once(run_table: RunTable) -> None:
    run_table.cells.change(RUN, "c001", status=CellStatus.RUNNING)
    assert not run_table.create(replace(a_run(), name="another"), [a_cell()])
    assert run_table.get(RUN).name == "s3-range-read"
    assert run_table.cells.get(RUN, "c001").status is CellStatus.RUNNING


@pytest.mark.parametrize("count", [0, 1, 99, 100, 250])
def test_a_run_has_all_its_cells_whatever_their_number(runs: RunTable, count: int) -> None:
    cells = [a_cell(cell=f"c{number:03d}") for number in range(1, count + 1)]
    assert runs.create(a_run(), cells)
    assert runs.cells.get_all(RUN) == cells
    assert not runs.create(a_run(), cells)


def test_cells_are_listed_with_or_without_their_figures(run_table: RunTable) -> None:
    """Two hundred cells may have 40 MB of figures, which a function of 256 MB must not read to end a run."""
    rows = [{"operation": "get", "count": 3}]
    whole = replace(
        a_cell(),
        status=CellStatus.SUCCEEDED, phase="over", phases={"boot": NOON, "over": LATER}, reason="because",
        results=rows, limits=rows, searches=rows, faults=rows, closed_at=LATER, attempt=2,
        variant=Variant(values={"parameters.threads": 4}), cost=Cost(Decimal("1.5")),
        point=PointPlace(1, 2, 1, {"threads": 4}), order=7, data_gone_at=LATER, requests={"s3_gets": 9},
            replaced_nodes=[{"id": "i-1", "role": "drivers", "reason": "no disk", "at": moments.iso(NOON)}],
    )  # fmt: skip
    assert {name for name, value in vars(whole).items() if value in (None, "", 0)} == set(), "all are compared"
    run_table.rows.client.put_item(TableName=run_table.rows.table, Item=cell_item(whole))
    assert run_table.cells.with_figures(RUN).items == (whole,)
    assert run_table.cells.get_all(RUN) == [replace(whole, results=None, limits=None, searches=None, faults=None)]


def test_missing_run_or_cell_is_an_error(run_table: RunTable) -> None:
    with pytest.raises(MissingRunError, match=OTHER):
        run_table.get(OTHER)
    with pytest.raises(MissingRunError, match="c002"):
        run_table.cells.get(RUN, "c002")
    for call in (
        lambda: run_table.set_running(OTHER, EXECUTION),
        lambda: run_table.launches.begin(OTHER, "c001", LATER),
        lambda: run_table.close(OTHER, RunStatus.FAILED, None, NOON),
        lambda: run_table.conclude(OTHER, NOON),
    ):
        with pytest.raises(MissingRunError, match=OTHER):
            call()
    for cell_call in (
        lambda: run_table.cells.change(RUN, "c002", phase="boot", at=NOON),
        lambda: run_table.cells.close(RUN, "c002", NOON),
        lambda: run_table.launches.begin(RUN, "c002", LATER),
    ):
        with pytest.raises(MissingRunError, match="c002"):
            cell_call()
    assert run_table.cells.get_all(RUN) == [a_cell()]
    assert run_table.launches.get_all(OTHER) == []


def test_first_of_several_closings_counts(run_table: RunTable) -> None:
    run_table.set_running(RUN, EXECUTION)
    first = run_table.close(RUN, RunStatus.STOPPED, "stopped by ann", LATER)
    assert first.status is RunStatus.STOPPING
    assert run_table.close(RUN, RunStatus.FAILED, "the execution was aborted", LATEST) == first == run_table.get(RUN)
    assert (first.closed_at, first.outcome, first.reason) == (LATER, RunStatus.STOPPED, "stopped by ann")
    ended = run_table.conclude(RUN, LATEST)
    assert (ended.status, ended.reason, ended.ended_at) == (RunStatus.STOPPED, "stopped by ann", LATEST)
    assert run_table.conclude(RUN, LATEST + timedelta(hours=1)) == ended


def test_a_run_that_succeeds_goes_on_until_it_has_ended(run_table: RunTable) -> None:
    run_table.set_running(RUN, EXECUTION)
    closed = run_table.close(RUN, RunStatus.SUCCEEDED, None, LATER)
    assert (closed.status, closed.execution, closed.reason) == (RunStatus.RUNNING, EXECUTION, None)
    assert run_table.conclude(RUN, LATEST).status is RunStatus.SUCCEEDED
    with pytest.raises(RunClosedError):
        run_table.set_running(RUN, EXECUTION)
    assert run_table.get(RUN).status is RunStatus.SUCCEEDED


def test_an_open_run_cannot_be_concluded(run_table: RunTable) -> None:
    with pytest.raises(ValueError, match="not closed"):
        run_table.conclude(RUN, NOON)
    assert run_table.get(RUN).ended_at is None


def test_runs_are_open_until_they_have_ended(run_table: RunTable) -> None:
    run_table.create(a_run(OTHER, NOON - timedelta(hours=1)), [a_cell(OTHER)])
    assert [run.run for run in run_table.open_runs().items] == [OTHER, RUN]
    run_table.close(RUN, RunStatus.FAILED, "why", LATER)
    assert [run.run for run in run_table.open_runs().items] == [OTHER, RUN]
    run_table.conclude(RUN, LATEST)
    assert [run.run for run in run_table.open_runs().items] == [OTHER]


def test_pages_are_newest_first_and_complete(runs: RunTable) -> None:
    names = [f"20361120-12000{i}-{i:08x}" for i in range(7)]
    for i, name in enumerate(names):
        runs.create(a_run(name, NOON + timedelta(seconds=i)), [a_cell(name)])
    ids, cursor = list[str](), None
    while True:
        page = runs.page(3, cursor)
        ids, cursor = [*ids, *(run.run for run in page.runs)], page.cursor
        assert len(page.runs) <= 3
        if cursor is None:
            break
    assert ids == names[::-1]
    with pytest.raises(BadCursor):
        runs.page(3, "nonsense")


def test_a_cell_that_has_come_to_its_end_keeps_what_it_came_to(run_table: RunTable) -> None:
    table = [{"role": "drivers", "p99_ms": 12.5}]
    assert run_table.cells.change(RUN, "c001", status=CellStatus.RUNNING, phase="boot", at=NOON)
    assert run_table.cells.change(RUN, "c001", status=CellStatus.SUCCEEDED, results=table)
    assert run_table.cells.change(RUN, "c001", status=CellStatus.SUCCEEDED, results=[]), "repeated: as good as done"
    assert not run_table.cells.change(RUN, "c001", status=CellStatus.FAILED, reason="late")
    assert not run_table.cells.change(RUN, "c001", reason="late")
    assert run_table.cells.change(RUN, "c001", phase="teardown", at=LATER), "it still goes on to its teardown"
    cell = run_table.cells.get(RUN, "c001")
    assert (cell.status, cell.reason, cell.results) == (CellStatus.SUCCEEDED, None, table)
    assert (cell.phase, cell.phases) == ("teardown", {"boot": NOON, "teardown": LATER})


def test_the_first_moment_of_a_phase_counts(run_table: RunTable) -> None:
    run_table.cells.change(RUN, "c001", phase="boot", at=NOON)
    run_table.cells.change(RUN, "c001", phase="boot", at=LATER)
    assert run_table.cells.get(RUN, "c001").phases == {"boot": NOON}


def test_whoever_launches_has_a_lease_until_he_gives_it_back(run_table: RunTable) -> None:
    one, two = (run_table.launches.begin(RUN, "c001", until) for until in (LATER, LATEST))
    assert sorted(run_table.launches.get_all(RUN), key=lambda launch: launch.until) == [one, two]
    run_table.launches.end(one)
    run_table.launches.end(one)
    assert run_table.launches.get_all(RUN) == [two], "a step that was late ends its own lease alone"
    run_table.launches.end(two)
    assert run_table.launches.get_all(RUN) == []


def _close_run(runs: RunTable) -> None:
    runs.close(RUN, RunStatus.STOPPED, "stopped", LATER)


def _close_cell(runs: RunTable) -> None:
    runs.cells.close(RUN, "c001", LATER)


@pytest.mark.parametrize("close", [_close_run, _close_cell])
def test_nothing_is_launched_for_what_is_closed(run_table: RunTable, close: Any) -> None:
    run_table.create(a_run(OTHER), [a_cell(OTHER)])
    run_table.launches.check_open(RUN, "c001")
    close(run_table)
    for call in (
        lambda: run_table.launches.check_open(RUN, "c001"),
        lambda: run_table.launches.begin(RUN, "c001", LATEST),
        lambda: run_table.resources.plan([a_resource("sg", Kind.SECURITY_GROUP)]),
        lambda: run_table.resources.created([a_resource("i-1")], LATEST),
    ):
        with pytest.raises(RunClosedError, match=RUN):
            call()
    assert run_table.launches.get_all(RUN) == []
    assert run_table.resources.get_all(RUN) == []
    run_table.launches.begin(OTHER, "c001", LATEST)  # another run's is its own


def test_a_closed_cell_closes_no_other(runs: RunTable) -> None:
    runs.create(a_run(cells=2), [a_cell(), a_cell(cell="c002")])
    runs.cells.close(RUN, "c001", LATER)
    runs.cells.close(RUN, "c001", LATEST)
    assert runs.cells.get(RUN, "c001").closed_at == LATER
    assert runs.launches.begin(RUN, "c002", LATEST).cell == "c002"


def test_resources_are_planned_created_gone_and_each_first_moment_counts(run_table: RunTable) -> None:
    group, instance = a_resource("troop-x-drivers", Kind.AUTO_SCALING_GROUP), a_resource("i-1")
    run_table.resources.plan([group])
    run_table.resources.plan([replace(group, planned_at=LATER)])
    run_table.resources.created([group, instance], LATER)
    run_table.resources.created([group], LATEST)
    assert run_table.resources.get_all(RUN) == [replace(group, created_at=LATER), replace(instance, created_at=LATER)]
    run_table.close(RUN, RunStatus.SUCCEEDED, None, LATER)
    run_table.resources.gone([group], LATER)
    run_table.resources.gone([group], LATEST)
    assert {r.gone_at for r in run_table.resources.get_all(RUN) if r.name == group.name} == {LATER}
    volume = a_resource("vol-1", Kind.VOLUME)
    run_table.resources.record_seen([volume, group], LATEST)
    stored = {r.name: r for r in run_table.resources.get_all(RUN)}
    assert stored["troop-x-drivers"] == replace(group, created_at=LATER), "seen again, so it is not gone"
    assert stored["vol-1"] == replace(volume, created_at=LATEST)


def test_many_resources_of_many_cells_are_written(runs: RunTable) -> None:
    cells = ["c001", "c002"]
    runs.create(a_run(cells=2), [a_cell(cell=cell) for cell in cells])
    many = [a_resource(f"i-{n:017x}", cell=cells[n % 2]) for n in range(210)]
    runs.resources.created(many, LATER)
    assert {r.name for r in runs.resources.get_all(RUN) if r.created_at == LATER} == {r.name for r in many}
    runs.resources.gone(many, LATEST)
    assert all(r.gone_at == LATEST for r in runs.resources.get_all(RUN))
    assert len(runs.resources.get_all(RUN)) == 210
