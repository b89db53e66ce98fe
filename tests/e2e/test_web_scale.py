"""The benchmark web-scale on real tiers: nginx, two services of the application, and memcached. Visits are made without
Java; `make web` makes them with JMeter.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from cli.client.api import UnreachableError
from local import web
from tests.e2e.benches import LONG, NOTHING, left
from tests.e2e.conftest import Deployment, eventually
from tests.unit.account.account import EXHAUSTIVE
from troop.shared.tags import RUN_TAG

pytestmark = pytest.mark.skipif(web.missing() is not None, reason=f"a program is missing: {web.missing()}")


@pytest.fixture(scope="module")
def deployment(smoke: Deployment) -> Deployment:
    if problem := web.build("flights"):
        pytest.skip(f"the application could not be built: {problem}")
    return smoke


def troop(deployment: Deployment, *words: str) -> dict[str, Any]:
    """What the command tells with --json."""
    done = deployment.command("bench", *words, "--json")
    assert done.stdout, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def run(*more: str) -> tuple[str, ...]:
    return ("run", str(web.BENCHMARK), "--size", "local-test", *more)


def assert_nothing_left(deployment: Deployment, run: str) -> None:
    """Neither in the account, nor any process of a tier."""
    assert left(deployment.account, {RUN_TAG: run}) == NOTHING
    mark = str(deployment.account.run).encode()
    commands = [path for path in Path("/proc").glob("[0-9]*/cmdline") if mark in _read(path)]
    assert [path for path in commands if b"flights/" in _read(path) or b"nginx" in _read(path)] == []


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_each_request_reaches_the_web_tier_and_the_authentication_service(deployment: Deployment) -> None:
    detail = troop(deployment, *run())
    assert (detail["run"]["status"], detail["cells"][0]["verdict"]) == ("SUCCEEDED", "PASSED"), detail
    rows = {(row["role"], row["operation"]): row for row in detail["cells"][0]["results"]}
    visited = {operation.split(":")[1] for role, operation in rows if role == "drivers" and ":" in operation}
    assert visited == {"login", "query-flights", "book", "bookings", "cancel", "logout"}
    assert all(row["errors"] == {} and row["count"] > 0 for row in rows.values()), rows
    web_count, calls = (rows[row]["count"] for row in (("web", "request"), ("authentication", "validate")))
    # Nodes read their counters at different moments. Without a call for each request, it would be two of nine.
    assert web_count / 2 < calls < 2 * web_count
    assert_nothing_left(deployment, detail["run"]["run"])


@pytest.mark.skipif(not EXHAUSTIVE, reason="only in make test-all: the watch of a server has unit tests")
def test_a_server_that_dies_makes_the_cell_invalid_and_the_report_says_which(deployment: Deployment) -> None:
    started = troop(deployment, *run("--no-wait", "--set", "attempts=1", "--set", "phases.measure.measured=60s"))
    name = str(started["run"])

    def victim() -> int | None:
        homes = [Path(one["directory"]) for one in deployment.account.instances()]
        begun = [home for home in homes if (home / "phases" / "measure").exists()]
        servers = [
            home / "shared" / "server.json" for home in begun if (home / "shared" / "flights" / "x86_64").exists()
        ]
        services = [int(json.loads(path.read_text())[0]) for path in servers if path.exists()]
        return next((pid for pid in services if b"\0authentication\0" in _read(Path(f"/proc/{pid}/cmdline"))), None)

    pid = eventually(victim, LONG)
    os.kill(pid, signal.SIGKILL)

    def over() -> dict[str, Any] | None:
        try:  # not by the command: a busy machine may be too slow for its patience, and this one asks again
            answer = deployment.view.api.get(f"benchmarks/{name}")
        except UnreachableError:
            return None
        return answer.body if answer.status == 200 and answer.body["run"]["ended_at"] else None

    (cell,) = eventually(over, LONG, 1)["cells"]
    assert cell["status"] == "INVALID", cell
    assert f"the server of the role authentication (process {pid}) has died" in cell["reason"]
    report = troop(deployment, "report", name)
    assert f"process {pid}" in json.dumps(report["findings"]), report["findings"]
    assert_nothing_left(deployment, name)
