"""Fleets with a queue: tasks, sizes that follow them, and nodes that finish their tasks before they go."""

from __future__ import annotations

import json
import os
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.unit.account.account import Call, Intercept, before, calls, refusing
from tests.unit.account.asking import ask, get
from tests.unit.account.benches import CELL, WRITER
from tests.unit.account.standing import FILE, Stand
from tests.unit.shared.aws.test_metrics import HERE, written
from troop.bench.aws.queue_ages import QueueAges
from troop.bench.definition import names
from troop.bench.living.draining import PATIENCE
from troop.bench.wiring import services
from troop.shared import moments
from troop.shared.aws.alarm_topics import AlarmTopics
from troop.shared.aws.clients import client
from troop.shared.wiring import environment

ROOM = {"queues": True, "max_nodes": 200, "max_nodes_total": 200}
WORKERS = {"count": 2, "instance_type": "c7g.large", "zones": 2}
SCALE = {"backlog_per_node": 2, "min": 0, "max": 12, "idle_after": "10m"}
QUEUED = {**FILE, "queue": {"lease": "5m"}, "fleets": {"workers": WORKERS}}
SCALED = {**QUEUED, "fleets": {"workers": {**WORKERS, "scale": SCALE}}}
FAILED = (HERE, {"StepsFailed": [1]})

pytestmark = pytest.mark.parametrize("settings", [ROOM], indirect=True)


class Workers:
    """The workers of a fleet, and what its queue has."""

    def __init__(self, stand: Stand, run: str) -> None:
        self.stand, self.run = stand, run
        self.url = client("sqs").get_queue_url(QueueName=names.queue_name(run, CELL))["QueueUrl"]

    def report(self, *nodes: str, held: int = 0, status: str = "ok") -> None:
        """All nodes, or some, report that they follow their orders, and hold so many tasks."""
        drains = self.drains()
        for node in nodes or self.stand.nodes(self.run):
            now = self.stand.account.clock().timestamp()
            work = {"done": 0, "held": held, "idle_since": None if held else now}
            document = {
                "format": "troop.report/1", "id": node, "role": "workers", "at": now, "work": work,
                "health": {"status": status},
                "draining": node in drains, "drained": node in drains and not held,
            }  # fmt: skip
            self.stand.bench.put(f"{names.reports_prefix(self.run, CELL)}{WRITER}{node}.json", document)

    def drains(self) -> set[str]:
        return set(self.stand.bench.get(names.orders_key(self.run, CELL))["drain"])

    def empty(self) -> None:
        client("sqs").purge_queue(QueueUrl=self.url)

    def pass_time(self, **time: int) -> tuple[int, int]:
        """Checks the fleet after some time. Returns the size of its group, and its instances."""
        self.stand.account.clock.forward(**time)
        assert self.stand.keep(self.run) == "waiting"
        return self.stand.size(self.run)[1:]


def tasks(number: int, size: int = 1) -> dict[str, Any]:
    return {"key": "job", "tasks": [{"body": "x" * size} for _ in range(number)]}


def submit(run: str, body: dict[str, Any]) -> Any:
    status, answer = ask("POST", f"/fleets/{run}/tasks", body)
    assert status == 200, answer
    return answer


def at_work(stand: Stand, definition: dict[str, Any] = SCALED) -> Workers:
    run = stand.ready(definition=definition)
    return Workers(stand, run)


def test_a_fleet_grows_in_one_step_and_goes_by_draining(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("troop.bench.aws.standing_groups.AT_ONCE", 6)
    workers = at_work(stand)
    run = workers.run
    assert submit(run, tasks(20)) == {"sent": 20, "refused": [], "submitted": 20}
    assert stand.woken == [], "a check has just been"
    stand.account.clock.forward(seconds=10)
    submit(run, tasks(6))
    assert stand.woken == [{"step": "keep", "run": run}]
    with calls(monkeypatch) as operations:
        assert workers.pass_time(minutes=1) == (12, 12)
    counted = Counter(operations)
    assert counted["UpdateAutoScalingGroup"] == 1
    assert sum(count for name, count in counted.items() if name not in ("GetObject", "ListObjectsV2", "PutObject")) < 40
    assert stand.runs.get(run).standing.scaled_by == "scale"
    assert stand.runs.reservations.read().nodes == {run: 12}
    stand.register(run)
    workers.empty()
    assert workers.pass_time(minutes=1) == (12, 12)
    workers.report()
    assert workers.pass_time(minutes=9) == (12, 12), "they may be needed again"
    assert workers.drains() == set()
    assert workers.pass_time(minutes=1) == (12, 12), "first they finish"
    assert len(workers.drains()) == 12
    assert stand.runs.reservations.read().nodes == {run: 12}, "they still exist"
    workers.report(*stand.nodes(run)[:9])
    with calls(monkeypatch) as operations:
        assert workers.pass_time(seconds=20) == (3, 3)
    assert (operations.count("SetInstanceProtection"), operations.count("UpdateAutoScalingGroup")) == (2, 1)
    workers.report()
    assert workers.pass_time(seconds=20) == (0, 0)
    workers.pass_time(seconds=20)
    workers.pass_time(seconds=20)
    assert stand.runs.reservations.read().nodes == {run: 0}
    work = stand.get_fleet(run)["work"]
    assert (work["submitted"], work["done"], work["waiting"]) == (26, 26, 0)
    assert work["cost_per_job"] > 0
    assert work["done_an_hour"] > 0


def test_a_fleet_starts_without_nodes_and_grows_for_its_first_tasks(stand: Stand) -> None:
    definition = {**SCALED, "fleets": {"workers": {**WORKERS, "count": 0, "scale": SCALE}}}
    estimate = ask("POST", "/fleets/estimate", {"definition": definition, "files": {"setup.sh": ""}})[1]
    assert estimate["problems"] == []
    assert [one["what"] for one in estimate["cells"][0]["items"]] == ["endpoint of the queue", "Troop's own calls"]
    assert any("with 12 nodes all the time" in one for one in estimate["warnings"])
    run = stand.launched(definition=definition)
    assert stand.get_fleet(run)["fleet"]["seen_at"] is not None
    assert stand.size(run) == (0, 0, 0)
    assert stand.keep(run) == "waiting"
    assert stand.runs.cells.get(run, CELL).phase == names.STANDING
    workers = Workers(stand, run)
    submit(run, tasks(8))
    assert workers.pass_time(minutes=1) == (4, 4)
    assert stand.runs.reservations.read().nodes == {run: 4}
    stand.tear_down(run)
    assert stand.get_fleet(run)["fleet"]["cost"]["amount"] > 0


def test_no_figures_once_tasks_may_have_expired(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQS deletes tasks after 14 days, and they then look as if they were done."""
    workers, subjects = at_work(stand, QUEUED), list[str]()
    ages = iter([60, 12 * 86_400, 12 * 86_400 + 1, 60, 60])
    monkeypatch.setattr(QueueAges, "oldest", lambda *_: next(ages))
    monkeypatch.setattr(AlarmTopics, "send", lambda _, subject, text, act_now: subjects.append(f"{act_now} {subject}"))
    submit(workers.run, tasks(4))
    (received,) = client("sqs").receive_message(QueueUrl=workers.url)["Messages"]
    client("sqs").delete_message(QueueUrl=workers.url, ReceiptHandle=received["ReceiptHandle"])
    workers.pass_time(minutes=0)
    shown = []
    for _ in range(3):
        workers.pass_time(minutes=6)
        work = stand.get_fleet(workers.run)["work"]
        shown.append((work["may_lack_tasks"], work["done_an_hour"] is None, work["cost_per_job"] is None))
    assert shown == [(False, False, False), (True, True, True), (True, True, True)]
    assert subjects == ["False Troop: age warns on the queue of the fleet workers"]
    with calls(monkeypatch, denying("GetQueueAttributes")):
        workers.pass_time(minutes=1)
    workers.pass_time(minutes=1)
    assert stand.get_fleet(workers.run)["work"]["may_lack_tasks"], "it stays beyond a time without counts"


def test_many_callers_at_a_time_wake_a_fleet_once(stand: Stand) -> None:
    run = at_work(stand).run
    for _ in range(3):
        stand.account.clock.forward(seconds=6)
        for _ in range(4):
            submit(run, tasks(1))
    assert stand.woken == [{"step": "keep", "run": run}] * 3


def test_growth_stops_at_the_limits_and_says_why(stand: Stand) -> None:
    definition = {**SCALED, "fleets": {"workers": {**WORKERS, "scale": {**SCALE, "max": 200}}}, "budget": 4}
    workers = at_work(stand, definition)
    submit(workers.run, tasks(100))
    size, _ = workers.pass_time(minutes=1)
    assert 2 < size < 12, "the budget pays for that"
    ((withheld),) = get("/fleets")["fleets"][0]["withheld"]
    assert withheld["role"] == "workers"
    assert f"needs 50 nodes, but limits allow {size}: at most {size}" in withheld["reason"]
    assert "its budget is $4.00" in withheld["reason"]
    workers.empty()
    workers.pass_time(minutes=1)
    assert stand.get_fleet(workers.run)["withheld"] == []


def test_other_fleets_leave_their_nodes_out_of_its_reach(stand: Stand) -> None:
    stand.up(key="other", definition={**FILE, "fleets": {"workers": {**WORKERS, "count": 193}}})
    workers = at_work(stand)
    submit(workers.run, tasks(100))
    assert workers.pass_time(minutes=1) == (7, 7)
    assert "at most 7 beside the 193 of other" in stand.get_fleet(workers.run)["withheld"][0]["reason"]


def test_growth_that_others_outrun_waits_for_the_next_check(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    workers = at_work(stand)
    submit(workers.run, tasks(100))
    definition = {**FILE, "fleets": {"workers": {**WORKERS, "count": 193}}}
    done: list[int] = []

    def take() -> None:
        done.append(stand.ask_up(definition, key="other")[0])

    with calls(monkeypatch, before("TransactWriteItems", take)):
        assert workers.pass_time(minutes=1) == (2, 2)
    assert done == [202]
    assert workers.pass_time(minutes=1) == (7, 7)


def test_a_role_that_follows_its_backlog_is_not_scaled_by_hand(stand: Stand) -> None:
    run = at_work(stand).run
    status, body = stand.scale(run, 5)
    assert status == 400
    assert "workers follow their backlog, from 0 to 12 nodes (fleets.workers.scale)" in body["message"]
    assert stand.get_fleet(run)["fleet"]["roles"][0]["scale"] == {
        "backlog_per_node": 2, "min": 0, "max": 12, "idle_after": 600,
    }  # fmt: skip


@pytest.mark.parametrize(("definition", "suspended"), [(QUEUED, {"AZRebalance"}), (FILE, set())])
def test_auto_scaling_moves_no_nodes_that_have_tasks(
    stand: Stand, definition: dict[str, Any], suspended: set[str]
) -> None:
    run = stand.ready(definition=definition)
    group = stand.group(run)
    assert group["NewInstancesProtectedFromScaleIn"] is bool(suspended)
    assert {one["ProcessName"] for one in group.get("SuspendedProcesses", [])} == suspended


def test_by_hand_a_fleet_with_a_queue_shrinks_by_draining(stand: Stand) -> None:
    workers = at_work(stand, {**QUEUED, "fleets": {"workers": {**WORKERS, "count": 4}}})
    run = workers.run
    busy, *others = stand.nodes(run)
    workers.report(busy, held=1)
    workers.report(*others)
    assert stand.scale(run, 0)[0] == 200
    assert workers.pass_time(seconds=1) == (4, 4)
    workers.report(*others)
    workers.report(busy, held=1)
    assert workers.pass_time(seconds=20) == (1, 1)
    assert stand.nodes(run) == [busy]
    assert stand.scale(run, 2)[0] == 200
    assert workers.pass_time(seconds=20) == (2, 2)
    assert busy in stand.nodes(run), "growth keeps it"
    assert workers.drains() == set()
    assert stand.scale(run, 0)[0] == 200
    workers.pass_time(seconds=20)
    stand.register(run)
    workers.report(held=1)
    limit = PATIENCE + timedelta(minutes=5)
    assert workers.pass_time(seconds=int(limit.total_seconds()) - 40) == (2, 2)
    workers.report(stand.nodes(run)[0], held=1, status="fail")
    assert workers.pass_time(seconds=40) == (1, 1), "the one that fails goes"
    assert workers.pass_time(hours=7) == (1, 1), "a task may take long"


def test_two_checks_at_once_drain_the_same_nodes(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    workers = at_work(stand, {**QUEUED, "fleets": {"workers": {**WORKERS, "count": 4}}})
    stand.scale(workers.run, 2)
    with calls(monkeypatch, before("ListObjectsV2", lambda: stand.keep(workers.run))):
        stand.keep(workers.run)
    assert len(workers.drains()) == 2
    assert len(stand.runs.get(workers.run).standing.drains) == 2


def test_tasks_that_cannot_be_counted_keep_nothing_else_from_its_place(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = at_work(stand, QUEUED)
    stand.scale(workers.run, 3)
    with calls(monkeypatch, refusing("GetQueueAttributes", "ServiceUnavailable")):
        assert stand.keep(workers.run) == "waiting"
        assert stand.size(workers.run)[1:] == (3, 3)
        began = moments.iso(stand.account.clock() - timedelta(hours=7))
        answer = stand.step(workers.run, "keep", began=began, execution=f"arn:x:{workers.run}-3")
    assert (answer["state"], answer["following"]) == ("again", f"{workers.run}-4"), "failures do not fill the history"


def test_a_fleet_whose_queue_is_not_allowed_any_more_keeps_its_size(
    stand: Stand, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    workers = at_work(stand)
    submit(workers.run, tasks(8))
    assert workers.pass_time(minutes=1) == (4, 4)
    end = stand.runs.get(workers.run).expires_at + timedelta(hours=1)
    with calls(monkeypatch, denying("GetQueueUrl", "GetQueueAttributes", "TagQueue")):
        capsys.readouterr()
        assert workers.pass_time(minutes=1) == (4, 4)
        assert FAILED in written(capsys)
        fleet = stand.get_fleet(workers.run)
        assert (fleet["work"], [one["role"] for one in fleet["withheld"]]) == (None, ["workers"])
        for _ in range(3):
            assert workers.pass_time(minutes=10) == (4, 4)
        assert FAILED not in written(capsys), "one warning is enough"
        assert ask("PATCH", f"/fleets/{workers.run}", {"expires_at": moments.iso(end)})[0] == 200
        workers.pass_time(minutes=1)
        assert actions(workers.run)["StartTime"] == end, "its nodes live as long as it does"
    workers.pass_time(minutes=1)
    assert stand.get_fleet(workers.run)["work"]["waiting"] == 8
    assert stand.get_fleet(workers.run)["withheld"] == []


def test_one_warning_if_the_first_count_of_an_unscaled_fleet_is_refused(
    stand: Stand, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = stand.launched(definition=QUEUED)
    with calls(monkeypatch, denying("GetQueueAttributes")):
        for warned in (True, False, False):
            capsys.readouterr()
            assert stand.keep(run) == "waiting"
            assert (FAILED in written(capsys)) is warned
    assert stand.keep(run) == "waiting"
    assert stand.get_fleet(run)["work"]["waiting"] == 0


def denying(*operations: str) -> Intercept:
    def intercept(_: int, name: str, call: Call) -> Any:
        if name in operations:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "it may not"}}, name)
        return call()

    return intercept


def test_a_check_takes_as_long_however_many_nodes_a_fleet_had(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    workers = at_work(stand, QUEUED)
    workers.report()
    with calls(monkeypatch) as operations:
        stand.keep(workers.run)
    assert operations.count("ListObjectsV2") == 1, "only that of the orders"
    stand.scale(workers.run, 3)
    workers.pass_time(minutes=1)
    with calls(monkeypatch) as operations:
        stand.keep(workers.run)
    assert operations.count("ListObjectsV2") == 3, "one of them has written nothing yet"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"key": "a", "tasks": []}, "body.tasks"),
        ({"key": "a b", "tasks": [{"body": "x"}]}, "body.key"),
        ({"key": "a", "tasks": [{"body": "x", "id": "a/b"}]}, "body.tasks.0.id"),
        ({"key": "a", "tasks": [{"body": "x", "id": "a"}, {"body": "y", "id": "a"}]}, "two tasks have the id a"),
        ({"key": "a", "tasks": [{"body": "ä" * 100_001}]}, "200,002 bytes: at most 200,000"),
        ({"key": "a", "tasks": [{"body": "x" * 190_000}] * 22}, "4,180,000 bytes together"),
        ({"key": "a", "tasks": [{"body": "x"}] * 1001}, "body.tasks"),
    ],
)
def test_tasks_beyond_what_is_allowed(stand: Stand, body: dict[str, Any], problem: str) -> None:
    status, answer = ask("POST", f"/fleets/{stand.ready(definition=QUEUED)}/tasks", body)
    assert (status, problem in answer["message"]) == (400, True), answer["message"]


def test_only_what_the_queue_accepts_counts(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    workers = at_work(stand, QUEUED)
    body = {"key": "k", "first": 7, "tasks": [{"body": "1"}, {"body": '"' * 150_000}, {"body": "3", "id": "mine"}]}
    answer = submit(workers.run, body)
    ((refused),) = answer["refused"]
    assert (refused["id"], answer["sent"], answer["submitted"]) == ("k-000008", 2, 2)
    assert "bytes" in refused["problem"]
    messages = client("sqs").receive_message(QueueUrl=workers.url, MaxNumberOfMessages=10)["Messages"]
    assert sorted(json.loads(one["Body"])["id"] for one in messages) == ["k-000007", "mine"]
    assert stand.woken == [], "no role follows the backlog"


def test_only_a_standing_fleet_with_a_queue_takes_tasks(stand: Stand) -> None:
    run = stand.ready()
    status, body = ask("POST", f"/fleets/{run}/tasks", tasks(1))
    assert (status, "set queue in its file, and start another fleet" in body["message"]) == (409, True)
    assert ask("POST", "/fleets/20261120-224600-00000000/tasks", tasks(1))[0] == 404
    run = stand.up(definition=QUEUED, key="new")
    status, body = ask("POST", f"/fleets/{run}/tasks", tasks(1))
    assert (status, "no queue yet" in body["message"]) == (409, True)
    stand.account.clock.forward(hours=9)
    status, body = ask("POST", f"/fleets/{run}/tasks", tasks(1))
    assert (status, "has expired" in body["message"]) == (409, True)


def test_tasks_for_a_queue_that_cannot_be_used_are_refused_with_a_remedy(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers, plain = at_work(stand, QUEUED), stand.up(key="plain")
    client("sqs").delete_queue(QueueUrl=workers.url)
    status, body = ask("POST", f"/fleets/{workers.run}/tasks", tasks(1))
    assert (status, "is gone: remove the fleet" in body["message"]) == (409, True)
    path = Path(os.environ["TROOP_DEPLOYMENT_FILE"])
    path.write_text(json.dumps(json.loads(path.read_text()) | {"queues": False}))
    for cached in (environment.settings, services.fleet_service, services.run_service):
        cached.cache_clear()
    for run in (workers.run, plain):
        with calls(monkeypatch, denying("GetQueueUrl", "SendMessageBatch")):
            status, body = ask("POST", f"/fleets/{run}/tasks", tasks(1))
        assert (status, "make deploy KEEP=1 ARGS=\"-c 'troop:queues=true'\"" in body["message"]) == (409, True)


def test_results_are_listed_by_pages_with_addresses(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("troop.bench.aws.work_results.PAGE", 2)
    run = stand.ready(definition=QUEUED)
    for task in ("job-000001", "job-000002", "job-000003"):
        stand.bench.put(names.work_result_key(run, task), {"of": task})
    first = get(f"/fleets/{run}/results")
    assert [one["id"] for one in first["results"]] == ["job-000001", "job-000002"]
    assert "X-Amz-Signature" in first["results"][0]["url"]
    second = get(f"/fleets/{run}/results", cursor=first["cursor"])
    assert ([one["id"] for one in second["results"]], second["cursor"]) == (["job-000003"], None)
    assert ask("GET", f"/fleets/{run}/results", cursor="x")[0] == 400
    assert ask("GET", "/fleets/20261120-224600-00000000/results")[0] == 404


def actions(run: str) -> dict[str, Any]:
    (action,) = client("autoscaling").describe_scheduled_actions(
        AutoScalingGroupName=names.fleet_name(run, CELL, "workers")
    )["ScheduledUpdateGroupActions"]
    return dict(action)


def test_a_fleet_lives_longer_with_everything_that_ends_it(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    workers = at_work(stand, QUEUED)
    run, record = workers.run, stand.runs.get(workers.run)
    later = record.expires_at + timedelta(days=3)
    status, fleet = ask("PATCH", f"/fleets/{run}", {"expires_at": moments.iso(later)})
    assert (status, fleet["expires_at"]) == (200, moments.iso(later))
    assert ask("PATCH", f"/fleets/{run}", {"expires_at": moments.iso(later)})[0] == 200
    assert stand.woken[-1] == {"step": "keep", "run": run}
    with calls(monkeypatch, refusing("CreateOrUpdateTags", "Throttling")):
        assert stand.keep(run) == "waiting"
    stand.keep(run)
    assert actions(run)["StartTime"] == later
    tags = {tag["Key"]: tag["Value"] for tag in stand.group(run)["Tags"]}
    assert tags["troop:expires-at"] == moments.iso(later)
    assert client("sqs").list_queue_tags(QueueUrl=workers.url)["Tags"]["troop:expires-at"] == moments.iso(later)
    assert stand.bench.get(names.orders_key(run, CELL))["expires_at"] == int(later.timestamp())
    with calls(monkeypatch) as operations:
        stand.keep(run)
    assert not {"PutScheduledUpdateGroupAction", "CreateOrUpdateTags", "TagQueue"} & set(operations)
    stand.account.clock.forward(days=2)
    assert stand.keep(run) == "waiting"


def test_an_end_moves_only_later_and_only_as_far_as_money_reaches(stand: Stand) -> None:
    run = stand.ready(definition={**FILE, "budget": 2})
    end = stand.runs.get(run).expires_at
    status, body = ask("PATCH", f"/fleets/{run}", {"expires_at": moments.iso(end - timedelta(hours=1))})
    assert (status, body["problems"][0]["where"]) == (400, "body.expires_at")
    assert "only moves later" in body["message"]
    status, body = ask("PATCH", f"/fleets/{run}", {"expires_at": moments.iso(end + timedelta(days=6))})
    assert (status, "its budget is $2.00" in body["message"]) == (400, True)
    for wrong in ({}, {"expires_at": "tomorrow"}, {"count": 1, "expires_at": moments.iso(end)}, {"role": "workers"}):
        assert ask("PATCH", f"/fleets/{run}", wrong)[0] == 400
    ask("DELETE", f"/fleets/{run}")
    assert ask("PATCH", f"/fleets/{run}", {"expires_at": moments.iso(end + timedelta(hours=1))})[0] == 409


def test_an_end_that_nodes_cannot_learn_of_in_time_stays(stand: Stand) -> None:
    run = stand.ready()
    end = stand.runs.get(run).expires_at
    later = {"expires_at": moments.iso(end + timedelta(hours=1))}
    key = {"run": {"S": run}, "item": {"S": "run"}}
    client("dynamodb").update_item(TableName="Runs", Key=key, UpdateExpression="REMOVE extends")
    status, body = ask("PATCH", f"/fleets/{run}", later)
    assert (status, "which an earlier version has launched" in body["message"]) == (400, True)
    client("dynamodb").update_item(
        TableName="Runs",
        Key=key,
        UpdateExpression="SET extends = :yes",
        ExpressionAttributeValues={":yes": {"BOOL": True}},
    )
    stand.account.clock.forward(seconds=int((end - stand.account.clock()).total_seconds()) - 170)
    status, body = ask("PATCH", f"/fleets/{run}", later)
    assert (status, "this end is too near" in body["message"]) == (400, True)
    assert stand.runs.get(run).expires_at == end


def test_one_request_extends_a_fleet_by_a_week_at_most(stand: Stand) -> None:
    run = stand.ready()
    week = stand.account.clock() + timedelta(days=7)
    status, body = ask("PATCH", f"/fleets/{run}", {"expires_at": moments.iso(week + timedelta(seconds=1))})
    assert (status, "at most 7 days from now" in body["message"]) == (400, True)
    assert ask("PATCH", f"/fleets/{run}", {"expires_at": moments.iso(week)})[0] == 200


def test_a_later_execution_is_the_one_that_is_stopped(stand: Stand) -> None:
    run = stand.ready()
    began = moments.iso(stand.account.clock() - timedelta(hours=6))
    answer = stand.step(run, "keep", began=began, execution=f"arn:aws:states:x:1:execution:fleet:{run}")
    assert (answer["state"], answer["following"]) == ("again", f"{run}-2")
    machine = client("stepfunctions").list_state_machines()["stateMachines"]
    (arn,) = [one["stateMachineArn"] for one in machine if one["name"] == "fleet"]
    begun = client("stepfunctions").start_execution(stateMachineArn=arn, name=f"{run}-2", input="{}")["executionArn"]
    stand.step(run, "open", execution=begun)
    assert stand.runs.get(run).execution_name == f"{run}-2"
    assert ask("DELETE", f"/fleets/{run}")[0] == 202
    assert client("stepfunctions").describe_execution(executionArn=begun)["status"] == "ABORTED"
