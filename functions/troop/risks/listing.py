"""Defines what a paged call has listed, as far as it could be read. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Listing(Generic[T]):
    """Rows that a service has listed.

    Attributes:
        problem: why some or all rows are missing, in a sentence; "" if none is.
    """

    rows: tuple[T, ...] = ()
    problem: str = ""

    @property
    def is_complete(self) -> bool:
        return not self.problem

    def convert(self, convert: Callable[[T], Any]) -> Listing[Any]:
        """Returns the same listing of converted rows."""
        return Listing(tuple(map(convert, self.rows)), self.problem)
