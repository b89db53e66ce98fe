"""Declares keys of the file: a plain key is a field of a dataclass, with its text and the values that it accepts.

Each kind of values states what it allows, in words and as JSON Schema. The models of the file read the declarations
(:mod:`troop.bench.file.fields`), so a plain key is declared once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from troop.shared.codec import stored


class NotAllowedError(ValueError):
    """A value that a :class:`Checked` refuses; the message says what it accepts."""


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

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        # As pydantic_core.core_schema.no_info_plain_validator_function makes it: functions of workflows lack pydantic.
        return {"type": "function-plain", "function": {"type": "no-info", "function": self._checked}}

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
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
            raise NotAllowedError(self.allowed) from None


def _whole(value: Any) -> int:
    """Parses a number without a fraction; refuses text and booleans."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError
    return value


def bounded(low: int, high: int, value: int) -> int:
    """Returns a number from ``low`` to ``high``; raises ValueError for another one."""
    if not low <= value <= high:
        raise ValueError
    return value


def whole(low: int, high: int) -> Checked:
    """Accepts whole numbers from ``low`` to ``high``, both included."""
    schema = {"type": "integer", "minimum": low, "maximum": high}
    return Checked(lambda value: bounded(low, high, _whole(value)), f"a whole number from {low} to {high}", schema)


_UNITS = {"s": 1, "m": 60, "h": 3600}
_DURATION = re.compile(r"([0-9]{1,6}) ?([smh])")


def duration(low: str, high: str) -> Checked:
    """Accepts durations from ``low`` to ``high``, both included, in whole seconds."""

    def parse(value: Any) -> int:
        number = seconds(value) if isinstance(value, str) else _whole(value)
        return bounded(seconds(low), seconds(high), number)

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

    def parse(value: Any) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise ValueError
        return value

    return Checked(parse, allowed, {"type": "string", "pattern": f"^(?:{pattern})$"})


def named(longest: int) -> Checked:
    """Accepts names that become part of names on AWS."""
    allowed = f"a lower-case letter, then lower-case letters, digits and hyphens, at most {longest} in all"
    return matching(rf"[a-z][a-z0-9-]{{0,{longest - 1}}}", allowed)


ROLE = named(21)
FILE = matching(
    r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}",
    "a file name of at most 128 letters, digits, dots, hyphens and underscores, not starting with a dot or hyphen",
)
"""The name of a file in the benchmark's folder; no folders."""


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


def key(
    text: str,
    kind: Checked,
    more: str = "",
    name: str | None = None,
    *,
    omit: bool = False,
    encode: Callable[[Any], Any] | None = None,
) -> dict[str, Any]:
    """Returns the metadata of a field that is a plain key of the file: its value is stored as the file has it.

    Args:
        text: the meaning of the key, for people.
        more: what else authors of files must know, as sentences.
        name: the key, if the field cannot have its name.
        omit, encode: see :func:`troop.shared.codec.stored`.
    """
    return {**stored(name, omit=omit, encode=encode), "key": (text, kind, more)}
