"""Measures the page of `troop ui`: what a browser loads for each view, and when it shows the first content.

    python -m perf.page [--units 1000] [--delay 0.3]

The page's server runs in this process, with an API in memory that answers each call after a delay, as the real one
does. Each view is opened by its address in a new tab, as after a reload, and the server has read nothing before. The
table has the bytes of files and data that the browser gets, the seconds until the first content and until all of it,
and the calls of the API.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from playwright.sync_api import expect

from cli.client.api import Answer
from local.pictures import camera

FIRST = {
    "overview": ".tile:not(.unread) p",
    "units": "tbody tr",
    "units/unit-0000": "main h2",
    "events": "tbody tr",
    "events/{event}": ".course li",
    "calendar": ".day",
    "benchmarks": ".card, main p",
}
"""View -> what a user first looks for."""

LOADED = """() => {
  const all = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
  const bytes = (some) => some.reduce((sum, one) => sum + one.decodedBodySize, 0);
  const data = all.filter((one) => one.initiatorType === "fetch");
  return [bytes(all) - bytes(data), bytes(data)];
}"""
"""Returns the bytes of the page's files, and of the data."""

PATIENCE_MS = 120_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=1000)
    parser.add_argument("--delay", type=float, default=0.3, help="seconds that the API takes for each answer")
    options = parser.parse_args()
    from tests.serving import running
    from tests.unit.cli.conftest import event
    from tests.unit.cli.web.page_world import Ahead, World, page_server

    class Distant(World):
        def request(
            self, method: str, path: str, query: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None
        ) -> Answer:
            time.sleep(options.delay)
            return super().request(method, path, query, body)

    world = Distant()
    names = [f"unit-{number:04d}" for number in range(options.units)]
    for name in names:
        world.add(name)
    days = [(datetime.now(UTC) - timedelta(days=n)).date().isoformat() for n in range(60)]
    world.events = [event(names[n % len(names)], day) for n, day in enumerate(days)]
    print(f"{'view':<22}{'files':>10}{'data':>10}{'first content':>15}{'all':>8}{'calls':>7}")
    with camera.browser() as browser:
        for view, first in FIRST.items():
            with running(page_server(world, Ahead(world, *names), [])) as server:
                context = browser.new_context(viewport={"width": 1280, "height": 800})
                page = context.new_page()
                page.set_default_timeout(PATIENCE_MS)
                page.goto(f"{server.address}/icon.svg")
                page.evaluate("token => sessionStorage.setItem('troop-token', token)", server.token)  # enters
                before, began = len(world.calls), time.perf_counter()
                page.goto(f"{server.address}/#/{view.format(event=world.events[0]['id'])}")
                page.wait_for_selector(first)
                shown = time.perf_counter() - began
                expect(page.locator("main .loading, main :text('loaded …')")).to_have_count(0, timeout=PATIENCE_MS)
                settled = time.perf_counter() - began
                files, data = page.evaluate(LOADED)
                context.close()
            line = f"{view:<22}{files / 1000:>7.0f} kB{data / 1000:>7.0f} kB{shown:>13.2f} s{settled:>6.2f} s"
            print(f"{line}{len(world.calls) - before:>7}", flush=True)


if __name__ == "__main__":
    main()
