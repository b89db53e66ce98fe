"""Timelines of cells: their steps, and the bars of the time until the first measurement."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.unit.report.sample_cells import BEGAN, measured
from troop.report.document import Cell, Step
from troop.report.timeline import WIDTH, timelines


def cell(name: str, *steps: tuple[str, int]) -> Cell:
    """Returns a cell with its steps at their seconds, which has measured the phase "measure"."""
    return measured(name, 3, 50, 1, 6).model_copy(
        update={"steps": [Step(phase=phase, at=BEGAN + timedelta(seconds=at)) for phase, at in steps]}
    )


def test_bars_have_one_scale_and_a_step_has_one_colour() -> None:
    first = cell(
        "c001", ("launch", 0), ("boot", 10), ("ring", 40), ("measure.1", 100), ("measure.2", 200), ("over", 300)
    )
    second = cell("c002", ("launch", 0), ("ring", 20), ("measure", 50), ("over", 60))
    long, short = timelines([first, second])
    assert (long.until_measured, short.until_measured) == (100, 50)
    assert [(part.phase, part.start, part.length) for part in long.parts] == [
        ("launch", 0, 100),
        ("boot", 100, 300),
        ("ring", 400, 600),
    ]
    assert [(part.phase, part.start, part.length) for part in short.parts] == [("launch", 0, 200), ("ring", 200, 300)]
    assert sum(part.length for part in long.parts) == WIDTH
    colours = {part.phase: part.colour for part in long.parts}
    assert colours == {"launch": 1, "boot": 2, "ring": 3}
    assert {part.phase: part.colour for part in short.parts} == {"launch": 1, "ring": 3}
    assert long.steps[-2:] == [("measure.2", 100), ("over", None)]


@pytest.mark.parametrize("steps", [[("launch", 0), ("boot", 10), ("over", 30)], [("launch", 0)]])
def test_a_cell_that_measured_nothing_has_no_bar(steps: list[tuple[str, int]]) -> None:
    (one,) = timelines([cell("c001", *steps)])
    assert (one.until_measured, one.parts) == (None, [])
    assert [phase for phase, _ in one.steps] == [phase for phase, _ in steps]


def test_a_cell_without_steps_has_no_timeline() -> None:
    assert timelines([cell("c001")]) == []
