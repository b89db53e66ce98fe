"""Records what runs and cells have cost, and checks whether a further cell fits the budget."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from botocore.exceptions import BotoCoreError, ClientError

from troop.bench.admission import spending
from troop.bench.admission.spending import Terms
from troop.bench.aws.run_table import RunTable
from troop.bench.definition.money import rounded
from troop.bench.money.costs import Cost
from troop.bench.records.record import Resource, Run
from troop.bench.removal.teardown import Seen, key_of, unrecorded
from troop.shared.errors import TroopError

_ANY = (ArithmeticError, LookupError, TypeError, ValueError, BotoCoreError, ClientError, TroopError)
"""Errors that computing costs can raise; they must not stop a teardown."""


@dataclass(frozen=True)
class Increment:
    """What a run has cost since its cost was last counted."""

    amount: Decimal
    currency: str


def reckon(runs: RunTable, run: str, cell: str | None, resources: Iterable[Resource], now: datetime) -> None:
    """Records the cost of one cell; without a cell, of the run and each of its cells.

    Args:
        resources: the run's resources on record; all of them are gone, as far as known.
    """
    with suppress(*_ANY):
        terms = runs.terms(run)
        if terms is None:
            return
        every, known = runs.cells.get_all(run), list(resources)
        for one in every:
            if cell in (None, one.cell):
                cost = spending.actual(terms, [one], known, now)
                if one.cost is None or rounded(cost.amount) != one.cost.amount:  # otherwise it is on record
                    runs.set_cost(run, one.cell, cost)
        if cell is None:
            whole = spending.actual(terms, every, known, now)
            runs.set_cost(run, None, whole, spending.actual_at_file_prices(terms, every, known, now))


def count_ended(runs: RunTable, run: Run) -> Increment | None:
    """Counts the remaining cost of a run whose cost is on record. Returns the amount for the metric."""
    with suppress(*_ANY):
        return _counted(runs, run.run, run.cost) if run.cost else None
    return None


def so_far(runs: RunTable, run: str, seen: Iterable[Seen], now: datetime) -> tuple[Terms, Cost] | None:
    """Computes what an open run has cost until now; None for a run of an earlier version, which has no terms.

    Args:
        seen: the run's existing resources: nodes count from their launch, before they are on record.
    """
    terms = runs.terms(run)
    if terms is None:
        return None
    recorded = {key_of(one): one for one in runs.resources.get_all(run)}
    young = {key_of(one): one for one in unrecorded(seen, recorded.values(), now)}
    return terms, spending.actual(terms, runs.cells.get_all(run), (recorded | young).values(), now)


def count(runs: RunTable, run: str, seen: Iterable[Seen], now: datetime) -> tuple[Increment | None, str | None]:
    """Counts what an open run has cost since the last count.

    Returns:
        The amount for the metric, None for nothing; and why the run must be stopped, None if it may continue.
    """
    standing = so_far(runs, run, seen, now)
    if standing is None:
        return None, None
    terms, cost = standing
    return _counted(runs, run, cost), spending.over_ceiling(terms, cost.amount)


def _counted(runs: RunTable, run: str, cost: Cost) -> Increment | None:
    amount = runs.count_cost(run, cost.amount)
    return Increment(amount, cost.currency) if amount else None


def over_budget(runs: RunTable, run: str, cell: str) -> str | None:
    """Returns why a cell, or an attempt at one, must not be launched; see
    :func:`troop.bench.admission.spending.over_budget`.
    """
    terms = runs.terms(run)
    if terms is None or terms.limit is None:
        return None
    return spending.over_budget(terms, cell, runs.cells.get_all(run))
