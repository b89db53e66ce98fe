"""What people write into settings, tags and items: numbers, words and dates in three dialects."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from boto3.dynamodb.types import Binary
from hypothesis import given
from hypothesis import strategies as st

from troop.shared import values
from troop.shared.values import BadValue

FRACTION = values.number(0, 1)
COUNT = values.whole(1, 10)


@pytest.mark.parametrize("value", [0.25, "0.25", " 0.25 ", Decimal("0.25"), "2.5e-1", ".25"])
def test_a_number_means_the_same_as_json_text_and_dynamodb_decimal(value: Any) -> None:
    assert FRACTION(value) == 0.25


@pytest.mark.parametrize("value", [0, 1, "0", "1", Decimal(0), Decimal(1)])
def test_both_ends_of_a_range_belong_to_it(value: Any) -> None:
    assert FRACTION(value) in (0, 1)


@pytest.mark.parametrize(
    "value",
    [
        *(True, False, None, [], {}, b"1", "", " ", "half", "20%", "0,5", "1_0", "0x1", "\N{ARABIC-INDIC DIGIT ZERO}"),
        *(-0.01, 1.01, "-1", "1e400", 10**400, Decimal("1e400")),
        *("nan", "NaN", "inf", "-Infinity", float("nan"), float("inf"), Decimal("NaN"), Decimal("sNaN")),
        Decimal("Infinity"),
    ],
)
def test_fraction_outside_its_range_is_refused(value: Any) -> None:
    with pytest.raises(BadValue, match=r"^a number from 0 to 1$"):
        FRACTION(value)


@pytest.mark.parametrize("value", [2, "2", 2.0, "2.0", Decimal(2), Decimal("2.0")])
def test_a_whole_number_may_be_written_as_a_decimal_one(value: Any) -> None:
    assert COUNT(value) == 2
    assert type(COUNT(value)) is int


@pytest.mark.parametrize(
    "value", [True, None, 2.5, "2.5", 0, 11, "x", float("nan"), float("inf"), 10**400, Decimal("NaN")]
)
def test_whole_number_outside_its_range_is_refused(value: Any) -> None:
    with pytest.raises(BadValue, match=r"^a whole number from 1 to 10$"):
        COUNT(value)


@pytest.mark.parametrize("value", [True, "true", "True", " YES ", "on", "1", 1, Decimal(1)])
def test_true(value: Any) -> None:
    assert values.boolean(value) is True


@pytest.mark.parametrize("value", [False, "false", "FALSE", "no", "off", "0", 0, Decimal(0)])
def test_false(value: Any) -> None:
    assert values.boolean(value) is False


@pytest.mark.parametrize("value", [None, "", "maybe", 2, "truee", [], Decimal("0.5")])
def test_non_boolean_is_refused(value: Any) -> None:
    with pytest.raises(BadValue, match="true or false"):
        values.boolean(value)


@pytest.mark.parametrize("value", ["2026-02-28", " 2026-02-28 ", date(2026, 2, 28)])
def test_a_date(value: Any) -> None:
    assert values.day(value) == date(2026, 2, 28)


@pytest.mark.parametrize(
    "value",
    [None, "", "2026-02-29", "2026-W09-6", "20260228", "2026-2-28", "28.02.2026", 20260228, datetime(2026, 2, 28)],  # noqa: DTZ001
)
def test_date_in_another_form_is_refused(value: Any) -> None:
    with pytest.raises(BadValue, match="a date as YYYY-MM-DD"):
        values.day(value)


@pytest.mark.parametrize(("value", "minutes"), [("00:00", 0), ("09:05", 545), ("23:59", 1439), ("24:00", 1440)])
def test_a_time_of_day_is_minutes_since_midnight(value: str, minutes: int) -> None:
    assert values.minute_of_day(value) == minutes


@pytest.mark.parametrize(
    "value", [None, 540, "", "9:00", "09.00", "0900", "09:60", "24:01", "25:00", "²²:00", "09:00:00"]
)
def test_malformed_time_of_day_is_refused(value: Any) -> None:
    with pytest.raises(BadValue, match="a time of day as HH:MM"):
        values.minute_of_day(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("cpu-high", ("cpu-high",)),
        ("b, a,b ", ("b", "a")),
        (["b", "a, with comma"], ("b", "a, with comma")),
        ({"b", "a"}, ("a", "b")),
        ([], ()),
    ],
)
def test_names_come_as_text_list_or_set(value: Any, expected: tuple[str, ...]) -> None:
    assert values.names(value) == expected


@pytest.mark.parametrize(
    "value",
    [None, 5, "", "a,,b", ["a", ""], ["a", 5], {Decimal(1), Decimal(2)}, {Binary(b"a"), Binary(b"b")}, {"a": 1}],
)
def test_malformed_list_of_names_is_refused(value: Any) -> None:
    with pytest.raises(BadValue, match="names separated by commas"):
        values.names(value)


@pytest.mark.parametrize("value", [None, "", "  ", 5, True, "x" * 257])
def test_text_is_neither_blank_nor_endless(value: Any) -> None:
    with pytest.raises(BadValue, match="text of 1 to 256 characters"):
        values.text()(value)


def test_text_loses_the_blanks_around_it() -> None:
    assert values.text()("  a migration ") == "a migration"


@pytest.mark.parametrize("value", [15, "15", Decimal(15)])
def test_choice_is_recognized_by_its_text(value: Any) -> None:
    assert values.one_of(5, 15)(value) == 15


@pytest.mark.parametrize("value", [True, None, 7, "x", 1.5])
def test_unknown_choice_is_refused_with_all_choices(value: Any) -> None:
    with pytest.raises(BadValue, match="one of 1, 15"):
        values.one_of(1, 15)(value)


def test_an_unknown_key_is_answered_with_the_nearest_one() -> None:
    known = ("probability", "min_healthy")
    assert values.spelling("probabilty", known, "troop:") == "spelled troop:probability"
    assert values.spelling("Min-Healthy", known) == "spelled min_healthy"
    assert values.spelling("xyz", known, "troop:") == "one of troop:probability, troop:min_healthy"


def test_shown_value_is_short_however_large_it_is() -> None:
    levels: Any = "x"
    for _ in range(100):
        levels = [levels] * 9
    shown = values.shown({"levels": levels})
    assert shown.startswith("{'levels': [[[[")
    assert len(shown) <= 83
    assert values.shown(10**5000) == "a number of thousands of digits"
    assert values.shown("x" * 10**6, 20) == "'" + "x" * 19 + "..."


@given(st.recursive(st.none() | st.booleans() | st.integers(), lambda inner: st.lists(inner) | st.tuples(inner)))
def test_a_short_value_is_shown_as_it_is(value: Any) -> None:
    whole = repr(value)
    assert values.shown(value) == (whole if len(whole) <= 80 else whole[:80] + "...")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "NaN",
        "-Infinity",
        "1e999",
        "9" * 309,
        "9" * 5000,
        "1" + "0" * 250 + "e99",
        '{"a":',
        "[" + " " * 50 + "9" * 309 + "]",
    ],
)
def test_json_that_no_other_program_would_read_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        values.json_in(text)
    assert len(str(refused.value)) < 200


def test_json_of_the_largest_numbers_is_read() -> None:
    assert values.json_in("[1e308, " + "9" * 308 + ", 1e-999]") == [1e308, int("9" * 308), 0.0]
