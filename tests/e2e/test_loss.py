"""Failure under load on real processes: what is judged, against what the drivers have logged themselves; which losses
are excused; and that runs aborted in the midst of it leave nothing.
"""

from __future__ import annotations

import gzip
import json
import random
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cli.client.api import UnreachableError
from tests.e2e.benches import LONG, NOTHING, left
from tests.e2e.conftest import Deployment, eventually
from tests.unit.account.account import EXHAUSTIVE
from troop.bench.definition import names
from troop.shared.tags import RUN_TAG

FOLDER = Path(__file__).parent / "loss"
CELL = names.cell_id(1)
BROKEN, UNKNOWN = 17, 15
"""Exit codes of the command."""
TRIES = 4
"""Runs until the load was steady before the fault: Troop judges nothing otherwise, and other work disturbs it here."""
SECONDS = 40.0
"""A little longer than what is aborted takes."""
ABORTED = range(100 if EXHAUSTIVE else 3)
AT_ONCE = 4
"""Aborted runs at a time."""


@pytest.fixture(scope="module")
def deployment(smoke: Deployment) -> Deployment:
    return smoke


def troop(deployment: Deployment, *words: str) -> tuple[int, dict[str, Any]]:
    """Returns the exit code of the command, and what it tells with --json."""
    done = deployment.command("bench", *words, "--json")
    assert done.stdout, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, document


def judged(deployment: Deployment, *more: str) -> tuple[int, dict[str, Any]]:
    """Runs the benchmark until all its verdicts are known; the exit code, and all that is on record."""
    for _ in range(TRIES):
        code, detail = troop(deployment, "run", str(FOLDER), *more)
        faults = [fault for cell in detail["cells"] for fault in cell["faults"] or []]
        verdicts = [fault["verdict"] for fault in faults]
        if code != UNKNOWN and verdicts and "UNKNOWN" not in verdicts:
            break
    return code, detail


def detail_of(deployment: Deployment, run: str) -> dict[str, Any]:
    def ask() -> dict[str, Any] | None:
        try:  # not by the command: a busy machine may be too slow for its patience
            answer = deployment.view.api.get(f"benchmarks/{run}")
        except UnreachableError:
            return None
        return answer.body if answer.status == 200 else None

    detail: dict[str, Any] = eventually(ask, LONG)
    return detail


def ended(deployment: Deployment, run: str) -> dict[str, Any]:
    def probe() -> dict[str, Any] | None:
        detail = detail_of(deployment, run)
        return detail if detail["run"]["ended_at"] else None

    detail: dict[str, Any] = eventually(probe, LONG, 1)
    return detail


def start(deployment: Deployment, *more: str) -> str:
    return str(troop(deployment, "run", str(FOLDER), "--no-wait", *more)[1]["run"])


def measuring(deployment: Deployment, run: str) -> dict[str, str]:
    """Waits for the measured time. Returns the ids of the nodes by role and rank."""

    def probe() -> dict[str, str] | None:
        detail = detail_of(deployment, run)
        assert not detail["run"]["ended_at"], detail
        return {} if detail["cells"][0]["phase"] == "measure" else None

    eventually(probe, LONG, 0.5)
    nodes = json.loads(object_of(deployment, run, "roster.json"))["nodes"]
    return {f"{node['role']} {node['rank']}": node["id"] for node in nodes}


def object_of(deployment: Deployment, run: str, part: str) -> bytes:
    s3, bucket = deployment.account.client("s3"), deployment.outputs["ResultsBucket"]
    body: bytes = s3.get_object(Bucket=bucket, Key=names.cell_prefix(run, CELL) + part)["Body"].read()
    return body


def phases(deployment: Deployment, detail: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The merged phases, or points, of a run's only cell."""
    results = json.loads(object_of(deployment, detail["run"]["run"], "results.json"))
    merged: list[dict[str, Any]] = results["phases"]
    return merged


def logged(deployment: Deployment, detail: Mapping[str, Any], step: str) -> list[float]:
    """The moments of all failures in the measured time, by the drivers' own logs."""
    s3, bucket = deployment.account.client("s3"), deployment.outputs["ResultsBucket"]
    prefix = names.output_prefix(detail["run"]["run"], CELL, step)
    keys = [one["Key"] for one in s3.list_objects_v2(Bucket=bucket, Prefix=prefix)["Contents"]]
    texts = [gzip.decompress(s3.get_object(Bucket=bucket, Key=key)["Body"].read()) for key in keys]
    lines = [line for text in texts for line in text.splitlines() if line.startswith(b'{"failed"')]
    assert len(lines) == 2, "each driver prints one"
    return sorted(moment for line in lines for moment in json.loads(line)["failed"])


def terminate(deployment: Deployment, node: str) -> None:
    deployment.account.client("ec2").terminate_instances(InstanceIds=[node])


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield pool


@pytest.fixture(scope="module")
def runs(deployment: Deployment, pool: ThreadPoolExecutor) -> Mapping[str, Future[tuple[int, dict[str, Any]]]]:
    """All runs that no test interferes with, at the same time."""
    sizes = {"twice": (), "pauses": ("--size", "pauses"), "crash": ("--size", "crash")}
    return {name: pool.submit(judged, deployment, *words) for name, words in sizes.items()}


def assert_nothing_left(deployment: Deployment, detail: Mapping[str, Any]) -> None:
    """Neither in the account, nor on record, nor a process of a node."""
    run = detail["run"]["run"]
    assert left(deployment.account, {RUN_TAG: run}) == NOTHING
    assert [one for one in detail["resources"] if one["gone_at"] is None] == []
    mark = f"\0TROOP_RUN={run}\0".encode()
    assert [path for path in Path("/proc").glob("[0-9]*/environ") if mark in _read(path)] == []


def _read(path: Path) -> bytes:
    try:
        return b"\0" + path.read_bytes()
    except OSError:
        return b""


def test_failures_are_counted_as_drivers_have_logged_them(deployment: Deployment, runs: Mapping[str, Any]) -> None:
    _, detail = runs["twice"].result()
    assert detail["run"]["status"] == "SUCCEEDED", detail
    (phase,) = phases(deployment, detail)
    moments, faults = logged(deployment, detail, "measure"), phase["faults"]
    begins = [fault["began_at"] for fault in faults]
    assert [moment for moment in moments if moment < begins[0]] == []
    own = [
        sum(begin <= moment < end for moment in moments) for begin, end in zip(begins, [begins[1], 9e9], strict=True)
    ]
    assert [fault["failed"] for fault in faults] == own
    assert all(own), "each loss fails at least the requests that are under way"
    errors = phase["roles"]["drivers"]["operations"]["get"]["errors"]
    assert sum(errors.values()) - errors.get("unfinished", 0) == len(moments)


def test_one_expectation_holds_and_the_other_is_broken(deployment: Deployment, runs: Mapping[str, Any]) -> None:
    code, detail = runs["twice"].result()
    (phase,) = phases(deployment, detail)
    held, broken = phase["faults"]
    assert (code, held["verdict"], broken["verdict"]) == (BROKEN, "HELD", "BROKEN"), phase["faults"]
    assert f"{broken['failed']}" in broken["sentence"]
    for fault, at in zip((held, broken), (11, 40), strict=True):
        (node,) = fault["nodes"]
        assert (node["role"], node["rank"], fault["outcome"]) == ("servers", 1, "DONE")
        assert 0 <= node["began_at"] - (phase["measured_from"] + at) < 2
        assert 2 < node["ended_at"] - node["began_at"] < 9, "the script starts the server again"
        assert fault["windows"]["before"]["per_second"] == pytest.approx(fault["set_rate"], rel=0.05)
        assert fault["windows"]["during"]["per_second"] < fault["rate_before"]
    assert 0 < held["back"]["rate_s"] <= 8
    listed = detail["cells"][0]["faults"]
    assert [(one["number"], one["sentence"]) for one in listed] == [(1, held["sentence"]), (2, broken["sentence"])]
    _, report = troop(deployment, "report", detail["run"]["run"])
    assert all(json.dumps(fault["sentence"]) in json.dumps(report) for fault in (held, broken))


def test_each_point_has_its_own_pause(deployment: Deployment, runs: Mapping[str, Any]) -> None:
    code, detail = runs["pauses"].result()
    points = phases(deployment, detail)
    assert (code, [point["parameters"]["rate"] for point in points]) == (0, [40, 60]), detail
    for point in points:
        (fault,) = point["faults"]
        assert fault["verdict"] == "HELD", fault
        assert set(fault["windows"]["during"]["errors"]) == {"timeout"}
        assert fault["failed"] == len(logged(deployment, detail, f"measure.{point['point']}"))


def test_a_planned_crash_is_no_lost_node(deployment: Deployment, runs: Mapping[str, Any]) -> None:
    _, detail = runs["crash"].result()
    assert (detail["run"]["status"], detail["cells"][0]["status"]) == ("SUCCEEDED", "SUCCEEDED"), detail
    (phase,) = phases(deployment, detail)
    (fault,) = phase["faults"]
    (node,) = fault["nodes"]
    assert (fault["outcome"], fault["what"]) == ("DONE", "crash 1 of servers")
    gone = {one["name"]: one["gone_at"] for one in detail["resources"]}
    assert gone[node["id"]]
    assert fault["failed"] == len(logged(deployment, detail, "measure")) > 0


def test_any_other_lost_node_makes_the_cell_invalid(deployment: Deployment) -> None:
    """Even beside a node whose crash is planned."""
    run = start(deployment, "--size", "crash")
    nodes = measuring(deployment, run)
    terminate(deployment, nodes["servers 0"])
    detail = ended(deployment, run)
    (cell,) = detail["cells"]
    assert cell["status"] == "INVALID", cell
    assert nodes["servers 0"] in cell["reason"]
    assert nodes["servers 1"] not in cell["reason"]
    assert_nothing_left(deployment, detail)


def test_nothing_is_left_of_the_runs(deployment: Deployment, runs: Mapping[str, Any]) -> None:
    for future in runs.values():
        assert_nothing_left(deployment, future.result()[1])


# Aborted


def _aborted(deployment: Deployment, number: int) -> tuple[str, dict[str, Any]]:
    """A run that is aborted at a random moment, and how."""
    chance = random.Random(number)
    faults = [
        {"at": "11s", "role": "servers", "method": "pause", "for": "5s"},
        {"at": "11s", "role": "servers", "method": "script", "script": "server.py", "for": "5s"},
        {"at": "11s", "role": "servers", "method": "crash"},
    ]
    changes = {"phases.measure.measured": "27s", "phases.measure.faults": json.dumps([chance.choice(faults)])}
    run = start(deployment, *(word for key, value in changes.items() for word in ("--set", f"{key}={value}")))
    time.sleep(chance.uniform(0, SECONDS))
    how = chance.choice(["workflow", "stop", "node"])
    if how == "workflow":
        machine = deployment.outputs["BenchmarkStateMachineArn"].replace(":stateMachine:", ":execution:")
        deployment.states.stop_execution(executionArn=f"{machine}:{run}")
    elif how == "stop":
        troop(deployment, "stop", run)
    else:
        ids = left(deployment.account, {RUN_TAG: run})["instances"]
        if ids:
            terminate(deployment, chance.choice(sorted(ids)))
    return how, ended(deployment, run)


@pytest.fixture(scope="module")
def aborted(deployment: Deployment, pool: ThreadPoolExecutor, runs: Mapping[str, Any]) -> list[Future[Any]]:
    runs["crash"].result()  # fewer runs at a time disturb each other less
    return [pool.submit(_aborted, deployment, number) for number in ABORTED]


@pytest.mark.parametrize("number", ABORTED)
def test_a_run_aborted_at_a_random_moment_leaves_nothing(
    deployment: Deployment, aborted: list[Future[Any]], number: int
) -> None:
    _, detail = aborted[number].result()
    assert_nothing_left(deployment, detail)
