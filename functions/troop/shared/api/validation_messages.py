"""Translates pydantic's findings about a request into the API's own words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_SHOULD = re.compile(r"^(?:Input|String|List|Dictionary|Data) should ")
_HOW = re.compile(r", (?:unable to|got) .*$")
_WORDS = {
    "a valid integer": "a whole number",
    "a valid boolean": "true or false",
    "a valid number": "a number",
    "a valid string": "text",
    "a valid list": "a list",
    "a valid dictionary": "an object",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "False": "false",
    "True": "true",
}
"""Phrases of pydantic, and what they mean to a writer of JSON."""

_LONGEST = 80


def problem_of(error: Mapping[str, Any]) -> str:
    """Returns the sentence about one of a model's errors (``type``, ``msg`` and ``input``), to follow the name of the
    parameter: the value found, and what is allowed.

    >>> problem_of({"type": "int_parsing", "msg": "Input should be a valid integer, unable to parse", "input": "x"})
    "is 'x', must be a whole number"
    """
    message = str(error["msg"]).removeprefix("Value error, ")
    if error.get("type") == "missing":
        return "is missing"
    if not _SHOULD.match(message):
        return message
    expected = _HOW.sub("", _SHOULD.sub("", message))
    for theirs, ours in _WORDS.items():
        expected = re.sub(rf"\b{theirs}\b", ours, expected)
    return f"{_shown_input(error.get('input'))}must {expected}"


def _shown_input(value: Any) -> str:
    if isinstance(value, str):
        return f"is {value!r}, " if len(value) <= _LONGEST else f"has {len(value)} characters, "
    shown = json.dumps(value, default=str)
    return f"is {shown}, " if not isinstance(value, Mapping) and len(shown) <= _LONGEST else ""
