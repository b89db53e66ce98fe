"""The signed API against a server on this machine: what goes out, and what comes back."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Iterator
from functools import partial
from http.server import HTTPServer
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import NoCredentialsError

from cli.client.api import Answer, UnreachableError
from cli.client.signed_api import SignedApi
from cli.shared import side_by_side
from tests.serving import Quiet, running
from tests.unit.tls import certificate, serving
from troop.shared.version import VERSION

SESSION = boto3.Session(
    aws_access_key_id="AKIDEXAMPLE", aws_secret_access_key="secret", aws_session_token="token", region_name="eu-west-1"
)


class Recorder(HTTPServer):
    """Keeps requests; answers with ``status`` and ``content``."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[dict[str, Any]] = []
        self.status, self.content, self.headers = (
            200,
            b'{"fine": true}',
            {
                "x-amzn-errortype": "Kind",
                "Troop-Complete-After": "5",
            },
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1/"


class _Handler(Quiet):
    server: Recorder

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append({"target": self.path, "headers": dict(self.headers.items()), "body": body})
        self.send_response(self.server.status)
        for name, value in (self.server.headers | {"Content-Length": str(len(self.server.content))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(self.server.content)

    do_PATCH = do_GET


@pytest.fixture
def server() -> Iterator[Recorder]:
    with running(Recorder()) as server:
        yield server


def test_every_request_is_signed(server: Recorder) -> None:
    answer = SignedApi(server.url, SESSION).get("events", {"unit": "a b/c", "since": "2026-11-20T10:00:00Z"})
    assert answer == Answer(200, {"fine": True}, "Kind", {"Troop-Complete-After": "5"})
    (seen,) = server.seen
    assert seen["target"] == "/v1/events?unit=a%20b%2Fc&since=2026-11-20T10%3A00%3A00Z"
    scope = r"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/\d{8}/eu-west-1/execute-api/aws4_request, SignedHeaders=host;"
    assert re.match(scope, seen["headers"]["Authorization"])
    assert seen["headers"]["X-Amz-Security-Token"] == "token"
    assert seen["headers"]["Troop-Command-Version"] == VERSION


def test_a_body_is_json(server: Recorder) -> None:
    SignedApi(server.url, SESSION).request("PATCH", "groups/web~2Fapi", body={"owner": "ä", "until": None})
    (seen,) = server.seen
    assert seen["target"] == "/v1/groups/web~2Fapi"
    assert seen["headers"]["Content-Type"] == "application/json"
    assert json.loads(seen["body"]) == {"owner": "ä", "until": None}


def test_refusals_are_answers(server: Recorder) -> None:
    server.status, server.content = 403, b'{"Message": "no"}'
    answer = SignedApi(server.url, SESSION).get("events")
    assert (answer.status, answer.message) == (403, "no")


def test_answer_without_json_has_no_body(server: Recorder) -> None:
    server.status, server.content = 502, b"<html>"
    answer = SignedApi(server.url, SESSION).get("events")
    assert (answer.status, answer.body, answer.message) == (502, None, "")


def test_no_signature_is_taken_elsewhere(server: Recorder) -> None:
    server.status, server.headers = 302, {"Location": server.url + "elsewhere"}
    answer = SignedApi(server.url, SESSION).get("events")
    assert (answer.status, answer.headers) == (302, server.headers), "whoever has asked may go there without one"
    assert len(server.seen) == 1


def test_nobody_answers(server: Recorder) -> None:
    with pytest.raises(UnreachableError):
        SignedApi("http://127.0.0.1:9/v1/", SESSION).get("events")
    with pytest.raises(UnreachableError):  # who answers cannot speak TLS
        SignedApi(server.url.replace("http:", "https:"), SESSION).get("events")


def test_nothing_to_sign_with(server: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    session = boto3.Session(region_name="eu-west-1")
    monkeypatch.setattr(session, "get_credentials", lambda: None)
    with pytest.raises(NoCredentialsError):
        SignedApi(server.url, session).get("events")
    assert server.seen == []


class Secure(Quiet):
    def do_GET(self) -> None:
        self.answer(200, b'{"fine": true}')


def test_the_server_must_have_a_trusted_certificate(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    own, other = certificate(tmp_path), certificate(tmp_path / "other")
    with serving(Secure, own) as url:
        assert SignedApi(f"{url}/v1/", SESSION, str(own)).get("events").body == {"fine": True}
        for bundle in (str(other), None):
            with pytest.raises(UnreachableError, match="certificate verify failed"):
                SignedApi(f"{url}/v1/", SESSION, bundle).get("events")


def test_trusted_certificates_are_read_once_for_all_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, reads = certificate(tmp_path), list[str]()
    load = ssl.SSLContext.load_verify_locations

    def counted(context: ssl.SSLContext, cafile: str, *rest: Any) -> None:
        reads.append(cafile)
        load(context, cafile, *rest)

    with serving(Secure, own) as url:
        monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", counted)
        api = SignedApi(f"{url}/v1/", SESSION, str(own))
        answers = side_by_side.answers({str(number): partial(api.get, "events") for number in range(4)})
    assert [answer.status for answer in answers.values()] == [200] * 4
    assert reads == [str(own)]
