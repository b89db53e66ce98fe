"""Tests the page in a browser: the overview, old data, filters in the address, shortcuts and charts."""

from __future__ import annotations

import re
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from cli.client.api import Answer
from cli.web.overview_reader import OverviewReader
from tests import accessibility
from tests.patience import PATIENCE
from tests.unit.cli.conftest import event
from tests.unit.cli.web.page.conftest import Looking
from tests.unit.cli.web.page_world import RUN, run, termination
from troop.shared import moments

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
    looking.server.overview = OverviewReader(reader.client, reader.settings, reader.basis)


def tile(page: Page, title: str) -> Locator:
    return page.get_by_role("region", name=title, exact=True)


def opened(looking: Looking) -> Page:
    """Opens the overview, as the command has it that has read nothing before."""
    forget(looking)
    page = looking.go("overview")
    page.reload()
    return page


def weekly() -> list[dict[str, Any]]:
    """Returns a recovery in each of six weeks, up to today."""
    return [event("web", today(7 * n), recovery_seconds=20.0) for n in range(6)]


def test_the_overview_answers_what_goes_on(looking: Looking) -> None:
    world = looking.world
    at = datetime.now(UTC) - timedelta(minutes=22)
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    flight = {"at": moments.iso(max(at, midnight)), "terminated_at": moments.iso(at), "recovery_seconds": None}
    flight["recover_by"] = moments.iso(at + timedelta(minutes=30))
    world.events = [event("web", today(), "TERMINATED", **flight), event("ledger", today())]
    world.switch |= {"leashed": False}
    cost = {"amount": 0.007812, "currency": "USD", "items": [], "unknown": []}
    running = run(status="RUNNING", ended_at=None, at=f"{today()}T00:00:00.000Z")
    world.runs = {RUN: {"run": running, "cells": [], "resources": [], "cost_so_far": cost}}
    page = opened(looking)
    expect(tile(page, "Chaos")).to_contain_text("hits instances.")
    expect(tile(page, "Chaos")).to_contain_text("Next tick:")
    expect(tile(page, "Today")).to_contain_text("web recovering, 22 of 30 minutes")
    expect(page.get_by_role("row", name=re.compile("ledger crash recovered"))).to_be_visible()
    expect(
        page.get_by_role("row", name=re.compile("web crash terminated .* recovering, 22 of 30 minutes"))
    ).to_be_visible()
    expect(tile(page, "Next")).to_contain_text(re.compile(r"\d+ expected"))
    expect(tile(page, "Units")).to_contain_text("3 taking part")
    expect(tile(page, "Cost")).to_contain_text("$1.29 this month")
    expect(tile(page, "Cost")).to_contain_text("$0.00781 so far")
    expect(page.get_by_role("img")).to_have_count(0)  # neither a year of empty days nor a chart of one point
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


OK = {"name": "alarms", "status": "ok", "value": 0, "threshold": 0, "detail": "no alarm is on", "todo": ""}


def test_needs_of_a_person_come_first_with_the_most_urgent_on_top(looking: Looking) -> None:
    world = looking.world
    command = "aws sns subscribe --topic-arn arn:aws:sns:eu-central-1:111122223333:T --protocol email"
    few = {"name": "subscribers", "status": "warn", "value": 0, "threshold": 1, "detail": "no subscriber"}
    few |= {"todo": "subscribe", "commands": [command], "runbook": "https://wiki.example/runbook#who-receives-alarms"}
    out = LATE | {"name": "units-unrecovered", "detail": "out of chaos: orders"}
    world.checks = [OK, few, out, LATE]
    world.add("orders", unrecovered=f"{today()}#orders")
    world.add("bad", problem="tag troop:probability is 'often'")
    lost = event("orders", today(), "UNRECOVERED", detail="capacity 1 of 2", recovery_seconds=None)
    lost["launch_failure"] = "Launch template does not exist"
    lost["terminated_at"] = lost["hit_at"] = moments.iso(datetime.now(UTC) - timedelta(minutes=31))
    world.events = [lost]
    page = opened(looking)
    urgent = tile(page, "What needs a person")
    rows = urgent.get_by_role("listitem")
    expect(rows).to_have_count(4)  # the check of units that did not recover would repeat one of them
    expect(rows.nth(0)).to_contain_text(
        "Last tick came at 23 Nov 2026, 09:00:00 UTC; 3 have been due", ignore_case=True
    )
    expect(rows.nth(1)).to_contain_text("orders: 3 of 3 in service, hit 31 minutes ago.")
    expect(rows.nth(1)).to_contain_text("Launch template does not exist.")
    expect(rows.nth(2).get_by_role("link", name="runbook")).to_have_attribute(
        "href", "https://wiki.example/runbook#who-receives-alarms"
    )
    expect(rows.nth(2).locator("code")).to_have_text(command)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    rows.nth(2).get_by_role("button", name="Copy").click()
    expect(page.get_by_text("Copied.")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == command
    expect(rows.nth(3)).to_contain_text("bad is skipped: tag troop:probability is 'often'.")
    first = page.locator("main section").first
    expect(first).to_have_attribute("aria-label", "What needs a person")


def test_unit_is_returned_to_chaos_where_it_is_reported(looking: Looking) -> None:
    looking.world.add("api/lost", unrecovered=f"{today()}#api/lost")
    looking.world.checks = [OK]
    page = opened(looking)
    page.get_by_role("button", name="Return to chaos … api/lost").click()
    page.get_by_role("dialog").get_by_role("button", name="Return to chaos").click()
    expect(page.get_by_text("All 1 checks pass.")).to_be_visible()
    assert looking.changes() == [("PATCH", "groups/api~2Flost", {"unrecovered": False})]
    expect(tile(page, "Units")).to_contain_text("4 taking part")


def test_a_broken_unit_and_one_below_its_strength_need_a_person(looking: Looking) -> None:
    world = looking.world
    world.checks = [OK]
    broken = termination("web", today(1))
    broken["verdict"] |= {"value": "BROKEN", "why": "alarm web-5xx went off"}
    lost = {"recovered_at": None, "recovery_seconds": None, "verdict": None, "at": moments.iso(datetime.now(UTC))}
    world.events = [termination(unit, today(), "UNRECOVERED", **lost) for unit in ("weak", "strong")] + [broken]
    for unit, in_service in (("weak", 2), ("strong", 3)):  # both were returned to chaos
        world.add(unit)
        world.units[unit]["in_service"] = in_service
    world.units["web"] |= {"unrecovered": broken["event_id"], "left_for": "broken"}
    rows = tile(opened(looking), "What needs a person").get_by_role("listitem")
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_contain_text("broken web: 3 of 3 in service")
    expect(rows.nth(0)).to_contain_text("alarm web-5xx went off.")
    expect(rows.nth(1)).to_contain_text("weak is back in chaos, with 2 of 3 in service.")
    rows.nth(0).get_by_role("button", name="Return to chaos").click()
    dialog = looking.page.get_by_role("dialog")
    expect(dialog).to_contain_text("alarm web-5xx went off.")
    dialog.get_by_role("button", name="Return to chaos").click()
    expect(rows).to_have_count(1)
    assert looking.changes() == [("PATCH", "groups/web", {"unrecovered": False})]


def test_the_deployments_own_halt_is_on_top_and_is_resumed_there(looking: Looking) -> None:
    events = [f"{today()}#ledger", "od#api/orders#key"]
    why = "2 causes within an hour: ledger-5xx of ledger, orders-5xx of api/orders"
    looking.world.switch |= {"halted": True, "itself": {"at": f"{today()}T10:00:00.000Z", "why": why, "events": events}}
    looking.world.checks = [OK, LATE]
    page = opened(looking)
    row = tile(page, "What needs a person").get_by_role("listitem").first
    expect(row).to_contain_text(f"10:00:00 UTC: {why}.")
    expect(row.get_by_role("link", name="api/orders")).to_have_attribute("href", "#/events/od~api~2Forders~23key")
    expect(row.get_by_role("link", name="ledger")).to_have_attribute("href", f"#/events/{today()}~ledger")
    expect(page.locator("#switch")).to_contain_text(f"the deployment halted itself: {why}")
    assert accessibility.findings(page) == []
    assert accessibility.overflow(page) == 0
    row.get_by_role("button", name="Resume").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Broken units stay out of chaos until their owners return them.")
    expect(dialog).to_contain_text(why)
    dialog.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("Resumed: decisions continue with the next tick.")).to_be_visible()
    expect(tile(page, "What needs a person")).not_to_contain_text("halted itself")
    assert looking.changes() == [("PATCH", "switch", {"halted": False})]


def test_results_of_checks_before_a_resumption_and_a_return_are_left_out(looking: Looking) -> None:
    """The checks are read every two minutes, and the API repeats for seconds what it has found."""
    world, halt = looking.world, {"at": f"{today()}T10:00:00.000Z", "why": "1 cause", "events": [f"{today()}#web"]}
    world.switch |= {"halted": True, "itself": halt}
    world.units["web"] |= {"unrecovered": f"{today()}#web", "left_for": "broken"}
    world.checks = [LATE | {"name": name, "detail": "stale"} for name in ("units-broken", "halted-itself")]
    page = opened(looking)
    rows = tile(page, "What needs a person").get_by_role("listitem")
    expect(rows).to_have_count(2)
    for row, button in ((0, "Resume"), (0, "Return to chaos")):
        rows.nth(row).get_by_role("button", name=button).click()
        page.get_by_role("dialog").get_by_role("button", name=button).click()
        expect(rows).to_have_count(1 - (button != "Resume"))
    expect(tile(page, "Units")).to_contain_text("3 taking part")
    expect(tile(page, "What needs a person")).not_to_contain_text("stale")


def test_events_of_today_show_their_verdicts(looking: Looking) -> None:
    waiting = termination("ledger", today(), verdict=None)
    broken = termination("web", today())
    broken["verdict"] |= {"value": "BROKEN", "why": "alarm web-5xx went off"}
    looking.world.events = [broken, waiting]
    page = opened(looking)
    expect(tile(page, "Today")).to_contain_text("2 recovered 1 broken")
    expect(tile(page, "Today")).to_contain_text("ledger recovered; its verdict is expected at 10:04 UTC")
    expect(page.get_by_role("row", name=re.compile("web crash recovered broken"))).to_contain_text(
        "alarm web-5xx went off"
    )
    expect(page.get_by_role("row", name=re.compile("ledger crash recovered due 10:04 UTC"))).to_be_visible()
    tile(page, "Today").get_by_role("link", name="1 broken").click()
    expect(page.get_by_label("Verdict")).to_have_value("BROKEN")


def test_without_the_salt_the_next_terminations_are_odds(looking: Looking) -> None:
    looking.server.ahead.salt = None  # type: ignore[attr-defined]
    page = opened(looking)
    expect(tile(page, "Next")).to_contain_text("about 0.6 hits a business day")
    expect(tile(page, "Next")).to_contain_text(
        re.compile("The odds of 3 units that take part. Next: .*you may not read it")
    )


def test_no_part_waits_for_another_and_each_shows_that_it_loads(
    looking: Looking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a large account, health and units take many seconds."""
    may_end, request = threading.Event(), looking.world.request

    def slow(method: str, path: str, *rest: Any) -> Answer:
        if path in ("health", "groups"):
            may_end.wait(PATIENCE)
        return request(method, path, *rest)

    monkeypatch.setattr(looking.world, "request", slow)
    page = opened(looking)
    try:
        expect(tile(page, "Today")).to_contain_text("No hit so far.")
        expect(tile(page, "Cost")).to_contain_text("this month")
        heights = page.evaluate(HEIGHTS)
        for title in ("Units", "Next", "What needs a person"):
            expect(tile(page, title)).to_have_attribute("aria-busy", "true")
        assert accessibility.findings(page) == []
        page.get_by_role("button", name="Halt").click()  # the browser has a connection left
        page.get_by_role("dialog").get_by_role("button", name="Halt").click()
        expect(page.locator("#switch")).to_contain_text("halted")
    finally:
        may_end.set()
    expect(page.locator("[aria-busy=true]")).to_have_count(0)
    assert page.evaluate(HEIGHTS) == heights


HEIGHTS = "[...document.querySelectorAll('.tiles')].map((one) => one.offsetHeight)"


def test_units_that_became_slower_are_one_sentence(looking: Looking) -> None:
    days = [today(n) for n in range(2, 8)]
    looking.world.events = [
        event("web", today(1), recovery_seconds=300.0),
        *(event("web", day, recovery_seconds=100.0) for day in days),
    ]
    page = opened(looking)
    expect(
        page.get_by_text("In the last 30 days, 0 of 1 unit always recovered within the usual time.")
    ).to_contain_text("Slower: web (3 times as long).")


def test_the_letter_of_the_last_week_is_at_the_end(looking: Looking) -> None:
    now = datetime.now(UTC)
    last = today(now.weekday() + 4)  # a day of the last week in every time zone
    looking.world.events = [termination("web", last, owner="<b>shop</b>"), termination("ledger", last)]
    page = opened(looking)
    expect(page.get_by_role("heading", name="Last week")).to_be_visible()
    expect(page.get_by_text("2 terminations of 2 units, 2 HELD.")).to_be_visible()
    owners = page.get_by_role("listitem").filter(has_text="1 termination, 1 HELD; recovered in")
    expect(owners).to_have_count(2)
    expect(owners.filter(has_text="<b>shop</b>: ")).to_be_visible()


def test_the_week_that_has_begun_has_its_mark_in_the_chart(looking: Looking) -> None:
    looking.world.events = weekly()
    page = opened(looking)
    expect(tile(page, "Today")).to_contain_text("1 event")
    usual = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--accent').trim()")
    expect(page.get_by_role("img", name=re.compile("Median recovery")).locator(f"path[fill='{usual}']")).to_have_count(
        6
    )


MONDAYS = {f"{day:%b} {day.day}" for n in range(-1, 60) if not (day := datetime.now(UTC) - timedelta(days=n)).weekday()}
MONTHS = {f"{datetime(2026, month, 1, tzinfo=UTC):%b}" for month in range(1, 13)}


@pytest.mark.parametrize(("first", "labels"), [(28, MONDAYS), (200, MONTHS)])
def test_the_chart_of_a_new_deployment_shows_weeks_and_an_older_ones_months(
    looking: Looking, first: int, labels: set[str]
) -> None:
    looking.world.events = [*weekly(), event("web", today(first))]
    page = opened(looking)
    chart = page.get_by_role("img", name=re.compile("Median recovery"))
    labelled = chart.locator("text").filter(has_text=re.compile("[A-Z]"))
    expect(labelled.first).to_be_visible()
    texts = labelled.all_text_contents()
    assert len(texts) >= 5
    assert set(texts) <= labels


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
    states = looking.server.overview.part("units")["value"]["by_state"]
    assert len(states) == 5
    looking.page.get_by_role("button", name="Refresh").click()
    for state, number in states.items():
        page = looking.go("overview")
        tile(page, "Units").get_by_role("link", name=re.compile(f"{number} {state}")).click()
        expect(page.get_by_label("Show", exact=True)).to_have_value(state)
        expect(page.locator("tbody tr")).to_have_count(number)


def test_a_page_that_was_open_overnight_looks_old_at_once(timed: Looking) -> None:
    page = timed.page
    timed.go("overview")
    page.reload()
    expect(tile(page, "Units")).to_contain_text("taking part")
    expect(page.locator("[aria-busy=true]")).to_have_count(0)
    expect(page.locator(".tile.old, .urgent.old, #switch.old")).to_have_count(0)
    for path in ("switch", "events", "health", "groups", "benchmarks", "fleets"):
        timed.world.refusals["GET", path] = [BROKEN]
    page.route("**/*", lambda route: route.abort())
    page.clock.fast_forward("08:00:00")
    expect(page.locator("#switch.old")).to_contain_text("8 hours ago")
    expect(page.locator(".tile.old")).to_have_count(6)
    expect(page.locator(".urgent.old")).to_contain_text("8 hours ago")
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
    expect(page.locator(".urgent.unread")).to_contain_text("The health cannot be read")
    expect(tile(page, "Today")).not_to_have_class(re.compile("unread"))
    assert accessibility.findings(page) == []


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
