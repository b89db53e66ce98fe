"""Items whose key names no unit, and tags that are nearly Troop's: what they mean, and who hears of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.chaos.build import LAST_TICK, account, group, settings, unit_policy
from tests.unit.chaos.build import tick as decide
from troop.chaos.aws.stray_items import from_item, to_item
from troop.chaos.groups import Group
from troop.chaos.near_keys import Nearest, folded, folded_tag
from troop.chaos.policy import OTHER_TAGS, PARSERS
from troop.chaos.strays import NAMED, QUIET, REPORTS_OF_A_TICK, Stray, StrayRecord, find, next_record
from troop.chaos.units import by_unit
from troop.shared.aws.dynamo import plain, typed

OUT: Mapping[str, Any] = {"opt_out": True}
GROUPS = (
    group("web"),
    group("shop-v041", tags={"troop:unit": "shop"}),
    group("shop-v042", tags={"troop:unit": "shop"}),
)
UNITS = by_unit(GROUPS, ())

UNSEEN = (" ", "\t", "\n", "\u00a0", "\u2003", "\u200b", "\u200d", "\ufeff", "\u00ad", "\u3164", "\u2800", "\ufe0f")


def reasons(items: Mapping[str, Mapping[str, Any]], groups: tuple[Group, ...] = GROUPS) -> dict[str, tuple[str, str]]:
    verdicts = decide(account(*groups, items=items))
    return {unit: (decision.reason, decision.detail) for unit, decision in verdicts.items()}


@pytest.mark.parametrize("key", ["web ", " web", "Web", "WEB", "w eb", "\uff57eb", *(f"we{c}b" for c in UNSEEN)])
def test_a_key_that_differs_by_what_people_overlook_makes_the_unit_malformed(key: str) -> None:
    reason, detail = reasons({key: OUT})["web"]
    assert reason == "malformed"
    assert detail == f"the key of an item is {key!r}: must be exactly the unit's name, or the item must be deleted"
    assert reasons({key: OUT})["shop"][0] == "terminate"


@pytest.mark.parametrize("key", ["shop-v042", "Shop-V042 "])
def test_the_name_of_a_group_is_an_evident_intent_for_its_unit(key: str) -> None:
    assert reasons({key: OUT})["shop"][0] == "malformed"


@pytest.mark.parametrize("key", ["webs", "wed", "web-2", "", "\u200b"])
def test_another_key_changes_no_unit(key: str) -> None:
    assert {reason for reason, _ in reasons({key: OUT}).values()} == {"terminate"}


def test_near_key_blocks_every_unit_that_it_may_mean() -> None:
    assert reasons({"web": {"owner": "us"}, "Web": OUT})["web"][0] == "malformed"
    both = (group("web"), group("WEB"))
    assert {reason for reason, _ in reasons({"Web": OUT}, both).values()} == {"malformed"}
    assert reasons({"WEB": OUT}, both)["web"][0] == "terminate"  # it names a unit exactly


def test_an_item_without_policy_is_none() -> None:
    assert find({"Web": {"unit": "Web", "version": 3, "changed_by": "ann"}}, UNITS).keys == ()


def test_many_near_keys_are_counted() -> None:
    items = {f"web{' ' * n}": OUT for n in range(1, 9)}
    assert "'web ', 'web  ', 'web   ' and 5 more" in reasons(items)["web"][1]


@given(st.sampled_from(["web", "shop", "Größe", "ﬁle-1", "İstanbul"]), st.data())
def test_folding_ignores_everything_unseen_and_is_stable(unit: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(unit)))
    unseen = data.draw(st.sampled_from(UNSEEN))
    assert folded(unit[:place] + unseen + unit[place:]) == folded(unit)
    assert folded(folded(unit)) == folded(unit)


@pytest.mark.parametrize("name", [*PARSERS, *OTHER_TAGS])
@pytest.mark.parametrize(
    "misspelled",
    [
        " troop:{}",
        "troop:{} ",
        "troop_{}",
        "troop/{}",
        "Troop.{}",
        "troop-{}",
        "TROOP:{}",
        "tr\u200boop:{}",
        "troop : {}",
    ],
)
def test_a_tag_that_is_nearly_troops_makes_the_unit_malformed(name: str, misspelled: str) -> None:
    key = misspelled.format(name)
    (problem,) = unit_policy(group(tags={key: "true"})).problems
    assert problem.endswith(f"is unknown: must be spelled troop:{name}"), problem


@pytest.mark.parametrize("key", ["opt_out", "Name", "troops:opt_out", "troop", "my-troop:owner", "aws:troop:owner"])
def test_a_tag_of_others_changes_nothing(key: str) -> None:
    assert unit_policy(group(tags={key: "true"})).problems == ()


def test_separators_within_a_name_are_one() -> None:
    assert folded_tag("troop:opt_out") == folded_tag("Troop / Opt-Out") == folded_tag("troop\u2010opt\uff3fout")


class TestNearest:
    def test_by_spelling(self) -> None:
        nearest = Nearest(["web", "payments", "payments-eu", *(f"unit-{n}" for n in range(1000))])
        assert nearest.find("paymets") == "payments"
        assert nearest.find("ayments") == "payments"
        assert nearest.find("zzzzzz") is None

    def test_without_units(self) -> None:
        assert Nearest([]).find("web") is None


def tick(before: StrayRecord, items: Mapping[str, Mapping[str, Any]], now: datetime) -> StrayRecord:
    """The record after a tick, as it is stored and read again."""
    record = next_record(before, find(items, UNITS), items, UNITS, now)
    return from_item(plain(typed(to_item(record)))) if record else before


class TestRecord:
    def test_the_owner_hears_once_after_a_day(self) -> None:
        items = {"old": {**OUT, "owner": "team"}, "Web": OUT}
        record = tick(StrayRecord(), items, LAST_TICK)
        assert (record.count, record.reports) == (2, ())
        assert record.named == (Stray("Web", "web"), Stray("old", None, "team"))
        assert record.near == {"web": ("Web",)}
        assert tick(record, items, LAST_TICK + QUIET / 2) is record
        reported = tick(record, items, LAST_TICK + QUIET)
        assert reported.reports == (Stray("Web", "web", "", LAST_TICK), Stray("old", None, "team", LAST_TICK))
        assert reported.waiting == {}
        assert tick(reported, items, LAST_TICK + 2 * QUIET) is reported

    def test_item_whose_group_came_back_waits_again_from_the_start(self) -> None:
        record = tick(tick(StrayRecord(), {"old": OUT}, LAST_TICK), {}, LAST_TICK + QUIET / 2)
        assert (record.count, record.waiting, record.named) == (0, {}, ())
        again = tick(record, {"old": OUT}, LAST_TICK + QUIET)
        assert again.reports == ()
        assert tick(again, {"old": OUT}, LAST_TICK + 2 * QUIET).reports[0].since == LAST_TICK + QUIET

    def test_nothing_is_recorded_of_nothing(self) -> None:
        assert next_record(StrayRecord(), find({}, UNITS), {}, UNITS, LAST_TICK) is None

    def test_many_stray_items_are_reported_one_after_the_other_and_once_each(self) -> None:
        items = {f"old-{n:03}": OUT for n in range(3 * REPORTS_OF_A_TICK)}
        record, heard = StrayRecord(), []
        for hour in range(0, 60, 6):
            after = tick(record, items, LAST_TICK + timedelta(hours=hour))
            heard += [stray.key for stray in after.reports] if after is not record else []
            record = after
        assert sorted(heard) == sorted(items)
        assert (record.count, len(record.named)) == (len(items), NAMED)

    @pytest.mark.slow
    def test_the_record_of_ten_thousand_long_keys_fits_an_item(self) -> None:
        """DynamoDB limits an item to 400 KB."""
        wide = "\U0001f600" * 400
        items: dict[str, Mapping[str, Any]] = {f"{wide}{n}": {**OUT, "owner": wide} for n in range(10_000)}
        items |= {f"{' ' * n}web": OUT for n in range(1, 1000)}
        units = UNITS | {f"unit-{n}": (group(f"unit-{n}"),) for n in range(10_000)}
        items |= {f"Unit-{n}": OUT for n in range(10_000)}
        strays = find(items, units)
        record = next_record(StrayRecord(), strays, items, units, LAST_TICK)
        assert record
        later = next_record(record, strays, items, units, LAST_TICK + QUIET)
        assert later
        assert len(later.reports) == REPORTS_OF_A_TICK
        assert all(len(json.dumps(to_item(one), ensure_ascii=False).encode()) < 350_000 for one in (record, later))
        assert record.count == len(items)


def test_an_opt_in_deployment_skips_the_unit_too() -> None:
    verdicts = decide(account(*GROUPS, items={"Web": {"opt_in": True}}), settings(participation="opt-in"))
    assert verdicts["web"].reason == "malformed"
