"""Tests the page in a browser: access, and messages without an answer."""

from __future__ import annotations

import re
from dataclasses import replace
from http.server import ThreadingHTTPServer
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from cli.client.api import Answer, UnreachableError
from cli.web.proxy import HOST, unguessable_host
from tests.patience import PAGE_PATIENCE_MS
from tests.serving import Quiet, running
from tests.unit.cli.web.page.conftest import Looking
from tests.unit.cli.web.page_world import Ahead, World, page_server

MESSAGES: list[tuple[Answer | Exception, str]] = [
    (Answer(403, {"message": "The security token included in the request is expired"}), "have expired: renew them"),
    (Answer(403, {"Message": "User: x is not authorized"}), "permission denied: your policies must allow"),
    (UnreachableError("no route to host"), "the API of Troop cannot be reached: no route to host"),
]


def test_errors_are_sentences_and_can_be_tried_again(looking: Looking, monkeypatch: pytest.MonkeyPatch) -> None:
    page = looking.go("benchmarks")
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
        expect(page.get_by_text("Nothing has run yet.")).to_be_visible()


def test_restarted_or_stopped_server_is_reported(looking: Looking) -> None:
    page, server = looking.page, looking.server
    expect(page.locator("tbody tr")).to_have_count(3)
    page.route("**/*", lambda route: route.abort())  # set_offline(False) returns before the network is back
    page.get_by_role("button", name="Refresh").click()
    # The switch in the header says the same as soon as its own request fails.
    expect(page.locator("#main").get_by_text("`troop ui` does not answer")).to_be_visible()
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


class Thief(Quiet):
    """A server of another user, whose service worker then answers for the address in place of any server."""

    WORKER = """
        self.addEventListener('install', () => self.skipWaiting());
        self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
        self.addEventListener('fetch', (event) => event.respondWith(
            new Response("<title>stolen</title>", {headers: {"Content-Type": "text/html"}})));
    """
    PAGE = """<script>navigator.serviceWorker.register('/worker.js').then(() => navigator.serviceWorker.ready)
        .then(() => { document.title = 'installed'; })</script>"""

    def do_GET(self) -> None:
        is_worker = self.path == "/worker.js"
        content = (self.WORKER if is_worker else self.PAGE).encode()
        self.answer(200, content, Content_Type="text/javascript" if is_worker else "text/html")


def test_a_service_worker_of_an_earlier_owner_of_the_port_gets_no_ticket(browser: Browser) -> None:
    page = browser.new_context().new_page()
    page.set_default_timeout(PAGE_PATIENCE_MS)
    with running(ThreadingHTTPServer((HOST, 0), Thief)) as thief:
        port = int(thief.server_address[1])
        page.goto(f"http://{HOST}:{port}/")
        expect(page).to_have_title("installed")
    world = World()
    world.add("web")
    titles = {}
    for host in (HOST, unguessable_host()):
        with running(page_server(world, Ahead(world, "web"), [], port=port, host=host)) as server:
            page.goto("about:blank")
            page.goto(server.link())
            expect(page).to_have_title(re.compile("stolen|Troop"))
            titles[host] = page.title()
            if host != HOST:
                expect(page.get_by_role("link", name="Units")).to_be_visible()
                page.goto(f"{server.address}/#/units")
                expect(page.locator("tbody tr")).to_have_count(1)
    page.context.close()
    assert titles.pop(HOST) == "stolen", "at a fixed address, nothing of the server can prevent it"
    assert "stolen" not in titles.values()
    assert titles
