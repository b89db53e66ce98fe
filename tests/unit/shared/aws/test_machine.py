"""A state machine's executions: what Step Functions says when a name is taken, or nobody has it."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber
from mypy_boto3_stepfunctions.client import SFNClient

from troop.shared.aws.machine import Machine

ARN = "arn:aws-cn:states:cn-north-1:123456789012:stateMachine:Teardown"
EXECUTION = "arn:aws-cn:states:cn-north-1:123456789012:execution:Teardown:one"
WHEN = datetime.datetime(2026, 3, 2, tzinfo=datetime.UTC)


@pytest.fixture(scope="module")
def client() -> SFNClient:
    return boto3.client("stepfunctions", region_name="cn-north-1", aws_access_key_id="k", aws_secret_access_key="s")


@pytest.fixture
def states(client: SFNClient) -> Iterator[Stubber]:
    with Stubber(client) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


@pytest.fixture
def machine(client: SFNClient) -> Machine:
    return Machine(client, ARN)


def test_a_start_has_its_name_and_its_work(machine: Machine, states: Stubber) -> None:
    sent = {"stateMachineArn": ARN, "name": "one", "input": '{"run": "r"}'}
    states.add_response("start_execution", {"executionArn": EXECUTION, "startDate": WHEN}, sent)
    assert machine.start("one", {"run": "r"})


def test_a_name_that_is_taken_has_been_started(machine: Machine, states: Stubber) -> None:
    states.add_client_error("start_execution", "ExecutionAlreadyExists")
    assert not machine.start("one", {})


@pytest.mark.parametrize(("error", "sent"), [(None, {}), ("Stopped", {"error": "Stopped"})])
def test_a_stop_says_why(machine: Machine, states: Stubber, error: str | None, sent: dict[str, str]) -> None:
    states.add_response("stop_execution", {"stopDate": WHEN}, {"executionArn": EXECUTION, "cause": "over", **sent})
    machine.stop("one", "over", error)


def test_there_may_be_no_execution(machine: Machine, states: Stubber) -> None:
    states.add_client_error("stop_execution", "ExecutionDoesNotExist")
    states.add_client_error("describe_execution", "ExecutionDoesNotExist")
    machine.stop("one", "over")
    assert machine.status("one") is None


def test_running_executions_are_read_to_the_last_page(machine: Machine, states: Stubber) -> None:
    parameters = {"stateMachineArn": ARN, "statusFilter": "RUNNING"}
    for name, token, more in (("one", {}, {"nextToken": "t"}), ("two", {"nextToken": "t"}, {})):
        execution = {"executionArn": EXECUTION, "stateMachineArn": ARN, "name": name, "status": "RUNNING"}
        states.add_response(
            "list_executions", {"executions": [execution | {"startDate": WHEN}], **more}, parameters | token
        )
    assert machine.running() == ["one", "two"]


def test_other_refusals_are_raised(machine: Machine, states: Stubber) -> None:
    for operation in ("start_execution", "stop_execution", "describe_execution"):
        states.add_client_error(operation, "AccessDeniedException")
    for ask in (lambda: machine.start("one", {}), lambda: machine.stop("one", "over"), lambda: machine.status("one")):
        with pytest.raises(ClientError, match="AccessDenied"):
            ask()
