"""Reads byte ranges over many connections in one thread, with as little work of Python as possible: a node's processors
limit the rate. Threads would take turns, which costs more than the reads.

It parses only what S3 answers to a range read: a status, a length, and the bytes.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import random
import re
import select
import socket
import ssl
import threading
import time
from collections.abc import Generator
from typing import Any

from s3 import SKEWED, code_of, skew

from troop.measure.s3.addresses import Address
from troop.measure.s3.credentials import CredentialStore
from troop.measure.s3.signing import Signer

SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE})
"""Errors of the node itself: too many open files."""
BLOCK = 65536
MOST_HEAD, MOST_ERROR = 65536, 65536
"""The most bytes of an answer's headers, and of an error's body."""
UPKEEP_SECONDS = 1.0
TICK_SECONDS = 0.05
"""The interval between two searches for readers that have waited too long."""
_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection:[ \t]*close", re.IGNORECASE)
_DATE = re.compile(rb"\r\ndate:[ \t]*([^\r]+)", re.IGNORECASE)
_NOT_READY = BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError
_CLOSED = ConnectionResetError, BrokenPipeError, ssl.SSLEOFError, ssl.SSLZeroReturnError

Steps = Generator[None, Any, Any]
"""Work that yields where it must wait, and is then continued by the loop."""


class ReadError(Exception):
    """A read failed; the message is the kind of error."""


class _Ended(Exception):
    """The server closed the connection before it answered."""


class Upkeep:
    """Renews the credentials and finds the addresses of S3, in a thread, because all reads would wait for it.

    Attributes:
        credentials: the current ones.
        places: those of S3's servers; empty if there are none.
    """

    def __init__(self, address: Address, store: CredentialStore) -> None:
        self._address, self._store = address, store
        self._renew()
        self._over = threading.Event()
        threading.Thread(target=self._run, name="upkeep", daemon=True).start()

    def _run(self) -> None:
        while not self._over.wait(UPKEEP_SECONDS):
            self._renew()

    def close(self) -> None:
        self._over.set()

    def _renew(self) -> None:
        self.credentials = self._store.current()
        try:
            answers = socket.getaddrinfo(self._address.name, self._address.port, socket.AF_INET, socket.SOCK_STREAM)
            self.places = [answer[4] for answer in answers]
        except OSError:
            self.places = []


class Loop:
    """Continues readers, each when its socket is ready or its time is over.

    Args:
        exact: whether waits must be exact to less than a millisecond.

    Attributes:
        block: receives what sockets have.
        requests: the number of all that were sent.
    """

    def __init__(self, exact: bool = False) -> None:
        self._epoll, self._exact, self._tick = select.epoll(), exact, 0.0
        self._readers: list[Reader] = []
        self._waiting: dict[int, Reader] = {}
        self.block, self.requests = bytearray(BLOCK), 0

    def begin(self, reader: Reader, steps: Steps) -> None:
        reader.steps = steps
        self._readers.append(reader)
        reader.go_on()

    def watch(self, reader: Reader, descriptor: int) -> None:
        self._waiting[descriptor] = reader
        self._epoll.register(descriptor, select.EPOLLOUT)

    def change(self, descriptor: int, events: int) -> None:
        self._epoll.modify(descriptor, events)

    def forget(self, descriptor: int) -> None:
        del self._waiting[descriptor]  # the kernel forgets it when it is closed

    def turn(self, seconds: float = TICK_SECONDS) -> None:
        """Waits until a socket is ready, at most so long and for a tick, and continues its reader."""
        if self._exact:
            select.select([self._epoll], [], [], max(0.0, min(seconds, TICK_SECONDS)))  # epoll counts in milliseconds
            seconds = 0.0
        waiting = self._waiting
        for descriptor, _ in self._epoll.poll(seconds):
            waiting[descriptor].go_on()
        now = time.monotonic()
        if now >= self._tick:
            self._tick = now + TICK_SECONDS
            for reader in self._readers:
                if reader.until <= now:
                    reader.time_out()

    def close(self) -> None:
        for reader in self._readers:
            reader.close()
        self._epoll.close()


class Reader:
    """One connection. A method that returns steps waits for the socket.

    Args:
        signer: shared by the readers of a process, like ``store``, ``upkeep`` and ``loop``.
        trust: for TLS.
        connect_seconds: the limit for a new connection, with TLS.
        read_seconds: the limit from the request to the last byte.

    Attributes:
        steps: what it does.
        until: when it has waited too long, by the monotonic clock.
    """

    steps: Steps

    def __init__(
        self,
        address: Address,
        signer: Signer,
        store: CredentialStore,
        upkeep: Upkeep,
        loop: Loop,
        trust: ssl.SSLContext,
        connect_seconds: float,
        read_seconds: float,
    ) -> None:
        self._address, self._signer, self._store, self._trust = address, signer, store, trust
        self._upkeep, self._loop = upkeep, loop
        self._connect_seconds, self._read_seconds = connect_seconds, read_seconds
        self._socket: socket.socket | None = None
        self._descriptor = -1
        self.until = math.inf

    def go_on(self, value: Any = None) -> None:
        """Continues the steps."""
        try:
            self.steps.send(value)
        except StopIteration:
            self.until = math.inf

    def time_out(self) -> None:
        """Continues the steps, which have waited too long."""
        self.until = math.inf
        with contextlib.suppress(StopIteration):
            self.steps.throw(TimeoutError())

    def pause(self, seconds: float) -> Steps:
        """Waits."""
        self.until = time.monotonic() + seconds
        with contextlib.suppress(TimeoutError):
            yield

    def request(self, path: str, first: int, count: int) -> bytes:
        """Returns a signed request for ``count`` bytes from ``first``.

        Args:
            path: encoded, without the address's beginning.
        """
        headers = {"host": self._address.host, "range": f"bytes={first}-{first + count - 1}"}
        return self._signer.request(self._address.base + path, headers)

    def read(self, request: bytes, count: int) -> Generator[None, Any, int]:
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
                    return (yield from self._exchange(self._socket, request, count))
                except _Ended:
                    self.close()
            return (yield from self._exchange((yield from self._connected()), request, count))
        except ReadError:
            self.close()
            raise
        except TimeoutError:
            self.close()
            raise ReadError("read-timeout") from None
        except (_Ended, OSError) as error:
            self.close()
            if getattr(error, "errno", None) in SHORTAGES:
                raise
            raise ReadError("tls" if isinstance(error, ssl.SSLError) else "connection") from None
        finally:
            self.until = math.inf

    def _connected(self) -> Generator[None, Any, socket.socket]:
        """Returns a new connection to one of the addresses of S3, at random: so nodes use many of its servers."""
        self.until, places = time.monotonic() + self._connect_seconds, self._upkeep.places
        if not places:
            raise ReadError("connection")
        connection = self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._descriptor = connection.fileno()
            self._loop.watch(self, self._descriptor)
            code = connection.connect_ex(random.choice(places))
            if code == errno.EINPROGRESS:
                yield
                code = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise OSError(code, os.strerror(code))
            if self._address.is_tls:
                connection = self._socket = self._trust.wrap_socket(
                    connection, server_hostname=self._address.name, do_handshake_on_connect=False
                )
                yield from self._shake_hands(connection)
        except TimeoutError:
            raise ReadError("connect-timeout") from None
        self._loop.change(self._descriptor, select.EPOLLIN)
        return connection

    def _shake_hands(self, connection: ssl.SSLSocket) -> Steps:
        while True:
            try:
                return connection.do_handshake()
            except ssl.SSLWantReadError:
                self._loop.change(self._descriptor, select.EPOLLIN)
            except ssl.SSLWantWriteError:
                self._loop.change(self._descriptor, select.EPOLLOUT)
            yield

    def _exchange(self, connection: socket.socket, request: bytes, count: int) -> Generator[None, Any, int]:
        self.until = time.monotonic() + self._read_seconds
        self._loop.requests += 1
        block = self._loop.block
        try:
            sent = self._sent(connection, request)
            if sent < len(request):
                yield from self._send_rest(connection, request, sent)
            yield
            try:
                size = connection.recv_into(block)
            except _NOT_READY:
                size = yield from self._received(connection)
        except _CLOSED:
            size = 0
        if not size:
            raise _Ended
        end = block.find(_END, 0, size)
        if end < 0 or block[9:12] != b"206":
            head, body = yield from self._answer(connection, bytes(block[:size]))
        else:
            head, body = bytes(block[:end]), size - end - len(_END)
        length = _LENGTH.search(head)
        if length is None or int(length.group(1)) != count:
            raise ReadError("short")
        missing = count - body
        while missing > 0:
            size = yield from self._received(connection)
            if not size:
                raise ReadError("short")
            missing -= size
        if b"close" in head and _CLOSE.search(head):
            self.close()
        return count

    def _send_rest(self, connection: socket.socket, request: bytes, sent: int) -> Steps:
        self._loop.change(self._descriptor, select.EPOLLOUT)
        while sent < len(request):
            yield
            sent += self._sent(connection, request[sent:])
        self._loop.change(self._descriptor, select.EPOLLIN)

    def _answer(self, connection: socket.socket, answer: bytes) -> Generator[None, Any, tuple[bytes, int]]:
        """Returns the headers of an answer that has begun, and the number of bytes that it has read of the body.

        Raises:
            ReadError: it is no part of an object.
        """
        head, end, body = answer.partition(_END)
        while not end:
            head, end, body = (head + (yield from self._more(connection, MOST_HEAD - len(head)))).partition(_END)
        if head[9:12] != b"206":  # 200 would be the whole object
            raise ReadError((yield from self._kind(connection, head, body)))
        return head, len(body)

    @staticmethod
    def _sent(connection: socket.socket, request: bytes) -> int:
        try:
            return connection.send(request)
        except _NOT_READY:
            return 0

    def _received(self, connection: socket.socket) -> Generator[None, Any, int]:
        """Returns the number of bytes that it has received into the loop's block; 0 at the end."""
        while True:
            try:
                return connection.recv_into(self._loop.block)
            except _NOT_READY:
                yield

    def _more(self, connection: socket.socket, most: int) -> Generator[None, Any, bytes]:
        """Returns the next bytes of an answer."""
        size = (yield from self._received(connection)) if most > 0 else 0
        if not size:
            raise ReadError("connection")
        return bytes(self._loop.block[:size])

    def _kind(self, connection: socket.socket, head: bytes, body: bytes) -> Generator[None, Any, str]:
        """Returns the kind of an error: its status, and S3's code, which its body contains."""
        status = head[9:12].decode("ascii", "replace")
        if not status.isdigit():
            return "no-http"
        length = _LENGTH.search(head)
        most = min(int(length.group(1)) if length else MOST_ERROR, MOST_ERROR)
        code = code_of(body)
        try:
            while status != "200" and not code and len(body) < most:
                body += yield from self._more(connection, most)
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
            if self._descriptor >= 0:
                self._loop.forget(self._descriptor)
            self._socket.close()
            self._socket, self._descriptor = None, -1
