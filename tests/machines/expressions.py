"""Finds and reads the expressions of a definition."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from jsonata import Jsonata  # type: ignore[import-untyped]

_REFERENCE = re.compile(r"\$\$?(\.[A-Za-z_]\w*|\[\d+\]|\['[^']+'\])*")
_PATH_FIELDS = (
    "Variable", "InputPath", "OutputPath", "ResultPath", "ItemsPath", "SecondsPath", "TimestampPath",
    "MaxConcurrencyPath", "TimeoutSecondsPath", "HeartbeatSecondsPath", "ErrorPath", "CausePath",
)  # fmt: skip
_ARGUMENTS = re.compile(r"""'(?:[^'\\]|\\.)*'|[^,]+""")


class BadExpression(ValueError):
    """An expression that Step Functions would refuse, or that these machines do without."""


def expressions(value: Any) -> Iterator[str]:
    """All JSONPath expressions (paths, intrinsic functions) and JSONata texts, wherever they stand."""
    if isinstance(value, dict):
        for key, inner in value.items():
            is_path = key.endswith(".$") or key in _PATH_FIELDS
            if is_path and isinstance(inner, str):
                yield inner
            else:
                yield from expressions(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from expressions(inner)
    elif isinstance(value, str) and value.startswith("{%"):
        yield value


def check(expression: str) -> None:
    """Raises BadExpression for text that is no reference path, intrinsic function or JSONata."""
    if expression.startswith("{%"):
        if not expression.endswith("%}"):
            raise BadExpression(f"{expression}: JSONata must end with %}}")
        try:
            Jsonata(expression[2:-2])
        except Exception as error:  # the library raises many kinds
            raise BadExpression(f"{expression}: {error}") from error
    elif expression.startswith("States."):
        name, _, rest = expression.partition("(")
        if not re.fullmatch(r"States\.[A-Z]\w*", name) or not rest.endswith(")"):
            raise BadExpression(expression)
        for argument in _ARGUMENTS.findall(rest[:-1]):
            if argument.strip().startswith(("$", "States.")):
                check(argument.strip())
    elif not _REFERENCE.fullmatch(expression):
        raise BadExpression(expression)


def reads(expression: str) -> Iterator[str]:
    """The paths into the state's input that an expression reads, without ``$.``; "" is all of it."""
    for path in re.findall(r"(?<!\$)\$(?:\.[A-Za-z_]\w*)*(?![\w$.])", expression):
        yield path[2:]
