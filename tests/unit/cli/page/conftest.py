"""Opens the page in a browser, with an API in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from cli.web.page_server import PageServer
from tests.patience import PAGE_PATIENCE_MS
from tests.unit.cli.page_world import Ahead, World, page_server, serving


@dataclass
class Looking:
    """A user at the page. ``errors``: errors of the browser."""

    page: Page
    server: PageServer
    world: World
    errors: list[str] = field(default_factory=list)

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


@pytest.fixture
def looking(browser: Browser, world: World) -> Iterator[Looking]:
    with serving(page_server(world, Ahead(world, "web", "api/orders", "ledger"), [])) as server:
        context = browser.new_context(viewport={"width": 1280, "height": 800}, locale="en-GB", timezone_id="UTC")
        page = context.new_page()
        page.set_default_timeout(PAGE_PATIENCE_MS)
        looking = Looking(page, server, world)
        page.on("pageerror", lambda error: looking.errors.append(str(error)))
        page.on("console", lambda m: looking.errors.append(m.text) if "Content Security" in m.text else None)
        page.goto(server.link())
        looking.go("units")
        expect(page.get_by_role("heading", name="Units", level=1)).to_be_visible()
        yield looking
        context.close()
        assert looking.errors == []


# Waits for responses to earlier requests: the API in memory answers almost at once.
SETTLED = "fetch('/icon.svg').then((answer) => answer.text()).then(() => new Promise((done) => setTimeout(done, 50)))"
