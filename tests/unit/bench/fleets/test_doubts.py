"""When a node that AWS does not show is lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from troop.bench.fleets import doubts

NOW = datetime(2026, 11, 20, 22, 46, tzinfo=UTC)
missing = st.frozensets(st.sampled_from(["i-0", "i-1", "i-2"]))


@given(st.lists(st.tuples(st.integers(0, 60), missing), min_size=1, max_size=8))
def test_node_is_lost_only_if_consecutive_checks_miss_it_for_ten_seconds(
    checks: list[tuple[int, frozenset[str]]],
) -> None:
    now, stored, since = NOW, None, dict[str, datetime]()
    for seconds, unseen in checks:
        now += timedelta(seconds=seconds)
        current = doubts.following(unseen, doubts.from_document(stored), now)
        stored = doubts.to_document(current)
        since = {i: since.get(i, now) for i in unseen}
        assert doubts.confirmed(current, now) == {i for i, first in since.items() if (now - first).seconds >= 10}
