"""Stores the lines of ended runs in the table ``Runs``, from where one query reads those of a benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from troop.bench.aws.run_items import LINE, line_item, line_of, name_of
from troop.bench.aws.run_rows import RunRows
from troop.bench.records.line import Line
from troop.shared.aws.transact import write
from troop.shared.malformed import Malformed, read
from troop.shared.tables import RUNS_BY_NAME


@dataclass(frozen=True)
class LinePage:
    """A page of lines, newest first, without the malformed ones. ``cursor`` is None on the last page."""

    lines: tuple[Line, ...]
    cursor: str | None
    malformed: tuple[Malformed, ...] = ()


@dataclass(frozen=True)
class RunLines:
    """The lines of all runs of a deployment. The index from which they are read lags a moment."""

    rows: RunRows

    def put(self, line: Line) -> None:
        """Stores the line of a run, in place of an earlier one.

        Raises:
            ClientError: DynamoDB refused.
        """
        write(self.rows.client.put_item, self.rows.sleep, TableName=self.rows.table, Item=line_item(line))

    def page(self, name: str, limit: int, cursor: str | None = None) -> LinePage:
        """Returns at most ``limit`` lines of a benchmark, and at most a megabyte of them, by one query.

        Raises:
            BadCursor: no page ended with this cursor.
        """
        items, last = self.rows.page(RUNS_BY_NAME, name, LINE, limit, cursor)
        lines = read(items, line_of, name_of)
        return LinePage(lines.items, last, lines.malformed)

    def newest(self, name: str, most: int) -> Iterator[Line]:
        """Yields at most ``most`` lines of a benchmark, newest first, without the malformed ones."""
        cursor = None
        while most > 0:
            page = self.page(name, most, cursor)
            yield from page.lines
            most -= len(page.lines) + len(page.malformed)
            if (cursor := page.cursor) is None:
                return
