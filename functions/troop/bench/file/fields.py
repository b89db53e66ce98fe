"""Reads the declarations of keys for pydantic's models, and defines kinds of values that only the file has."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from decimal import Decimal
from typing import Annotated, Any, ClassVar, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from troop.bench.definition.definition import identity
from troop.bench.definition.keys import Checked, bounded, text
from troop.bench.definition.money import number


class Description(str):
    """The description of a key in the schema, which editors show: its meaning, what it accepts, and what else authors
    of files must know.
    """

    meaning: str
    accepted: str
    more: str

    def __new__(cls, meaning: str, accepted: str, more: str = "") -> Description:
        described = super().__new__(cls, f"{meaning}: {accepted}. {more}" if more else f"{meaning}: {accepted}")
        described.meaning, described.accepted, described.more = meaning, accepted, more
        return described

    def __getnewargs__(self) -> tuple[str, str, str]:  # type: ignore[override]
        return self.meaning, self.accepted, self.more  # pydantic copies descriptions

    @property
    def short(self) -> str:
        """The meaning and what it accepts, for messages."""
        return f"{self.meaning}: {self.accepted}"


def described(accepted: Checked | str, text: str, more: str = "", **options: Any) -> Any:
    """Returns a field with a :class:`Description`.

    Args:
        accepted: the values, or a phrase for what pydantic checks by the field's type and ``options``.
        text: the meaning of the key.
        more: what else authors of files must know, as sentences.
    """
    allowed = accepted if isinstance(accepted, str) else accepted.allowed
    return Field(description=Description(text, allowed, more), **options)


class Part(BaseModel):
    """Refuses unknown keys: the base of each part of the file.

    Attributes:
        elsewhere: by keys that only a file of another kind has, what they must be here.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    elsewhere: ClassVar[Mapping[str, str]] = {}


def model_of(kind: type[Any]) -> Any:
    """Returns a model with the plain keys of a dataclass, see :func:`troop.bench.definition.keys.key`."""
    hints = get_type_hints(kind)
    keys: dict[str, Any] = {}
    for one in fields(kind):
        if "key" in one.metadata:
            meaning, checked, more = one.metadata["key"]
            options: dict[str, Any] = {} if one.default is MISSING else {"default": one.default}
            if isinstance(one.default, Decimal):  # pydantic's schema would have it as text
                options["json_schema_extra"] = {"default": number(one.default)}
            options |= {"alias": name} if (name := one.metadata["stored"]["key"]) else {}
            keys[one.name] = Annotated[hints[one.name], checked], described(checked, meaning, more, **options)
    return create_model(kind.__name__, __base__=Part, **keys)


def plain_values(kind: type[Any], model: BaseModel) -> dict[str, Any]:
    """Returns the values of the plain keys of a dataclass."""
    return {one.name: getattr(model, one.name) for one in fields(kind) if "key" in one.metadata}


def scalar(value: Any) -> Any:
    """Accepts text, finite numbers and booleans.

    Raises:
        ValueError: the value is something else, or too large.
    """
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError
    elif isinstance(value, int):  # including true and false
        bounded(-_LARGEST, _LARGEST, value)
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


LONGEST_VALUE = 200
"""Maximum characters of a value that labels of cells and points contain."""


def _labelled(value: Any) -> Any:
    parsed = _parameter(value)
    if len(json.dumps(parsed, allow_nan=False)) > LONGEST_VALUE:
        raise ValueError
    return parsed


_KINDS = "text, a number, true or false, a list of these, or a mapping to these"
VALUE = Checked(_labelled, f"{_KINDS}, of at most {LONGEST_VALUE} characters", PARAMETER.schema)
"""A value of a parameter or of another key, by which labels tell cells and points apart."""


def values(most: int) -> Checked:
    """Accepts lists of values for one key of the matrix."""

    def parse(raw: Any) -> list[Any]:
        if not isinstance(raw, list) or not 0 < len(raw) <= most:
            raise ValueError
        parsed = list(map(_labelled, raw))
        if len(set(map(identity, parsed))) < len(parsed):
            raise ValueError
        return parsed

    allowed = f"a list of 1 to {most} different values: {VALUE.allowed}"
    schema = {"type": "array", "minItems": 1, "maxItems": most, "uniqueItems": True, "items": PARAMETER.schema}
    return Checked(parse, allowed, schema)
