"""Tests the page in a browser: what could make a recovery fail, and what leftovers cost."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from cli.client.api import Answer
from tests.unit.cli.conftest import EXEMPTION, READ, risk
from tests.unit.cli.web.page.conftest import Looking
from tests.unit.cli.web.page_world import World


@pytest.fixture
def world(world: World) -> World:
    world.reading = READ
    world.risks = [
        risk("no-alarm", "ledger", "medium", exemption=EXEMPTION),
        risk("no-room", "web", "medium", gone_since="2026-11-19T03:23:00.000Z"),
        risk("one-instance", "api/orders", "medium", unknown="groups could not be read"),
        risk("one-zone", "web", "high", owner="shop", evidence={"zones": ["a", "<b>"]}, confirmed="2026-11-19#web"),
        risk("unattached-volume", "vol-1", "low", "volume", monthly={"amount": 8.8, "currency": "USD"}),
        risk("unattached-volume", "vol-2", "low", "volume", monthly={"amount": 1.1, "currency": "USD"}),
        risk("unused-address", "eipalloc-1", "low", "address"),
        risk("unused-template", "lt-1", "low", "launch template"),
    ]
    return world


def test_worst_risks_come_first_with_evidence_and_remedy(looking: Looking) -> None:
    page = looking.go("risks")
    expect(page.locator("h2")).to_have_text(["High", "Medium", "Leftovers"])
    high = page.get_by_role("region", name="High")
    expect(high).to_contain_text("What to do: Give the group subnets in two or more zones.")
    row = high.locator("tbody tr")
    expect(row).to_contain_text(re.compile("web.*shop.*zones: a, <b>.*2026-11-18.*2026-11-19#web"))
    expect(row.get_by_role("link", name="2026-11-19#web")).to_have_attribute("href", "#/events/2026-11-19~web")
    expect(page.get_by_role("region", name="Medium")).to_contain_text("not known now groups could not be read")
    row.get_by_role("link", name="web", exact=True).click()
    expect(page.get_by_role("heading", name="web", level=1)).to_be_visible()


def test_leftovers_have_their_monthly_price_and_the_sum(looking: Looking) -> None:
    leftovers = looking.go("risks").get_by_role("region", name="Leftovers")
    expect(leftovers).to_contain_text("At most $9.90 a month. The price of 1 leftover is unknown.")
    prices = {"vol-1": "$8.80", "vol-2": "$1.10", "eipalloc-1": "unknown", "lt-1": "\N{EN DASH}"}
    for subject, price in prices.items():
        expect(leftovers.locator("tr", has_text=subject).get_by_role("cell").last).to_have_text(price)


def test_accepted_risks_and_those_that_are_gone_are_shown_on_demand(looking: Looking) -> None:
    page = looking.go("risks")
    expect(page.get_by_text("6 risks; 1 more that somebody has accepted.")).to_be_visible()
    page.get_by_label("Also exempt ones").check()
    expect(page.locator("tr", has_text="ledger")).to_contain_text("exempt until 2027-03-31 by ada: moves soon")
    page.get_by_label("Also those that are gone").check()
    expect(page.get_by_text("gone since 2026-11-19")).to_be_visible()
    expect(page.get_by_text("8 risks.")).to_be_visible()
    page.get_by_label("Severity").select_option("high")
    page.get_by_label("Search").fill("SHOP")
    expect(page.locator("tbody tr")).to_have_count(1)
    assert page.url.endswith("#/risks?q=SHOP&severity=high&exempt=true&gone=true")
    page.get_by_label("Search").fill("nobody")
    expect(page.get_by_text("No risks match.")).to_be_visible()


def test_page_of_a_unit_leads_to_its_own_risks_alone(looking: Looking) -> None:
    looking.world.risks.append(risk("one-zone", "web-2", "high"))
    page = looking.go("units/web")
    page.get_by_role("link", name="Risks of this unit").click()
    expect(page.get_by_text("1 risk (only of web). All risks")).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="All risks").click()
    expect(page.locator("tr", has_text="web-2")).to_be_visible()


def test_unread_facts_are_named(looking: Looking) -> None:
    looking.world.reading = READ | {"unread": ["images could not be read: AccessDenied"], "unrecorded": 3}
    page = looking.go("risks")
    expect(page.get_by_text("Not known: images could not be read: AccessDenied.")).to_be_visible()
    expect(page.get_by_text("3 more of the lowest severities are not recorded.")).to_be_visible()
    expect(page.get_by_text("2 units, 1 volume.")).to_be_visible()


def test_before_the_first_reading_the_view_says_when_that_comes(looking: Looking) -> None:
    looking.world.risks, looking.world.reading = [], None
    expect(looking.go("risks").get_by_text("The account is not read yet. That happens once a day")).to_be_visible()
    expect(looking.go("overview").get_by_text("The account is not read yet.")).to_be_visible()


def test_a_refused_reading_can_be_tried_again(looking: Looking) -> None:
    looking.world.refusals["GET", "risks"] = [Answer(500, {"statusCode": 500, "message": "it is broken"})] * 9
    page = looking.go("risks")
    expect(page.get_by_role("alert")).to_contain_text("it is broken")
    looking.world.refusals.clear()
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("region", name="High")).to_be_visible()


def test_many_risks_by_a_rule_are_unfolded_on_demand(looking: Looking) -> None:
    looking.world.risks = [risk("one-zone", f"web-{number:04d}", "high") for number in range(501)]
    page = looking.go("risks")
    expect(page.locator("tbody tr")).to_have_count(100)
    page.get_by_role("button", name="Show all 501").click()
    expect(page.locator("tbody tr")).to_have_count(501)


def test_the_overview_counts_accepted_risks_not_and_leads_to_the_others(looking: Looking) -> None:
    page = looking.go("overview")
    tile = page.get_by_role("region", name="Risks")
    expect(tile.get_by_role("link")).to_have_text(["1 high", "1 medium", "4 low"])
    expect(tile).to_contain_text("The account was last read at 2026-11-20T03:23:00Z")
    tile.get_by_role("link", name="1 medium").click()
    expect(page.locator("h2")).to_have_text(["Medium"])
    page.keyboard.press("g")
    page.keyboard.press("r")
    assert page.url.endswith("#/risks")
