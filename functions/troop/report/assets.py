"""What a page carries with it: the library that draws its charts, in the reader's browser."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from troop.errors import TroopError

_HERE = Path(__file__).resolve().parent
PLACES: Final = (
    _HERE / "echarts.min.js",
    _HERE.parents[2] / "node_modules" / "echarts" / "dist" / "echarts.common.min.js",
)
"""Beside this module, where deployments have it; else of a checkout that is set up."""


class MissingChartsError(TroopError):
    """The charts' library is nowhere to be found."""

    def __init__(self, places: tuple[Path, ...]) -> None:
        self.places = places
        looked = ", ".join(map(str, places))
        super().__init__(
            f"the library that draws charts is missing: run `make setup`, which gets it (looked for {looked})"
        )


def chart_script(places: tuple[Path, ...] = PLACES) -> str:
    """The text of the first of ``places`` that is there.

    Raises:
        MissingChartsError: none is.
    """
    for place in places:
        if place.is_file():
            return place.read_text(encoding="utf-8")
    raise MissingChartsError(places)
