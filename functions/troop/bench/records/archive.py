"""Reads a run's stored files from any place: the results bucket, a folder, or a dictionary in a test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from troop.shared.errors import TroopError
from troop.shared.values import excess, json_in

DEFINITION, PLAN, ESTIMATE, RECORD = "definition.json", "plan.json", "estimate.json", "record.json"
INSTANCE_TYPES = "instance-types.json"
"""Files of the run."""

CELL_DEFINITION, RESULTS, ROSTER = "definition.json", "results.json", "roster.json"
REPORT_PART = "report-part.json"
INTERRUPTIONS, NODES, REPLACED = "interruptions/", "nodes/", "replaced/"
"""Files of a cell, below its folder."""

_NODE_FOLDERS = frozenset({"nodes", "phases", "output", "interruptions"})
"""Folders of a cell that nodes write to; their content cannot be trusted."""

MOST_BYTES = 16 * 1024 * 1024
"""The largest file from a node that is read."""

_DEEPEST = 64
"""The most levels of a document: several times those of Troop's documents. Pydantic cannot write deeper ones."""


class ReportError(TroopError):
    """The stored data is not sufficient for a report; the message says what is missing, and what to do."""


class DamagedError(ValueError):
    """A stored document cannot be read; the message says which one, and why."""


class Archive(Protocol):
    """The files of one run. Names are relative to the run's folder, with slashes: ``c001/results.json``."""

    def read(self, name: str) -> bytes | None:
        """Returns a file's content; None if there is no such file.

        Raises:
            DamagedError: see :func:`refuse_large`.
        """

    def names(self, below: str) -> Sequence[str]:
        """Lists the full names of all files that begin with ``below``, such as ``c001/interruptions/``, in order."""


def refuse_large(name: str, size: int) -> None:
    """Rejects a file from a node that could exceed a function's memory. Archives call this before they read.

    Raises:
        DamagedError: a node's file has more than :data:`MOST_BYTES`.
    """
    _, _, part = name.partition("/")
    if size > MOST_BYTES and part.partition("/")[0] in _NODE_FOLDERS:
        raise DamagedError(f"{name} has {size:,} bytes, more than {MOST_BYTES:,}")


def document(archive: Archive, name: str) -> dict[str, Any] | None:
    """Reads a stored JSON object; returns None if there is no such file. It can always be written as JSON in UTF-8
    again.

    Raises:
        DamagedError: the file is not a JSON object, or is too large.
    """
    body = archive.read(name)
    if body is None:
        return None
    try:
        text = body.decode("utf-8-sig")
        document = json_in(text)
        if not is_flat(body) and (too_much := excess(document, _DEEPEST)):
            raise ValueError(f"it {too_much}")
    except ValueError as error:
        raise DamagedError(f"{name} is not valid JSON ({error})") from None
    if not isinstance(document, dict):
        raise DamagedError(f"{name} must be a JSON object")
    return document


def is_flat(body: bytes) -> bool:
    """Checks whether valid JSON is certainly not nested deeper than :data:`_DEEPEST`, in a fraction of the time of
    :func:`excess`.

    Only brackets, quotes and backslashes stay. A string without brackets becomes a pair of quotes, which is removed. Of
    any other string a quote or a backslash stays; then the answer is False. Each further step removes the innermost
    brackets.
    """
    left = body.translate(_SQUARE, _NO_MARKS).replace(b'""', b"")
    for _ in range(_DEEPEST):
        left = left.replace(b"[]", b"")
    return not left


_SQUARE = bytes.maketrans(b"{}", b"[]")
_NO_MARKS = bytes(set(range(256)) - set(b'{}[]"\\'))
