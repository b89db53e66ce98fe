"""Dead letters: dropped by the watchdog, or sent after all; what cannot be mended stays, and its alarm with it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from handlers import notify, watchdog
from tests.unit.account.account import CONTEXT, Account, calls, changing, refusing
from tests.unit.account.deployed import Deployed
from tests.unit.account.fixtures import Log
from tests.unit.chaos.flows.test_notifier import Listeners, listeners
from tests.unit.shared.aws.test_metrics import HERE, written
from troop.chaos.dead_letters import TRIED_FOR
from troop.chaos.flows.repairs import MOST_TIME
from troop.shared.aws.clients import client
from troop.shared.wiring import environment

__all__ = ["listeners"]

OURS = {
    "SCHEDULE_ARN": "arn:aws:scheduler:eu-central-1:123456789012:schedule/Schedules/default",
    "ERROR_CODE": "AccessDenied",
}
STRANGE = {"TARGET_ARN": "arn:aws:states:eu-central-1:123456789012:stateMachine:other"}


def send(queue: str, body: Any, **attributes: str) -> None:
    message_attributes = {name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()}
    client("sqs").send_message(QueueUrl=queue, MessageBody=json.dumps(body), MessageAttributes=message_attributes)


def waiting(queue: str) -> int:
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    attributes = client("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=names)["Attributes"]
    return sum(map(int, attributes.values()))


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue's own clock is not the test's: half an hour after whatever was sent just now."""
    monkeypatch.setattr(environment, "now", lambda: datetime.now(UTC) + timedelta(minutes=31))


def test_undelivered_tick_is_dropped_after_half_an_hour(
    deployed: Deployed, later: None, capsys: pytest.CaptureFixture[str], log: Log
) -> None:
    for _ in range(12):
        send(deployed.queue, {"calendar": "default"}, **OURS)
    start = "arn:aws:lambda:eu-central-1:123456789012:function:Start:$LATEST"
    send(deployed.queue, {"requestContext": {"functionArn": start, "condition": "RetriesExhausted"}})
    send(deployed.queue, {}, **STRANGE)
    watchdog.handler({}, CONTEXT)
    assert waiting(deployed.queue) == 1
    assert (HERE | {"kind": "dead-letter-dropped"}, {"Repairs": [13]}) in written(capsys)
    dropped = [line for line in log() if line["message"] == "dead letter dropped"]
    assert [line["body"] for line in dropped if "RetriesExhausted" in line["body"]]
    dropped = [line for line in dropped if "RetriesExhausted" not in line["body"]]
    assert [(line["error_code"], line["body"]) for line in dropped] == [
        ("AccessDenied", '{"calendar": "default"}')
    ] * 12


def test_younger_letter_stays_and_fails_its_check(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    send(deployed.queue, {"calendar": "default"}, **OURS)
    deployed.account.clock.moment = datetime.now(UTC) + timedelta(minutes=20)
    assert "dead-letters" in watchdog.handler({}, CONTEXT)["failing"]
    assert waiting(deployed.queue) == 1
    assert not [values for _, values in written(capsys) if "Repairs" in values]


def test_a_repair_that_fails_does_not_blind_the_watchdog(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], log: Log
) -> None:
    with calls(monkeypatch, refusing("ReceiveMessage", "AccessDenied")):
        assert watchdog.handler({}, CONTEXT)["failing"] == []
    assert any("FailingChecks" in values for _, values in written(capsys))
    assert "dead letters could not be read" in [line["message"] for line in log()]


def test_dropped_letter_is_in_the_log_before_it_is_gone(
    deployed: Deployed,
    later: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    log: Log,
) -> None:
    """However the call ends, what has left the queue was written down, and counted."""
    for _ in range(3):
        send(deployed.queue, {"calendar": "default"}, **OURS)
    counts: list[int] = []

    def cut(number: int, operation: str, call: Any) -> Any:
        if operation == "DeleteMessage":
            counts.append([line["message"] for line in log()].count("dead letter dropped"))
            if len(counts) == 2:
                raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, operation)
        return call()

    with calls(monkeypatch, cut):
        watchdog.handler({}, CONTEXT)
    assert counts == [1, 2]
    assert waiting(deployed.queue) == 2
    assert (HERE | {"kind": "dead-letter-dropped"}, {"Repairs": [1]}) in written(capsys)


@pytest.fixture
def untold(monkeypatch: pytest.MonkeyPatch) -> str:
    """The queue of what nobody could be told of."""
    url = client("sqs").create_queue(QueueName="untold")["QueueUrl"]
    monkeypatch.setenv("TROOP_UNTOLD_QUEUE", url)
    monkeypatch.setattr("troop.chaos.aws.queue.WAIT", 0)
    monkeypatch.setattr("troop.chaos.aws.queue.HIDDEN", 0)
    return str(url)


def lost(untold: str, records: list[dict[str, Any]]) -> None:
    """The letter that Lambda leaves of records, all of one table, that it has given up."""
    arn = records[0]["eventSourceARN"]
    (shard,) = client("dynamodbstreams").describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
    numbers = [record["dynamodb"]["SequenceNumber"] for record in records]
    info = {"shardId": shard["ShardId"], "startSequenceNumber": numbers[0], "endSequenceNumber": numbers[-1]}
    send(untold, {"version": "1.0", "DDBStreamBatchInfo": {**info, "streamArn": arn, "batchSize": len(numbers)}})


def redrive() -> dict[str, Any]:
    return notify.handler({}, CONTEXT)


def test_lost_notification_is_sent_late_and_once(
    account: Account, listeners: Listeners, untold: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        account.policy("web", reason=f"{number}")
    account.policy("db", reason="not lost")
    lost(untold, listeners.records()[1:3])
    assert redrive() == {"letters": 1, "kept": []}
    details = listeners.heard()
    assert [detail["changes"]["reason"]["new"] for detail in details] == ["1", "2"]
    assert (HERE | {"kind": "notification-sent-late"}, {"Repairs": [1]}) in written(capsys)
    assert waiting(untold) == 0
    assert redrive() == {"letters": 0, "kept": []}
    assert listeners.heard() == []


def test_letter_that_still_fails_stays_and_blocks_no_others(
    account: Account, listeners: Listeners, untold: str
) -> None:
    account.policy("web", reason="x")
    records = listeners.records()
    send(untold, {"no": "batch"})
    lost(untold, records)

    def fail(called: str) -> None:
        if called == "Publish":
            raise ClientError({"Error": {"Code": "InternalError", "Message": ""}}, called)

    listeners.fail = fail
    assert redrive()["letters"] == 0
    assert waiting(untold) == 2
    listeners.bus.clear()
    listeners.fail = lambda called: None
    answer = redrive()
    assert (answer["letters"], len(answer["kept"])) == (1, 1)
    assert [detail["kind"] for detail in listeners.heard()] == ["policy-changed"]
    assert waiting(untold) == 1


def test_letter_that_somebody_received_in_the_console_is_sent(
    account: Account, listeners: Listeners, untold: str
) -> None:
    account.policy("web", reason="x")
    lost(untold, listeners.records())
    for _ in range(25):
        client("sqs").receive_message(QueueUrl=untold, VisibilityTimeout=0)
    assert redrive() == {"letters": 1, "kept": []}


def test_letter_stays_untried_after_the_stream_has_dropped_its_batch(
    account: Account, listeners: Listeners, untold: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After that only a person can help: the letter stays, nothing is called for it."""
    account.policy("web", reason="x")
    lost(untold, listeners.records())
    account.clock.moment = datetime.now(UTC) + TRIED_FOR + timedelta(minutes=1)
    with calls(monkeypatch) as operations:
        assert redrive() == {"letters": 0, "kept": ["tried for 24 hours"]}
    assert set(operations) == {"ReceiveMessage"}
    assert waiting(untold) == 1


def test_no_letter_is_begun_for_which_there_is_no_time(account: Account, listeners: Listeners, untold: str) -> None:
    """A call that is cut off would have told of something, and would tell of it again."""
    account.policy("web", reason="x")
    records = listeners.records()
    account.clock.moment = datetime.now(UTC)
    for _ in range(3):
        lost(untold, records)

    def dawdle(called: str) -> None:
        account.clock.moment += MOST_TIME * 0.6 * (called == "Publish")

    listeners.fail = dawdle
    assert redrive() == {"letters": 2, "kept": ["no time left for this letter and those after it"]}
    assert waiting(untold) == 1


@pytest.mark.parametrize("ends", ["nothing more", "another record"])
def test_a_letter_stays_when_the_stream_does_not_show_all_of_it(
    account: Account, listeners: Listeners, untold: str, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    """And nobody is told of half of it, again with every try."""
    for number in range(3):
        account.policy("web", reason=f"{number}")
    lost(untold, listeners.records()[:2])

    def skip(answer: Any) -> None:
        del answer["Records"][1 : None if ends == "nothing more" else 2]
        answer.pop("NextShardIterator", None)

    with calls(monkeypatch, changing("GetRecords", skip)):
        answer = redrive()
    assert (answer["letters"], [reason.partition(":")[0] for reason in answer["kept"]]) == (0, ["IncompleteBatch"])
    assert listeners.heard() == []
    assert redrive() == {"letters": 1, "kept": []}
    assert len(listeners.heard()) == 2
