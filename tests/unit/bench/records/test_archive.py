"""Stored documents: the depth of each is bounded, whatever its strings hold."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.bench.records import archive
from troop.bench.records.archive import DamagedError

awkward = st.text(st.sampled_from('[]{}",\\ a'), max_size=5)
values = st.recursive(
    awkward | st.integers(0, 9), lambda inner: st.lists(inner, max_size=4) | st.dictionaries(awkward, inner, max_size=3)
)


class OneFile:
    def __init__(self, document: Any) -> None:
        self.body = json.dumps(document).encode()

    def read(self, name: str) -> bytes:
        return self.body

    def names(self, below: str) -> list[str]:
        return []


def depth(value: Any) -> int:
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(map(depth, value.values() if isinstance(value, dict) else value), default=0)


@given(values, st.integers(62, 66), st.booleans(), st.booleans())
def test_only_documents_of_more_than_64_levels_are_refused(
    value: Any, levels: int, in_lists: bool, with_brackets: bool
) -> None:
    for _ in range(levels - 1 - depth(value)):
        value = [value] if in_lists else {"value": value}
    whole = {"value": value, "more": ["]]" if with_brackets else "", "\\"[:with_brackets]]}
    if depth(whole) > 64:
        with pytest.raises(DamagedError, match="nested deeper than 64 levels"):
            archive.document(OneFile(whole), "a.json")
    else:
        assert archive.document(OneFile(whole), "a.json") == whole


def test_brackets_in_strings_do_not_hide_levels() -> None:
    value: Any = []
    for _ in range(70):
        value = ["]", value, "["]
    with pytest.raises(DamagedError, match="nested deeper than 64 levels"):
        archive.document(OneFile({"value": value}), "a.json")
