"""Tasks on the way to a fleet's queue, and what SQS counts of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.unit.account.account import Account, Call, calls
from troop.bench.aws import work_queues
from troop.bench.aws.work_queues import TRIES, QueueCounts, RefusedTask, WorkQueues
from troop.bench.definition import names
from troop.bench.fleets.queue_requests import MOST_BYTES, Task
from troop.shared.aws.clients import client

RUN, CELL = "20261121-150312-1f0c9b2e", "c001"
TAGS = {"troop:deployment": "Troop", "troop:run": RUN, "troop:cell": CELL}


@pytest.fixture
def queues(account: Account) -> WorkQueues:
    its = WorkQueues(client("sqs"), sleep=lambda seconds: None)
    for name in (names.queue_name(RUN, CELL), names.dead_queue_name(RUN, CELL)):
        its.create(name, {"VisibilityTimeout": "60"}, TAGS)
    return its


def _bodies(queues: WorkQueues) -> list[dict[str, str]]:
    url, bodies = queues.url(names.queue_name(RUN, CELL)), list[dict[str, str]]()
    while messages := queues.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        bodies += [json.loads(message["Body"]) for message in messages]
    return bodies


def test_tasks_arrive_with_their_ids_in_as_few_calls_as_possible(
    queues: WorkQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [Task(f"t-{number}", f"ä {number}") for number in range(25)]
    with calls(monkeypatch) as operations:
        assert queues.send(RUN, CELL, tasks) == []
    assert operations.count("SendMessageBatch") == 3
    assert sorted((body["id"], body["body"]) for body in _bodies(queues)) == sorted((t.id, t.body) for t in tasks)


def test_a_task_that_is_too_long_is_refused_and_the_others_arrive(queues: WorkQueues) -> None:
    (refused,) = queues.send(RUN, CELL, [Task("long", "x" * MOST_BYTES), Task("short", "y")])
    assert refused.id == "long"
    assert "bytes" in refused.problem
    assert [body["id"] for body in _bodies(queues)] == ["short"]


def _failing(*ids: str, sender_fault: bool, times: float = float("inf")) -> Any:
    """Fails the entries of these numbers in a batch, for the first calls only."""
    left = [times]

    def fail(number: int, operation: str, call: Call) -> Any:
        if operation != "SendMessageBatch" or left[0] <= 0:
            return call()
        left[0] -= 1
        failed = [{"Id": one, "Code": "Odd", "Message": "why", "SenderFault": sender_fault} for one in ids]
        return {"Successful": [], "Failed": failed}

    return fail


def test_a_failure_of_sqs_is_sent_again(queues: WorkQueues, monkeypatch: pytest.MonkeyPatch) -> None:
    with calls(monkeypatch, _failing("1", sender_fault=False, times=2)) as operations:
        assert queues.send(RUN, CELL, [Task("a", ""), Task("b", "")]) == []
    assert operations.count("SendMessageBatch") == 3
    assert [body["id"] for body in _bodies(queues)] == ["b"], "the first call accepted the other"


def test_a_lasting_failure_of_sqs_refuses_the_task_after_a_few_tries(
    queues: WorkQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    with calls(monkeypatch, _failing("0", sender_fault=False)) as operations:
        assert queues.send(RUN, CELL, [Task("a", "")]) == [RefusedTask("a", "Odd: why")]
    assert operations.count("SendMessageBatch") == TRIES


def test_a_task_that_sqs_refuses_is_not_sent_again(queues: WorkQueues, monkeypatch: pytest.MonkeyPatch) -> None:
    with calls(monkeypatch, _failing("0", sender_fault=True)) as operations:
        assert queues.send(RUN, CELL, [Task("a", "")]) == [RefusedTask("a", "Odd: why")]
    assert operations.count("SendMessageBatch") == 1


def test_an_error_after_the_first_batch_refuses_only_what_is_left(
    queues: WorkQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    sends = iter([True, False])

    def fail(number: int, operation: str, call: Call) -> Any:
        if operation == "SendMessageBatch" and not next(sends):
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "not any more"}}, operation)
        return call()

    tasks = [Task(f"t-{number}", "") for number in range(25)]
    with calls(monkeypatch, fail):
        refused = queues.send(RUN, CELL, tasks)
    assert [one.id for one in refused] == [task.id for task in tasks[10:]]
    assert all("not any more" in one.problem for one in refused)
    assert len(_bodies(queues)) == 10


def test_tasks_are_counted_by_where_they_are(queues: WorkQueues) -> None:
    queues.send(RUN, CELL, [Task(str(number), "") for number in range(3)])
    url = queues.url(names.queue_name(RUN, CELL))
    queues.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=1)
    queues.sqs.send_message(QueueUrl=queues.url(names.dead_queue_name(RUN, CELL)), MessageBody="dead")
    assert queues.counts(RUN, CELL) == QueueCounts(waiting=2, in_work=1, dead=1)


def test_queues_are_listed_page_by_page(queues: WorkQueues, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_queues, "LISTED", 1)
    assert [name for name, _ in queues.listed(names.QUEUES_PREFIX)] == [
        names.queue_name(RUN, CELL),
        names.dead_queue_name(RUN, CELL),
    ]


def test_a_later_expiry_is_on_both_queues_beside_the_other_tags(queues: WorkQueues) -> None:
    queues.expire(RUN, CELL, datetime(2026, 11, 22, tzinfo=UTC))
    for name in (names.queue_name(RUN, CELL), names.dead_queue_name(RUN, CELL)):
        assert queues.tags(queues.url(name)) == TAGS | {"troop:expires-at": "2026-11-22T00:00:00.000Z"}


def test_a_second_creation_gives_a_queue_of_the_run_its_attributes(queues: WorkQueues) -> None:
    name = names.queue_name(RUN, CELL)
    url = queues.create(name, {"VisibilityTimeout": "90"}, TAGS)
    assert url == queues.url(name)
    assert queues.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])["Attributes"] == {
        "VisibilityTimeout": "90"
    }


def test_dead_letters_that_sqs_does_not_know_yet_are_waited_for(
    queues: WorkQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused: list[float] = []
    patient = WorkQueues(queues.sqs, paused.append)
    message = "Value for parameter RedrivePolicy is invalid. Reason: Dead letter target does not exist."

    def young(number: int, operation: str, call: Call) -> Any:
        if operation == "CreateQueue" and not paused:
            raise ClientError({"Error": {"Code": "InvalidParameterValue", "Message": message}}, operation)
        return call()

    with calls(monkeypatch, young):
        assert patient.create("other", {}, TAGS)
    assert paused
