"""Objects that scripts create to measure with: teardown deletes those of cells on record, and nobody else's."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.unit.account.account import calls, changing, refusing
from tests.unit.account.wired import forget
from tests.unit.bench.flows.removal.tables import OTHER, RUN
from tests.unit.bench.flows.removal.world import World
from troop.bench.aws import cell_data
from troop.bench.records.record import CellStatus, RunStatus
from troop.bench.removal.teardown import DATA_PASSES, QUIET
from troop.bench.wiring import removal
from troop.shared.aws.clients import client

BUCKET = "results-bucket"
FIRST, SECOND = f"data/{RUN}/c001/", f"data/{RUN}/c002/"
OTHERS = [
    f"data/{RUN}/c0011/0",
    f"data/{RUN}/c009/0",
    f"data/{RUN}0/c001/0",
    f"data/{OTHER}/c001/0",
    f"runs/{RUN}/c001/definition.json",
]
"""Of cells and runs that are not torn down, or that are on no record, and what the run has measured."""


@pytest.fixture
def filled(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A deployment that allows objects, with a run of two cells that both have some."""
    path = Path(os.environ["TROOP_DEPLOYMENT_FILE"])
    path.write_text(json.dumps({**json.loads(path.read_text()), "own_data": True}))
    monkeypatch.setenv("TROOP_RESULTS_BUCKET", BUCKET)
    forget()
    client("s3").create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    for key in (*(f"{prefix}{n}" for prefix in (FIRST, SECOND) for n in range(3)), *OTHERS):
        client("s3").put_object(Bucket=BUCKET, Key=key, Body=b"")
    world.admit(cells=2)
    return world


def stored(prefix: str = "") -> list[str]:
    answer = client("s3").list_objects_v2(Bucket=BUCKET, Prefix=prefix)
    return [one["Key"] for one in answer.get("Contents", ())]


def gone(world: World) -> list[bool]:
    return [cell.data_gone_at is not None for cell in world.runs.cells.get_all(RUN)]


def problems(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the function has logged of objects that it could not delete; at least one."""
    texts = [text for record in caplog.records for text in getattr(record, "undeleted", ())]
    assert texts
    return texts


def test_a_cells_teardown_deletes_its_objects_and_that_of_the_run_those_of_all(filled: World) -> None:
    assert filled.tear_down(cell="c001") == QUIET
    assert sorted(stored()) == sorted([*(f"{SECOND}{n}" for n in range(3)), *OTHERS])
    assert gone(filled) == [True, False]
    filled.tear_down(status="FAILED", reason="-")
    assert sorted(stored()) == sorted(OTHERS)
    assert gone(filled) == [True, True]


def test_data_of_a_standing_fleet_outlives_it(filled: World) -> None:
    filled.admit_fleet(OTHER)
    filled.tear_down(OTHER)
    assert stored(f"data/{OTHER}/c001/") == [f"data/{OTHER}/c001/0"]


def test_nothing_is_deleted_while_a_node_may_create_more(filled: World) -> None:
    filled.launch_by_the_rules()
    work = filled.step("remove", filled.step("close", {"run": RUN}))
    assert len(stored(FIRST)) == 3
    while not work["over"]:
        work = filled.step("remove", work)
    assert stored(FIRST) == []


def test_more_objects_than_one_pass_can_delete(filled: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_data, "_PAGE", 1)
    moment = iter(range(1000))
    data = cell_data.CellData(client("s3"), BUCKET, lambda: float(next(moment)))
    monkeypatch.setattr(cell_data, "SECONDS", 2.5)
    monkeypatch.setattr(removal, "CellData", lambda *_: data)
    removal.teardown.cache_clear()
    work = filled.step("remove", filled.step("close", {"run": RUN}))
    assert (work["quiet"], work["over"], len(stored(FIRST)), len(stored(SECOND))) == (0, False, 1, 3)
    assert filled.tear_down() > QUIET
    assert sorted(stored()) == sorted(OTHERS)


def test_deletions_without_end_do_not_keep_a_run_open(filled: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_data, "SECONDS", -1.0)
    assert filled.tear_down() == DATA_PASSES + QUIET
    assert filled.runs.get(RUN).status is RunStatus.FAILED
    assert gone(filled) == [False, False]


@pytest.mark.parametrize("operation", ["ListObjectsV2", "DeleteObjects"])
def test_a_refusal_does_not_keep_a_run_open(
    filled: World, monkeypatch: pytest.MonkeyPatch, operation: str, caplog: pytest.LogCaptureFixture
) -> None:
    with calls(monkeypatch, refusing(operation, "AccessDenied")):
        assert filled.tear_down() == QUIET
    assert gone(filled) == [False, False]
    assert all("AccessDenied" in text for text in problems(caplog))
    filled.tear_down()
    assert gone(filled) == [True, True]


def test_an_object_that_s3_keeps_is_a_problem_and_the_others_go(
    filled: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def keep(answer: Any) -> None:
        client("s3").put_object(Bucket=BUCKET, Key=f"{FIRST}0", Body=b"")
        answer |= {"Errors": [{"Key": f"{FIRST}0", "Code": "InternalError", "Message": "later"}]}

    with calls(monkeypatch, changing("DeleteObjects", keep)):
        assert filled.tear_down(cell="c001") == QUIET
    assert stored(FIRST) == [f"{FIRST}0"]
    assert gone(filled) == [False, False]
    assert problems(caplog) == ["cell c001: InternalError: later"] * 2


def test_a_deployment_without_objects_of_its_own_asks_nothing_of_s3(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.admit()
    with calls(monkeypatch) as names:
        world.tear_down(status="SUCCEEDED")
    assert "UpdateItem" in names
    assert not {"ListObjectsV2", "DeleteObjects"} & {*names}
    assert world.runs.cells.get(RUN, "c001").status is CellStatus.FAILED
