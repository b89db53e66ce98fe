"""Tests the page in a browser: what a running benchmark does right now."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import expect

from cli.client.api import Answer
from tests.unit.cli.web.page.conftest import Looking
from tests.unit.cli.web.page_world import RUN, cell, live_answer, live_cell, run
from troop.shared import moments

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


TIMETABLE = [
    {"step": "boot", "seconds": 120, "points": 0},
    {"step": "load", "seconds": 60, "points": 0},
    {"step": "measure", "seconds": 1200, "points": 3},
    {"step": "sweep", "seconds": 900, "points": 9},
    {"step": "teardown", "seconds": 60, "points": 0},
]


def begin(looking: Looking, *steps: tuple[str, int], status: str = "RUNNING") -> None:
    """Lets a run with a timetable be in the last of its steps, which began so many seconds before the browser's now."""
    now = moments.parse(looking.page.evaluate("new Date().toISOString()"))
    begun = [{"phase": phase, "at": moments.iso(now - timedelta(seconds=ago))} for phase, ago in steps]
    view = looking.world.runs[RUN]
    one = cell(1, "", status, steps=begun, phase=steps[-1][0], results=None)
    looking.world.runs[RUN] = {**view, "cells": [one], "timetable": TIMETABLE, "run": view["run"] | {"cells": 1}}


def test_steps_show_what_is_over_what_goes_on_and_what_is_ahead(going: Looking) -> None:
    steps = (
        ("launch", 200),
        ("boot", 190),
        ("load", 100),
        ("measure.1", 50),
        ("measure.2.between", 14),
        ("measure.2", 12),
    )
    begin(going, *steps)
    page = going.go(f"runs/{RUN}")
    texts = page.get_by_role("list", name="Steps of c001").get_by_role("listitem")
    expect(texts).to_have_count(8)
    for number, words in enumerate(
        [
            "launch: over10s",
            "boot: over1m 30s",
            "load: over50s",
            "measure.1: over36s",
            "measure.2: now",
            "measure.3: ahead",
        ]
    ):
        expect(texts.nth(number)).to_contain_text(words)
    expect(texts.nth(4)).to_contain_text(re.compile("1[2-9]s of about 6m 40s"))
    expect(texts.nth(6)).to_contain_text("sweep 9: aheadabout 15m 00s")
    page.clock.fast_forward(10_000)
    expect(texts.nth(4)).to_contain_text(re.compile("2[2-9]s of about 6m 40s"))
    facts = page.locator(".facts div")
    expect(facts.filter(has_text="Ends about")).to_contain_text("in about 29 min")  # 388, 400, 900 and 60 seconds


def test_many_points_share_a_step_and_the_step_that_failed_is_marked(going: Looking) -> None:
    begin(going, ("launch", 200), ("boot", 190), ("sweep.1", 60), ("sweep.2", 40), ("sweep.3", 5))
    page = going.go(f"runs/{RUN}")
    steps = page.get_by_role("list", name="Steps of c001").get_by_role("listitem")
    expect(steps.filter(has_text="sweep")).to_contain_text("sweep 3 of 9: now")
    begin(going, ("launch", 200), ("boot", 190), ("load", 60), ("teardown", 5), ("over", 1), status="FAILED")
    going.world.runs[RUN]["run"] |= {"status": "FAILED", "ended_at": "2026-11-21T15:21:03.000Z"}
    page.clock.fast_forward(30_000)
    expect(steps.filter(has_text="load")).to_contain_text("load: failed here")
    expect(steps.filter(has_text="ahead")).to_have_count(0)


def test_stop_is_no_failure_and_ends_the_live_figures(going: Looking) -> None:
    begin(going, ("launch", 200), ("boot", 190))
    page = going.go(f"runs/{RUN}")
    steps = page.get_by_role("list", name="Steps of c001").get_by_role("listitem")
    expect(steps.filter(has_text="boot: now")).to_be_visible()
    begin(going, ("launch", 200), ("boot", 190), ("teardown", 5), ("over", 1), status="STOPPED")
    ended = {"status": "STOPPED", "ended_at": "2026-11-21T15:21:03.000Z", "reason": "stopped by ada"}
    going.world.runs[RUN]["run"] |= ended
    page.clock.fast_forward(5_000)
    expect(steps.filter(has_text="boot: stopped here")).to_be_visible()
    expect(page.get_by_role("region", name="Live figures")).to_have_count(0)
    expect(page.get_by_text("stopped by ada")).to_be_visible()
    expect(page.locator(".problem")).to_have_count(0)


def test_less_than_five_merges_have_no_chart(going: Looking) -> None:
    going.world.live = live_answer(live_cell(4))
    page = going.go(f"runs/{RUN}")
    panel = page.get_by_role("region", name="Live figures")
    expect(panel.locator(".facts div").filter(has_text="Operations per second")).to_contain_text("20,000")
    expect(panel.get_by_role("img")).to_have_count(0)


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
    expect(panel).to_contain_text("No figures now: they begin with the next measured phase.")
    going.world.live = live_answer(live_cell(0, total=None, operations=[], roles=[]), state="waiting")
    page.clock.fast_forward(15_000)
    expect(panel).to_contain_text("No figures yet: nodes send them every 15 s.")
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
