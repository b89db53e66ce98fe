"""A proxy that runs, before an API that answers everything."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cli.client.api import Answer
from cli.web.proxy import Proxy
from tests.patience import PATIENCE

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
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
            connection.sendall(raw)
            answer = b""
            while chunk := connection.recv(65536):
                answer += chunk
        head, _, content = answer.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        is_json = headers.get("content-type") == "application/json"
        return Reply(int(first.split()[1]), headers, json.loads(content) if content and is_json else content or None)

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
