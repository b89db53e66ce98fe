"""Tests the page in a browser: many deployments, of which each has a page, an address and a token of its own."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Page, expect

from cli.client.api import Answer
from cli.client.deployments_file import ListedDeployment
from cli.shared.errors import CliError, Exit
from cli.web import page_deployments
from cli.web.page_deployments import PageDeployments
from cli.web.page_server import PageServer
from tests import accessibility
from tests.patience import PATIENCE
from tests.unit.cli.conftest import event
from tests.unit.cli.web.page.conftest import SETTLED, Looking, Tab
from tests.unit.cli.web.page_world import Ahead, World, page_server

LISTED = [ListedDeployment(name, "eu-central-1", label=name) for name in ("Shut", "One", "Two")]


@pytest.fixture
def worlds() -> dict[str, World]:
    worlds = {"One": World(), "Two": World()}
    worlds["One"].add("web")
    worlds["Two"].add("ledger")
    worlds["Two"].switch |= {"halted": True, "reason": "incident <b>4711</b>", "changed_by": "arn:aws:iam::1:user/ada"}
    worlds["Two"].checks = [{"name": "ticks-late", "status": "fail", "detail": "late"}]
    return worlds


@pytest.fixture
def answering() -> threading.Event:
    """Whether the shut deployment answers at all; else it hangs."""
    event = threading.Event()
    event.set()
    return event


@pytest.fixture
def pages(worlds: dict[str, World], answering: threading.Event) -> Iterator[PageDeployments]:
    def opened(listed: ListedDeployment) -> PageServer:
        if listed.name not in worlds:
            answering.wait(PATIENCE)
            raise CliError(Exit.EXPIRED_CREDENTIALS, "the credentials have expired")
        world = worlds[listed.name]
        return page_server(world, Ahead(world, *world.units), [])

    pages = PageDeployments(LISTED, opened)
    yield pages
    answering.set()
    pages.close()


@pytest.fixture
def page(tab: Tab, pages: PageDeployments) -> Iterator[Page]:
    tab.tidy()
    tab.page.goto(pages.page("One").link())
    expect(tab.page.get_by_role("heading", name="Overview")).to_be_visible()
    yield tab.page
    assert tab.errors == []


def test_every_deployment_has_a_row_and_one_that_is_shut_stops_none(page: Page, pages: PageDeployments) -> None:
    page.keyboard.press("g")
    page.keyboard.press("d")
    expect(page.get_by_role("link", name="Deployments")).to_have_attribute("aria-current", "page")
    rows = page.locator("tbody tr")
    expect(page.get_by_text("3 deployments; 1 does not answer.")).to_be_visible()
    expect(rows.nth(0)).to_contain_text(re.compile("Shut.*does not answer.*the credentials have expired"))
    expect(rows.nth(1)).to_contain_text(re.compile("One.*leashed.*healthy.*0 events.*0 runs, 0 fleets"))
    expect(rows.nth(2)).to_contain_text(re.compile("Two.*halted by ada: incident <b>4711</b>.*fails ticks late"))
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        assert accessibility.findings(page) + accessibility.hidden_cells(page) == []
        assert accessibility.overflow(page) <= 0


def test_the_switcher_opens_the_page_of_another_deployment_with_its_own_data(
    page: Page, pages: PageDeployments, worlds: dict[str, World]
) -> None:
    worlds["Two"].events = [event("ledger", "2026-11-20", "RECOVERED")]
    page.goto(f"{pages.page('One').address}/#/units")
    expect(page.get_by_role("link", name="web", exact=True)).to_be_visible()
    page.get_by_label("Deployment", exact=True).select_option("Two")
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    assert page.url.startswith(pages.page("Two").address)
    expect(page.get_by_label("Deployment", exact=True)).to_have_value("Two")
    expect(page.locator("#switch")).to_contain_text("halted")
    page.get_by_role("link", name="Units").click()
    expect(page.get_by_role("link", name="ledger", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="web", exact=True)).to_have_count(0)
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(page.locator("#switch")).to_contain_text("leashed")
    assert [len(worlds[name].changes()) for name in ("One", "Two")] == [0, 1]


def test_a_deployment_that_cannot_be_opened_says_why_and_the_page_stays(page: Page, pages: PageDeployments) -> None:
    page.get_by_label("Deployment", exact=True).select_option("Shut")
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_text("Shut cannot be opened: the credentials have expired")).to_be_visible()
    expect(page.get_by_role("link", name="Deployments")).to_be_visible()


def test_page_of_the_first_that_answers_waits_for_none_that_hangs(
    pages: PageDeployments, answering: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_deployments, "SECONDS", 2 * PATIENCE)
    answering.clear()
    assert pages.first().label in ("One", "Two")


def test_rows_that_are_ready_wait_for_none_that_hangs(page: Page, answering: threading.Event) -> None:
    answering.clear()
    page.keyboard.press("g")
    page.keyboard.press("d")
    rows = page.locator("tbody tr")
    expect(rows.nth(2)).to_contain_text("halted by ada")
    expect(rows.nth(0)).to_contain_text("Loading")
    answering.set()
    expect(page.get_by_text("3 deployments; 1 does not answer.")).to_be_visible()
    expect(rows.nth(0)).to_contain_text("the credentials have expired")


def test_row_that_nobody_fetched_is_read_again_later(
    pages: PageDeployments, worlds: dict[str, World], answering: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_deployments, "_PATIENCE", 0.0)
    answering.clear()
    assert pages.rows(["Shut"]) == []  # the tab is closed
    answering.set()
    monkeypatch.setattr(page_deployments, "_PATIENCE", PATIENCE)
    monkeypatch.setattr(page_deployments, "_TOO_OLD", 0.0)
    worlds["Shut"] = World()
    assert [row["error"] for row in pages.rows(["Shut"])] == [None]


@pytest.mark.parametrize(
    ("health", "words"),
    [({"status": "SPLENDID", "checks": []}, "splendid"), ({"status": "warn"}, "this page cannot show")],
)
def test_strange_value_is_that_of_its_cell_and_rows_are_read_again(
    page: Page, worlds: dict[str, World], health: dict[str, Any], words: str
) -> None:
    worlds["Two"].refusals["GET", "health"] = [Answer(200, health)]
    page.keyboard.press("g")
    page.keyboard.press("d")
    rows = page.locator("tbody tr")
    expect(rows.nth(2)).to_contain_text(re.compile(f"halted.*{words}.*0 events"))
    worlds["Two"].switch |= {"halted": False}
    page.get_by_role("button", name="Refresh").click()
    expect(rows.nth(2)).to_contain_text("leashed")


def test_halt_of_many_is_shown_with_the_command_that_ends_it(page: Page, worlds: dict[str, World]) -> None:
    worlds["Two"].switch |= {
        "halt": {"at": None, "by": "arn:aws:iam::1:user/eve", "reason": "x"},
        "halt_id": "7-0a1b2c",
    }
    page.keyboard.press("g")
    page.keyboard.press("d")
    expect(page.locator("tbody tr").nth(2)).to_contain_text("halted by eve: x halt 7-0a1b2c")
    expect(page.get_by_text("troop resume --all --halt 7-0a1b2c")).to_be_visible()


def test_keyboard_chooses_without_leaving_and_a_round_announces_once(page: Page, pages: PageDeployments) -> None:
    choice = page.get_by_label("Deployment", exact=True)
    choice.focus()
    page.keyboard.press("ArrowDown")
    expect(choice).to_have_value("Two")
    page.evaluate(SETTLED)
    assert page.url.startswith(pages.page("One").address)
    choice.blur()
    page.keyboard.press("g")
    page.keyboard.press("d")
    expect(page.get_by_text("3 deployments; 1 does not answer.")).to_be_visible()
    for name in ("Shut", "One", "Two"):
        page.keyboard.press("j")
        expect(page.locator("tbody :focus")).to_have_text(name)
    page.evaluate("""() => {
        const changes = (window.announced = []);
        const all = { childList: true, subtree: true, characterData: true };
        const seen = new MutationObserver((some) => changes.push(...some));
        for (const live of document.querySelectorAll("main [role=status]")) seen.observe(live, all);
        document.activeElement.dataset.same = "yes";
    }""")
    with page.expect_response(re.compile("ui/deployments")):
        page.keyboard.press("r")
    page.evaluate(SETTLED)
    expect(page.locator("[data-same=yes]:focus")).to_have_text("Two")
    assert page.evaluate("announced.length") == 0


def test_overview_of_all_makes_the_requests_that_its_costs_say(
    pages: PageDeployments, worlds: dict[str, World]
) -> None:
    moment = datetime(2026, 11, 20, 9, tzinfo=UTC)
    pages.page("One").overview.now = lambda: moment
    for _ in range(60):
        assert pages.rows(["One"])[0]["error"] is None
        moment += timedelta(minutes=1)
    assert len(worlds["One"].calls) == 210


def test_the_token_of_one_page_opens_no_other(pages: PageDeployments) -> None:
    def ask(server: PageServer, token: str) -> int:
        request = Request(f"{server.address}/ui/about", headers={"X-Troop-Token": token})
        try:
            with urlopen(request) as answer:
                assert json.load(answer)["deployments"] == ["Shut", "One", "Two"]
                return int(answer.status)
        except HTTPError as error:
            return error.code

    one, two = pages.page("One"), pages.page("Two")
    assert [ask(one, one.token), ask(two, one.token), ask(one, two.token)] == [200, 401, 401]


def test_a_strange_answer_is_the_error_of_its_deployment_alone(
    pages: PageDeployments, worlds: dict[str, World]
) -> None:
    worlds["Two"].refusals["GET", "events"] = [Answer(200, {"other": 1})]
    assert "makes no sense" in pages.row("Two")["error"]
    assert pages.row("One")["error"] is None
    assert "has no 'Three'" in pages.row("Three")["error"]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (CliError(Exit.NO_CREDENTIALS, "no credentials"), "One: no credentials"),
        (ValueError("Invalid endpoint: x"), r"One: it cannot be connected \(ValueError: Invalid endpoint: x\)"),
    ],
)
def test_without_an_answer_of_any_deployment_there_is_no_page(error: Exception, words: str) -> None:
    def refuse(listed: ListedDeployment) -> PageServer:
        raise error

    with pytest.raises(CliError, match=words) as caught:
        PageDeployments(LISTED, refuse).first()
    assert caught.value.code is Exit.UNREACHABLE


def test_page_of_one_deployment_says_how_to_see_all(looking: Looking) -> None:
    page = looking.go("deployments")
    expect(page.get_by_text("troop --all ui")).to_be_visible()
    expect(page.get_by_role("link", name="Deployments")).to_have_count(0)
