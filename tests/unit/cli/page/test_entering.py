"""Tests the page in a browser: access, and messages without an answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from cli.client.api import Answer, UnreachableError
from tests.patience import PAGE_PATIENCE_MS
from tests.unit.cli.page.conftest import Looking

MESSAGES: list[tuple[Answer | Exception, str]] = [
    (Answer(403, {"message": "The security token included in the request is expired"}), "have expired: renew them"),
    (Answer(403, {"Message": "User: x is not authorized"}), "permission denied: your policies must allow"),
    (UnreachableError("no route to host"), "the API of Troop cannot be reached: no route to host"),
]


def test_errors_are_sentences_and_can_be_tried_again(looking: Looking, monkeypatch: pytest.MonkeyPatch) -> None:
    page = looking.go("runs")
    for answer, message in MESSAGES:

        def fail(*_: Any, answer: Answer | Exception = answer) -> Answer:
            if isinstance(answer, Exception):
                raise answer
            return answer

        with monkeypatch.context() as patched:
            patched.setattr(looking.world, "request", fail)
            page.get_by_role("button", name="Refresh").click()
            expect(page.get_by_role("alert")).to_contain_text(message)
        page.get_by_role("button", name="Try again").click()
        expect(page.get_by_text("There are no runs.")).to_be_visible()


def test_a_server_that_was_started_anew_or_is_gone_is_told(looking: Looking) -> None:
    page, server = looking.page, looking.server
    expect(page.locator("tbody tr")).to_have_count(3)
    page.route("**/*", lambda route: route.abort())  # set_offline(False) returns before the network is back
    page.get_by_role("button", name="Refresh").click()
    expect(page.get_by_text("`troop ui` does not answer")).to_be_visible()
    page.unroute_all()
    server.guard = replace(server.guard, token="another")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("heading", name="Open a new link")).to_be_focused()
    assert page.evaluate("sessionStorage.length") == 0


def test_nobody_gets_in_without_the_link(looking: Looking, browser: Browser) -> None:
    stranger = browser.new_context().new_page()
    stranger.set_default_timeout(PAGE_PATIENCE_MS)
    stranger.goto(f"{looking.server.address}/#/units")
    expect(stranger.get_by_role("heading", name="Open a new link")).to_be_visible()
    stranger.goto("about:blank")
    stranger.goto(f"{looking.server.address}/#ticket=used-before")
    expect(stranger.get_by_text("This link was used before")).to_be_visible()
    stranger.context.close()


def test_another_tab_and_a_reload_need_no_other_link(looking: Looking) -> None:
    looking.page.reload()
    expect(looking.page.get_by_role("heading", name="Units", level=1)).to_be_visible()
    assert "ticket" not in looking.page.url
    other = looking.page.context.new_page()
    other.set_default_timeout(PAGE_PATIENCE_MS)
    other.goto(f"{looking.server.address}/#/calendar")
    expect(other.get_by_role("heading", name="Calendar")).to_be_visible()
