"""Tests the page in a browser: who changed what in the whole deployment."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from cli.client.api import Answer
from tests.unit.cli.conftest import change
from tests.unit.cli.web.page.conftest import Looking


def test_changes_have_author_and_values_before_and_after(looking: Looking) -> None:
    looking.world.log = [
        change(None, halted=(None, True), reason=(None, "incident <b>4711</b>")),
        change("api/orders", min_healthy=(2, 3), owner=(None, "shop")),
        change("web", unrecovered=("2026-11-19#web", None)),
        change(None, itself=({"at": "2026-11-19T10:00:00.000Z", "why": "2 causes", "events": []}, None)),
    ]
    page = looking.go("changes")
    expect(page.get_by_text("4 changes")).to_be_visible()
    rows = page.locator("tbody tr")
    expect(rows.nth(0)).to_contain_text(re.compile("the switch.*ada.*halted: incident <b>4711</b>"))
    expect(rows.nth(1)).to_contain_text(re.compile("api/orders.*ada.*min_healthy: 2 → 3.*owner: not set → shop"))
    expect(rows.nth(2)).to_contain_text("returned to chaos")
    expect(rows.nth(3)).to_contain_text(re.compile("resumed.*ended the deployment's own halt: 2 causes"))
    rows.nth(1).get_by_role("link", name="api/orders").click()
    expect(page.get_by_role("heading", name="api/orders", level=1)).to_be_visible()
    page.get_by_role("link", name="All changes of this unit").click()
    expect(page.get_by_text("1 change", exact=True)).to_be_visible()


def test_filters_are_in_the_address_and_reach_the_api(looking: Looking) -> None:
    at = "2026-01-20T10:00:00.000Z"
    looking.world.log = [change(None, at, leashed=(True, False)), change("web", at, owner=(None, "us"))]
    page = looking.go("changes")
    page.get_by_label("What").select_option("The switch")
    expect(page.locator("tbody tr")).to_have_count(1)
    assert page.url.endswith("#/changes?of=switch")
    page.get_by_label("Unit").fill("web")
    expect(page.locator("tbody tr").get_by_role("link", name="web")).to_be_visible()
    expect(page.get_by_label("What")).to_have_value("")  # the switch belongs to no unit
    assert page.url.endswith("#/changes?unit=web")
    page.get_by_label("Period").select_option("Last week")
    expect(page.get_by_text("No changes match these filters.")).to_be_visible()
    _, path, query = looking.world.calls[-1]
    assert (path, query["unit"], "since" in query, "switch" in query) == ("changes", "web", True, False)
    page.go_back()
    expect(page.locator("tbody tr")).to_have_count(1)


def test_older_changes_are_loaded_once_on_demand(looking: Looking) -> None:
    looking.world.log = [change(f"unit-{number}", owner=(None, "us")) for number in range(60)]
    page = looking.go("changes")
    expect(page.get_by_text("50 changes loaded so far")).to_be_visible()
    looking.world.refusals["GET", "changes"] = [Answer(500, {"statusCode": 500, "message": "it is broken"})]
    page.get_by_role("button", name="Load older changes").click()
    expect(page.get_by_role("alert")).to_contain_text("it is broken")
    del looking.world.refusals["GET", "changes"]
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_text("60 changes", exact=True)).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(60)
    page.keyboard.press("g")
    page.keyboard.press("h")
    assert page.url.endswith("#/changes")
