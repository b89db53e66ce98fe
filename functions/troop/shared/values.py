"""Parses the values that people write into settings, tags and table items.

The same value can arrive as a JSON number, as a string (the only type of tags and ``cdk deploy -c``) or as a
``Decimal`` (DynamoDB). Every parser accepts all three and raises :class:`BadValue`, whose text follows "must be".
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

BUCKET_NAME = r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
"""The name of a bucket of S3, as a regular expression of a whole text."""

IMAGE_ID = r"ami-[0-9a-f]{8}(?:[0-9a-f]{9})?"
SNAPSHOT_ID = r"snap-[0-9a-f]{8}(?:[0-9a-f]{9})?"
PARAMETER_NAME = r"/[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)*"
ZONE_NAME = r"[a-z]{2,5}(-[a-z]+)+-[0-9]+[a-z]"
"""The id of a machine image, the id of a snapshot, the name of an SSM parameter with a path, and the name of an
availability zone, as BUCKET_NAME.
"""


class BadValue(ValueError):
    """A value that cannot be used; the message states what is allowed."""


def shown(value: Any, longest: int = 80) -> str:
    """Formats a value for a message, as ``repr`` does; at most about ``longest`` characters of it.

    Visits no more of the value than it writes: a value can be much larger than the file that describes it.
    """
    text = ""
    for piece in _pieces(value, longest):
        text += piece
        if len(text) > longest:
            return text[:longest] + "..."
    return text


_MOST_BITS = 12_000
"""The most bits of a whole number that is written in full: Python refuses to format one of more than 4,300 digits."""


def _pieces(value: Any, longest: int) -> Iterator[str]:
    """Yields the parts of ``repr(value)``, one by one."""
    if isinstance(value, str | bytes):
        yield repr(value[: longest + 1])
    elif isinstance(value, int) and value.bit_length() > _MOST_BITS:
        yield "a number of thousands of digits"
    elif isinstance(value, Mapping):
        yield "{"
        for place, (key, inner) in enumerate(value.items()):
            yield ", " if place else ""
            yield from _pieces(key, longest)
            yield ": "
            yield from _pieces(inner, longest)
        yield "}"
    elif isinstance(value, list | tuple):
        begin, end = "[]" if isinstance(value, list) else ("(", ",)" if len(value) == 1 else ")")
        yield begin
        for place, inner in enumerate(value):
            yield ", " if place else ""
            yield from _pieces(inner, longest)
        yield end
    else:
        yield repr(value)


MOST_VALUES = 20_000
"""The most values of a document that somebody sends or writes: a request's body, the file of a benchmark."""


def excess(document: Any, levels: int, most: int | None = None) -> str | None:
    """Returns what a document has too much of, to follow "it"; None if it has neither.

    Visits at most ``most`` values: it asks mappings and lists for their lengths before it looks into them.

    Args:
        levels: the most levels of nested mappings and lists.
        most: the most entries of all mappings and lists together; None for any number.
    """
    level, number = [document] if isinstance(document, Mapping | list) else [], 0
    for _ in range(levels):
        number += sum(map(len, level))
        if most is not None and number > most:
            return f"has more than {most:,} values"
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, Mapping) else outer)
            if isinstance(inner, Mapping | list)
        ]
        if not level:
            return None
    return f"is nested deeper than {levels} levels"


def json_in(text: str, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Reads JSON from outside: without NaN, infinite numbers, numbers of more than 308 digits, and halves of surrogate
    pairs. So the result can always be written as JSON in UTF-8 again.

    Args:
        pairs: makes an object of its keys and values; without it the last value of a key counts.

    Raises:
        ValueError: the text is not such JSON, or is nested too deeply; the message states why.
    """
    try:
        # The Python functions double the time, so they apply only to texts that may have such a number.
        own: dict[str, Any] = {"parse_int": _int, "parse_float": _finite} if _may_be_extreme(text) else {}
        document = json.loads(text, parse_constant=_no_number, object_pairs_hook=pairs, **own)
        if ("\\u" in text or not text.isascii()) and _HALF.search(text):
            json.dumps(document, ensure_ascii=False).encode()
        return document
    except UnicodeEncodeError:
        raise ValueError("it has half of a surrogate pair, which is not a character") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _no_number(constant: str) -> Any:
    """Refuses NaN and the infinities, which Python reads and writes, but other programs do not."""
    raise ValueError(f"{constant} is not a number")


def _int(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a number has more than {_MOST_DIGITS} digits")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is too large for a number")
    return number


def _may_be_extreme(text: str) -> bool:
    """Checks whether a text may have a number of 200 digits or with an exponent of three.

    So many digits fill at least one whole block; a regular expression would start anew at every digit.
    """
    blocks = (text[begin : begin + _BLOCK] for begin in range(0, len(text), _BLOCK))
    return _LARGE_EXPONENT.search(text) is not None or any(map(str.isdecimal, blocks))


_HALF = re.compile("[\ud800-\udfff]|\\\\u[dD][89a-fA-F]")
_BLOCK = 100
_LARGE_EXPONENT = re.compile(r"[eE]\+?[0-9]{3}")
_MOST_DIGITS = 308
"""The most digits of a whole number: one of more is larger than every float."""


def spelling(key: str, known: Iterable[str], prefix: str = "") -> str:
    """Returns what an unknown key must be: the nearest known one, or all of them if none is near."""
    near = get_close_matches(key.lower().replace("-", "_"), known, n=1)
    return f"spelled {prefix}{near[0]}" if near else "one of " + ", ".join(prefix + k for k in known)


def boolean(value: Any) -> bool:
    """Parses true or false, as JSON or as text ("true", "yes", "on", "1" and their opposites, in any case)."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in ("true", "yes", "on", "1"):
        return True
    if word in ("false", "no", "off", "0"):
        return False
    raise BadValue("true or false")


SMALLEST = 1e-100
"""The smallest number other than 0: smaller ones are rejected, because DynamoDB could not store them."""


def number(low: float, high: float) -> Callable[[Any], float]:
    """Makes a parser of numbers from ``low`` to ``high``, both included; it rejects NaN, the infinities, and numbers
    close to 0.
    """

    def parse(value: Any) -> float:
        result = _float(value)
        if result is None or not low <= result <= high:  # NaN is in no range
            raise BadValue(f"a number from {low:.12g} to {high:.12g}")
        if 0 < abs(result) < SMALLEST:
            raise BadValue(f"0, or a number of at least {SMALLEST:g}")
        return result

    return parse


def _float(value: Any) -> float | None:
    """Returns ``value`` as a float, None if it is not a number; true, false and Python's 1_000 are not."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal, str)):
        return None
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):  # a signalling NaN; a whole number beyond every float
        return None


_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def whole(low: int, high: int) -> Callable[[Any], int]:
    """Makes a parser of whole numbers from ``low`` to ``high``, both included; 2.0 is one."""

    def parse(value: Any) -> int:
        result = _float(value)
        if result is None or not low <= result <= high or result != int(result):
            raise BadValue(f"a whole number from {low} to {high}")
        return int(result)

    return parse


def one_of(*allowed: Any) -> Callable[[Any], Any]:
    """Makes a parser of one of a few values, compared as text."""
    by_text = {str(a): a for a in allowed}

    def parse(value: Any) -> Any:
        if isinstance(value, bool) or str(value) not in by_text:
            raise BadValue("one of " + ", ".join(by_text))
        return by_text[str(value)]

    return parse


def text(longest: int = 256) -> Callable[[Any], str]:
    """Makes a parser of text that is not blank and at most ``longest`` characters long."""

    def parse(value: Any) -> str:
        if not isinstance(value, str) or not value.strip() or len(value) > longest:
            raise BadValue(f"text of 1 to {longest} characters")
        return value.strip()

    return parse


def day(value: Any) -> date:
    """Parses a date as YYYY-MM-DD; no other ISO 8601 form."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    try:
        if not isinstance(value, str) or not _DAY.fullmatch(value.strip()):
            raise ValueError
        return date.fromisoformat(value.strip())
    except ValueError:
        raise BadValue("a date as YYYY-MM-DD") from None


_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def minute_of_day(value: Any) -> int:
    """Parses a time of day as HH:MM, in minutes since midnight; 24:00 is the end of the day."""
    if isinstance(value, str) and (match := _CLOCK.fullmatch(value.strip())):
        result = int(match[1]) * 60 + int(match[2])
        if result <= 24 * 60:
            return result
    raise BadValue("a time of day as HH:MM, from 00:00 to 24:00")


_CLOCK = re.compile(r"([0-9]{2}):([0-5][0-9])")


def names(value: Any) -> tuple[str, ...]:
    """Parses names, as a JSON list, a DynamoDB list or set, or text separated by commas; in order, each once."""
    if isinstance(value, str):
        value = value.split(",")
    elif not isinstance(value, (set, frozenset, list, tuple)):
        raise BadValue("names separated by commas")
    parts: Iterable[Any] = value
    if not all(isinstance(part, str) and part.strip() for part in parts):
        raise BadValue("names separated by commas, none of them empty")
    names = [part.strip() for part in parts]
    return tuple(dict.fromkeys(sorted(names) if isinstance(value, (set, frozenset)) else names))
