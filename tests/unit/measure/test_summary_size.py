"""Summaries of very much: within the bytes that are read of one."""

from __future__ import annotations

import json

import pytest

from tests.unit.measure.build import START, histogram_of, sampled, summary, windows
from troop.measure.operations import LONGEST_SECONDS, MOST_FAILURES, MOST_NAMES, Operation, PerSecond
from troop.measure.summary import MOST_BYTES, Summary, parse
from troop.measure.summary_size import encoded, fit_summary, weight

SECONDS = 500


def busy(**counts: int) -> Summary:
    """Operations that so many times succeeded, each over many seconds."""
    operations = {
        name: Operation(
            histogram_of([7] * count),
            {"timeout": 2},
            PerSecond(START, [1] * SECONDS, [0] * SECONDS),
            over_time=windows([(second, 7) for second in range(20)]),
        )
        for name, count in counts.items()
    }
    return summary(operations=operations, samples=sampled(cpu_user=[1]))


def size(one: Summary) -> int:
    return weight(one.document())


def test_small_summary_is_unchanged() -> None:
    whole = busy(get=5, put=3)
    assert fit_summary(whole, target=size(whole)) == (whole, [])


def test_rarest_operations_lose_their_counts_by_second_and_retain_their_totals() -> None:
    whole = busy(common=9, rare=1, seldom=3)
    one, sentences = fit_summary(whole, target=size(whole) - 1)
    assert [sentence.split(":")[0] for sentence in sentences] == ["rare"]
    two, _ = fit_summary(whole, target=size(one) - 1)
    assert size(two) < size(one) < size(whole)
    copy = parse(json.loads(encoded(two.document())))
    assert {name for name, left in copy.operations.items() if left.per_second.count} == {"common"}
    assert {name: left.times.count for name, left in copy.operations.items()} == {"common": 9, "rare": 1, "seldom": 3}
    assert all(left.over_time for left in copy.operations.values())
    assert (two.outcome, two.reason) == ("ok", None)


def test_rarest_operations_lose_their_kinds_of_errors_by_second_first() -> None:
    whole = busy(common=9, rare=1)
    for one in whole.operations.values():
        one.per_second.kinds = {"timeout": [0] * SECONDS}
    less, sentences = fit_summary(whole, target=size(whole) - 1)
    assert [sentence.split(" are ")[0] for sentence in sentences] == ["rare: kinds of errors by second"]
    assert (less.operations["rare"].per_second.kinds, whole.operations["rare"].per_second.kinds is None) == (
        None,
        False,
    )
    assert less.operations["common"].per_second.kinds
    assert len(less.operations["rare"].per_second.count) == SECONDS


def test_the_longest_phase_with_faults_can_have_all_kinds_of_errors() -> None:
    """The limits hold: what is too much is left out, and the rest is complete."""
    seconds, kinds = 25 * 60, [f"kind-{n}" for n in range(MOST_FAILURES)]
    operations = {}
    for n in range(MOST_NAMES):
        counts = {kind: [k] * seconds for k, kind in enumerate(kinds)}
        per_second = PerSecond(START, [1] * seconds, list(map(sum, zip(*counts.values(), strict=True))), counts)
        operations[f"o{n}"] = Operation(errors=dict.fromkeys(kinds, n), per_second=per_second)
    less, _ = fit_summary(summary(operations=operations))
    text = encoded(less.document())
    assert len(text) < MOST_BYTES
    left = parse(json.loads(text)).operations.values()
    assert all(len(one.per_second.errors) == seconds for one in left)
    assert 100 < sum(one.per_second.kinds is not None for one in left) < MOST_NAMES


@pytest.mark.slow
def test_equal_counts_that_need_few_bytes_are_not_more_than_are_read() -> None:
    counts = PerSecond(START, [0] * LONGEST_SECONDS, [0] * LONGEST_SECONDS)
    whole = summary(operations={f"o{n}": Operation(per_second=counts) for n in range(50)})
    assert len(encoded(whole.document())) < 1 << 20
    less, sentences = fit_summary(whole)
    assert len(sentences) == 14
    assert len(parse(json.loads(encoded(less.document()))).operations) == 50


def test_operations_lose_their_times_by_step_next() -> None:
    whole = busy(common=9, rare=1)
    least, sentences = fit_summary(whole, target=0)
    assert [sentence.split(" are ")[0] for sentence in sentences] == [
        "rare: counts by second",
        "common: counts by second",
        "rare: times over time",
        "common: times over time",
    ]
    assert all(left.times.count and left.errors for left in least.operations.values())


def test_summary_that_stays_too_large_fails_with_its_size() -> None:
    whole = busy(common=9)
    least, _ = fit_summary(whole, target=0)
    small, sentences = fit_summary(whole, target=0, most=size(least) - 1)
    assert (small.outcome, small.reason) == ("failed", sentences[-1])
    assert "the summary has 0.0 MiB; the limit is 0.0 MiB: record fewer operations" in sentences[-1]
    assert size(small) < size(least)
    lost, _ = fit_summary(parse({**whole.document(), "outcome": "lost", "reason": "spot"}), target=0, most=10)
    assert (lost.outcome, lost.operations) == ("lost", {})
    assert str(lost.reason).startswith("spot; the summary has ")


def test_fitting_changes_no_argument() -> None:
    whole = busy(common=9)
    before = whole.document()
    fit_summary(whole, target=0, most=0)
    assert whole.document() == before
