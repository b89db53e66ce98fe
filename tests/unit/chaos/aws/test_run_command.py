"""Run Command: what each answer of AWS means, through the SDK with the settings that the functions have."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    ReadTimeoutError,
    SSLError,
)

from troop.chaos.aws.run_command import CommandInDoubt, CommandRefused, RunCommand
from troop.chaos.injection_rules import NO_COMMAND, Command
from troop.shared.aws.clients import quick_client, single_client
from troop.shared.aws.throttling import QUICK_ATTEMPTS

DOCUMENT, INSTANCE, COMMENT = "AWSFIS-Run-CPU-Stress", "i-00000000000000001", "d1" * 32
COMMAND = "11111111-2222-3333-4444-555555555555"
ENDPOINT = "https://ssm.us-west-2.amazonaws.com"
SENT = (200, {"Command": {"CommandId": COMMAND}})


class _Body(io.BytesIO):
    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self.read()


@dataclass
class Wire:
    """Answers in place of the network.

    Attributes:
        answers: what is still to be answered: (HTTP status, body), or an exception of the connection.
        requests: the operation and the body of each request.
    """

    answers: list[tuple[int, Any] | Exception] = field(default_factory=list)
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def __call__(self, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        target = request.headers["X-Amz-Target"]
        operation = (target.decode() if isinstance(target, bytes) else target).partition(".")[2]
        body: Any = request.body
        self.requests.append((operation, json.loads(body)))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        status, content = answer
        raw = _Body((content if isinstance(content, str) else json.dumps(content)).encode())
        return AWSResponse(ENDPOINT, status, HTTPHeaders(), raw)


@pytest.fixture(scope="module")
def clients() -> Iterator[tuple[Any, Any]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_DEFAULT_REGION", "us-west-2")
        patch.setenv("AWS_ACCESS_KEY_ID", "key")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        yield single_client.__wrapped__("ssm"), quick_client.__wrapped__("ssm")


@pytest.fixture
def wire(clients: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda _: None, time=time.time))
    wire = Wire()
    for one in clients:
        one.meta.events.register("before-send.ssm", wire)
    yield wire
    for one in clients:
        one.meta.events.unregister("before-send.ssm", wire)
    assert wire.answers == []


@pytest.fixture
def commands(clients: tuple[Any, Any], wire: Wire) -> RunCommand:
    return RunCommand(*clients)


def _error(status: int, code: str) -> tuple[int, Any]:
    return status, {"__type": code, "message": f"AWS says {code}"}


# Sending


def test_a_command_goes_to_one_instance_and_is_not_delivered_late(commands: RunCommand, wire: Wire) -> None:
    wire.answers = [SENT]
    assert commands.send(DOCUMENT, INSTANCE, {"CPU": "0", "DurationSeconds": "60"}, COMMENT) == COMMAND
    sent = {
        "DocumentName": DOCUMENT,
        "InstanceIds": [INSTANCE],
        "Parameters": {"CPU": ["0"], "DurationSeconds": ["60"]},
        "Comment": COMMENT,
        "TimeoutSeconds": 30,
    }
    assert wire.requests == [("SendCommand", sent)]


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "AccessDeniedException"),
        (400, "InvalidDocument"),
        (400, "InvalidInstanceId"),
        (400, "ThrottlingException"),
        (403, "ExpiredTokenException"),
        (429, "TooManyRequestsException"),
    ],
)
def test_aws_certainly_refuses(commands: RunCommand, wire: Wire, status: int, code: str) -> None:
    wire.answers = [_error(status, code)]
    with pytest.raises(CommandRefused, match=f"AWS says {code}"):
        commands.send(DOCUMENT, INSTANCE, {}, COMMENT)
    assert len(wire.requests) == 1


def test_parameters_that_the_sdk_does_not_send_are_refused(commands: RunCommand, wire: Wire) -> None:
    wrong: Any = {"CPU": None}
    with pytest.raises(CommandRefused, match="CPU"):
        commands.send(DOCUMENT, INSTANCE, wrong, COMMENT)
    assert wire.requests == []


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(_error(500, "InternalServerError"), id="500"),
        pytest.param((502, "<html>Bad Gateway</html>"), id="502"),
        pytest.param(_error(503, "ServiceUnavailable"), id="503"),
        pytest.param((504, ""), id="504"),
        pytest.param(_error(408, "RequestTimeout"), id="408"),
        pytest.param((307, ""), id="307"),
        pytest.param((200, "<html>Welcome</html>"), id="a body that is not of AWS"),
        pytest.param((200, {"Command": {}}), id="no id"),
        pytest.param(ReadTimeoutError(endpoint_url=ENDPOINT), id="no answer in time"),
        pytest.param(ConnectTimeoutError(endpoint_url=ENDPOINT), id="no connection in time"),
        pytest.param(ConnectionClosedError(endpoint_url=ENDPOINT), id="closed"),
        pytest.param(EndpointConnectionError(endpoint_url=ENDPOINT, error="reset"), id="reset"),
        pytest.param(SSLError(endpoint_url=ENDPOINT, error=OSError("eof")), id="TLS"),
        pytest.param(HTTPClientError(error="broken"), id="broken"),
    ],
)
def test_nobody_knows_whether_aws_has_it_and_it_is_not_sent_again(
    commands: RunCommand, wire: Wire, answer: tuple[int, Any] | Exception
) -> None:
    wire.answers = [answer]
    with pytest.raises(CommandInDoubt):
        commands.send(DOCUMENT, INSTANCE, {}, COMMENT)
    assert len(wire.requests) == 1


def test_probes_are_sent_again(commands: RunCommand, wire: Wire) -> None:
    wire.answers = [_error(400, "ThrottlingException"), SENT]
    assert commands.send(DOCUMENT, INSTANCE, {}, COMMENT, once=False) == COMMAND
    wire.answers = [_error(500, "InternalServerError")] * QUICK_ATTEMPTS
    with pytest.raises(CommandInDoubt):
        commands.send(DOCUMENT, INSTANCE, {}, COMMENT, once=False)


# Reading


def _invocation(comment: str, *outputs: str, **changes: Any) -> dict[str, Any]:
    plugins = [{"Name": f"step{number}", "Output": output} for number, output in enumerate(outputs)]
    return {"CommandId": COMMAND, "Comment": comment, "Status": "Success", "CommandPlugins": plugins, **changes}


def _page(*invocations: dict[str, Any], token: str = "") -> tuple[int, Any]:
    return 200, {"CommandInvocations": list(invocations)} | ({"NextToken": token} if token else {})


def test_a_comment_identifies_a_command_on_every_page(commands: RunCommand, wire: Wire) -> None:
    other = _invocation("e2" * 32, CommandId="22222222-2222-3333-4444-555555555555")
    wire.answers = [_page(other, token="more"), _page(token="most"), _page(other, _invocation(COMMENT))]
    assert commands.read(INSTANCE, DOCUMENT, "", COMMENT) == Command(COMMAND, "Success")
    request = {"InstanceId": INSTANCE, "Details": True, "Filters": [{"key": "DocumentName", "value": DOCUMENT}]}
    assert wire.requests == [
        ("ListCommandInvocations", request),
        ("ListCommandInvocations", request | {"NextToken": "more"}),
        ("ListCommandInvocations", request | {"NextToken": "most"}),
    ]


def test_a_command_that_no_list_shows_tells_nothing(commands: RunCommand, wire: Wire) -> None:
    wire.answers = [_page(_invocation("e2" * 32)), _page()]
    assert commands.read(INSTANCE, DOCUMENT, "", COMMENT) is NO_COMMAND
    assert commands.read(INSTANCE, DOCUMENT, COMMAND, COMMENT) is NO_COMMAND


def test_a_command_with_an_id_is_read_by_it(commands: RunCommand, wire: Wire) -> None:
    wire.answers = [_page(_invocation("", Status="InProgress"))]
    assert commands.read(INSTANCE, DOCUMENT, COMMAND, COMMENT) == Command(COMMAND, "InProgress")
    assert wire.requests == [
        ("ListCommandInvocations", {"InstanceId": INSTANCE, "CommandId": COMMAND, "Details": True})
    ]


LONG = "x" * 2_485 + "---Output truncated---"


@pytest.mark.parametrize(
    ("outputs", "output"),
    [
        ([], ""),
        (["one\n"], "one\n"),
        (["one", "two"], "two"),
        (["one", "", " \n"], "one"),
        (["one\n----------ERROR-------\nlate"], "one"),
        (["one", "\n----------ERROR-------\nfailed to run"], "one"),
        ([LONG], LONG),
    ],
)
def test_the_output_is_what_the_last_step_wrote(
    commands: RunCommand, wire: Wire, outputs: list[str], output: str
) -> None:
    wire.answers = [_page(_invocation(COMMENT, *outputs))]
    assert commands.read(INSTANCE, DOCUMENT, COMMAND, COMMENT).output == output


def test_a_list_that_fails_is_not_an_empty_one(commands: RunCommand, wire: Wire) -> None:
    wire.answers = [_error(400, "ThrottlingException")] * QUICK_ATTEMPTS
    with pytest.raises(ClientError, match="AWS says ThrottlingException"):
        commands.read(INSTANCE, DOCUMENT, COMMAND, COMMENT)


# Cancelling


def test_a_command_is_cancelled_on_its_instance(commands: RunCommand, wire: Wire) -> None:
    wire.answers = [(200, {})]
    commands.cancel(INSTANCE, COMMAND)
    assert wire.requests == [("CancelCommand", {"CommandId": COMMAND, "InstanceIds": [INSTANCE]})]
