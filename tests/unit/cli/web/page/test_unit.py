"""Tests the page in a browser: the view of one unit, in the order of its owner's questions."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from cli.client.api import Answer
from cli.forecasts.calendar_ahead import Basis
from cli.shared.errors import CliError, Exit
from tests import accessibility
from tests.unit.cli.conftest import event
from tests.unit.cli.web.page.conftest import SETTLED, Looking
from tests.unit.cli.web.page_world import termination


def day(ago: int) -> str:
    return (datetime(2026, 11, 23, tzinfo=UTC) - timedelta(days=ago)).date().isoformat()


def recovered(seconds: float, ago: int) -> dict[str, Any]:
    return event("web", day(ago), recovery_seconds=seconds)


def _next(page: Page) -> Locator:
    return page.get_by_role("region", name="Next hit")


def test_the_view_begins_with_the_next_termination_and_its_odds(looking: Looking) -> None:
    looking.world.events = [recovered(3.1, 1)]
    page = looking.go("units/web")
    expected = next(hit for hit in looking.server.ahead(2, unleashed=False)["expected"] if hit["unit"] == "web")
    card = _next(page)
    expect(card.locator("time")).to_have_attribute("datetime", expected["tick"])
    expect(card).to_contain_text(f", {expected['at']} Europe/Vienna")  # as in the strip below
    expect(card).to_contain_text("would be, if unleashed")
    expect(card).to_contain_text("20 % chance a business day; on average every 5 business days")
    expect(card).to_contain_text("Last: Sunday, November 22, 2026, recovered in 3.1 s.")
    headings = page.locator("h2").all_inner_texts()
    begin = ["Next hit", "Last recoveries", "Next two weeks, in Europe/Vienna", "Decision of a day"]
    assert headings == [*begin, "Policy", "Groups", "Last events", "Last changes"]
    cell = page.locator(".fortnight li").filter(has=page.locator(f"[datetime='{expected['day']}']"))
    expect(cell).to_contain_text(expected["at"])
    expect(page.locator(".fortnight li")).to_have_count(14)
    expect(page.locator("[datetime='2026-11-28']").locator("..")).to_contain_text("weekend")
    page.get_by_text("Days as a table").click()
    expect(page.get_by_role("row", name=re.compile("Tuesday, November 24"))).to_contain_text(">= probability 0.35")


def test_a_group_says_whether_it_consents_and_how_many_instances_are_fit(looking: Looking) -> None:
    known = looking.world.request("GET", "groups/web").body
    inside = {"consent": "yes", "fit": 0, "why": "has only instances that have had a fault inside before"}
    groups = [{"group": "web-v1", "desired": 3, "in_service": 3, "protected": None, "inside": inside}]
    looking.world.refusals["GET", "groups/web"] = [Answer(200, known | {"groups": groups})]
    words = "web-v1: 3 of 3 in service, faults inside: yes, 0 fit; it has only instances that have had a fault inside"
    expect(looking.go("units/web").get_by_text(words)).to_be_visible()


def test_without_the_salt_the_view_has_odds_and_no_moment(looking: Looking, monkeypatch: pytest.MonkeyPatch) -> None:
    known = looking.server.ahead.basis()
    outlook = {"takes_part": True, "state": "taking part", "reason": None, "why": ""}
    looking.world.units["web"]["outlook"] = outlook | {"next_possible": "2026-11-24T08:00:00.000Z"}

    def secret(_: object) -> Basis:
        return replace(known, salt=None, no_salt="you may not read it")

    monkeypatch.setattr(type(looking.server.ahead), "basis", secret)
    page = looking.go("units/web")
    expect(_next(page)).to_contain_text("20 % chance a business day; on average every 5 business days")
    expect(_next(page)).to_contain_text("Not before Tue, Nov 24, 08:00 UTC.")
    expect(_next(page)).to_contain_text("without the deployment's salt: you may not read it.")
    expect(_next(page)).to_contain_text("% for at least one in the next two weeks.")
    days = page.locator(".fortnight li")
    expect(days.filter(has=page.locator("[datetime='2026-11-24']"))).to_contain_text("35 %")
    expect(days.filter(has=page.locator("[datetime='2026-11-28']"))).to_contain_text("weekend")

    def forbidden(_: object) -> Basis:
        raise CliError(Exit.FORBIDDEN, "you may not read the settings")

    monkeypatch.setattr(type(looking.server.ahead), "basis", forbidden)
    page.reload()
    expect(_next(page)).to_contain_text("without the deployment's salt: you may not read the settings.")


def test_a_skipped_unit_has_no_next_termination_until_it_is_opted_in(looking: Looking) -> None:
    looking.world.units["web"]["item"] = {"opt_out": True}
    page = looking.go("units/web")
    expect(_next(page)).to_contain_text("None while the unit is skipped.")
    expect(page.locator(".fortnight")).to_have_count(0)
    page.get_by_role("button", name="Opt in").click()
    page.get_by_role("dialog").get_by_role("button", name="Opt in").click()
    expect(_next(page)).to_contain_text("would be, if unleashed")
    expect(page.locator(".fortnight li")).to_have_count(14)


def test_a_halted_deployment_has_no_termination_that_is_expected(looking: Looking) -> None:
    def halted(route: Route) -> None:
        answer = route.fetch().json() | {"halted": True}
        for one in answer["days"]:
            one["expected"] = one["expected"] and one["expected"] | {"leashed": False}
        route.fulfill(json=answer)

    looking.page.route("**/ui/ahead?*", halted)
    page = looking.go("units/web")
    expect(_next(page)).to_contain_text("would be, if resumed")
    expect(page.locator(".fortnight .would").first).to_be_visible()
    expect(page.locator(".fortnight .hit")).to_have_count(0)


def test_no_termination_is_expected_only_while_the_unit_stays_as_it_is(looking: Looking) -> None:
    def unhealthy(route: Route) -> None:
        answer = route.fetch().json()
        for one in answer["days"]:
            one["expected"] = {"hit": False, "reason": "unhealthy", "detail": ""}
        route.fulfill(json=answer)

    looking.page.route("**/ui/ahead?*", unhealthy)
    outlook = {"takes_part": True, "state": "taking part", "reason": "unhealthy", "next_possible": None}
    looking.world.units["web"]["outlook"] = outlook | {"why": "unhealthy: web has 1 of 2 in service"}
    page = looking.go("units/web")
    expect(_next(page)).to_contain_text("None expected in the next two weeks, if this stays so.")
    expect(page.get_by_text("Not now: unhealthy")).to_be_visible()


def _chart(page: Page, text: str) -> Locator:
    return page.get_by_role("img", name=re.compile(text))


def test_a_chart_has_no_mark_at_seconds_that_nobody_measured(looking: Looking) -> None:
    """Also if a later recovery is longer than the others."""
    lost = event("web", day(2), status="UNRECOVERED")
    looking.world.events = [recovered(95.0, 1), lost, *(recovered(3.0 + n, n + 3) for n in range(10))]
    page = looking.go("units/web")
    chart = page.get_by_role("img", name="The last 10: 9 recoveries, 1 slow, 1 not in time", exact=True)
    expect(chart.locator(".whole")).to_have_count(9)
    expect(chart.locator(".slow .whole")).to_have_count(1)
    expect(chart.locator(".frame")).to_have_count(1)  # slow is not a matter of colours alone
    band, cross = chart.locator(".band").bounding_box(), chart.locator(".lost path").bounding_box()
    assert band
    assert cross
    assert band["y"] <= cross["y"] <= cross["y"] + cross["height"] <= band["y"] + band["height"]
    tops = [box["y"] for bar in chart.locator(".whole").all() if (box := bar.bounding_box())]
    assert min(tops) > band["y"] + band["height"]
    expect(page.get_by_text("usual: 8.0 s")).to_be_visible()
    page.get_by_text("Recoveries as a table").click()
    expect(page.get_by_role("row", name=re.compile("Sunday, November 22, 2026"))).to_contain_text("1m 35s, slow")
    expect(page.get_by_role("columnheader", name="Verdict")).to_have_count(0)  # earlier versions gave none


def test_recoveries_of_seconds_fill_the_chart(looking: Looking) -> None:
    looking.world.events = [recovered(3.0 + n / 10, n) for n in range(1, 7)]
    page = looking.go("units/web")
    chart = _chart(page, "The last 6")
    expect(chart.locator("text", has_text="4 s").first).to_be_visible()  # the end of the axis
    assert chart.locator(".grid").count() == 3
    low, high = (chart.locator(".grid").nth(n).bounding_box() for n in (0, 2))
    bars = [box for bar in chart.locator(".whole").all() if (box := bar.bounding_box())]
    assert low
    assert high
    assert all(box["y"] < (low["y"] + high["y"]) / 2 for box in bars)


def test_a_recovery_is_a_stack_of_its_stages_with_its_verdict_below(looking: Looking) -> None:
    verdicts = ["HELD", "BROKEN", "UNKNOWN", "HELD", "HELD"]
    staged = [termination("web", day(n)) for n in range(1, 6)]
    for one, value in zip(staged, verdicts, strict=True):
        one["verdict"]["value"] = value
    early = termination("web", day(6), stages=None, verdict=None)
    looking.world.events = [*staged, early, termination("web", day(7), "UNRECOVERED", recovery_seconds=None)]
    page = looking.go("units/web")
    chart = _chart(page, "The last 7: 6 recoveries, 0 slow, 1 not in time, 4 held, 1 broken, 1 unknown")
    stacks = chart.locator("g.bar:has(.noticed)")
    expect(stacks).to_have_count(5)
    expect(chart.locator(".whole")).to_have_count(1)
    boxes = [
        stacks.last.locator(f".{span}").bounding_box() for span in ("noticed", "launched", "in_service", "healthy")
    ]
    for below, above in pairwise(boxes):
        assert below
        assert above
        assert above["y"] + above["height"] == pytest.approx(below["y"], abs=2)
    mark = chart.locator(".verdict.BROKEN")
    assert (box := mark.bounding_box())
    assert boxes[0]
    assert box["y"] > boxes[0]["y"]
    page.get_by_text("Recoveries as a table").click()
    row = page.get_by_role("row", name=re.compile("Sunday, November 22, 2026"))
    expect(row.get_by_role("cell")).to_have_text(
        ["Sunday, November 22, 2026", "1m 05s", "2.5 s", "1.5 s", "38.0 s", "21.0 s", "2.0 s", "held"]
    )
    missing = page.get_by_role("row", name=re.compile("Tuesday, November 17, 2026"))
    expect(missing.get_by_role("cell")).to_have_text(
        ["Tuesday, November 17, 2026", "1m 05s", "\u2013", "\u2013", "\u2013", "\u2013", "\u2013", "\u2013"]
    )
    key = page.get_by_role("region", name="Last recoveries").locator(".key li")
    expect(key.filter(has_text="stages not recorded")).to_be_visible()
    expect(key.filter(has_text="hypothesis broken")).to_be_visible()


def test_slower_recoveries_say_since_when(looking: Looking) -> None:
    looking.world.events = [recovered((95.0 if n <= 12 else 60.0) + n % 3, n) for n in range(1, 31)]
    panel = looking.go("units/web").get_by_role("region", name="Last recoveries")
    expect(panel.locator(".problem")).to_have_text(
        "Slower since Wednesday, November 11, 2026: recovery 1m 35s in place of 1m 00s."
    )
    expect(panel.locator(".problem").get_by_role("link")).to_have_attribute("href", re.compile("2026-11-11"))


def test_few_recoveries_are_words_and_load_no_chart_library(looking: Looking) -> None:
    held = {"verdict": termination("web")["verdict"]}
    lost = event("web", day(2), status="UNRECOVERED")
    looking.world.events = [recovered(3.1, 1) | held, lost, recovered(61.0, 3)]
    page, loaded = looking.page, list[str]()
    page.on("request", lambda request: loaded.append(request.url))
    for view in ("overview", "units", "units/web"):
        looking.go(view)
        page.reload()
        expect(page.locator(".loading")).to_have_count(0)
    listed = page.get_by_role("region", name="Last recoveries").get_by_role("listitem")
    expect(listed).to_have_text(
        ["Sun, Nov 22: 3.1 s, hypothesis held", "Sat, Nov 21: not in time", "Fri, Nov 20: 1m 01s"]
    )
    assert page.get_by_role("img").count() == 0
    page.evaluate(SETTLED)
    assert not [url for url in loaded if "/report/" in url]
    listed.nth(1).get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("i-0abc")


def test_a_wrong_value_is_marked_at_its_row(looking: Looking) -> None:
    problem = "web-v1: tag troop:probability is 'min_healthy': must be a number from 0 to 1"
    looking.world.add("bad", problem=problem)
    page = looking.go("units/bad")
    policy = page.get_by_role("table", name="Policy values and their sources")
    expect(policy.get_by_role("row", name="Probability per business day").locator(".wrong")).to_have_text(problem)
    expect(policy.locator(".wrong")).to_have_count(1)
    expect(page.get_by_text("Not set: opted out until, reason, owner.")).to_be_visible()


def test_a_part_that_fails_leaves_the_others(looking: Looking) -> None:
    refused = Answer(500, {"statusCode": 500, "message": "it is broken"})
    looking.world.refusals["GET", "events"] = [refused]
    page = looking.go("units/web")
    past = page.get_by_role("region", name="Last recoveries")
    expect(past.get_by_role("alert")).to_contain_text("it is broken")
    assert accessibility.findings(page) == []
    expect(_next(page)).to_contain_text("20 % chance a business day")
    del looking.world.refusals["GET", "events"]
    past.get_by_role("button", name="Try again").click()
    expect(past).to_contain_text("There are none yet")


def test_a_broken_unit_says_why_it_left_and_returns(looking: Looking) -> None:
    broken = termination("web", day(1))
    broken["verdict"] |= {"value": "BROKEN", "why": "alarm web-5xx went off"}
    looking.world.events = [broken]
    looking.world.units["web"] |= {"unrecovered": broken["event_id"], "left_for": "broken"}
    outlook = {"takes_part": False, "state": "broken", "reason": "broken", "next_possible": None}
    looking.world.units["web"]["outlook"] = outlook | {"why": f"broken by its hit of {day(1)}: return it"}
    page = looking.go("units/web")
    expect(page.locator(".headline .badge").first).to_have_class(re.compile("bad"))
    expect(page.locator(".problem")).to_contain_text("broken by its hit of")
    expect(page.get_by_text("alarm web-5xx went off.", exact=True)).to_be_visible()
    expect(page.get_by_text("It stays out of chaos until its owner opts it in again.")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("recovered in 1m 05s broken"))).to_be_visible()
    page.get_by_role("button", name="Opt in again").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("The hypothesis was broken by the termination of i-0abc")
    looking.world.units["web"]["outlook"] = None
    dialog.get_by_role("button", name="Opt in again").click()
    expect(page.get_by_text("web takes part.")).to_be_visible()
    (_, _, body), *others = looking.changes()
    assert not others
    assert body["unrecovered"] is False
