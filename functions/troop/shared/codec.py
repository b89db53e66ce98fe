"""Converts frozen dataclasses to JSON-like documents and back, by their type hints.

A document has one key for each field: nested dataclasses are objects, tuples and sets are lists, and moments, dates and
members of enums are text. ``Decimal`` stays as it is, which DynamoDB can store. Where a field differs, its metadata say
so, see :func:`stored`. Documents of other versions can be read: unknown keys are ignored, and a missing key has the
field's default.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from troop.shared import moments
from troop.shared.errors import TroopError
from troop.shared.values import shown

T = TypeVar("T")
Convert = Callable[[Any], Any]


class DocumentError(TroopError, ValueError):
    """A document that is not one of the dataclass.

    Attributes:
        place: the path to the value, such as ``("fleets", "drivers", "count")``.
    """

    def __init__(self, problem: str, place: tuple[str, ...] = ()) -> None:
        self.problem, self.place = problem, place
        super().__init__(f"{'.'.join(place) or 'the document'} {problem}")


def stored(
    key: str | None = None,
    *,
    omit: bool | Callable[[Any], bool] = False,
    by: str | None = None,
    flat: bool = False,
    required: bool = False,
    encode: Convert | None = None,
    decode: Convert | None = None,
) -> dict[str, Any]:
    """Returns metadata of a field.

    Args:
        key: the key in the document; by default the field's name.
        omit: whether to leave out the default; or a function of the whole dataclass.
        by: the attribute of the dataclasses in a tuple that is their key in an object, instead of a list.
        flat: whether the keys of the field's document are beside the other keys.
        required: whether a document without it is damaged, although the field has a default.
        encode, decode: own conversions of values other than None.
    """
    return {"stored": locals()}


def to_document(value: Any) -> dict[str, Any]:
    """Converts a dataclass; the reverse of :func:`from_document`."""
    document: dict[str, Any] = {}
    for part in _parts(type(value)):
        inner = getattr(value, part.name)
        if part.omit is not MISSING and (part.omit(value) if callable(part.omit) else inner == part.omit):
            continue
        if part.encode and inner is not None:
            inner = part.encode(inner)
        if part.flat:
            document.update(inner or {})
        else:
            document[part.key] = inner
    return document


def from_document(kind: type[T], document: Any) -> T:
    """Reads a document of :func:`to_document`.

    Raises:
        DocumentError: a key without a default is missing, or a value cannot be read.
    """
    if not isinstance(document, Mapping):
        raise DocumentError("is not an object")
    values = {}
    for part in _parts(kind):
        inner = document if part.flat else document.get(part.key)
        if inner is not None:
            try:
                values[part.name] = part.decode(inner)
            except _UNREADABLE as error:
                raise _at(() if part.flat else (part.key,), error) from None
        elif part.is_required:
            raise DocumentError("is missing", (part.key,))
        elif not part.has_default:
            values[part.name] = None
    return kind(**values)


def keys(kind: Any) -> tuple[str, ...]:
    """Returns the keys of a dataclass's documents in their order; of a flat field, its name with a star."""
    return tuple(f"*{part.name}" if part.flat else part.key for part in _parts(kind))


class _Part(NamedTuple):
    """How a field is stored. Without ``encode``, its value stays as it is."""

    name: str
    key: str
    encode: Convert | None
    decode: Convert
    omit: Any
    flat: bool
    has_default: bool
    is_required: bool


def _parts_of(kind: Any) -> tuple[_Part, ...]:
    hints = get_type_hints(kind)
    parts = []
    for one in fields(kind):
        own = {**stored(), **one.metadata}["stored"]
        hint, is_optional = _unless_none(hints[one.name])
        encode, decode = _by(own["by"], get_args(hint)[0]) if own["by"] else _conversions(hint)
        default = one.default_factory() if one.default_factory is not MISSING else one.default
        parts.append(
            _Part(
                one.name,
                own["key"] or one.name,
                own["encode"] or encode,
                own["decode"] or decode,
                default if own["omit"] is True else own["omit"] or MISSING,
                own["flat"],
                default is not MISSING,
                own["required"] or (default is MISSING and not is_optional),
            )
        )
    return tuple(parts)


_parts: Callable[[Any], tuple[_Part, ...]] = cache(_parts_of)


def _unless_none(hint: Any) -> tuple[Any, bool]:
    """Returns a hint without None, and whether it had it."""
    if get_origin(hint) not in (Union, UnionType) or NoneType not in get_args(hint):
        return hint, False
    others = tuple(one for one in get_args(hint) if one is not NoneType)
    return Union[others], True  # noqa: UP007 - of a tuple


def _conversions(hint: Any) -> tuple[Convert | None, Convert]:
    """Returns how to encode and decode the values of a hint."""
    hint, _ = _unless_none(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (tuple, list, frozenset):
        encode, decode = _conversions(arguments[0])
        whole: Convert = sorted if origin is frozenset else list
        return whole if encode is None else partial(_list, encode), partial(_items, origin, decode)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        encode, decode = _conversions(arguments[1])
        return dict if encode is None else partial(_object, encode), partial(_keys, decode)
    if isinstance(hint, type) and is_dataclass(hint):
        return to_document, partial(from_document, hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return lambda member: member.value, hint
    return _CONVERSIONS.get(hint, (partial(plain, list), partial(plain, tuple)))


def _by(name: str, kind: Any) -> tuple[Convert, Convert]:
    """Returns how to encode dataclasses as an object by one of their attributes, and how to decode them."""

    def encode(values: Iterable[Any]) -> dict[str, Any]:
        documents = map(to_document, values)
        return {document.pop(name): document for document in documents}

    def decode(documents: Mapping[str, Any]) -> tuple[Any, ...]:
        named = {key: {**document, name: key} for key, document in documents.items()}
        return tuple(_keys(partial(from_document, kind), named).values())

    return encode, decode


def _list(encode: Convert, values: Iterable[Any]) -> list[Any]:
    return [encode(value) for value in values]


def _object(encode: Convert, values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: encode(value) for key, value in values.items()}


def _items(kind: Convert, decode: Convert, values: Any) -> Any:
    if not isinstance(values, (list, tuple, set, frozenset)):
        raise DocumentError("is not a list")
    return kind(_keys(decode, dict(enumerate(values))).values())


def _keys(decode: Convert, values: Any) -> dict[Any, Any]:
    if not isinstance(values, Mapping):
        raise DocumentError("is not an object")
    decoded = {}
    for key, value in values.items():
        try:
            decoded[key] = decode(value)
        except _UNREADABLE as error:
            raise _at((str(key),), error) from None
    return decoded


_UNREADABLE = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError)


def _at(place: tuple[str, ...], error: Exception) -> DocumentError:
    """Returns the error of a value as that of the document around it."""
    if isinstance(error, DocumentError):
        return DocumentError(error.problem, (*place, *error.place))
    return DocumentError(f"cannot be read: {error}", place)


def plain(sequence: Convert, value: Any) -> Any:
    """Converts a value of DynamoDB or JSON, of unknown type, to JSON's types: lists and tuples to ``sequence``, sets to
    a sorted one, decimals to numbers, bytes to Base64.
    """
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() and abs(value) < _IN_FULL else float(value)
    if isinstance(value, Mapping):
        return {key: plain(sequence, inner) for key, inner in value.items()}
    if isinstance(value, (set, frozenset)):
        return sequence(sorted(plain(sequence, inner) for inner in value))  # all of one type, as in DynamoDB's sets
    if isinstance(value, (list, tuple)):
        return sequence(plain(sequence, inner) for inner in value)
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


_IN_FULL = 10**15
"""The limit of whole numbers that stay whole: larger ones are floats, as in JSON."""


def _exactly(allowed: str, *kinds: type) -> Convert:
    """Returns the decoder of values that are already of one of these types, which ``allowed`` names."""

    def decode(value: Any) -> Any:
        if type(value) not in kinds:
            raise DocumentError(f"is {shown(value)}, not {allowed}")
        return value

    return decode


def _whole(value: Any) -> Any:
    number = int(value) if isinstance(value, (Decimal, float)) else value
    if type(number) is not int or number != value:
        raise DocumentError(f"is {shown(value)}, not a whole number")
    return number


def _number(value: Any) -> Any:
    return _real(float(value) if isinstance(value, Decimal) else value)


_real = _exactly("a number", float, int)


_CONVERSIONS: dict[Any, tuple[Convert | None, Convert]] = {
    str: (None, _exactly("text", str)),
    bool: (None, _exactly("true or false", bool)),
    int: (None, _whole),
    float: (None, _number),
    Decimal: (None, lambda value: Decimal(str(value))),
    datetime: (moments.iso, moments.parse),
    date: (date.isoformat, date.fromisoformat),
    Any: (None, partial(plain, list)),
}
