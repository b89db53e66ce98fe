"""Implements `python -m local pictures`: runs the scene, and saves the pictures in a folder."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Browser, Error, Page, expect

from local.demo.failure import DemoFailed
from local.demo.narrator import Narrator
from local.launcher import LocalAccount
from local.pictures import board, camera, dashboard_sources
from local.pictures.curves import Span
from local.pictures.points import Point
from local.pictures.scene import CALENDAR, HIT, NAME, Scene
from local.project import ROOT, tool_environment

FOLDER = ROOT / "docs" / "pictures"
WIDTH = 1280
_PERIOD = 60
"""Seconds of a dashboard's periods in a picture: its day has minutes, but the deployed periods are hours."""

_PAGE_HEIGHT = 800
_LAST_OF_REPORT, _MARGIN = "section[aria-labelledby=latency]", 20
"""A picture of a report ends after this section and this margin in pixels."""

_LOADED_MS = 60_000
_DRAWN_MS = 500
"""The time that animated charts need."""


def take(folder: Path, minutes: int) -> int:
    """Saves all pictures in a folder; returns the exit code.

    Args:
        minutes: the length of the business day in them.
    """
    narrator = Narrator()
    try:
        if camera.chromium_path() is None:
            raise camera.NoBrowserError("Chromium is missing: run scripts/browser to install it")
        narrator.title(f"A business day of {minutes} minutes on local AWS")
        with LocalAccount("pictures", progress=narrator.say) as account:
            scene = Scene(account, narrator.say, minutes)
            scene.play()
            folder.mkdir(parents=True, exist_ok=True)
            narrator.title("Pictures")
            with camera.browser() as browser:
                for path in Album(account, scene, browser, folder).take():
                    narrator.say(f"{path.name}: {path.stat().st_size >> 10} KiB", "good")
            narrator.say("stopping everything", "dim")
    except (DemoFailed, TimeoutError, AssertionError, camera.NoBrowserError, Error) as failed:
        narrator.say(f"No pictures: {failed}", "bad")
        return 1
    narrator.say(f"done: {folder}", "good")
    return 0


class Album:
    """The pictures of a finished scene."""

    def __init__(self, account: LocalAccount, scene: Scene, browser: Browser, folder: Path) -> None:
        self._account, self._scene, self._browser, self._folder = account, scene, browser, folder

    def take(self) -> Iterator[Path]:
        """Takes one picture after another; yields the path of each."""
        yield from self._dashboards()
        yield from self._report()
        yield from self._page()

    def _dashboards(self) -> Iterator[Path]:
        measured = dashboard_sources.measured(self._account, NAME)
        states = {one["AlarmArn"]: one["StateValue"] for one in dashboard_sources.alarms(self._account)}
        span = looked(measured, time.time())
        for name, body in dashboard_sources.bodies(self._account, NAME).items():
            drawn_by_function = [widget for widget in body["widgets"] if widget["type"] == "custom"]
            for theme in dashboard_sources.THEMES:
                custom = dashboard_sources.custom(self._account, drawn_by_function, theme)
                html = board.page(f"{NAME}: {name}", body, board.Seen(measured, custom, states, span, theme))
                with self._open(theme, WIDTH, 900) as page:
                    page.set_content(html)
                    page.wait_for_selector("html[data-drawn]")
                    yield self._keep(page, f"dashboard-{name}", theme, whole=True)

    def _report(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "report.html"
            self._scene.troop("bench", "report", self._scene.run_id, "-o", str(path))
            for theme in dashboard_sources.THEMES:
                with self._open(theme, WIDTH, _PAGE_HEIGHT) as page:
                    page.goto(path.as_uri())
                    page.wait_for_selector("svg, canvas")
                    page.wait_for_timeout(_DRAWN_MS)
                    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = false")
                    shown = page.locator(_LAST_OF_REPORT).bounding_box() or {"y": 0, "height": _PAGE_HEIGHT}
                    page.set_viewport_size({"width": WIDTH, "height": int(shown["y"] + shown["height"]) + _MARGIN})
                    yield self._keep(page, "report", theme)

    def _page(self) -> Iterator[Path]:
        for theme in dashboard_sources.THEMES:
            with self._served() as link, self._open(theme, WIDTH, _PAGE_HEIGHT) as page:
                page.goto(link)
                page.get_by_role("region", name="Units").locator("strong").first.wait_for()
                yield self._loaded(page, "page-overview", theme)
                address = page.url.partition("#")[0]
                page.goto(f"{address}#/units")
                page.locator("tbody tr").first.wait_for()
                yield self._loaded(page, "page-units", theme)
                page.goto(f"{address}#/units/{quote(HIT)}")
                page.get_by_role("heading", name=HIT, level=1).wait_for()
                yield self._loaded(page, "page-unit", theme)
                page.goto(f"{address}#/calendar")
                page.get_by_label("Calendar", exact=True).select_option(CALENDAR)
                page.locator(".day.today").wait_for()
                yield self._loaded(page, "page-calendar", theme)

    def _loaded(self, page: Page, name: str, theme: str) -> Path:
        expect(page.locator(".loading")).to_have_count(0, timeout=_LOADED_MS)
        page.wait_for_timeout(_DRAWN_MS)
        return self._keep(page, name, theme, whole=True)

    @contextmanager
    def _open(self, theme: str, width: int, height: int) -> Iterator[Page]:
        page = camera.page(self._browser, theme, width, height)
        try:
            yield page
        finally:
            page.context.close()

    def _keep(self, page: Page, name: str, theme: str, *, whole: bool = False) -> Path:
        path = self._folder / (f"{name}.png" if theme == "light" else f"{name}-{theme}.png")
        camera.keep(page, path, whole=whole)
        return path

    @contextmanager
    def _served(self) -> Iterator[str]:
        """Runs `troop ui` inside the block; yields its link."""
        command = [sys.executable, str(ROOT / "cli"), "ui", "--no-open"]
        with tempfile.TemporaryDirectory() as home:
            environment = {**tool_environment(), **self._account.exports, "HOME": home, "TROOP_DEPLOYMENT": NAME}
            process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
            )
            try:
                assert process.stdout is not None
                link = next((line.strip() for line in process.stdout if line.strip().startswith("http")), None)
                if link is None:
                    raise DemoFailed(f"`troop ui` ended with {process.wait()}")
                yield link
            finally:
                process.terminate()
                process.communicate()


def looked(measured: Sequence[Point], now: float) -> Span:
    """Returns the span from a minute before the first point until now, in whole minutes."""
    first = min((point.seconds for point in measured), default=now)
    return Span((first // _PERIOD - 1) * _PERIOD, (now // _PERIOD + 1) * _PERIOD, _PERIOD)
