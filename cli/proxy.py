"""The signed API on 127.0.0.1, for programs that cannot sign: see :mod:`cli.proxy_guard` for who may use it."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from cli import retries
from cli.api import Answer, Api, UnreachableError
from cli.proxy_guard import CHAOS_PATH, KEY_HEADER, TOKEN_HEADER, Admitted, Guard, Refusal

HOST = "127.0.0.1"
_TOKEN_BYTES = 32
_AT_ONCE = 16
_SILENCE_SECONDS = 10
"""How long a connection may say nothing."""


class Proxy(ThreadingHTTPServer):
    """Listens on 127.0.0.1 from its making on; every request passes the guard, is signed, and is passed on.

    Args:
        api: the signed API.
        port: 0 for any that is free.
        log: told a line for each request, without token, query and body.

    Raises:
        OSError: the port is taken.
    """

    daemon_threads = True
    allow_reuse_port = False
    command = "troop proxy"
    """What made the token, for whoever comes without."""

    def __init__(self, api: Api, port: int, log: Callable[[str], None]) -> None:
        super().__init__((HOST, port), self.handler())
        self.api, self.log = api, log
        self.sleep: Callable[[float], None] = time.sleep
        """Waits between two tries of a request."""
        self.token = secrets.token_urlsafe(_TOKEN_BYTES)
        self.guard = Guard(self.server_address[1], self.token, self.command)
        self._slots = threading.BoundedSemaphore(_AT_ONCE)

    @staticmethod
    def handler() -> type[Handler]:
        """What answers requests."""
        return Handler

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}"

    def verify_request(self, *_: Any) -> bool:
        """Drops connections beyond those that are served at once."""
        return self._slots.acquire(blocking=False)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, *_: Any) -> None:
        """A connection that breaks off is no news; nothing of a request may get into a traceback."""
        self.log("a connection broke off")


class Handler(BaseHTTPRequestHandler):
    """Answers one request: refuses it, or passes it on."""

    server: Proxy
    timeout = _SILENCE_SECONDS
    server_version, sys_version = "troop-proxy", ""
    default_request_version = "HTTP/1.0"  # so that every answer has a head

    def handle_one_request(self) -> None:
        """Any method comes here: which there are is the guard's to say."""
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
        except (BotoCoreError, ClientError) as error:  # ClientError: STS does not renew the credentials of a role
            answer = error_answer(HTTPStatus.BAD_GATEWAY, f"the request could not be signed: {error}")
        self._send(answer, allow)

    def reply(self) -> Answer:
        """What becomes of the request.

        Raises:
            Refusal: it goes no further.
            UnreachableError: nobody answers.
            BotoCoreError, ClientError: there is nothing to sign with.
        """
        admitted = self.server.guard.admit(self.command, self.path, self.headers)
        return self.passed(admitted)

    def passed(self, admitted: Admitted) -> Answer:
        """The API's answer to a request, which is repeated where that is safe.

        Raises:
            Refusal, UnreachableError, BotoCoreError, ClientError: as :meth:`reply`.
        """
        body, sleep = self.body(admitted), self.server.sleep
        return retries.request(self.server.api, admitted.method, admitted.path, admitted.query, body, sleep=sleep)

    def body(self, admitted: Admitted) -> Mapping[str, Any] | None:
        """What the request brings: one JSON object, or nothing.

        Raises:
            Refusal: it is something else.
        """
        if not admitted.length:
            return None
        try:
            body = json.loads(self.rfile.read(admitted.length))
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise Refusal(HTTPStatus.BAD_REQUEST, "the body must be one JSON object")
        if f"/{admitted.path}" == CHAOS_PATH and (key := self.headers.get(KEY_HEADER)):
            body["idempotencyKey"] = key  # headers are not passed on; the API takes either
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
        """What is no request at all is answered like everything else, and repeats nothing of it."""
        self._send(error_answer(HTTPStatus(code), "this is no request that can be read"), frozenset())

    def log_request(self, code: int | str = "-", *_: Any) -> None:
        path = getattr(self, "path", "").partition("?")[0]
        self.server.log(f"{self.command or '?'} {path} {int(code)}")

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are logged above; a malformed one is none."""


def error_answer(status: HTTPStatus, message: str) -> Answer:
    """An answer of this machine's own, in the API's words."""
    return Answer(int(status), {"statusCode": int(status), "message": message})


@contextlib.contextmanager
def token_file(folder: Path, port: int, token: str) -> Iterator[Path]:
    """A file that only this user can read, for as long as the block runs.

    It holds the header as curl takes it (``curl -H @FILE``): a token among a program's arguments could be seen by every
    user of the machine.

    Raises:
        OSError: it cannot be written, or the folder is another user's.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to somebody else")
    folder.chmod(0o700)
    path = folder / f"proxy-{port}.header"
    path.unlink(missing_ok=True)  # of one that was killed: the port is ours now
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{TOKEN_HEADER}: {token}\n")
        yield path
    finally:
        path.unlink(missing_ok=True)
