"""The way from options to a deployment's API; and versions of the two, as people notice them."""

from __future__ import annotations

from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import boto3
import pytest

from cli.client.api import Answer
from cli.client.calls import Calls
from cli.client.connection import VersionCheck, connect
from cli.shared import aws
from cli.shared.context import Options
from cli.shared.errors import CliError, Exit
from perf.command import Aws
from tests.serving import Quiet, running
from tests.unit.cli.conftest import FakeApi
from tests.unit.tls import certificate, serving
from troop.shared.version import VERSION, VERSION_HEADER, is_older


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """Credentials in the environment, and nothing else of AWS."""
    own = ("AWS_PROFILE", "AWS_REGION", "AWS_ENDPOINT_URL", "AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE")
    for name in (*own, "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    return monkeypatch


@pytest.mark.parametrize("trusted", ["AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "ca_bundle", None])
def test_stack_and_api_answer_over_tls_to_who_trusts_their_certificate(
    environment: pytest.MonkeyPatch, tmp_path: Path, trusted: str | None
) -> None:
    own = certificate(tmp_path)
    Aws.api = FakeApi()
    Aws.api.add("web")
    with serving(Aws, own) as url:
        environment.setenv("AWS_ENDPOINT_URL_CLOUDFORMATION", url)
        if trusted:
            config = tmp_path / "config"
            config.write_text(f"[profile own]\naws_access_key_id = A\naws_secret_access_key = s\nca_bundle = {own}\n")
            environment.setenv("AWS_CONFIG_FILE", str(config))
            environment.setenv(trusted, str(own))
            conn = connect(Options("Troop", "eu-central-1", "own" if trusted == "ca_bundle" else None))
            assert [group["unit"] for group in conn.client.groups()] == ["web"]
            assert str(conn.deployment) == "Troop in account 111122223333, region eu-central-1"
        else:
            with pytest.raises(CliError, match="certificate verify failed") as refused:
                connect(Options("Troop", "eu-central-1"))
            assert refused.value.code is Exit.UNREACHABLE


class Refusing(Quiet):
    """A proxy that lets nobody through, and remembers where they wanted to go."""

    targets: list[str]

    def do_CONNECT(self) -> None:
        self.targets.append(self.path)
        self.answer(403)


def test_the_proxy_of_the_environment_is_on_the_way(environment: pytest.MonkeyPatch) -> None:
    Refusing.targets = []
    with running(ThreadingHTTPServer(("127.0.0.1", 0), Refusing)) as proxy:
        environment.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.server_address[1]}")
        with pytest.raises(CliError, match="proxy") as refused:
            connect(Options("Troop", "us-gov-west-1"))
    assert refused.value.code is Exit.UNREACHABLE
    assert set(Refusing.targets) == {"cloudformation.us-gov-west-1.amazonaws.com:443"}


@pytest.mark.parametrize("region", ["eu-central-1", "us-gov-west-1", "cn-north-1"])
@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"AWS_USE_FIPS_ENDPOINT": "true"},
        {"AWS_USE_DUALSTACK_ENDPOINT": "true"},
        {"AWS_ENDPOINT_URL": "https://127.0.0.1:4566"},
    ],
)
def test_endpoints_are_those_that_boto3_chooses(
    environment: pytest.MonkeyPatch, region: str, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        environment.setenv(name, value)

    def endpoint(session: Any) -> str:
        return str(aws.client(session, "cloudformation").meta.endpoint_url)

    assert endpoint(aws.make_light_session(None, region)) == endpoint(boto3.Session(region_name=region))


class Deployed:
    """An API of a version."""

    def __init__(self, headers: dict[str, str], answer: Answer | None = None) -> None:
        self.answer = answer or Answer(200, {"ok": True}, headers=headers)

    def request(self, *args: Any, **options: Any) -> Answer:
        return self.answer


@pytest.mark.parametrize(
    ("headers", "notes"),
    [
        ({VERSION_HEADER: "99.0.0"}, 1),
        ({VERSION_HEADER: VERSION}, 0),
        ({VERSION_HEADER: "0.0.1"}, 0),
        ({VERSION_HEADER: "\x1b[31m99"}, 0),
        ({}, 0),
    ],
)
def test_a_newer_deployment_is_mentioned_once(
    headers: dict[str, str], notes: int, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = Calls(VersionCheck(Deployed(headers), "Troop in 1111"), "arn", "Troop in 1111")
    for _ in range(3):
        assert calls.ok("GET", "events") == {"ok": True}
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("upgrade the command")) == ("", notes)
    assert ("Troop in 1111 has 99.0.0" in shown.err) == bool(notes)


def test_a_refusal_says_what_to_do() -> None:
    refusal = Answer(400, {"statusCode": 400, "message": "needs at least 1.2.0: upgrade the command"})
    with pytest.raises(CliError, match="upgrade the command") as caught:
        Calls(VersionCheck(Deployed({}, refusal), "Troop"), "arn", "Troop").ok("GET", "events")
    assert caught.value.code is Exit.REFUSED


@pytest.mark.parametrize(
    ("one", "other", "older"),
    [("0.9.0", "0.10.0", True), ("1.0.0", "0.99.99", False), ("1.0.0", "1.0.0", False), ("", "1.0.0", False)],
)
def test_versions_are_compared_by_number(one: str, other: str, older: bool) -> None:
    assert is_older(one, other) is older
