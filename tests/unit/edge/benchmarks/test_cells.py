"""Runs of many cells: what they are admitted by, what is told of them, and that none gets into the way of another."""

from __future__ import annotations

import copy
import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.edge.asking import ask, get
from tests.unit.edge.bench import FILE, Half, post, problems
from tests.unit.edge.benches import AGENT, BENCHMARK, BUCKET, Bench
from troop.api import fitting
from troop.aws.bench import cell_store
from troop.aws.bench.cell_store import PUTS, CellStore, Listed
from troop.bench import names
from troop.bench.plan import Plan, PlannedCell, Variant, from_plan_document, to_plan_document
from troop.bench.record import Cell, CellStatus, Kind, Resource, Run, RunStatus


@pytest.fixture
def zones() -> list[str]:
    return ["eu-central-1a"]


def scaled(*counts: int, **more: Any) -> dict[str, Any]:
    """The file with a scale step for each of these numbers of nodes, and other keys."""
    scale = {f"n{count}": {"fleets.drivers.count": count} for count in counts}
    return copy.deepcopy(FILE) | {"expires_after": "168h", "sizes": {}, "scale": scale} | more


# Asking for them


def test_a_run_has_all_its_cells_on_record_when_it_starts(half: Half) -> None:
    status, run = post(definition=scaled(2, 3, matrix={"parameters.threads": [50, 200]}, repetitions=2, parallel=3))
    assert (status, run["cells"], run["nodes"]) == (202, 8, 9)
    plan = from_plan_document(json.loads(half.objects()[f"runs/{run['run']}/plan.json"]))
    assert (plan.parallel, [cell.benchmark.nodes for cell in plan.cells]) == (3, [2] * 4 + [3] * 4)
    told = get(f"/benchmarks/{run['run']}")["cells"]
    assert [(cell["cell"], cell["status"], cell["attempt"]) for cell in told] == [
        (f"c{n:03d}", "PENDING", 1) for n in range(1, 9)
    ]
    assert (told[3]["label"], told[7]["label"]) == ("n2, threads=200, #2", "n3, threads=200, #2")
    assert told[7]["variant"] == {"scale": "n3", "values": {"parameters.threads": 200}, "repetition": 2}


def test_a_key_stands_for_the_same_cells(half: Half) -> None:
    assert post(definition=scaled(2, 3))[0] == 202
    assert post(definition=scaled(2, 3))[0] == 200
    assert post(definition=scaled(2, 4))[0] == 409
    assert post(definition=scaled(2, 3, parallel=2))[0] == 409


def test_the_limit_of_nodes_is_for_those_there_are_at_a_time(half: Half) -> None:
    assert post(definition=scaled(4, 5, repetitions=2, parallel=2))[0] == 202
    found = problems(definition=scaled(4, 5, repetitions=2, parallel=3), key="k2")
    assert (
        "is 3, which brings up to 14 nodes at a time: must be less, for at most 10 in all"
        in found["body.definition.parallel"]
    )
    found = problems(definition=scaled(4, 11), key="k2")
    assert "have 11 nodes, with n11: must be at most 10" in found["body.definition.fleets"]


@pytest.mark.parametrize(
    ("more", "where"),
    [
        (
            {"matrix": {"fleets.drivers.instance_type": ["c7g.large", "c7g.huge"]}},
            "matrix.fleets.drivers.instance_type",
        ),
        (
            {"scale": {"a": {}, "b": {"fleets.drivers.instance_type": "c7g.huge"}}},
            "scale.b.fleets.drivers.instance_type",
        ),
        (
            {"artifacts": [{"name": "d", "source": "./d", "sha256": "0f" * 32}], "repetitions": 2},
            "artifacts.0.sha256",
        ),
    ],
)
def test_what_is_not_to_be_had_is_told_of_every_cell_and_where_it_comes_from(
    half: Half, more: dict[str, Any], where: str
) -> None:
    assert list(problems(definition=scaled(**more))) == [f"body.definition.{where}"]
    assert half.objects() == {}


def test_no_cell_reads_a_bucket_that_is_not_allowed(half: Half) -> None:
    definition = scaled(scale={"a": {"buckets": ["my-data"]}, "b": {"buckets": ["payroll"]}})
    status, body = post(definition=definition)
    assert (status, "may not read payroll" in body["message"]) == (403, True)


# Telling of them


def test_the_most_cells_are_all_on_record(half: Half) -> None:
    _, made = post(definition=scaled(2, repetitions=100, scale={"a": {}, "b": {"fleets.drivers.count": 1}}))
    assert made["cells"] == 200
    assert [cell.cell for cell in half.runs.cells.of(made["run"])] == [f"c{n:03d}" for n in range(1, 201)]


def test_what_does_not_fit_into_an_answer_is_told_cell_by_cell(half: Half, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "LARGEST", 15_000)
    monkeypatch.setattr(fitting, "MOST_RESOURCES", 4)
    _, made = post(definition=scaled(2, repetitions=4, parallel=4))
    run, now = made["run"], half.account.clock.moment
    rows = [{"role": "drivers", "operation": f"read-{n}", "p99_ms": 1.5} for n in range(100)]
    for cell in ("c001", "c002", "c004"):
        half.runs.cells.change(run, cell, phase="launch", at=now, status=CellStatus.SUCCEEDED, results=rows)
    instances = [Resource(run, "c002", Kind.INSTANCE, f"i-{n}", now) for n in range(6)]
    half.runs.resources.found(instances, now)
    half.runs.resources.gone(instances[:5], now + timedelta(minutes=1))

    status, told = ask("GET", f"/benchmarks/{run}")
    assert status == 200
    assert len(json.dumps(json.dumps(told))) < 15_000
    assert [len(cell["results"] or []) for cell in told["cells"]] == [100, 0, 0, 0]
    assert [cell["results_left_out"] for cell in told["cells"]] == [False, True, False, True]
    assert (told["resources_created"], told["resources_left"], len(told["resources"])) == (6, 1, 4)
    assert "i-5" in [one["name"] for one in told["resources"] if one["gone_at"] is None]

    alone = get(f"/benchmarks/{run}", cell="c004", resources="false")
    assert [(cell["cell"], len(cell["results"])) for cell in alone["cells"]] == [("c004", 100)]
    assert (alone["resources"], alone["resources_created"], alone["resources_left"]) == ([], None, None)
    assert get(f"/benchmarks/{run}", cell="c001")["resources_created"] == 0
    status, body = ask("GET", f"/benchmarks/{run}", cell="c201")
    assert (status, "has no cell 'c201'" in body["message"]) == (404, True)


@settings(max_examples=50)
@given(st.lists(st.none() | st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=9)), max_size=3)))
def test_what_is_left_out_is_no_more_than_must_be(results: list[Any]) -> None:
    room = 100
    fits = fitting.within(results, room)
    given = [one for one, fit in zip(results, fits, strict=True) if fit and one is not None]
    assert sum(len(json.dumps(json.dumps(one))) - 2 for one in given) <= room
    left = [one for one, fit in zip(results, fits, strict=True) if not fit]
    assert None not in left
    assert not left or len(json.dumps(json.dumps([*given, left[0]]))) > room


# Doing them


def two_cells(bench: Bench) -> Bench:
    """A run of two cells, at the same time, of which the second has one fleet less."""
    made = replace(bench, run=names.run_id(bench.account.clock(), "two"))
    small = replace(BENCHMARK, fleets=BENCHMARK.fleets[1:], phases=BENCHMARK.phases[1:])
    plan = Plan((PlannedCell("c001", Variant("n5"), BENCHMARK), PlannedCell("c002", Variant("n3"), small)), parallel=2)
    now = bench.account.clock()
    made.put(names.plan_key(made.run), to_plan_document(plan))
    run = Run(made.run, "ranges", now, now + timedelta(hours=2), "arn:me", 2, plan.nodes)
    assert made.runs.create(run, [Cell(made.run, one.cell, variant=one.variant) for one in plan.cells])
    return made


def test_so_many_go_at_a_time_as_was_asked_for(bench: Bench) -> None:
    made = two_cells(bench)
    answer = made.step("open", execution="arn:execution")
    assert answer["parallel"] == 2
    assert made.get(answer["key"]) == [{"run": made.run, "cell": "c001"}, {"run": made.run, "cell": "c002"}]
    assert made.runs.cells.get(made.run, "c002").variant == Variant("n3")


@pytest.mark.parametrize(
    ("ends", "status", "said"),
    [
        (("SUCCEEDED", "SUCCEEDED"), "SUCCEEDED", ""),
        (("SUCCEEDED", "FAILED"), "PARTIAL", "1 of 2 cells succeeded; c002 FAILED: why"),
        (("INVALID", "SUCCEEDED"), "PARTIAL", "1 of 2 cells succeeded; c001 INVALID: why"),
        (("FAILED", "FAILED"), "FAILED", "c001 FAILED: why; c002 FAILED: why"),
        (("SUCCEEDED", None), "PARTIAL", "1 of 2 cells succeeded; c002 FAILED: its workflow has ended without"),
    ],
)
def test_a_run_ends_as_its_cells_do(bench: Bench, ends: tuple[str | None, ...], status: str, said: str) -> None:
    made = two_cells(bench)
    for cell, end in zip(("c001", "c002"), ends, strict=True):
        if end:
            made.runs.cells.change(made.run, cell, status=CellStatus(end), reason=None if end == "SUCCEEDED" else "why")
    settled = made.step("settle", error="", cause="")
    assert (settled["status"], settled["reason"][: len(said)]) == (status, said)


def test_a_closed_cell_leaves_the_other_open(bench: Bench) -> None:
    made = two_cells(bench)
    made.runs.set_running(made.run, "arn:execution")
    made.runs.cells.close(made.run, "c001", bench.account.clock())
    made.runs.launches.check_open(made.run, "c002")
    assert made.runs.get(made.run).status is RunStatus.RUNNING


def test_cells_that_are_launched_at_once_have_one_image_and_one_agent(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither sees what the other is about to write: what was written first counts for both."""
    made = two_cells(bench)
    made.step("open", execution="arn:execution")
    first = {"id": bench.images["arm64"], "root_device": "/dev/first"}
    made.put(names.image_key(made.run, "arm64"), first)
    made.s3.put_object(Bucket=BUCKET, Key=names.agent_key(made.run), Body=AGENT + b" of before")
    monkeypatch.setattr(CellStore, "find", lambda self, key: None)
    made.launch()
    data = made.template_data(names.fleet_name(made.run, "c001", "servers"))
    assert data["BlockDeviceMappings"][0]["DeviceName"] == "/dev/first"
    assert made.get(names.image_key(made.run, "arm64")) == first
    assert made.s3.get_object(Bucket=BUCKET, Key=names.agent_key(made.run))["Body"].read() == AGENT + b" of before"


def test_an_object_is_put_once_whoever_else_does_it(bench: Bench) -> None:
    store = CellStore(bench.s3, BUCKET)
    assert [store.put_once("runs/x", body) for body in (b"1", b"2")] == [b"1", b"1"]

    class Busy:
        """S3 while another one is putting the same, so many times."""

        def __init__(self, times: int) -> None:
            self.times = times

        def put_object(self, **request: Any) -> None:
            self.times -= 1
            if self.times >= 0:
                raise ClientError({"Error": {"Code": "ConditionalRequestConflict", "Message": "m"}}, "PutObject")

    assert CellStore(Busy(PUTS - 1), BUCKET).put_once("runs/x", b"3") == b"3"
    with pytest.raises(ClientError, match="ConditionalRequestConflict"):
        CellStore(Busy(PUTS), BUCKET).put_once("runs/x", b"3")


def test_of_large_documents_few_are_held_in_memory_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Client:
        def get_object(self, **request: Any) -> Any:
            asked.append(request["Key"])
            return {"Body": io.BytesIO(b"[1]")}

    monkeypatch.setattr(cell_store, "WINDOW_BYTES", 10)
    sizes = {"a": 4, "b": 4, "c": 4, "d": 40, "e": 4}
    listed = [Listed(f"nodes/{name}.json", datetime(2026, 11, 21, tzinfo=UTC), size) for name, size in sizes.items()]
    documents = CellStore(Client(), BUCKET).documents(listed)
    for most in (2, 2, 3, 4, 5):
        next(documents)
        assert len(asked) <= most
    assert next(documents, None) is None
