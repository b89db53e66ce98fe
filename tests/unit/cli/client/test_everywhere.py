"""Many deployments asked at once: none of them can stop the others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import botocore.client
import botocore.session
import pytest
from botocore.credentials import AssumeRoleCredentialFetcher, Credentials, RefreshableCredentials
from botocore.exceptions import ClientError, RefreshWithMFAUnsupportedError
from moto import mock_aws

from cli.client import everywhere
from cli.client.client import TroopClient
from cli.client.connection import Connection
from cli.client.deployment import Deployment
from cli.client.deployments_file import ListedDeployment
from cli.client.everywhere import Everywhere
from cli.shared import aws
from cli.shared.errors import CliError, Exit
from tests.unit.cli.conftest import ARN, FakeApi

LISTED = [ListedDeployment(name, "eu-central-1", label=name) for name in ("Dead", "Live", "Shut")]

TOMORROW = datetime.now(UTC) + timedelta(days=1)


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The labels of the deployments that were connected, in this order; those called Shut cannot be."""
    labels: list[str] = []

    def connect(listed: ListedDeployment) -> Connection:
        labels.append(listed.label)
        if listed.name == "Shut":
            raise CliError(Exit.FORBIDDEN, "permission denied")
        return connection(listed.name)

    monkeypatch.setattr(everywhere, "connect", connect)
    return labels


def connection(name: str) -> Connection:
    deployment = Deployment(name, "eu-central-1", "111122223333", {}, ARN)
    return Connection(deployment, TroopClient(FakeApi(), ARN, str(deployment)))


@pytest.fixture
def profiles(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Writes the only profiles, each with some settings."""
    for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(aws, "_SHARED", {})
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))

    def write(**settings: str) -> None:
        text = "".join(f"[profile {name}]\n{lines}\n" for name, lines in settings.items())
        (tmp_path / "config").write_text(text)

    return write


def unless_dead(failure: Callable[[], Any]) -> Callable[[Connection], str]:
    return lambda conn: failure() if conn.deployment.name == "Dead" else conn.deployment.name


@pytest.mark.usefixtures("connected")
@pytest.mark.parametrize(
    ("failure", "code", "words"),
    [
        (lambda: threading.Event().wait(), Exit.UNREACHABLE, "no answer within 0.2 seconds"),
        (lambda: int("x"), Exit.API_FAILED, "makes no sense to this command (ValueError: invalid literal"),
    ],
)
def test_the_others_answer_beside_one_that_does_not(failure: Callable[[], Any], code: Exit, words: str) -> None:
    dead, live, shut = Everywhere(LISTED).ask(unless_dead(failure), seconds=0.2)
    assert (live.answer, live.answered) == ("Live", True)
    assert dead.error
    assert (dead.error.code, dead.answered, words in str(dead.error)) == (code, False, True)
    assert dead.connection  # so that a person can be told how to reach it otherwise
    assert (shut.answered, shut.connection) == (False, None)
    assert shut.document() == {
        "deployment": "Shut",
        "name": "Shut",
        "region": "eu-central-1",
        "account": None,
        "stage": None,
        "answered": False,
        "error": "permission denied",
        "answer": None,
    }


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("credential_process = /no/such/program", "FileNotFoundError: [Errno 2] No such file"),
        ("credential_process = echo hello", "JSONDecodeError: Expecting value"),
        ("aws_access_key_id = A\naws_secret_access_key = s\nendpoint_url = nonsense", "Invalid endpoint: nonsense"),
    ],
)
def test_the_others_answer_beside_a_profile_that_is_broken(
    profiles: Callable[..., None], setting: str, words: str
) -> None:
    profiles(broken=setting)
    broken = ListedDeployment("Troop", "us-east-1", profile="broken", label="Troop")
    live = ListedDeployment("Live", "us-east-1", label="Live")
    first, second = Everywhere([broken, live], {"Live": connection("Live")}).ask(lambda conn: conn.deployment.name)
    assert first.error
    assert (words in str(first.error), second.answer) == (True, "Live")


def sessions_of(profile: str, monkeypatch: pytest.MonkeyPatch) -> Everywhere:
    """Three deployments of one profile, which need only their sessions to connect."""
    monkeypatch.setattr(everywhere, "connect_in", lambda _session, name, *_args, **_more: connection(name))
    return Everywhere([ListedDeployment(name, "us-east-1", profile, label=name) for name in "abc"])


@pytest.mark.parametrize("printed", ['{"Version": 1, "AccessKeyId": "A", "SecretAccessKey": "s"}', "no JSON"])
def test_deployments_of_one_profile_run_its_program_once(
    profiles: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, printed: str
) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho >> {tmp_path}/runs\necho '{printed}'\n")
    program.chmod(0o700)
    profiles(one=f"credential_process = {program}")
    replies = sessions_of("one", monkeypatch).ask(lambda conn: conn.deployment.name)
    assert [reply.answered for reply in replies] == [printed != "no JSON"] * 3
    with suppress(ValueError):
        aws.make_session("one", "eu-west-1", shared=True)  # as the page does
    assert (tmp_path / "runs").read_text() == "\n"


@pytest.mark.parametrize(
    ("failure", "times"),
    [
        (None, 1),
        (ClientError({"Error": {"Code": "AccessDenied", "Message": "wrong code"}}, "AssumeRole"), 1),
        (ConnectionError("no route"), 2),  # AWS has not seen the code
    ],
)
def test_code_of_a_profile_is_typed_once_and_without_haste(
    profiles: Callable[..., None], monkeypatch: pytest.MonkeyPatch, failure: Exception | None, times: int
) -> None:
    profiles(base="mfa_serial = arn:aws:iam::111122223333:mfa/ann", one="source_profile = base")
    typing: list[bool] = []

    def typed(_session: Any) -> Credentials:
        typing.append(threading.current_thread() is threading.main_thread())
        if failure:
            raise failure
        return Credentials("A", "s")

    monkeypatch.setattr(botocore.session.Session, "get_credentials", typed)
    all_of_them = sessions_of("one", monkeypatch)
    for _ in range(2):
        assert [reply.answered for reply in all_of_them.ask(lambda _: None)] == [not failure] * 3
    assert typing == [True] * times


def test_code_is_typed_again_once_the_credentials_have_expired(
    profiles: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    profiles(one="mfa_serial = arn:aws:iam::111122223333:mfa/ann")
    typed: list[RefreshableCredentials] = []

    def refresh() -> None:
        raise RefreshWithMFAUnsupportedError

    def type_code(_session: Any) -> Credentials:
        typed.append(RefreshableCredentials("A", "s", "t", TOMORROW, refresh, "assume-role"))
        return typed[-1]

    monkeypatch.setattr(botocore.session.Session, "get_credentials", type_code)
    all_of_them = sessions_of("one", monkeypatch)

    def sign(_conn: Connection) -> None:
        aws.shared_credentials("one", "us-east-1").get_frozen_credentials()

    def codes() -> set[Exit | None]:
        return {reply.error.code if reply.error else None for reply in all_of_them.ask(sign)}

    assert codes() == {None}
    monkeypatch.setattr(typed[0], "_expiry_time", TOMORROW - timedelta(days=2))
    assert codes() == {Exit.EXPIRED_CREDENTIALS}
    assert codes() == {None}
    assert len(typed) == 2


def test_keys_that_another_program_replaces_are_read_again(
    profiles: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aws.SharedCredentials, "_SECONDS", -1.0, raising=False)
    keys = "aws_access_key_id = {0}\naws_secret_access_key = s\naws_session_token = t"
    profiles(one=keys.format("OLD"))
    credentials = aws.make_light_session("one", "us-east-1", shared=True).get_credentials()
    profiles(one=keys.format("NEW"))
    assert credentials.get_frozen_credentials().access_key == credentials.access_key == "NEW"


def test_nobody_waits_for_the_code_of_another_profile(
    profiles: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    profiles(one="mfa_serial = arn:aws:iam::111122223333:mfa/ann", two="mfa_serial = arn:aws:iam::111122223333:mfa/bob")
    heard = {name: threading.Event() for name in ("Free", "one", "two")}
    earlier: dict[str, bool] = {}

    def typed(session: Any) -> Credentials:
        before = {"one": "Free", "two": "one"}[session.profile]
        earlier[session.profile] = heard[before].wait(5)
        return Credentials("A", "s")

    monkeypatch.setattr(botocore.session.Session, "get_credentials", typed)
    monkeypatch.setattr(everywhere, "connect_in", lambda _session, name, *_args, **_more: connection(name))
    listed = [ListedDeployment(name, "us-east-1", name, label=name) for name in ("one", "two")]
    free = ListedDeployment("Free", "us-east-1", label="Free")
    all_of_them = Everywhere([*listed, free], {"Free": connection("Free")})
    replies = all_of_them.ask(
        lambda conn: conn.deployment.name, heard=lambda reply: heard[reply.deployment.label].set()
    )
    assert [reply.answer for reply in replies] == ["one", "two", "Free"]
    assert earlier == {"one": True, "two": True}


@pytest.mark.parametrize(
    ("code", "hosts"),
    [
        ("", ["sts.eu-west-1.amazonaws.com", "sts.cn-north-1.amazonaws.com.cn"]),
        ("mfa_serial = arn:aws:iam::111122223333:mfa/ann", ["sts.eu-west-1.amazonaws.com"]),  # one code, one request
    ],
)
def test_role_of_a_profile_is_assumed_in_the_region_of_the_deployment(
    profiles: Callable[..., None], monkeypatch: pytest.MonkeyPatch, code: str, hosts: list[str]
) -> None:
    own = "aws_access_key_id = A\naws_secret_access_key = s"
    profiles(base=own, one=f"role_arn = arn:aws:iam::111122223333:role/troop\nsource_profile = base\n{code}")
    addresses: list[str] = []

    def refuse(client: Any, operation: str, *_: Any) -> None:
        addresses.append(client.meta.endpoint_url)
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, operation)

    monkeypatch.setattr(botocore.client.BaseClient, "_make_api_call", refuse)
    monkeypatch.setattr(AssumeRoleCredentialFetcher, "_assume_role_kwargs", lambda _: {})  # it reads the code
    listed = [ListedDeployment("Troop", region, "one", label=region) for region in ("eu-west-1", "cn-north-1")]
    assert not any(reply.answered for reply in Everywhere(listed).ask(lambda _: None))
    assert sorted(addresses, reverse=True) == [f"https://{host}" for host in hosts]


def test_deployment_that_has_no_such_unit_answers(connected: list[str]) -> None:
    def no_unit() -> None:
        raise CliError(Exit.NO_SUCH_UNIT, "there is no unit 'web'")

    assert Everywhere(LISTED[:1]).ask(unless_dead(no_unit))[0].answered


def test_only_a_connection_that_succeeded_is_used_again(connected: list[str]) -> None:
    all_of_them = Everywhere(LISTED)
    for _ in range(2):
        all_of_them.ask(lambda conn: conn.deployment.name)
    assert sorted(connected) == ["Dead", "Live", "Shut", "Shut"]


@pytest.mark.usefixtures("connected")
def test_no_more_than_the_limit_answer_at_one_time() -> None:
    running, most, lock = set[str](), [0], threading.Lock()
    pair = threading.Barrier(2, timeout=300)

    def count(conn: Connection) -> None:
        with lock:
            running.add(conn.deployment.name)
            most[0] = max(most[0], len(running))
        pair.wait()
        with lock:
            running.discard(conn.deployment.name)

    listed = [ListedDeployment(f"N{number}", "eu-central-1", label=f"N{number}") for number in range(6)]
    assert all(reply.answered for reply in Everywhere(listed).ask(count, at_once=2, seconds=300))
    assert most == [2]


def test_role_is_assumed_in_the_name_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    role = "arn:aws:iam::444455556666:role/troop"
    with mock_aws():
        caller = boto3.client("sts", "eu-west-1").get_caller_identity()["Arn"].rpartition("/")[2]
        session = aws.make_light_session(None, "eu-west-1", role, "x7")
        identity = session.client("sts").get_caller_identity()
    assert identity["Arn"] == f"arn:aws:sts::444455556666:assumed-role/troop/{caller}"
    assert session.region_name == "eu-west-1"


def test_profile_can_lead_to_aws_on_this_machine(profiles: Callable[..., None]) -> None:
    own = "aws_access_key_id = A\naws_secret_access_key = s\nendpoint_url = http://127.0.0.1:"
    profiles(a=f"{own}4501", b=f"{own}4502")
    sessions = [aws.make_light_session(name, "us-east-1") for name in "ab"]
    assert [aws.endpoint(one) for one in sessions] == ["http://127.0.0.1:4501", "http://127.0.0.1:4502"]
    assert [one.client("sts").meta.endpoint_url for one in sessions] == [aws.endpoint(one) for one in sessions]
    assert all(aws.is_local(one) for one in sessions)
