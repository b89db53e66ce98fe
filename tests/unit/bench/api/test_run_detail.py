"""What the API tells of runs: the list, page by page, and all that is on record of one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.unit.account.asking import ask, get
from tests.unit.account.bench import Half, post
from troop.bench.records.record import CellStatus, Kind, LeftBehind, Resource, RunStatus


def test_runs_are_listed_by_time_page_by_page(half: Half) -> None:
    runs = []
    for number in range(5):
        runs.append(post(key=f"k{number}")[1]["run"])
        half.account.clock.forward(minutes=1)
    first = get("/benchmarks", limit=2)
    second = get("/benchmarks", limit=2, cursor=first["cursor"])
    third = get("/benchmarks", limit=2, cursor=second["cursor"])
    listed = [run["run"] for page in (first, second, third) for run in page["runs"]]
    assert listed == runs[::-1]
    assert third["cursor"] is None


@pytest.mark.parametrize("cursor", ["x", "AAAAAAAAAAA", "é"])
def test_a_cursor_that_is_none(half: Half, cursor: str) -> None:
    assert ask("GET", "/benchmarks", cursor=cursor)[0] == 400


def test_detail_has_everything_on_record(half: Half) -> None:
    _, response = post()
    run, now = response["run"], half.account.clock.moment
    half.runs.set_running(run, response["execution"])
    resources = [
        Resource(run, "c001", kind, name, now) for kind, name in ((Kind.INSTANCE, "i-1"), (Kind.SECURITY_GROUP, "sg"))
    ]
    half.runs.resources.created(resources, now)
    half.runs.cells.change(run, "c001", phase="launch", at=now, status=CellStatus.RUNNING)
    half.runs.cells.change(run, "c001", phase="boot", at=now + timedelta(minutes=1))
    half.runs.cells.change(run, "c001", phase="measure", at=now + timedelta(minutes=2))
    half.runs.cells.change(run, "c001", status=CellStatus.SUCCEEDED, results=[{"role": "drivers", "p99_ms": 1.5}])
    half.runs.close(run, RunStatus.SUCCEEDED, None, now)
    half.runs.resources.gone(resources, now + timedelta(minutes=2))
    half.runs.conclude(run, now + timedelta(minutes=3))
    document = get(f"/benchmarks/{run}")
    assert (document["run"]["status"], document["run"]["ended_at"]) == ("SUCCEEDED", "2026-11-20T22:49:00.000Z")
    (cell,) = document["cells"]
    assert (cell["status"], cell["results"]) == ("SUCCEEDED", [{"role": "drivers", "p99_ms": 1.5}])
    assert [step["phase"] for step in cell["steps"]] == ["launch", "boot", "measure"]
    assert [(r["kind"], r["name"], r["gone_at"]) for r in document["resources"]] == [
        ("security-group", "sg", "2026-11-20T22:48:00.000Z"),
        ("instance", "i-1", "2026-11-20T22:48:00.000Z"),
    ]
    assert document["run"]["left_behind"] == []
    half.runs.leave_behind(half.runs.get(run), [LeftBehind(Kind.VOLUME, "vol-1", "carries troop:protected")])
    (left,) = get(f"/benchmarks/{run}")["run"]["left_behind"]
    assert left == {"kind": "volume", "name": "vol-1", "reason": "carries troop:protected"}


@pytest.mark.parametrize("run", ["20261120-224600-00000000", "nonsense", "artifacts"])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_run_that_there_is_not(half: Half, method: str, run: str) -> None:
    status, body = ask(method, f"/benchmarks/{run}")
    assert status == 404
    assert "GET /benchmarks lists" in body["message"]
