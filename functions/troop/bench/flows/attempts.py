"""Decides what follows the teardown of a cell: another attempt, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from troop.bench.aws.cell_store import CellStore
from troop.bench.aws.run_table import RunTable
from troop.bench.definition import names
from troop.bench.definition.definition import from_document
from troop.bench.definition.plan import from_plan_document
from troop.bench.measuring.attempts import following
from troop.bench.records.record import Cell, CellStatus
from troop.shared.errors import RunClosedError


@dataclass(frozen=True)
class Attempts:
    """Records further attempts at cells."""

    runs: RunTable
    store: CellStore
    clock: Callable[[], datetime]

    def again(self, run: str, cell: str) -> str | None:
        """Records the next attempt at a cell and returns its id; None if there is no further attempt. Repeating it adds
        no second attempt.

        Raises:
            MissingRunError: there is no such run or cell.
            DefinitionError: the stored benchmark cannot be read.
        """
        record, its = self.runs.get(run), self.runs.cells.get(run, cell)
        key = names.cell_definition_key(run, cell)
        document = self.store.find_document(key)
        if document is None:  # it was never launched
            return None
        cells = {one.cell: one for one in self.runs.cells.get_all(run)}
        began = cells[names.attempt_of(cell)[0]].phases.get(names.LAUNCH, record.at)
        attempt = following(record, its, from_document(document), self.clock(), began, self._waiting(run, cells))
        if attempt is None:
            return None
        try:
            self.runs.cells.add(attempt)
        except RunClosedError:
            return None
        return attempt.cell

    def _waiting(self, run: str, cells: Mapping[str, Cell]) -> int:
        """Returns the seconds that cells which have not begun may take."""
        plan = from_plan_document(self.store.read(names.plan_key(run)))
        pending = [one for one in plan.cells if cells[one.cell].status is CellStatus.PENDING]
        return plan.in_waves(one.benchmark.needed for one in pending)
