"""Collects problems, and forms valid names, for all collectors."""

from __future__ import annotations

import csv
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from troop.measure.operations import NAME

_OTHERS = re.compile(r"[^A-Za-z0-9._:-]+")
LONGEST_NAME = 64

MOST_PROBLEMS = 20
"""The most problems to list; the rest is counted."""
LONGEST_PROBLEM = 500
"""The most characters of a problem: a sentence can quote the file."""

LONGEST_FIELD = 1 << 20
"""The most characters of a table's cell: it may contain a whole answer."""


class CollectorError(ValueError):
    """Nothing of an output can be used; the message names the file and the line, and says why."""


@dataclass
class Problems:
    """Sentences about unreadable parts, with file and line."""

    sentences: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, sentence: str) -> None:
        self.count += 1
        if len(self.sentences) < MOST_PROBLEMS:
            self.sentences.append(sentence if len(sentence) <= LONGEST_PROBLEM else f"{sentence[:LONGEST_PROBLEM]}...")

    def again(self) -> None:
        """Counts a problem of a kind that is listed already."""
        self.count += 1

    def lines(self) -> list[str]:
        more = self.count - len(self.sentences)
        return [*self.sentences, f"and {more} more"] if more else list(self.sentences)


def header_of(rows: Iterator[list[str]], name: str) -> list[str]:
    """Returns the names of the columns in the first row of a table.

    Args:
        name: the file's name in problems.

    Raises:
        CollectorError: the row is damaged.
    """
    try:
        return [column.strip() for column in next(rows, [])]
    except csv.Error as error:
        raise CollectorError(f"{name}:1: {error}") from None


def places_of(columns: Sequence[str], needed: Collection[str], name: str) -> dict[str, int]:
    """Returns the number of each column.

    Raises:
        CollectorError: one of those that are needed is there twice.
    """
    number = Counter(columns)
    if twice := [column for column in dict.fromkeys(needed) if number[column] > 1]:
        raise CollectorError(f"{name}:1: the header has {', '.join(twice)} twice")
    return {column: place for place, column in enumerate(columns)}


def a_name(text: str) -> str:
    """Returns ``text`` as a name for an operation or a kind of error, the same on all nodes.

    Blanks and slashes become hyphens. If other characters are lost, a checksum of the text is added to keep names
    distinct.
    """
    if NAME.fullmatch(text):
        return text
    cleaned = _OTHERS.sub("-", text).strip("-").lstrip("._:-")
    if NAME.fullmatch(cleaned) and set(text) <= set(cleaned) | set(" /"):
        return cleaned
    mark = f"{zlib.crc32(text.encode(errors='backslashreplace')):08x}"
    return f"{cleaned[: LONGEST_NAME - len(mark) - 1].rstrip('-') or 'unnamed'}-{mark}"
