"""Reads stored items that people can edit: an item that cannot be read never hides the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from troop.shared.codec import DocumentError
from troop.shared.errors import TroopError

Row = TypeVar("Row")
T = TypeVar("T")

_UNREADABLE = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError)
"""The errors of a conversion if a value is missing, or of another type than Troop writes."""

_LONGEST = 200


@dataclass(frozen=True)
class Malformed:
    """An item that cannot be read.

    Attributes:
        item: its table and key, such as ``Events: 2026-11-20#web``.
        why: what is wrong with it.
    """

    item: str
    why: str

    def __str__(self) -> str:
        return f"{self.item} is malformed: {self.why}"


class MalformedItemError(TroopError):
    """A single item cannot be read."""

    def __init__(self, malformed: Malformed) -> None:
        self.malformed = malformed
        super().__init__(f"the item {malformed}. Repair it, or remove it, in the table")


@dataclass(frozen=True)
class Read(Generic[T]):
    """What some items contain, and those that cannot be read. Both are in the order of the items."""

    items: tuple[T, ...] = ()
    malformed: tuple[Malformed, ...] = ()

    def whole(self) -> tuple[T, ...]:
        """Returns all items.

        Raises:
            MalformedItemError: one of them cannot be read.
        """
        for first in self.malformed:
            raise MalformedItemError(first)
        return self.items


def read(rows: Iterable[Row], convert: Callable[[Row], T], name: Callable[[Row], str]) -> Read[T]:
    """Converts items, and leaves those out that cannot be read.

    Args:
        name: returns the table and the key of an item.
    """
    items, malformed = list[T](), list[Malformed]()
    for row in rows:
        try:
            items.append(read_one(row, convert, name))
        except MalformedItemError as error:
            malformed.append(error.malformed)
    return Read(tuple(items), tuple(malformed))


def read_one(row: Row, convert: Callable[[Row], T], name: Callable[[Row], str]) -> T:
    """Converts one item.

    Raises:
        MalformedItemError: it cannot be read.
    """
    try:
        return convert(row)
    except _UNREADABLE as error:
        raise MalformedItemError(Malformed(name(row), _why(error))) from None


def _why(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error} is missing"
    if isinstance(error, DocumentError):
        return str(error)[:_LONGEST]
    words = " ".join(str(error).split())
    return f"a value cannot be read: {words}"[:_LONGEST]
