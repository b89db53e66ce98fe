"""Tests the page in a browser: keyboard, phones, screen readers, and hostile names."""

from __future__ import annotations

import re
import threading
from functools import partial
from typing import Any

import pytest
from playwright.sync_api import expect

from cli.client.api import Answer
from tests.patience import PATIENCE, eventually
from tests.unit.cli.conftest import change, event
from tests.unit.cli.web.page.conftest import SETTLED, Looking
from tests.unit.cli.web.page_world import RUN, cell, run

HOSTILE = '<img src=x onerror="document.title=1">'


TURNED = "web\u202eexe.\u0007"


def test_the_keyboard_goes_everywhere(looking: Looking) -> None:
    page = looking.page
    page.reload()
    expect(page.locator("tbody tr")).to_have_count(3)
    expect(page.get_by_role("button", name="Halt")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Refresh")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(page.get_by_role("link", name="Benchmarks")).to_be_focused()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    order = ["Halt …", "Overview", "Units", "Events", "Changes", "Risks", "Calendar", "Benchmarks"]
    page.get_by_role("button", name="Halt").focus()
    for expected in order:
        assert page.evaluate("document.activeElement.textContent") == expected
        page.keyboard.press("Tab")


def test_who_did_not_wait_for_the_view_keeps_the_focus(looking: Looking, monkeypatch: pytest.MonkeyPatch) -> None:
    page, answering = looking.page, threading.Event()
    request = looking.world.request

    def slow(method: str, path: str, *rest: Any) -> Answer:
        if path == "events":
            answering.wait(PATIENCE)
        return request(method, path, *rest)

    monkeypatch.setattr(looking.world, "request", slow)
    looking.go("events")
    # The previous view also has a search field.
    page.get_by_placeholder("unit, group, instance, fault, detail").fill("le")
    answering.set()
    expect(page.get_by_text("There are no events yet.")).to_be_visible()
    expect(page).to_have_title("Events · Troop")
    expect(page.get_by_label("Search")).to_be_focused()


def test_two_concurrent_refreshes_show_each_row_once(looking: Looking) -> None:
    looking.world.runs = {RUN: {"run": run(), "cells": [], "resources": []}}
    page = looking.page
    for view, path, row in (("units", "groups", "web"), ("benchmarks", "benchmarks", "cassandra-write")):
        looking.go(view)
        expect(page.get_by_role("row", name=re.compile(row))).to_have_count(1)
        call_count = len(looking.world.calls)
        twice = "(button) => { button.click(); button.click(); }"
        page.get_by_role("button", name="Refresh").evaluate(twice)
        expect(page.get_by_role("row", name=re.compile(row))).to_be_visible()
        eventually(partial(looking.has_called, path, 2, call_count))
        page.evaluate(SETTLED)
        assert not looking.has_called(path, 3, call_count)
        expect(page.get_by_role("row", name=re.compile(row))).to_have_count(1)
        expect(page.get_by_text("2 groups")).to_have_count(0)


def test_names_of_others_stay_text(looking: Looking) -> None:
    world = looking.world
    for name in (HOSTILE, TURNED, "x" * 255):
        world.add(name, reason=HOSTILE, opt_out=True)
    world.events = [event(HOSTILE, detail=HOSTILE), event(TURNED), event("x" * 255)]
    world.log = [change(HOSTILE, owner=(None, HOSTILE), reason=("y" * 200, TURNED))]
    somebody = f"arn:aws:sts::111122223333:assumed-role/{'y' * 64}/{'z' * 64}"
    document = run(name="x" * 128, requested_by=somebody, reason="w" * 500, status="FAILED")
    world.runs = {RUN: {"run": document, "cells": [cell(1, "v" * 99), cell(2, "n6", "FAILED")], "resources": []}}
    page = looking.page
    for view, title in {
        "events": "Events",
        "changes": "Changes",
        "benchmarks": "Benchmarks",
        f"runs/{RUN}": "x" * 128,
    }.items():
        looking.go(view)
        expect(page.get_by_role("heading", level=1)).to_have_text(title)
        expect(page.locator("tbody tr").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
    looking.go("units")
    page.get_by_role("button", name="Refresh").click()
    expect(page.locator("tbody tr")).to_have_count(6)
    expect(page.get_by_role("link", name=HOSTILE)).to_be_visible()
    expect(page.get_by_role("link", name="web\ufffdexe.\ufffd")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("link", name=HOSTILE).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(HOSTILE)
    looking.go("events")
    page.get_by_role("link", name=HOSTILE).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(HOSTILE)
    assert page.locator("img[src=x]").count() == 0


def test_page_fits_a_phone_and_every_control_has_a_name(looking: Looking) -> None:
    looking.world.events = [event("web", "2026-11-20", detail="a" * 90)]
    looking.world.log = [change("web", owner=(None, "x" * 90))]
    looking.world.runs = {RUN: {"run": run(), "cells": [cell(1, "n3"), cell(2, "n6")], "resources": []}}
    page = looking.page
    page.set_viewport_size({"width": 375, "height": 740})
    expect(page.get_by_role("button", name="Halt")).to_be_visible()
    for view, title in VIEWS.items():
        looking.go(view)
        expect(page.get_by_role("heading", level=1)).to_have_text(title)
        expect(page.locator("main table:visible, main .days:visible, main .tile:visible").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 375, view
        assert page.evaluate(NAMELESS) == [], view


VIEWS = {
    "overview": "Overview",
    "units": "Units",
    "units/web": "web",
    "events": "Events",
    "changes": "Changes",
    "calendar": "Calendar",
    "benchmarks": "Benchmarks",
    "benchmarks/cassandra-write": "cassandra-write",
    f"runs/{RUN}": "cassandra-write",
}


NAMELESS = """[...document.querySelectorAll("button, a, input, select")].filter((one) => {
    const labels = [...(one.labels ?? [])].map((label) => label.textContent);
    return !/\\p{L}/u.test(one.getAttribute("aria-label") || one.textContent + labels);
}).map((one) => one.outerHTML)"""
