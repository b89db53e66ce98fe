"""Lambda functions: what they see, and what becomes of their environment."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.patience import eventually

from .helpers import World, allow, unique


def invoke(world: World, function: str, payload: Any = None) -> Any:
    return json.load(world.functions.invoke(FunctionName=function, Payload=json.dumps(payload))["Payload"])


def test_a_function_sees_the_sdk_and_nothing_else_of_the_account(world: World) -> None:
    body = """
import importlib.util
import boto3
def handler(event, context):
    return [name for name in event["names"] if importlib.util.find_spec(name)]
"""
    names = ["pydantic", "moto", "ministack", "troop", "local", "yaml", "boto3", "dateutil"]
    assert invoke(world, world.function(body), {"names": names}) == ["boto3", "dateutil"]


def test_an_environment_survives_an_exception(world: World) -> None:
    body = """
import os
def handler(event, context):
    if event:
        raise ValueError(os.getpid())
    return os.getpid()
"""
    function = world.function(body)
    answers = [invoke(world, function, payload) for payload in (1, 0)]
    assert answers[0] == {"errorMessage": str(answers[1]), "errorType": "ValueError"}


MEETS = """
import pathlib, tempfile, time, uuid
def handler(event, context):
    folder = pathlib.Path(tempfile.gettempdir()) / event
    folder.mkdir(exist_ok=True)
    (folder / uuid.uuid4().hex).touch()
    while len(list(folder.iterdir())) < 2:
        time.sleep(0.02)
    return __file__
"""
"""Answers when it has been called twice, at the same time."""


def test_code_is_unpacked_once(world: World) -> None:
    function = world.function(MEETS)
    meeting = unique("meeting")
    with ThreadPoolExecutor(2) as pool:
        files = [Path(answer) for answer in pool.map(lambda _: invoke(world, function, meeting), range(2))]
    assert len(set(files)) == 2, "two environments"
    assert len({file.resolve() for file in files}) == 1


def test_environments_are_copies_of_a_process_with_the_sdk(world: World) -> None:
    """The start of a Python process and the import of the SDK would take most of a whole run's time."""
    body = """
import os, random, sys
with_sdk = "boto3" in sys.modules
def handler(event, context):
    key = os.environ["AWS_ACCESS_KEY_ID"]
    return {"parent": os.getppid(), "with_sdk": with_sdk, "random": random.random(), "key": key}
"""
    first, second = (invoke(world, world.function(body)) for _ in range(2))
    assert first["with_sdk"]
    assert first["parent"] == second["parent"]
    assert first["random"] != second["random"], "copies share no state of a random generator"
    assert first["key"] != second["key"]


def test_a_function_ends_at_its_timeout_and_with_its_process(world: World) -> None:
    body = """
import os, time
def handler(event, context):
    if event == "sleep":
        time.sleep(60)
    if event == "exit":
        os._exit(3)
    return os.getpid()
"""
    function = world.function(body, timeout=1)
    pids = [invoke(world, function)]
    assert "Task timed out after 1.00 seconds" in invoke(world, function, "sleep")["errorMessage"]
    pids.append(invoke(world, function))
    assert "errorMessage" in invoke(world, function, "exit")
    pids.append(invoke(world, function))
    assert len(set(pids)) == 3
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids[:2]))


def test_a_burst_of_events_does_not_start_a_process_for_each(world: World, tmp_path: Path) -> None:
    body = """
import os, pathlib, time, uuid
def handler(event, context):
    pathlib.Path(event["detail"]["folder"], f"{os.getpid()}.{uuid.uuid4()}").touch()
    time.sleep(0.2)
"""
    function, bus, source = world.function(body), world.account.client("events"), unique("burst")
    bus.put_rule(Name=source, EventPattern=json.dumps({"source": [source]}))
    bus.put_targets(Rule=source, Targets=[{"Id": "function", "Arn": function}])
    entry = {"Source": source, "DetailType": "One of many", "Detail": json.dumps({"folder": str(tmp_path)})}
    for _ in range(8):
        assert bus.put_events(Entries=[entry] * 10)["FailedEntryCount"] == 0
    eventually(lambda: len(list(tmp_path.iterdir())) == 80)
    assert len({file.name.split(".")[0] for file in tmp_path.iterdir()}) <= 32


def test_a_stream_has_several_consumers_which_get_what_they_filter(world: World) -> None:
    database, sqs = world.account.client("dynamodb"), world.account.client("sqs")
    table = database.create_table(
        TableName=unique("watched"),
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
    )["TableDescription"]
    actions = ["dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:DescribeStream", "dynamodb:ListStreams"]
    urls = []
    for pattern in ({"pk": {"S": ["both", "first"]}}, {"pk": {"S": ["both", {"prefix": "sec"}]}}):
        urls.append(sqs.create_queue(QueueName=unique("heard"))["QueueUrl"])
        body = (
            "import boto3\ndef handler(event, context):\n    for one in event['Records']:\n"
            f"        boto3.client('sqs').send_message(QueueUrl={urls[-1]!r}, "
            "MessageBody=one['dynamodb']['Keys']['pk']['S'])\n"
        )
        function = world.function(body, world.role(allow("sqs:SendMessage"), allow(actions)))
        world.functions.create_event_source_mapping(
            EventSourceArn=table["LatestStreamArn"],
            FunctionName=function,
            StartingPosition="LATEST",
            FilterCriteria={"Filters": [{"Pattern": json.dumps({"dynamodb": {"Keys": pattern}})}]},
        )
    heard: list[list[str]] = [[], []]

    def settled() -> bool:
        for key in ("first", "second", "both"):
            database.put_item(TableName=table["TableName"], Item={"pk": {"S": key}, "at": {"S": unique("now")}})
        for number, url in enumerate(urls):
            for message in sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", ()):
                heard[number].append(message["Body"])
        return all(len(set(one)) == 2 for one in heard)

    eventually(settled)
    assert [sorted(set(one)) for one in heard] == [["both", "first"], ["both", "second"]]
