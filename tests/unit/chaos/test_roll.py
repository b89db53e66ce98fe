"""The roll: a keyed hash that whoever holds the salt can recompute, here from its description alone."""

from __future__ import annotations

import hashlib
from collections import Counter
from datetime import date, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.chaos.build import FRIDAY, SALT, at, calendar, instance
from troop.chaos.roll import by_rank, choose, due_at, fraction, last_due, roll
from troop.faults import names
from troop.shared.choice import Choice


def hmac_sha256(key: bytes, message: bytes) -> bytes:
    """RFC 2104, written out."""
    block = (hashlib.sha256(key).digest() if len(key) > 64 else key).ljust(64, b"\0")
    inner = hashlib.sha256(bytes(b ^ 0x36 for b in block) + message).digest()
    return hashlib.sha256(bytes(b ^ 0x5C for b in block) + inner).digest()


def recomputed(salt: bytes, label: str, day: date, name: str) -> Fraction:
    bits = "".join(f"{byte:08b}" for byte in hmac_sha256(salt, f"{label}|{day:%Y-%m-%d}|{name}".encode()))
    return Fraction(int(bits[:53], 2), 2**53)


DAYS = st.dates(date(2020, 1, 1), date(2040, 1, 1))
NAMES = st.text(min_size=1, max_size=40)
SALTS = st.binary(min_size=1, max_size=100)


@given(SALTS, DAYS, NAMES)
def test_the_roll_is_hmac_sha256_of_day_and_unit_under_the_salt(salt: bytes, day: date, unit: str) -> None:
    assert Fraction(roll(salt, day, unit)) == recomputed(salt, "roll", day, unit)


@given(SALTS, DAYS, NAMES)
def test_the_due_minute_comes_from_the_same_digest_under_another_label(salt: bytes, day: date, unit: str) -> None:
    into = int(recomputed(salt, "minute", day, unit) * (6 * 60 - 15))
    assert due_at(salt, day, unit, calendar()) == at("09:00", day) + timedelta(minutes=into)


@given(DAYS, NAMES, st.integers(0, 1424), st.integers(16, 1440))
def test_roll_is_due_inside_the_window_before_its_last_quarter_of_an_hour(
    day: date, unit: str, opens: int, length: int
) -> None:
    closes = min(1440, opens + length)
    if closes - opens <= 15:
        return
    one = calendar(open=f"{opens // 60:02}:{opens % 60:02}", close=f"{closes // 60:02}:{closes % 60:02}")
    window = one.window(day)
    due = due_at(SALT, day, unit, one)
    assert window[0] <= due
    if window[1] - window[0] >= timedelta(minutes=16):  # not so where the clocks skip most of it
        assert due <= window[1] - timedelta(minutes=16)


def test_latest_due_minute_is_reached_by_some_roll() -> None:
    one, latest = calendar(open="09:00", close="09:18"), at("09:02")
    assert last_due(FRIDAY, one) == latest
    assert max(due_at(SALT, FRIDAY, f"unit-{n}", one) for n in range(50)) == latest


@given(DAYS, st.lists(st.integers(0, 10**6), min_size=1, max_size=9, unique=True))
def test_instances_stand_in_the_order_of_their_digests(day: date, numbers: list[int]) -> None:
    members = [instance(n) for n in numbers]
    expected = sorted(members, key=lambda i: recomputed(SALT, "instance", day, i.instance_id))
    assert by_rank(SALT, day, members) == expected
    assert by_rank(SALT, day, reversed(members)) == expected


@given(DAYS, st.lists(st.integers(0, 10**6), min_size=2, max_size=9, unique=True))
def test_an_instance_that_leaves_does_not_reorder_the_rest(day: date, numbers: list[int]) -> None:
    members = [instance(n) for n in numbers]
    ranked = by_rank(SALT, day, members)
    for gone in members:
        assert by_rank(SALT, day, [i for i in members if i != gone]) == [i for i in ranked if i != gone]


FAULTS = st.lists(st.sampled_from([Choice(name) for name in names()]), min_size=1, unique=True)


@given(SALTS, DAYS, NAMES, FAULTS)
def test_the_fault_of_the_day_comes_from_a_label_of_its_own(
    salt: bytes, day: date, unit: str, choices: list[Choice]
) -> None:
    place = int(recomputed(salt, "method", day, unit) * len(choices))
    assert choose(salt, day, unit, choices) == choices[place]


@pytest.mark.parametrize("count", [2, 3, 11])
def test_all_faults_of_a_set_have_the_same_chance(count: int) -> None:
    choices = [Choice(name) for name in names()[:count]]
    days = 400 * count
    drawn = Counter(choose(SALT, FRIDAY + timedelta(days=n), "web", choices) for n in range(days))
    assert set(drawn) == set(choices)
    # The salt is fixed. Five deviations of a binomial distribution of 400: 100.
    assert all(abs(times - 400) < 100 for times in drawn.values())


@given(DAYS, NAMES, st.integers(0, 1020))
def test_a_lasting_fault_is_due_so_early_that_it_ends_in_the_window(day: date, unit: str, takes: int) -> None:
    one, lasts = calendar(open="09:00", close="09:35"), timedelta(seconds=takes)
    due = due_at(SALT, day, unit, one, lasts)
    assert at("09:00", day) <= due <= last_due(day, one, lasts)
    assert last_due(day, one, lasts) + lasts <= at("09:35", day) - timedelta(minutes=15)


def test_another_salt_day_unit_or_label_is_another_number() -> None:
    numbers = {
        fraction(SALT, "roll", FRIDAY, "web"),
        fraction(SALT + b"!", "roll", FRIDAY, "web"),
        fraction(SALT, "minute", FRIDAY, "web"),
        fraction(SALT, "roll", FRIDAY + timedelta(days=1), "web"),
        fraction(SALT, "roll", FRIDAY, "web2"),
    }
    assert len(numbers) == 5
