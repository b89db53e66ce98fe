"""Checks a page in a browser by the rules of axe-core, which ``make setup`` installs in the pinned version."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from playwright.sync_api import Page

AXE = Path(__file__).resolve().parents[1] / "node_modules" / "axe-core" / "axe.min.js"

_COLOURS = ["color-contrast", "link-in-text-block"]

_RUN = """async ([where, only]) => {
  const options = {resultTypes: ['violations'], ...only};
  const {violations} = await axe.run(document.querySelector(where) ?? document, options);
  return violations.flatMap((rule) =>
    rule.nodes.map((node) => `${rule.id}: ${node.target.join(' ')}: ${node.failureSummary}`));
}"""

_HIDDEN = """() => [...document.querySelectorAll('main td:not(.none):not(:empty), main th[scope=row]')].filter((cell) =>
  !cell.closest('details:not([open]), [hidden]') && getComputedStyle(cell).display === 'none')
  .map((cell) => cell.outerHTML)"""


@cache
def _script() -> str:
    assert AXE.is_file(), f"{AXE} is missing: run `make setup`"
    return AXE.read_text(encoding="utf-8")


def findings(page: Page, *, only_colours: bool = False) -> list[str]:
    """Returns a sentence for each violation on the page, with its element.

    Args:
        only_colours: checks no other rules, because a colour scheme changes nothing else. With an open dialog, checks
            only that: the rest was checked before.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(_script())
    return list(page.evaluate(_RUN, ["dialog:modal", {"runOnly": _COLOURS}] if only_colours else ["html", {}]))


def hidden_cells(page: Page) -> list[str]:
    """Returns the cells of tables that have a value which the page's width hides."""
    return list(page.evaluate(_HIDDEN))


def overflow(page: Page) -> int:
    """Returns the pixels by which the page is wider than the window."""
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))
