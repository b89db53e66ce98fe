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

from tests.unit.account.asking import ask, get
from tests.unit.account.bench import FILE, Half, post, problems
from tests.unit.account.benches import AGENT, BENCHMARK, BUCKET, Bench
from troop.bench.api import response_size
from troop.bench.aws import cell_store
from troop.bench.aws.cell_store import PUTS, CellStore, Listed
from troop.bench.definition import names
from troop.bench.definition.plan import Plan, PlannedCell, Variant, from_plan_document, to_plan_document
from troop.bench.records.record import Cell, CellStatus, Kind, Resource, Run, RunStatus


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
    assert (plan.parallel, {cell.cell: cell.benchmark.nodes for cell in plan.cells}) == (
        3,
        {f"c{n:03d}": 2 if n < 5 else 3 for n in range(1, 9)},
    )
    assert [cell.variant.repetition for cell in plan.cells] == [1] * 4 + [2] * 4
    cells = get(f"/benchmarks/{run['run']}")["cells"]
    assert [(cell["cell"], cell["status"], cell["attempt"]) for cell in cells] == [
        (f"c{n:03d}", "PENDING", 1) for n in range(1, 9)
    ]
    assert {cell["cell"]: cell["order"] for cell in cells} == {cell.cell: n for n, cell in enumerate(plan.cells, 1)}
    assert (cells[3]["label"], cells[7]["label"]) == ("n2, threads=200, #2", "n3, threads=200, #2")
    assert cells[7]["variant"] == {"scale": "n3", "values": {"parameters.threads": 200}, "repetition": 2}


def test_a_run_stores_which_of_candidate_and_baseline_begins(half: Half) -> None:
    definition = scaled(2, 3, repetitions=4, baseline={"parameters.threads": 8})
    status, run = post(definition=definition)
    assert (status, run["cells"]) == (202, 8)
    plan = from_plan_document(json.loads(half.objects()[f"runs/{run['run']}/plan.json"]))
    first = [(cell.variant.scale, cell.benchmark.phases[-1].points[0].parameters["threads"]) for cell in plan.cells]
    assert sorted(first) == sorted(
        (step, threads) for step in ("n2", "n3") for threads in (8, FILE["parameters"]["threads"]) for _ in range(2)
    )
    stored = json.loads(half.objects()[f"runs/{run['run']}/definition.json"])
    assert stored["baseline"] == {"parameters.threads": 8}
    assert post(definition=definition)[0] == 200


def test_a_key_stands_for_the_same_cells(half: Half) -> None:
    assert post(definition=scaled(2, 3))[0] == 202
    assert post(definition=scaled(2, 3))[0] == 200
    assert post(definition=scaled(2, 4))[0] == 409
    assert post(definition=scaled(2, 3, parallel=2))[0] == 409


def test_the_limit_of_nodes_is_for_those_there_are_at_a_time(half: Half) -> None:
    assert post(definition=scaled(4, 5, repetitions=2, parallel=2))[0] == 202
    refusals = problems(definition=scaled(4, 5, repetitions=2, parallel=3), key="k2")
    assert (
        "is 3, which runs up to 14 nodes at a time: must be less, for at most 10 in all"
        in refusals["body.definition.parallel"]
    )
    refusals = problems(definition=scaled(4, 11), key="k2")
    assert "have 11 nodes, with n11: must be at most 10" in refusals["body.definition.fleets"]


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
        ({"baseline": {"fleets.drivers.instance_type": "c7g.huge"}}, "baseline.fleets.drivers.instance_type"),
        (
            {"artifacts": [{"name": "d", "source": "./d", "sha256": "0f" * 32}], "repetitions": 2},
            "artifacts.0.sha256",
        ),
    ],
)
def test_unavailable_resource_is_a_problem_at_the_line_that_names_it(
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
    _, response = post(definition=scaled(2, repetitions=100, scale={"a": {}, "b": {"fleets.drivers.count": 1}}))
    assert response["cells"] == 200
    assert [cell.cell for cell in half.runs.cells.get_all(response["run"])] == [f"c{n:03d}" for n in range(1, 201)]


def test_large_answer_omits_results_and_a_query_by_cell_has_them(half: Half, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_size, "LARGEST", 15_000)
    monkeypatch.setattr(response_size, "MOST_RESOURCES", 4)
    _, response = post(definition=scaled(2, repetitions=4, parallel=4))
    run, now = response["run"], half.account.clock.moment
    rows = [{"role": "drivers", "operation": f"read-{n}", "p99_ms": 1.5} for n in range(100)]
    for cell in ("c001", "c002", "c004"):
        half.runs.cells.change(run, cell, phase="launch", at=now, status=CellStatus.SUCCEEDED, results=rows)
    instances = [Resource(run, "c002", Kind.INSTANCE, f"i-{n}", now) for n in range(6)]
    half.runs.resources.record_seen(instances, now)
    half.runs.resources.gone(instances[:5], now + timedelta(minutes=1))

    status, document = ask("GET", f"/benchmarks/{run}")
    assert status == 200
    assert len(json.dumps(json.dumps(document))) < 15_000
    assert [len(cell["results"] or []) for cell in document["cells"]] == [100, 0, 0, 0]
    assert [cell["results_left_out"] for cell in document["cells"]] == [False, True, False, True]
    assert (document["resources_created"], document["resources_left"], len(document["resources"])) == (6, 1, 4)
    assert "i-5" in [one["name"] for one in document["resources"] if one["gone_at"] is None]

    alone = get(f"/benchmarks/{run}", cell="c004", resources="false")
    assert [(cell["cell"], len(cell["results"])) for cell in alone["cells"]] == [("c004", 100)]
    assert (alone["resources"], alone["resources_created"], alone["resources_left"]) == ([], None, None)
    assert get(f"/benchmarks/{run}", cell="c001")["resources_created"] == 0
    status, body = ask("GET", f"/benchmarks/{run}", cell="c201")
    assert (status, "has no cell 'c201'" in body["message"]) == (404, True)


@settings(max_examples=50)
@given(st.lists(st.none() | st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=9)), max_size=3)))
def test_answer_omits_no_more_results_than_it_must(results: list[Any]) -> None:
    room = 100
    fits = response_size.within(results, room)
    included = [one for one, fit in zip(results, fits, strict=True) if fit and one is not None]
    assert sum(len(json.dumps(json.dumps(one))) - 2 for one in included) <= room
    left = [one for one, fit in zip(results, fits, strict=True) if not fit]
    assert None not in left
    assert not left or len(json.dumps(json.dumps([*included, left[0]]))) > room


# Doing them


def two_cells(bench: Bench) -> Bench:
    """A run of two cells, at the same time, of which the second has one fleet less."""
    pair = replace(bench, run=names.run_id(bench.account.clock(), "two"))
    small = replace(BENCHMARK, fleets=BENCHMARK.fleets[1:], phases=BENCHMARK.phases[1:])
    plan = Plan((PlannedCell("c001", Variant("n5"), BENCHMARK), PlannedCell("c002", Variant("n3"), small)), parallel=2)
    now = bench.account.clock()
    pair.put(names.plan_key(pair.run), to_plan_document(plan))
    run = Run(pair.run, "ranges", now, now + timedelta(hours=2), "arn:me", 2, plan.nodes)
    assert pair.runs.create(run, [Cell(pair.run, one.cell, variant=one.variant) for one in plan.cells])
    return pair


def test_as_many_cells_run_in_parallel_as_the_file_sets(bench: Bench) -> None:
    pair = two_cells(bench)
    answer = pair.step("open", execution="arn:execution")
    assert answer["parallel"] == 2
    assert pair.get(answer["key"]) == [{"run": pair.run, "cell": "c001"}, {"run": pair.run, "cell": "c002"}]
    assert pair.runs.cells.get(pair.run, "c002").variant == Variant("n3")


def test_cells_start_in_their_order_of_which_runs_of_earlier_versions_have_none(bench: Bench) -> None:
    pair = two_cells(bench)
    other = replace(pair, run=names.run_id(bench.account.clock(), "other"))
    other.put(names.plan_key(other.run), {**pair.get(names.plan_key(pair.run))})
    cells = [Cell(other.run, "c001", order=2), Cell(other.run, "c002", order=1)]
    now = bench.account.clock()
    assert other.runs.create(Run(other.run, "ranges", now, now + timedelta(hours=2), "arn:me", 2, 5), cells)
    assert [one["cell"] for one in other.open()] == ["c002", "c001"]
    assert [one["cell"] for one in pair.open()] == ["c001", "c002"]


@pytest.mark.parametrize(
    ("ends", "status", "reason"),
    [
        (("SUCCEEDED", "SUCCEEDED"), "SUCCEEDED", ""),
        (("SUCCEEDED", "FAILED"), "PARTIAL", "1 of 2 cells succeeded; c002 FAILED: why"),
        (("INVALID", "SUCCEEDED"), "PARTIAL", "1 of 2 cells succeeded; c001 INVALID: why"),
        (("FAILED", "FAILED"), "FAILED", "c001 FAILED: why; c002 FAILED: why"),
        (("SUCCEEDED", None), "PARTIAL", "1 of 2 cells succeeded; c002 FAILED: its workflow ended without"),
    ],
)
def test_a_run_ends_as_its_cells_do(bench: Bench, ends: tuple[str | None, ...], status: str, reason: str) -> None:
    pair = two_cells(bench)
    for cell, end in zip(("c001", "c002"), ends, strict=True):
        if end:
            pair.runs.cells.change(pair.run, cell, status=CellStatus(end), reason=None if end == "SUCCEEDED" else "why")
    settled = pair.step("settle", error="", cause="")
    assert (settled["status"], settled["reason"][: len(reason)]) == (status, reason)


def test_a_closed_cell_leaves_the_other_open(bench: Bench) -> None:
    pair = two_cells(bench)
    pair.runs.set_running(pair.run, "arn:execution")
    pair.runs.cells.close(pair.run, "c001", bench.account.clock())
    pair.runs.launches.check_open(pair.run, "c002")
    assert pair.runs.get(pair.run).status is RunStatus.RUNNING


def test_cells_that_are_launched_at_once_have_one_image_and_one_agent(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither sees what the other is about to write: what was written first counts for both."""
    pair = two_cells(bench)
    pair.step("open", execution="arn:execution")
    first = {"id": bench.images["arm64"], "root_device": "/dev/first"}
    pair.put(names.image_key(pair.run, "arm64"), first)
    pair.s3.put_object(Bucket=BUCKET, Key=names.agent_key(pair.run), Body=AGENT + b" of before")
    monkeypatch.setattr(CellStore, "find", lambda self, key: None)
    pair.launch()
    data = pair.template_data(names.fleet_name(pair.run, "c001", "servers"))
    assert data["BlockDeviceMappings"][0]["DeviceName"] == "/dev/first"
    assert pair.get(names.image_key(pair.run, "arm64")) == first
    assert pair.s3.get_object(Bucket=BUCKET, Key=names.agent_key(pair.run))["Body"].read() == AGENT + b" of before"


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


def test_few_large_documents_are_in_memory_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[str] = []

    class Client:
        def get_object(self, **request: Any) -> Any:
            keys.append(request["Key"])
            return {"Body": io.BytesIO(b"[1]")}

    monkeypatch.setattr(cell_store, "WINDOW_BYTES", 10)
    sizes = {"a": 4, "b": 4, "c": 4, "d": 40, "e": 4}
    listed = [Listed(f"nodes/{name}.json", datetime(2026, 11, 21, tzinfo=UTC), size) for name, size in sizes.items()]
    documents = CellStore(Client(), BUCKET).documents(listed)
    for most in (2, 2, 3, 4, 5):
        next(documents)
        assert len(keys) <= most
    assert next(documents, None) is None
