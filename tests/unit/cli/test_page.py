"""The page in a browser, before an API in memory: what a person sees, does, and cannot do by accident."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from cli.api import Answer, UnreachableError
from cli.page_server import PageServer
from tests.unit.cli.conftest import event
from tests.unit.cli.page_world import RUN, Ahead, World, cell, page_server, run, serving

PLACE = Answer(302, None, headers={"Location": "https://bucket.example/r"})
REPORT = "<h1>The report</h1>"
HOSTILE = '<img src=x onerror="document.title=1">'
TURNED = "web\u202eexe.\u0007"


@dataclass
class Looking:
    """Somebody at the page. ``errors``: what the browser complained about."""

    page: Page
    server: PageServer
    world: World
    errors: list[str] = field(default_factory=list)

    def go(self, view: str) -> Page:
        self.page.goto(f"{self.server.address}/#/{view}")
        return self.page

    def changes(self) -> list[tuple[str, str, Any]]:
        return [call for call in self.world.calls if call[0] != "GET"]


@pytest.fixture
def world() -> World:
    world = World()
    for name in ("web", "api/orders", "ledger"):
        world.add(name)
    return world


@pytest.fixture
def looking(browser: Browser, world: World) -> Iterator[Looking]:
    with serving(page_server(world, Ahead(world, "web", "api/orders", "ledger"), [])) as server:
        context = browser.new_context(viewport={"width": 1280, "height": 800}, locale="en-GB", timezone_id="UTC")
        page = context.new_page()
        page.set_default_timeout(10_000)
        looking = Looking(page, server, world)
        page.on("pageerror", lambda error: looking.errors.append(str(error)))
        page.on("console", lambda m: looking.errors.append(m.text) if "Content Security" in m.text else None)
        page.goto(server.link())
        expect(page.get_by_role("heading", name="Units")).to_be_visible()
        yield looking
        context.close()
        assert looking.errors == []


def rows(page: Page) -> list[str]:
    return page.locator("tbody tr td.first").all_inner_texts()


def test_units_are_searched_and_sorted(looking: Looking) -> None:
    page = looking.page
    expect(page.get_by_role("row", name=re.compile("^web"))).to_contain_text("settings")
    assert rows(page) == ["api/orders", "ledger", "web"]
    page.get_by_role("button", name="Unit").click()
    assert rows(page) == ["web", "ledger", "api/orders"]
    expect(page.locator("th[aria-sort=descending]")).to_have_text(re.compile("Unit"))
    expect(page.get_by_role("button", name="Unit")).to_be_focused()
    page.get_by_label("Search").fill("ORD")
    assert rows(page) == ["api/orders"]
    expect(page.get_by_text("1 of 3")).to_be_visible()
    page.get_by_role("link", name="api/orders").click()
    expect(page.get_by_role("heading", name="api/orders")).to_be_focused()
    assert page.title() == "api/orders · Troop"
    page.go_back()
    expect(page.get_by_label("Search")).to_have_value("ORD")


def test_loading_anew_twice_shows_everything_once(looking: Looking) -> None:
    looking.world.runs = {RUN: {"run": run(), "cells": [], "resources": []}}
    page = looking.page
    for view, path, row in (("units", "groups", "web"), ("runs", "benchmarks", RUN)):
        looking.go(view)
        expect(page.get_by_role("row", name=re.compile(row))).to_have_count(1)
        asked = len(looking.world.calls)
        twice = "(button) => { button.click(); button.click(); }"
        page.get_by_role("button", name="Load anew").evaluate(twice)
        expect(page.get_by_role("row", name=re.compile(row))).to_be_visible()
        page.evaluate(SETTLED)
        assert [called[1] for called in looking.world.calls[asked:]].count(path) == 2
        expect(page.get_by_role("row", name=re.compile(row))).to_have_count(1)
        expect(page.get_by_text("2 groups")).to_have_count(0)


def test_who_did_not_wait_for_the_view_keeps_the_focus(looking: Looking, monkeypatch: pytest.MonkeyPatch) -> None:
    page, answering = looking.page, threading.Event()
    request = looking.world.request

    def slow(method: str, path: str, *rest: Any) -> Answer:
        if path == "events":
            answering.wait(10)
        return request(method, path, *rest)

    monkeypatch.setattr(looking.world, "request", slow)
    looking.go("events")
    page.get_by_label("Search").fill("le")
    answering.set()
    expect(page.get_by_text("There are no such events.")).to_be_visible()
    expect(page).to_have_title("Events · Troop")
    expect(page.get_by_label("Search")).to_be_focused()


def test_opting_out_asks_and_sends_the_version(looking: Looking) -> None:
    page = looking.go("units/web")
    page.get_by_role("button", name="Opt out").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("No instance of web-v1 is terminated")
    expect(dialog.get_by_label("Why")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("button", name="Opt out")).to_be_focused()
    assert looking.changes() == []
    page.keyboard.press("Enter")
    expect(dialog.get_by_label("Why")).to_be_focused()
    page.keyboard.type("month-end closing")
    dialog.get_by_label("Until").fill("2099-12-31")
    dialog.get_by_role("button", name="Opt out").click()
    expect(page.locator("#flash")).to_have_text("web is left alone until 2099-12-31, that day included.")
    wanted = {"opt_out": True, "until": "2099-12-31", "reason": "month-end closing", "version": 0}
    assert looking.changes() == [("PATCH", "groups/web", wanted)]
    page.get_by_role("button", name="Opt in").click()
    dialog.get_by_role("button", name="Opt in").click()
    expect(page.locator("#flash")).to_have_text("web takes part.")
    assert looking.changes()[1][2] == {"opt_in": True, "opt_out": None, "until": None, "reason": None, "version": 1}


def test_a_unit_that_has_not_recovered_is_put_back(looking: Looking) -> None:
    looking.world.units["web"]["unrecovered"] = "2026-11-20#web"
    page = looking.go("units/web")
    page.get_by_role("button", name="Put back").click()
    page.get_by_role("dialog").get_by_role("button", name="Put back").click()
    expect(page.get_by_text("has not recovered")).to_have_count(0)
    assert looking.changes()[0][2]["unrecovered"] is False


def test_somebody_elses_change_in_between_is_shown_and_not_undone(looking: Looking) -> None:
    page = looking.go("units/web")
    page.get_by_role("button", name="Opt out").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Now: takes part")
    looking.world.units["web"] |= {"item": {"opt_out": True, "reason": "theirs"}, "version": 7}
    dialog.get_by_role("button", name="Opt out").click()
    expect(dialog).to_contain_text("changed by somebody else")
    expect(dialog).to_contain_text("Now: left alone (settings): theirs.")
    expect(dialog).to_contain_text("somebody else. This is how it is now")
    dialog.get_by_role("button", name="Opt out").click()
    expect(dialog).to_have_count(0)
    assert [body["version"] for _, _, body in looking.changes()] == [0, 7]


def test_a_refusal_is_shown_in_the_apis_words(looking: Looking) -> None:
    page = looking.go("units/web")
    page.get_by_role("button", name="Opt out").click()
    said = "until is '2020-01-01': must not be past"
    looking.world.refusals["PATCH", "groups/web"] = [Answer(400, {"statusCode": 400, "message": said})]
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Opt out").click()
    expect(dialog.get_by_role("alert")).to_have_text(said)
    expect(dialog.get_by_role("button", name="Opt out")).to_be_enabled()


def test_nothing_is_fired_twice(looking: Looking, monkeypatch: pytest.MonkeyPatch) -> None:
    page, answering = looking.go("units/web"), threading.Event()
    request = looking.world.request

    def slow(method: str, *rest: Any) -> Answer:
        if method == "PATCH":
            answering.wait(10)
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


# Time for what was asked before to be answered: the API in memory takes next to none.
SETTLED = "fetch('/icon.svg').then((answer) => answer.text()).then(() => new Promise((done) => setTimeout(done, 50)))"


def test_halt_and_resume(looking: Looking) -> None:
    page = looking.page
    page.get_by_role("button", name="Halt").click()
    page.get_by_role("dialog").get_by_label("Why").fill("incident 7")
    page.keyboard.press("Enter")
    expect(page.locator("#switch")).to_contain_text("halted")
    expect(page.get_by_role("button", name="Resume")).to_be_focused()
    looking.go("calendar")
    expect(page.get_by_text("nothing is to be expected until somebody resumes")).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("dialog")).to_contain_text("It is leashed")
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(page.locator("#switch")).to_contain_text("leashed")
    expect(page.get_by_text("Nothing is terminated: these are the instances that would be.")).to_be_visible()
    assert [body for _, _, body in looking.changes()] == [{"halted": True, "reason": "incident 7"}, {"halted": False}]


def test_events_come_by_themselves_and_are_said(looking: Looking) -> None:
    looking.world.events = [event("web", "2026-11-20"), event("ledger", "2026-11-19", "UNRECOVERED")]
    looking.page.clock.install()
    page = looking.go("events")
    expect(page.locator("tbody tr")).to_have_count(2)
    page.get_by_label("Status").select_option("UNRECOVERED")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_label("Status").select_option("")
    expect(page.locator("tbody tr")).to_have_count(2)
    looking.world.events.insert(0, event("api/orders", "2026-11-21", "TERMINATED"))
    page.clock.fast_forward(3_000)
    expect(page.locator("#news")).to_have_text("One event: api/orders terminated.")
    expect(page.locator("tbody tr")).to_have_count(3)
    page.get_by_label("Search").fill("ledger")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_label("Live").uncheck()
    expect(page.locator("#liveness")).to_have_text("Not live.")
    asked = len(looking.world.calls)
    page.clock.fast_forward(25_000)  # the switch is looked at every 30 s
    page.evaluate("fetch('/icon.svg').then((answer) => answer.text())")
    assert looking.world.calls[asked:] == []
    page.get_by_label("Live").check()
    expect(page.locator("#liveness")).to_contain_text("Live: looked at")


def test_nothing_is_asked_while_nobody_looks(looking: Looking) -> None:
    page = looking.go("events")
    page.clock.install()
    page.reload()
    expect(page.locator("#liveness")).to_contain_text("Live: looked at")
    expect(page.get_by_role("button", name="Halt")).to_be_visible()
    page.evaluate(HIDDEN, True)
    expect(page.locator("#liveness")).to_have_text("Not live while nobody looks.")
    asked = len(looking.world.calls)
    page.clock.run_for(120_000)
    page.evaluate("fetch('/icon.svg').then((answer) => answer.text())")  # whatever was asked before has arrived
    assert looking.world.calls[asked:] == []
    page.evaluate(HIDDEN, False)
    expect(page.locator("#liveness")).to_contain_text("Live: looked at")
    assert {path for _, path, _ in looking.world.calls[asked:]} == {"events", "switch"}


HIDDEN = """(hidden) => {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_older_events_are_loaded_when_asked_for(looking: Looking) -> None:
    at = [f"2026-11-{30 - n // 10:02d}T10:{59 - n % 10:02d}:00.000Z" for n in range(120)]
    looking.world.events = [event("web", at=at[n], event_id=str(n), id=str(n)) for n in range(120)]
    page = looking.go("events")
    for count in (50, 100, 120):
        expect(page.locator("tbody tr")).to_have_count(count)
        if count < 120:
            page.get_by_role("button", name="Load older ones").click()
    expect(page.get_by_role("button", name="Load older ones")).to_have_count(0)


def test_more_events_than_fit_into_a_look_leave_no_gap(looking: Looking) -> None:
    def some(numbers: range) -> list[dict[str, Any]]:
        at = {n: f"2026-11-{10 + n // 60:02d}T10:{n % 60:02d}:00.000Z" for n in numbers}
        return [event(f"u{n:03d}", at=at[n], event_id=str(n), id=str(n)) for n in numbers]

    looking.world.events = some(range(59, -1, -1))
    looking.page.clock.install()
    page = looking.go("events")
    page.get_by_role("button", name="Load older ones").click()
    expect(page.locator("tbody tr")).to_have_count(60)
    looking.world.events = some(range(64, -1, -1))
    page.clock.fast_forward(3_000)
    expect(page.locator("tbody tr")).to_have_count(65)
    expect(page.locator("#liveness")).to_contain_text("Live: looked at the newest 50 at")
    looking.world.events = some(range(139, -1, -1))
    page.clock.fast_forward(3_000)
    for count in (50, 100, 140):
        expect(page.locator("tbody tr")).to_have_count(count)
        if count < 140:
            page.get_by_role("button", name="Load older ones").click()
    units = page.locator("tbody tr td:nth-child(2)").all_inner_texts()
    assert units == [f"u{n:03d}" for n in range(139, -1, -1)]


def test_the_calendar(looking: Looking) -> None:
    page = looking.go("calendar")
    expect(page.locator("[data-day='2026-12-08']")).to_contain_text("holiday Immaculate Conception")
    expect(page.locator("[data-day='2026-12-16']")).to_contain_text("freeze Year-end closing")
    expect(page.locator("[data-day='2026-11-23']")).to_contain_text("today")
    expect(page.locator(".days > li")).to_have_count(28)
    expect(page.locator(".day li.would").first).to_be_visible()
    page.get_by_label("As if neither").check()
    expect(page.locator(".day li.will").first).to_be_visible()
    expect(page.locator(".day li.would")).to_have_count(0)
    page.get_by_label("Ahead").select_option("2")
    expect(page.locator(".days > li")).to_have_count(14)
    page.get_by_label("Calendar", exact=True).select_option("night")
    expect(page.get_by_text("Open 01:00 to 04:00 in America/New_York")).to_be_visible()


def test_benchmarks(looking: Looking) -> None:
    going = run(run="20261123-090000-aaaaaaaa", status="RUNNING", ended_at=None, cost=None)
    looking.world.runs = {
        going["run"]: {"run": going, "cells": [cell(1, "", "RUNNING")], "resources": []},
        RUN: {"run": run(), "cells": [cell(1, "n3"), cell(2, "n6")], "resources": []},
    }
    page = looking.go("runs")
    expect(page.get_by_role("row", name=re.compile(RUN))).to_contain_text("1.29 USD")
    report = page.get_by_role("link", name="Report")
    assert (report.get_attribute("target"), report.get_attribute("rel")) == ("_blank", "noopener")
    page.get_by_role("link", name=RUN).click()
    expect(page.get_by_role("row", name=re.compile("c002 n6 write"))).to_contain_text("timeout 3")
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    looking.go(f"runs/{going['run']}")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("dialog")).to_contain_text("everything it has created is removed")
    page.get_by_role("dialog").get_by_role("button", name="Stop the run").click()
    expect(page.locator(".headline")).to_contain_text("stopping")
    assert looking.changes() == [("DELETE", f"benchmarks/{going['run']}", {})]


def test_results_that_were_loaded_by_hand_stay(looking: Looking, monkeypatch: pytest.MonkeyPatch) -> None:
    going = {"run": run(status="RUNNING", ended_at=None), "cells": [cell(1, "n3"), cell(2, "n6")], "resources": []}
    left_out = {"results": None, "results_left_out": True}
    request = looking.world.request

    def small(method: str, path: str, query: Any = None, body: Any = None) -> Answer:
        answer = request(method, path, query, body)
        if path != f"benchmarks/{RUN}" or "cell" in query:
            return answer
        return Answer(200, {**going, "cells": [{**one, **left_out} for one in going["cells"]]})

    monkeypatch.setattr(looking.world, "request", small)
    looking.world.runs = {RUN: going}
    looking.page.clock.install()
    page = looking.go(f"runs/{RUN}")
    for number in ("c001", "c002"):
        looking.world.runs[RUN] = {**going, "cells": [one for one in going["cells"] if one["cell"] == number]}
        page.get_by_role("button", name=f"Load the results of {number}").click()
        expect(page.get_by_role("row", name=re.compile(f"{number} n. write"))).to_be_visible()
    going["run"]["status"] = "STOPPING"
    page.clock.fast_forward(30_000)
    expect(page.locator(".headline")).to_contain_text("stopping")
    expect(page.get_by_role("row", name=re.compile("c00[12] n. write"))).to_have_count(2)
    expect(page.get_by_role("button", name="Load the results")).to_have_count(0)


def test_a_report_opens_in_a_tab_of_its_own(looking: Looking) -> None:
    page, world = looking.page, looking.world
    world.runs = {RUN: {"run": run(), "cells": [], "resources": []}}
    page.context.route(
        "https://bucket.example/**", lambda route: route.fulfill(body="<h1>The report</h1>", content_type="text/html")
    )
    looking.go(f"runs/{RUN}")
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Open the report").click()
    expect(opened.value.get_by_role("heading", name="The report")).to_be_visible()
    assert opened.value.evaluate("opener") is None
    world.report = Answer(404, {"statusCode": 404, "message": "there is no report yet"})
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Open the report").click()
    expect(opened.value.get_by_text("there is no report yet")).to_be_visible()
    missing = Answer(404, {"statusCode": 404, "message": "It is being made."}, headers={"Retry-After": "0.1"})
    world.refusals["GET", f"benchmarks/{RUN}/report"] = [missing, missing, world.report, PLACE]
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Open the report").click()
    expect(opened.value.get_by_text("there is no report yet")).to_be_visible()
    opened.value.get_by_role("button", name="Try again").click()
    expect(opened.value.get_by_role("heading", name="The report")).to_be_visible()


def test_what_others_have_named_stays_text(looking: Looking) -> None:
    world = looking.world
    for name in (HOSTILE, TURNED, "x" * 255):
        world.add(name, reason=HOSTILE, opt_out=True)
    world.events = [event(HOSTILE, detail=HOSTILE), event(TURNED), event("x" * 255)]
    somebody = f"arn:aws:sts::111122223333:assumed-role/{'y' * 64}/{'z' * 64}"
    told = run(name="x" * 128, requested_by=somebody, reason="w" * 500, status="FAILED")
    world.runs = {RUN: {"run": told, "cells": [cell(1, "v" * 99), cell(2, "n6", "FAILED")], "resources": []}}
    page = looking.page
    for view, title in {"events": "Events", "runs": "Benchmarks", f"runs/{RUN}": "x" * 128}.items():
        looking.go(view)
        expect(page.get_by_role("heading", level=1)).to_have_text(title)
        expect(page.locator("tbody tr").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
    looking.go("units")
    page.get_by_role("button", name="Load anew").click()
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


def test_two_thousand_units_stay_usable(looking: Looking) -> None:
    for number in range(2_000):
        looking.world.add(f"unit-{number:04d}")
    page = looking.page
    page.get_by_role("button", name="Load anew").click()
    expect(page.get_by_text("of the 500 loaded so far")).to_be_visible()
    assert page.locator("tbody tr").count() == 200
    page.get_by_label("Search").fill("unit-19")
    expect(page.get_by_text("0 of the 500 loaded so far")).to_be_visible()
    for loaded in (1_000, 1_500, 2_000):
        page.get_by_role("button", name="Load more").click()
        expect(page.get_by_text(re.compile(f"of the {loaded:,} loaded so far"))).to_be_visible()
    page.get_by_role("button", name="Load more").click()
    expect(page.get_by_text("100 of 2,003")).to_be_visible()
    page.get_by_label("Search").fill("unit-1999")
    assert rows(page) == ["unit-1999"]


SAID = [
    (Answer(403, {"message": "The security token included in the request is expired"}), "have expired: get new ones"),
    (Answer(403, {"Message": "User: x is not authorized"}), "you may not do that: your policies must allow"),
    (UnreachableError("no route to host"), "the API of Troop cannot be reached: no route to host"),
]


def test_errors_are_sentences_and_can_be_tried_again(looking: Looking, monkeypatch: pytest.MonkeyPatch) -> None:
    page = looking.go("runs")
    for answer, said in SAID:

        def fail(*_: Any, answer: Answer | Exception = answer) -> Answer:
            if isinstance(answer, Exception):
                raise answer
            return answer

        with monkeypatch.context() as patched:
            patched.setattr(looking.world, "request", fail)
            page.get_by_role("button", name="Load anew").click()
            expect(page.get_by_role("alert")).to_contain_text(said)
        page.get_by_role("button", name="Try again").click()
        expect(page.get_by_text("There are no runs.")).to_be_visible()


def test_a_server_that_was_started_anew_or_is_gone_is_told(looking: Looking) -> None:
    page, server = looking.page, looking.server
    page.context.set_offline(True)
    page.get_by_role("button", name="Load anew").click()
    expect(page.get_by_text("`troop ui` does not answer")).to_be_visible()
    page.context.set_offline(False)
    server.guard = replace(server.guard, token="another")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("heading", name="Open the link once more")).to_be_focused()
    assert page.evaluate("sessionStorage.length") == 0


def test_nobody_gets_in_without_the_link(looking: Looking, browser: Browser) -> None:
    stranger = browser.new_context().new_page()
    stranger.goto(f"{looking.server.address}/#/units")
    expect(stranger.get_by_role("heading", name="Open the link once more")).to_be_visible()
    stranger.goto("about:blank")
    stranger.goto(f"{looking.server.address}/#ticket=used-before")
    expect(stranger.get_by_text("this link has been used before")).to_be_visible()
    stranger.context.close()


def test_another_tab_and_a_reload_need_no_other_link(looking: Looking) -> None:
    looking.page.reload()
    expect(looking.page.get_by_role("heading", name="Units")).to_be_visible()
    assert "ticket" not in looking.page.url
    other = looking.page.context.new_page()
    other.goto(f"{looking.server.address}/#/calendar")
    expect(other.get_by_role("heading", name="Calendar")).to_be_visible()


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
    expect(page.get_by_role("button", name="Load anew")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(page.get_by_role("link", name="Benchmarks")).to_be_focused()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    order = ["Halt …", "Units", "Events", "Calendar", "Benchmarks"]
    page.get_by_role("button", name="Halt").focus()
    for expected in order:
        assert page.evaluate("document.activeElement.textContent") == expected
        page.keyboard.press("Tab")


def test_it_fits_a_phone_and_every_control_has_a_name(looking: Looking) -> None:
    looking.world.events = [event("web", "2026-11-20", detail="a" * 90)]
    looking.world.runs = {RUN: {"run": run(), "cells": [cell(1, "n3"), cell(2, "n6")], "resources": []}}
    page = looking.page
    page.set_viewport_size({"width": 375, "height": 740})
    expect(page.get_by_role("button", name="Halt")).to_be_visible()
    for view, title in VIEWS.items():
        looking.go(view)
        expect(page.get_by_role("heading", level=1)).to_have_text(title)
        expect(page.locator("main table, main .days").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 375, view
        assert page.evaluate(NAMELESS) == [], view


VIEWS = {
    "units": "Units",
    "units/web": "web",
    "events": "Events",
    "calendar": "Calendar",
    "runs": "Benchmarks",
    f"runs/{RUN}": "cassandra-write",
}

NAMELESS = """[...document.querySelectorAll("button, a, input, select")].filter((one) => {
    const labels = [...(one.labels ?? [])].map((label) => label.textContent);
    return !/\\p{L}/u.test(one.getAttribute("aria-label") || one.textContent + labels);
}).map((one) => one.outerHTML)"""
