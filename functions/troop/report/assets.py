"""Finds the chart library that each page contains."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from troop.shared.errors import TroopError

_HERE = Path(__file__).resolve().parent
PLACES: Final = (
    _HERE / "echarts.min.js",
    _HERE.parents[2] / "node_modules" / "echarts" / "dist" / "echarts.common.min.js",
)
"""Paths of the chart library: in deployments beside this module; in a checkout after `make setup` in node_modules."""


class MissingChartsError(TroopError):
    """The chart library is missing."""

    def __init__(self, places: tuple[Path, ...]) -> None:
        self.places = places
        looked = ", ".join(map(str, places))
        super().__init__(f"the chart library is missing: run `make setup` to download it (searched {looked})")


def chart_library(places: tuple[Path, ...] = PLACES) -> Path:
    """Returns the first of ``places`` that exists.

    Raises:
        MissingChartsError: none exists.
    """
    for place in places:
        if place.is_file():
            return place
    raise MissingChartsError(places)


def chart_script(places: tuple[Path, ...] = PLACES) -> str:
    """Returns the text of the chart library.

    Raises:
        MissingChartsError: as :func:`chart_library`.
    """
    return chart_library(places).read_text(encoding="utf-8")
