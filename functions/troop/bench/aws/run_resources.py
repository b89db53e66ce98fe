"""Records in the table ``Runs`` what a run plans to create, has created and has removed; plans come first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from troop.bench.aws.run_items import RESOURCE, facts_of, key_of, name_of, resource_of
from troop.bench.aws.run_rows import RunRows
from troop.bench.records.record import SCHEMA, Resource
from troop.shared import moments
from troop.shared.aws.dynamo import typed
from troop.shared.malformed import Read, read


@dataclass(frozen=True)
class RunResources:
    """The resources of all runs of a deployment."""

    rows: RunRows

    def get_all(self, run: str) -> list[Resource]:
        """Returns the resources of a run, in no order.

        Raises:
            MalformedItemError: one of them cannot be read. What a workflow decides needs all of them.
        """
        return list(self.readable(run).whole())

    def get_present(self, run: str) -> list[Resource]:
        """Returns the resources of a run that are not gone, in no order: a fleet that lives long has many others.

        Raises:
            MalformedItemError: one of them cannot be read.
        """
        return list(read(self.rows.beginning(run, RESOURCE, without="gone_at"), resource_of, name_of).whole())

    def readable(self, run: str) -> Read[Resource]:
        """Returns the resources of a run, in no order, and which cannot be read."""
        return read(self.rows.beginning(run, RESOURCE), resource_of, name_of)

    def plan(self, resources: Iterable[Resource]) -> None:
        """Records what is about to be created; what is on record stays as it is.

        Raises:
            RunClosedError: the run or a cell is closed.
            MissingRunError: there is no such run or cell.
        """
        self._record_while_open(resources, None)

    def created(self, resources: Iterable[Resource], now: datetime) -> None:
        """Records resources as created, including those that were not planned by name, such as instances.

        Raises:
            RunClosedError: the run or a cell is closed; the teardown then finds and records them.
            MissingRunError: there is no such run or cell.
        """
        self._record_while_open(resources, now)

    def record_seen(self, resources: Iterable[Resource], now: datetime) -> None:
        """Records existing resources of a run that may be closed: they were created and are not gone."""
        self.rows.write_all([self._row(resource, now) for resource in resources])

    def gone(self, resources: Iterable[Resource], now: datetime) -> None:
        """Records resources as gone. They need not be on record; the first moment counts."""
        values = {":now": moments.iso(now)}
        self.rows.write_all([self._set(r, ["gone_at = if_not_exists(gone_at, :now)"], values) for r in resources])

    def _record_while_open(self, resources: Iterable[Resource], created: datetime | None) -> None:
        def cell_of(resource: Resource) -> tuple[str, str]:
            return resource.run, resource.cell

        values = {":now": moments.iso(created)} if created else {}
        also = ["created_at = if_not_exists(created_at, :now)"] if created else []
        for (run, cell), those in groupby(sorted(resources, key=cell_of), cell_of):
            parts = [self._set(resource, also, values) for resource in those]
            self.rows.write_while_open(run, cell, parts)

    def _row(self, resource: Resource, now: datetime) -> dict[str, Any]:
        values = {":now": moments.iso(resource.created_at or now)}
        return self._set(resource, ["created_at = if_not_exists(created_at, :now)"], values, " REMOVE gone_at")

    def _set(self, resource: Resource, also: list[str], values: dict[str, Any], more: str = "") -> dict[str, Any]:
        """Returns the write of a resource that keeps what is on record and adds ``also``."""
        keeps = ["#cell = if_not_exists(#cell, :cell)", "planned_at = if_not_exists(planned_at, :planned)"]
        every = {":cell": resource.cell, ":planned": moments.iso(resource.planned_at), ":schema": SCHEMA}
        names = {"#cell": "cell", "#schema": "schema"}
        for name, value in facts_of(resource).items():
            keeps.append(f"#{name} = if_not_exists(#{name}, :{name})")
            names[f"#{name}"], every[f":{name}"] = name, value
        return {
            "Update": {
                "TableName": self.rows.table,
                "Key": key_of(resource),
                "UpdateExpression": "SET " + ", ".join(["#schema = :schema", *keeps, *also]) + more,
                "ExpressionAttributeNames": names,
                "ExpressionAttributeValues": typed(values | every),
            }
        }
