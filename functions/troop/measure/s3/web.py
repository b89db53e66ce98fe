"""Sends HTTP requests over a connection that stays open."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from troop.measure.s3.addresses import trust

TIMEOUT_SECONDS = 5.0
LONGEST_BODY = 16 << 20
ERRORS = (OSError, http.client.HTTPException)
"""The errors that a request can raise; the next request opens a new connection."""


@dataclass(frozen=True)
class Answer:
    """An HTTP answer.

    Attributes:
        date: the Date header; empty if there is none.
        headers: all headers, by their names in lower case.
    """

    status: int
    body: bytes
    date: str
    headers: Mapping[str, str] = field(default_factory=dict)


class Web:
    """A client for one host at a time; a request to another host opens a new connection.

    Args:
        timeout: seconds for a connection, and for each part of an answer.
        endpoint: the host to connect to. Requests and certificates still name the host of the URL. Empty for the host
            of the URL.
    """

    def __init__(self, timeout: float = TIMEOUT_SECONDS, endpoint: str = "") -> None:
        self._timeout, self._endpoint = timeout, endpoint
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
            names = {name.lower(): value for name, value in response.headers.items()}
            return Answer(response.status, received, names.get("date", ""), names)
        except BaseException:
            self.close()
            raise

    def _to(self, scheme: str, host: str) -> http.client.HTTPConnection:
        if self._connection is None or self._host != (scheme, host):
            self.close()
            if scheme == "https":
                self._context = self._context or trust()
                self._connection = _Secure(host, self._endpoint, self._context, self._timeout)
            else:
                self._connection = http.client.HTTPConnection(host, timeout=self._timeout)
            self._host = (scheme, host)
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class _Secure(http.client.HTTPSConnection):
    """A connection over TLS to a host, or to an endpoint in its place."""

    def __init__(self, host: str, endpoint: str, context: ssl.SSLContext, timeout: float) -> None:
        super().__init__(host, timeout=timeout, context=context)
        self._endpoint, self._trust = endpoint, context

    def connect(self) -> None:
        address = (self._endpoint or self.host, self.port)
        connection = socket.create_connection(address, self.timeout)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sock = self._trust.wrap_socket(connection, server_hostname=self.host)
        except BaseException:
            connection.close()
            raise
