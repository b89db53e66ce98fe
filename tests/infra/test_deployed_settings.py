"""A plain `cdk deploy` warns at synth of the settings that it would reset, and never waits or fails for that."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

import aws_cdk as cdk
import botocore.session
import pytest
from aws_cdk.assertions import Annotations, Match, Template

from infra import ROOT
from infra.deployed_settings import warn_of_resets
from infra.settings import DeploymentSettings, read_settings, written_context
from infra.settings_record import SILENT, metadata
from tests.serving import Quiet, running

ACCOUNT = "123456789012"
SHOWN = "neither cdk.json nor this command has"


def settings(*overrides: str) -> DeploymentSettings:
    context = written_context()
    return read_settings(context | dict(one.split("=", 1) for one in overrides), context)


def synth(*overrides: str) -> tuple[list[str], dict[str, Any]]:
    """Returns the warnings and the template of a stack whose settings are cdk.json's and these."""
    stack = cdk.Stack(cdk.App(), "Troop")
    stack.template_options.metadata, _ = metadata(settings(*overrides))
    warn_of_resets(stack, settings(*overrides))
    warnings = Annotations.from_stack(stack).find_warning("*", Match.any_value())
    assembled = dict(Template.from_stack(stack).to_json())
    return [str(one.entry.data) for one in warnings], assembled


class Cloud(ThreadingHTTPServer):
    """Answers DescribeStacks and GetTemplate of one stack, as CloudFormation does."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Requests)
        self.body: dict[str, Any] | None = None
        self.status = 200
        self.calls: list[str] = []

    def deploy(self, *overrides: str) -> None:
        template_metadata, bus_metadata = metadata(settings(*overrides))
        self.body = {"Metadata": template_metadata, "Resources": {"Bus": {"Metadata": bus_metadata}}}

    def answer(self, action: str) -> tuple[int, str]:
        self.calls.append(action)
        if self.body is None or self.status != 200:
            return (
                self.status if self.body else 400
            ), "<ErrorResponse><Error><Code>ValidationError</Code></Error></ErrorResponse>"
        arn = f"arn:aws:cloudformation:eu-west-1:{ACCOUNT}:stack/Troop/1"
        stack = f"<Stacks><member><StackId>{arn}</StackId></member></Stacks>"
        text = stack if action == "DescribeStacks" else f"<TemplateBody>{escape(json.dumps(self.body))}</TemplateBody>"
        return 200, f"<{action}Response><{action}Result>{text}</{action}Result></{action}Response>"


class Requests(Quiet):
    server: Cloud

    def do_POST(self) -> None:
        query = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        status, text = self.server.answer(query["Action"][0])
        self.answer(status, text.encode())


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Cloud]:
    """An account; the environment is that of an app whose CDK has credentials."""
    server = Cloud()
    environment = {
        "CDK_DEFAULT_ACCOUNT": ACCOUNT,
        "CDK_DEFAULT_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
    }
    for name in ("AWS_PROFILE", SILENT):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with running(server):
        yield server


def test_settings_of_an_earlier_command_are_named_with_the_options_that_keep_them(cloud: Cloud) -> None:
    cloud.deploy("troop:participation=opt-in", "troop:allowed_buckets=my-data", 'troop:units={"web-*": "web"}')
    (warning,), assembled = synth("troop:probability=0.1")
    assert SHOWN in warning
    assert "troop:participation: opt-in -> opt-out" in warning
    options = shlex.split(warning.split("or add ")[1].split(" [ack:")[0])
    assert set(options[::2]) == {"-c"}
    assert synth(*options[1::2]) == ([], assembled | {"Metadata": metadata(settings(*options[1::2]))[0]})


def test_override_in_the_command_or_cdk_json_is_no_reset(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud.deploy("troop:participation=opt-in")
    edited = written_context() | {"troop:probability": 0.1}
    monkeypatch.setattr("tests.infra.test_deployed_settings.written_context", lambda: edited)
    assert synth("troop:participation=opt-in")[0] == []
    assert cloud.calls == ["DescribeStacks", "GetTemplate"]


def test_the_template_is_the_same_without_credentials(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud.deploy("troop:participation=opt-in")
    warnings, assembled = synth()
    assert warnings
    monkeypatch.delenv("CDK_DEFAULT_ACCOUNT")
    monkeypatch.setattr(botocore.session, "get_session", lambda: pytest.fail("no credentials, no session"))
    assert synth() == ([], assembled)


def test_make_shows_it_itself(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud.deploy("troop:participation=opt-in")
    monkeypatch.setenv(SILENT, "1")
    assert (synth()[0], cloud.calls) == ([], [])


def test_another_account_than_that_of_the_cdk_says_nothing(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """`cdk --profile` does not tell the app its profile."""
    cloud.deploy("troop:participation=opt-in")
    monkeypatch.setenv("CDK_DEFAULT_ACCOUNT", "111122223333")
    assert (synth()[0], cloud.calls) == ([], ["DescribeStacks"])


def test_a_stack_that_is_absent_or_without_a_record_says_nothing(cloud: Cloud) -> None:
    assert synth()[0] == []
    cloud.body = {"Resources": {}}
    assert synth()[0] == []
    assert cloud.calls == ["DescribeStacks", "DescribeStacks", "GetTemplate"]


def test_aws_that_refuses_or_does_not_answer_ends_nothing(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud.deploy("troop:participation=opt-in")
    for cloud.status in (403, 500):
        assert synth()[0] == []
    assert cloud.calls == ["DescribeStacks"] * 2, "no retries"
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    assert synth()[0] == []
    monkeypatch.setenv("AWS_PROFILE", "missing")
    assert synth()[0] == []


def test_synthesis_asks_for_no_mfa_code(cloud: Cloud, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The person has just typed one for the CDK, which does not hand on its credentials."""
    cloud.deploy("troop:participation=opt-in")
    (tmp_path / "config").write_text(
        "[profile admin]\nrole_arn = arn:aws:iam::123456789012:role/admin\nsource_profile = me\n"
        "mfa_serial = arn:aws:iam::123456789012:mfa/me\nregion = eu-west-1\n"
        "[profile me]\naws_access_key_id = a\naws_secret_access_key = b\n"
    )
    monkeypatch.setenv("AWS_PROFILE", "admin")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    assert (synth()[0], cloud.calls) == ([], [])


def test_the_app_calls_it() -> None:
    lines = (ROOT / "app.py").read_text(encoding="utf-8").splitlines()
    assert lines.index("warn_of_resets(stack, stack.settings)") < lines.index("app.synth()")
