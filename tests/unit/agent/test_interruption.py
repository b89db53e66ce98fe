"""A node on spot: what it does when EC2 takes it back, or expects to."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from agent import spot
from tests.patience import eventually
from tests.unit.agent.fake_account import FakeAccount
from tests.unit.agent.node import ID, Node, alive, key
from troop.measure import summary as summaries

NOTICE = {"action": "terminate", "time": "2026-11-21T15:03:12Z"}
REASON = "spot interruption: terminate at 2026-11-21T15:03:12Z"
REBALANCE = {"noticeTime": "2026-11-21T15:01:00Z"}
WRITES_ITS_PID = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(300)"


def interrupt(account: FakeAccount) -> None:
    assert account.spot is not None
    account.spot["spot/instance-action"] = json.dumps(NOTICE)


def interruption(node: Node) -> dict[str, Any]:
    document: dict[str, Any] = node.account.document(key(f"interruptions/{ID}.json"))
    return document


def begin(node: Node, script: str = "", **spot: str) -> None:
    node.account.spot = dict(spot)
    node.benchmark({"name": "measure"}, files={"run.py": script})
    node.join()


def test_a_notice_ends_the_script_and_is_passed_on(account: FakeAccount, node: Node) -> None:
    begin(node, WRITES_ITS_PID)
    node.barrier("measure", measured_seconds=50)
    pid = node.home / "phases" / "measure" / "pid"
    eventually(lambda: pid.exists() and pid.read_text())
    interrupt(account)
    summary = summaries.parse(node.summary("measure"))
    assert (summary.outcome, summary.reason, summary.interruption) == ("lost", REASON, NOTICE)
    assert not alive(int(pid.read_text()))
    document = interruption(node)
    assert {name: document[name] for name in ("format", "id", *NOTICE)} == {
        "format": "troop.interruption/1", "id": ID, **NOTICE,
    }  # fmt: skip
    assert node.over() == 1


def test_a_node_that_waits_passes_its_notice_on(account: FakeAccount, node: Node) -> None:
    begin(node)
    interrupt(account)
    assert node.summary("measure")["reason"] == REASON
    assert interruption(node)["action"] == "terminate"
    assert node.over() == 1
    assert "error" not in node.registration()


def test_one_that_has_not_registered_is_no_failure(account: FakeAccount, node: Node) -> None:
    """Nothing of it counts: another one comes in its place."""
    account.spot = {}
    interrupt(account)
    node.benchmark({"name": "measure"}, files={"run.py": ""}, artifacts=[{"name": "a", "sha256": "0" * 64}])
    node.boot()
    assert interruption(node)["id"] == ID
    assert node.over() == 1
    assert key(f"nodes/{ID}.json") not in account.objects


def test_rebalance_recommendation_is_only_reported(node: Node) -> None:
    begin(node, **{"events/recommendations/rebalance": json.dumps(REBALANCE)})
    eventually(lambda: "EC2 recommended a rebalance" in node.console())
    node.barrier("measure")
    summary = summaries.parse(node.summary("measure"))
    assert (summary.outcome, summary.interruption) == ("ok", None)
    assert summary.rebalance_recommended_at == REBALANCE["noticeTime"]
    assert node.over() == 0


# The watch by itself


class _Service:
    """A metadata service with answers by path, look by look; a path without any has nothing."""

    def __init__(self, cycle: str, *answers: dict[str, str]) -> None:
        self._cycle, self._answers = cycle, list(answers)

    def read(self, path: str) -> str | None:
        if path == "meta-data/instance-life-cycle":
            return self._cycle
        answer = self._answers[0].get(path)
        if path == "meta-data/spot/instance-action" and len(self._answers) > 1:
            self._answers.pop(0)
        return answer


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(spot, "POLL_SECONDS", 0.0)
    monkeypatch.setattr("signal.pthread_kill", lambda thread, number: None)

    def watch(*answers: dict[str, str], cycle: str = "spot") -> tuple[spot.Watch, list[dict[str, str]]]:
        notices: list[dict[str, str]] = []
        spot_watch = spot.Watch(notices.append)
        spot_watch._metadata = _Service(cycle, *answers)  # type: ignore[assignment]
        spot_watch._watch()
        return spot_watch, notices

    return watch


def test_recommendation_has_its_moment_and_a_notice_ends_the_watch(watched: Any) -> None:
    rebalance = {"meta-data/events/recommendations/rebalance": json.dumps(REBALANCE)}
    watch, notices = watched({}, rebalance, {"meta-data/spot/instance-action": json.dumps(NOTICE)})
    assert watch.rebalance_at == REBALANCE["noticeTime"]
    assert watch.notice == NOTICE
    assert notices == [NOTICE]


def test_nobody_looks_on_demand(watched: Any) -> None:
    watch, _ = watched({"meta-data/spot/instance-action": json.dumps(NOTICE)}, cycle="on-demand")
    assert watch.notice is None


@pytest.mark.parametrize("text", ["", "terminate", "[]", "{}"])
def test_a_notice_that_cannot_be_read_is_one(watched: Any, text: str) -> None:
    watch, notices = watched({"meta-data/spot/instance-action": text})
    assert watch.notice == notices[0] == {"action": "unknown", "time": "unknown"}


def test_expired_token_and_closed_connection_are_renewed(account: FakeAccount) -> None:
    account.spot = {}
    service = spot.Metadata(account.metadata_of(ID))
    assert service.read("meta-data/instance-life-cycle") == "spot"
    account.token = "another"
    assert service.read("meta-data/instance-life-cycle") == "spot"
    assert service._web._connection is not None
    assert service._web._connection.sock is not None
    service._web._connection.sock.shutdown(socket.SHUT_RDWR)
    assert service.read("meta-data/instance-life-cycle") == "spot"
    assert service.read("meta-data/spot/instance-action") is None
