"""The page in a browser: the calendar of the next weeks, and the switch that halts everything."""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest
from playwright.sync_api import FloatRect, Locator, expect

from cli.api import Answer
from tests.patience import PATIENCE
from tests.unit.cli.page.conftest import SETTLED, Looking


def test_the_calendar(looking: Looking) -> None:
    page = looking.go("calendar")
    expect(page.locator("[data-day='2026-12-08']")).to_contain_text("holiday Immaculate Conception")
    expect(page.locator("[data-day='2026-12-16']")).to_contain_text("freeze Year-end closing")
    expect(page.locator("[data-day='2026-11-23']")).to_contain_text("today")
    expect(page.locator("[data-day='2026-11-23']")).to_contain_text("no more today")
    expect(page.locator(".days > li")).to_have_count(28)
    expect(page.locator(".day li.would").first).to_be_visible()
    page.get_by_label("As if neither").check()
    expect(page.locator(".day li.will").first).to_be_visible()
    expect(page.locator(".day li.would")).to_have_count(0)
    page.get_by_label("Ahead").select_option("2")
    expect(page.locator(".days > li")).to_have_count(14)
    page.get_by_label("Calendar", exact=True).select_option("night")
    expect(page.get_by_text("Open 01:00 to 04:00 in America/New_York")).to_be_visible()


def test_halt_and_resume(looking: Looking) -> None:
    page = looking.page
    page.get_by_role("button", name="Halt").click()
    page.get_by_role("dialog").get_by_label("Why").fill("incident 7")
    page.keyboard.press("Enter")
    expect(page.locator("#switch")).to_contain_text("halted")
    expect(page.locator("#switch")).to_contain_text("nothing is rolled, nothing is terminated")
    expect(page.get_by_role("button", name="Resume")).to_be_focused()
    looking.go("calendar")
    expect(page.get_by_text("nothing is to be expected until somebody resumes")).to_be_visible()
    expect(page.get_by_text("to be expected, were")).to_have_count(0)
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("dialog")).to_contain_text("It is leashed")
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(page.locator("#switch")).to_contain_text("leashed")
    expect(page.get_by_text("Nothing is terminated: these are the instances that would be.")).to_be_visible()
    assert [body for _, _, body in looking.changes()] == [{"halted": True, "reason": "incident 7"}, {"halted": False}]


def test_whoever_cannot_read_the_switch_can_halt(looking: Looking) -> None:
    page, switch = looking.page, looking.page.locator("#switch")
    expect(switch).to_contain_text("leashed")
    unread = Answer(500, {"statusCode": 500, "message": "it is broken"})
    looking.world.refusals["GET", "switch"] = [unread]
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(switch).to_contain_text(re.compile(r"leashed.*as of \d\d:\d\d:\d\d UTC: decides and records"))
    page.get_by_role("button", name="Halt").click()
    page.get_by_role("dialog").get_by_role("button", name="Halt").click()
    expect(switch).to_contain_text("halted")
    expect(page.get_by_role("button", name="Look again")).to_have_count(0)
    page.reload()  # nothing was known before
    expect(switch).to_contain_text("it is broken")
    page.get_by_role("button", name="Halt").click()
    expect(page.get_by_role("dialog")).to_contain_text("At once nothing is rolled")
    page.keyboard.press("Escape")
    del looking.world.refusals["GET", "switch"]
    page.get_by_role("button", name="Look again").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    assert looking.changes() == [("PATCH", "switch", {"halted": True})]


def _box(seen: Locator) -> FloatRect:
    box = seen.bounding_box()
    assert box, "it is not drawn"
    return box


def test_the_head_says_who_halts_now_also_on_a_phone(looking: Looking) -> None:
    page, switch = looking.page, looking.world.switch
    page.set_viewport_size({"width": 375, "height": 740})
    means = page.locator("#switch .means")
    assert _box(means)["width"] < 2  # for ears
    for by, why in (("ada", "incident 7"), ("grace", "the failover is tested")):
        switch |= {"halted": True, "changed_by": f"arn:aws:iam::111122223333:user/{by}", "reason": why}
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        expect(means).to_have_text(f"nothing is rolled, nothing is terminated, by {by}: {why}")
        page.get_by_role("button", name="Resume").focus()
    expect(page.get_by_role("button", name="Resume")).to_be_focused()
    assert _box(means)["width"] > 300
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


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
    page.keyboard.press("Escape")  # it is under way: what comes of it is shown
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
    page.get_by_role("button", name="Halt").click()  # and asks again after a no
    expect(page.get_by_role("dialog")).to_be_visible()
    page.go_back()  # what it asks about is not before anybody's eyes any more
    expect(page.get_by_role("heading", name="Units")).to_be_visible()
    expect(page.locator("dialog")).to_have_count(0)
