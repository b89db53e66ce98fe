"""Tests the page in a browser: the form for the policy of a unit."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from cli.client.api import Answer
from cli.shared.errors import CliError, Exit
from tests.unit.cli.web.page.conftest import Looking


@pytest.fixture
def form(looking: Looking) -> Page:
    looking.world.units["web"]["item"] = {"probability": 0.2, "owner": "shop"}
    page = looking.go("units/web")
    page.get_by_role("link", name="Change policy").click()
    expect(page.get_by_role("heading", name="Policy of web")).to_be_visible()
    return page


def preview(page: Page) -> None:
    page.get_by_role("button", name="Preview").click()


def test_a_whole_policy_is_previewed_and_then_saved(looking: Looking, form: Page) -> None:
    expect(form.get_by_label("Probability")).to_have_value("0.2")
    expect(form.get_by_text("In force: 0.2 (item in GroupTags).")).to_be_visible()
    form.get_by_label("Probability").fill("1")
    form.get_by_label("Minimum healthy").fill("1")
    form.get_by_label("Owner").fill("")
    form.get_by_label("Faults").fill("shutdown, latency delay=300")
    form.get_by_label("Calendar").select_option("night")
    form.get_by_label("Stop alarms").fill("errors, latency")
    form.get_by_label("Success alarms").fill("checkout-5xx")
    form.get_by_label("Recovers within").fill("300")
    preview(form)
    effect = form.get_by_role("region", name="What would change")
    expect(effect.get_by_role("row", name="Probability per business day")).to_contain_text("0.2")
    expect(effect.get_by_role("row", name="Calendar")).to_contain_text("night")
    expect(effect.get_by_role("row", name="Success alarms")).to_contain_text("checkout-5xx")
    expect(effect.get_by_role("row", name="Recovers within, in seconds")).to_contain_text("300")
    expect(effect.get_by_text("would be hit at").first).to_be_visible()
    assert looking.changes() == []
    effect.get_by_role("button", name="Save this policy").click()
    expect(form.get_by_role("heading", name="web", exact=True)).to_be_visible()
    expect(form.get_by_text("The policy of web is saved.")).to_be_visible()
    changes: dict[str, Any] = {"probability": 1, "min_healthy": 1, "owner": None}
    changes |= {"method": "shutdown, latency delay=300"}
    changes |= {"calendar": "night", "stop_alarms": ["errors", "latency"], "version": 0}
    changes |= {"success_alarms": ["checkout-5xx"], "recovery_within": 300}
    assert [(path, body) for _, path, body in looking.changes()] == [("groups/web", changes)]


def test_wrong_values_are_explained_at_their_fields_and_nothing_is_sent(looking: Looking, form: Page) -> None:
    form.get_by_label("Probability").fill("often")
    form.get_by_label("Minimum healthy").fill("0")
    form.get_by_label("Recovers within").fill("5 minutes")
    preview(form)
    field = form.get_by_label("Probability")
    expect(field).to_be_focused()
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_accessible_description(
        "is 'often', must be a number from 0 to 1 A number from 0 to 1. In force: 0.2 (item in GroupTags)."
    )
    expect(form.get_by_label("Minimum healthy")).to_have_accessible_description(
        "is '0', must be a whole number from 1 to 10000 In force: 2 (settings)."
    )
    expect(form.get_by_label("Recovers within")).to_have_accessible_description(
        re.compile("^is '5 minutes', must be a whole number from 1 to 86400")
    )
    form.get_by_label("Recovers within").fill("")
    expect(form.get_by_role("button", name="Save")).to_have_count(0)
    field.fill("0.5")
    form.get_by_label("Minimum healthy").fill("")
    preview(form)
    expect(form.get_by_role("button", name="Save")).to_be_visible()
    expect(field).not_to_have_attribute("aria-invalid", "true")
    field.fill("0.6")  # the preview is of another value
    expect(form.get_by_role("button", name="Save")).to_have_count(0)
    assert looking.changes() == []


def test_a_refusal_of_the_api_is_at_its_field(looking: Looking, form: Page) -> None:
    problem = {"where": "body.reason", "problem": "is 'x', must be a ticket"}
    refused = {"statusCode": 400, "message": "body.reason: must be a ticket", "problems": [problem]}
    looking.world.refusals["PATCH", "groups/web"] = [Answer(400, refused)]
    form.get_by_label("Reason").fill("x")
    preview(form)
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_label("Reason")).to_be_focused()
    expect(form.get_by_label("Reason")).to_have_accessible_description(problem["problem"])


def test_a_change_of_somebody_else_is_not_undone(looking: Looking, form: Page) -> None:
    form.get_by_label("Probability").fill("0.5")
    preview(form)
    save = form.get_by_role("button", name="Save")
    expect(save).to_be_visible()  # the preview has read the policy, so only the saving can notice the change
    looking.world.units["web"]["version"] += 1
    save.click()
    expect(form.get_by_role("alert")).to_contain_text("Somebody else has changed")
    looking.world.units["web"]["item"] = {"probability": 0.4}
    form.get_by_role("button", name="Load the current policy").click()
    expect(form.get_by_label("Probability")).to_have_value("0.4")
    looking.world.units["web"]["version"] += 1
    form.get_by_label("Probability").fill("0.5")
    preview(form)  # this notices it before it is sent
    expect(form.get_by_role("alert")).to_contain_text("Somebody else has changed")


def test_without_permission_for_the_forecast_the_policy_can_be_saved(
    looking: Looking, form: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*_: object) -> None:
        raise CliError(Exit.FORBIDDEN, "you may not read the settings")

    monkeypatch.setattr(type(looking.server.ahead), "basis", forbidden)
    form.reload()
    form.get_by_label("Calendar").fill("night")  # a field: the names are unknown
    preview(form)
    expect(form.get_by_text("cannot be computed: you may not read the settings.")).to_be_visible()
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_text("The policy of web is saved.")).to_be_visible()
    assert looking.world.units["web"]["item"]["calendar"] == "night"


@pytest.mark.parametrize(
    ("stored", "choice", "day", "changes"),
    [
        ({}, "Opted out until", "2099-12-31", {"opt_out": True, "until": "2099-12-31"}),
        ({"until": "2099-12-31"}, "Opted out until", "2099-12-24", {"opt_out": True, "until": "2099-12-24"}),
        ({"opt_out": True, "until": "2099-12-31"}, "Takes part", "", {"opt_out": None, "until": None, "opt_in": True}),
        ({"opt_in": True}, "As tags and settings say", "", {"opt_in": None}),
        ({"opt_out": False}, "Takes part", "", {"opt_out": None, "opt_in": True}),
    ],
)
def test_participation_is_one_choice_of_three_keys(
    looking: Looking, stored: dict[str, Any], choice: str, day: str, changes: dict[str, Any]
) -> None:
    looking.world.units["web"]["item"] = stored
    page = looking.go("units/web/policy")
    last = page.get_by_label("Last day of the opt-out")
    expect(last).to_be_enabled(enabled="until" in stored)
    expect(page.get_by_label("As stored (opt_out: false)")).to_have_count(int(stored == {"opt_out": False}))
    preview(page)
    expect(page.get_by_text("You have changed nothing.")).to_be_visible()
    page.get_by_label(choice).check()
    if day:
        last.fill(day)
    preview(page)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The policy of web is saved.")).to_be_visible()
    assert [body for _, _, body in looking.changes()] == [changes | {"version": 0}]


def test_a_day_that_is_past_is_explained_at_the_choice(looking: Looking) -> None:
    page = looking.go("units/web/policy")
    page.get_by_label("Opted out until").check()
    last = page.get_by_label("Last day of the opt-out")
    last.fill("2020-01-01")
    preview(page)
    expect(last).to_be_focused()
    expect(last).to_have_accessible_description(re.compile("is '2020-01-01', must be 2026-11-23 or later"))
