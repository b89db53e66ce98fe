"""What comes after a cell that is torn down: nothing, or another attempt at it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from troop.aws.bench.cell_store import CellStore
from troop.aws.bench.runs import RunTable
from troop.bench import names
from troop.bench.attempts import following
from troop.bench.definition import from_document
from troop.bench.plan import from_plan_document
from troop.bench.record import Cell, CellStatus
from troop.errors import RunClosedError


@dataclass(frozen=True)
class Attempts:
    """Puts further attempts on record."""

    runs: RunTable
    store: CellStore
    clock: Callable[[], datetime]

    def again(self, run: str, cell: str) -> str | None:
        """The id of the attempt that is made next, which is on record then; None when there is none. Repeating it makes
        no second one.

        Raises:
            MissingRunError: there is no such run or cell.
            DefinitionError: what was stored of the benchmark cannot be read.
        """
        record, its = self.runs.get(run), self.runs.cells.get(run, cell)
        key = names.cell_definition_key(run, cell)
        document = self.store.find_document(key)
        if document is None:  # it was never launched
            return None
        cells = {one.cell: one for one in self.runs.cells.of(run)}
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
        """Seconds that those cells may take that have not begun."""
        plan = from_plan_document(self.store.read(names.plan_key(run)))
        pending = [one for one in plan.cells if cells[one.cell].status is CellStatus.PENDING]
        return plan.in_waves(one.benchmark.needed for one in pending)
