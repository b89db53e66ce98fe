"""The proxy, over real connections: what gets through, and every way in which a page or another user might try."""

from __future__ import annotations

import json
import os
import socket
import stat
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import NoCredentialsError

from cli.api import Answer, UnreachableError
from cli.proxy import Proxy, token_file
from cli.proxy_guard import LARGEST_BODY

JSON = {"Content-Type": "application/json"}


class Api:
    """Answers everything, and remembers it."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, Any, Any]] = []
        self.answer: Answer | Exception = Answer(200, {"fine": True})

    def request(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None
    ) -> Answer:
        self.calls.append((method, path, query, body))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: Any


@dataclass
class Running:
    proxy: Proxy
    api: Api
    log: list[str]

    @property
    def port(self) -> int:
        return int(self.proxy.server_address[1])

    def send(self, raw: bytes) -> Reply:
        """Whatever comes back for these bytes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
            connection.sendall(raw)
            answer = b""
            while chunk := connection.recv(65536):
                answer += chunk
        head, _, content = answer.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        return Reply(int(first.split()[1]), headers, json.loads(content) if content else None)

    def ask(
        self, method: str = "GET", target: str = "/events", body: bytes = b"", token: str | None = "", **headers: str
    ) -> Reply:
        """A request with the right Host and token, unless told otherwise (``Host=None`` leaves it out)."""
        sent: dict[str, str | None] = {"Host": f"127.0.0.1:{self.port}"}
        if token is not None:
            sent["X-Troop-Token"] = token or self.proxy.token
        if body:
            sent["Content-Length"] = str(len(body))
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        head = "".join(f"{name}: {value}\r\n" for name, value in sent.items() if value is not None)
        return self.send(f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode() + body)


@pytest.fixture
def running() -> Iterator[Running]:
    api, log = Api(), list[str]()
    with Proxy(api, 0, log.append) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield Running(proxy, api, log)
        proxy.shutdown()
        thread.join()


def test_what_has_the_token_gets_through(running: Running) -> None:
    reply = running.ask(target="/events?unit=a%20b&limit=5")
    assert (reply.status, reply.body) == (200, {"fine": True})
    assert running.api.calls == [("GET", "events", {"unit": "a b", "limit": "5"}, None)]


def test_a_bearer_and_localhost_do_as_well(running: Running) -> None:
    headers = {"Authorization": f"Bearer {running.proxy.token}", "Host": f"localhost:{running.port}"}
    assert running.ask(token=None, **headers).status == 200


def test_a_change_gets_through(running: Running) -> None:
    reply = running.ask(
        "PATCH", "/groups/web~2Fapi", b'{"opt_out": true}', Content_Type="application/json; charset=utf-8"
    )
    assert reply.status == 200
    assert running.api.calls == [("PATCH", "groups/web~2Fapi", {}, {"opt_out": True})]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Troop-Token": "wrong"},
        {"X-Troop-Token": ""},
        {"X-Troop-Token": "t\u00f6ken"},
        {"Authorization": "Basic dXNlcjpwYXNz"},
        {"Authorization": "Bearer "},
        {"Cookie": "X-Troop-Token=TOKEN"},
    ],
)
def test_without_the_token_nothing_gets_through(running: Running, headers: dict[str, str]) -> None:
    sent = {name: value.replace("TOKEN", running.proxy.token) for name, value in headers.items()}
    assert running.ask(token=None, **sent).status == 401
    assert running.api.calls == []


def test_two_tokens_are_none(running: Running) -> None:
    assert running.ask(Authorization="Bearer other").status == 401


def test_a_token_in_the_address_is_refused_even_if_it_is_right(running: Running) -> None:
    assert running.ask(target=f"/events?token={running.proxy.token}", token=None).status == 400
    assert running.ask(target=f"/events?token={running.proxy.token}").status == 400
    assert running.api.calls == []


@pytest.mark.parametrize(
    "host", [None, "evil.example", "evil.example:PORT", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example:PORT",
             "0.0.0.0:PORT", "[::1]:PORT", "localhost:PORT, evil.example"]
)  # fmt: skip
def test_a_name_that_was_pointed_here_is_refused(running: Running, host: str | None) -> None:
    sent: Any = {"Host": host and host.replace("PORT", str(running.port))}
    assert running.ask(**sent).status == 403
    assert running.api.calls == []


def test_two_hosts_are_refused(running: Running) -> None:
    head = f"Host: 127.0.0.1:{running.port}\r\nHost: evil.example\r\nX-Troop-Token: {running.proxy.token}"
    assert running.send(f"GET /events HTTP/1.1\r\n{head}\r\n\r\n".encode()).status == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://localhost"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://127.0.0.1:PORT", "Sec-Fetch-Site": "cross-site"},
    ],
)
def test_web_pages_are_refused_even_if_they_know_the_token(running: Running, headers: dict[str, str]) -> None:
    sent = {name: value.replace("PORT", str(running.port)) for name, value in headers.items()}
    assert running.ask(**sent).status == 403
    assert running.api.calls == []


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_what_no_other_site_has_sent_gets_through(running: Running, site: str) -> None:
    headers = {"Origin": f"http://127.0.0.1:{running.port}", "Sec-Fetch-Site": site}
    assert running.ask(**headers).status == 200


def test_no_page_is_ever_given_leave(running: Running) -> None:
    preflight = {"Origin": "https://evil.example", "Access-Control-Request-Method": "PATCH"}
    for reply in (
        running.ask("OPTIONS", "/switch", token=None, **preflight),
        running.ask("OPTIONS", "/switch"),
        running.ask(),
    ):
        assert not [name for name in reply.headers if name.startswith("access-control")]
        assert reply.headers["cross-origin-resource-policy"] == "same-origin"
        assert reply.headers["cache-control"] == "no-store"
    assert len(running.api.calls) == 1


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/events/", 404),
        ("GET", "/events/a/b", 404),
        ("GET", "/events/..", 404),
        ("GET", "/events/%2e%2e", 404),
        ("GET", "//evil.example/events", 404),
        ("GET", "http://evil.example/events", 404),
        ("GET", "/events\\x", 404),
        ("GET", "/test-invoke-stage", 404),
        ("DELETE", "/groups/web", 405),
        ("POST", "/events", 405),
        ("PATCH", "/events", 405),
        ("HEAD", "/events", 405),
        ("TRACE", "/events", 405),
        ("GET", "/events?limit=1&limit=2", 400),
        ("GET", "/events?limit", 400),
        ("GET", "/events?a=%ff", 400),
    ],
)
def test_only_what_the_api_has(running: Running, method: str, target: str, status: int) -> None:
    reply = running.ask(method, target)
    assert reply.status == status
    assert running.api.calls == []
    if status == 405:
        assert "GET" in reply.headers["allow"]


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        (JSON, b"", 411),
        (JSON, b"[1]", 400),
        (JSON, b"{", 400),
        (JSON, b"[" * 20_000, 400),
        (JSON | {"Content-Length": "x"}, b"{}", 400),
        (JSON | {"Content-Length": "-1"}, b"{}", 400),
        (JSON | {"Content-Length": str(LARGEST_BODY + 1)}, b"{}", 413),
        (JSON | {"Content-Length": str(10**11)}, b"{}", 413),
        (JSON | {"Transfer-Encoding": "chunked"}, b"2\r\n{}\r\n0\r\n\r\n", 501),
        ({"Content-Type": "text/plain"}, b"{}", 415),
        ({}, b"{}", 415),
    ],
)
def test_bodies_are_bounded_and_json(running: Running, headers: dict[str, str], body: bytes, status: int) -> None:
    assert running.ask("PATCH", "/switch", body, **headers).status == status
    assert running.api.calls == []


@pytest.mark.parametrize("headers", [{}, {"Content-Type": "application/x-www-form-urlencoded"}, JSON])
def test_clients_of_the_original_send_bodies_of_any_type(running: Running, headers: dict[str, str]) -> None:
    target = "/simianarmy/api/v1/chaos"
    assert running.ask("POST", target, b'{"groupName": "web"}', **headers).status == 200
    assert running.ask(target=target + "?since=0").status == 200
    assert running.ask("PATCH", target, b"{}", **JSON).status == 405
    assert [call[:2] for call in running.api.calls] == [("POST", target[1:]), ("GET", target[1:])]


def test_terminations_pass_as_json_alone(running: Running) -> None:
    assert running.ask("POST", "/terminations", b"{}", **JSON).status == 200
    assert running.ask("POST", "/terminations", b"{}").status == 415


def test_a_get_has_no_body(running: Running) -> None:
    assert running.ask("GET", "/events", b"{}", **JSON).status == 400


@pytest.mark.parametrize("error", [UnreachableError("refused"), NoCredentialsError()])
def test_what_cannot_be_passed_on_is_told(running: Running, error: Exception) -> None:
    running.api.answer = error
    assert running.ask().status == 502


def test_refusals_of_the_api_are_passed_on(running: Running) -> None:
    running.api.answer = Answer(409, {"message": "changed"})
    assert running.ask("PATCH", "/switch", b"{}", **JSON).body == {"message": "changed"}


def test_the_log_tells_no_secret(running: Running) -> None:
    running.ask(target="/events?unit=secret")
    running.ask(target=f"/events?token={running.proxy.token}", token=None)
    assert running.send(b"secret\r\n\r\n").status == 400
    assert running.log[:2] == ["GET /events 200", "GET /events 400"]
    assert not [line for line in running.log if running.proxy.token in line or "secret" in line]


def test_it_serves_on_while_others_say_nothing(running: Running) -> None:
    silent = [socket.create_connection(("127.0.0.1", running.port), timeout=5) for _ in range(5)]
    assert running.ask().status == 200
    for connection in silent:
        connection.close()


def test_it_listens_on_this_machine_alone(running: Running) -> None:
    assert running.proxy.socket.getsockname()[0] == "127.0.0.1"


def test_tokens_differ(running: Running) -> None:
    with Proxy(Api(), 0, print) as other:
        assert len(other.token) >= 40
        assert other.token != running.proxy.token


def test_a_taken_port_is_no_ones_to_share(running: Running) -> None:
    with pytest.raises(OSError, match="in use"):
        Proxy(Api(), running.port, print)


def test_the_token_file_is_this_users_alone_and_goes(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        with token_file(tmp_path / "troop", 8080, "abc") as file:
            assert file.read_text() == "X-Troop-Token: abc\n"
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert not file.exists()
    finally:
        os.umask(old)


def test_a_file_of_an_earlier_proxy_is_replaced_and_no_link_is_followed(tmp_path: Path) -> None:
    folder = tmp_path / "troop"
    folder.mkdir(mode=0o755)
    target = tmp_path / "elsewhere"
    (folder / "proxy-8080.header").symlink_to(target)
    with token_file(folder, 8080, "abc") as file:
        assert not file.is_symlink()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert not target.exists()


def test_a_folder_of_somebody_elses_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(PermissionError), token_file(tmp_path / "link", 1, "abc"):
        pass
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(PermissionError), token_file(tmp_path / "real", 1, "abc"):
        pass


def test_a_slow_body_ends(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    handler: Any = running.proxy.RequestHandlerClass
    monkeypatch.setattr(handler, "timeout", 0.2)
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", running.port), timeout=5) as connection:
        head = f"Host: 127.0.0.1:{running.port}\r\nX-Troop-Token: {running.proxy.token}\r\nContent-Length: 9\r\n"
        connection.sendall(f"PATCH /switch HTTP/1.1\r\n{head}Content-Type: application/json\r\n\r\n{{".encode())
        assert connection.recv(100) == b""
    assert time.monotonic() - began < 3
    assert running.api.calls == []
