"""Tests the page in a browser: live events."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Browser, expect

from cli.client.api import Answer
from tests.patience import PAGE_PATIENCE_MS
from tests.unit.cli.conftest import event
from tests.unit.cli.web.page.conftest import HIDDEN, Looking
from tests.unit.cli.web.page_world import termination


def test_new_events_appear_by_themselves_and_are_announced(timed: Looking) -> None:
    timed.world.events = [event("web", "2026-11-20"), event("ledger", "2026-11-19", "UNRECOVERED")]
    page = timed.go("events")
    expect(page.locator("tbody tr")).to_have_count(2)
    page.get_by_label("Status").select_option("UNRECOVERED")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_label("Status").select_option("")
    expect(page.locator("tbody tr")).to_have_count(2)
    timed.world.events.insert(0, event("api/orders", "2026-11-21", "TERMINATED"))
    page.clock.fast_forward(3_000)
    expect(page.locator("#news")).to_have_text("One event: api/orders terminated.")
    expect(page.locator("tbody tr")).to_have_count(3)
    page.get_by_label("Search").fill("ledger")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_label("Live").uncheck()
    expect(page.locator("#liveness")).to_have_text("Not live.")
    call_count = len(timed.world.calls)
    page.clock.fast_forward(10_000)  # the page reads the switch every 30 s, and a busy machine is slow
    page.evaluate("fetch('/icon.svg').then((answer) => answer.text())")
    assert timed.world.calls[call_count:] == []
    page.get_by_label("Live").check()
    expect(page.locator("#liveness")).to_contain_text("Live: updated at")


def test_hidden_page_sends_no_requests(timed: Looking) -> None:
    page = timed.go("events")
    page.reload()
    expect(page.locator("#liveness")).to_contain_text("Live: updated at")
    expect(page.get_by_role("button", name="Halt")).to_be_visible()
    page.evaluate(HIDDEN, True)
    expect(page.locator("#liveness")).to_have_text("Not live while the page is hidden.")
    call_count = len(timed.world.calls)
    page.clock.run_for(120_000)
    page.evaluate("fetch('/icon.svg').then((answer) => answer.text())")  # responses to earlier requests have arrived
    assert timed.world.calls[call_count:] == []
    page.evaluate(HIDDEN, False)
    expect(page.locator("#liveness")).to_contain_text("Live: updated at")
    assert {path for _, path, _ in timed.world.calls[call_count:]} == {"events", "switch"}


def test_times_follow_the_pinned_zones_not_the_browsers(looking: Looking, browser: Browser) -> None:
    """British Columbia keeps -07:00 in the winter of 2026; whether a browser knows depends on its age."""
    looking.world.events = [event("web", "2026-11-20"), event("ledger", "2026-10-30"), event("web", "2025-11-20")]
    context = browser.new_context(locale="en-GB", timezone_id="America/Vancouver")
    page = context.new_page()
    page.set_default_timeout(PAGE_PATIENCE_MS)
    page.goto(looking.server.link())
    page.goto(f"{looking.server.address}/#/events")
    times = page.locator("tbody time")
    expect(times).to_have_text(["20 Nov 2026, 03:00:00 MST", "30 Oct 2026, 03:00:00 PDT", "20 Nov 2025, 02:00:00 PST"])
    context.close()


def test_older_events_are_loaded_by_a_button(looking: Looking) -> None:
    at = [f"2026-11-{30 - n // 10:02d}T10:{59 - n % 10:02d}:00.000Z" for n in range(120)]
    looking.world.events = [event("web", at=at[n], event_id=str(n), id=str(n)) for n in range(120)]
    page = looking.go("events")
    for count in (50, 100, 120):
        expect(page.locator("tbody tr")).to_have_count(count)
        if count < 120:
            page.get_by_role("button", name="Load older events").click()
    expect(page.get_by_role("button", name="Load older events")).to_have_count(0)


def test_more_events_than_one_page_leave_no_gap(timed: Looking) -> None:
    def some(numbers: range) -> list[dict[str, Any]]:
        at = {n: f"2026-11-{10 + n // 60:02d}T10:{n % 60:02d}:00.000Z" for n in numbers}
        return [event(f"u{n:03d}", at=at[n], event_id=str(n), id=str(n)) for n in numbers]

    timed.world.events = some(range(59, -1, -1))
    page = timed.go("events")
    page.get_by_role("button", name="Load older events").click()
    expect(page.locator("tbody tr")).to_have_count(60)
    timed.world.events = some(range(64, -1, -1))
    page.clock.fast_forward(3_000)
    expect(page.locator("tbody tr")).to_have_count(65)
    expect(page.locator("#liveness")).to_contain_text("Live: updated at")
    timed.world.events = some(range(139, -1, -1))
    page.clock.fast_forward(3_000)
    for count in (50, 100, 140):
        expect(page.locator("tbody tr")).to_have_count(count)
        if count < 140:
            page.get_by_role("button", name="Load older events").click()
    units = page.locator("tbody tr td:nth-child(2)").all_inner_texts()
    assert units == [f"u{n:03d}" for n in range(139, -1, -1)]


def test_older_open_events_are_updated_at_most_ten_at_a_time(timed: Looking) -> None:
    events = [event(f"u{n:02d}", at=f"2026-11-20T{12 - n // 60:02d}:{59 - n % 60:02d}:00.000Z") for n in range(66)]
    for number in (*range(52, 64), 65):
        events[number] |= {"status": "TERMINATED", "recovery_seconds": None}
    world, clock = timed.world, timed.page.clock
    world.events = list(events)
    page = timed.go("events")
    page.get_by_role("button", name="Load older events").click()
    expect(page.locator("tbody tr")).to_have_count(66)
    link = page.get_by_role("link", name="u65")
    link.focus()
    for number in (53, 65):
        events[number] |= {"status": "RECOVERED", "recovery_seconds": 31.0}
    world.events = [
        event("new", at="2026-11-20T13:00:00.000Z"),
        *events[:60],
        *events[61:],
    ]  # without u60
    call_count = len(world.calls)
    clock.fast_forward(5_000)
    expect(page.get_by_role("row", name=re.compile("u53"))).to_contain_text("31.0 s")
    expect(page.locator("#news")).to_have_text("One event: u53 recovered.")
    expect(page.get_by_role("link", name="u60")).to_have_count(0)
    expect(page.locator("#liveness")).to_contain_text("13 older events are in progress; each update requests 10")
    assert [path for _, path, _ in world.calls[call_count:]].count("events") == 1
    assert len([path for _, path, _ in world.calls[call_count:] if path.startswith("events/")]) == 10
    clock.fast_forward(5_000)
    expect(page.get_by_role("row", name=re.compile("u65"))).to_contain_text("31.0 s")  # requested in the second update
    expect(page.locator("#liveness")).to_have_text(re.compile("^Live: updated at [0-9:]+ UTC\\.$"))
    expect(link).to_be_focused()
    page.get_by_label("Status").select_option("TERMINATED")
    expect(page.locator("tbody tr")).to_have_count(10)


def test_failed_update_is_shown_and_repeated_later(timed: Looking) -> None:
    events = [event(f"u{n:02d}", at=f"2026-11-20T12:{59 - n:02d}:00.000Z", status="CLAIMED") for n in range(51)]
    world, clock = timed.world, timed.page.clock
    world.events = list(events)
    page = timed.go("events")
    page.get_by_role("button", name="Load older events").click()
    expect(page.locator("tbody tr")).to_have_count(51)
    world.refusals["GET", "events/2026-11-20~u50"] = [Answer(500, {"statusCode": 500, "message": "it broke"})]
    clock.fast_forward(5_000)
    expect(page.locator("#liveness")).to_have_text("Not live: it broke. Next attempt in 9 s.")
    expect(page.locator("tbody tr")).to_have_count(51)
    del world.refusals["GET", "events/2026-11-20~u50"]
    clock.fast_forward(9_000)
    expect(page.locator("#liveness")).to_contain_text("Live: updated at")


def test_malformed_items_of_the_api_are_listed(looking: Looking) -> None:
    malformed = [{"item": "Events: 2026-11-20#web", "why": "'method' is missing"}]
    events = {"events": [event("web")], "malformed": malformed, "cursor": None}
    looking.world.refusals["GET", "events"] = [Answer(200, events)] * 50
    page = looking.go("events")
    text = "Left out, because they are malformed: Events: 2026-11-20#web: 'method' is missing"
    expect(page.get_by_text(text)).to_be_visible()
    expect(page.get_by_role("row")).to_have_count(2)


def test_an_unrecovered_event_says_why_the_last_launch_failed(looking: Looking) -> None:
    looking.world.events = [event("web", detail="capacity 1 of 2 in service", rolled=None)]
    looking.world.events[0] |= {"status": "UNRECOVERED", "recovery_seconds": None, "launch_failure": "quota too low"}
    page = looking.go("events")
    page.reload()
    page.get_by_label("Search").fill("quota")
    expect(page.get_by_role("row", name=re.compile("the last launch failed: quota too low"))).to_be_visible()
    page.get_by_role("link", name="20 Nov 2026").click()
    expect(page.locator(".problem")).to_have_text("capacity 1 of 2 in service. The last launch failed: quota too low.")
    expect(page.get_by_text("Somebody requested it: there was no roll.")).to_be_visible()


def test_verdicts_are_listed_filtered_and_announced(timed: Looking) -> None:
    broken, waiting = termination("ledger", "2026-11-19"), termination("web", verdict=None)
    broken["verdict"] |= {"value": "BROKEN", "why": "alarm ledger-5xx went off"}
    timed.world.events = [waiting, broken, event("api/orders", "2026-11-18")]
    page = timed.go("events")
    cells = page.locator("tbody td:nth-child(4)")
    expect(cells).to_have_text(["due 10:04 UTC", "broken", "\u2013"])
    expect(page.get_by_role("row", name=re.compile("ledger"))).to_contain_text("alarm ledger-5xx went off")
    timed.world.events[0] = termination("web")
    page.clock.fast_forward(5_000)
    expect(cells.first).to_have_text("held")
    expect(page.locator("#news")).to_have_text("One event: web recovered, held.")
    page.get_by_label("Verdict").select_option("BROKEN")
    expect(cells).to_have_text(["broken"])
    assert page.url.endswith("#/events?verdict=BROKEN")
    page.get_by_text("Meaning of each status and verdict").click()
    expect(page.get_by_text("what was recorded cannot tell")).to_be_visible()


def test_an_older_event_that_awaits_its_verdict_is_updated(timed: Looking) -> None:
    waiting = termination("late", "2026-10-01", verdict=None)
    others = [event(f"u{n:02d}", at=f"2026-11-20T{12 - n // 60:02d}:{59 - n % 60:02d}:00.000Z") for n in range(50)]
    timed.world.events = [*others, waiting]
    page = timed.go("events")
    page.get_by_role("button", name="Load older events").click()
    row = page.get_by_role("row", name=re.compile("late"))
    expect(row).to_contain_text("due 10:04 UTC")
    timed.world.events = [*others, termination("late", "2026-10-01")]
    page.clock.fast_forward(5_000)
    expect(row).to_contain_text("held")
