"""Defines the kinds of values in the file. Each states what it allows, in words and as JSON Schema."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

NOT_ALLOWED = "not_allowed"
"""Type of pydantic's error for a value that a :class:`Checked` refuses."""


@dataclass(frozen=True)
class Checked:
    """Annotation of a field that accepts what ``parse`` accepts.

    Attributes:
        parse: returns the value to store, or raises ValueError.
        allowed: what it accepts, as a phrase that follows "must be".
        schema: the same as JSON Schema, as closely as possible.
    """

    parse: Callable[[Any], Any]
    allowed: str
    schema: Mapping[str, Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._checked)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return dict(self.schema)

    def accepts(self, value: Any) -> bool:
        """Checks whether it accepts a value."""
        try:
            self.parse(value)
        except ValueError:
            return False
        return True

    def _checked(self, value: Any) -> Any:
        try:
            return self.parse(value)
        except ValueError:
            raise PydanticCustomError(NOT_ALLOWED, "not allowed", {"allowed": self.allowed}) from None


def described(checked: Checked, text: str, **more: Any) -> Any:
    """Returns a field whose description ends with what it accepts: editors show nothing else."""
    return Field(description=f"{text}: {checked.allowed}", **more)


def _whole(value: Any) -> int:
    """Parses a number without a fraction; refuses text and booleans."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError
    return value


def _between(low: int, high: int, value: int) -> int:
    if not low <= value <= high:
        raise ValueError
    return value


def whole(low: int, high: int) -> Checked:
    """Accepts whole numbers from ``low`` to ``high``, both included."""
    schema = {"type": "integer", "minimum": low, "maximum": high}
    return Checked(lambda value: _between(low, high, _whole(value)), f"a whole number from {low} to {high}", schema)


_UNITS = {"s": 1, "m": 60, "h": 3600}
_DURATION = re.compile(r"([0-9]{1,6}) ?([smh])")


def duration(low: str, high: str) -> Checked:
    """Accepts durations from ``low`` to ``high``, both included, in whole seconds."""

    def parse(value: Any) -> int:
        number = seconds(value) if isinstance(value, str) else _whole(value)
        return _between(seconds(low), seconds(high), number)

    return Checked(
        parse,
        f"a duration from {low} to {high}, such as 45s, 10m or 2h, or a number of seconds",
        {
            "anyOf": [
                {"type": "integer", "minimum": seconds(low), "maximum": seconds(high)},
                {"type": "string", "pattern": f"^{_DURATION.pattern}$"},
            ]
        },
    )


def seconds(text: str) -> int:
    """Parses a duration: ``10m`` is 600.

    Raises:
        ValueError: the text is not a duration.
    """
    if not (match := _DURATION.fullmatch(text)):
        raise ValueError(f"{text!r} is not a duration")
    return int(match[1]) * _UNITS[match[2]]


def written(duration: int) -> str:
    """Formats seconds in the largest unit without a fraction."""
    unit = next((unit for unit in ("h", "m") if duration and duration % _UNITS[unit] == 0), "s")
    return f"{duration // _UNITS[unit]}{unit}"


def amount(low: int | float, high: int) -> Checked:
    """Accepts numbers from ``low`` to ``high``, both included, and rounds them to six decimal places."""

    def parse(value: Any) -> Decimal:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
            raise ValueError
        return Decimal(str(value)).quantize(_MILLIONTH).normalize() + 0  # no 1E+2

    return Checked(parse, f"a number from {low} to {high}", {"type": "number", "minimum": low, "maximum": high})


_MILLIONTH = Decimal("0.000001")


def finite(low: int, high: int) -> Checked:
    """Accepts numbers from ``low`` to ``high``, both included, as they are."""

    def parse(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
            raise ValueError
        return value

    allowed = f"a number from {low} to {high}"
    return Checked(parse, allowed, {"type": "number", "minimum": low, "maximum": high})


def matching(pattern: str, allowed: str) -> Checked:
    """Accepts text that a regular expression matches completely."""
    compiled = re.compile(pattern)

    def parse(value: Any) -> str:
        if not isinstance(value, str) or not compiled.fullmatch(value):
            raise ValueError
        return value

    return Checked(parse, allowed, {"type": "string", "pattern": f"^(?:{pattern})$"})


def text(longest: int) -> Checked:
    """Accepts text of at most ``longest`` characters, without control characters except line ends and tabs."""

    def parse(value: Any) -> str:
        if not isinstance(value, str) or len(value) > longest or re.search(r"[\x00-\x08\x0b-\x1f\ud800-\udfff]", value):
            raise ValueError
        return value

    allowed = f"text of at most {longest} characters, without control characters"
    return Checked(parse, allowed, {"type": "string", "maxLength": longest})


def one_of(*allowed: str) -> Checked:
    def parse(value: Any) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise ValueError
        return value

    return Checked(parse, "one of " + ", ".join(allowed), {"type": "string", "enum": list(allowed)})


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


BOOLEAN = Checked(_boolean, "true or false", {"type": "boolean"})


def scalar(value: Any) -> Any:
    """Accepts text, finite numbers and booleans.

    Raises:
        ValueError: the value is something else, or too large.
    """
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError
    elif isinstance(value, int):  # including true and false
        _between(-_LARGEST, _LARGEST, value)
    elif isinstance(value, str):
        _TEXT.parse(value)
    else:
        raise ValueError
    return value


_LARGEST = 2**53
"""The largest integer that every JSON reader represents exactly."""
_TEXT = text(4096)
_MOST = 1000
_SCALAR = {"type": ["string", "number", "boolean"]}


_LIST = {"type": "array", "items": _SCALAR, "maxItems": _MOST}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_MOST_NAMES = 100


def _parameter(value: Any) -> Any:
    if not isinstance(value, dict):
        return _list_or_scalar(value)
    if not 0 < len(value) <= _MOST_NAMES:
        raise ValueError
    if not all(isinstance(name, str) and _NAME.fullmatch(name) for name in value):
        raise ValueError
    return {name: _list_or_scalar(inner) for name, inner in value.items()}


def _list_or_scalar(value: Any) -> Any:
    if not isinstance(value, list):
        return scalar(value)
    if len(value) > _MOST:
        raise ValueError
    return tuple(scalar(inner) for inner in value)


PARAMETER = Checked(
    _parameter,
    f"text of at most 4096 characters, a number, true or false, a list of at most {_MOST} of these, or a mapping of at "
    f"most {_MOST_NAMES} names (letters, digits, hyphens and underscores) to such values",
    {
        "anyOf": [
            _SCALAR,
            _LIST,
            {
                "type": "object",
                "propertyNames": {"pattern": f"^{_NAME.pattern}$"},
                "additionalProperties": {"anyOf": [_SCALAR, _LIST]},
                "minProperties": 1,
                "maxProperties": _MOST_NAMES,
            },
        ]
    },
)


_LONGEST_VALUE = 200
"""Maximum characters of a matrix value: labels of cells contain it."""


def values(most: int) -> Checked:
    """Accepts lists of values for one key of the matrix."""

    def parse(raw: Any) -> list[Any]:
        if not isinstance(raw, list) or not 0 < len(raw) <= most:
            raise ValueError
        parsed = [_parameter(value) for value in raw]
        texts = [json.dumps(value, allow_nan=False) for value in parsed]
        if any(len(text) > _LONGEST_VALUE for text in texts) or len({_alike(value) for value in parsed}) < len(parsed):
            raise ValueError
        return parsed

    allowed = (
        f"a list of 1 to {most} different values: text, a number, true or false, a list of these, or a mapping to "
        f"these, of at most {_LONGEST_VALUE} characters"
    )
    schema = {"type": "array", "minItems": 1, "maxItems": most, "uniqueItems": True, "items": PARAMETER.schema}
    return Checked(parse, allowed, schema)


def _alike(value: Any) -> Any:
    """Returns a key that is the same for equal values; 1 and true are different."""
    if isinstance(value, dict):
        return frozenset((name, _alike(inner)) for name, inner in value.items())
    return tuple(map(_alike, value)) if isinstance(value, tuple) else (isinstance(value, bool), value)
