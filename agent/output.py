"""Keeps a command's output within bounds: its beginning and its end."""

from __future__ import annotations

import threading

from troop.measure.redaction import redacted

HEAD, TAIL = 64 << 10, 256 << 10
"""Bytes to keep."""


class BoundedOutput:
    """The first :data:`HEAD` and the last :data:`TAIL` bytes of an output. Safe to write from any thread."""

    def __init__(self, head: int = HEAD, tail: int = TAIL) -> None:
        self._most_head, self._most_tail = head, tail
        self._head, self._tail, self._left_out = bytearray(), bytearray(), 0
        self._lock = threading.Lock()

    def write(self, data: bytes) -> None:
        with self._lock:
            room = self._most_head - len(self._head)
            self._head += data[:room]
            self._tail += data[room:]
            too_many = len(self._tail) - self._most_tail
            if too_many > 0:
                self._left_out += too_many
                del self._tail[:too_many]

    def content(self) -> bytes:
        """Returns all output, or both ends and between them the number of bytes that are missing."""
        with self._lock:
            gap = b"\n... %d bytes are left out here ...\n" % self._left_out if self._left_out else b""
            return bytes(self._head) + gap + bytes(self._tail)

    def last_line(self, longest: int = 300) -> str:
        """Returns the last line that is not blank, without credentials, cut to ``longest``; empty if there is none."""
        lines = redacted(self.content()[-4096:].decode(errors="replace")).split("\n")
        return next((line.strip()[:longest] for line in reversed(lines) if line.strip()), "")
