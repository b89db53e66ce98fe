"""Refuses what IAM would: a function's writes of items of ``State`` that :mod:`troop.shared.state_keys` does not give
it, and the cell's of objects that do not lead a cell.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from types import FrameType
from typing import Any

import pytest

from troop.bench.definition.names import WRITTEN_BY_CELL
from troop.shared.state_keys import BENCH_WRITERS, DELETED, WRITERS, written_by

_WRITES = frozenset({"DeleteItem", "PutItem", "PutObject", "TransactWriteItems", "UpdateItem"})


def within_rights(real: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps the method that makes calls of AWS. A test's own writes are not those of a function."""

    def call(self: Any, operation: str, parameters: dict[str, Any]) -> Any:
        if operation in _WRITES and (function := _function()):
            foreign = list(_foreign(function, operation, parameters))
            if foreign:
                pytest.fail(f"the function {function} writes {foreign}, and its role may not")
        return real(self, operation, parameters)

    return call


def _foreign(function: str, operation: str, parameters: Mapping[str, Any]) -> Iterator[str]:
    if operation == "PutObject":
        patterns = WRITTEN_BY_CELL if function == "cell" else ("*",)
        yield from _beyond([str(parameters["Key"])], patterns)
    else:
        written = list(_written(operation, parameters))
        yield from _beyond([key for kind, key in written if kind == "Delete"], DELETED if function == "api" else ())
        patterns = (*written_by(function, WRITERS), *written_by(function, BENCH_WRITERS))
        yield from _beyond([key for kind, key in written if kind != "Delete"], patterns)


def _beyond(its: Sequence[str], patterns: Sequence[str]) -> Iterator[str]:
    return (one for one in its if not any(fnmatchcase(one, pattern) for pattern in patterns))


def _written(operation: str, parameters: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The keys of the items of ``State`` that a call writes, and how. A condition check writes nothing."""
    parts = [(operation.removesuffix("Item"), parameters)]
    if operation == "TransactWriteItems":
        parts = [one for part in parameters["TransactItems"] for one in part.items()]
    for kind, part in parts:
        if part["TableName"] == "State" and kind in ("Delete", "Put", "Update"):
            yield kind, str(part["Item" if kind == "Put" else "Key"]["key"]["S"])


def _function() -> str | None:
    """The function that makes the call; None if the test does. Functions also write in threads, for which they wait."""
    frame: FrameType | None = sys._getframe()
    while frame and frame.f_code.co_name != "_api_call":  # a method of a client
        frame = frame.f_back
    caller = frame.f_back if frame else None
    if caller is None or _module(caller).startswith("tests."):
        return None
    frames = [caller, *sys._current_frames().values()]
    return next((name for one in frames if (name := _handler(one))), None)


def _handler(frame: FrameType | None) -> str | None:
    while frame:
        package, _, name = _module(frame).partition(".")
        if package == "handlers":
            return name
        frame = frame.f_back
    return None


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))
