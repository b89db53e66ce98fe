"""What is kept of a run, wherever that is: in the results bucket, in a folder, in a test's dictionary."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Protocol

from troop.errors import TroopError
from troop.values import is_deeper, json_in

DEFINITION, PLAN, ESTIMATE, RECORD = "definition.json", "plan.json", "estimate.json", "record.json"
"""Of the run."""

CELL_DEFINITION, RESULTS, ROSTER = "definition.json", "results.json", "roster.json"
INTERRUPTIONS, NODES = "interruptions/", "nodes/"
"""Of a cell, below its own folder."""

_OF_NODES = frozenset({"nodes", "phases", "output", "interruptions"})
"""What nodes write themselves, of a cell: whatever they like."""

MOST_BYTES = 16 * 1024 * 1024
"""Of a file that a node has written."""

_DEEPEST = 64
"""Levels of a document: several times what ours have. What is deeper pydantic cannot write."""

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class ReportError(TroopError):
    """No report can be made of what is kept; the message says what is missing, and what to do."""


class DamagedError(ValueError):
    """A kept document that cannot be read; the message says which one, and why."""


class Archive(Protocol):
    """The files of one run. Names are relative to the run's folder, with slashes: ``c001/results.json``."""

    def read(self, name: str) -> bytes | None:
        """A file's content; None when there is none.

        Raises:
            DamagedError: see :func:`refuse_large`.
        """

    def names(self, below: str) -> Sequence[str]:
        """Of all files whose names begin with ``below``, such as ``c001/interruptions/``, in full and in order."""


def refuse_large(name: str, size: int) -> None:
    """Whoever reads asks this first: what a node has written could be larger than a function's memory.

    Raises:
        DamagedError: it has more than :data:`MOST_BYTES`, and is a node's.
    """
    _, _, part = name.partition("/")
    if size > MOST_BYTES and part.partition("/")[0] in _OF_NODES:
        raise DamagedError(f"{name} has {size:,} bytes, more than {MOST_BYTES:,}")


def document(archive: Archive, name: str) -> dict[str, Any] | None:
    """A kept JSON object; None when there is no such file. All that is in it can be written as JSON in UTF-8 again.

    Raises:
        DamagedError: it is no JSON object, or too large.
    """
    body = archive.read(name)
    if body is None:
        return None
    try:
        text = body.decode("utf-8-sig")
        document = json_in(text)
        if is_deeper(document, _DEEPEST):
            raise ValueError(f"it is nested deeper than {_DEEPEST} levels")
        if _SURROGATE.search(text):
            _refuse_halves(document)
    except ValueError as error:
        raise DamagedError(f"{name} is no JSON ({error})") from None
    if not isinstance(document, dict):
        raise DamagedError(f"{name} must be a JSON object")
    return document


def _refuse_halves(document: Any) -> None:
    """Halves of surrogate pairs, which JSON can say, and no text in UTF-8 can have."""
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("it has half of a character") from None
