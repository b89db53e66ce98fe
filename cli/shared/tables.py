"""Lays out tables: one line a row, no spaces at the ends of lines, and columns that fit into a width. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

_GAP = 2
_FEWEST = 2
"""Columns that even the narrowest terminal shows."""

_NEVER_CUT = 24
"""Cells of so many characters are cut only if nothing can be omitted: part of a moment or an id is useless."""

_PROSE = 20
"""The narrowest column of sentences."""

_LEAST = 4


def widths(rows: Sequence[Sequence[Text]]) -> dict[int, int]:
    """Returns the width of each column, by its index, in cells of a terminal."""
    if not rows:
        return {}
    return {index: max(row[index].cell_len for row in rows) for index in range(len(rows[0]))}


def floors(rows: Sequence[Sequence[Text]], natural: Mapping[int, int]) -> dict[int, int]:
    """Returns the width of each column, by its index, below which rather others are omitted."""
    return {
        index: _PROSE if width > _NEVER_CUT and any(" " in row[index].plain for row in rows) else min(width, _NEVER_CUT)
        for index, width in natural.items()
    }


def fit(
    names: Sequence[str], natural: Mapping[int, int], least: Mapping[int, int], total: int, drop: Sequence[str]
) -> tuple[dict[int, int], list[str]]:
    """Omits columns and narrows others until they fit.

    Args:
        natural: the width of each column, by its index.
        least: what :func:`floors` returns. Columns become narrower only where nothing more can be omitted.
        total: the width of the terminal.
        drop: names of columns, in the order in which they are omitted; then the others from the right.

    Returns:
        The columns that remain with their widths, and the names of those that do not, from left to right.
    """
    order = [names.index(name) for name in drop if name in names]
    order += [index for index in reversed(range(len(names))) if index not in order]
    columns, omitted = dict(natural), list[int]()
    while _needed({index: least[index] for index in columns}) > total and len(columns) > _FEWEST:
        index = order.pop(0)
        del columns[index]
        omitted.append(index)
    for bounds in (least, dict.fromkeys(columns, _LEAST)):
        while _needed(columns) > total:
            widest = max(columns, key=lambda index: (columns[index] > bounds[index], columns[index]))
            if columns[widest] <= bounds[widest]:
                break
            columns[widest] -= 1
    return columns, [names[index] for index in sorted(omitted)]


def before_last(columns: Mapping[int, int]) -> int:
    """Returns where the last column begins."""
    return sum(list(columns.values())[:-1]) + _GAP * (len(columns) - 1)


def _needed(columns: Mapping[int, int]) -> int:
    return sum(columns.values()) + _GAP * (len(columns) - 1)


def line(row: Sequence[Text], columns: Mapping[int, int]) -> Text:
    """Returns a row as one line; cuts cells that are too long, and marks them with an ellipsis."""
    from rich.text import Text

    result = Text()
    for index, width in columns.items():
        cell = row[index].copy()
        cell.truncate(width, overflow="ellipsis", pad=True)
        result.append_text(cell).append(" " * _GAP)
    result.rstrip()
    return result
