"""Checks every view and dialog in a browser by the rules of axe-core: wide and narrow, light and dark."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from cli.client.api import Answer
from tests import accessibility
from tests.patience import PAGE_PATIENCE_MS
from tests.unit.cli.conftest import EXEMPTION, READ, change, event, risk
from tests.unit.cli.web.page.conftest import SETTLED, Looking
from tests.unit.cli.web.page_world import RUN, World, cell, live_answer, live_cell, living_fleet, run, termination

OTHER = "20261122-080000-0badcafe"
RUNNING = "20261123-080000-0badcafe"


def _open_policy(page: Page) -> None:
    page.get_by_label("Probability").fill("1")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("button", name="Save this policy")).to_be_visible()


def _wrong_policy(page: Page) -> None:
    page.get_by_label("Probability").fill("often")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("must be a number from 0 to 1")).to_be_visible()


def _press(name: str) -> Callable[[Page], None]:
    def press(page: Page) -> None:
        page.get_by_role("button", name=name).click()
        expect(page.get_by_role("dialog")).to_be_visible()

    return press


def _compare(page: Page) -> None:
    for one in (RUN, OTHER):
        page.get_by_label(f"Compare {one}").check()
    expect(page.get_by_text(f"{OTHER} with {RUN}")).to_be_visible()


def _estimate(page: Page) -> None:
    page.get_by_label("Benchmark").select_option("s3-range-read")
    expect(page.get_by_role("radio", checked=True)).to_have_count(1)
    for fold in page.locator(".fold summary").all():
        fold.click()
    page.get_by_role("button", name="Check and estimate").click()
    expect(page.get_by_role("button", name="Start the run")).to_be_visible()


def _keys(page: Page) -> None:
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()


VIEWS: tuple[tuple[str, tuple[Callable[[Page], None], ...]], ...] = (
    ("overview", (_press("Leash"), _press("Halt"), _keys)),
    ("units", ()),
    ("units/web", (_press("Opt out"),)),
    ("units/ledger", (_press("Opt in"),)),
    ("units/lost", ()),
    ("units/web/policy", (_wrong_policy, _open_policy)),
    ("units/nobody", ()),
    ("events", ()),
    ("events/2026-11-20~web", ()),
    ("events/2026-11-17~ledger", ()),
    ("events/2026-11-16~web", ()),
    ("changes", ()),
    ("risks?exempt=true&gone=true", ()),
    ("calendar", ()),
    ("benchmarks", ()),
    ("benchmarks/cassandra-write", (_compare,)),
    (f"runs/{RUN}", ()),
    (f"runs/{RUNNING}", (_press("Stop"),)),
    ("start", (_estimate, _press("Start the run"))),
)
"""Each view, with steps of a user there, each after the one before."""

WIDTHS = (1280, 390)
"""Views load in the last width, on a phone, and become wide and narrow again. Loading each twice takes longer."""

DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


@pytest.fixture
def world(world: World) -> World:
    """Something for every view; the deployment is unleashed."""
    world.switch["leashed"] = False
    world.units["ledger"]["item"] = {"opt_out": True, "reason": "closing", "owner": "finance"}
    world.add("lost", unrecovered="2026-11-19#lost")
    world.add("bad", problem="tag troop:probability is 'often'")
    world.events = [
        event(unit, f"2026-11-{20 - n}", status)
        for n, (unit, status) in enumerate(
            [("web", "RECOVERED"), ("lost", "UNRECOVERED"), ("web", "TERMINATED"), ("ledger", "LEASHED")]
        )
    ]
    alarms = [
        {"name": "errors", "states": [{"at": "2026-11-20T10:00:00.000Z", "state": "ALARM"}], "doubt": "it was changed"}
    ]
    broken = termination("web", abort={"at": "2026-11-20T10:00:31.000Z", "alarm": "errors"})
    broken["verdict"] |= {"value": "BROKEN", "alarms": alarms}
    flight = termination("web", "2026-11-16", "TERMINATED", recovered_at=None, recovery_seconds=None, verdict=None)
    world.events[0] = broken
    world.events += [flight, *(termination("web", f"2026-11-{n}") for n in range(15, 9, -1))]
    world.reading = READ | {"unread": ["images could not be read: AccessDenied"]}
    world.risks = [
        risk("one-zone", "web", "high", owner="shop", confirmed="2026-11-19#web"),
        risk("no-alarm", "db", "medium", exemption=EXEMPTION, unknown="alarms could not be read"),
        risk("scale-in-protected", "db", "low", gone_since="2026-11-20T03:23:00.000Z"),
        risk("unattached-volume", "vol-1", "low", "volume", monthly={"amount": 8.8, "currency": "USD"}),
    ]
    world.log = [change(None, halted=(None, True)), change("web", owner=(None, "shop"))]
    cells = [cell(1, "n3"), cell(2, "n6", "FAILED")]
    running = run(run=RUNNING, status="RUNNING", ended_at=None, closed_at=None)
    world.runs = {
        RUNNING: {"run": running, "cells": [cell(1, "n3", "RUNNING")], "resources": []},
        OTHER: {
            "run": run(run=OTHER, status="PARTIAL", reason="i-0abc was lost\nlast lines of i-0abc:\nout of memory"),
            "cells": cells,
            "resources": [],
        },
        RUN: {"run": run(), "cells": [cell(1, "n3"), cell(2, "n6")], "resources": []},
    }
    world.fleets = [living_fleet()]
    world.live = live_answer(live_cell())
    return world


def _problems(page: Page) -> list[str]:
    problems = accessibility.findings(page) + accessibility.hidden_cells(page)
    if accessibility.overflow(page) > 0:
        problems.append(f"the page is {accessibility.overflow(page)} pixels too wide")
    if page.locator("nav").evaluate("nav => nav.scrollWidth > nav.clientWidth"):
        problems.append("the navigation is cut off")
    page.emulate_media(color_scheme="dark")
    page.evaluate(DRAWN)
    problems += [f"dark: {one}" for one in accessibility.findings(page, only_colours=True)]
    page.emulate_media(color_scheme="light")
    return problems


def test_every_view_and_dialog_is_accessible_and_fits(looking: Looking) -> None:
    page = looking.page
    page.set_viewport_size({"width": WIDTHS[-1], "height": 800})
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    wrong: dict[str, list[str]] = {}
    for view, steps in VIEWS:
        page.locator("h1").evaluate("heading => heading.remove()")  # the next heading is the next view's
        looking.go(view)
        expect(page.locator("#switch .badge")).to_be_visible()
        expect(page.locator("h1")).to_be_visible()
        expect(page.locator(".loading")).to_have_count(0)
        page.evaluate(SETTLED)
        for number in range(len(steps) + 1):
            if number:
                steps[number - 1](page)
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 800})
                page.evaluate(DRAWN)
                if problems := _problems(page):
                    wrong[f"{number} {view} {width}"] = problems
            page.keyboard.press("Escape")
            expect(page.locator("dialog")).to_have_count(0)  # until then, no other dialog opens
    assert wrong == {}


CHAOS_VIEWS = ("units", "units/web", "units/web/policy", "events", "events/2026-11-20~web")
BENCHMARK_VIEWS = ("benchmarks", "benchmarks/cassandra-write", f"runs/{RUN}", "start?benchmark=s3-range-read")


def test_views_are_accessible_while_they_load_and_after_an_error(looking: Looking) -> None:
    page, wrong = looking.page, dict[str, list[str]]()
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    for view in (*CHAOS_VIEWS, *BENCHMARK_VIEWS):
        released = threading.Event()

        def fail_late(*_: object, released: threading.Event = released, **__: object) -> Answer:
            assert released.wait(PAGE_PATIENCE_MS / 1000)
            return Answer(500, {"message": "the request failed"})

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(looking.world, "request", fail_late)
            page.goto("about:blank")
            looking.server.overview.forget()
            looking.go(view)
            states = (page.locator(".loading, .card").first, lambda: None), (page.get_by_role("alert"), released.set)
            for state, begin in states:
                begin()
                expect(page.locator("h1")).to_be_visible()  # before, the page loads the program of the view
                expect(state).to_be_visible()
                for width in WIDTHS:
                    page.set_viewport_size({"width": width, "height": 800})
                    page.evaluate(DRAWN)
                    if problems := _problems(page):
                        wrong[f"{view} {width} {state}"] = problems
    assert wrong == {}


API = re.compile(r"^http://[^/]+/(ui/(?!zone|about)|events|groups|changes|benchmarks|fleets)")
"""What views request. The switch is on every view, and its errors are its own."""


def _refuse(route: Route) -> None:
    route.fulfill(status=500, json={"message": "the request failed: try again, or look for request r1 in the log"})


@pytest.mark.parametrize("state", ["loading", "failed"])
def test_every_view_is_accessible_and_fits_while_it_loads_and_when_it_fails(looking: Looking, state: str) -> None:
    page = looking.page
    page.set_viewport_size({"width": WIDTHS[-1], "height": 800})
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.route(API, _refuse if state == "failed" else lambda _route: None)
    page.reload()  # without the units that it has loaded
    expect(page.locator("h1")).to_be_visible()
    wrong: dict[str, list[str]] = {}
    for view, _ in VIEWS:
        page.locator("h1").evaluate("heading => heading.remove()")  # the next heading is the next view's
        looking.go(view)
        expect(page.locator("h1")).to_be_visible()
        shown = (
            page.locator(".loading, [aria-busy=true]")
            if state == "loading"
            else page.locator(".problem, .wrong, p.old")
        )
        expect(shown.first).to_be_visible()
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            page.evaluate(DRAWN)
            if problems := _problems(page):
                wrong[f"{view} {width}"] = problems
    assert wrong == {}


def test_the_checks_find_what_is_wrong(looking: Looking) -> None:
    page = looking.page
    expect(page.locator("tbody tr").first).to_be_visible()  # the list replaces what is in the page until then
    page.evaluate(
        "document.querySelector('main').append(Object.assign(document.createElement('img'), {src: 'icon.svg'}))"
    )
    assert any(one.startswith("image-alt: ") for one in accessibility.findings(page))
    page.evaluate("document.querySelector('td').style.display = 'none'")
    assert len(accessibility.hidden_cells(page)) == 1
