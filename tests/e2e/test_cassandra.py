"""The benchmark cassandra-write on real servers: rings of JVMs on loopback addresses, written to by latte.

Takes minutes, and needs what `python -m local tools` gets: `make cassandra` does both.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from local import tools
from local.launcher import LocalAccount
from local.project import ROOT, tool_environment
from tests.e2e.benches import NOTHING, left
from tests.e2e.conftest import Deployment
from troop.bench.definition import names
from troop.measure.operations import TOTAL
from troop.shared.tags import RUN_TAG

pytestmark = [
    pytest.mark.cassandra,
    pytest.mark.skipif(tools.missing() is not None, reason=f"make cassandra gets what is missing: {tools.missing()}"),
]

NAME = "Ring"
SECONDS = 780
"""For all steps; more than twice what they take on two cores that others use, too."""
REPLICAS = 3


@pytest.fixture(scope="module")
def deployment(account: LocalAccount) -> Deployment:
    return Deployment(account, NAME)


def troop(deployment: Deployment, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(ROOT / "scripts" / "troop"), "--deployment", NAME, "bench", *words],
        cwd=ROOT,
        env={**tool_environment(), **deployment.account.exports, "COLUMNS": "160"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*more: str) -> tuple[str, ...]:
    return ("run", str(tools.BENCHMARK), "--size", "local", *tools.choices(), *more)


def ended(running: subprocess.Popen[str]) -> str:
    """What a command answers; what it says on the way is shown as it comes. It ends with the test."""
    with running:
        limit = threading.Timer(SECONDS, running.kill)
        limit.start()
        printer = threading.Thread(target=_show, args=(running.stderr,))
        printer.start()
        try:
            assert running.stdout is not None
            answer = running.stdout.read()
            printer.join()
        finally:
            limit.cancel()
            running.kill()
    return answer


def _show(lines: Any) -> None:
    for line in lines:
        sys.stdout.write(f"{line.rstrip()}\n")
        sys.stdout.flush()


def object_of(deployment: Deployment, run: str, cell: str, part: str) -> bytes:
    """The only object of a cell below a prefix."""
    s3, bucket = deployment.account.client("s3"), deployment.outputs["ResultsBucket"]
    (key,) = [
        one["Key"] for one in s3.list_objects_v2(Bucket=bucket, Prefix=names.cell_prefix(run, cell) + part)["Contents"]
    ]
    body: bytes = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    return body


def printed_by(deployment: Deployment, run: str, cell: str, phase: str, node: str) -> dict[str, Any]:
    """The only JSON object that a node's script has printed in a phase."""
    s3, bucket = deployment.account.client("s3"), deployment.outputs["ResultsBucket"]
    listed = s3.list_objects_v2(Bucket=bucket, Prefix=names.output_prefix(run, cell, phase))["Contents"]
    (key,) = [one["Key"] for one in listed if one["Key"].endswith(f"{node}.log.gz")]
    lines = gzip.decompress(s3.get_object(Bucket=bucket, Key=key)["Body"].read()).splitlines()
    (document,) = [json.loads(line) for line in lines if line.startswith(b"{")]
    assert isinstance(document, dict)
    return document


def assert_nothing_left(deployment: Deployment, detail: dict[str, Any]) -> None:
    """Neither on record, nor in the account, nor any JVM."""
    assert left(deployment.account, {RUN_TAG: detail["run"]["run"]}) == NOTHING
    assert [one for one in detail["resources"] if one["gone_at"] is None] == []
    mark = str(deployment.account.run)
    commands = [path for path in Path("/proc").glob("[0-9]*/cmdline") if b"CassandraDaemon" in _read(path)]
    assert [path for path in commands if mark.encode() in _read(path)] == []


def _read(path: Path) -> bytes:
    with contextlib.suppress(OSError):
        return path.read_bytes()
    return b""


@pytest.fixture(scope="module")
def detail(deployment: Deployment) -> dict[str, Any]:
    """All that is on record of a run of all steps."""
    running = troop(deployment, *run("--json"))
    answer: dict[str, Any] = json.loads(ended(running))
    sys.stdout.write(ended(troop(deployment, "results", answer["run"]["run"])))
    return answer


def test_every_step_succeeds_and_nothing_is_left(deployment: Deployment, detail: dict[str, Any]) -> None:
    assert detail["run"]["status"] == "SUCCEEDED", detail["run"]
    assert [cell["status"] for cell in detail["cells"]] == ["SUCCEEDED"] * len(detail["cells"])
    assert_nothing_left(deployment, detail)


def test_servers_have_counted_what_drivers_have_written(deployment: Deployment, detail: dict[str, Any]) -> None:
    for cell in detail["cells"]:
        roster = json.loads(object_of(deployment, detail["run"]["run"], cell["cell"], "roster.json"))["nodes"]
        first = next(node["id"] for node in roster if (node["role"], node["rank"]) == ("drivers", 0))
        counted = printed_by(deployment, detail["run"]["run"], cell["cell"], "count", first)
        written, seen = counted["drivers"]["writes"], counted["servers"]
        assert (seen["coordinated"], seen["applied"], seen["dropped"]) == (written, REPLICAS * written, 0)
        measured = sum(row["count"] for row in cell["results"] if row["operation"] == "write")
        assert 0 < measured < written


def test_histograms_and_metrics_of_both_roles_are_in_the_results(
    deployment: Deployment, detail: dict[str, Any]
) -> None:
    for cell in detail["cells"]:
        assert {(row["role"], row["operation"]) for row in cell["results"]} == {
            ("drivers", "write"),
            ("servers", TOTAL),
            ("servers", "coordinate"),
            ("servers", "apply"),
        }
        results = json.loads(object_of(deployment, detail["run"]["run"], cell["cell"], "results.json"))
        (phase,) = results["phases"]
        for role in phase["roles"].values():
            assert [operation["histogram"]["count"] > 0 for operation in role["operations"].values()]
            assert {"cpu_user", "memory_used", "disk_write_bytes"} <= role["samples"].keys()
            assert any(role["samples"]["cpu_user"])


def test_a_ring_is_read_repaired_and_compacted_with_more_and_more_clients(deployment: Deployment) -> None:
    """All of them are points on one ring of three, whose racks have further settings of Cassandra and of the JVM."""
    points = {"pattern": ["write", "read"], "order": ["random"], "consistency": ["QUORUM"], "clients": [1, 2]}
    points["maintenance"] = ["compaction", "repair"]
    settings = {
        "scale": {"n3": {"fleets.servers.count": 3, "fleets.drivers.count": 2}},
        "phases.measure.points": points,
        "phases.measure.measured": "8s",
        "parameters.cassandra": {"concurrent_reads": 16},
        "parameters.java": ["-XX:MaxGCPauseMillis=200"],
    }
    changes = [word for key, value in settings.items() for word in ("--set", f"{key}={json.dumps(value)}")]
    detail = json.loads(ended(troop(deployment, *run(*changes, "--json"))))
    assert detail["run"]["status"] == "SUCCEEDED", detail["run"]
    (cell,) = detail["cells"]
    phases = json.loads(object_of(deployment, detail["run"]["run"], cell["cell"], "results.json"))["phases"]
    assert len(phases) == 8
    for phase in phases:
        values, roles = phase["parameters"], phase["roles"]
        counts = {
            name: operation["histogram"]["count"]
            for role in roles.values()
            for name, operation in role["operations"].items()
        }
        server_operations = {"write": {"coordinate", "apply"}, "read": {"coordinate-read", "answer"}}[values["pattern"]]
        assert {values["pattern"], *server_operations} <= counts.keys(), values
        assert all(counts[name] > 0 for name in (values["pattern"], *server_operations)), (values, counts)
        assert values["maintenance"] in counts
        assert not roles["drivers"]["operations"][values["pattern"]]["errors"]
    assert_nothing_left(deployment, detail)
