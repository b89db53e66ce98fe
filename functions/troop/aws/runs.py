"""The table ``Runs``: the record of every run, and the rule that nothing is launched for a closed one.

A run is closed once and for good. Whatever launches writes down first what it is about to create, in a transaction
that holds only while the run and the cell are open; so whoever has closed one, and reads the table then, knows of all.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from troop import moments
from troop.aws.dynamo import typed
from troop.aws.run_items import (
    BENCHMARK,
    CELL,
    ENDED,
    LAUNCH,
    OPEN,
    RESOURCE,
    RUN,
    TERMS,
    cell_item,
    cell_of,
    facts_of,
    key,
    key_of,
    launch_item,
    launch_key,
    launch_of,
    resource_of,
    run_item,
    run_of,
    terms_item,
    terms_of,
)
from troop.aws.transact import ConditionFailed, Sleep, transact, write
from troop.bench import costs
from troop.bench.costs import Cost
from troop.bench.record import FINAL, SCHEMA, Cell, CellStatus, Launch, Resource, Run, RunStatus
from troop.bench.spending import Terms
from troop.errors import MissingRunError, RunClosedError

BY_TIME, BY_OPEN = "by-time", "by-open"

MOST_PARTS = 100
"""Items that one transaction may write or check."""

_IS_OPEN = "attribute_exists(#item) AND attribute_not_exists(closed_at)"


class BadCursor(ValueError):
    """A cursor that no page can have ended with."""


@dataclass(frozen=True)
class RunTable:
    """The runs of a deployment. All reads are strongly consistent, but :meth:`page` and :meth:`open_runs`."""

    client: Any
    table: str
    sleep: Sleep = time.sleep

    # Reads

    def get(self, run: str) -> Run:
        """A run.

        Raises:
            MissingRunError: there is none.
        """
        found = self._get(run, RUN)
        if found is None:
            raise MissingRunError(run)
        return run_of(found)

    def cell(self, run: str, cell: str) -> Cell:
        """One cell of a run.

        Raises:
            MissingRunError: there is none.
        """
        found = self._get(run, CELL + cell)
        if found is None:
            raise MissingRunError(run, cell)
        return cell_of(found)

    def cells(self, run: str) -> list[Cell]:
        """All cells of a run, in their order."""
        return [cell_of(item) for item in self._items(run, CELL)]

    def resources(self, run: str) -> list[Resource]:
        """What a run was to create, has created, and has left: in no order."""
        return [resource_of(item) for item in self._items(run, RESOURCE)]

    def terms(self, run: str) -> Terms | None:
        """By what its money is reckoned; None for a run of an earlier version."""
        found = self._get(run, TERMS)
        return terms_of(found) if found else None

    def launches(self, run: str) -> list[Launch]:
        """The launches that nobody has ended; those of steps that died stay after their time."""
        return [launch_of(item) for item in self._items(run, LAUNCH) if ENDED not in item]

    def open_runs(self) -> list[Run]:
        """The runs that have not ended, oldest first. The index lags a moment behind: read one before acting on it."""
        pages = self.client.get_paginator("query").paginate(
            TableName=self.table,
            IndexName=BY_OPEN,
            KeyConditionExpression="#open = :open",
            ExpressionAttributeNames={"#open": "open"},
            ExpressionAttributeValues={":open": {"S": OPEN}},
        )
        return [run_of(item) for page in pages for item in page["Items"]]

    def page(self, limit: int, cursor: str | None = None, kind: str = BENCHMARK) -> tuple[list[Run], str | None]:
        """At most ``limit`` runs, newest first, and the cursor that continues after them; None when there is no more.

        Args:
            kind: which runs, :data:`troop.aws.run_items.BENCHMARK` or FLEET.

        Raises:
            BadCursor: the cursor is none that a page ended with.
        """
        query: dict[str, Any] = {
            "TableName": self.table,
            "IndexName": BY_TIME,
            "ScanIndexForward": False,
            "KeyConditionExpression": "#kind = :run",
            "ExpressionAttributeNames": {"#kind": "kind"},
            "ExpressionAttributeValues": {":run": {"S": kind}},
            "Limit": limit,
        }
        if cursor is not None:
            run = cursor.partition("#")[2]
            if not run:
                raise BadCursor(cursor)
            query["ExclusiveStartKey"] = key(run, RUN) | typed({"kind": kind, "at": cursor})
        answer = self.client.query(**query)
        last = answer.get("LastEvaluatedKey")
        return [run_of(item) for item in answer["Items"]], str(last["at"]["S"]) if last else None

    # What becomes of a run

    def create(self, run: Run, cells: Sequence[Cell], terms: Terms | None = None) -> bool:
        """Puts a run, its cells and its terms; False when there is such a run already, of which nothing is changed
        then.
        """
        items = [cell_item(cell) for cell in cells] + ([terms_item(run.run, terms)] if terms else [])
        puts = [{"Put": {"TableName": self.table, "Item": item}} for item in items]
        absent: dict[str, Any] = {
            "TableName": self.table,
            "ConditionExpression": "attribute_not_exists(#item)",
            "ExpressionAttributeNames": {"#item": "item"},
        }
        *before, last = [puts[i : i + MOST_PARTS - 1] for i in range(0, max(len(puts), 1), MOST_PARTS - 1)]
        try:
            # The run comes last: until it is there, cells without it mean nothing, and are put again.
            for some in before:
                transact(self.client, [{"ConditionCheck": absent | {"Key": key(run.run, RUN)}}, *some], self.sleep)
            transact(self.client, [{"Put": absent | {"Item": run_item(run)}}, *last], self.sleep)
        except ConditionFailed:
            return False
        return True

    def set_running(self, run: str, execution: str) -> None:
        """The run's workflow has begun.

        Raises:
            RunClosedError: the run was closed before.
            MissingRunError: there is no such run.
        """
        try:
            self._update(
                run,
                RUN,
                "SET #status = :running, execution = :execution",
                _IS_OPEN,
                {":running": RunStatus.RUNNING.value, ":execution": execution},
                {"#item": "item", "#status": "status"},
            )
        except ConditionFailed:
            raise self._closed_or_missing(run) from None

    def close(self, run: str, status: RunStatus, reason: str | None, now: datetime) -> Run:
        """Closes a run: from now on nothing may be launched for it. Of several callers the first one's status and
        reason count. Returns the run as it is now.

        Args:
            status: what it is to end with, one of :data:`troop.bench.record.ENDED`.

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
            self._update(run, RUN, update, _IS_OPEN, values, names)
        return self.get(run)

    def conclude(self, run: str, now: datetime) -> Run:
        """Ends a closed run, with the status it was closed with. Repeating it changes nothing. Returns the run.

        Raises:
            MissingRunError: there is no such run.
        """
        found = self.get(run)
        if found.outcome is None:
            raise ValueError(f"the run {run} is not closed")
        if found.ended_at is None:
            self._update(
                run,
                RUN,
                "SET ended_at = if_not_exists(ended_at, :now), #status = outcome REMOVE #open",
                "attribute_exists(closed_at)",
                {":now": moments.iso(now)},
                {"#status": "status", "#open": "open"},
            )
        return self.get(run)

    def set_cost(self, run: str, cell: str | None, cost: Cost) -> None:
        """What a cell has cost, or without one the whole run; what was said before is replaced.

        Raises:
            MissingRunError: there is no such cell or run.
        """
        try:
            self._update(
                run,
                CELL + cell if cell else RUN,
                "SET cost = :cost",
                "attribute_exists(#item)",
                {":cost": costs.to_document(cost)},
                {"#item": "item"},
            )
        except ConditionFailed:
            raise MissingRunError(run, cell) from None

    # What becomes of a cell

    def add_cell(self, cell: Cell) -> None:
        """Puts one more cell of an open run; one that is on record already stays as it is.

        Raises:
            RunClosedError: the run is closed.
            MissingRunError: there is none.
        """
        whose: dict[str, Any] = {"TableName": self.table, "ExpressionAttributeNames": {"#item": "item"}}
        check = whose | {"Key": key(cell.run, RUN), "ConditionExpression": _IS_OPEN}
        put = whose | {"Item": cell_item(cell), "ConditionExpression": "attribute_not_exists(#item)"}
        try:
            transact(self.client, [{"ConditionCheck": check}, {"Put": put}], self.sleep)
        except ConditionFailed as failed:
            if failed.part == 0:
                raise self._closed_or_missing(cell.run) from None

    def set_cell(
        self,
        run: str,
        cell: str,
        *,
        phase: str | None = None,
        at: datetime | None = None,
        status: CellStatus | None = None,
        reason: str | None = None,
        results: list[dict[str, Any]] | None = None,
    ) -> bool:
        """Changes what is given. A cell that has come to an end keeps its status, reason and results: then nothing is
        changed, and the answer is False (True if it is of that status already).

        Args:
            phase: what the cell is at from now on; any cell can go on to the next one.
            at: when it began that; needed with a phase. The first moment counts.

        Raises:
            MissingRunError: there is no such cell.
        """
        update, names = ["#schema = :schema"], {"#item": "item", "#schema": "schema"}
        values: dict[str, Any] = {":schema": SCHEMA}
        condition = "attribute_exists(#item)"
        given: dict[str, Any] = {"status": status.value if status else None, "reason": reason, "results": results}
        for name, value in given.items():
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
                raise ValueError("a phase needs the moment at which it began")
            update += ["#phase = :phase", "phases.#began = if_not_exists(phases.#began, :at)"]
            names |= {"#phase": "phase", "#began": phase}
            values |= {":phase": phase, ":at": moments.iso(at)}
        try:
            self._update(run, CELL + cell, "SET " + ", ".join(update), condition, values, names)
        except ConditionFailed:
            return self.cell(run, cell).status is status
        return True

    def close_cell(self, run: str, cell: str, now: datetime) -> None:
        """From now on nothing may be launched for the cell. Repeating it changes nothing.

        Raises:
            MissingRunError: there is no such cell.
        """
        try:
            self._update(
                run,
                CELL + cell,
                "SET closed_at = if_not_exists(closed_at, :now)",
                "attribute_exists(#item)",
                {":now": moments.iso(now)},
                {"#item": "item"},
            )
        except ConditionFailed:
            raise MissingRunError(run, cell) from None

    # Launching

    def check_open(self, run: str, cell: str) -> None:
        """To be called before each creation.

        Raises:
            RunClosedError: the run or the cell is closed.
            MissingRunError: there is none.
        """
        if self.get(run).closed_at is not None:
            raise RunClosedError(run)
        if self.cell(run, cell).closed_at is not None:
            raise RunClosedError(run, cell)

    def begin_launch(self, run: str, cell: str, until: datetime) -> Launch:
        """Gives the right to create what the cell needs. Whoever has it creates nothing after ``until``, and looks
        before each creation whether the run is still open.

        Args:
            until: when the step has been killed, at the latest.

        Raises:
            RunClosedError: the run or the cell is closed.
            MissingRunError: there is none.
        """
        launch = Launch(run, cell, secrets.token_hex(8), until)
        put = {"Put": {"TableName": self.table, "Item": launch_item(launch)}}
        self._while_open(run, cell, [put])
        return launch

    def end_launch(self, launch: Launch) -> None:
        """Gives it back: nothing more is created by it. Repeating it changes nothing."""
        with suppress(ConditionFailed):
            write(
                self.client.update_item,
                self.sleep,
                TableName=self.table,
                Key=launch_key(launch),
                UpdateExpression="SET #ended = :ended",
                ConditionExpression="attribute_exists(#item)",
                ExpressionAttributeNames={"#item": "item", "#ended": ENDED},
                ExpressionAttributeValues={":ended": {"BOOL": True}},
            )

    def plan(self, resources: Iterable[Resource]) -> None:
        """Writes down what is about to be created; what is on record already stays as it is.

        Raises:
            RunClosedError: the run or a cell is closed.
            MissingRunError: there is none.
        """
        self._record_while_open(resources, None)

    def created(self, resources: Iterable[Resource], now: datetime) -> None:
        """Writes down that they were created, also if they were not planned by their name, as instances are.

        Raises:
            RunClosedError: the run or a cell is closed; teardown then finds and records them itself.
            MissingRunError: there is none.
        """
        self._record_while_open(resources, now)

    # Tearing down

    def found(self, resources: Iterable[Resource], now: datetime) -> None:
        """Writes down what was seen of a run that may be closed: it was created, and is not gone."""
        self._write_all([self._seen(resource, now) for resource in resources])

    def gone(self, resources: Iterable[Resource], now: datetime) -> None:
        """Writes down that they are gone. They need not be on record; the moment they were first seen gone counts."""
        values = {":now": moments.iso(now)}
        self._write_all([self._set(r, ["gone_at = if_not_exists(gone_at, :now)"], values) for r in resources])

    # How

    def _get(self, run: str, item: str) -> dict[str, Any] | None:
        answer = self.client.get_item(TableName=self.table, Key=key(run, item), ConsistentRead=True)
        found: dict[str, Any] | None = answer.get("Item")
        return found

    def _items(self, run: str, beginning: str) -> Iterable[dict[str, Any]]:
        pages = self.client.get_paginator("query").paginate(
            TableName=self.table,
            KeyConditionExpression="#run = :run AND begins_with(#item, :beginning)",
            ExpressionAttributeNames={"#run": "run", "#item": "item"},
            ExpressionAttributeValues=typed({":run": run, ":beginning": beginning}),
            ConsistentRead=True,
        )
        return (item for page in pages for item in page["Items"])

    def _update(
        self, run: str, item: str, update: str, condition: str, values: dict[str, Any], names: dict[str, str]
    ) -> None:
        write(
            self.client.update_item,
            self.sleep,
            TableName=self.table,
            Key=key(run, item),
            UpdateExpression=update,
            ConditionExpression=condition,
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=typed(values),
        )

    def _while_open(self, run: str, cell: str, parts: list[dict[str, Any]]) -> None:
        checks = [
            {
                "ConditionCheck": {
                    "TableName": self.table,
                    "Key": key(run, item),
                    "ConditionExpression": _IS_OPEN,
                    "ExpressionAttributeNames": {"#item": "item"},
                }
            }
            for item in (RUN, CELL + cell)
        ]
        try:
            transact(self.client, [*checks, *parts], self.sleep)
        except ConditionFailed as failed:
            raise self._closed_or_missing(run, cell if failed.part else None) from None

    def _closed_or_missing(self, run: str, cell: str | None = None) -> RunClosedError | MissingRunError:
        found = self._get(run, CELL + cell if cell else RUN)
        return MissingRunError(run, cell) if found is None else RunClosedError(run, cell)

    def _record_while_open(self, resources: Iterable[Resource], created: datetime | None) -> None:
        def of(resource: Resource) -> tuple[str, str]:
            return resource.run, resource.cell

        values = {":now": moments.iso(created)} if created else {}
        also = ["created_at = if_not_exists(created_at, :now)"] if created else []
        for (run, cell), those in groupby(sorted(resources, key=of), of):
            parts = [self._set(resource, also, values) for resource in those]
            for i in range(0, len(parts), MOST_PARTS - 2):
                self._while_open(run, cell, parts[i : i + MOST_PARTS - 2])

    def _seen(self, resource: Resource, now: datetime) -> dict[str, Any]:
        values = {":now": moments.iso(resource.created_at or now)}
        return self._set(resource, ["created_at = if_not_exists(created_at, :now)"], values, " REMOVE gone_at")

    def _set(self, resource: Resource, also: list[str], values: dict[str, Any], more: str = "") -> dict[str, Any]:
        """Writes a resource without overwriting what is on record of it, and ``also`` that."""
        keeps = ["#cell = if_not_exists(#cell, :cell)", "planned_at = if_not_exists(planned_at, :planned)"]
        every = {":cell": resource.cell, ":planned": moments.iso(resource.planned_at), ":schema": SCHEMA}
        names = {"#cell": "cell", "#schema": "schema"}
        for name, value in facts_of(resource).items():
            keeps.append(f"#{name} = if_not_exists(#{name}, :{name})")
            names[f"#{name}"], every[f":{name}"] = name, value
        return {
            "Update": {
                "TableName": self.table,
                "Key": key_of(resource),
                "UpdateExpression": "SET " + ", ".join(["#schema = :schema", *keeps, *also]) + more,
                "ExpressionAttributeNames": names,
                "ExpressionAttributeValues": typed(values | every),
            }
        }

    def _write_all(self, parts: list[dict[str, Any]]) -> None:
        for i in range(0, len(parts), MOST_PARTS):
            transact(self.client, parts[i : i + MOST_PARTS], self.sleep)
