"""Who may use the proxy, and for what: every way in which a page or another user might try, over real connections."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cli.client.api import Answer
from cli.web.proxy_guard import LARGEST_BODY, LARGEST_TASKS, ROUTES
from infra import ROOT
from tests.unit.cli.web.proxying import JSON, Running


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
def test_without_the_token_nothing_gets_through(running: Running, headers: dict[str, Any]) -> None:
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
             "0.0.0.0:PORT", "[::1]:PORT", "localhost:PORT", "127.0.0.1:PORT, evil.example"]
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
def test_web_pages_are_refused_even_if_they_know_the_token(running: Running, headers: dict[str, Any]) -> None:
    sent = {name: value.replace("PORT", str(running.port)) for name, value in headers.items()}
    assert running.ask(**sent).status == 403
    assert running.api.calls == []


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_request_of_its_own_origin_is_forwarded(running: Running, site: str) -> None:
    headers: dict[str, Any] = {"Origin": f"http://127.0.0.1:{running.port}", "Sec-Fetch-Site": site}
    assert running.ask(**headers).status == 200


def test_no_page_of_another_origin_is_allowed(running: Running) -> None:
    preflight: dict[str, Any] = {"Origin": "https://evil.example", "Access-Control-Request-Method": "PATCH"}
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
def test_bodies_are_bounded_and_json(running: Running, headers: dict[str, Any], body: bytes, status: int) -> None:
    assert running.ask("PATCH", "/switch", body, **headers).status == status
    assert running.api.calls == []


@pytest.mark.parametrize(("method", "path"), [("GET", "/events"), ("DELETE", "/benchmarks/20261121-150312-1f0c9b2e")])
def test_reading_and_stopping_have_no_body(running: Running, method: str, path: str) -> None:
    assert running.ask(method, path, b"{}", **JSON).status == 400


def test_a_benchmark_brings_its_files(running: Running) -> None:
    body = json.dumps({"files": {"read.py": "A" * 1_400_000}}).encode()
    assert running.ask("POST", "/benchmarks", body, **JSON).status == 200
    assert running.ask("POST", "/terminations", body, **JSON).status == 413


def test_many_tasks_of_a_fleet_are_forwarded_at_once(running: Running) -> None:
    path = "/fleets/20261121-150312-1f0c9b2e/tasks"
    body = json.dumps({"key": "monday", "tasks": [{"body": "x" * 200_000}] * 20}).encode()
    assert running.ask("POST", path, body, **JSON).status == 200
    larger: dict[str, Any] = JSON | {"Content-Length": str(LARGEST_TASKS + 1)}
    assert running.ask("POST", path, b"{}", **larger).status == 413


def test_proxy_forwards_exactly_the_routes_of_the_api() -> None:
    described = json.loads((ROOT / "docs" / "reference" / "openapi.json").read_text(encoding="utf-8"))["paths"]
    expected = {path: frozenset(method.upper() for method in methods) for path, methods in described.items()}
    methods_by_path = {
        path: [methods for pattern, methods in ROUTES if pattern.fullmatch(_filled(path))] for path in expected
    }
    assert methods_by_path == {path: [methods] for path, methods in expected.items()}
    assert len(ROUTES) == len(expected)


def _filled(path: str) -> str:
    filled = path.replace("{id}", "2026-11-20~web").replace("{unit}", "web~2Fapi").replace("{name}", "nightly")
    return filled.replace("{run}", "20261121-150312-1f0c9b2e").replace("{fleet}", "20261121-150312-1f0c9b2e")


@pytest.mark.parametrize("headers", [{}, {"Content-Type": "application/x-www-form-urlencoded"}, JSON])
def test_clients_of_the_original_send_bodies_of_any_type(running: Running, headers: dict[str, Any]) -> None:
    target = "/simianarmy/api/v1/chaos"
    assert running.ask("POST", target, b'{"groupName": "web"}', **headers).status == 200
    assert running.ask(target=target + "?since=0").status == 200
    assert running.ask("PATCH", target, b"{}", **JSON).status == 405
    assert [call[:2] for call in running.api.calls] == [("POST", target[1:]), ("GET", target[1:])]


@pytest.mark.parametrize("headers", [{}, {"Content-Length": "0"}, {"Idempotency-Key": "k"}])
def test_an_empty_request_to_the_originals_api_is_for_the_api_to_refuse(
    running: Running, headers: dict[str, Any]
) -> None:
    running.api.answer = Answer(400, {"statusCode": 400, "message": "eventType is missing"})
    assert running.ask("POST", "/simianarmy/api/v1/chaos", **headers).status == 400
    assert running.api.calls == [("POST", "simianarmy/api/v1/chaos", {}, None)]


def test_header_of_the_answer_is_forwarded(running: Running) -> None:
    running.api.answer = Answer(200, [], headers={"Troop-Complete-After": "1795219200000"})
    assert running.ask(target="/simianarmy/api/v1/chaos").headers["troop-complete-after"] == "1795219200000"


def test_terminations_pass_as_json_alone(running: Running) -> None:
    assert running.ask("POST", "/terminations", b"{}", **JSON).status == 200
    assert running.ask("POST", "/terminations", b"{}").status == 415


def test_the_key_of_a_request_to_the_originals_api_gets_through(running: Running) -> None:
    headers = JSON | {"Idempotency-Key": "again-1"}
    assert running.ask("POST", "/simianarmy/api/v1/chaos", b'{"groupName": "web"}', **headers).status == 200
    assert running.api.calls[-1][3] == {"groupName": "web", "idempotencyKey": "again-1"}
