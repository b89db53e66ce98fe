"""Servers of HTTP inside the block of a test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from socketserver import BaseServer
from typing import TypeVar

_Server = TypeVar("_Server", bound=BaseServer)


class Quiet(BaseHTTPRequestHandler):
    """Writes no line for each request."""

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Sends a whole answer. ``headers``: with ``_`` in the place of ``-``."""
        self.send_response(status)
        for name, value in {**headers, "Content_Length": str(len(body))}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def running(server: _Server) -> Iterator[_Server]:
    """Serves in a thread of its own inside the block, and closes the server."""
    with server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
