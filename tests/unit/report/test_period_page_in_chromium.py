"""The page of a period in a real browser: on a phone, in both colour schemes, on paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page

from tests import accessibility
from tests.patience import PAGE_PATIENCE_MS
from tests.unit.chaos.test_period import lost, now, outcome, summary
from tests.unit.report.test_period_page import HOSTILE, STAGES, document
from troop.report.period_page import period_page

SAMPLES: dict[str, dict[str, Any]] = {
    "empty": summary([], []),
    "small": summary(
        [
            outcome("web", "2026-10-06", owner="team-web", stages=STAGES, seconds=100.0),
            outcome("web", "2026-10-12", "unknown", owner="team-web", why="web-errors had no data"),
            lost("db", "2026-10-13", owner="team-db", why="capacity 2 of 3"),
            outcome("db", "2026-10-20", stages=STAGES, seconds=60.0),
            lost("cache", "2026-10-21"),
            outcome("old", "2026-10-21", "unjudged"),
            outcome("new", "2026-10-22", "pending", seconds=None),
        ],
        [now("idle", "team-idle"), now("out", endless=True, state="opted out")],
    ),
    "crowd": summary(
        [
            *(
                outcome(f"unit-{n:03}", f"2026-10-{10 + n % 15}", stages=STAGES, owner=f"team-{n % 7}")
                for n in range(60)
            ),
            *(lost(f"{HOSTILE}{n}" + "x" * 200, owner="y" * 300, why="z" * 500) for n in range(20)),
        ],
        [now(f"idle-{n}") for n in range(40)],
    ),
}


@pytest.fixture(params=SAMPLES)
def page(browser: Browser, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    path = tmp_path / "period.html"
    path.write_text(period_page(document(SAMPLES[request.param])), encoding="utf-8")
    page = browser.new_page(viewport={"width": 375, "height": 900})
    page.set_default_timeout(PAGE_PATIENCE_MS)
    messages: list[str] = []
    page.on("console", lambda message: messages.append(f"console: {message.text}"))
    page.on("request", lambda one: messages.append(one.url) if not one.url.startswith("file:") else None)
    page.goto(path.as_uri())
    yield page
    page.close()
    assert messages == []


def test_page_fits_a_phone(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_is_accessible(page: Page, scheme: Literal["light", "dark"]) -> None:
    page.emulate_media(color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert accessibility.findings(page, only_colours=scheme == "dark") == []


def test_page_fits_paper(page: Page) -> None:
    page.set_viewport_size({"width": 703, "height": 900})
    page.emulate_media(media="print")
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 703
