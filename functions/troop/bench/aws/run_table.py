"""Stores the record of every run in the table ``Runs``, from its admission until nothing of it is left.

A run is closed once and permanently. A launching step first records what it is about to create, in a transaction that
holds only while the run and the cell are open. So a caller that closes one, and then reads the table, sees every
creation.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from troop.bench.admission.spending import Terms
from troop.bench.aws.node_reservations import TRIES, NodeReservations, ReservationConflictError
from troop.bench.aws.run_cells import RunCells
from troop.bench.aws.run_items import (
    CELL,
    RUN,
    TERMS,
    cell_item,
    key,
    name_of,
    run_item,
    run_of,
    terms_item,
    terms_of,
)
from troop.bench.aws.run_launches import RunLaunches
from troop.bench.aws.run_lines import RunLines
from troop.bench.aws.run_resources import RunResources
from troop.bench.aws.run_rows import IS_OPEN, MOST_PARTS, RunRows
from troop.bench.definition.limits import no_room
from troop.bench.definition.money import ZERO, rounded
from troop.bench.definition.problems import BadBenchmarkError
from troop.bench.money.costs import Cost
from troop.bench.records.record import Cell, LeftBehind, Run, RunStatus
from troop.shared import codec, moments
from troop.shared.aws.dynamo import typed
from troop.shared.aws.throttling import Sleep
from troop.shared.aws.transact import ConditionFailed, transact
from troop.shared.errors import MissingRunError
from troop.shared.malformed import Malformed, Read, read, read_one
from troop.shared.tables import BENCHMARK, RUN_LEFT, RUN_OPEN, RUNS_BY_OPEN, RUNS_BY_TIME


@dataclass(frozen=True)
class RunPage:
    """A page of runs, newest first, without the malformed ones. ``cursor`` is None on the last page."""

    runs: tuple[Run, ...]
    cursor: str | None
    malformed: tuple[Malformed, ...] = ()


@dataclass(frozen=True)
class RunTable:
    """The runs of a deployment. All reads are strongly consistent, except those from an index: pages, open runs and
    runs with leftovers.
    """

    client: Any
    table: str
    sleep: Sleep = time.sleep

    # The parts of runs

    @property
    def rows(self) -> RunRows:
        return RunRows(self.client, self.table, self.sleep)

    @property
    def cells(self) -> RunCells:
        return RunCells(self.rows)

    @property
    def lines(self) -> RunLines:
        return RunLines(self.rows)

    @property
    def launches(self) -> RunLaunches:
        return RunLaunches(self.rows)

    @property
    def reservations(self) -> NodeReservations:
        return NodeReservations(self.rows)

    @property
    def resources(self) -> RunResources:
        return RunResources(self.rows)

    # Reads

    def get(self, run: str) -> Run:
        """Returns a run.

        Raises:
            MissingRunError: there is no such run.
            MalformedItemError: it cannot be read.
        """
        return read_one(self.rows.get(run), run_of, name_of)

    def terms(self, run: str) -> Terms | None:
        """Returns the terms by which the run's cost is computed; None for a run of an earlier version.

        Raises:
            MalformedItemError: they cannot be read.
        """
        row = self.rows.find(run, TERMS)
        return read_one(row, terms_of, name_of) if row else None

    def open_runs(self) -> Read[Run]:
        """Returns the runs that have not ended, oldest first. The index lags a moment: read a run again before acting
        on it.
        """
        return self._marked(RUN_OPEN)

    def left_runs(self) -> Read[Run]:
        """Returns the ended runs that left something behind, in no order. The index lags a moment, too."""
        return self._marked(RUN_LEFT)

    def _marked(self, mark: str) -> Read[Run]:
        pages = self.client.get_paginator("query").paginate(
            TableName=self.table,
            IndexName=RUNS_BY_OPEN.name,
            KeyConditionExpression="#open = :mark",
            ExpressionAttributeNames={"#open": RUNS_BY_OPEN.partition},
            ExpressionAttributeValues={":mark": {"S": mark}},
        )
        return read((item for page in pages for item in page["Items"]), run_of, name_of)

    def page(self, limit: int, cursor: str | None = None, kind: str = BENCHMARK) -> RunPage:
        """Returns a page of at most ``limit`` runs.

        Args:
            kind: of the runs, :data:`troop.shared.tables.BENCHMARK` or FLEET.

        Raises:
            BadCursor: no page ended with this cursor.
        """
        items, last = self.rows.page(RUNS_BY_TIME, kind, RUN, limit, cursor)
        runs = read(items, run_of, name_of)
        return RunPage(runs.items, last, runs.malformed)

    # The life of a run

    def create(
        self, run: Run, cells: Sequence[Cell], terms: Terms | None = None, most_nodes: int | None = None
    ) -> bool:
        """Stores a run, its cells and its terms, and reserves its nodes. Returns False, and changes nothing, if the run
        exists already.

        Args:
            most_nodes: of all open runs together; None reserves nothing.

        Raises:
            BadBenchmarkError: other runs hold too many nodes.
            ReservationConflictError: others keep starting or ending runs.
        """
        items = [cell_item(cell) for cell in cells] + ([terms_item(run.run, terms)] if terms else [])
        puts = [{"Put": {"TableName": self.table, "Item": item}} for item in items]
        absent: dict[str, Any] = {
            "TableName": self.table,
            "ConditionExpression": "attribute_not_exists(#item)",
            "ExpressionAttributeNames": {"#item": "item"},
        }
        each = MOST_PARTS - 2  # beside the run and the reservation
        *before, last = [puts[i : i + each] for i in range(0, max(len(puts), 1), each)]
        try:
            # The run comes last: until it exists, cells without it mean nothing, and a retry writes them again.
            for some in before:
                transact(self.client, [{"ConditionCheck": absent | {"Key": key(run.run, RUN)}}, *some], self.sleep)
        except ConditionFailed:
            return False
        for _ in range(TRIES):
            parts = [{"Put": absent | {"Item": run_item(run)}}, *last]
            if most_nodes is not None:
                known = self.reservations.read()
                if problem := no_room(("fleets",), run.nodes, known.others(run.run), most_nodes):
                    raise BadBenchmarkError([problem])
                parts.append(self.reservations.reserving(known, run.run, run.nodes))
            try:
                transact(self.client, parts, self.sleep)
            except ConditionFailed as failed:
                if failed.part == 0:
                    return False
                continue  # the reservations have changed since they were read
            return True
        raise ReservationConflictError

    def set_running(self, run: str, execution: str) -> None:
        """Records that the run's workflow has begun.

        Raises:
            RunClosedError: the run was closed before.
            MissingRunError: there is no such run.
        """
        try:
            self.rows.update(
                run,
                RUN,
                "SET #status = :running, execution = :execution",
                IS_OPEN,
                {":running": RunStatus.RUNNING.value, ":execution": execution},
                {"#item": "item", "#status": "status"},
            )
        except ConditionFailed:
            raise self.rows.closed_or_missing(run) from None

    def close(self, run: str, status: RunStatus, reason: str | None, now: datetime) -> Run:
        """Closes a run: nothing may be launched for it any more. The first caller's status and reason count. Returns
        the run as it is now.

        Args:
            status: the final status.

        Raises:
            MissingRunError: there is no such run.
        """
        update = "SET closed_at = :now, outcome = :outcome"
        values, names = {":now": moments.iso(now), ":outcome": status.value}, {"#item": "item"}
        if reason is not None:
            update, values[":reason"] = f"{update}, reason = :reason", reason
        if status is RunStatus.STOPPED:
            update, values[":stopping"] = f"{update}, #status = :stopping", RunStatus.STOPPING.value
            names["#status"] = "status"
        with suppress(ConditionFailed):  # closed before, or missing
            self.rows.update(run, RUN, update, IS_OPEN, values, names)
        return self.get(run)

    def conclude(self, run: str, now: datetime) -> Run:
        """Ends a closed run with its outcome, and releases its nodes. Repeating it changes nothing. Returns the run.

        Raises:
            MissingRunError: there is no such run.
            ReservationConflictError: others keep starting or ending runs; nothing is changed.
        """
        run_record = self.get(run)
        if run_record.outcome is None:
            raise ValueError(f"the run {run} is not closed")
        if run_record.ended_at is None:
            self._end(run, now)
        return self.get(run)

    def leave_behind(self, run: Run, left: Sequence[LeftBehind]) -> Run:
        """Replaces the record of what carries the run's tags and stays. Returns the run.

        Args:
            run: as it was read. If it has ended, :meth:`left_runs` lists it from now on, or no longer does.

        Raises:
            MissingRunError: there is no such run.
        """
        if tuple(left) == run.left_behind:
            return run
        names = {"#item": "item", "#left": "left_behind"}
        update = "SET #left = :left" if left else "REMOVE #left"
        condition, values = "attribute_exists(#item)", dict[str, Any]()
        if left:
            values[":left"] = [codec.to_document(one) for one in left]
        if run.ended_at is not None:
            names["#open"] = RUNS_BY_OPEN.partition
            if left:
                update, values[":mark"] = f"{update}, #open = :mark", RUN_LEFT
            else:
                update += ", #open"
        else:
            condition += " AND attribute_not_exists(ended_at)"
        with suppress(ConditionFailed):  # it has ended meanwhile; its conclusion records this
            self.rows.update(run.run, RUN, update, condition, values, names)
        return self.get(run.run)

    def _end(self, run: str, now: datetime) -> None:
        end = {
            "Update": {
                "TableName": self.table,
                "Key": key(run, RUN),
                "UpdateExpression": "SET ended_at = if_not_exists(ended_at, :now), #status = outcome "
                # The caller then records what stays, and with it the mark in the index.
                "REMOVE #open, left_behind",
                "ConditionExpression": "attribute_exists(closed_at)",
                "ExpressionAttributeNames": {"#status": "status", "#open": "open"},
                "ExpressionAttributeValues": typed({":now": moments.iso(now)}),
            }
        }
        for _ in range(TRIES):
            known = self.reservations.read()
            parts = [end, self.reservations.releasing(known, run)] if run in known.nodes else [end]
            try:
                transact(self.client, parts, self.sleep)
            except ConditionFailed as failed:
                if failed.part == 0:
                    raise
                continue  # the reservations have changed since they were read
            return
        raise ReservationConflictError

    def count_cost(self, run: str, amount: Decimal) -> Decimal:
        """Records that the metric counts a run's cost up to this amount. Returns the part that the caller must count: 0
        if it is counted already, so repeating it counts nothing twice.

        Raises:
            MissingRunError: there is no such run.
        """
        whole = rounded(amount)
        for _ in range(TRIES):
            counted = self.get(run).counted
            if whole <= counted:
                return ZERO
            condition = "attribute_exists(#item) AND " + (
                "counted = :counted" if counted else "attribute_not_exists(counted)"
            )
            values = {":whole": whole} | ({":counted": counted} if counted else {})
            try:
                self.rows.update(run, RUN, "SET counted = :whole", condition, values, {"#item": "item"})
            except ConditionFailed:
                continue  # another caller has counted a part meanwhile
            return whole - counted
        return ZERO  # others count it

    def set_cost(self, run: str, cell: str | None, cost: Cost, file_cost: Cost | None = None) -> None:
        """Replaces the recorded cost of a cell; without a cell, of the whole run.

        Args:
            file_cost: the cost by the file's own prices.

        Raises:
            MissingRunError: there is no such cell or run.
        """
        update, values = "SET cost = :cost", {":cost": codec.to_document(cost)}
        if file_cost is not None:
            update, values[":file_cost"] = f"{update}, cost_of_file = :file_cost", codec.to_document(file_cost)
        try:
            self.rows.update(
                run, CELL + cell if cell else RUN, update, "attribute_exists(#item)", values, {"#item": "item"}
            )
        except ConditionFailed:
            raise MissingRunError(run, cell) from None
