"""Tests the page in a browser: units, opting out and opting in."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import partial

from playwright.sync_api import Page, expect

from cli.client.api import Answer
from tests.unit.cli.conftest import event
from tests.unit.cli.web.page.conftest import SETTLED, Looking


def rows(page: Page) -> list[str]:
    return page.locator("tbody tr td.first").all_inner_texts()


def test_units_are_searched_and_sorted(looking: Looking) -> None:
    page = looking.page
    expect(page.locator("tbody tr")).to_have_count(3)
    expect(page.get_by_text("Values without a source come from the settings.")).to_be_visible()
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


def test_the_list_tells_why_one_is_left_alone_until_when_and_whose_it_is(looking: Looking) -> None:
    looking.world.add("closing", opt_out=True, reason="month-end closing", until="2099-12-31", owner="finance")
    page = looking.page
    page.get_by_role("button", name="Refresh").click()
    for words in ("month-end", "finance", "2099-12"):
        page.get_by_label("Search").fill(words)
        expect(page.locator("tbody tr")).to_have_count(1)
        row = page.get_by_role("row", name=re.compile("^closing ?finance"))
        expect(row).to_contain_text("opted out by item until 2099-12-31: month-end closing")


def test_thousands_of_units_stay_usable(looking: Looking) -> None:
    for number in range(4_100):
        looking.world.add(f"unit-{number:04d}")
    page = looking.page
    page.get_by_role("button", name="Refresh").click()
    expect(page.get_by_text("2,000 units loaded so far")).to_be_visible()
    assert page.locator("tbody tr").count() == 200
    page.get_by_label("Search").fill("unit-38")
    expect(page.get_by_text("0 of 2,000 units loaded so far")).to_be_visible()
    page.get_by_role("button", name="Load more").click()
    expect(page.get_by_text("100 of 4,000 units loaded so far")).to_be_visible()
    page.get_by_role("button", name="Load more").click()
    expect(page.get_by_text("100 of 4,103")).to_be_visible()
    page.get_by_label("Search").fill("unit-3899")
    assert rows(page) == ["unit-3899"]


def test_views_share_what_was_read_of_the_groups(looking: Looking) -> None:
    for number in range(120):
        looking.world.add(f"unit-{number:03d}")
    page = looking.page
    page.get_by_role("button", name="Refresh").click()
    expect(page.get_by_text("123 units")).to_be_visible()
    call_count = len(looking.world.calls)
    for view in ("overview", "units/web", "units"):
        looking.go(view)
        page.reload()
        expect(page.locator(".loading")).to_have_count(0)
    expect(page.get_by_text("123 units")).to_be_visible()
    assert not looking.has_called("groups", 1, since=call_count)
    page.get_by_role("button", name="Refresh").click()
    page.evaluate(SETTLED)
    assert looking.has_called("groups", 3, since=call_count)


def test_unit_that_opting_in_does_not_help_has_no_button_for_it(looking: Looking) -> None:
    looking.world.add("tiny", protected="troop:protected")
    looking.world.add("bad", problem="tag troop:probability is 'often'")
    looking.page.get_by_role("button", name="Refresh").click()
    looking.page.get_by_label("Show", exact=True).select_option("in")
    expect(looking.page.locator("tbody tr")).to_have_count(3)
    for unit, state in (("tiny", "protected"), ("bad", "malformed")):
        page = looking.go(f"units/{unit}")
        expect(page.locator(".headline .badge")).to_have_text(state)
        expect(page.get_by_role("button", name="Opt out")).to_be_visible()
        expect(page.get_by_role("button", name="Opt in")).to_have_count(0)


def test_outdated_list_is_loaded_again_on_return(timed: Looking) -> None:
    page = timed.page
    timed.go("units")
    page.reload()
    expect(page.get_by_text(re.compile(r"Loaded at \d\d:\d\d:\d\d UTC"))).to_be_visible()
    began, groups = datetime.now(UTC), timed.server.overview.groups
    for seconds, later, times in ((30, 30, 0), (40, 70, 1)):
        groups.now = partial(began.__add__, timedelta(seconds=later))
        timed.go("units/web")
        expect(page.get_by_role("heading", name="web")).to_be_visible()
        page.clock.fast_forward(seconds * 1_000)
        call_count = len(timed.world.calls)
        page.get_by_role("link", name="← Units").click()
        expect(page.locator("tbody tr")).to_have_count(3)
        assert [path for _, path, _ in timed.world.calls[call_count:]].count("groups") == times


def test_an_address_of_no_unit_is_explained_to_people(looking: Looking) -> None:
    page = looking.go("units/no~2Fsuch")
    expect(page.get_by_role("heading", name="There is no unit no/such")).to_be_visible()
    page.get_by_role("link", name="the list of units").click()
    expect(page.get_by_role("heading", name="Units", level=1)).to_be_visible()


def test_opting_out_asks_and_sends_the_version(looking: Looking) -> None:
    page = looking.go("units/web")
    page.get_by_role("button", name="Opt out").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("no roll hits an instance of web-v1")
    expect(dialog.get_by_label("Reason")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)  # without its role, it still refuses another dialog
    expect(page.get_by_role("button", name="Opt out")).to_be_focused()
    assert looking.changes() == []
    page.keyboard.press("Enter")
    expect(dialog.get_by_label("Reason")).to_be_focused()
    page.keyboard.type("month-end closing")
    dialog.get_by_label("Until").fill("2099-12-31")
    dialog.get_by_role("button", name="Opt out").click()
    expect(page.locator("#flash")).to_have_text("web is opted out until the end of 2099-12-31.")
    change = {"opt_out": True, "until": "2099-12-31", "reason": "month-end closing", "version": 0}
    assert looking.changes() == [("PATCH", "groups/web", change)]
    page.get_by_role("button", name="Opt in").click()
    dialog.get_by_role("button", name="Opt in").click()
    expect(page.locator("#flash")).to_have_text("web takes part.")
    assert looking.changes()[1][2] == {"opt_in": True, "opt_out": None, "until": None, "reason": None, "version": 1}


def test_until_today_can_be_chosen_where_the_day_ends_late(timed: Looking) -> None:
    page = timed.page
    page.clock.set_fixed_time("2026-11-24T02:00:00Z")  # still the 23rd in America
    timed.go("units/web")
    page.get_by_role("button", name="Opt out").click()
    page.get_by_role("dialog").get_by_label("Until").fill("2026-11-23")
    page.get_by_role("dialog").get_by_role("button", name="Opt out").click()
    expect(page.locator("#flash")).to_have_text("web is opted out until the end of 2026-11-23.")


def test_a_unit_that_has_not_recovered_is_put_back(looking: Looking) -> None:
    looking.world.units["web"]["unrecovered"] = "2026-11-20#web"
    page = looking.go("units/web")
    expect(page.locator(".headline .badge")).to_have_text("unrecovered")  # not "takes part"
    page.get_by_role("button", name="Opt in again").click()
    page.get_by_role("dialog").get_by_role("button", name="Opt in again").click()
    expect(page.get_by_text("did not recover")).to_have_count(0)
    assert looking.changes()[0][2]["unrecovered"] is False


def test_unrecovered_unit_is_out_and_links_to_its_event(looking: Looking) -> None:
    looking.world.add("sick", unrecovered="od#sick#a~key")
    looking.world.add("lost", unrecovered="2026-11-19#lost")  # not among the last events
    looking.world.add("bad", problem="tag troop:probability is 'often'")
    on_demand = event("sick", status="UNRECOVERED", event_id="od#sick#a~key", id="od~sick~23a~7Ekey", detail="2 of 3")
    looking.world.events = [on_demand]
    page = looking.page
    page.get_by_role("button", name="Refresh").click()
    page.get_by_label("Show", exact=True).select_option("out")
    expect(page.locator("tbody tr")).to_have_count(3)
    assert rows(page) == ["bad", "lost", "sick"]
    expect(page.get_by_role("row", name=re.compile("^lost"))).to_contain_text("from its hit of 2026-11-19")
    page.get_by_role("link", name="sick").click()
    sentence = "did not recover from a hit on demand (the termination of i-0abc at 20 Nov 2026, 10:00:00 UTC)"
    expect(page.locator(".problem")).to_contain_text(sentence)
    page.locator(".problem").get_by_role("link").click()
    expect(page.get_by_role("heading", name="Termination of i-0abc")).to_be_visible()
    expect(page.locator("main")).to_contain_text("2 of 3")


def test_somebody_elses_change_in_between_is_shown_and_not_undone(looking: Looking) -> None:
    page = looking.go("units/web")
    page.get_by_role("button", name="Opt out").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Now: takes part")
    looking.world.units["web"] |= {"item": {"opt_out": True, "reason": "theirs"}, "version": 7}
    dialog.get_by_role("button", name="Opt out").click()
    expect(dialog).to_contain_text("changed by somebody else")
    expect(dialog).to_contain_text("Now: skipped; opted out by item: theirs.")
    expect(dialog).to_contain_text("somebody else. This dialog now shows the current state")
    dialog.get_by_role("button", name="Opt out").click()
    expect(dialog).to_have_count(0)
    assert [body["version"] for _, _, body in looking.changes()] == [0, 7]


def test_a_refusal_is_shown_in_the_apis_words(looking: Looking) -> None:
    page = looking.go("units/web")
    page.get_by_role("button", name="Opt out").click()
    message = "until is '2020-01-01': must not be past"
    looking.world.refusals["PATCH", "groups/web"] = [Answer(400, {"statusCode": 400, "message": message})]
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Opt out").click()
    expect(dialog.get_by_role("alert")).to_have_text(message)
    expect(dialog.get_by_role("button", name="Opt out")).to_be_enabled()
