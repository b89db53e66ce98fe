"""Reads the benchmark runs and standing fleets that have not ended, with their cost so far."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from cli.client.client import TroopClient
from cli.shared import side_by_side
from cli.shared.errors import CliError

_NEWEST = 100
"""Runs and fleets, among which the open ones are: one page of the API."""

_COSTED = 10
"""Open runs and fleets whose cost is asked for, each with a request."""


def open_counts(client: TroopClient) -> dict[str, int]:
    """Returns how many of the newest ``runs`` and ``fleets`` have not ended.

    Raises:
        CliError: they cannot be read.
    """
    reads = {"runs": client.benchmarks.runs, "fleets": client.benchmarks.fleets}
    return {name: len([one for one in read(_NEWEST) if not one["ended_at"]]) for name, read in reads.items()}


def open_runs(client: TroopClient) -> list[dict[str, Any]]:
    """Returns the runs that have not ended, newest first; ``cost_so_far`` is None where it is unknown."""
    return _open(client, "run")


def open_fleets(client: TroopClient) -> list[dict[str, Any]]:
    """Returns the standing fleets that have not ended, as :func:`open_runs` does."""
    return _open(client, "fleet")


def _open(client: TroopClient, kind: str) -> list[dict[str, Any]]:
    """Returns the runs or fleets that have not ended, with what the first of them cost so far."""
    benchmarks = client.benchmarks
    fetch, fetch_one = (benchmarks.runs, benchmarks.run) if kind == "run" else (benchmarks.fleets, benchmarks.fleet)

    def cost(record: Mapping[str, Any]) -> Any:
        try:
            return fetch_one(str(record[kind])).get("cost_so_far")
        except CliError:
            return None  # the cost is a detail; the record itself is known

    records = [record for record in fetch(_NEWEST) if not record["ended_at"]]
    costs = side_by_side.answers({str(record[kind]): partial(cost, record) for record in records[:_COSTED]})
    return [record | {"cost_so_far": costs.get(str(record[kind]))} for record in records]


MOST_OF_MONTH = 500
"""The newest runs among which those of a month are: five pages of the API."""


def month_cost(client: TroopClient, now: datetime) -> dict[str, Any]:
    """Returns what the runs of the current month, in UTC, have cost by currency: of those that have ended and whose
    cost is known. ``limited`` is whether there can be more runs than were read.
    """
    begin = f"{now.astimezone(UTC):%Y-%m}"
    newest = client.benchmarks.runs(MOST_OF_MONTH)
    runs = [run for run in newest if str(run["at"]).startswith(begin)]
    amounts: dict[str, float] = {}
    for run in runs:
        if cost := run["cost"]:
            amounts[cost["currency"]] = amounts.get(cost["currency"], 0.0) + cost["amount"]
    return {"runs": len(runs), "amounts": amounts, "limited": len(runs) == MOST_OF_MONTH}
