"""Marks what a process records until it has written its results: a mark that remains tells of results that are lost.

A process that is killed, such as for lack of memory, writes nothing, and the tool that started it can still end with
exit code 0. The other processes' results alone would look like those of all.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MARK = re.compile(r"recording-([0-9]+)-[0-9]+")
_numbers = itertools.count()


def begin(results: Path) -> Path:
    """Creates the mark of a recording of this process, ``recording-<process>-<number>``.

    Raises:
        OSError: the folder does not exist, or is not writable.
    """
    mark = results / f"recording-{os.getpid()}-{next(_numbers)}"
    mark.touch()
    return mark


def end(mark: Path) -> None:
    """Removes a mark; the results are written, or somebody was told why they are not."""
    mark.unlink(missing_ok=True)


@contextmanager
def recording(results: Path) -> Iterator[None]:
    """Marks a recording while the block runs.

    Raises:
        OSError: as :func:`begin`.
    """
    mark = begin(results)
    try:
        yield
    finally:
        end(mark)


def lost(results: Path) -> Iterator[str]:
    """Yields the number of each process that left a mark: once for each of its recordings."""
    for path in sorted(results.glob("recording-*")):
        if match := _MARK.fullmatch(path.name):
            yield match[1]
