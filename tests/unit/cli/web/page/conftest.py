"""Opens the page in a browser, with an API in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from cli.web.page_server import PageServer
from tests.patience import PAGE_PATIENCE_MS
from tests.serving import running
from tests.unit.cli.web.page_world import Ahead, World, page_server


@dataclass
class Looking:
    """A user at the page."""

    page: Page
    server: PageServer
    world: World

    def go(self, view: str) -> Page:
        self.page.goto(f"{self.server.address}/#/{view}")
        return self.page

    def has_called(self, path: str, times: int, since: int) -> bool:
        """Whether the page requested a path at least ``times`` times, after the first ``since`` calls."""
        return [call[1] for call in self.world.calls[since:]].count(path) >= times

    def changes(self) -> list[tuple[str, str, Any]]:
        return [call for call in self.world.calls if call[0] != "GET"]


@pytest.fixture
def world() -> World:
    world = World()
    for name in ("web", "api/orders", "ledger"):
        world.add(name)
    return world


@dataclass
class Tab:
    """A tab that tests use one after the other: the first page of a new one takes twice the processor time."""

    page: Page
    errors: list[str] = field(default_factory=list)

    def tidy(self) -> None:
        """Undoes what outlasts the page of an earlier test, whose requests may fail when its server is gone."""
        for other in self.page.context.pages:
            if other is not self.page:
                other.close()
        self.page.unroute_all()
        self.page.context.unroute_all()
        self.page.mouse.move(0, 0)
        self.page.set_viewport_size(SIZE)
        self.page.emulate_media(color_scheme="null", reduced_motion="null")
        self.page.goto("about:blank")
        self.errors.clear()


SIZE: ViewportSize = {"width": 1280, "height": 800}


@contextmanager
def _tab(browser: Browser) -> Iterator[Tab]:
    context = browser.new_context(viewport=SIZE, locale="en-GB", timezone_id="UTC")
    page = context.new_page()
    page.set_default_timeout(PAGE_PATIENCE_MS)
    tab = Tab(page)
    page.on("pageerror", lambda error: tab.errors.append(str(error)))
    page.on("console", lambda m: tab.errors.append(m.text) if "Content Security" in m.text else None)
    yield tab
    context.close()


@pytest.fixture(scope="session")
def tab(browser: Browser) -> Iterator[Tab]:
    with _tab(browser) as tab:
        yield tab


@contextmanager
def _looking(tab: Tab, world: World) -> Iterator[Looking]:
    with running(page_server(world, Ahead(world, "web", "api/orders", "ledger"), [])) as server:
        looking = Looking(tab.page, server, world)
        tab.page.goto(server.link())
        looking.go("units")
        expect(tab.page.get_by_role("heading", name="Units", level=1)).to_be_visible()
        yield looking
        assert tab.errors == []


@pytest.fixture
def looking(tab: Tab, world: World) -> Iterator[Looking]:
    tab.tidy()
    with _looking(tab, world) as looking:
        yield looking
    assert not tab.page.evaluate("'__pwClock' in window"), "a test that uses the clock takes the fixture `timed`"


@pytest.fixture
def timed(browser: Browser, world: World) -> Iterator[Looking]:
    """A user at a page whose clock the test moves forward. The clock stays with the tab, so the tab is a new one."""
    with _tab(browser) as tab, _looking(tab, world) as looking:
        looking.page.clock.install()
        yield looking


# Waits for responses to earlier requests: the API in memory answers almost at once.
SETTLED = "fetch('/icon.svg').then((answer) => answer.text()).then(() => new Promise((done) => setTimeout(done, 50)))"

HIDDEN = """(hidden) => {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""
