"""What a command prints, however much: the first of it and the last of it."""

from __future__ import annotations

import threading

HEAD, TAIL = 64 << 10, 256 << 10
"""Bytes kept."""


class BoundedOutput:
    """Keeps the first :data:`HEAD` and the last :data:`TAIL` bytes. Any thread may write."""

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
        """All of it, or its two ends and how much is left out between them."""
        with self._lock:
            gap = b"\n... %d bytes are left out here ...\n" % self._left_out if self._left_out else b""
            return bytes(self._head) + gap + bytes(self._tail)

    def last_line(self, longest: int = 300) -> str:
        """The last one that is not blank, cut; empty when there is none."""
        lines = self.content()[-4096:].decode(errors="replace").split("\n")
        return next((line.strip()[:longest] for line in reversed(lines) if line.strip()), "")
