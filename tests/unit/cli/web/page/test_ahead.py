"""Tests the page in a browser: the calendar of the next weeks, and the switch."""

from __future__ import annotations

import re
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import FloatRect, Locator, expect

from cli.client.api import Answer
from tests.patience import PATIENCE
from tests.unit.cli.conftest import event
from tests.unit.cli.web.page.conftest import SETTLED, Looking


def test_the_calendar(looking: Looking) -> None:
    page = looking.go("calendar")
    expect(page.locator("[data-day='2026-12-08']")).to_contain_text("holiday Immaculate Conception")
    expect(page.locator("[data-day='2026-12-04']")).to_contain_text("half day Inventory, 09:00 to 12:00")
    expect(page.locator("[data-day='2026-12-16']")).to_contain_text("freeze Year-end closing")
    expect(page.locator("[data-day='2026-11-23']")).to_contain_text("today")
    expect(page.locator("[data-day='2026-11-23']")).to_contain_text("none left today")
    expect(page.locator(".days > li")).to_have_count(28)
    expect(page.locator(".day li.would").first).to_be_visible()
    page.get_by_label("Ignore leash and halt").check()
    expect(page.locator(".day li.will").first).to_be_visible()
    expect(page.locator(".day li.would")).to_have_count(0)
    page.get_by_label("Period").select_option("2")
    expect(page.locator(".days > li")).to_have_count(14)
    page.get_by_label("Calendar", exact=True).select_option("night")
    expect(page.get_by_text("Open 01:00 to 04:00 in America/New_York")).to_be_visible()


def test_a_year_without_terminations_has_no_key(looking: Looking) -> None:
    looking.world.events = []
    page = looking.go("calendar")
    expect(page.get_by_text("0 hits in a year")).to_be_visible()
    expect(page.locator("ul.key")).to_have_text("")


def test_calendar_of_one_unit_has_an_address(looking: Looking) -> None:
    page = looking.go("calendar?weeks=8")
    expect(page.locator(".days > li")).to_have_count(56)
    page.get_by_label("Unit").fill("LEDG")
    expect(page.get_by_text("of units with LEDG in their name")).to_be_visible()
    hits = page.locator(".day li a")
    expect(hits.first).to_be_visible()
    assert set(hits.all_inner_texts()) == {"ledger"}
    page.get_by_label("Ignore leash and halt").check()
    expect(page.locator(".day li.will").first).to_be_visible()
    assert page.url.endswith("#/calendar?weeks=8&unit=LEDG&ignore=switch")
    page.reload()
    expect(page.get_by_label("Unit")).to_have_value("LEDG")
    expect(page.locator(".day li.will").first).to_be_visible()
    page.get_by_label("Unit").fill("nothing")
    expect(page.get_by_text("0 hits of units with nothing in their name")).to_be_visible()


SILENT = """[...document.querySelectorAll(".days > li:not(.today)")]
    .filter((one) => one.checkVisibility() && !one.querySelector(".closed strong, .done, ul")).length"""
"""The visible days that have neither a hit nor a closure."""


def test_days_with_nothing_to_say_fill_neither_a_phone_nor_a_halted_calendar(looking: Looking) -> None:
    page = looking.go("calendar")
    expect(page.locator(".day li.would").first).to_be_visible()
    assert page.evaluate(SILENT) > 8
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate(SILENT) == 0
    expect(page.get_by_text("Days without a hit or a closure are left out.")).to_be_visible()
    page.set_viewport_size({"width": 1280, "height": 800})
    looking.world.switch["halted"] = True
    page.reload()
    expect(page.get_by_text("No hits until someone resumes.")).to_be_visible()
    assert page.evaluate(SILENT) == 0
    expect(page.locator("[data-day='2026-12-08']")).to_contain_text("holiday Immaculate Conception")
    page.get_by_label("Ignore leash and halt").check()
    expect(page.locator(".day li.will").first).to_be_visible()


@pytest.mark.parametrize(
    ("events", "key"),
    [
        ([], []),
        ([("RECOVERED", 1)], ["one"]),
        ([("RECOVERED", 1), ("RECOVERED", 1), ("RECOVERED", 2)], ["few", "many"]),
        ([("UNRECOVERED", 1), ("LEASHED", 2)], ["not recovered", "leashed: would be hit"]),
    ],
)
def test_legend_of_the_year_names_only_days_that_exist(
    looking: Looking, events: list[tuple[str, int]], key: list[str]
) -> None:
    days = [(datetime.now(UTC) - timedelta(days=ago)).date().isoformat() for ago in range(3)]
    looking.world.events = [event(f"u{number}", days[ago], status) for number, (status, ago) in enumerate(events)]
    page = looking.go("calendar")
    expect(page.get_by_role("img", name="in a year")).to_be_visible()
    assert page.locator(".key li").all_inner_texts() == key


def test_halt_and_resume(looking: Looking) -> None:
    page = looking.page
    page.get_by_role("button", name="Halt").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("incident 7")
    page.keyboard.press("Enter")
    expect(page.locator("#switch")).to_contain_text("halted")
    expect(page.locator("#switch")).to_contain_text("no rolls, no hits")
    expect(page.get_by_role("button", name="Resume")).to_be_focused()
    looking.go("calendar")
    expect(page.get_by_text("No hits until someone resumes.")).to_be_visible()
    expect(page.get_by_text("expected without")).to_have_count(0)
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("dialog")).to_contain_text("The deployment is leashed")
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(page.locator("#switch")).to_contain_text("leashed")
    expect(page.get_by_text("Dry run: Troop would hit these instances, but hits nothing.")).to_be_visible()
    assert [body for _, _, body in looking.changes()] == [{"halted": True, "reason": "incident 7"}, {"halted": False}]


def test_whoever_cannot_read_the_switch_can_halt(looking: Looking) -> None:
    page, switch = looking.page, looking.page.locator("#switch")
    expect(switch).to_contain_text("leashed")
    unread = Answer(500, {"statusCode": 500, "message": "it is broken"})
    looking.world.refusals["GET", "switch"] = [unread]
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(switch).to_contain_text(re.compile(r"leashed.*as of \d\d:\d\d:\d\d UTC: dry run: decides and records"))
    page.get_by_role("button", name="Halt").click()
    page.get_by_role("dialog").get_by_role("button", name="Halt").click()
    expect(switch).to_contain_text("halted")
    expect(page.get_by_role("button", name="Check again")).to_have_count(0)
    page.reload()  # no state is known
    expect(switch).to_contain_text("it is broken")
    page.get_by_role("button", name="Halt").click()
    expect(page.get_by_role("dialog")).to_contain_text("Rolls and hits stop at once")
    page.evaluate(SETTLED)  # the dialog has asked for the state, too
    page.keyboard.press("Escape")
    del looking.world.refusals["GET", "switch"]
    page.get_by_role("button", name="Check again").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    assert looking.changes() == [("PATCH", "switch", {"halted": True})]


def _box(seen: Locator) -> FloatRect:
    box = seen.bounding_box()
    assert box, "it is not visible"
    return box


def test_the_head_says_who_halts_now_also_on_a_phone(looking: Looking) -> None:
    page, switch = looking.page, looking.world.switch
    page.set_viewport_size({"width": 375, "height": 740})
    means = page.locator("#switch .means")
    assert _box(means)["width"] < 2  # for screen readers
    for by, why in (("ada", "incident 7"), ("grace", "the failover is tested")):
        switch |= {"halted": True, "changed_by": f"arn:aws:iam::111122223333:user/{by}", "reason": why}
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        expect(means).to_have_text(f"no rolls, no hits, by {by}: {why}")
        page.get_by_role("button", name="Resume").focus()
    expect(page.get_by_role("button", name="Resume")).to_be_focused()
    assert _box(means)["width"] > 300
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_page_names_who_has_halted_and_the_halt_of_others_and_no_later_change(looking: Looking) -> None:
    page, at, ada = looking.page, "2026-11-20T09:00:00.000Z", "arn:aws:iam::111122223333:user/ada"
    looking.world.switch |= {"halted": True, "changed_at": at, "changed_by": "arn:aws:iam::1:user/ben", "reason": ""}
    looking.world.switch |= {"halt": {"at": at, "by": ada, "reason": "incident 7"}, "halt_id": "20261120-090000-0a1b"}
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator("#switch .means")).to_have_text("no rolls, no hits, by ada: incident 7")
    page.get_by_role("button", name="Resume").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(re.compile("Halted .*2026.* by ada: incident 7"))
    expect(dialog).to_contain_text("troop resume --all --halt 20261120-090000-0a1b resumes all of them")
    page.keyboard.press("Escape")


def test_nothing_is_fired_twice(looking: Looking, monkeypatch: pytest.MonkeyPatch) -> None:
    page, answering = looking.go("units/web"), threading.Event()
    request = looking.world.request

    def slow(method: str, *rest: Any) -> Answer:
        if method == "PATCH":
            answering.wait(PATIENCE)
        return request(method, *rest)

    monkeypatch.setattr(looking.world, "request", slow)
    page.get_by_role("button", name="Halt").click()
    go = page.get_by_role("dialog").get_by_role("button", name="Halt")
    go.dblclick()
    page.evaluate("document.querySelector('dialog form').requestSubmit()")
    page.keyboard.press("Escape")  # the request is in progress: the dialog stays
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(go).to_be_disabled()
    answering.set()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert looking.changes() == [("PATCH", "switch", {"halted": True})]


def test_a_double_click_asks_once(looking: Looking) -> None:
    page = looking.go("units/web")
    for button in ("Halt", "Opt out"):
        page.get_by_role("button", name=button).evaluate("(button) => { button.click(); button.click(); }")
        expect(page.get_by_role("dialog")).to_be_visible()
        page.evaluate(SETTLED)
        expect(page.locator("dialog")).to_have_count(1)
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_have_count(0)
    page.get_by_role("button", name="Halt").click()  # it opens again after a cancel
    expect(page.get_by_role("dialog")).to_be_visible()
    page.go_back()  # the dialog concerns another view
    expect(page.get_by_role("heading", name="Units", level=1)).to_be_visible()
    expect(page.locator("dialog")).to_have_count(0)
