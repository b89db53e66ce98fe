"""Tests the page in a browser: what a running benchmark does right now."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from cli.client.api import Answer
from tests.unit.cli.web.page.conftest import Looking
from tests.unit.cli.web.page_world import RUN, cell, live_answer, live_cell, run

WIDTHS = (1280, 390)


@pytest.fixture
def going(timed: Looking) -> Looking:
    """A user at the page of a run that goes on, whose browser's clock a test can move forward."""
    running = run(status="RUNNING", ended_at=None, closed_at=None, cost=None)
    timed.world.runs = {RUN: {"run": running, "cells": [cell(1, "n6", "RUNNING")], "resources": []}}
    timed.world.live = live_answer(live_cell(), seconds=5)
    return timed


@pytest.mark.parametrize("width", WIDTHS)
def test_live_panel_shows_figures_charts_processors_and_time_left(going: Looking, width: int) -> None:
    going.page.set_viewport_size({"width": width, "height": 900})
    page = going.go(f"runs/{RUN}")
    panel = page.get_by_role("region", name="Live figures")
    facts = panel.locator(".facts div")
    expect(facts.filter(has_text="Operations per second")).to_contain_text("20,000")
    expect(facts.filter(has_text="p99")).to_contain_text("9.3 ms")
    expect(facts.filter(has_text="Errors per second")).to_contain_text("0.2")
    expect(facts.filter(has_text="Time left")).to_contain_text(re.compile(r"[34]m \d\ds"))
    expect(facts.filter(has_text="Nodes that report")).to_contain_text("8 of 9")
    expect(panel.get_by_role("row", name=re.compile("drivers.*2 of 3.*71 %.*88 %"))).to_be_visible()
    chart = panel.get_by_role("img", name="Operations per second")
    curve = chart.locator("svg path[fill=none][stroke-width='2']").first
    path = curve.get_attribute("d") or ""
    assert (path.count("M"), path.count("L")) == (2, 18), "no line where nobody watched"
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_time_left_passes_and_a_merge_that_stays_away_becomes_old(going: Looking) -> None:
    page = going.go(f"runs/{RUN}")
    panel = page.get_by_role("region", name="Live figures")
    left = panel.locator("[data-left]")
    expect(left).to_have_text(re.compile("^[34]m"))
    page.clock.fast_forward(120_000)
    expect(left).to_have_text(re.compile("^[12]m"))
    going.world.refusals["GET", f"benchmarks/{RUN}/live"] = [Answer(500, {"message": "the request failed"})]
    page.clock.fast_forward(60_000)
    expect(panel).to_have_class("live old")
    expect(panel.get_by_role("heading", name="Live")).to_contain_text(" ago")
    expect(panel.get_by_text("could not start its function")).to_be_visible()
    expect(panel.locator(".facts div").filter(has_text="Operations per second")).to_contain_text("20,000")


def test_a_new_merge_replaces_the_last_and_leaves_open_what_is_open(going: Looking) -> None:
    page = going.go(f"runs/{RUN}")
    panel = page.get_by_role("region", name="Live figures")
    panel.get_by_text("History as a table").click()
    expect(panel.locator("details tbody tr")).to_have_count(20)
    now: dict[str, Any] = {"at": "2026-11-21T15:10:15.000Z", "now": "2026-11-21T15:10:15.000Z"}
    quiet = {"per_second": 0.0, "errors_per_second": 0.0, "p50_ms": None, "p99_ms": None}
    warm = {"warm_up_seconds_left": 200.0, "total": quiet}
    going.world.live = live_answer(live_cell(21, **warm), **now)
    page.clock.fast_forward(15_000)
    expect(panel.locator("details tbody tr")).to_have_count(21)
    expect(panel.locator("[data-left]")).to_have_text(re.compile(r"^[34]m \d\ds, with .+ of the warm-up$"))
    expect(panel.locator(".facts div").filter(has_text="p99")).to_contain_text("\N{EN DASH}")


def test_before_the_first_merge_it_says_so_and_at_the_end_it_disappears(going: Looking) -> None:
    going.world.live = live_answer()
    page = going.go(f"runs/{RUN}")
    panel = page.get_by_role("region", name="Live figures")
    expect(panel).to_contain_text("No running summaries yet: no cell measures now.")
    going.world.live = live_answer(state="ended", status="SUCCEEDED", message="the run has ended")
    page.clock.fast_forward(15_000)
    expect(panel).to_have_count(0)
    calls = len(going.world.calls)
    page.clock.fast_forward(60_000)
    assert not going.has_called(f"benchmarks/{RUN}/live", 1, calls)


def test_a_run_that_has_ended_has_no_panel(looking: Looking) -> None:
    looking.world.runs = {RUN: {"run": run(), "cells": [cell(1, "n6")], "resources": []}}
    page = looking.go(f"runs/{RUN}")
    expect(page.get_by_role("heading", name="Results")).to_be_visible()
    expect(page.get_by_role("region", name="Live figures")).to_have_count(0)
    assert not looking.has_called(f"benchmarks/{RUN}/live", 1, 0)
