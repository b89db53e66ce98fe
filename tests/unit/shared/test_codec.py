"""Dataclasses as documents, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.shared import codec
from troop.shared.codec import DocumentError, stored


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Part:
    name: str
    size: int = 1
    note: str | None = field(default=None, metadata=stored(omit=True))
    hidden: bool = field(default=False, metadata=stored(omit=True))


@dataclass(frozen=True)
class Rest:
    left: bool = False


@dataclass(frozen=True)
class Whole:
    id: str
    colour: Colour
    at: datetime
    day: date | None
    amount: Decimal
    parts: tuple[Part, ...] = ()
    named: tuple[Part, ...] = field(default=(), metadata=stored(by="name"))
    seen: Mapping[str, datetime] = field(default_factory=dict)
    tags: frozenset[str] = frozenset()
    setting: int | str | tuple[int, ...] = 0
    rest: Rest = field(default=Rest(), metadata=stored(flat=True))
    since: int = field(default=0, metadata=stored(key="from", omit=lambda whole: not whole.parts))
    about: Any = None


_NAMES = st.text(max_size=5)
_MOMENTS = st.datetimes(timezones=st.just(UTC)).map(lambda moment: moment.replace(microsecond=0))
_PARTS = st.builds(Part, _NAMES, st.integers(), st.none() | _NAMES, st.booleans())
WHOLES = st.builds(
    Whole,
    _NAMES,
    st.sampled_from(Colour),
    _MOMENTS,
    st.none() | st.dates(),
    st.decimals(allow_nan=False, allow_infinity=False, places=6),
    parts=st.lists(_PARTS, min_size=1).map(tuple),
    named=st.lists(_PARTS, unique_by=lambda part: part.name).map(tuple),
    seen=st.dictionaries(_NAMES, _MOMENTS),
    tags=st.frozensets(_NAMES),
    setting=st.integers() | _NAMES | st.lists(st.integers()).map(tuple),
    rest=st.builds(Rest, st.booleans()),
    since=st.integers(),
    about=st.none() | st.dictionaries(_NAMES, st.lists(st.integers())),
)
WHOLE = Whole("a", Colour.RED, datetime(2026, 11, 20, 17, tzinfo=UTC), None, Decimal("1.5"))


@given(WHOLES)
def test_a_document_reads_back_as_the_same_dataclass(whole: Whole) -> None:
    document = codec.to_document(whole)
    assert codec.from_document(Whole, document) == whole
    assert codec.from_document(Whole, json.loads(json.dumps(document, default=str))) == whole


def test_metadata_decide_the_keys() -> None:
    document = codec.to_document(Whole(**{**vars(WHOLE), "named": (Part("x", 2),)}))
    assert document["named"] == {"x": {"size": 2}}
    assert document["left"] is False
    assert document["at"] == "2026-11-20T17:00:00.000Z"
    assert {"rest", "since", "from"}.isdisjoint(document)
    assert codec.to_document(Whole(**{**vars(WHOLE), "parts": (Part("x"),), "since": 7}))["from"] == 7


def test_earlier_and_later_versions_are_read() -> None:
    document = {"id": "a", "colour": "red", "at": "2026-11-20T17:00:00Z", "amount": 1.5, "later": 1, "size": None}
    assert codec.from_document(Whole, document) == WHOLE


def test_numbers_of_dynamodb_become_those_of_the_hints() -> None:
    document = codec.to_document(WHOLE) | {"parts": [{"name": "x", "size": Decimal(3)}], "about": [Decimal("0.5")]}
    whole = codec.from_document(Whole, document)
    assert type(whole.parts[0].size) is int
    assert whole.about == [0.5]


def test_sets_and_bytes_of_dynamodb_become_json() -> None:
    about = {"set": {Decimal(2), Decimal(1)}, "bytes": b"x"}
    assert codec.from_document(Whole, codec.to_document(WHOLE) | {"about": about}).about == {
        "set": [1, 2],
        "bytes": "eA==",
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": None}, "id is missing"),
        ({"id": 5}, "id is 5, not text"),
        ({"parts": [{"name": "x"}, {"size": 1}]}, "parts.1.name is missing"),
        ({"parts": "x"}, "parts is not a list"),
        ({"named": {"x": {"size": 1.5}}}, "named.x.size is 1.5, not a whole number"),
        ({"named": {"x": 5}}, "named"),
        ({"named": []}, "named"),
        ({"seen": {"x": "yesterday"}}, "seen.x cannot be read"),
        ({"colour": "green"}, "colour cannot be read: 'green' is not"),
        ({"amount": "much"}, "amount cannot be read"),
        ({"left": "no"}, "left is 'no', not true or false"),
    ],
)
def test_error_names_the_place(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DocumentError) as refused:
        codec.from_document(Whole, codec.to_document(WHOLE) | change)
    assert str(refused.value).startswith(message)


def test_a_document_that_is_no_object_is_refused() -> None:
    with pytest.raises(DocumentError, match="the document is not an object"):
        codec.from_document(Part, ["x"])
