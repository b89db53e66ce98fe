"""Serves the signed API on 127.0.0.1 to programs that cannot sign; :mod:`.proxy_guard` decides who may use it."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FrameType
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from cli.client import retries
from cli.client.api import Answer, Api, UnreachableError
from cli.web.proxy_guard import CHAOS_PATH, KEY_HEADER, TOKEN_HEADER, Admitted, Guard, Refusal
from troop.shared.values import json_in

HOST = "127.0.0.1"
_MICROSOFT = "microsoft"
"""A word in the release of the kernel of WSL, whose browsers reach only 127.0.0.1."""
_TOKEN_BYTES = 32
_AT_ONCE = 16
_SILENCE_SECONDS = 10
"""The longest silence of a connection."""


class Proxy(ThreadingHTTPServer):
    """A server that listens on this machine alone once created. It guards, signs and forwards every request.

    Args:
        api: the signed API.
        port: 0 for any free port.
        log: receives a line for each request, without token, query and body.
        host: an address in 127.0.0.0/8.

    Raises:
        OSError: the port is in use.
    """

    daemon_threads = True
    allow_reuse_port = False
    command = "troop proxy"
    """The command that made the token, for the error without one."""

    def __init__(self, api: Api, port: int, log: Callable[[str], None], host: str = HOST) -> None:
        super().__init__((host, port), self.handler())
        self.api, self.log = api, log
        self.sleep: Callable[[float], None] = time.sleep
        """Waits between two attempts at a request."""
        self.token = secrets.token_urlsafe(_TOKEN_BYTES)
        self.guard = Guard(self.place, self.token, self.command)
        self._slots = threading.BoundedSemaphore(_AT_ONCE)

    @staticmethod
    def handler() -> type[Handler]:
        """Returns the class that answers requests."""
        return Handler

    @property
    def place(self) -> str:
        """The address and the port."""
        host, port = self.server_address[:2]
        return f"{host!s}:{port}"

    @property
    def address(self) -> str:
        return f"http://{self.place}"

    def verify_request(self, *_: Any) -> bool:
        """Drops connections beyond the most that are served at a time."""
        return self._slots.acquire(blocking=False)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, *_: Any) -> None:
        """Logs a broken connection, without a traceback, which could contain parts of a request."""
        self.log("a connection was lost")


def unguessable_host() -> str:
    """Returns a random address of this machine alone, where it has more than 127.0.0.1: on Linux.

    A service worker belongs to an address and a port, and answers for them as long as the browser keeps it. Another
    user of the machine could have made the browser install one at 127.0.0.1 and this port before.
    """
    if sys.platform != "linux" or _MICROSOFT in platform.release().lower():
        return HOST
    host = f"127.{1 + secrets.randbelow(254)}.{secrets.randbelow(256)}.{1 + secrets.randbelow(254)}"
    with socket.socket() as probe:
        try:
            probe.bind((host, 0))
        except OSError:  # some sandboxes have no such addresses
            return HOST
    return host


class Handler(BaseHTTPRequestHandler):
    """Answers one request: refuses it or forwards it."""

    server: Proxy
    timeout = _SILENCE_SECONDS
    server_version, sys_version = "troop-proxy", ""
    default_request_version = "HTTP/1.0"  # every answer needs a head

    def handle_one_request(self) -> None:
        """Handles any method; the guard refuses those that the API lacks."""
        try:
            self.raw_requestline = self.rfile.readline(65_537)
            self.close_connection = True
            if not self.raw_requestline or not self.parse_request():
                return
            self.close_connection = True
            self._answer()
        except TimeoutError:
            pass

    def _answer(self) -> None:
        allow: frozenset[str] = frozenset()
        try:
            answer = self.reply()
        except Refusal as refusal:
            allow = refusal.allow
            answer = error_answer(refusal.status, str(refusal))
        except UnreachableError as error:
            answer = error_answer(HTTPStatus.BAD_GATEWAY, f"the API cannot be reached: {error}")
        except (BotoCoreError, ClientError) as error:  # ClientError: STS refuses to renew a role's credentials
            answer = error_answer(HTTPStatus.BAD_GATEWAY, f"the request could not be signed: {error}")
        self._send(answer, allow)

    def reply(self) -> Answer:
        """Returns the answer to the request.

        Raises:
            Refusal: the guard refuses it.
            UnreachableError: the API does not answer.
            BotoCoreError, ClientError: no credentials to sign with.
        """
        admitted = self.server.guard.admit(self.command, self.path, self.headers)
        return self.passed(admitted)

    def passed(self, admitted: Admitted) -> Answer:
        """Forwards a request, retries it where that is safe, and returns the API's answer.

        Raises:
            Refusal, UnreachableError, BotoCoreError, ClientError: as :meth:`reply`.
        """
        body, sleep = self.body(admitted), self.server.sleep
        return retries.request(self.server.api, admitted.method, admitted.path, admitted.query, body, sleep=sleep)

    def body(self, admitted: Admitted) -> Mapping[str, Any] | None:
        """Reads the body of the request: one JSON object, or None.

        Raises:
            Refusal: the body is something else.
        """
        if not admitted.length:
            return None
        try:
            body = json_in(self.rfile.read(admitted.length).decode())
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise Refusal(HTTPStatus.BAD_REQUEST, "the body must be one JSON object")
        if f"/{admitted.path}" == CHAOS_PATH and (key := self.headers.get(KEY_HEADER)):
            body["idempotencyKey"] = key  # headers are not forwarded; the API accepts either
        return body

    def _send(self, answer: Answer, allow: frozenset[str]) -> None:
        content = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": str(len(content)),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Connection": "close",
            **({"Allow": ", ".join(sorted(allow))} if allow else {}),
            **answer.headers,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def send_error(self, code: int, *_: Any) -> None:
        """Answers an unreadable request as JSON, without repeating any of it."""
        self._send(error_answer(HTTPStatus(code), "the request cannot be read"), frozenset())

    def log_request(self, code: int | str = "-", *_: Any) -> None:
        path = getattr(self, "path", "").partition("?")[0]
        self.server.log(f"{self.command or '?'} {path} {int(code)}")

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing: :meth:`log_request` logs requests."""


def error_answer(status: HTTPStatus, message: str) -> Answer:
    """Returns an error of this server in the API's form."""
    return Answer(int(status), {"statusCode": int(status), "message": message})


@contextlib.contextmanager
def token_file(folder: Path, port: int, token: str) -> Iterator[Path]:
    """Creates a file that only this user can read, and removes it at the end of the block.

    It holds the header in curl's form (``curl -H @FILE``), because every user of the machine can see a program's
    arguments.

    Raises:
        OSError: the file cannot be written, or the folder belongs to another user.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user")
    folder.chmod(0o700)
    path = folder / f"proxy-{port}.header"
    path.unlink(missing_ok=True)  # left by a killed proxy that had this port
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{TOKEN_HEADER}: {token}\n")
        yield path
    finally:
        path.unlink(missing_ok=True)


def stop_on_signals() -> None:
    """Makes Ctrl-C and SIGTERM stop the server."""
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell makes background processes ignore SIGINT
        signal.signal(number, _stop)


def _stop(number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt(number)


def exit_code(stop: KeyboardInterrupt) -> int:
    """Returns the exit code for the signal that stopped the server, as shells report it: 130 for Ctrl-C."""
    return 128 + int(stop.args[0] if stop.args else signal.SIGINT)
