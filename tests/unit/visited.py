"""Documents that count how many of their values somebody looks at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class Visits:
    """The number of entries that were read from the lists and mappings of one document."""

    def __init__(self) -> None:
        self.number = 0

    def list(self, entries: list[Any]) -> list[Any]:
        visits = self

        class Counting(list[Any]):
            def __iter__(self) -> Iterator[Any]:
                for entry in super().__iter__():
                    visits.number += 1
                    yield entry

        return Counting(entries)

    def mapping(self, entries: dict[str, Any]) -> dict[str, Any]:
        visits = self

        class Counting(dict[str, Any]):
            def items(self) -> Any:
                return ((key, self[key]) for key in self)

            def values(self) -> Any:
                return (self[key] for key in self)

            def __iter__(self) -> Iterator[str]:
                for key in super().__iter__():
                    visits.number += 1
                    yield key

        return Counting(entries)
