"""Reads the elements of a list in a JSON document one by one, so that all elements before a cut or damage are
usable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from troop.measure.collectors.common import Problems

_BETWEEN = re.compile(r"[\s,]*")


def elements(text: str, key: str, name: str, problems: Problems) -> Iterator[tuple[int, Any]]:
    """Yields each element of each list named ``key``, with the number of its first line.

    Args:
        name: the document's name in problems.
        problems: receives a sentence if a list is damaged or cut off; everything after that is lost.
    """
    decoder = json.JSONDecoder()
    begin = re.compile(rf'"{re.escape(key)}"\s*:\s*\[')
    position = 0
    line, counted = 1, 0  # lines before `counted`, to count each only once
    while match := begin.search(text, position):
        position = _past(text, match.end())
        while not text.startswith("]", position):
            try:
                element, end = decoder.raw_decode(text, position)
            except (ValueError, RecursionError) as error:
                problems.add(f"{name}:{_line(text, error, position)}: the JSON is cut off or damaged: {error}")
                return
            line += text.count("\n", counted, position)
            counted = position
            yield line, element
            position = _past(text, end)


def _past(text: str, position: int) -> int:
    match = _BETWEEN.match(text, position)
    return match.end() if match else position


def _line(text: str, error: Exception, position: int) -> int:
    return int(getattr(error, "lineno", text.count("\n", 0, position) + 1))
