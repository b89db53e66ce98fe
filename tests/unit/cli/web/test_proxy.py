"""The proxy, over real connections: what it passes on, what it answers and writes down, and how long it waits."""

from __future__ import annotations

import platform
import socket
import sys
from typing import Any

import pytest
from botocore.exceptions import ClientError, NoCredentialsError

from cli.client.api import Answer, UnreachableError
from cli.web.proxy import HOST, Proxy, unguessable_host
from tests.patience import PATIENCE
from tests.unit.cli.web.proxying import JSON, Api, Running


def test_request_with_the_token_is_forwarded(running: Running) -> None:
    reply = running.ask(target="/events?unit=a%20b&limit=5")
    assert (reply.status, reply.body) == (200, {"fine": True})
    assert running.api.calls == [("GET", "events", {"unit": "a b", "limit": "5"}, None)]


def test_a_bearer_does_as_well(running: Running) -> None:
    assert running.ask(token=None, Authorization=f"Bearer {running.proxy.token}").status == 200


def test_a_change_gets_through(running: Running) -> None:
    reply = running.ask(
        "PATCH", "/groups/web~2Fapi", b'{"opt_out": true}', Content_Type="application/json; charset=utf-8"
    )
    assert reply.status == 200
    assert running.api.calls == [("PATCH", "groups/web~2Fapi", {}, {"opt_out": True})]


RENEWAL = ClientError({"Error": {"Code": "ExpiredToken", "Message": "expired"}}, "AssumeRole")


@pytest.mark.parametrize("error", [UnreachableError("refused"), NoCredentialsError(), RENEWAL])
def test_failed_forwarding_is_a_502(running: Running, error: Exception) -> None:
    running.api.answer = error
    assert running.ask().status == 502


def test_refusals_of_the_api_are_passed_on(running: Running) -> None:
    running.api.answer = Answer(409, {"message": "changed"})
    assert running.ask("PATCH", "/switch", b"{}", **JSON).body == {"message": "changed"}


def test_redirect_of_the_api_is_forwarded_to_the_client(running: Running) -> None:
    address = "https://results.s3.amazonaws.com/runs/R/report.html?X-Amz-Signature=5ec2e7"
    running.api.answer = Answer(302, {"etag": "1"}, "", {"Location": address})
    reply = running.ask(target="/benchmarks/20261120-150000-1f0c9b2e/report?format=html")
    assert (reply.status, reply.headers["location"], reply.body) == (302, address, {"etag": "1"})
    assert reply.headers["cache-control"] == "no-store"
    assert len(running.api.calls) == 1
    assert not [line for line in running.log if "5ec2e7" in line]


def test_report_request_is_forwarded_without_a_body(running: Running) -> None:
    running.api.answer = Answer(202, {"run": "20261120-150000-1f0c9b2e"})
    assert running.ask("POST", "/benchmarks/20261120-150000-1f0c9b2e/report").status == 202
    assert running.api.calls == [("POST", "benchmarks/20261120-150000-1f0c9b2e/report", {}, None)]


def test_the_log_tells_no_secret(running: Running) -> None:
    running.ask(target="/events?unit=secret")
    running.ask(target=f"/events?token={running.proxy.token}", token=None)
    assert running.send(b"secret\r\n\r\n").status == 400
    assert running.log[:2] == ["GET /events 200", "GET /events 400"]
    assert not [line for line in running.log if running.proxy.token in line or "secret" in line]


def test_silent_connections_do_not_block_others(running: Running) -> None:
    silent = [socket.create_connection(("127.0.0.1", running.port), timeout=PATIENCE) for _ in range(5)]
    assert running.ask().status == 200
    for connection in silent:
        connection.close()


def test_proxy_listens_on_this_machine_only(running: Running) -> None:
    assert running.proxy.socket.getsockname()[0] == "127.0.0.1"


def test_the_page_listens_where_nobody_can_have_listened_before(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = {unguessable_host() for _ in range(20)}
    assert len(hosts) == 20
    assert {host.partition(".")[0] for host in hosts} == {"127"}
    with Proxy(Api(), 0, print, (host := hosts.pop())) as proxy:
        assert proxy.socket.getsockname()[0] == host
        assert proxy.address == f"http://{host}:{proxy.server_address[1]}"
        assert proxy.guard.place == proxy.place
    monkeypatch.setattr(platform, "release", lambda: "5.15.153.1-microsoft-standard-WSL2")
    assert unguessable_host() == HOST
    monkeypatch.undo()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert unguessable_host() == HOST


def test_tokens_differ(running: Running) -> None:
    with Proxy(Api(), 0, print) as other:
        assert len(other.token) >= 40
        assert other.token != running.proxy.token


def test_a_taken_port_is_no_ones_to_share(running: Running) -> None:
    with pytest.raises(OSError, match="in use"):
        Proxy(Api(), running.port, print)


def test_a_slow_body_ends(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    handler: Any = running.proxy.RequestHandlerClass
    monkeypatch.setattr(handler, "timeout", 0.2)
    with socket.create_connection(("127.0.0.1", running.port), timeout=PATIENCE) as connection:
        head = f"Host: 127.0.0.1:{running.port}\r\nX-Troop-Token: {running.proxy.token}\r\nContent-Length: 9\r\n"
        connection.sendall(f"PATCH /switch HTTP/1.1\r\n{head}Content-Type: application/json\r\n\r\n{{".encode())
        assert connection.recv(100) == b"", "else the test waits in vain for more"
    assert running.api.calls == []


@pytest.mark.parametrize(
    "body", [rb'{"\ud800": 1}', rb'{"reason": "\udfff"}', b'{"a": NaN}', b'{"a": "\xff"}', b"[]", b"{"]
)
def test_a_body_that_cannot_be_passed_on_is_refused(running: Running, body: bytes) -> None:
    reply = running.ask("PATCH", "/switch", body, **JSON)
    assert (reply.status, reply.body["message"]) == (400, "the body must be one JSON object")
    assert running.api.calls == []
