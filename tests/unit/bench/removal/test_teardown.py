"""What may be removed when, and when a teardown is over."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troop.bench.records.record import Kind, Launch, Resource
from troop.bench.removal import teardown
from troop.bench.removal.teardown import (
    MOST_PASSES,
    QUIET,
    SKEW,
    Seen,
    TeardownIncompleteError,
    TeardownProgress,
    after,
    removable,
)

SERVING = (Kind.PLACEMENT_GROUP, Kind.QUEUE, Kind.ENDPOINT, Kind.SECURITY_GROUP)
"""What nodes use as long as they exist."""

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
RUN = "20261120-120000-00000001"


def seen(kind: Kind, name: str = "x", **more: object) -> Seen:
    return Seen(**{"run": RUN, "cell": "c001", "kind": kind, "id": name, "name": name} | more)  # type: ignore[arg-type]


things = st.builds(
    Seen,
    run=st.sampled_from([RUN, "20261120-120000-00000002"]),
    cell=st.sampled_from(["c001", "c002"]),
    kind=st.sampled_from(Kind),
    id=st.text("abc", min_size=1, max_size=3),
    name=st.just("n"),
    going=st.booleans(),
    held=st.booleans(),
)
accounts = st.lists(things, max_size=12, unique_by=lambda one: (one.run, one.cell, one.kind, one.id))


@given(accounts)
def test_removable_omits_going_and_held_resources_and_begins_with_groups(account: list[Seen]) -> None:
    removals = removable(account)
    assert [one for one in removals if one.going or one.held] == []
    groups = [one for one in account if one.kind is Kind.AUTO_SCALING_GROUP and not one.going and not one.held]
    assert [one for one in groups if one not in removals] == []
    assert removals[: len(groups)] == sorted(groups, key=lambda one: one.id), "and first"


@given(accounts)
def test_nothing_of_a_cell_is_touched_while_a_group_of_it_may_launch(account: list[Seen]) -> None:
    launching = {(o.run, o.cell) for o in account if o.kind is Kind.AUTO_SCALING_GROUP and not o.going}
    for one in removable(account):
        assert one.kind is Kind.AUTO_SCALING_GROUP or (one.run, one.cell) not in launching
        kinds = {o.kind for o in account if (o.run, o.cell) == (one.run, one.cell)}
        if one.kind in SERVING:
            assert not kinds & {Kind.AUTO_SCALING_GROUP, Kind.INSTANCE}
        if one.kind is Kind.SECURITY_GROUP:
            assert Kind.ENDPOINT not in kinds, "its interfaces use the group"


@given(accounts, accounts)
def test_cells_do_not_concern_each_other(account: list[Seen], others: list[Seen]) -> None:
    apart = [replace(one, run="20261120-120000-00000003") for one in others]
    assert {one for one in removable([*account, *apart]) if one not in apart} == set(removable(account))


@given(accounts)
def test_teardown_ends_when_each_removal_succeeds(account: list[Seen]) -> None:
    left, rounds = account, 0
    while left:
        rounds += 1
        removals = removable(left)
        # What was going is gone by now; what belonged to an instance is free when that is.
        left = [replace(one, going=True, held=False) if one in removals else one for one in left if not one.going]
        instances = {(one.run, one.cell) for one in left if one.kind is Kind.INSTANCE}
        left = [replace(one, held=one.held and (one.run, one.cell) in instances) for one in left]
        left = [replace(one, held=False) if one.kind is not Kind.VOLUME else one for one in left]
        assert rounds <= 8


@pytest.mark.parametrize("kind", SERVING)
def test_resource_that_instances_use_waits_for_them(kind: Kind) -> None:
    group = seen(kind)
    assert removable([group, seen(Kind.INSTANCE, going=True)]) == []
    assert removable([group, seen(Kind.AUTO_SCALING_GROUP, going=True)]) == []
    assert removable([group, seen(Kind.INSTANCE, cell="c002")]) == [seen(Kind.INSTANCE, cell="c002"), group]
    assert removable([group]) == [group]


def test_a_security_group_waits_until_the_interfaces_of_the_endpoint_are_gone() -> None:
    group, endpoint = seen(Kind.SECURITY_GROUP), seen(Kind.ENDPOINT)
    assert removable([group, endpoint]) == [endpoint]
    assert removable([group, replace(endpoint, going=True)]) == []
    assert removable([group, replace(endpoint, going=True, cell="c002")]) == [group]


def test_a_launch_counts_until_its_time_is_over_on_every_clock() -> None:
    launch = Launch(RUN, "c001", "t", until=NOON)
    assert teardown.current([launch], None, NOON + SKEW) == [launch]
    assert teardown.current([launch], None, NOON + SKEW + timedelta(seconds=1)) == []
    assert teardown.current([launch], "c001", NOON) == [launch]
    assert teardown.current([launch], "c002", NOON) == []


def _resource(name: str, **more: datetime | str) -> Resource:
    values = {"run": RUN, "cell": "c001", "kind": Kind.INSTANCE, "name": name, "planned_at": NOON}
    return Resource(**values | more)  # type: ignore[arg-type]


def test_the_record_is_put_right_by_what_is_seen() -> None:
    there = [seen(Kind.INSTANCE, name, created_at=NOON) for name in ("new", "planned", "known", "gone")]
    recorded = [
        _resource("planned"),
        _resource("known", created_at=NOON),
        _resource("gone", created_at=NOON, gone_at=NOON),
        _resource("away", created_at=NOON),
        _resource("never"),
        _resource("long-away", created_at=NOON, gone_at=NOON),
        _resource("known", created_at=NOON, cell="c002"),
    ]
    later = NOON + timedelta(minutes=1)
    assert [r.name for r in teardown.unrecorded(there, recorded, later)] == ["new", "planned", "gone"]
    assert [(r.name, r.cell) for r in teardown.vanished(recorded, there, [])] == [
        ("away", "c001"), ("never", "c001"), ("known", "c002"),
    ]  # fmt: skip
    launching = [Launch(RUN, "c001", "t", NOON)]
    assert [(r.name, r.cell) for r in teardown.vanished(recorded, there, launching)] == [("known", "c002")]


@given(st.lists(st.booleans(), min_size=1, max_size=MOST_PASSES - 1))
def test_teardown_ends_after_consecutive_quiet_passes(quiet: list[bool]) -> None:
    progress = TeardownProgress(0, 0)
    for number, nothing in enumerate(quiet, 1):
        progress = after(progress.passes, progress.quiet, () if nothing else ("an instance",))
        assert progress.passes == number
        assert progress.over == (number >= QUIET and all(quiet[number - QUIET : number]))
        assert 0 < progress.wait_seconds <= 60


def test_teardown_gives_up_with_a_list_of_leftovers() -> None:
    many = [f"instance i-{number}" for number in range(30)]
    assert after(MOST_PASSES - 2, 0, many).passes == MOST_PASSES - 1
    with pytest.raises(TeardownIncompleteError, match=r"instance i-0, .*instance i-9, and 20 more"):
        after(MOST_PASSES - 1, 0, many)
    with pytest.raises(TeardownIncompleteError, match="instance i-0; remove"):
        after(MOST_PASSES - 1, 0, many[:1])
    assert after(MOST_PASSES - 1, QUIET - 1, ()).over
