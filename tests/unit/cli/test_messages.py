"""What can be wrong before the API is even asked, and what its refusals mean: one line, and an exit code, for each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    UnauthorizedSSOTokenError,
)
from typer.testing import CliRunner, Result

from cli.app import app
from cli.client import deployment
from cli.client.api import Answer, UnreachableError
from cli.client.client import TroopClient
from cli.shared import aws, show
from cli.shared.errors import CliError, Exit
from tests.unit.cli.conftest import ARN, FakeApi, Run

STACK_ID = "arn:aws-cn:cloudformation:cn-north-1:111122223333:stack/Troop/uuid"
URL = "https://abc123.execute-api.cn-north-1.amazonaws.com.cn/v1/"


def refused(code: str, message: str = "", operation: str = "DescribeStacks") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, operation)


class Cloud:
    """CloudFormation and STS of several regions: stacks by (region, name), or what is raised instead."""

    def __init__(self) -> None:
        self.stacks: dict[tuple[str, str], dict[str, Any]] = {}
        self.error: Exception | None = None

    def add(self, region: str, name: str = "Troop", status: str = "CREATE_COMPLETE", url: str | None = URL) -> None:
        outputs = [{"OutputKey": "ApiUrl", "OutputValue": url}] if url else []
        self.stacks[region, name] = {
            "StackName": name,
            "StackId": STACK_ID,
            "StackStatus": status,
            "Outputs": outputs,
            "Tags": [{"Key": "troop:deployment", "Value": name}],
        }

    def client(self, session: boto3.Session, service: str, **options: Any) -> Any:
        region = options.get("region_name") or session.region_name
        cloud = self

        class Client:
            def describe_stacks(self, StackName: str) -> dict[str, Any]:
                if cloud.error:
                    raise cloud.error
                if (region, StackName) not in cloud.stacks:
                    raise refused("ValidationError", f"Stack with id {StackName} does not exist")
                return {"Stacks": [cloud.stacks[region, StackName]]}

            def get_caller_identity(self) -> dict[str, str]:
                return {"Account": "111122223333"}

            def get_paginator(self, _name: str) -> Any:
                return self

            def paginate(self) -> list[dict[str, Any]]:
                return [{"Stacks": [stack for (r, _), stack in cloud.stacks.items() if r == region]}]

        return Client()


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cloud:
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    cloud = Cloud()
    monkeypatch.setattr(aws, "client", cloud.client)
    return cloud


def troop(*words: str) -> Result:
    return CliRunner().invoke(app, [*words, "events"])


@pytest.mark.usefixtures("cloud")
def test_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    result = troop("--region", "eu-central-1")
    assert result.exit_code == Exit.NO_CREDENTIALS
    assert "no AWS credentials: set AWS_PROFILE" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.usefixtures("cloud")
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--profile", "nobody"), Exit.NO_CREDENTIALS, "nobody"),
        ((), Exit.WRONG_REGION, "no AWS region is set"),
        (("--region", "frankfurt"), Exit.WRONG_REGION, "'frankfurt' is not an AWS region"),
        (("--region", "eu-central-1", "-d", "a/b"), Exit.NO_DEPLOYMENT, "cannot be a deployment's name"),
    ],
)
def test_option_that_leads_to_no_account_is_named(words: tuple[str, ...], code: Exit, message: str) -> None:
    result = troop(*words)
    assert (result.exit_code, message in result.stderr) == (code, True), result.stderr


@pytest.mark.usefixtures("cloud")
def test_the_region_comes_from_the_option_then_aws_region_then_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-3")
    assert aws.make_light_session(None, None).region_name == "eu-west-3"
    monkeypatch.setenv("AWS_REGION", "eu-west-2")
    assert aws.make_light_session(None, None).region_name == "eu-west-2"
    assert aws.make_session(None, "eu-west-1").region_name == "eu-west-1"


def test_a_region_that_the_sdk_does_not_know_is_doubted_and_used(cloud: Cloud) -> None:
    """AWS opens regions between two versions of the SDK."""
    result = troop("--region", "eu-central-9")
    assert "does not know the region eu-central-9; did you mean eu-central-" in result.stderr
    assert result.exit_code == Exit.NO_DEPLOYMENT
    assert "there is no deployment Troop in region eu-central-9" in result.stderr


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (refused("ExpiredToken", "The security token included in the request is expired"), 4, "have expired"),
        (UnauthorizedSSOTokenError(), 4, "have expired"),
        (CredentialRetrievalError(provider="p", error_msg="token expired"), 4, "have expired"),
        (refused("InvalidClientTokenId"), 3, "rejects the credentials"),
        (CredentialRetrievalError(provider="p", error_msg="no such file"), 3, "no such file"),
        (refused("AccessDenied", "User ada is not authorized"), 8, "must allow cloudformation:DescribeStacks"),
        (EndpointConnectionError(endpoint_url="https://x"), 9, "AWS cannot be reached"),
        (ConnectTimeoutError(endpoint_url="https://x"), 9, "AWS cannot be reached"),
        (refused("Throttling", "Rate exceeded"), 1, "DescribeStacks failed: Throttling"),
    ],
)
def test_refusal_of_aws_has_an_exit_code_and_one_line(cloud: Cloud, error: Exception, code: int, message: str) -> None:
    cloud.error = error
    result = troop("--region", "eu-central-1")
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_no_deployment_of_that_name(cloud: Cloud) -> None:
    result = troop("--region", "eu-central-1")
    assert result.exit_code == Exit.NO_DEPLOYMENT
    assert "there is no deployment Troop in region eu-central-1 of account 111122223333" in result.stderr
    cloud.add("eu-central-1", "Troop-Staging")
    assert "choose an existing one with --deployment: Troop-Staging" in troop("--region", "eu-central-1").stderr


def test_deployment_in_another_region_is_named(cloud: Cloud) -> None:
    cloud.add("eu-west-1")
    result = troop("--region", "eu-central-1")
    assert result.exit_code == Exit.WRONG_REGION
    assert "one in eu-west-1: add --region eu-west-1" in result.stderr


@pytest.mark.parametrize("status", ["CREATE_IN_PROGRESS", "REVIEW_IN_PROGRESS", "ROLLBACK_COMPLETE"])
def test_a_stack_that_is_not_there_yet(cloud: Cloud, status: str) -> None:
    cloud.add("eu-central-1", status=status, url=None)
    result = troop("--region", "eu-central-1")
    assert result.exit_code == Exit.NO_DEPLOYMENT
    assert status in result.stderr


CONFIG = """
[default]
region = eu-west-1
[profile dev]
region = eu-west-2
aws_access_key_id = AKIDDEV
aws_secret_access_key = dev
[profile process]
credential_process = echo '{"Version": 1, "AccessKeyId": "AKIDPROCESS", "SecretAccessKey": "p", "SessionToken": "t"}'
"""


@pytest.mark.usefixtures("cloud")
@pytest.mark.parametrize(
    ("profile", "region", "environment"),
    [
        (None, None, {}),
        (None, "eu-north-1", {}),
        (None, None, {"AWS_PROFILE": "dev"}),
        (None, None, {"AWS_DEFAULT_REGION": "eu-south-1"}),
        ("dev", None, {}),
        ("dev", "eu-west-3", {}),
        ("process", "us-gov-west-1", {}),
    ],
)
def test_profiles_and_regions_are_those_that_boto3_chooses(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    profile: str | None,
    region: str | None,
    environment: dict[str, str],
) -> None:
    (tmp_path / "config").write_text(CONFIG)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    def chosen(session: Any) -> tuple[Any, ...]:
        return session.region_name, session.get_credentials().get_frozen_credentials()

    expected = chosen(boto3.Session(profile_name=profile, region_name=region))
    assert chosen(aws.make_light_session(profile, region)) == expected
    assert chosen(aws.make_session(profile, region)) == expected


def test_a_deployment_that_is_there(cloud: Cloud) -> None:
    cloud.add("cn-north-1")
    session = aws.make_session(None, "cn-north-1")
    target = deployment.find_deployment(session, "Troop")
    assert target.api_url == URL
    assert target.api_arn == "arn:aws-cn:execute-api:cn-north-1:111122223333:abc123/v1"
    assert str(target) == "Troop in account 111122223333, region cn-north-1"


def test_aws_on_this_machine_serves_the_api_itself(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud.add("us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://127.0.0.1:4566")
    session = aws.make_session(None, "us-east-1")
    target = deployment.find_deployment(session, "Troop")
    assert target.api_url == "https://127.0.0.1:4566/restapis/abc123/v1/_user_request_/"


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        (Answer(403, {"Message": "User: x is not authorized to perform: execute-api:Invoke"}), 8, "/GET/health and"),
        (Answer(403, {"message": "Forbidden"}, "AccessDeniedException"), 8, f"execute-api:Invoke on {ARN}/GET/health"),
        (Answer(403, {"message": "The security token included in the request is expired"}), 4, "have expired"),
        (Answer(403, {"message": "x"}, "ExpiredTokenException"), 4, "have expired"),
        (
            Answer(403, {"message": "The security token included in the request is invalid."}),
            3,
            "rejects the credentials",
        ),
        (
            Answer(403, {"message": "Signature expired: 1 is before 2"}, "InvalidSignatureException"),
            8,
            "clock",
        ),
        (Answer(403, {"message": "Missing Authentication Token"}), 10, "older than this command"),
        (Answer(404, {"message": "there is no such thing"}), 10, "there is no such thing"),
        (Answer(429, {"message": "Too Many Requests"}), 12, "too many requests"),
        (Answer(500, {"statusCode": 500, "message": "look for request 1"}), 12, "with 500: look for request 1"),
        (Answer(500, {"message": "Internal server error"}), 12, "Lambda may be throttling it"),
        (Answer(503, {"message": "Lambda did not start"}), 12, "docs/guides/runbook.md#halt-without-the-api"),
        (Answer(200, None), 12, "with 200"),
        (Answer(502, None), 12, "with 502"),
    ],
)
def test_refusal_of_the_api_has_an_exit_code_and_message(
    run: Run, api: FakeApi, answer: Answer, code: int, message: str
) -> None:
    api.refusals["GET", "health"] = [answer]
    result = run("doctor")
    assert result.exit_code == code
    assert message in result.stderr


def test_the_api_is_out_of_reach(monkeypatch: pytest.MonkeyPatch, run: Run, api: FakeApi) -> None:
    def nobody(*_: Any, **__: Any) -> Answer:
        raise UnreachableError("connection refused")

    monkeypatch.setattr(api, "request", nobody)
    result = run("groups")
    assert result.exit_code == Exit.UNREACHABLE
    assert "cannot be reached: connection refused" in result.stderr


def test_temporary_failure_is_retried(client: TroopClient, api: FakeApi) -> None:
    api.refusals["GET", "switch"] = [Answer(429, None), Answer(503, None), Answer(200, {"leashed": True})]
    assert client.switch() == {"leashed": True}


def test_change_is_retried_only_when_it_had_no_effect(client: TroopClient, api: FakeApi) -> None:
    api.refusals["PATCH", "groups/web"] = [Answer(429, None), Answer(503, None), Answer(200, {})]
    with pytest.raises(CliError, match="503"):
        client.change_unit("web", {"opt_out": True})
    assert len(api.changes()) == 2


def test_help_lists_every_exit_code() -> None:
    text = "".join(CliRunner().invoke(app, ["--help"]).stdout.split())  # a line can end at a hyphen
    assert [code for code in Exit if "".join(f"{code:d} {code.meaning}".split()) not in text] == []


@pytest.mark.parametrize("command", [[], ["policy"]])
def test_help_without_a_command(command: list[str], run: Callable[..., Result]) -> None:
    assert "Usage" in run(*command).output


STEERING = {"name": "a\x9b31m\x9b2J\u202eb\x7f\u2066", "plain": "Ä\n€ \U0001f600", "half": "\U000e0001"}


@pytest.mark.parametrize("write", [show.document, show.line])
def test_on_a_terminal_json_steers_nothing_and_says_the_same(
    write: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(STEERING)
    raw = capsys.readouterr().out
    assert "\x9b" in raw
    monkeypatch.setattr(show, "is_terminal", lambda: True)
    write(STEERING)
    text = capsys.readouterr().out
    assert all(c == "\n" or c.isprintable() for c in text)
    assert "Ä" in text
    assert json.loads(text) == json.loads(raw) == STEERING
