"""Shows whether the results of a run hold the limits of its benchmark's file, and points of a search what its faults
expect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cli.bench.cells import latest, name
from cli.shared import show
from cli.shared.errors import CliError, Exit
from troop.bench.definition.phase_limits import FAILED, PASSED, missed
from troop.bench.definition.search import EXPECTATIONS, LIMITS
from troop.bench.records.record import CellStatus


def table(view: Mapping[str, Any]) -> None:
    """Prints the verdict of each phase and point that was compared with limits; nothing without limits.

    Args:
        view: the answer of GET /benchmarks/{run}.
    """
    cells = latest(view)
    rows = [
        (
            *((name(cell),) if len(cells) > 1 else ()),
            _phase(one),
            (PASSED if one["held"] else FAILED) + (" (baseline)" if one.get("is_baseline") else ""),
            one["reason"] or "",
        )
        for cell in cells
        for one in cell.get("limits") or ()
    ]
    if rows:
        columns = ("phase", _bounds(cells).removeprefix("the "), "")
        show.table((*(("cell",) if len(cells) > 1 else ()), *columns), rows, title=" ")
    for cell in cells:
        for one in cell.get("searches") or ():
            show.say(f"{name(cell)} {one['phase']}: {one['text']}")


def check(view: Mapping[str, Any]) -> None:
    """Ends the command if a cell that SUCCEEDED does not hold its limits.

    Raises:
        CliError: LIMITS_MISSED, with the first reasons.
    """
    bad = [cell for cell in latest(view) if _has_failed(cell)]
    if bad:
        first = "; ".join(f"{name(cell)} {_reason(cell)}" for cell in bad[:_NAMED])
        more = f"; and {len(bad) - _NAMED} more cells" if len(bad) > _NAMED else ""
        raise CliError(Exit.LIMITS_MISSED, f"{view['run']['run']} does not hold {_bounds(bad)}: {first}{more}")


_NAMED = 3


def _bounds(cells: Sequence[Mapping[str, Any]]) -> str:
    """Returns a word for what was compared. A phase with faults has no limits of its own."""
    compared = {(n, one["phase"]) for n, cell in enumerate(cells) for one in cell.get("limits") or ()}
    faulty = {(n, one["phase"]) for n, cell in enumerate(cells) for one in cell.get("faults") or ()}
    if not compared & faulty:
        return LIMITS
    return EXPECTATIONS if compared <= faulty else f"{LIMITS} and expectations"


def _has_failed(cell: Mapping[str, Any]) -> bool:
    return cell["status"] == CellStatus.SUCCEEDED and cell.get("verdict") == FAILED


def _reason(cell: Mapping[str, Any]) -> str:
    first, *others = missed(cell["limits"], cell.get("searches"))
    return f"{first}; and {len(others)} more" if others else first


def _phase(one: Mapping[str, Any]) -> str:
    return ", ".join(part for part in (one["phase"], one["setting"]) if part)
