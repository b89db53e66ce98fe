"""Enforces that nothing is launched for a closed run: launches are leases in the table ``Runs``.

A launching step takes one in a transaction that holds only while the run and the cell are open, and returns it
afterwards. So a caller that closes one, and then reads the table, knows who may still be creating.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from troop.bench.aws.run_items import ENDED, LAUNCH, cell_of, item_of, launch_item, launch_of, name_of, run_of
from troop.bench.aws.run_rows import RunRows
from troop.bench.records.record import Launch
from troop.shared.aws.transact import ConditionFailed
from troop.shared.errors import RunClosedError
from troop.shared.malformed import read, read_one


@dataclass(frozen=True)
class RunLaunches:
    """The launches of all runs of a deployment."""

    rows: RunRows

    def get_all(self, run: str) -> list[Launch]:
        """Returns the launches that have not ended; those of steps that died stay after their time."""
        items = (item for item in self.rows.beginning(run, LAUNCH) if ENDED not in item)
        return list(read(items, launch_of, name_of).whole())

    def check_open(self, run: str, cell: str) -> None:
        """Checks that the run and the cell are open; call it before each creation.

        Raises:
            RunClosedError: the run or the cell is closed.
            MissingRunError: there is no such run or cell.
        """
        if read_one(self.rows.get(run), run_of, name_of).closed_at is not None:
            raise RunClosedError(run)
        if read_one(self.rows.get(run, cell), cell_of, name_of).closed_at is not None:
            raise RunClosedError(run, cell)

    def begin(self, run: str, cell: str, until: datetime) -> Launch:
        """Grants the right to create what the cell needs. Its holder creates nothing after ``until``, and checks before
        each creation that the run is still open.

        Args:
            until: when Lambda has ended the step, at the latest.

        Raises:
            RunClosedError: the run or the cell is closed.
            MissingRunError: there is no such run or cell.
        """
        launch = Launch(run, cell, secrets.token_hex(8), until)
        put = {"Put": {"TableName": self.rows.table, "Item": launch_item(launch)}}
        self.rows.write_while_open(run, cell, [put])
        return launch

    def end(self, launch: Launch) -> None:
        """Ends a launch: nothing more is created under it. Repeating it changes nothing."""
        with suppress(ConditionFailed):
            self.rows.update(
                launch.run,
                item_of(launch),
                "SET #ended = :ended",
                "attribute_exists(#item)",
                {":ended": True},
                {"#item": "item", "#ended": ENDED},
            )
