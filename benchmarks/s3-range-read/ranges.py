"""Reads byte ranges over one connection, with as little work of Python as possible: a node's processors limit the rate.

It parses only what S3 answers to a range read: a status, a length, and the bytes.
"""

from __future__ import annotations

import errno
import random
import re
import socket
import ssl
import time

from s3 import SKEWED, code_of, skew

from troop.measure.s3.addresses import Address
from troop.measure.s3.credentials import CredentialStore
from troop.measure.s3.signing import Signer

SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE})
"""Errors of the node itself: too many open files."""
BLOCK = 65536
MOST_HEAD, MOST_ERROR = 65536, 65536
"""The most bytes of an answer's headers, and of an error's body."""
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection:[ \t]*close", re.IGNORECASE)
_DATE = re.compile(rb"\r\ndate:[ \t]*([^\r]+)", re.IGNORECASE)


class ReadError(Exception):
    """A read failed; the message is the kind of error."""


class _Ended(Exception):
    """The server closed the connection before it answered."""


class Reader:
    """One thread's connection.

    Args:
        signer: shared by the threads of a process, like ``store``.
        trust: for TLS.
        connect_seconds: the limit for a new connection, with TLS.
        read_seconds: the limit from the request to the last byte.
    """

    def __init__(
        self,
        address: Address,
        signer: Signer,
        store: CredentialStore,
        trust: ssl.SSLContext,
        connect_seconds: float,
        read_seconds: float,
    ) -> None:
        self._address, self._signer, self._store, self._trust = address, signer, store, trust
        self._connect_seconds, self._read_seconds = connect_seconds, read_seconds
        self._socket: socket.socket | None = None
        self._block = bytearray(BLOCK)

    def request(self, path: str, first: int, count: int) -> bytes:
        """Returns a signed request for ``count`` bytes from ``first``.

        Args:
            path: encoded, without the address's beginning.
        """
        address, path = self._address, self._address.base + path
        headers = {"host": address.host, "range": f"bytes={first}-{first + count - 1}"}
        signed = self._signer.headers("GET", path, "", headers)
        lines = "\r\n".join([f"{name}: {value}" for name, value in signed.items()])
        return f"GET {path} HTTP/1.1\r\n{lines}\r\n\r\n".encode("ascii")

    def read(self, request: bytes, count: int) -> int:
        """Sends a request, and returns the number of bytes read: ``count``.

        S3 closes connections that were idle. If it has closed this one before it answered, a new one is opened, which
        the time of the read contains.

        Raises:
            ReadError: the read failed or took too long.
            OSError: there are too many open files.
        """
        try:
            if self._socket is not None:
                try:
                    return self._exchange(self._socket, request, count)
                except (_Ended, ConnectionResetError, BrokenPipeError, ssl.SSLEOFError, ssl.SSLZeroReturnError):
                    self.close()
            self._socket = self._connected()
            return self._exchange(self._socket, request, count)
        except ReadError:
            self.close()
            raise
        except (socket.timeout, TimeoutError):
            self.close()
            raise ReadError("read-timeout") from None
        except (_Ended, OSError) as error:
            self.close()
            if getattr(error, "errno", None) in SHORTAGES:
                raise
            raise ReadError("tls" if isinstance(error, ssl.SSLError) else "connection") from None

    def _connected(self) -> socket.socket:
        """Returns a new connection to one of the addresses of S3, at random: so nodes use many of its servers."""
        address, until = self._address, time.monotonic() + self._connect_seconds
        connection = None
        try:
            places = socket.getaddrinfo(address.name, address.port, socket.AF_INET, socket.SOCK_STREAM)
            connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.settimeout(self._connect_seconds)
            connection.connect(random.choice(places)[4])
            if address.is_tls:
                connection.settimeout(_left(until, "connect-timeout"))
                connection = self._trust.wrap_socket(connection, server_hostname=address.name)
            return connection
        except BaseException as error:
            if connection is not None:
                connection.close()
            if isinstance(error, (socket.timeout, TimeoutError)):
                raise ReadError("connect-timeout") from None
            raise

    def _exchange(self, connection: socket.socket, request: bytes, count: int) -> int:
        until = time.monotonic() + self._read_seconds
        connection.settimeout(self._read_seconds)
        connection.sendall(request)
        size = connection.recv_into(self._block)
        if not size:
            raise _Ended
        head, end, body = bytes(self._block[:size]).partition(b"\r\n\r\n")
        while not end:
            head, end, body = (head + self._more(connection, until, MOST_HEAD - len(head))).partition(b"\r\n\r\n")
        if head[9:12] != b"206":  # 200 would be the whole object
            raise ReadError(self._kind(connection, head, body, until))
        length = _LENGTH.search(head)
        if length is None or int(length.group(1)) != count:
            raise ReadError("short")
        missing = count - len(body)
        while missing > 0:
            connection.settimeout(_left(until))
            size = connection.recv_into(self._block)
            if not size:
                raise ReadError("short")
            missing -= size
        if _CLOSE.search(head):
            self.close()
        return count

    def _more(self, connection: socket.socket, until: float, most: int) -> bytes:
        """Returns the next bytes of an answer."""
        connection.settimeout(_left(until))
        part = connection.recv(BLOCK) if most > 0 else b""
        if not part:
            raise ReadError("connection")
        return part

    def _kind(self, connection: socket.socket, head: bytes, body: bytes, until: float) -> str:
        """Returns the kind of an error: its status, and S3's code, which its body contains."""
        status = head[9:12].decode("ascii", "replace")
        if not status.isdigit():
            return "no-http"
        length = _LENGTH.search(head)
        most = min(int(length.group(1)) if length else MOST_ERROR, MOST_ERROR)
        code = code_of(body)
        try:
            while status != "200" and not code and len(body) < most:
                body += self._more(connection, until, most)
                code = code_of(body)
        except (ReadError, OSError):
            pass  # the status alone
        self._store.refused(code)
        if code == SKEWED:
            date = _DATE.search(head)
            print(skew(self._signer, date.group(1).decode("latin-1") if date else ""), flush=True)
        return f"http-{status}-{code}" if code else f"http-{status}"

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _left(until: float, kind: str = "read-timeout") -> float:
    """Returns the seconds that are left, for the whole read and not for each packet."""
    left = until - time.monotonic()
    if left <= 0:
        raise ReadError(kind)
    return left
