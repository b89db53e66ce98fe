"""Policy: the item in the table wins over the group's tags, which win over the settings; each value says its source."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.chaos.build import TWO_MORE, group, policy, settings, tagged, unit_policy
from troop.chaos.hypothesis import Hypothesis
from troop.chaos.policy import VALUES, effective_policy

SETTINGS_VALUES = settings(probability=0.2, min_days_between=1, calendars=TWO_MORE)
FROM_SETTINGS: dict[str, Any] = {
    "takes_part": True,
    "until": None,
    "probability": 0.2,
    "min_healthy": 2,
    "min_days_between": 1,
    "method": "crash",
    "calendar": "default",
    "stop_alarms": [],
    "success_alarms": [],
    "recovery_within": None,
    "under_load": False,
    "reason": "",
    "owner": "",
}
BY_TAG = {
    "opt_out": ("true", "takes_part", False),
    "probability": ("0.5", "probability", 0.5),
    "min_healthy": ("3", "min_healthy", 3),
    "min_days_between": ("5", "min_days_between", 5),
    "method": ("drain", "method", "drain"),
    "calendar": ("night", "calendar", "night"),
    "stop_alarms": ("high-cpu, errors", "stop_alarms", ["high-cpu", "errors"]),
    "success_alarms": ("slow", "success_alarms", ["slow"]),
    "recovery_within": ("300", "recovery_within", 300),
    "under_load": ("true", "under_load", True),
    "reason": ("a migration", "reason", "a migration"),
    "owner": ("team-web", "owner", "team-web"),
}
BY_ITEM: dict[str, tuple[Any, str, Any]] = {
    "opt_out": (True, "takes_part", False),
    "probability": (Decimal("0.9"), "probability", 0.9),
    "min_healthy": (Decimal(4), "min_healthy", 4),
    "min_days_between": (Decimal(0), "min_days_between", 0),
    "method": ("drain", "method", "drain"),
    "calendar": ("day", "calendar", "day"),
    "stop_alarms": ({"b", "a"}, "stop_alarms", ["a", "b"]),
    "success_alarms": (["b", "a"], "success_alarms", ["b", "a"]),
    "recovery_within": (Decimal(240), "recovery_within", 240),
    "under_load": (False, "under_load", False),
    "reason": ("an audit", "reason", "an audit"),
    "owner": ("team-db", "owner", "team-db"),
}


def test_without_tags_and_item_every_value_is_the_settings() -> None:
    values = policy((group(),), chosen=SETTINGS_VALUES).as_dict()
    assert values == {key: {"value": value, "source": "settings"} for key, value in FROM_SETTINGS.items()}
    assert tuple(values) == VALUES


@pytest.mark.parametrize("key", BY_TAG)
def test_a_tag_wins_over_the_settings(key: str) -> None:
    text, value_key, value = BY_TAG[key]
    values = policy((tagged(**{key: text}),), chosen=SETTINGS_VALUES).as_dict()
    assert values[value_key] == {"value": value, "source": "tag of web"}
    others = {k: v for k, v in values.items() if k not in (value_key, "until")}
    assert all(v == {"value": FROM_SETTINGS[k], "source": "settings"} for k, v in others.items())


@pytest.mark.parametrize("key", BY_ITEM)
def test_an_item_wins_over_the_tag(key: str) -> None:
    stored, value_key, value = BY_ITEM[key]
    values = policy((tagged(**{key: BY_TAG[key][0]}),), {"unit": "web", key: stored}, SETTINGS_VALUES).as_dict()
    assert values[value_key] == {"value": value, "source": "item"}


FLOOR = "lowest_min_healthy of the settings"


@pytest.mark.parametrize(
    ("tag", "item", "expected"),
    [
        (None, None, (3, "settings")),
        ("1", None, (2, FLOOR)),
        (None, 1, (2, FLOOR)),
        ("4", 1, (2, FLOOR)),
        ("1", 2, (2, "item")),
        ("1", 5, (5, "item")),
        ("2", None, (2, "tag of web")),
    ],
)
def test_no_owner_goes_below_the_lowest_minimum(tag: str | None, item: int | None, expected: tuple[int, str]) -> None:
    tags = {"min_healthy": tag} if tag else {}
    stored = {"min_healthy": item} if item else {}
    effective = unit_policy(tagged(**tags), item=stored, min_healthy=3, lowest_min_healthy=2)
    assert (effective.min_healthy.value, effective.min_healthy.source) == expected


def test_the_tables_own_attributes_and_other_tags_are_no_policy() -> None:
    item = {"unit": "web", "schema": 1, "version": 3, "changed_at": "x", "changed_by": "y", "changed_request": "z"}
    other = {
        "Name": "web",
        "aws:autoscaling:x": "y",
        "troop:unit": "web",
        "troop:protected": "",
        "x-troop:opt_out": "?",
    }
    effective = policy((group(tags=other),), item, SETTINGS_VALUES)
    assert effective.problems == ()
    assert effective == policy((group(),), chosen=SETTINGS_VALUES)


# ------------------------------------------------------------------ opting out and in

OUT, IN = {"opt_out": "true"}, {"opt_in": "true"}
NOT_OUT, NOT_IN = {"opt_out": "false"}, {"opt_in": "false"}


@pytest.mark.parametrize(
    ("participation", "tags", "item", "takes_part", "source"),
    [
        ("opt-out", {}, {}, True, "settings"),
        ("opt-in", {}, {}, False, "settings"),
        ("opt-out", OUT, {}, False, "tag of web"),
        ("opt-in", IN, {}, True, "tag of web"),
        ("opt-out", {}, OUT, False, "item"),
        ("opt-in", {}, IN, True, "item"),
        # An opt-out stands before an opt-in of the same place.
        ("opt-in", OUT | IN, {}, False, "tag of web"),
        ("opt-in", {}, OUT | IN, False, "item"),
        # The item decides where it says anything.
        ("opt-out", OUT, IN, True, "item"),
        ("opt-out", OUT, NOT_OUT, True, "item"),
        ("opt-in", IN, OUT, False, "item"),
        ("opt-in", IN, NOT_IN, False, "item"),
        # Not to be opted out is not to be opted in.
        ("opt-in", {}, NOT_OUT, False, "settings"),
        ("opt-in", IN, NOT_OUT, True, "tag of web"),
        ("opt-in", IN | OUT, NOT_OUT, True, "tag of web"),
        # "opt_in: false" keeps out of an opt-out deployment, too.
        ("opt-out", {}, NOT_IN, False, "item"),
        ("opt-out", NOT_IN, {}, False, "tag of web"),
        ("opt-out", NOT_OUT, {}, True, "tag of web"),
        ("opt-out", OUT, {"reason": "x"}, False, "tag of web"),
    ],
)
def test_who_takes_part(
    participation: str, tags: dict[str, str], item: dict[str, str], takes_part: bool, source: str
) -> None:
    effective = unit_policy(tagged(**tags), item=item, participation=participation)
    assert (effective.takes_part.value, effective.takes_part.source) == (takes_part, source)


@pytest.mark.parametrize("where", ["tag", "item"])
@pytest.mark.parametrize("says", [{"opt_out": "true"}, {}], ids=["with opt_out", "alone"])
@pytest.mark.parametrize(("passed", "out"), [(-1, True), (0, True), (1, False), (400, False)])
def test_an_opt_out_ends_with_the_day_it_lasts_until(where: str, says: dict[str, str], passed: int, out: bool) -> None:
    until = {**says, "until": "2026-12-24"}
    tags, item = (until, {}) if where == "tag" else ({}, until)
    effective = unit_policy(tagged(**tags), item=item, day=date(2026, 12, 24) + timedelta(days=passed))
    source = "tag of web" if where == "tag" else "item"
    assert effective.takes_part.value is not out
    assert effective.takes_part.source == (source if out else "settings")
    assert effective.until.value == (date(2026, 12, 24) if out else None)
    assert effective.as_dict()["until"]["value"] == ("2026-12-24" if out else None)


@pytest.mark.parametrize(
    ("tags", "item", "takes_part", "source"),
    [
        (OUT, {"until": "2026-01-01"}, False, "tag of web"),  # the item's date is not the tag's
        ({"until": "2026-01-01"}, OUT, False, "item"),
        (OUT | {"until": "2026-01-01"}, {}, True, "settings"),
        (OUT | {"until": "2027-01-01"}, OUT | {"until": "2026-01-01"}, False, "tag of web"),
        (OUT | {"until": "2027-01-01"}, NOT_OUT, True, "item"),
        ({}, NOT_OUT | {"until": "2027-01-01"}, True, "item"),
        ({}, IN | {"until": "2027-01-01"}, False, "item"),
        ({}, IN | {"until": "2026-01-01"}, True, "item"),
    ],
)
def test_until_belongs_to_the_opt_out_beside_it(
    tags: dict[str, str], item: dict[str, str], takes_part: bool, source: str
) -> None:
    effective = unit_policy(tagged(**tags), item=item)
    assert (effective.takes_part.value, effective.takes_part.source) == (takes_part, source)


def test_an_opt_out_ends_on_the_day_of_its_own_calendar() -> None:
    effective = policy((group(),), {"opt_out": True, "until": "2026-11-20", "calendar": "night"}, SETTINGS_VALUES)
    assert not effective.takes_part.value
    names: list[str] = []

    def today(name: str) -> date:
        names.append(name)
        return date(2026, 11, 21)

    effective = effective_policy(
        [group()], {"opt_out": True, "until": "2026-11-20", "calendar": "night"}, SETTINGS_VALUES, today
    )
    assert effective.takes_part.value
    assert names == ["night"]


# ------------------------------------------------------------------ several groups of one unit


@pytest.mark.parametrize(
    ("key", "one", "other", "value_key", "strictest"),
    [
        ("opt_out", "false", "true", "takes_part", False),
        ("probability", "0.9", "0.1", "probability", 0.1),
        ("min_healthy", "3", "7", "min_healthy", 7),
        ("min_days_between", "2", "9", "min_days_between", 9),
    ],
)
def test_the_strictest_member_speaks_for_the_unit(
    key: str, one: str, other: str, value_key: str, strictest: Any
) -> None:
    first, second = tagged("web-1", **{key: one}), tagged("web-2", **{key: other})
    for groups in ((first, second), (second, first), (group("web-0"), first, second)):
        assert unit_policy(*groups).as_dict()[value_key] == {"value": strictest, "source": "tag of web-2"}


def test_a_unit_agrees_to_load_only_if_all_members_do() -> None:
    agreed, unasked = (tagged(f"web-{n}", under_load="true") for n in (1, 2)), group("web-3")
    first, second = agreed
    assert unit_policy(first, second).under_load.value is True
    for groups in ((first, unasked), (unasked, first), (first, tagged("web-4", under_load="false"))):
        assert unit_policy(*groups).under_load.value is False
    assert unit_policy(first, unasked, item={"under_load": True}).under_load.value is True


def test_a_member_without_the_tag_brings_in_the_settings() -> None:
    assert unit_policy(tagged("web-1", probability="0.9"), group("web-2"), probability=0.2).probability.value == 0.2
    assert unit_policy(tagged("web-1", opt_in="true"), group("web-2"), participation="opt-in").takes_part.value is False


def test_an_item_holds_for_all_members() -> None:
    effective = unit_policy(
        tagged("web-1", probability="0.1"), tagged("web-2", probability="0.2"), item={"probability": "0.7"}
    )
    assert effective.as_dict()["probability"] == {"value": 0.7, "source": "item"}


@pytest.mark.parametrize(
    ("methods", "common", "source"),
    [
        (("crash, drain", "drain"), "drain", "tag of web-2"),
        (("drain", "crash, drain"), "drain", "tag of web-1"),
        (("crash, drain, cpu", "cpu, crash"), "crash, cpu", "tag of web-2"),
        ((None, "crash, shutdown"), "crash", "settings"),
        (("cpu load=80, memory", "memory percent=80, cpu load=80"), "cpu load=80, memory", "tag of web-1"),
        # The same fault, with and without a default: one way to write it is kept.
        (("cpu seconds=300", "cpu"), "cpu seconds=300", "tag of web-1"),
    ],
)
def test_the_faults_that_all_members_allow_may_hit(methods: tuple[str | None, ...], common: str, source: str) -> None:
    members = [tagged(f"web-{n}", **({"method": one} if one else {})) for n, one in enumerate(methods, 1)]
    effective = unit_policy(*members, inside_instances=True)
    assert effective.problems == ()
    assert effective.as_dict()["method"] == {"value": common, "source": source}


@pytest.mark.parametrize(
    ("methods", "words"),
    [
        (("crash", "drain"), "crash (tag of web-1); drain (tag of web-2)"),
        ((None, "drain"), "crash (settings); drain (tag of web-2)"),
        (("cpu load=50", "cpu load=80"), "cpu load=50 (tag of web-1); cpu load=80 (tag of web-2)"),
    ],
)
def test_members_without_a_common_fault_are_malformed(methods: tuple[str | None, ...], words: str) -> None:
    members = [tagged(f"web-{n}", **({"method": one} if one else {})) for n, one in enumerate(methods, 1)]
    effective = unit_policy(*members)
    assert effective.problems == (f"its groups allow no common method: {words}",)
    assert effective.as_dict()["method"]["value"] == ""


def test_an_item_decides_the_faults_of_all_members() -> None:
    members = (tagged("web-1", method="crash"), tagged("web-2", method="drain"))
    effective = unit_policy(*members, item={"method": "shutdown, io"})
    assert effective.as_dict()["method"] == {"value": "shutdown, io", "source": "item"}
    assert effective.problems == ()


@pytest.mark.parametrize("value", ["true", "Yes", "yes ", "", "installs"])
def test_a_consent_that_iam_would_not_recognize_is_malformed(value: str) -> None:
    reported = unit_policy(tagged(inside=value)).problems
    assert reported == (f"web: tag troop:inside is {value!r}: must be yes or install",)


@pytest.mark.parametrize("value", ["yes", "install"])
def test_a_consent_is_no_part_of_the_policy(value: str) -> None:
    assert unit_policy(tagged(inside=value)) == unit_policy(group())


@pytest.mark.parametrize("key", ["stop_alarms", "success_alarms"])
def test_alarms_add_up(key: str) -> None:
    effective = unit_policy(tagged("web-1", **{key: "a,b"}), tagged("web-2", **{key: "b,c"}), group("web-3"))
    assert effective.as_dict()[key] == {"value": ["a", "b", "c"], "source": "tag of web-1, tag of web-2"}


@pytest.mark.parametrize(("groups", "problems"), [(5, 0), (6, 1)])
def test_the_alarms_of_a_verdict_are_limited_for_all_groups_together(groups: int, problems: int) -> None:
    members = [tagged(f"web-{n}", success_alarms=",".join(f"a{n}-{i}" for i in range(10))) for n in range(groups)]
    reported = unit_policy(*members).problems
    assert [one for one in reported if "60 success_alarms together: must be at most 50" in one] == list(reported)
    assert len(reported) == problems


@pytest.mark.parametrize(
    ("tags", "value", "source"),
    [
        (("300", "120"), 120, "tag of web-2"),
        ((None, "86400"), 86400, "tag of web-2"),
        ((None, None), None, "settings"),
    ],
)
def test_the_shortest_recovery_is_the_units(tags: tuple[str | None, ...], value: int | None, source: str) -> None:
    members = [tagged(f"web-{n}", **({"recovery_within": text} if text else {})) for n, text in enumerate(tags, 1)]
    assert unit_policy(*members).as_dict()["recovery_within"] == {"value": value, "source": source}


def test_the_hypothesis_is_what_the_policy_says() -> None:
    effective = unit_policy(tagged(stop_alarms="a, b", success_alarms="c, b", recovery_within="90"))
    assert effective.hypothesis == Hypothesis(("c", "b"), ("a", "b"), 90)
    assert effective.hypothesis.alarms == ("c", "b", "a")


def test_the_opt_out_that_lasts_longest_is_heard_and_says_why() -> None:
    short = tagged("web-1", until="2026-12-01", reason="short", owner="team-1")
    forever = tagged("web-2", opt_out="true", reason="forever")
    talkative = tagged("web-0", reason="takes part, and talks")
    effective = unit_policy(talkative, short, forever)
    assert (effective.takes_part.source, effective.until.value) == ("tag of web-2", None)
    assert (effective.reason.value, effective.owner.value) == ("forever", "team-1")
    effective = unit_policy(talkative, short, tagged("web-2", until="2026-12-24"))
    assert (effective.until.value, effective.reason.value) == (date(2026, 12, 24), "takes part, and talks")


def test_members_on_different_calendars_are_malformed() -> None:
    effective = unit_policy(tagged("web-1", calendar="night"), group("web-2"))
    assert effective.problems == ("its groups are on different calendars: default, night",)
    assert unit_policy(tagged("web-1", calendar="night"), tagged("web-2", calendar="night")).problems == ()
    assert unit_policy(tagged("web-1", calendar="night"), group("web-2"), item={"calendar": "day"}).problems == ()
