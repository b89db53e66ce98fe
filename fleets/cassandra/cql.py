"""Sends statements to a server by Cassandra's native protocol, version 4. One request at a time; standard library.

The protocol: https://github.com/apache/cassandra/blob/trunk/doc/native_protocol_v4.spec
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from types import TracebackType

ONE, QUORUM = 1, 4
_VERSION, _ANSWER = 4, 0x84
_ERROR, _STARTUP, _READY, _QUERY, _RESULT = 0, 1, 2, 7, 8
_ROWS = 2
_VALUES, _SKIP_METADATA = 1, 2
_HAS_MORE, _NO_METADATA = 2, 4
_KINDS = {0x1000: "unavailable", 0x1001: "overloaded", 0x1100: "write-timeout", 0x1200: "read-timeout"}


class RefusedError(Exception):
    """The server answered with an error.

    Attributes:
        kind: such as ``write-timeout``.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.kind = _KINDS.get(code, "refused")


class Connection:
    """A connection to a server.

    Args:
        timeout: seconds for the connection and for each answer.

    Raises:
        OSError: the server cannot be reached.
    """

    def __init__(self, address: str, port: int, timeout: float) -> None:
        self.address = address
        self._socket = socket.create_connection((address, port), timeout=timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._stream = self._socket.makefile("rb")
        try:
            opcode, _ = self._ask(_STARTUP, struct.pack(">H", 1) + _string("CQL_VERSION") + _string("3.0.0"))
            if opcode != _READY:
                raise OSError(f"{address} requires authentication")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def query(self, statement: str, values: Sequence[int] = (), consistency: int = QUORUM) -> list[list[int | None]]:
        """Executes a statement, and returns its rows.

        Args:
            values: of its markers, each a bigint; so are all columns of the rows.

        Raises:
            RefusedError: the server answered with an error.
            OSError: there was no answer; whether it was executed is unknown. The connection is of no more use.
        """
        text = statement.encode()
        body = struct.pack(">i", len(text)) + text + struct.pack(">HB", consistency, _VALUES | _SKIP_METADATA)
        body += struct.pack(">H", len(values)) + b"".join(struct.pack(">iq", 8, value) for value in values)
        opcode, answer = self._ask(_QUERY, body)
        if opcode != _RESULT:
            raise OSError(f"unexpected answer {opcode}")
        return _rows(answer) if struct.unpack_from(">i", answer)[0] == _ROWS else []

    def _ask(self, opcode: int, body: bytes) -> tuple[int, bytes]:
        self._socket.sendall(struct.pack(">BBhBi", _VERSION, 0, 0, opcode, len(body)) + body)
        version, _, _, answered, length = struct.unpack(">BBhBi", self._read(9))
        answer = self._read(length)
        if version != _ANSWER:
            raise OSError(f"the server speaks another version of the protocol ({version:#x})")
        if answered == _ERROR:
            code, size = struct.unpack_from(">iH", answer)
            raise RefusedError(code, answer[6 : 6 + size].decode(errors="replace"))
        return answered, answer

    def _read(self, count: int) -> bytes:
        content = self._stream.read(count)
        if len(content) < count:
            raise ConnectionError(f"{self.address} has closed the connection")
        return content


def _string(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def _rows(answer: bytes) -> list[list[int | None]]:
    """Parses rows of bigints without metadata."""
    _, flags, columns = struct.unpack_from(">iii", answer)
    if flags & _HAS_MORE or not flags & _NO_METADATA:
        raise OSError("the answer has pages or metadata, which were not requested")
    (count,) = struct.unpack_from(">i", answer, 12)
    rows, at = [], 16
    for _ in range(count):
        row: list[int | None] = []
        for _ in range(columns):
            (length,) = struct.unpack_from(">i", answer, at)
            row.append(struct.unpack_from(">q", answer, at + 4)[0] if length == 8 else None)
            at += 4 + max(length, 0)
        rows.append(row)
    return rows
