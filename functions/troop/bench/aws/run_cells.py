"""Stores the cells of runs in the table ``Runs``: their phases, their results, and whether they are closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from troop.bench.aws.run_items import CELL, RUN, WITHOUT_FIGURES, cell_item, cell_of, key, name_of
from troop.bench.aws.run_rows import IS_OPEN, RunRows
from troop.bench.definition.definition import PointPlace
from troop.bench.records.record import FINAL, SCHEMA, Cell, CellStatus
from troop.shared import codec, moments
from troop.shared.aws.transact import ConditionFailed, transact
from troop.shared.errors import MissingRunError
from troop.shared.malformed import Read, read, read_one


@dataclass(frozen=True)
class RunCells:
    """The cells of all runs of a deployment."""

    rows: RunRows

    def get(self, run: str, cell: str) -> Cell:
        """Returns one cell of a run.

        Raises:
            MissingRunError: there is no such cell.
            MalformedItemError: it cannot be read.
        """
        return read_one(self.rows.get(run, cell), cell_of, name_of)

    def get_all(self, run: str) -> list[Cell]:
        """Returns all cells of a run, in their order, without their figures: results, limits, searches and faults.

        Raises:
            MalformedItemError: one of them cannot be read. What a workflow decides needs all of them.
        """
        return list(read(self.rows.beginning(run, CELL, WITHOUT_FIGURES), cell_of, name_of).whole())

    def with_figures(self, run: str) -> Read[Cell]:
        """Returns all cells of a run, in their order. Those of a large run take hundreds of megabytes of memory."""
        return read(self.rows.beginning(run, CELL), cell_of, name_of)

    def add(self, cell: Cell) -> None:
        """Adds a cell to an open run; a cell that is on record stays as it is.

        Raises:
            RunClosedError: the run is closed.
            MissingRunError: there is no such run.
        """
        whose: dict[str, Any] = {"TableName": self.rows.table, "ExpressionAttributeNames": {"#item": "item"}}
        check = whose | {"Key": key(cell.run, RUN), "ConditionExpression": IS_OPEN}
        put = whose | {"Item": cell_item(cell), "ConditionExpression": "attribute_not_exists(#item)"}
        try:
            transact(self.rows.client, [{"ConditionCheck": check}, {"Put": put}], self.rows.sleep)
        except ConditionFailed as failed:
            if failed.part == 0:
                raise self.rows.closed_or_missing(cell.run) from None

    def change(
        self,
        run: str,
        cell: str,
        *,
        phase: str | None = None,
        at: datetime | None = None,
        status: CellStatus | None = None,
        reason: str | None = None,
        results: list[dict[str, Any]] | None = None,
        point: PointPlace | None = None,
        limits: list[dict[str, Any]] | None = None,
        searches: list[dict[str, Any]] | None = None,
        requests: Mapping[str, int] | None = None,
        faults: list[dict[str, Any]] | None = None,
    ) -> bool:
        """Changes the given values. A cell that has ended keeps all of them except for its phase and point: then the
        call changes nothing and returns False, or True if the cell already has this status.

        Args:
            phase: the cell's new phase; any cell can enter the next one.
            at: when the phase began; required with a phase. The first moment counts.
            point: the point that begins with the phase; None for none.

        Raises:
            MissingRunError: there is no such cell.
        """
        update, names = ["#schema = :schema"], {"#item": "item", "#schema": "schema"}
        values: dict[str, Any] = {":schema": SCHEMA}
        condition, removed = "attribute_exists(#item)", ""
        changes: dict[str, Any] = {"status": status.value if status else None, "reason": reason, "results": results}
        changes |= {"limits": limits, "searches": searches, "requests": requests, "faults": faults}
        for name, value in changes.items():
            if value is not None:
                update.append(f"#{name} = :{name}")
                names[f"#{name}"], values[f":{name}"] = name, value
        if len(update) > 1:
            names["#status"] = "status"
            going = [name for name in CellStatus if name not in FINAL]
            values |= {f":going{i}": name.value for i, name in enumerate(going)}
            condition += f" AND #status IN ({', '.join(f':going{i}' for i in range(len(going)))})"
        if phase is not None:
            if at is None:
                raise ValueError("a phase needs the moment at which it began: pass at")
            update += ["#phase = :phase", "phases.#began = if_not_exists(phases.#began, :at)"]
            names |= {"#phase": "phase", "#began": phase, "#point": "point"}
            values |= {":phase": phase, ":at": moments.iso(at)}
            if point is None:
                removed = " REMOVE #point"
            else:
                update.append("#point = :point")
                values[":point"] = codec.to_document(point)
        try:
            self.rows.update(run, CELL + cell, "SET " + ", ".join(update) + removed, condition, values, names)
        except ConditionFailed:
            return self.get(run, cell).status is status
        return True

    def close(self, run: str, cell: str, now: datetime) -> None:
        """Closes the cell: nothing may be launched for it any more. Repeating it changes nothing.

        Raises:
            MissingRunError: there is no such cell.
        """
        self._set_moment(run, cell, "closed_at", now)

    def data_gone(self, run: str, cell: str, now: datetime) -> None:
        """Records that no object of the cell's scripts exists. Repeating it changes nothing.

        Raises:
            MissingRunError: there is no such cell.
        """
        self._set_moment(run, cell, "data_gone_at", now)

    def replaced(self, run: str, cell: str, nodes: Sequence[Mapping[str, str]]) -> None:
        """Records all nodes that were replaced while the cell booted, as :class:`~troop.bench.records.record.Cell` has
        them.

        Raises:
            MissingRunError: there is no such cell.
        """
        self._set(run, cell, "SET replaced_nodes = :nodes", {":nodes": [dict(one) for one in nodes]})

    def _set_moment(self, run: str, cell: str, name: str, now: datetime) -> None:
        self._set(run, cell, f"SET {name} = if_not_exists({name}, :now)", {":now": moments.iso(now)})

    def _set(self, run: str, cell: str, update: str, values: dict[str, Any]) -> None:
        try:
            self.rows.update(run, CELL + cell, update, "attribute_exists(#item)", values, {"#item": "item"})
        except ConditionFailed:
            raise MissingRunError(run, cell) from None
