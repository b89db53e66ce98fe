"""Fleets whose nodes report their health: repairs and notifications, wherever a check ends or overlaps another one."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

from tests.unit.account.account import Call, Cut, Intercept, before, calls, refusing
from tests.unit.account.benches import CELL, WRITER
from tests.unit.account.fast_moto import calls_are_usual
from tests.unit.account.standing import FILE, TOPICS, Stand
from tests.unit.bench.living.build import check, document
from tests.unit.shared.aws.test_metrics import HERE, written
from troop.bench.definition import names
from troop.bench.definition.living import REPLACE, RESTART, Grade, RoleDigest
from troop.bench.definition.standing import Standing
from troop.bench.flows.fleet_view import standing_of
from troop.bench.living import findings
from troop.bench.records.record import RunStatus

HEALTH = {"port": 8080, "every": "10s", "grace": "2m"}
FILES = {name: base64.b64encode(b"#!/bin/sh\n").decode() for name in ("setup.sh", "restart.sh")}
RESTARTS = {"after": 3, "do": "restart", "script": "restart.sh", "at_most": 0.5}
FULL = check("disk", value=97, threshold=90, detail="full", todo="remove files")


class Watch:
    """A fleet whose nodes report; S3 dates objects by the clock of the account.

    Attributes:
        dates: moments of objects by key.
        published: what the topics got.
    """

    def __init__(self, stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stand, self.dates, self.published = stand, dict[str, datetime](), list[dict[str, Any]]()
        self.run = ""
        real = BaseClient._make_api_call  # type: ignore[attr-defined]

        def call(client: Any, operation: str, parameters: dict[str, Any]) -> Any:
            answer = real(client, operation, parameters)
            if operation == "PutObject":
                self.dates[parameters["Key"]] = stand.account.clock()
            elif operation == "ListObjectsV2":
                for one in answer.get("Contents", []):
                    one["LastModified"] = self.dates.get(one["Key"], stand.account.clock())
            elif operation == "GetObject":
                answer["LastModified"] = self.dates.get(parameters["Key"], stand.account.clock())
            elif operation == "Publish":
                self.published.append(parameters)
            return answer

        monkeypatch.setattr(BaseClient, "_make_api_call", call)
        calls_are_usual((self, "dates", "published", "run"))

    def launch(self, count: int = 2, heal: dict[str, Any] | None = None) -> Watch:
        """A fleet whose grace is over, and whose nodes report that they are well."""
        role = {**FILE["fleets"]["workers"], "count": count, "health": HEALTH} | ({"heal": heal} if heal else {})
        files = FILES if heal and "script" in heal else {"setup.sh": FILES["setup.sh"]}
        self.run = self.stand.ready(definition={**FILE, "fleets": {"workers": role}}, files=files)
        self.later(minutes=5)
        return self

    @property
    def nodes(self) -> list[str]:
        return self.stand.nodes(self.run)

    @property
    def standing(self) -> Standing:
        return standing_of(self.stand.runs.get(self.run))

    def report(self, node: str, status: str = "ok", failures: int = 0, *checks: dict[str, Any], **more: Any) -> None:
        health = {"status": status, "failures": failures, "checks": list(checks)}
        self.put(node, document(id=node, health=health, **more))

    def put(self, node: str, report: Any) -> None:
        self.stand.bench.put(f"{names.reports_prefix(self.run, CELL)}{WRITER}{node}.json", report)

    def later(self, *silent: str, **time: float) -> None:
        """All other nodes report that they are well."""
        self.stand.account.clock.forward(**time)
        for node in self.nodes:
            if node not in silent:
                self.report(node)

    def break_down(self, *nodes: str) -> None:
        for node in nodes:
            self.report(node, "fail", 3, check())

    def keep(self) -> None:
        assert self.stand.keep(self.run) == "waiting"

    @property
    def orders(self) -> Any:
        return self.stand.bench.get(names.orders_key(self.run, CELL))

    @property
    def marked(self) -> list[str]:
        """Nodes that Auto Scaling is to replace."""
        instances = self.stand.group(self.run)["Instances"]
        return [one["InstanceId"] for one in instances if one["HealthStatus"] == "Unhealthy"]


@pytest.fixture
def watch(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> Watch:
    return Watch(stand, monkeypatch)


def test_a_failing_node_is_ordered_to_restart_once(watch: Watch, capsys: pytest.CaptureFixture[str]) -> None:
    watch.launch(heal=RESTARTS)
    sick, well = watch.nodes
    watch.break_down(sick)
    capsys.readouterr()
    watch.keep()
    (repair,) = watch.standing.repairs
    assert (repair.node, repair.do, repair.number, repair.reason) == (sick, RESTART, 1, "answer failed 3 times")
    assert watch.orders["restart"] == {sick: repair.id}
    digest = watch.standing.digest["workers"]
    assert (digest.ok, digest.fail, digest.checks[0].node_ids) == (1, 1, (sick,))
    assert ({**HERE, "kind": "node-restarted"}, {"Repairs": [1]}) in written(capsys)
    watch.keep()
    assert watch.standing.repairs == (repair,)
    assert written(capsys) == []
    at = watch.stand.account.clock().timestamp()
    watch.report(sick, "fail", 5, check(), repair={"id": repair.id, "at": at, "code": None})
    watch.keep()
    assert watch.orders["restart"] == {}
    assert watch.marked == []
    assert well in watch.nodes


def test_a_silent_node_is_replaced(watch: Watch, capsys: pytest.CaptureFixture[str]) -> None:
    watch.launch(heal=RESTARTS)
    dead = watch.nodes[1]
    watch.keep()
    watch.later(dead, minutes=4)
    capsys.readouterr()
    watch.keep()
    assert watch.marked == [dead]
    assert watch.standing.digest["workers"].silent == 1
    assert ({**HERE, "kind": "node-replaced"}, {"Repairs": [1]}) in written(capsys)
    assert [(one.node, one.do) for one in watch.standing.repairs] == [(dead, REPLACE)]
    watch.later(dead, minutes=1)
    watch.keep()
    assert len(watch.standing.repairs) == 1
    assert watch.standing.digest["workers"] == RoleDigest(ok=1)


def test_the_limit_holds_and_calls_a_person(watch: Watch, capsys: pytest.CaptureFixture[str]) -> None:
    watch.launch(count=4, heal={"at_most": 0.5})
    for minute in range(1, 4):
        watch.later(minutes=1)
        watch.break_down(*watch.nodes)
        capsys.readouterr()
        watch.keep()
        assert (HERE, {"HealingLimited": [1]}) in written(capsys), minute
        assert len(watch.standing.repairs) == len(watch.marked) == 2


def test_a_malformed_report_stops_nothing(watch: Watch) -> None:
    watch.launch(count=3, heal={"at_most": 1})
    sick, odd, well = watch.nodes
    watch.break_down(sick)
    watch.put(odd, {"format": "troop.report/1", "health": {"failures": "many"}})
    watch.stand.bench.put(f"{names.reports_prefix(watch.run, CELL)}{WRITER}i-0123456789abcdef0.json", {})
    watch.keep()
    digest = watch.standing.digest["workers"]
    assert (digest.ok, digest.fail) == (1, 2)
    assert watch.marked == [sick]
    (report,) = [one for one in digest.checks if one.name == "report"]
    assert (report.node_ids, "failures is 'many'" in report.detail) == ((odd,), True)
    assert well not in watch.marked


def cutting(operation: str, acted: bool) -> Intercept:
    """Ends a check at its first call of an operation: before it acts, or after it, its answer lost."""

    def intercept(number: int, name: str, call: Call) -> Any:
        if name == operation:
            if acted:
                call()
            raise Cut(operation)
        return call()

    return intercept


@pytest.mark.parametrize("acted", [False, True])
@pytest.mark.parametrize(
    ("heal", "operation"),
    [
        ({"at_most": 1}, "UpdateItem"),
        ({"at_most": 1}, "SetInstanceHealth"),
        (RESTARTS, "UpdateItem"),
        (RESTARTS, "PutObject"),
    ],
)
def test_a_check_that_ends_anywhere_neither_loses_nor_repeats_a_repair(
    watch: Watch, monkeypatch: pytest.MonkeyPatch, heal: dict[str, Any], operation: str, acted: bool
) -> None:
    watch.launch(heal=heal)
    watch.keep()
    sick = watch.nodes[0]
    watch.break_down(sick)
    with calls(monkeypatch, cutting(operation, acted)), pytest.raises(Cut):
        watch.keep()
    for _ in range(2):
        watch.keep()
    (repair,) = watch.standing.repairs
    assert repair.node == sick
    if heal is RESTARTS:
        assert watch.orders["restart"] == {sick: repair.id}
    else:
        assert watch.marked == [sick]


def test_only_one_of_overlapping_checks_decides(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the first check is about to claim, another one sees a second node fail, and uses up the limit."""
    watch.launch(count=4, heal={"at_most": 0.25})
    first, second = watch.nodes[:2]
    watch.break_down(first)

    def other() -> None:
        watch.break_down(second)
        watch.report(first)
        watch.keep()

    with calls(monkeypatch, before("UpdateItem", other)):
        watch.keep()
    assert [one.node for one in watch.standing.repairs] == [second]
    assert watch.marked == [second]


def test_a_claim_whose_check_ended_is_carried_out_by_the_next(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    watch.launch(heal={"at_most": 1})
    sick = watch.nodes[0]
    watch.break_down(sick)
    with calls(monkeypatch, refusing("SetInstanceHealth", "Throttling")):
        watch.keep()
    (repair,) = watch.standing.repairs
    assert watch.marked == []
    watch.report(sick)
    watch.keep()
    assert (watch.marked, watch.standing.repairs) == ([sick], (repair,))


def test_people_are_notified_once_of_each_finding(watch: Watch) -> None:
    watch.launch()
    watch.report(watch.nodes[0], "fail", 3, FULL)
    watch.report(watch.nodes[1], "warn", 0, check("clock", "warn", todo="set it"))
    for _ in range(2):
        watch.keep()
    by_topic = {one["TopicArn"]: one for one in watch.published}
    assert len(watch.published) == len(by_topic) == 2
    act_now, warning = by_topic[TOPICS["ACT_NOW"]], by_topic[TOPICS["WARNING"]]
    assert act_now["Subject"] == "Troop: disk fails on workers of the fleet workers"
    assert "What to do: remove files" in act_now["Message"]
    assert f"troop fleet status {watch.run}" in act_now["Message"]
    assert warning["Subject"] == "Troop: clock warns on workers of the fleet workers"
    assert {key: one.status for key, one in watch.standing.announced.items()} == {
        "workers/disk": Grade.FAIL,
        "workers/clock": Grade.WARN,
    }


def test_one_failed_request_notifies_nobody(watch: Watch) -> None:
    watch.launch()
    watch.report(watch.nodes[0], "fail", 2, FULL)
    watch.keep()
    assert watch.published == []
    assert watch.standing.digest["workers"].fail == 1


def test_a_message_that_was_not_accepted_is_sent_later(
    watch: Watch, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    watch.launch()
    watch.report(watch.nodes[0], "fail", 3, FULL)
    error = refusing("Publish", "Throttling")
    with calls(monkeypatch, error):
        watch.keep()
    assert (HERE, {"StepsFailed": [1]}) in written(capsys), "the workflow goes on, and an alarm counts it"
    watch.keep()
    assert watch.published == [], "the first check may still be at it"
    watch.stand.account.clock.forward(seconds=findings.LEASE.total_seconds())
    watch.later()
    watch.report(watch.nodes[0], "fail", 3, FULL)
    for _ in range(2):
        watch.keep()
    assert len(watch.published) == 1


def test_values_of_checks_are_metrics(watch: Watch, capsys: pytest.CaptureFixture[str]) -> None:
    watch.launch()
    for node, value in zip(watch.nodes, (3, 7.5), strict=True):
        watch.report(node, "ok", 0, check("backlog", "ok", value=value))
    capsys.readouterr()
    watch.keep()
    dimensions = {**HERE, "fleet": "workers", "check": "backlog"}
    assert written(capsys) == [(dimensions, {"FleetHealth": [3.0, 7.5]})]


def test_health_is_checked_at_least_each_minute(watch: Watch) -> None:
    watch.launch()
    watch.later(hours=5)
    assert watch.stand.step(watch.run, "keep")["wait_seconds"] == 60


def test_orders_follow_the_record_and_no_end_moves_back(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stand.ready()
    key = names.orders_key(run, CELL)
    expires = int(stand.runs.get(run).expires_at.timestamp())
    assert stand.bench.get(key) == {"format": "troop.orders/1", "expires_at": expires, "drain": [], "restart": {}}
    stand.bench.put(key, stand.bench.get(key) | {"expires_at": expires + 3600, "drain": ["i-1"]})
    stand.keep(run)
    assert stand.bench.get(key)["expires_at"] == expires + 3600
    assert stand.bench.get(key)["drain"] == []
    with calls(monkeypatch) as operations:
        stand.keep(run)
    assert "PutObject" not in operations, "nothing has changed"


def test_a_closed_fleet_is_neither_repaired_nor_announced(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    watch.launch(heal={"at_most": 1})
    watch.break_down(*watch.nodes)

    def close() -> None:
        watch.stand.runs.close(watch.run, RunStatus.STOPPED, None, watch.stand.account.clock())

    with calls(monkeypatch, before("UpdateItem", close)):
        watch.stand.keep(watch.run)
    assert (watch.marked, watch.published, watch.standing.repairs) == ([], [], ())


@pytest.mark.parametrize("operation", ["ListObjectsV2", "GetObject"])
def test_refused_reports_end_the_check_as_other_refusals_do(
    watch: Watch, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    watch.launch()
    watch.stand.account.clock.forward(hours=1)
    with calls(monkeypatch, refusing(operation, "AccessDenied")), pytest.raises(ClientError):
        watch.keep()
    assert watch.marked == [], "nobody knows that they are silent"
