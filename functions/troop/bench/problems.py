"""Describes problems of a benchmark's file: where, what was found, and what is allowed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from troop import values
from troop.errors import TroopError

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


class BadBenchmarkError(TroopError):
    """A benchmark that cannot run as written.

    Attributes:
        problems: all problems, at least one, in the order of the file where possible.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: Sequence[Problem] = tuple(problems)
        super().__init__("; ".join(map(str, self.problems)))


def shown(value: Any) -> str:
    """Formats a value for a message in YAML's terms, and shortens a long one."""
    return json.dumps(value) if value is None or isinstance(value, bool) else values.shown(value)
