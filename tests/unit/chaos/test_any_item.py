"""Whatever stands in an item or in a tag, its unit gets a decision that can be written: one unit's value must not cost
all others their tick.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.chaos.build import FRIDAY, facts, group, tagged
from troop.chaos.aws.decision_table import to_item
from troop.chaos.decisions import decide
from troop.chaos.policy import PARSERS
from troop.shared.aws.dynamo import jsonable, plain

NUMBERS = st.sampled_from(["0", "1", "2", "0.5", "-1", "1E-130", "9.9E125", "-9.9E125", "2026"])
BYTES = st.binary(min_size=1, max_size=4)
WORDS = st.text(max_size=4) | st.sampled_from(
    ["true", "crash", "default", "2026-01-01", "1e-200", "a;" * 140, "1" * 400]
)
SCALARS = st.one_of(
    st.builds(lambda value: {"S": value}, WORDS),
    st.builds(lambda value: {"N": value}, NUMBERS),
    st.builds(lambda value: {"B": value}, BYTES),
    st.builds(lambda value: {"BOOL": value}, st.booleans()),
    st.just({"NULL": True}),
    st.builds(lambda values: {"SS": sorted(values)}, st.sets(WORDS, min_size=1, max_size=3)),
    st.builds(lambda values: {"NS": sorted(values)}, st.sets(NUMBERS, min_size=1, max_size=3)),
    st.builds(lambda values: {"BS": sorted(values)}, st.sets(BYTES, min_size=1, max_size=3)),
)
STORED: Any = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.builds(lambda values: {"L": values}, st.lists(inner, max_size=3)),
        st.builds(lambda values: {"M": values}, st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    ),
    max_leaves=4,
)
KEYS = st.sampled_from([*PARSERS, "probabilty", "version"])


@pytest.mark.slow
@given(st.dictionaries(KEYS, STORED, max_size=4))
def test_any_item(stored: dict[str, Any]) -> None:
    item = plain(stored)
    assert to_item(decide(facts(item=item)), FRIDAY, timedelta(days=90))["unit"] == {"S": "web"}
    jsonable(item)  # as the API tells it


@given(st.dictionaries(KEYS, WORDS, max_size=4))
def test_any_tag(tags: dict[str, str]) -> None:
    seen = facts(groups=(tagged(**tags),))
    assert to_item(decide(seen), FRIDAY, timedelta(days=90))["unit"] == {"S": "web"}


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("probability", "1e-200", "0, or a number of at least 1e-100"),
        ("probability", b"1", "a number from 0 to 1"),
        ("opt_out", b"true", "true or false"),
        ("stop_alarms", "web-5xx-00; " * 30, "names separated by commas, of at most 255 characters each"),
    ],
)
def test_value_too_long_for_a_request_or_the_table_is_malformed(key: str, value: Any, allowed: str) -> None:
    decision = decide(facts(groups=(group(),), item={key: value}))
    assert decision.reason == "malformed"
    assert decision.detail.endswith(f"must be {allowed}")
