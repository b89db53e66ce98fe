"""Step Functions as AWS runs them: roles asked, stops that stop, time-outs, nested executions, errors by name."""

from __future__ import annotations

import contextlib
import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.patience import eventually

from .helpers import Listener, World, allow, code, unique

FUNCTION_ERROR = """
class Refused(Exception):
    pass
def handler(event, context):
    if event.get("fail"):
        raise Refused("no")
    return {"ok": True}
"""


@pytest.fixture(scope="module")
def function(world: World) -> str:
    return world.function(FUNCTION_ERROR)


def invoke(function: str, fail: bool = False, **more: Any) -> dict[str, Any]:
    return {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Parameters": {"FunctionName": function, "Payload": {"fail": fail}},
        "TimeoutSeconds": 300,
        "End": True,
        **more,
    }


def lasted(ended: dict[str, Any]) -> float:
    """Seconds from the start of an execution to its end."""
    return float((ended["stopDate"] - ended["startDate"]).total_seconds())


@pytest.fixture(scope="module")
def events(world: World) -> Any:
    """A function that returns the details of all status events so far."""
    listener = Listener(world.account, {"source": ["aws.states"]})
    return lambda: [event["detail"] for event in listener.events()]


def test_a_task_needs_its_roles_permission(world: World, function: str) -> None:
    allowed = world.machine({"Call": invoke(function)}, world.role(allow("lambda:InvokeFunction", function)))
    refused = world.machine({"Call": invoke(function)}, world.role(allow("lambda:InvokeFunction", function + "-other")))
    assert world.run(allowed)["status"] == "SUCCEEDED"
    ended = world.run(refused)
    assert (ended["status"], ended["error"]) == ("FAILED", "Lambda.AWSLambdaException")
    assert "not authorized to perform: lambda:InvokeFunction" in ended["cause"]


@pytest.mark.parametrize("resource", ["arn:aws:states:::dynamodb:getItem", "arn:aws:states:::aws-sdk:dynamodb:getItem"])
def test_integrations_need_it_too(world: World, resource: str) -> None:
    table = unique("table")
    world.account.client("dynamodb").create_table(
        TableName=table,
        KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    state = {
        "Type": "Task",
        "Resource": resource,
        "Parameters": {"TableName": table, "Key": {"k": {"S": "1"}}},
        "End": True,
    }
    arn = f"arn:aws:dynamodb:us-east-1:000000000000:table/{table}"
    assert world.run(world.machine({"Get": state}, world.role(allow("dynamodb:GetItem", arn))))["status"] == "SUCCEEDED"
    ended = world.run(world.machine({"Get": state}, world.role(allow("dynamodb:GetItem", arn + "x"))))
    assert ended["error"].endswith(".AccessDeniedException")


def test_decisions_of_state_machines_are_recorded(world: World, function: str) -> None:
    role = world.role(allow("lambda:InvokeFunction", function))
    world.run(world.machine({"Call": invoke(function)}, role))
    entries = [entry for entry in world.account.decisions() if entry["caller"] == role]
    assert entries == [
        {
            "caller": role,
            "action": "lambda:InvokeFunction",
            "resource": function,
            "decision": "Allow",
            "source": "states",
            "count": 1,
        }
    ]


def test_instances_are_out_of_reach_of_state_machines(world: World) -> None:
    state = {
        "Type": "Task",
        "Resource": "arn:aws:states:::aws-sdk:ec2:describeInstances",
        "Parameters": {},
        "End": True,
    }
    ended = world.run(world.machine({"CheckRecovery": state}, world.role(allow("*"))))
    assert "another endpoint" in ended["cause"]


def distributed(bucket: str, function: str, **more: Any) -> dict[str, Any]:
    return {
        "Type": "Map",
        "ItemReader": {
            "Resource": "arn:aws:states:::s3:getObject",
            "ReaderConfig": {"InputType": "JSON"},
            "Parameters": {"Bucket": bucket, "Key": "ticks/items.json"},
        },
        "ItemProcessor": {
            "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
            "StartAt": "Call",
            "States": {"Call": invoke(function)},
        },
        "End": True,
        **more,
    }


def test_a_distributed_map_needs_its_permissions(world: World, function: str) -> None:
    bucket = unique("items")
    s3 = world.account.client("s3")
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key="ticks/items.json", Body=b'[{"n": 1}, {"n": 2}]')
    read = allow("s3:GetObject", f"arn:aws:s3:::{bucket}/ticks/*")
    start = allow("states:StartExecution", "arn:aws:states:us-east-1:000000000000:stateMachine:machine-*")
    call = allow("lambda:InvokeFunction", function)
    states = {"Each": distributed(bucket, function)}
    assert world.run(world.machine(states, world.role(read, start, call)))["status"] == "SUCCEEDED"
    assert world.run(world.machine(states, world.role(start, call)))["error"] == "States.ItemReaderFailed"
    assert world.run(world.machine(states, world.role(read, call)))["error"] == "StepFunctions.AccessDeniedException"
    ended = world.run(world.machine(states, world.role(read, start)))
    assert ended["error"] == "States.ExceedToleratedFailureThreshold"


def test_stop_ends_waiting_branches_and_stays_aborted(world: World, function: str, events: Any) -> None:
    def branch(state: str) -> dict[str, Any]:
        wait = {"Type": "Wait", "SecondsPath": "$.seconds", "Next": state}
        return {"StartAt": f"{state}Wait", "States": {f"{state}Wait": wait, state: invoke(function, fail=True)}}

    def begun() -> bool:
        history = world.states.get_execution_history(executionArn=execution)["events"]
        return "ParallelStateEntered" in [one["type"] for one in history]

    states = {"Both": {"Type": "Parallel", "Branches": [branch("One"), branch("Two")], "End": True}}
    role = world.role(allow("lambda:InvokeFunction", function))
    machine = world.machine(states, role)
    for seconds in (2, 16, 128):  # until it is stopped while both wait, as it is at once on a machine that is idle
        execution = world.start(machine, {"seconds": seconds})
        eventually(begun)
        time.sleep(0.3)  # both branches mostly wait by now
        world.states.stop_execution(executionArn=execution, error="Halted", cause="a test")
        stopped = world.finish(execution)
        if lasted(stopped) < seconds:
            break
        world.account.forget_decisions()
    time.sleep(seconds + 0.5)
    assert world.finish(execution)["status"] == "ABORTED"
    assert not [entry for entry in world.account.decisions() if entry["caller"] == role], "a branch went on"

    def statuses() -> list[str]:
        return sorted(one["status"] for one in events() if one["executionArn"] == execution)

    eventually(lambda: len(statuses()) >= 2)
    assert statuses() == ["ABORTED", "RUNNING"]


def test_stop_ends_nested_executions(world: World, events: Any) -> None:
    child = world.machine({"Wait": {"Type": "Wait", "Seconds": 3600, "End": True}}, world.role())
    nested = {
        "Type": "Task",
        "Resource": "arn:aws:states:::states:startExecution.sync:2",
        "Parameters": {"StateMachineArn": child},
        "End": True,
    }
    execution = world.start(world.machine({"Nested": nested}, world.role(allow("states:StartExecution", child))))
    started = eventually(lambda: world.states.list_executions(stateMachineArn=child)["executions"])
    eventually(lambda: [one for one in events() if one["executionArn"] == started[0]["executionArn"]])
    world.states.stop_execution(executionArn=execution)
    assert world.finish(started[0]["executionArn"])["status"] == "ABORTED"
    statuses = eventually(
        lambda: [one["status"] for one in events() if one["executionArn"] == started[0]["executionArn"]][1:]
    )
    assert statuses == ["ABORTED"]


def in_a_distributed_map(state: dict[str, Any]) -> dict[str, Any]:
    """A Map state that runs one child workflow of one state."""
    processor = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        "StartAt": "Only",
        "States": {"Only": state},
    }
    return {
        "Type": "Map",
        "ItemProcessor": processor,
        "ItemsPath": "$.items",
        "ToleratedFailurePercentage": 100,
        "End": True,
    }


def nesting(child: str) -> dict[str, Any]:
    return {
        "Type": "Task",
        "Resource": "arn:aws:states:::states:startExecution.sync:2",
        "Parameters": {"StateMachineArn": child, "Input.$": "$"},
        "TimeoutSeconds": 300,
        "End": True,
    }


@pytest.fixture
def wait(world: World) -> str:
    """A machine whose executions wait for the seconds they are given."""
    return world.machine({"Wait": {"Type": "Wait", "SecondsPath": "$.seconds", "End": True}}, world.role())


def mapped(world: World, child: str) -> str:
    """A machine with a distributed map whose children start executions of `child` and wait for them."""
    # Step Functions gives a machine that runs a Distributed Map the right to start itself by name, not known before.
    role = world.role(allow("states:StartExecution", "*"))
    return world.machine({"Map": in_a_distributed_map(nesting(child))}, role)


def test_a_child_of_a_distributed_map_waits_for_a_nested_execution(world: World, wait: str) -> None:
    began = time.monotonic()
    ended = world.run(mapped(world, wait), {"items": [{"seconds": 1}, {"seconds": 1}]})
    assert ended["status"] == "SUCCEEDED"
    assert time.monotonic() - began > 1
    nested = world.states.list_executions(stateMachineArn=wait)["executions"]
    assert [one["status"] for one in nested] == ["SUCCEEDED"] * 2


def test_stop_ends_executions_nested_in_a_distributed_map(world: World, wait: str) -> None:
    execution = world.start(mapped(world, wait), {"items": [{"seconds": 3600}]})
    (nested,) = eventually(lambda: world.states.list_executions(stateMachineArn=wait)["executions"])
    world.states.stop_execution(executionArn=execution)
    assert world.finish(nested["executionArn"])["status"] == "ABORTED"
    assert world.finish(execution)["status"] == "ABORTED"


def test_a_rule_on_status_changes_calls_a_function(world: World) -> None:
    """As the reaper is called: for the endings that are no success, of one machine."""
    table = world.account.client("dynamodb")
    name = unique("seen")
    table.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "execution", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "execution", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    body = (
        "import boto3\n"
        "def handler(event, context):\n"
        "    detail = event['detail']\n"
        "    item = {'execution': {'S': detail['executionArn']}, 'input': {'S': detail['input']}}\n"
        f"    boto3.client('dynamodb').put_item(TableName='{name}', Item=item)\n"
    )
    function = world.function(body, world.role(allow("dynamodb:PutItem")))
    machine = world.machine({"Wait": {"Type": "Wait", "SecondsPath": "$.seconds", "End": True}}, world.role())
    pattern = {
        "source": ["aws.states"],
        "detail-type": ["Step Functions Execution Status Change"],
        "detail": {"stateMachineArn": [machine], "status": ["FAILED", "TIMED_OUT", "ABORTED"]},
    }
    bus, rule = world.account.client("events"), unique("endings")
    arn = bus.put_rule(Name=rule, EventPattern=json.dumps(pattern))["RuleArn"]
    bus.put_targets(Rule=rule, Targets=[{"Id": "function", "Arn": function}])
    world.functions.add_permission(
        FunctionName=function,
        StatementId="rule",
        Action="lambda:InvokeFunction",
        Principal="events.amazonaws.com",
        SourceArn=arn,
    )
    assert world.run(machine, {"seconds": 0})["status"] == "SUCCEEDED"
    execution = world.start(machine, {"seconds": 3600, "run": "one"})
    world.states.stop_execution(executionArn=execution)
    (seen,) = eventually(lambda: table.scan(TableName=name)["Items"])
    assert seen["execution"]["S"] == execution
    assert json.loads(seen["input"]["S"])["run"] == "one"


def test_a_machine_times_out(world: World) -> None:
    states = {"Wait": {"Type": "Wait", "Seconds": 3600, "End": True}}
    assert world.run(world.machine(states, world.role(), TimeoutSeconds=1))["status"] == "TIMED_OUT"


def test_an_exceptions_class_is_caught_by_name(world: World, function: str) -> None:
    caught = {"ErrorEquals": ["Refused"], "Next": "Caught", "ResultPath": "$.error"}
    states = {
        "Call": invoke(function, fail=True, Catch=[caught]),
        "Caught": {"Type": "Pass", "End": True},
    }
    ended = world.run(world.machine(states, world.role(allow("lambda:InvokeFunction", function))))
    assert ended["status"] == "SUCCEEDED"
    assert json.loads(ended["output"])["error"]["Error"] == "Refused"


def test_an_exceptions_class_is_retried_by_name(world: World, function: str) -> None:
    retry = {"ErrorEquals": ["Refused"], "IntervalSeconds": 1, "MaxAttempts": 1, "BackoffRate": 1}
    role = world.role(allow("lambda:InvokeFunction", function))
    ended = world.run(world.machine({"Call": invoke(function, fail=True, Retry=[retry])}, role))
    assert ended["error"] == "Refused"
    assert [entry["count"] for entry in world.account.decisions() if entry["caller"] == role] == [2]


COUNTING = """
import pathlib, tempfile, time, uuid
def handler(event, context):
    folder = pathlib.Path(tempfile.gettempdir()) / event["folder"]
    folder.mkdir(exist_ok=True)
    mine = folder / uuid.uuid4().hex
    mine.touch()
    at_once = len(list(folder.iterdir()))
    time.sleep(0.2)
    mine.unlink()
    return at_once
"""


def test_a_maps_concurrency_may_come_from_its_input(world: World) -> None:
    counting = world.function(COUNTING)
    count = {"Type": "Task", "Resource": counting, "TimeoutSeconds": 300, "End": True}
    for mode in ("DISTRIBUTED", "INLINE"):
        config: dict[str, Any] = {"Mode": mode}
        if mode == "DISTRIBUTED":
            config["ExecutionType"] = "STANDARD"
        each = {
            "Type": "Map",
            "ItemsPath": "$.items",
            "MaxConcurrencyPath": "$.limit",
            "ItemProcessor": {"ProcessorConfig": config, "StartAt": "Count", "States": {"Count": count}},
            "End": True,
        }
        role = world.role(allow(["lambda:InvokeFunction", "states:StartExecution"]))
        ended = world.run(world.machine({"Each": each}, role), {"limit": 2, "items": [{"folder": unique(mode)}] * 5})
        assert max(json.loads(ended["output"])) <= 2
        assert world.run(world.machine({"Each": each}, role), {"limit": "2", "items": []})["error"] == "States.Runtime"


@pytest.mark.parametrize("field", ["ItemBatcher", "ResultWriter"])
def test_a_map_that_cannot_be_run_fails(world: World, function: str, field: str) -> None:
    each = distributed("none", function, **{field: {}})
    assert field in world.run(world.machine({"Each": each}, world.role(allow("*"))))["cause"]


def test_retries_wait_no_longer_than_they_say(world: World, function: str) -> None:
    retry = {
        "ErrorEquals": ["Refused"],
        "IntervalSeconds": 1,
        "MaxAttempts": 4,
        "BackoffRate": 3600,
        "MaxDelaySeconds": 1,
    }
    machine = world.machine({"Call": invoke(function, fail=True, Retry=[retry])}, world.role(allow("*")))
    assert 4 <= lasted(world.run(machine)) < 1 + 3 * 60, "the account itself never waits longer than a minute"


def test_jitter_shortens_retries(world: World, function: str) -> None:
    retry = {
        "ErrorEquals": ["Refused"],
        "IntervalSeconds": 60,
        "MaxAttempts": 1,
        "BackoffRate": 1,
        "JitterStrategy": "FULL",
    }
    machine = world.machine({"Call": invoke(function, fail=True, Retry=[retry])}, world.role(allow("*")))
    executions = [world.start(machine) for _ in range(20)]

    def over() -> list[dict[str, Any]]:
        seen = [world.states.describe_execution(executionArn=one) for one in executions]
        return [one for one in seen if one["status"] != "RUNNING"]

    first = eventually(over)[0]
    for one in executions:
        with contextlib.suppress(ClientError):  # it has ended by itself
            world.states.stop_execution(executionArn=one)
    assert lasted(first) < 60


def test_starting_twice_under_one_name(world: World) -> None:
    machine = world.machine({"Wait": {"Type": "Wait", "Seconds": 3600, "End": True}}, world.role())
    start = {"stateMachineArn": machine, "name": "once", "input": '{"n": 1}'}
    first = world.states.start_execution(**start)
    assert world.states.start_execution(**start)["executionArn"] == first["executionArn"]
    with pytest.raises(ClientError, match="ExecutionAlreadyExists"):
        world.states.start_execution(**{**start, "input": '{"n": 2}'})
    world.states.stop_execution(executionArn=first["executionArn"])
    world.finish(first["executionArn"])
    with pytest.raises(ClientError, match="ExecutionAlreadyExists"):
        world.states.start_execution(**start)


TASK = {"Type": "Task", "Resource": "arn:aws:states:::aws-sdk:dynamodb:getItem", "End": True}


def machine(**states: Any) -> dict[str, Any]:
    return {"StartAt": "A", "States": states}


@pytest.mark.parametrize(
    "definition",
    [
        [],
        {"StartAt": "A"},
        machine(B={"Type": "Succeed"}),
        machine(A={"Type": "Lunch"}),
        machine(A={"Type": "Pass", "Next": "B"}),
        machine(A={"Type": "Choice", "Choices": [{"Variable": "$.x", "IsPresent": True, "Next": "B"}]}),
        machine(A={**TASK, "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "B"}]}),
        machine(A={**TASK, "Resource": "arn:aws:states:::none:getItem"}),
        machine(A={**TASK, "Resource": "arn:aws:states:::aws-sdk:none:getItem"}),
        machine(A={**TASK, "Resource": "arn:aws:states:::aws-sdk:dynamodb:getLunch"}),
        machine(A={**TASK, "Resource": "a function"}),
        machine(A={"Type": "Parallel", "Branches": [machine(A={"Type": "Lunch"})], "End": True}),
        machine(A={"Type": "Map", "ItemProcessor": machine(A={"Type": "Lunch"}), "End": True}),
    ],
)
def test_a_definition_that_aws_does_not_know_is_refused(world: World, definition: Any) -> None:
    text, role = json.dumps(definition), world.role()
    with pytest.raises(ClientError) as error:
        world.states.create_state_machine(name=unique("machine"), definition=text, roleArn=role)
    assert code(error) == "InvalidDefinition"
    existing = world.machine({"A": {"Type": "Succeed"}}, role)
    with pytest.raises(ClientError) as error:
        world.states.update_state_machine(stateMachineArn=existing, definition=text)
    assert code(error) == "InvalidDefinition"
    assert world.states.validate_state_machine_definition(definition=text)["result"] == "FAIL"


@pytest.mark.parametrize(
    "resource",
    [
        "arn:aws:states:::aws-sdk:sfn:startExecution",
        "arn:aws:states:::aws-sdk:eventbridge:putEvents",
        "arn:aws:states:::aws-sdk:elasticloadbalancingv2:describeTargetHealth",
        "arn:aws:states:::aws-sdk:databasemigration:startReplicationTask",
        "arn:aws:states:us-east-1:111122223333:aws-sdk:s3:getObject",
        "arn:aws:states:::http:invoke",
        "arn:aws:states:::athena:startQueryExecution.sync",
        "arn:aws:states:us-east-1:111122223333:activity:a.b",
    ],
)
def test_resources_of_tasks_are_known_by_the_names_of_aws(world: World, resource: str) -> None:
    definition = json.dumps(machine(A={**TASK, "Resource": resource}))
    assert world.states.validate_state_machine_definition(definition=definition)["result"] == "OK"


ASKS = """
import boto3, json, time
states, table = boto3.client("stepfunctions"), boto3.client("dynamodb")
def handler(event, context):
    table.put_item(TableName=event["table"], Item={"k": {"S": event["token"]}, "n": {"N": str(event["tries"])}})
    if event["does"] == "fail" and event["tries"] == 0:
        raise ValueError("no")
    if event["does"] == "answer":
        states.send_task_success(taskToken=event["token"], output=json.dumps({"by": "itself"}))
    if event["does"] == "last":
        time.sleep(3)
"""


class Tokens:
    """A function that stores its task's token, machines that call it, and answers to them."""

    def __init__(self, world: World) -> None:
        self.world, self.table, self._items = world, unique("tokens"), world.account.client("dynamodb")
        key = {"AttributeName": "k"}
        self._items.create_table(
            TableName=self.table,
            KeySchema=[{**key, "KeyType": "HASH"}],
            AttributeDefinitions=[{**key, "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        rights = allow(["dynamodb:PutItem", "states:SendTaskSuccess"])
        self.function = world.function(ASKS, role=world.role(rights))
        self.role = world.role(allow(["lambda:InvokeFunction", "states:StartExecution"]))

    def state(self, does: str = "wait", **more: Any) -> dict[str, Any]:
        payload = {"table": self.table, "does": does, "token.$": "$$.Task.Token", "tries.$": "$$.State.RetryCount"}
        return {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
            "Parameters": {"FunctionName": self.function, "Payload": payload},
            "TimeoutSeconds": 600,
            "End": True,
            **more,
        }

    def start(self, state: dict[str, Any]) -> str:
        return self.world.start(self.world.machine({"Ask": state}, self.role))

    def drawn(self, count: int = 1) -> list[str]:
        """The tokens so far, in the order of their tries, once there are `count`. They are forgotten then."""

        def scan() -> list[dict[str, Any]] | None:
            items = self._items.scan(TableName=self.table)["Items"]
            return items if len(items) >= count else None

        items = sorted(eventually(scan), key=lambda item: int(item["n"]["N"]))
        for item in items:
            self._items.delete_item(TableName=self.table, Key={"k": item["k"]})
        return [str(item["k"]["S"]) for item in items]

    def answer(self, token: str, output: str = '{"by": "somebody"}') -> None:
        self.world.states.send_task_success(taskToken=token, output=output)

    def refusal(self, token: str, output: str = "{}") -> str:
        with pytest.raises(ClientError) as refused:
            self.answer(token, output)
        return code(refused)


@pytest.fixture(scope="module")
def tokens(world: World) -> Tokens:
    return Tokens(world)


def test_a_task_waits_for_the_answer_to_its_token(tokens: Tokens) -> None:
    execution = tokens.start(tokens.state())
    (token,) = tokens.drawn()
    assert tokens.refusal(token, output="{") == "InvalidOutput"
    tokens.answer(token)
    ended = tokens.world.finish(execution)
    assert (ended["status"], json.loads(ended["output"])) == ("SUCCEEDED", {"by": "somebody"})
    assert tokens.refusal(token) == "TaskTimedOut"
    other = token[:-8] + ("A" * 8 if token[-8:] != "A" * 8 else "B" * 8)
    assert tokens.refusal(other) == "TaskDoesNotExist"
    assert tokens.refusal("nonsense") == "InvalidToken"


def test_a_task_can_be_answered_by_the_function_that_it_calls(tokens: Tokens) -> None:
    ended = tokens.world.finish(tokens.start(tokens.state("answer")))
    assert json.loads(ended["output"]) == {"by": "itself"}
    tokens.drawn()


def test_a_failed_call_fails_its_task_and_another_try_has_another_token(tokens: Tokens) -> None:
    ended = tokens.world.finish(tokens.start(tokens.state("fail")))
    assert (ended["status"], ended["error"]) == ("FAILED", "ValueError")
    (lost,) = tokens.drawn()
    assert tokens.refusal(lost) == "TaskTimedOut"
    execution = tokens.start(tokens.state("fail", Retry=[{"ErrorEquals": ["ValueError"], "IntervalSeconds": 1}]))
    first, second = tokens.drawn(2)
    assert tokens.refusal(first) == "TaskTimedOut"
    tokens.answer(second)
    assert tokens.world.finish(execution)["status"] == "SUCCEEDED"


def test_a_token_expires_with_its_task(tokens: Tokens) -> None:
    late = {"ErrorEquals": ["States.Timeout"], "ResultPath": "$.late", "Next": "Late"}
    machine = tokens.world.machine(
        {"Ask": tokens.state("last", TimeoutSeconds=1, Catch=[late]), "Late": {"Type": "Pass", "End": True}},
        tokens.role,
    )
    ended = tokens.world.run(machine)
    assert json.loads(ended["output"])["late"]["Error"] == "States.Timeout"
    (token,) = tokens.drawn()
    assert tokens.refusal(token) == "TaskTimedOut"


def test_a_token_expires_with_its_execution(tokens: Tokens) -> None:
    execution = tokens.start(tokens.state())
    (token,) = tokens.drawn()
    tokens.world.states.stop_execution(executionArn=execution)
    assert tokens.refusal(token) == "TaskTimedOut"


def test_children_of_a_distributed_map_wait_for_tokens_of_their_own(tokens: Tokens) -> None:
    processor = {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        "StartAt": "Ask",
        "States": {"Ask": tokens.state()},
    }
    each = {"Type": "Map", "ItemsPath": "$.items", "ItemProcessor": processor, "End": True}
    execution = tokens.world.start(tokens.world.machine({"Each": each}, tokens.role), {"items": [1, 2]})
    for token in tokens.drawn(2):
        tokens.answer(token)
    assert json.loads(tokens.world.finish(execution)["output"]) == [{"by": "somebody"}] * 2


def test_an_answer_to_a_token_needs_a_permission_without_a_resource(tokens: Tokens) -> None:
    machine = tokens.world.machine({"Ask": tokens.state()}, tokens.role)
    execution = tokens.world.start(machine)
    (token,) = tokens.drawn()
    narrow = tokens.world.as_role(tokens.world.role(allow("states:SendTaskSuccess", machine)))
    with pytest.raises(ClientError) as refused:
        tokens.world.account.client("stepfunctions", narrow).send_task_success(taskToken=token, output="{}")
    assert code(refused) == "AccessDeniedException"
    wide = tokens.world.as_role(tokens.world.role(allow("states:SendTaskSuccess")))
    tokens.world.account.client("stepfunctions", wide).send_task_success(taskToken=token, output="{}")
    assert tokens.world.finish(execution)["status"] == "SUCCEEDED"


def test_a_token_task_with_what_the_local_account_lacks_fails(tokens: Tokens) -> None:
    ended = tokens.world.finish(tokens.start(tokens.state(HeartbeatSeconds=60)))
    assert ended["error"] == "States.Runtime"


def test_a_wait_until_a_moment_fails_without_one(world: World) -> None:
    wait = {"Type": "Wait", "TimestampPath": "$.until", "End": True}
    machine = world.machine({"Wait": wait}, world.role())
    until = (datetime.now(UTC) + timedelta(seconds=2)).isoformat()
    ended = world.run(machine, {"until": until})
    assert ended["status"] == "SUCCEEDED"
    assert ended["stopDate"].isoformat() >= until[:19]
    for payload in ({"until": None}, {}, {"until": "tomorrow"}):
        assert world.run(machine, payload)["error"] == "States.Runtime"
