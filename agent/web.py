"""Sends HTTP requests over a connection that stays open."""

from __future__ import annotations

import http.client
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

TIMEOUT_SECONDS = 5.0
LONGEST_BODY = 16 << 20
ERRORS = (OSError, http.client.HTTPException)
"""The errors that a request can raise; the next request opens a new connection."""


@dataclass(frozen=True)
class Answer:
    """An HTTP answer.

    Attributes:
        date: the Date header; empty if there is none.
    """

    status: int
    body: bytes
    date: str


class Web:
    """A client for one host at a time; a request to another host opens a new connection.

    Args:
        timeout: seconds for a connection, and for each part of an answer.
    """

    def __init__(self, timeout: float = TIMEOUT_SECONDS) -> None:
        self._timeout = timeout
        self._host: tuple[str, str] | None = None
        self._connection: http.client.HTTPConnection | None = None
        self._context: ssl.SSLContext | None = None  # reading the certificates takes longer than a handshake

    def ask(
        self, url: str, method: str = "GET", headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> Answer:
        """Sends one request. Returns an answer of any status; does not follow redirects.

        Raises:
            OSError, http.client.HTTPException: there was no complete answer.
        """
        parts = urlsplit(url)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection = self._to(parts.scheme, parts.netloc)
        try:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            received = response.read(LONGEST_BODY)
            if response.read(1):
                raise OSError(f"the answer is longer than {LONGEST_BODY} bytes")
            return Answer(response.status, received, response.headers.get("Date", ""))
        except BaseException:
            self.close()
            raise

    def _to(self, scheme: str, host: str) -> http.client.HTTPConnection:
        if self._connection is None or self._host != (scheme, host):
            self.close()
            if scheme == "https":
                self._context = self._context or _trust()
                self._connection = http.client.HTTPSConnection(host, timeout=self._timeout, context=self._context)
            else:
                self._connection = http.client.HTTPConnection(host, timeout=self._timeout)
            self._host = (scheme, host)
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _trust() -> ssl.SSLContext:
    """Returns a context with the certificates that the AWS CLI trusts."""
    return ssl.create_default_context(cafile=os.environ.get("AWS_CA_BUNDLE") or None)
