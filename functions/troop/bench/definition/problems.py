"""Describes problems of a benchmark's file: where, what was found, and what is allowed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from troop.shared import values
from troop.shared.errors import TroopError

MOST_PROBLEMS = 100
"""The most problems that are looked for: nobody reads more, and a small file can have very many."""

Place = tuple[str | int, ...]
"""The path to a value: keys of mappings, positions in lists."""


@dataclass(frozen=True)
class Problem:
    """One problem.

    Attributes:
        place: its place, from the top of the file.
        message: what was found there, such as ``is 0`` or ``is missing``.
        allowed: what is accepted, as a phrase that follows "must be".
    """

    place: Place
    message: str
    allowed: str

    @property
    def where(self) -> str:
        """The place as text, such as ``phases.0.timeout``; "the file" for the whole file."""
        return ".".join(map(str, self.place)) or "the file"

    def __str__(self) -> str:
        return f"{self.where} {self.message}: must be {self.allowed}"


def and_more(number: int, listed: int) -> str:
    """Returns the end of a list of problems, such as "and 3 more", or "" if all of ``number`` are listed."""
    if number <= listed:
        return ""
    return f"and {'at least ' if number >= MOST_PROBLEMS else ''}{number - listed:,} more"


class BadBenchmarkError(TroopError):
    """A benchmark that cannot run as written.

    Attributes:
        problems: at least one, and at most :data:`MOST_PROBLEMS`, in the order of the file where possible.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: Sequence[Problem] = tuple(islice(problems, MOST_PROBLEMS))
        super().__init__("; ".join(map(str, self.problems)))


def shown(value: Any) -> str:
    """Formats a value for a message in YAML's terms, and shortens a long one."""
    return json.dumps(value) if value is None or isinstance(value, bool) else values.shown(value)
