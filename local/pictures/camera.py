"""Opens pages in Chromium, and saves screenshots."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first one has no windows: opening a page takes it less than half the processor time."""

_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_PATIENCE_MS = 60_000


class NoBrowserError(RuntimeError):
    """Chromium is missing."""


def chromium_path() -> str | None:
    """Returns the path of Chromium, or of the browser in the variable TROOP_CHROMIUM."""
    named = os.environ.get("TROOP_CHROMIUM") or _NAMES[0]
    return next(filter(None, map(shutil.which, (named, *_NAMES))), None)


@contextmanager
def browser() -> Iterator[Browser]:
    """Runs a browser inside the block.

    Raises:
        NoBrowserError: Chromium is missing.
    """
    path = chromium_path()
    if path is None:
        raise NoBrowserError("Chromium is missing: run scripts/browser to install it")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=list(_FLAGS))
        try:
            yield started
        finally:
            started.close()


def page(browser: Browser, theme: str, width: int, height: int, *, scale: float = 1) -> Page:
    """Opens a page with that size in pixels and that theme. The caller closes its context.

    Args:
        scale: device pixels for each pixel.
    """
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if theme == "dark" else "light",
        device_scale_factor=scale,
        timezone_id="UTC",
        reduced_motion="reduce",
    )
    context.set_default_timeout(_PATIENCE_MS)
    return context.new_page()


def keep(page: Page, path: Path, *, whole: bool = False) -> None:
    """Saves a screenshot of the page.

    Args:
        whole: includes what is below the viewport.
    """
    page.screenshot(path=path, full_page=whole, animations="disabled")
