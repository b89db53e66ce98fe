"""Reads a file while another program writes it: what is there, and then what is added, until the program has ended."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any, Callable, TextIO

PAUSE_SECONDS = 0.2


class Growing(io.RawIOBase):
    """The bytes of a file that grows. The end of the file is reached when the writer had ended before the last look.

    Args:
        is_over: whether the writer has ended.
    """

    def __init__(self, path: Path, is_over: Callable[[], bool], sleep: Callable[[float], None] = time.sleep) -> None:
        super().__init__()
        self._path, self._is_over, self._sleep = path, is_over, sleep
        self._file: io.FileIO | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        """Reads what is there; waits if that is nothing.

        Raises:
            FileNotFoundError: the writer has ended and created no file.
        """
        while True:
            was_over = self._is_over()  # before the look: the last bytes come before the end
            if self._file is None:
                try:
                    self._file = io.FileIO(str(self._path))
                except FileNotFoundError:
                    if was_over:
                        raise
            if self._file is not None and (count := self._file.readinto(buffer)):
                return count
            if was_over:
                return 0
            self._sleep(PAUSE_SECONDS)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        super().close()


def text_of(growing: Growing) -> TextIO:
    """Returns the text of a file that grows, with its line ends. Bytes that are not UTF-8 become ``\\xNN``."""
    buffered: Any = io.BufferedReader(growing, 1 << 20)
    return io.TextIOWrapper(buffered, encoding="utf-8", errors="backslashreplace", newline="")


def has_ended(process: int) -> bool:
    """Checks whether a process has ended, also if its parent has not asked yet."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    return status.rpartition(")")[2].split()[:1] == ["Z"]
