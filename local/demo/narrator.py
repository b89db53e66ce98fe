"""Prints the progress with the time since the start; in colour on a terminal."""

from __future__ import annotations

import sys
import threading
import time

_COLOURS = {"title": "1;36", "good": "32", "bad": "1;31", "kill": "1;35", "dim": "2", "plain": ""}


class Narrator:
    """A printer of progress that threads can share."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._lock = threading.Lock()
        self._colour = sys.stdout.isatty()
        self._backlog: list[str] | None = None

    def aside(self) -> Narrator:
        """Returns a narrator with the same clock, which keeps its lines until :meth:`release`."""
        other = Narrator()
        other._start, other._backlog = self._start, []
        return other

    def release(self) -> None:
        """Prints the lines that were kept, and all further lines at once."""
        with self._lock:
            for line in self._backlog or ():
                print(line, flush=True)
            self._backlog = None

    def title(self, text: str) -> None:
        self._print("title", f"\n{text}")

    def say(self, text: str, style: str = "plain") -> None:
        self._print(style, f"{time.monotonic() - self._start:6.1f} s  {text}")

    def text(self, text: str, style: str = "dim") -> None:
        """Prints indented lines without a time."""
        self._print(style, "\n".join(f"          {line}" for line in text.splitlines()))

    def _print(self, style: str, text: str) -> None:
        code = _COLOURS[style]
        line = f"\033[{code}m{text}\033[0m" if self._colour and code else text
        with self._lock:
            if self._backlog is None:
                print(line, flush=True)
            else:
                self._backlog.append(line)
