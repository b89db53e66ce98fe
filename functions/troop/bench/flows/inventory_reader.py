"""Takes inventory: compares the resources that carry runs' tags with the record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from troop.bench.aws.run_table import RunTable
from troop.bench.aws.tagged_resources import TaggedResources
from troop.bench.definition.names import RUN
from troop.bench.records.record import Kind, Resource, Run
from troop.bench.removal.inventory import Inventory, Recorded, Site, take_inventory
from troop.shared.errors import MissingRunError
from troop.shared.malformed import MalformedItemError


@dataclass(frozen=True)
class InventoryReader:
    """Takes the inventory of one deployment."""

    runs: RunTable
    tagged: TaggedResources
    site: Site

    def read(
        self, run: str, cell: str | None = None, *, only_present: bool = False
    ) -> tuple[Inventory, list[Resource]]:
        """Returns the inventory of a run, or of one of its cells; and the resources of the whole run on record.

        Args:
            only_present: whether those that are gone are left out; then they prove nothing about what exists.
        """
        known = self.run(run)
        # The record is read first: Launch plans there what it may create, and most runs plan no queue.
        recorded = self.runs.resources.get_present(run) if only_present else self.runs.resources.get_all(run)
        has_queue = any(one.kind in (Kind.ENDPOINT, Kind.QUEUE) for one in recorded)
        seen = self.tagged.find(run, cell, has_queue=has_queue)
        return take_inventory(seen, {run: _keys(recorded) if known else None}, self.site), recorded

    def read_all(self) -> tuple[Inventory, Mapping[str, Run | None], Mapping[str, MalformedItemError]]:
        """Returns the inventory of all runs, the record of every run that a tag names (None for an unknown run), and
        the runs whose record cannot be read. The inventory lacks their resources, so that nobody touches them.
        """
        seen = self.tagged.find()
        runs, records = dict[str, Run | None](), dict[str, Recorded | None]()
        malformed: dict[str, MalformedItemError] = {}
        for run in sorted({one.run for one in seen}):
            try:
                known = self.run(run)
                records |= {run: _keys(self.runs.resources.get_all(run))} if known else {}
                runs[run] = known
            except MalformedItemError as error:
                malformed[run] = error
        readable = [one for one in seen if one.run not in malformed]
        return take_inventory(readable, records, self.site), runs, malformed

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
