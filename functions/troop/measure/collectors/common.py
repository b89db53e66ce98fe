"""Collects problems, and forms valid names, for all collectors."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, field

from troop.measure.operations import NAME

_OTHERS = re.compile(r"[^A-Za-z0-9._:-]+")
LONGEST_NAME = 64

MOST_PROBLEMS = 20
"""Problems to list; the rest is counted."""
LONGEST_PROBLEM = 500
"""Characters: a sentence can quote the file."""


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
