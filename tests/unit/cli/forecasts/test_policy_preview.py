"""The preview of a policy: the values of a form, and what they would change."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest

from cli.forecasts import calendar_ahead, policy_preview, unit_ahead
from cli.forecasts.calendar_ahead import Basis
from tests.unit.cli.web.page_world import NOW, Ahead, World
from troop.chaos.facts import Switch


@pytest.fixture
def basis() -> Basis:
    return Ahead(World(), "web", "ledger").basis()


def test_values_are_checked_by_the_rules_of_the_api(basis: Basis) -> None:
    settings = basis.settings.chaos
    texts = {
        "probability": "2",
        "calendar": "nights",
        "until": "2026-11-01",
        "min_healthy": "3",
        "owner": None,
        "stop_alarms": "a, b",
        "probabilty": "1",
    }
    changes, wrong = policy_preview.checked(texts, settings, NOW)
    assert changes == {"min_healthy": 3, "owner": None, "stop_alarms": ["a", "b"], "until": "2026-11-01"}
    assert wrong["probability"] == "is '2', must be a number from 0 to 1"
    assert wrong["calendar"] == "is 'nights', must be one of default, night"
    assert wrong["until"].startswith("is '2026-11-01', must be 2026-11-23 or later")
    assert "probability" in wrong["probabilty"]
    _, wrong = policy_preview.checked({"until": "2026-11-01", "opt_out": "false"}, settings, NOW)
    assert wrong == {}
    assert policy_preview.checked({"calendar": "nights"}, None, NOW) == ({"calendar": "nights"}, {})


def test_the_preview_predicts_what_the_calendar_does_after_the_change(basis: Basis) -> None:
    item = {"unit": "web", "version": 3, "probability": 0.0}
    changes = {"probability": 0.9, "owner": "shop"}
    document = policy_preview.document(basis, "web", item, changes, NOW)
    assert {row["key"]: (row["before"]["value"], row["after"]["value"]) for row in document["values"]} == {
        "probability": (0.0, 0.9),
        "owner": ("", "shop"),
    }
    assert document["next_possible"] == [None, "2026-11-23T12:00:00.000Z"]
    assert {row["before"]["reason"] for row in document["days"]} == {"not-rolled"}
    changed = replace(basis, account=replace(basis.account, items={"web": {**item, **changes}}))
    last = (date(2026, 11, 23) + timedelta(days=unit_ahead.DAYS - 1)).isoformat()
    calendar = calendar_ahead.document(changed, NOW, 3)["expected"]
    expected = [(hit["day"], hit["at"]) for hit in calendar if hit["unit"] == "web" and hit["day"] <= last]
    assert [(row["day"], row["after"]["at"]) for row in document["days"] if row["after"]["hit"]] == expected
    assert len(expected) >= 3
    assert all(row["after"]["leashed"] for row in document["days"] if row["after"]["hit"])


def test_a_halt_does_not_hide_the_effect_and_a_secret_salt_leaves_the_values(basis: Basis) -> None:
    halted = replace(basis, account=replace(basis.account, switch=Switch(halted=True, leashed=False)))
    document = policy_preview.document(halted, "web", {}, {"probability": 1}, NOW)
    assert document["halted"]
    assert any(row["after"]["hit"] and not row["after"]["leashed"] for row in document["days"])
    document = policy_preview.document(replace(basis, salt=None, no_salt="no"), "web", {}, {"opt_out": True}, NOW)
    assert (document["days"], document["not_expected"]) == (None, "no")
    assert [row["key"] for row in document["values"]] == ["takes_part", "until"]
    assert policy_preview.document(basis, "later", {}, {"opt_out": True}, NOW)["days"] == []


def test_another_calendar_has_other_days_and_a_malformed_policy_is_named(basis: Basis) -> None:
    document = policy_preview.document(basis, "web", {}, {"calendar": "night"}, NOW)
    friday = next(row for row in document["days"] if row["day"] == "2026-11-27")  # an outing of the default calendar
    assert friday["before"] is None
    assert friday["after"] is not None
    document = policy_preview.document(basis, "web", {"opt_out": "perhaps"}, {"owner": "shop"}, NOW)
    assert "opt_out is 'perhaps'" in document["problems"][0]
    assert {row["after"]["reason"] for row in document["days"]} == {"malformed"}
