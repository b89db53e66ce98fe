"""Takes inventory: compares the resources that carry runs' tags with the record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from troop.aws.bench.runs import RunTable
from troop.aws.bench.tagged_resources import Leftovers
from troop.bench.names import RUN
from troop.bench.ownership import Inventory, Recorded, Site, take_inventory
from troop.bench.record import Resource, Run
from troop.errors import MissingRunError


@dataclass(frozen=True)
class Stocktaking:
    """Takes the inventory of one deployment."""

    runs: RunTable
    leftovers: Leftovers
    site: Site

    def of(self, run: str, cell: str | None = None) -> tuple[Inventory, list[Resource]]:
        """Returns the inventory of a run, or of one of its cells; and the resources of the whole run on record."""
        known = self.run(run)
        seen = self.leftovers.find(run, cell)
        recorded = self.runs.resources.of(run)
        return take_inventory(seen, {run: _keys(recorded) if known else None}, self.site), recorded

    def of_all(self) -> tuple[Inventory, Mapping[str, Run | None]]:
        """Returns the inventory of all runs, and the record of every run that a tag names; None for an unknown run."""
        seen = self.leftovers.find()
        runs = {run: self.run(run) for run in sorted({one.run for one in seen})}
        records = {run: _keys(self.runs.resources.of(run)) for run, known in runs.items() if known}
        return take_inventory(seen, records, self.site), runs

    def run(self, run: str) -> Run | None:
        """Returns the run that a tag or an event names; None if there is none."""
        if not RUN.fullmatch(run):
            return None
        try:
            return self.runs.get(run)
        except MissingRunError:
            return None


def _keys(recorded: Iterable[Resource]) -> Recorded:
    return frozenset((one.kind, one.name) for one in recorded)
