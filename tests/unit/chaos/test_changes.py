"""What people may write: parsed as the decision parses it, stored as they would by hand."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.chaos.changes import to_store, version_of
from troop.chaos.policy import LONGEST_ALARM, MOST_ALARMS, PARSERS
from troop.shared.values import BadValue


@pytest.mark.parametrize(
    ("key", "value", "stored"),
    [
        ("opt_out", True, True),
        ("opt_out", "yes", True),
        ("opt_in", "false", False),
        ("probability", "0.25", 0.25),
        ("probability", 1, 1.0),
        ("min_healthy", 3.0, 3),
        ("min_days_between", "5", 5),
        ("until", " 2026-12-04 ", "2026-12-04"),
        ("reason", " month end ", "month end"),
        ("owner", "accounting", "accounting"),
        ("stop_alarms", "web-5xx, web-slow", ["web-5xx", "web-slow"]),
        ("stop_alarms", ["a,b", "c"], ["a,b", "c"]),
        ("stop_alarms", [], []),
        ("success_alarms", "web-5xx", ["web-5xx"]),
        ("recovery_within", "300", 300),
        ("calendar", "default", "default"),
        ("method", "drain", "drain"),
    ],
)
def test_value_is_stored_in_the_type_of_its_key(key: str, value: Any, stored: Any) -> None:
    actual = to_store(key, value)
    assert (type(actual), actual) == (type(stored), stored)


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("opt_out", "maybe", "true or false"),
        ("probability", 2, "a number from 0 to 1"),
        ("probability", math.nan, "a number from 0 to 1"),
        ("probability", 5e-324, "0, or a number of at least 1e-100"),
        ("min_healthy", 0, "a whole number from 1 to 10000"),
        ("until", "tomorrow", "a date as YYYY-MM-DD"),
        ("reason", "", "text of 1 to 256 characters"),
        ("stop_alarms", ["a"] + [f"b{n}" for n in range(MOST_ALARMS)], "at most 50 names"),
        ("stop_alarms", ["x" * (LONGEST_ALARM + 1)], "of at most 255 characters each"),
        ("stop_alarms", [1], "names separated by commas"),
        ("success_alarms", [f"b{n}" for n in range(MOST_ALARMS + 1)], "at most 50 names"),
        ("recovery_within", 0, "a whole number from 1 to 86400"),
        ("recovery_within", "5m", "a whole number from 1 to 86400"),
        ("method", "gently", "one of crash, shutdown, drain"),
    ],
)
def test_bad_value_is_refused_with_the_allowed_form(key: str, value: Any, allowed: str) -> None:
    with pytest.raises(BadValue) as refused:
        to_store(key, value)
    assert allowed in str(refused.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)


@given(key=st.sampled_from(sorted(PARSERS)), value=JSON | st.sampled_from(["1", "0.5", "true", "2026-01-01", "crash"]))
def test_stored_value_reads_back_with_the_same_meaning(key: str, value: Any) -> None:
    try:
        stored = to_store(key, value)
    except BadValue:
        return
    assert PARSERS[key](stored) == PARSERS[key](value)
    assert to_store(key, stored) == stored


@pytest.mark.parametrize(
    ("item", "version"),
    [
        ({}, 0),
        ({"version": Decimal(7)}, 7),
        ({"version": 7}, 7),
        ({"version": "7"}, 0),
        ({"version": True}, 0),
        ({"version": Decimal("1.5")}, 0),
        ({"version": Decimal(-1)}, 0),
        ({"version": Decimal("1E+125")}, 0),
        ({"version": None}, 0),
        ({"version": [1]}, 0),
    ],
)
def test_versions_that_are_none_count_as_none(item: dict[str, Any], version: int) -> None:
    assert version_of(item) == version
