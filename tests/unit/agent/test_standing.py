"""A node of a standing fleet that is watched: its orders, its reports, and its end, with workers of its own."""

from __future__ import annotations

import gzip
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent import boot as boots
from agent import keeper as keeping
from agent.expiry import GRACE_SECONDS, Expiry
from agent.health import FAIL
from agent.health_watch import Condition, HealthWatch
from agent.keeper import Keeper
from agent.metadata import Identity
from agent.orders import Orders
from agent.orders import read as read_orders
from agent.place import Place
from tests.patience import eventually
from tests.unit.agent.fake_account import REGION, FakeAccount
from tests.unit.agent.node import BUCKET, ID, ROLE, RUN, Node, alive, key
from tests.unit.agent.pythons import python39
from tests.unit.agent.test_interruption import NOTICE, interrupt
from tests.unit.work.model_account import URL
from troop.bench.definition import names

WORKER = """
import json, os, sys, threading, time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from troop.work import tasks

shared = Path(os.environ["TROOP_SHARED"])

class Health(BaseHTTPRequestHandler):
    def do_GET(self):
        bad = (shared / "bad").exists()
        body = json.dumps({"checks": [{"name": "disk", "status": "fail" if bad else "ok"}]}).encode()
        self.send_response(503 if bad else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

class Server(HTTPServer):
    def server_bind(self):
        self.allow_reuse_address = True
        super().server_bind()
        (shared / "port").write_text(str(self.server_port))

server = Server((os.environ["TROOP_ADDRESS"], int(sys.argv[1])), Health)
threading.Thread(target=server.serve_forever, daemon=True).start()
(shared / "pid.new").write_text(str(os.getpid()))
(shared / "pid.new").replace(shared / "pid")
for task in tasks():
    with task:
        (shared / task.id).touch()
        if task.body == "hang":
            time.sleep(1000)
        task.deliver(task.body)
"""
SETUP = """#!/bin/sh
python3 $TROOP_FILES/worker.py PORT > $TROOP_SHARED/log 2>&1 < /dev/null &
echo "$TROOP_STAGE $TROOP_DEPLOYMENT $TROOP_WORK"
"""
RESTART = """#!/bin/sh
read -r pid < $TROOP_SHARED/pid
kill $pid
while kill -0 $pid 2> /dev/null; do sleep 0.05; done
echo "$TROOP_PHASE for $TROOP_REPAIR"
echo "$TROOP_REPAIR" >> $TROOP_SHARED/repairs
python3 $TROOP_FILES/worker.py PORT > $TROOP_SHARED/log 2>&1 < /dev/null &
"""


class Standing:
    """A watched node with a worker."""

    def __init__(self, node: Node, port: int) -> None:
        self.node, self.account, self.shared = node, node.account, node.home / "shared"
        self.account.queue.lease = 300
        facts = {"format": "troop.queue/1", "url": URL, "host": f"sqs.{REGION}.amazonaws.com", "endpoints": ["vpce-1"]}
        results = {"bucket": BUCKET, "region": REGION, "results": names.work_results_prefix(RUN)}
        self.account.put(key("queue.json"), {**facts, **results, "lease": 300})
        self.order()
        health = {"port": port, "path": "/health", "every": 1, "timeout": 30, "grace": 0}
        heal = {"after": 3, "do": "restart", "script": "restart.sh", "at_most": "0.1"}
        node.benchmark(
            {"name": "setup", "script": "setup.sh", "timeout": 300},
            files={
                "setup.sh": SETUP.replace("PORT", str(port)),
                "restart.sh": RESTART.replace("PORT", str(port)),
                "worker.py": WORKER,
            },
            standing=True,
            queue={"lease": 300, "tries": 5},
            fleets={ROLE: {"health": health, "heal": heal}},
        )

    def boot(self) -> None:
        """Boots it, until it is ready."""
        self.node.boot(standing=True)
        eventually(lambda: "waiting until the fleet ends" in self.node.console())

    def order(self, seconds: float = 3600, drain: tuple[str, ...] = (), repair: str = "") -> None:
        document = {"format": "troop.orders/1", "expires_at": time.time() + seconds, "drain": drain}
        self.account.put(key("orders.json"), {**document, "restart": {ID: repair} if repair else {}})

    def report(self) -> dict[str, Any]:
        document: dict[str, Any] = self.account.document(key(f"reports/{ID}.json"))
        return document

    def result(self, task: str) -> bytes | None:
        return self.account.objects.get(f"{BUCKET}/{names.work_result_key(RUN, task)}")

    def pid(self) -> int:
        return int((self.shared / "pid").read_text())


@pytest.fixture(params=[sys.executable])
def standing(account: FakeAccount, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Standing]:
    """A node, which a test may give another Python."""
    node = Node(account, tmp_path, request.param)
    one = Standing(node, _free_port())
    yield one
    node.end()
    if (one.shared / "pid").exists() and alive(one.pid()):
        os.kill(one.pid(), 9)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


@pytest.mark.parametrize("standing", [sys.executable, *filter(None, [python39()])], indirect=True)
def test_a_watched_node_works_reports_and_restarts(standing: Standing) -> None:
    node = standing.node
    standing.account.queue.lease = 20  # what a worker that is killed was about to receive comes back after it
    node.boot(standing=True)
    standing.account.send(one="a")
    eventually(lambda: standing.result("one") == b"a")
    report = eventually(lambda: (now := standing.report()) and now["work"]["done"] == 1 and now)
    assert (report["format"], report["id"], report["role"]) == ("troop.report/1", ID, ROLE)
    assert report["health"]["status"] == "ok"
    assert not report["draining"]
    setup = gzip.decompress(node.output("setup")).decode()
    assert setup == f"test troop-test {node.home / 'work'}\n"
    (standing.shared / "bad").touch()
    failing = eventually(lambda: (now := standing.report())["health"]["failures"] and now)
    assert failing["health"]["checks"][0]["name"] == "disk"
    before = standing.pid()
    (standing.shared / "bad").unlink()
    standing.order(repair="repair-1")
    repaired = eventually(lambda: (now := standing.report()["repair"]) and now["code"] is not None and now)
    assert (repaired["id"], repaired["code"]) == ("repair-1", 0)
    eventually(lambda: standing.pid() != before)
    eventually(lambda: key(f"output/restart/{ID}.log.gz") in standing.account.objects)
    assert gzip.decompress(node.output("restart")) == b"restart for repair-1\n"
    standing.account.send(two="b")
    eventually(lambda: standing.result("two") == b"b")
    assert (standing.shared / "repairs").read_text() == "repair-1\n", "each order is carried out once"


def test_a_drain_lets_tasks_end_and_can_be_cancelled(standing: Standing) -> None:
    standing.boot()
    standing.account.send(slow="hang")
    eventually(lambda: (standing.shared / "slow").exists())
    standing.order(drain=(ID, "i-other"))
    report = eventually(lambda: (now := standing.report())["draining"] and now)
    assert not report["drained"]
    assert report["work"]["held"] == 1
    os.kill(standing.pid(), 9)
    eventually(lambda: standing.report()["drained"])
    standing.order()
    eventually(lambda: not standing.report()["draining"])
    assert not (standing.node.home / "work/stop").exists()


def test_spots_notice_reaches_workers_before_the_node_is_gone(standing: Standing) -> None:
    standing.account.spot = {}
    standing.boot()
    standing.account.send(slow="hang")
    eventually(lambda: (standing.shared / "slow").exists())
    interrupt(standing.account)
    assert standing.node.over() == 1
    assert standing.account.queue.is_visible("slow")
    assert not alive(standing.pid())
    report = standing.report()
    assert (report["notice"], report["draining"], report["drained"]) == (NOTICE, True, True)


def test_a_shutdown_hands_tasks_back(standing: Standing) -> None:
    standing.boot()
    standing.account.send(slow="hang")
    eventually(lambda: (standing.shared / "slow").exists())
    standing.node.terminate()
    assert standing.node.over() == 1
    assert standing.account.queue.is_visible("slow")
    assert not alive(standing.pid())
    assert standing.report()["drained"]
    assert "error" not in standing.node.registration()


def test_a_fleet_that_was_extended_keeps_a_node_that_boots_after_its_old_end(standing: Standing) -> None:
    standing.node.boot(standing=True, expires_at=int(time.time() - GRACE_SECONDS - 60))
    standing.account.send(one="a")
    eventually(lambda: standing.result("one"))
    assert "the fleet now expires at" in standing.node.console()
    assert "has expired" not in standing.node.console()


def test_an_expiry_that_has_come_in_orders_ends_the_node(standing: Standing) -> None:
    standing.boot()
    standing.account.send(slow="hang")
    eventually(lambda: (standing.shared / "slow").exists())
    standing.order(seconds=-GRACE_SECONDS - 1)
    assert standing.node.over() == 1
    assert "has expired" in standing.node.console()
    assert standing.account.queue.is_visible("slow")


def test_a_node_serves_without_orders_and_reports(standing: Standing) -> None:
    del standing.account.objects[key("orders.json")]
    standing.account.forbidden = key(f"reports/{ID}.json")
    standing.node.boot(standing=True)
    eventually(lambda: "cannot store a report" in standing.node.console())
    eventually(lambda: "cannot read the orders" in standing.node.console())
    standing.account.send(one="a")
    eventually(lambda: standing.result("one"))
    standing.account.forbidden = ""
    eventually(lambda: standing.report()["work"]["done"])
    assert standing.node.console().count("cannot store a report") == 1


# ------------------------------------------------------------------ the keeper by itself


class Alone:
    """A keeper whose workflow is this test."""

    def __init__(self, tmp_path: Path, *, is_watched: bool = True) -> None:
        (tmp_path / "boot.json").write_text(json.dumps(_BOOT))
        (tmp_path / "work").mkdir()
        identity = Identity("i-1", "us-west-2a", "c7g.large", "127.0.0.1", "ami-1")
        self.now, self.fetched, self.reports = 1000.0, 0, list[dict[str, Any]]()
        self.orders: dict[str, Any] = {"format": "troop.orders/1", "expires_at": 5000}
        self.refuses = False
        self.moments: list[float] = []
        expiry = Expiry(5000, lambda: self.now)
        place = Place(tmp_path, boots.read(tmp_path / "boot.json"), identity)
        self.keeper = Keeper(
            place, self.fetch, self.put, expiry, lambda: None, is_watched=is_watched, clock=lambda: self.now
        )
        self.expiry = expiry

    def fetch(self) -> bytes:
        self.fetched += 1
        if self.refuses:
            raise OSError("S3 answered 503")
        return json.dumps(self.orders).encode()

    def put(self, body: bytes) -> None:
        if self.refuses:
            raise OSError("S3 answered 503")
        self.moments.append(self.now)
        self.reports.append(json.loads(body))

    def run(self, seconds: float) -> None:
        """Steps twice a second."""
        for _ in range(int(seconds * 2)):
            self.now += 0.5
            self.keeper.step(self.now)


_BOOT = {
    "format": "troop.boot/1", "bucket": "b", "region": "r", "run": RUN, "cell": "c001", "role": "workers",
    "agent_sha256": "0", "expires_at": 5000, "standing": True,
}  # fmt: skip


def test_a_watched_node_sends_few_requests(tmp_path: Path) -> None:
    alone = Alone(tmp_path)
    alone.keeper.serve(None)
    alone.run(3600)
    assert 320 <= alone.fetched <= 400
    assert 58 <= len(alone.reports) <= 68


def test_another_node_only_reads_orders_and_rarely(tmp_path: Path) -> None:
    alone = Alone(tmp_path, is_watched=False)
    alone.run(3600)
    assert 10 <= alone.fetched <= 14
    alone.keeper.close()
    assert alone.reports == []


def test_changes_are_reported_at_once_and_failures_repeated(tmp_path: Path) -> None:
    alone = Alone(tmp_path)
    alone.keeper.serve(None)
    alone.run(20)
    assert len(alone.reports) == 1
    alone.keeper.begin_repair("r1")
    alone.run(0.5)
    assert alone.reports[-1]["repair"] == {"id": "r1", "at": 1020.0, "code": None}
    alone.refuses = True
    alone.keeper.end_repair("r1", 3)
    alone.run(30)
    assert len(alone.reports) == 2
    alone.refuses = False
    alone.run(keeping.RETRY_SECONDS + 1)
    assert alone.reports[-1]["repair"]["code"] == 3


def test_a_failing_node_reports_at_once_when_it_may_be_repaired(tmp_path: Path) -> None:
    alone = Alone(tmp_path)
    watch = HealthWatch("127.0.0.1", None, None, lambda: None, lambda: False, lambda: None, fail_after=3)
    alone.keeper.serve(watch)
    alone.run(20)
    for failures in range(1, 6):
        watch.condition = Condition(FAIL, failures)
        alone.run(5)
    assert [one["health"]["failures"] for one in alone.reports] == [0, 1, 3]
    assert alone.moments == [1000.5, 1020.5, 1030.5]


def test_a_repair_is_carried_out_once(tmp_path: Path) -> None:
    alone = Alone(tmp_path)
    alone.orders["restart"] = {"i-1": "r1", "i-2": "r2"}
    alone.run(60)
    assert alone.keeper.next_repair(0) == "r1"
    assert alone.keeper.next_repair(0) is None


def test_orders_move_the_end_also_of_the_scheduled_shutdown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone, calls = Alone(tmp_path), list[list[str]]()
    monkeypatch.delenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", raising=False)
    monkeypatch.setattr("subprocess.run", lambda words, check: calls.append(words))
    alone.run(30)
    assert calls == [], "nothing has changed"
    alone.orders["expires_at"] = 9000
    alone.run(30)
    assert calls == [["shutdown", "-c"], ["shutdown", "-h", calls[1][2]]]
    assert (9000 + GRACE_SECONDS - alone.now) / 60 <= int(calls[1][2]) <= (9000 + GRACE_SECONDS - 1030) / 60 + 1
    assert alone.expiry._until == 9000 + GRACE_SECONDS


@pytest.mark.parametrize("orders", [{}, [], {"format": "troop.orders/2"}, {"format": "troop.orders/1"}])
def test_orders_that_cannot_be_read_change_nothing(tmp_path: Path, orders: Any) -> None:
    alone = Alone(tmp_path)
    alone.orders = {"format": "troop.orders/1", "expires_at": 6000, "drain": ["i-1"]}
    alone.run(1)
    alone.orders = orders
    alone.run(60)
    assert alone.keeper.folder.reason == "drain"
    assert alone.expiry._until == 6000 + GRACE_SECONDS


def test_orders_are_for_single_nodes() -> None:
    body = b'{"format": "troop.orders/1", "expires_at": 9, "drain": ["i-1"], "restart": {"i-2": "r"}}'
    assert read_orders(body, "i-1") == Orders(9, True, None)
    assert read_orders(body, "i-2") == Orders(9, False, "r")
