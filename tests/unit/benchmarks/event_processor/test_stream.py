"""The stream of events and the verifier's judgement, on values in memory."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.benchmarks.scripts import scripts

stream = scripts("event-processor")["stream"]
SIZE = 100


def workload(keys: int = 50, new_share: float = 0.05, skew: float = 4, seed: int = 1, worker: int = 0) -> Any:
    return stream.Workload(seed, worker, keys, new_share, skew, SIZE)


def values_after(one: Any, events: list[tuple[int, int]], keys: int) -> dict[int, bytes]:
    """The values after events, each with its number and its key, by the definition of an event."""
    states = {key: (0, stream.first_digest(key)) for key in range(keys)}
    for number, key in events:
        count, digest = states[key]
        states[key] = count + 1, stream.next_digest(digest, number)
    return {key: stream.encode(key, *state, one.value_bytes) for key, state in states.items()}


def judged(one: Any, values: dict[int, bytes], events: int) -> Any:
    return stream.judge(stream.replay(one, events), sorted(values.items()), SIZE)


WORKLOADS = st.builds(
    workload,
    keys=st.integers(1, 60),
    new_share=st.sampled_from([0, 0.01, 0.5, 0.99]),
    skew=st.sampled_from([1, 1.5, 4, 100]),
    seed=st.integers(0, 3),
    worker=st.integers(0, 3),
)


@given(WORKLOADS, st.lists(st.integers(0, 40), max_size=6))
def test_events_do_not_depend_on_batches_and_new_keys_come_in_order(one: Any, batches: list[int]) -> None:
    together, apart, skipping = stream.Stream(one), stream.Stream(one), stream.Stream(one)
    keys = together.take(sum(batches))
    assert keys == [key for count in batches for key in apart.take(count)]
    total = one.keys
    for key in keys:
        assert 0 <= key <= total
        total += key == total
    skipping.skip(sum(batches))
    assert (skipping.position, skipping.keys) == (together.position, total) == (sum(batches), together.keys)
    assert skipping.take(5) == together.take(5)


def test_events_are_the_same_with_every_python() -> None:
    assert stream.Stream(workload(1000)).take(8) == [339, 985, 971, 970, 944, 999, 994, 942]
    assert stream.encode(3, 2, 77, 40)[24:].hex() == "8e9b95736663f6cc0fa18f88f44bad8f"


@pytest.mark.parametrize("skew", [1, 2, 4])
def test_skew_decides_how_many_events_the_newest_tenth_receives(skew: float) -> None:
    keys = stream.Stream(workload(10_000, new_share=0, skew=skew)).take(20_000)
    assert sum(key >= 9_000 for key in keys) / len(keys) == pytest.approx(0.1 ** (1 / skew), abs=0.02)


@given(WORKLOADS, st.integers(0, 200))
def test_the_state_after_all_events_is_verified(one: Any, events: int) -> None:
    source = stream.Stream(one)
    values = values_after(one, list(enumerate(source.take(events))), source.keys)
    verdict = judged(one, values, events)
    assert (verdict.is_intact, verdict.verified, verdict.examples) == (True, source.keys, [])


@given(WORKLOADS, st.integers(1, 200), st.data())
def test_each_lost_doubled_or_swapped_update_shows(one: Any, count: int, data: st.DataObject) -> None:
    source = stream.Stream(one)
    events = list(enumerate(source.take(count)))
    victim = data.draw(st.integers(0, count - 1))
    key = events[victim][1]
    damaged = {"lost": events[:victim] + events[victim + 1 :], "doubled": events[: victim + 1] + events[victim:]}
    later = [at for at in range(victim + 1, count) if events[at][1] == key]
    if later:
        swapped = events[:]
        swapped[victim], swapped[later[0]] = swapped[later[0]], swapped[victim]
        damaged["different"] = swapped
    for kind, replacement in damaged.items():
        verdict = judged(one, values_after(one, replacement, source.keys), count)
        assert (verdict.damage, verdict.verified) == ({kind: 1}, source.keys - 1)
        assert f"key {key} has" in verdict.examples[0]


@given(st.integers(0, SIZE - 1), st.integers(1, 255))
def test_each_changed_byte_of_a_value_shows(at: int, change: int) -> None:
    one = workload(3)
    values = values_after(one, [], 3)
    values[1] = values[1][:at] + bytes([values[1][at] ^ change]) + values[1][at + 1 :]
    assert judged(one, values, 0).damage == {"torn": 1}
    with pytest.raises(stream.DamageError):
        stream.decode(1, values[1])


@pytest.mark.parametrize("at", range(1, SIZE, 7))
def test_a_value_torn_between_two_writes_shows(at: int) -> None:
    one = workload(3)
    before, after = values_after(one, [], 3), values_after(one, [(0, 1)], 3)
    torn = after[1][:at] + before[1][at:]
    assert torn in (before[1], after[1]) or judged(one, {**before, 1: torn}, 0).damage == {"torn": 1}


def test_a_missing_key_an_unknown_key_and_a_value_of_another_key_show() -> None:
    one = workload(6)
    values = values_after(one, [], 6)
    verdict = judged(one, {1: values[1], 2: values[3], 3: values[3], 9: values[5]}, 0)
    assert verdict.damage == {"missing": 3, "torn": 1, "unknown": 1}
    assert verdict.verified == 2
    assert judged(one, {}, 0).damage == {"missing": 6}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"keys": 0}, "keys is 0: must be at least 1 for each worker"),
        ({"new_share": 1}, "new_share is 1: must be from 0 to below 1"),
        ({"skew": 0.5}, "skew is 0.5: must be from 1 to 100"),
    ],
)
def test_a_workload_that_makes_no_sense_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        workload(**changes)
    with pytest.raises(ValueError, match="value_bytes is 8: must be from 28 to 65536"):
        stream.Workload(1, 0, 5, 0.1, 2, 8)
