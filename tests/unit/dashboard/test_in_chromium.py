"""A widget as a browser lays it out."""

from __future__ import annotations

from dataclasses import replace

from playwright.sync_api import Browser

from tests.patience import PAGE_PATIENCE_MS
from tests.unit.dashboard import build
from troop.chaos.events import Status
from troop.dashboard.page import page

LONG = "eks-general-purpose-workers-20260312-4cc8f1d2-9f64-7e1e-b6ad-2f4f7a9f6c1d"
CONSOLE = "<style>cwdb-action { display: none }</style>"  # CloudWatch shows no action's text


def test_a_long_name_leaves_what_stands_beside_it_readable(browser: Browser) -> None:
    long = build.event(Status.UNRECOVERED, LONG, group=LONG, detail=f"{LONG} has 2 of 3 in service")
    view = replace(build.events_view(), events=[build.event(Status.RECOVERED), long])
    seen = browser.new_page(viewport={"width": 900, "height": 600})
    seen.set_default_timeout(PAGE_PATIENCE_MS)
    seen.set_content(CONSOLE + page(view, build.frame()))
    first = seen.locator("tbody tr").first
    box = first.bounding_box()
    assert box
    assert box["height"] < 50, "two lines"
    assert seen.evaluate("document.documentElement.scrollWidth") <= 900
    seen.close()
