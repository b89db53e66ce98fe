"""The catalogue's benchmark by the command, on real processes: its figures against what the bucket has served; and a
script that fails on a real node.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import platform
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests

from local.project import ROOT, tool_environment
from local.settings import DATA_BUCKET
from tests.e2e.benches import LONG, NOTHING, left
from tests.e2e.conftest import Deployment
from tests.e2e.roles import allowed, is_of_queues, role_name, role_of
from troop.bench.definition import names
from troop.report.document import Report
from troop.shared.tags import RUN_TAG

NAME = "Smoke"
CATALOGUE = ROOT / "benchmarks" / "s3-range-read" / "benchmark.yaml"
NODES, MEASURED = 2, 5
RATE = 50
"""Reads a second of each node. Only the first point of :func:`swept` reads as fast as it can, which takes a core."""
LEAST, MOST = 1024, 10240
"""Bytes of a read."""

FAILING = """
name: failing
expires_after: 1h
fleets:
  drivers: {count: 1, instance_type: c7g.large}
phases:
  - {name: measure, roles: [drivers], script: fail.sh, timeout: 2m}
artifacts: [{name: words.txt, source: ./words.txt, sha256: SHA256}]
"""
WORDS = "the disk is on fire"


@pytest.fixture(scope="module")
def deployment(smoke: Deployment) -> Deployment:
    return smoke


def troop(deployment: Deployment, *words: str, code: int = 0) -> Any:
    """What the command tells with --json."""
    done = deployment.command("bench", *words, "--json")
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def detail(deployment: Deployment) -> dict[str, Any]:
    before = served(deployment)
    words = ("--size", "smoke", "--set", f"parameters.rate={RATE}")
    detail: dict[str, Any] = troop(deployment, "run", str(CATALOGUE), *words)
    return {**detail, "served": served(deployment) - before}


def served(deployment: Deployment) -> int:
    """How many objects, or ranges of them, nodes have read from the data's bucket."""
    role = role_name(deployment, "NodesRole")
    return sum(
        entry["count"]
        for entry in deployment.account.decisions()
        if role_of(entry["caller"]) == role
        and (entry["action"].lower(), entry["decision"]) == ("s3:getobject", "Allow")
        and f":::{DATA_BUCKET}/" in entry["resource"]
    )


@pytest.fixture(scope="module")
def report(deployment: Deployment, detail: dict[str, Any]) -> dict[str, Any]:
    """The run's report, by the command; the workflow of the run has made it."""
    document: dict[str, Any] = troop(deployment, "report", detail["run"]["run"])
    return document


def assert_nothing_left(deployment: Deployment, detail: dict[str, Any]) -> None:
    run = detail["run"]["run"]
    assert left(deployment.account, {RUN_TAG: run}) == NOTHING
    created = {one["name"] for one in detail["resources"] if one["created_at"]}
    assert [one for one in detail["resources"] if one["gone_at"] is None] == []
    assert [one for one in deployment.account.instances() if one["id"] in created] == []


def objects(deployment: Deployment, run: str, part: str) -> list[bytes]:
    s3, bucket = deployment.account.client("s3"), deployment.outputs["ResultsBucket"]
    prefix = f"{names.cell_prefix(run, names.cell_id(1))}{part}"
    keys = [one["Key"] for one in s3.list_objects_v2(Bucket=bucket, Prefix=prefix)["Contents"]]
    return [s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys]


def test_the_table_is_what_the_bucket_has_served(deployment: Deployment, detail: dict[str, Any]) -> None:
    assert detail["run"]["status"] == "SUCCEEDED"
    (row,) = detail["cells"][0]["results"]
    assert (row["phase"], row["role"], row["errors"]) == ("measure", "drivers", {})
    assert 0 < row["count"] <= detail["served"], "warm-up is served, too, and not counted"
    assert row["per_second"] == pytest.approx(row["count"] / MEASURED, rel=0.01)
    assert LEAST <= row["bytes_per_second"] * MEASURED / row["count"] <= MOST
    times = [row[f"{name}_ms"] for name in ("p50", "p90", "p95", "p99", "p99_9", "max")]
    assert times[0] > 0
    assert times == sorted(times)
    summaries = [json.loads(body) for body in objects(deployment, detail["run"]["run"], "phases/measure/")]
    assert len(summaries) == NODES
    reads = [one["operations"]["read"] for one in summaries]
    assert all(read["histogram"]["count"] > 0 for read in reads)
    assert row["count"] == sum(read["histogram"]["count"] for read in reads)
    assert len({one["measured_from"] for one in summaries}) == 1, "all begin at one instant"


def test_run_has_its_estimate_and_its_cost(detail: dict[str, Any]) -> None:
    assert (
        0 < detail["cells"][0]["cost"]["amount"] == detail["run"]["cost"]["amount"] < detail["run"]["estimate"]["most"]
    )


@pytest.fixture(scope="module")
def swept(deployment: Deployment) -> dict[str, Any]:
    """A run with two points on the same two nodes, which create what they read; only one of these takes part in the
    first point.
    """
    text = CATALOGUE.read_text(encoding="utf-8").replace("threads: 32 ", "clients: 2\n  threads: 32 ")
    folder = deployment.account.run / "swept"
    shutil.copytree(CATALOGUE.parent, folder)
    (folder / CATALOGUE.name).write_text(text, encoding="utf-8")
    changes = {
        "phases.measure.points": f"[{{threads: 1, clients: 1}}, {{threads: 4, rate: {RATE}, warm_up: 3s}}]",
        "phases.measure.between": "{script: prepare.py, roles: [drivers], timeout: 2m}",
        "phases.measure.nodes": "{drivers: clients}",
        "parameters.fill_objects": "40",
    }
    words = [word for key, value in changes.items() for word in ("--set", f"{key}={value}")]
    detail: dict[str, Any] = troop(deployment, "run", str(folder), "--size", "smoke", "--size", "own-data", *words)
    return detail


def test_points_run_one_after_another_on_the_same_nodes(deployment: Deployment, swept: dict[str, Any]) -> None:
    (cell,) = swept["cells"]
    steps = [step["phase"] for step in cell["steps"]]
    assert steps[2:6] == ["prepare", "measure.1", "measure.2.between", "measure.2"]
    one, two = cell["results"]
    assert [(row["phase"], row["point"], row["parameters"]) for row in (one, two)] == [
        ("measure", 1, {"threads": 1, "clients": 1, "rate": 0}),
        ("measure", 2, {"threads": 4, "clients": 2, "rate": RATE}),
    ]
    assert one["count"] > 0
    assert two["count"] > 0
    summaries = {
        step: [json.loads(body) for body in objects(deployment, swept["run"]["run"], f"phases/{step}/")]
        for step in ("measure.1", "measure.2.between", "measure.2")
    }
    assert [len(those) for those in summaries.values()] == [1, NODES, NODES]
    starts = {step: {summary["measured_from"] for summary in those} for step, those in summaries.items()}
    assert len(starts["measure.2"]) == 1, "all begin at one instant"
    assert max(starts["measure.1"]) + MEASURED < min(starts["measure.2"])
    assert [summary["warm_up_seconds"] for summary in summaries["measure.2"]] == [3.0] * NODES
    assert len([one for one in swept["resources"] if one["kind"] == "instance"]) == NODES
    assert_nothing_left(deployment, swept)


def test_nodes_delete_the_data_that_they_create(deployment: Deployment, swept: dict[str, Any]) -> None:
    role, prefix = role_name(deployment, "NodesRole"), names.data_prefix(swept["run"]["run"], names.cell_id(1))
    written = {
        entry["action"].lower()
        for entry in deployment.account.decisions()
        if role_of(entry["caller"]) == role and f"/{prefix}" in entry["resource"] and entry["decision"] == "Allow"
    }
    assert written >= {"s3:getobject", "s3:putobject", "s3:deleteobject"}
    s3, bucket = deployment.account.client("s3"), deployment.outputs["ResultsBucket"]
    assert s3.list_objects_v2(Bucket=bucket, Prefix=names.DATA_PREFIX)["KeyCount"] == 0


def test_teardown_deletes_the_data_that_nodes_leave(deployment: Deployment, swept: dict[str, Any]) -> None:
    """IAM allows it these objects. Those of another run stay."""
    run = swept["run"]["run"]
    s3, bucket = deployment.account.client("s3"), deployment.outputs["ResultsBucket"]
    left, others = names.data_prefix(run, names.cell_id(1)) + "0000001", names.data_prefix(f"{run}0", "c001") + "0"
    for key in (left, others):
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
    event = {"step": "remove", "work": {"run": run}, "execution": "by hand"}
    functions = deployment.account.client("lambda")
    (name,) = [
        one["FunctionName"]
        for page in functions.get_paginator("list_functions").paginate()
        for one in page["Functions"]
        if one["FunctionName"].startswith(f"{NAME}-FunctionsTeardown")
    ]
    answer = functions.invoke(FunctionName=name, Payload=json.dumps(event))
    assert "FunctionError" not in answer, answer["Payload"].read()
    assert [one["Key"] for one in s3.list_objects_v2(Bucket=bucket, Prefix=names.DATA_PREFIX)["Contents"]] == [others]
    s3.delete_object(Bucket=bucket, Key=others)


def test_the_report_has_a_row_of_each_point(deployment: Deployment, swept: dict[str, Any]) -> None:
    document = Report.model_validate(troop(deployment, "report", swept["run"]["run"]))
    rows = [(phase.point, phase.label, phase.nodes) for cell in document.cells for phase in cell.phases]
    assert rows == [(1, "threads=1, clients=1, rate=0", 1), (2, f"threads=4, clients=2, rate={RATE}", NODES)]


def test_candidate_and_baseline_take_turns_on_the_same_nodes(deployment: Deployment) -> None:
    changes = {
        "baseline.parameters.threads": "2",
        "repetitions": "2",
        "parallel": "2",
        "fleets.drivers.count": "1",
        "phases.measure.measured": "2s",
        "phases.measure.between": "{script: prepare.py, roles: [drivers], timeout: 2m}",
        "parameters.rate": str(RATE),
        "version": "0123456",
    }
    words = [word for key, value in changes.items() for word in ("--set", f"{key}={value}")]
    detail = troop(deployment, "run", str(CATALOGUE), "--size", "smoke", *words)
    assert [cell["status"] for cell in detail["cells"]] == ["SUCCEEDED"] * 2
    pairs = ("measure.1.between", "measure.1", "measure.2.between", "measure.2")
    assert [tuple(step["phase"] for step in cell["steps"])[3:7] for cell in detail["cells"]] == [pairs] * 2
    assert all(row["count"] > 0 for cell in detail["cells"] for row in cell["results"])
    orders = [[row["parameters"] for row in cell["results"]] for cell in detail["cells"]]
    assert sorted(orders, key=str) == [[{"threads": 2}, {"threads": 4}], [{"threads": 4}, {"threads": 2}]]
    assert [sum(one["kind"] == "instance" for one in detail["resources"])] == [2]
    assert_nothing_left(deployment, detail)
    comparison = troop(deployment, "compare", detail["run"]["run"])
    (row,) = comparison["rows"]
    assert (comparison["source"], comparison["baseline"], row["method"]) == ("cell", "threads=2", "paired t")
    assert (row["a"]["repetitions"], row["low"] <= row["ratio"] <= row["high"]) == (2, True)
    (against,) = troop(deployment, "report", detail["run"]["run"])["ratios"]
    assert (against["figures"][0]["ratio"], len(against["figures"][0]["pairs"])) == (row["ratio"], 2)
    every = troop(deployment, "history", detail["run"]["name"])["series"]
    ((value,),) = [one["values"] for one in every if one["baseline"]]
    assert (value["run"], value["ratio"]) == (detail["run"]["run"], pytest.approx(row["ratio"], rel=1e-3))
    (noise,) = troop(deployment, "noise", str(CATALOGUE), "--size", "smoke", *words, code=15)["measurements"]
    assert (noise["source"], noise["values"], noise["spreads"]["per_second"]) == ("cell", 2, None)


def test_a_dashboard_shows_it_and_how_to_get_its_report(deployment: Deployment, detail: dict[str, Any]) -> None:
    shown, region = deployment.shown("runs"), deployment.account.exports["AWS_REGION"]
    assert "SUCCEEDED" in shown
    assert f"troop --deployment {NAME} --region {region} bench report {detail['run']['run']}" in shown


def test_nothing_is_left_of_it_but_its_results(deployment: Deployment, detail: dict[str, Any]) -> None:
    assert_nothing_left(deployment, detail)
    kinds = [one["kind"] for one in detail["resources"]]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "security-group": 1,
        "launch-template": 1,
        "auto-scaling-group": 1,
        "instance": NODES,
        "volume": NODES,
    }
    results = troop(deployment, "results", detail["run"]["run"])
    assert json.dumps(detail["cells"][0]["results"][0]["count"]) in json.dumps(results)


def test_the_report_tells_what_the_table_does(detail: dict[str, Any], report: dict[str, Any]) -> None:
    (cell,) = Report.model_validate(report).cells
    (row,) = detail["cells"][0]["results"]
    ((phase,), (operation,)) = cell.phases, cell.phases[0].operations
    shown = {name: row[name] for name in ("role", "operation", "count", "per_second", "errors", "p50_ms", "p99_ms")}
    assert {name: getattr(operation, name) for name in shown} == shown
    assert len(phase.members) == NODES
    assert report["money"]["actual"]["amount"] == pytest.approx(detail["run"]["cost"]["amount"])
    assert report["run"]["status"] == "SUCCEEDED"


def test_report_page_is_downloaded_without_rights_to_s3_and_shown_inline(
    deployment: Deployment, detail: dict[str, Any], report: dict[str, Any], tmp_path: Path
) -> None:
    run = detail["run"]["run"]
    page = tmp_path / "report.html"
    done = deployment.command("bench", "report", run, "-o", str(page))
    assert (done.returncode, str(page) in done.stdout) == (0, True), done.stderr
    assert run in page.read_text(encoding="utf-8")
    leads = deployment.view.api.get(f"benchmarks/{run}/report")
    assert leads.status == 302
    trusted = deployment.account.exports["AWS_CA_BUNDLE"]
    answer = requests.get(leads.headers["Location"], verify=trusted, timeout=LONG)
    assert (answer.status_code, answer.content) == (200, page.read_bytes())
    assert answer.headers["Content-Type"].startswith("text/html")
    assert answer.headers["Content-Disposition"].startswith("inline")


def test_report_of_the_deployment_equals_the_one_of_a_folder_without_aws(
    deployment: Deployment, detail: dict[str, Any], report: dict[str, Any], tmp_path: Path
) -> None:
    run = detail["run"]["run"]
    again = troop(deployment, "report", run, "--again")
    s3, bucket = deployment.account.client("s3"), deployment.outputs["ResultsBucket"]
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"runs/{run}/"):
        for key in (one["Key"] for one in page["Contents"]):
            if not any(f"/{part}/" in key for part in ("phases", "output", "barriers")):  # docs: no report needs these
                path = tmp_path / key.removeprefix("runs/")
                path.parent.mkdir(parents=True, exist_ok=True)
                s3.download_file(bucket, key, str(path))
    (tmp_path / run / "report.json").unlink()
    done = subprocess.run(
        [str(ROOT / "scripts" / "troop"), "bench", "report", str(tmp_path / run)],
        env=tool_environment(),
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    offline = json.loads((tmp_path / run / "report.json").read_text())
    times = [one.pop("created_at") for one in (report, again, offline)]
    assert len(set(times)) == 3
    assert report == again == offline
    assert run in (tmp_path / run / "report.html").read_text(encoding="utf-8")


def test_a_script_that_fails_on_a_real_node(deployment: Deployment, tmp_path: Path) -> None:
    sha256 = hashlib.sha256(f"{WORDS}\n".encode()).hexdigest()
    (tmp_path / "benchmark.yaml").write_text(FAILING.replace("SHA256", f'"{sha256}"'))
    (tmp_path / "fail.sh").write_text('#!/bin/sh\ncat "$TROOP_ARTIFACTS/words.txt"\nexit 3\n')
    (tmp_path / "words.txt").write_text(f"{WORDS}\n")
    detail = troop(deployment, "run", str(tmp_path / "benchmark.yaml"), code=1)
    assert (detail["run"]["status"], detail["cells"][0]["status"]) == ("FAILED", "FAILED")
    assert WORDS in detail["cells"][0]["reason"]
    (printed,) = objects(deployment, detail["run"]["run"], "output/measure/")
    assert WORDS in gzip.decompress(printed).decode()
    report = Report.model_validate(troop(deployment, "report", detail["run"]["run"]))
    assert (report.run.status, report.cells[0].status) == ("FAILED", "FAILED")
    assert_nothing_left(deployment, detail)


K6 = ROOT / "benchmarks" / "http-load" / "build" / "k6-x86_64"


class Answers(BaseHTTPRequestHandler):
    """An application with one page; it counts what it has served."""

    protocol_version = "HTTP/1.1"
    served = 0

    def do_GET(self) -> None:
        Answers.served += 1
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def application() -> Iterator[int]:
    """The port of an application on this machine."""
    Answers.served = 0
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield int(server.server_address[1])
        server.shutdown()


@pytest.mark.skipif(
    not K6.exists() or platform.machine() != "x86_64",
    reason="k6 is missing: python3 benchmarks/http-load/software/build.py k6 builds it in minutes (needs Go)",
)
def test_k6_loads_an_application_at_a_rate(deployment: Deployment, application: int) -> None:
    target = f"targets.app={{addresses: [127.0.0.1], ports: [{application}], roles: [drivers]}}"
    artifact = f"artifacts.k6.sha256={hashlib.sha256(K6.read_bytes()).hexdigest()}"
    options = ("--size", "x86,local", "--set", target, "--set", artifact)
    run = troop(deployment, "run", str(ROOT / "benchmarks" / "http-load"), *options)
    (row,) = run["cells"][0]["results"]
    assert (row["operation"], row["role"], row["errors"]) == ("get", "drivers", {})
    assert row["count"] == pytest.approx(NODES * 20 * MEASURED, rel=0.1), "each driver sends 20 a second"
    assert row["count"] < Answers.served, "the warm-up is served, too, and not counted"
    (cell,) = troop(deployment, "report", run["run"]["run"])["cells"]
    (measured,) = (phase for phase in cell["phases"] if phase["phase"] == "measure")
    assert [(one["tools"], one["timing"]) for one in measured["operations"]] == [(["k6"], "service")]
    assert_nothing_left(deployment, run)


def test_reports_need_nothing_that_they_may_not(deployment: Deployment, detail: dict[str, Any]) -> None:
    """Whose actions are all used, test_bench_leftovers.py tells."""
    for part in ("FunctionsReportRole", "FunctionsApiRole"):
        role = role_name(deployment, part)
        decisions = [entry for entry in deployment.account.decisions() if role_of(entry["caller"]) == role]
        assert decisions
        assert [(one["action"], one["resource"]) for one in decisions if one["decision"] != "Allow"] == []


def test_nodes_do_what_they_may_and_nothing_else(
    deployment: Deployment, detail: dict[str, Any], swept: dict[str, Any]
) -> None:
    role, used = role_name(deployment, "NodesRole"), set()
    for entry in deployment.account.decisions():
        if role_of(entry["caller"]) == role:
            assert entry["decision"] == "Allow", entry
            used.add(entry["action"].lower())
    assert used == {action.lower() for action in allowed(deployment)[role] if not is_of_queues(action)}


def test_questions_for_aws_run_as_far_as_local_aws_can(deployment: Deployment, tmp_path: Path) -> None:
    out = tmp_path / "answers.json"
    done = deployment.command("prove", "--yes", "--out", str(out))
    assert done.returncode == 0, (done.stdout, done.stderr)
    answers = {one["name"]: one for one in json.loads(out.read_text())["answers"]}
    assert {one["verdict"] for one in answers.values()} == {"only AWS proves this"}
    on_node = {one["name"]: one["ok"] for one in answers["node"]["evidence"]}
    assert on_node.keys() >= {"python", "kernel", "disks"}
    assert on_node["objects-of-other-nodes"]
    assert answers["conditional-writes"]["detail"].startswith("local AWS: yes"), answers["conditional-writes"]
    assert answers["fleet"]["detail"] == "local AWS: yes, all 4 steps succeeded"
    assert {cell["status"] for cell in answers["spot"]["evidence"]["cells"]} == {"SUCCEEDED"}
    assert answers["table-import"]["detail"] == "local AWS: yes, all 6 steps succeeded"
    assert answers["absent-role"]["evidence"] in ("NoSuchEntity", "AccessDenied")
    tables = deployment.account.client("dynamodb").list_tables()["TableNames"]
    assert [table for table in tables if table.startswith("troop-prove-")] == []
    assert "000000000000" not in out.read_text()
    roles = deployment.account.client("iam").list_roles()["Roles"]
    assert [role["RoleName"] for role in roles if role["RoleName"].startswith("troop-prove-")] == []
    assert list(tmp_path.iterdir()) == [out]
