"""Which attempt at a cell counts, and whether there is another."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.unit.bench.build import BENCHMARK, MEASURE
from troop.bench.definition.plan import Variant
from troop.bench.measuring.attempts import following, latest
from troop.bench.measuring.execution_history import LONGEST_CELL
from troop.bench.records.record import Cell, CellStatus, Run

NOW = datetime(2026, 11, 20, 22, 46, tzinfo=UTC)
RUN = Run("r", "ranges", NOW, NOW + timedelta(hours=2), "arn:me", 1, 5)
THREE = replace(BENCHMARK, attempts=3)
VARIANT = Variant("n3", {"parameters.threads": 4}, 2)


def invalid(cell: str = "c001", status: CellStatus = CellStatus.INVALID) -> Cell:
    return Cell("r", cell, status, variant=VARIANT)


@pytest.mark.parametrize(("cell", "expected"), [("c001", "c001-2"), ("c007-2", "c007-3"), ("c001-3", None)])
def test_an_invalid_cell_is_run_again_until_its_attempts_are_over(cell: str, expected: str | None) -> None:
    next_cell = following(RUN, invalid(cell), THREE, NOW, NOW)
    assert (next_cell and next_cell.cell) == expected
    if next_cell:
        assert (next_cell.status, next_cell.phase, next_cell.variant) == (CellStatus.PENDING, "launch", VARIANT)
        assert next_cell.attempt == int(cell.partition("-")[2] or 1) + 1


@pytest.mark.parametrize("status", [one for one in CellStatus if one is not CellStatus.INVALID])
def test_no_other_end_is_a_reason(status: CellStatus) -> None:
    assert following(RUN, invalid(status=status), THREE, NOW, NOW) is None


def test_there_is_none_for_a_run_that_is_closed() -> None:
    assert following(replace(RUN, closed_at=NOW), invalid(), THREE, NOW, NOW) is None


def test_there_is_none_that_could_not_come_to_its_end_before_the_run_expires() -> None:
    last = RUN.expires_at - timedelta(seconds=THREE.needed)
    assert following(RUN, invalid(), THREE, last, NOW) is not None
    assert following(RUN, invalid(), THREE, last + timedelta(seconds=1), NOW) is None


def test_new_attempt_leaves_enough_time_to_cells_that_have_not_begun() -> None:
    last = RUN.expires_at - timedelta(seconds=THREE.needed + 600)
    assert following(RUN, invalid(), THREE, last, NOW, waiting=600) is not None
    assert following(RUN, invalid(), THREE, last, NOW, waiting=601) is None


def test_all_attempts_together_take_a_day_at_most() -> None:
    week = replace(RUN, expires_at=NOW + timedelta(days=7))
    last = NOW + timedelta(seconds=LONGEST_CELL - THREE.needed)
    assert following(week, invalid(), THREE, last, NOW) is not None
    assert following(week, invalid(), THREE, last + timedelta(seconds=1), NOW) is None


@pytest.mark.parametrize(
    ("repeat", "cell", "hours", "possible"),
    [
        (20, "c001", 24, True),  # each with a phase and its points
        (21, "c001", 24, False),
        (21, "c001", 23, True),
        (20, "c001-2", 23, False),
        (39, "c001", 18, True),
        (39, "c001", 19, False),
    ],
)
def test_all_attempts_fit_into_one_execution(repeat: int, cell: str, hours: int, possible: bool) -> None:
    """Points take room of its history from the time of all attempts."""
    points = replace(MEASURE, repeat=repeat, timeout=60, warm_up=0, measured=1)
    many = replace(THREE, phases=(points,))
    last = NOW + timedelta(hours=hours, seconds=-many.needed)
    week = replace(RUN, expires_at=NOW + timedelta(days=7))
    assert (following(week, invalid(cell), many, last, NOW) is not None) == possible


@pytest.mark.parametrize(
    ("cells", "counting"),
    [
        ([], []),
        (["c001", "c002"], ["c001", "c002"]),
        (["c001", "c001-2", "c001-3", "c002"], ["c001-3", "c002"]),
        (["c002", "c001-2", "c001"], ["c001-2", "c002"]),
    ],
)
def test_the_last_attempt_counts(cells: list[str], counting: list[str]) -> None:
    attempts: list[Any] = [invalid(cell) for cell in cells]
    assert [cell.cell for cell in latest(attempts)] == counting
