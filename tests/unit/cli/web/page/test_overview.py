"""Tests the page in a browser: the overview, old data, filters in the address, shortcuts and charts."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import expect

from cli.client.api import Answer
from cli.shared.errors import CliError, Exit
from cli.web.overview_reader import OverviewReader
from tests.unit.cli.conftest import event
from tests.unit.cli.web.page.conftest import Looking
from tests.unit.cli.web.page_world import RUN, run

LATE = {
    "name": "ticks-missing",
    "status": "fail",
    "value": 3,
    "threshold": 0,
    "detail": "the last tick came at 2026-11-23T09:00:00Z; 3 have been due since 2026-11-23T09:15:00Z",
    "todo": "check the schedules",
}
BROKEN = Answer(500, {"statusCode": 500, "message": "it is broken"})


def today(days_ago: int = 0) -> str:
    return (datetime.now(UTC) - timedelta(days=days_ago)).date().isoformat()


def forget(looking: Looking) -> None:
    """Drops what the command has read for earlier views."""
    reader = looking.server.overview
    looking.server.overview = OverviewReader(reader.client, reader.next_tick, reader.read_ungrouped)


def weekly() -> list[dict[str, Any]]:
    """Returns a recovery in each of six weeks, up to today."""
    return [event("web", today(7 * n), recovery_seconds=20.0) for n in range(6)]


def test_the_overview_answers_what_goes_on(looking: Looking) -> None:
    world = looking.world
    world.checks = [LATE]
    world.events = [event("web", today(), "UNRECOVERED"), event("ledger", today(9))]
    world.switch |= {"leashed": False}
    cost = {"amount": 0.007812, "currency": "USD", "items": [], "unknown": []}
    document = {"run": run(status="RUNNING", ended_at=None), "cells": [], "resources": [], "cost_so_far": cost}
    world.runs = {RUN: document}
    forget(looking)
    page = looking.go("overview")
    page.reload()
    tile = lambda title: page.get_by_role("region", name=title)  # noqa: E731
    expect(tile("Chaos")).to_contain_text("Unleashed: terminates instances.")
    expect(tile("Ticks").locator(".badge")).to_have_text("late")
    expect(tile("Ticks")).to_contain_text("last tick came at 23 Nov 2026, 09:00:00 UTC; 3 have been due")
    expect(tile("Ticks")).to_contain_text("Next:")
    expect(tile("Units")).to_contain_text("3 taking part")
    expect(tile("Benchmarks")).to_contain_text("$0.00781 so far")
    expect(page.get_by_role("img", name=re.compile("1 not recovered"))).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("12s 12s"))).to_be_visible()  # two weeks: words, and no chart
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_week_that_has_begun_has_its_mark_in_the_chart(looking: Looking) -> None:
    looking.world.events = weekly()
    forget(looking)
    page = looking.go("overview")
    page.reload()
    expect(page.get_by_role("region", name="Today")).to_contain_text("1 event")
    usual = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--accent').trim()")
    expect(page.get_by_role("img", name=re.compile("Median recovery")).locator(f"path[fill='{usual}']")).to_have_count(
        6
    )


MONDAYS = {f"{day:%b} {day.day}" for n in range(-1, 60) if not (day := datetime.now(UTC) - timedelta(days=n)).weekday()}
MONTHS = {f"{datetime(2026, month, 1, tzinfo=UTC):%b}" for month in range(1, 13)}


@pytest.mark.parametrize(("first", "labels"), [(0, MONDAYS), (200, MONTHS)])
def test_the_chart_of_a_new_deployment_shows_weeks_and_an_older_ones_months(
    looking: Looking, first: int, labels: set[str]
) -> None:
    looking.world.events = [*weekly(), event("web", today(first))]
    forget(looking)
    page = looking.go("overview")
    page.reload()
    chart = page.get_by_role("img", name=re.compile("Median recovery"))
    labelled = chart.locator("text").filter(has_text=re.compile("[A-Z]"))
    expect(labelled.first).to_be_visible()
    texts = labelled.all_text_contents()
    assert len(texts) >= 5
    assert set(texts) <= labels


def test_instances_outside_groups_are_listed(looking: Looking) -> None:
    one = {"instance_id": "i-0bastion", "name": "<b>bastion</b>", "type": "t3.micro", "state": "running", "zone": "a"}
    reader = looking.server.overview
    reader.read_ungrouped = lambda: {"count": 1200, "limited": True, "instances": [one]}
    forget(looking)
    page = looking.go("overview")
    page.reload()
    tile = page.get_by_role("region", name="Outside Auto Scaling groups")
    expect(tile).to_contain_text("1,200+ instances")
    tile.get_by_text("The first 1").click()
    expect(tile.get_by_role("listitem")).to_contain_text("<b>bastion</b> i-0bastiont3.micro, a, running")
    expect(tile.get_by_role("button")).to_have_count(0)

    def denied() -> dict[str, Any]:
        raise CliError(Exit.FORBIDDEN, "you may not")

    looking.server.overview.read_ungrouped = denied
    forget(looking)
    page.get_by_role("button", name="Refresh").click()
    expect(tile).to_contain_text("Instances cannot be read: you may not.")


def test_the_dangerous_state_is_not_green(looking: Looking) -> None:
    page = looking.page
    for leashed, kind in ((False, "live"), (True, "info")):
        looking.world.switch["leashed"] = leashed
        page.reload()
        expect(page.locator("#switch .badge")).to_have_class(re.compile(kind))


def test_counts_of_states_lead_to_as_many_units(looking: Looking) -> None:
    world = looking.world
    world.add("closing", opt_out=True)
    world.add("sick", unrecovered="2026-11-20#sick")
    world.add("bad", problem="tag troop:probability is 'often'")
    world.add("vault", groups=2, protected="troop:protected")
    forget(looking)
    states = looking.server.overview.units()["units"]["value"]["by_state"]
    assert len(states) == 5
    looking.page.get_by_role("button", name="Refresh").click()
    for state, number in states.items():
        page = looking.go("overview")
        page.get_by_role("region", name="Units").get_by_role("link", name=re.compile(f"{number} {state}")).click()
        expect(page.get_by_label("Show", exact=True)).to_have_value(state)
        expect(page.locator("tbody tr")).to_have_count(number)


def test_a_page_that_was_open_overnight_looks_old_at_once(timed: Looking) -> None:
    page = timed.page
    timed.go("overview")
    page.reload()
    expect(page.get_by_role("region", name="Units")).to_contain_text("taking part")
    expect(page.locator(".tile.old, #switch.old")).to_have_count(0)
    for path in ("switch", "events", "health", "groups", "benchmarks", "fleets"):
        timed.world.refusals["GET", path] = [BROKEN]
    page.route("**/*", lambda route: route.abort())
    page.clock.fast_forward("08:00:00")
    expect(page.locator("#switch.old")).to_contain_text("8 hours ago")
    expect(page.locator(".tile.old")).to_have_count(7)
    expect(page.get_by_role("alert")).to_contain_text("This view is not current")
    page.unroute_all()
    timed.world.refusals.clear()
    page.get_by_role("button", name="Refresh").click()
    page.get_by_role("button", name="Check again").click()
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.locator("#switch.old")).to_have_count(0)


def test_a_part_that_fails_says_so_and_the_others_stay_current(looking: Looking) -> None:
    looking.world.refusals["GET", "health"] = [BROKEN]
    page = looking.go("overview")
    forget(looking)
    page.get_by_role("button", name="Refresh").click()
    expect(page.locator(".tile.unread").first).to_contain_text("Health cannot be read")
    expect(page.get_by_role("region", name="Today")).not_to_have_class(re.compile("unread"))


def test_filters_are_in_the_address_and_back_restores_them(looking: Looking) -> None:
    looking.world.add("closing", opt_out=True, owner="finance")
    looking.world.add("books", owner="finance")
    page = looking.page
    page.get_by_role("button", name="Refresh").click()
    page.get_by_label("Owner").select_option("finance")
    expect(page.locator("tbody tr")).to_have_count(2)
    page.get_by_label("Show", exact=True).select_option("opted out")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("button", name="Unit", exact=True).click()
    assert page.url.endswith("#/units?show=opted+out&owner=finance&sort=-unit")
    address = page.url
    page.go_back()
    page.go_back()
    expect(page.get_by_label("Show", exact=True)).to_have_value("all")
    expect(page.locator("tbody tr")).to_have_count(2)
    page.go_forward()
    expect(page.locator("tbody tr")).to_have_count(1)
    other = page.context.new_page()
    other.goto(address)
    expect(other.locator("tbody tr")).to_have_count(1)
    expect(other.get_by_label("Owner")).to_have_value("finance")
    other.get_by_role("link", name="closing").click()
    other.get_by_role("link", name="← Units").click()
    expect(other.get_by_label("Owner")).to_have_value("finance")
    other.goto(f"{looking.server.address}/#/units?show=in&sort=__proto__")
    expect(other.locator("tbody tr")).to_have_count(4)
    other.goto(f"{looking.server.address}/#/units?show=no+such+state")
    expect(other.get_by_text("0 of 5")).to_be_visible()


def test_a_day_of_events_has_an_address(looking: Looking) -> None:
    looking.world.events = [event("web", "2026-11-20"), event("ledger", "2026-11-19")]
    page = looking.go("events?day=2026-11-19")
    expect(page.locator("tbody tr")).to_have_count(1)
    query = next(query for _, path, query in reversed(looking.world.calls) if path == "events" and "until" in query)
    assert (query["since"], query["until"]) == ("2026-11-18T10:00:00.000Z", "2026-11-20T14:00:00.000Z")


def test_shortcuts_work_but_never_while_somebody_types(looking: Looking) -> None:
    page = looking.page
    page.locator("h1").focus()
    page.keyboard.press("/")
    expect(page.get_by_label("Search")).to_be_focused()
    page.keyboard.type("gu?jk/")
    expect(page.get_by_label("Search")).to_have_value("gu?jk/")
    expect(page.locator("dialog")).to_have_count(0)
    page.get_by_label("Search").fill("")
    page.locator("h1").focus()
    for key, row in (("j", "api/orders"), ("j", "ledger"), ("j", "web"), ("j", "web"), ("k", "ledger")):
        page.keyboard.press(key)
        expect(page.get_by_role("link", name=row)).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Keyboard shortcuts")
    page.keyboard.press("j")
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="ledger")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="ledger")).to_be_focused()
    page.keyboard.press("g")
    page.keyboard.press("e")
    expect(page.get_by_role("heading", name="Events")).to_be_visible()


def test_charts_follow_the_colour_scheme_and_end_with_their_view(looking: Looking) -> None:
    looking.world.events = weekly()
    forget(looking)
    page = looking.go("overview")
    accent = "getComputedStyle(document.documentElement).getPropertyValue('--accent').trim()"
    light = page.evaluate(accent)
    expect(page.locator(f".chart path[fill='{light}']")).to_have_count(6)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(accent)
    assert dark != light
    expect(page.locator(f".chart path[fill='{dark}']")).to_have_count(6)
    looking.go("calendar")
    expect(page.get_by_role("heading", name="Calendar")).to_be_visible()
    page.wait_for_function("charts.length === 0")


def test_the_page_leashes_and_never_unleashes(looking: Looking) -> None:
    looking.world.switch["leashed"] = False
    page = looking.go("overview")
    page.reload()
    page.get_by_role("button", name="Leash …").click()
    page.get_by_role("dialog").get_by_role("button", name="Leash", exact=True).click()
    expect(page.locator("#switch")).to_contain_text("dry run")
    assert looking.changes() == [("PATCH", "switch", {"leashed": True})]
    expect(page.get_by_role("button", name=re.compile("leash", re.IGNORECASE))).to_have_count(0)
