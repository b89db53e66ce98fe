"""What runs and cells have cost, put on record; and whether a further one may cost something."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError

from troop.aws.bench.runs import RunTable
from troop.bench import spending
from troop.bench.money import rounded
from troop.bench.record import Resource
from troop.errors import TroopError

_ANY = (ArithmeticError, LookupError, TypeError, ValueError, BotoCoreError, ClientError, TroopError)
"""What could go wrong with a bill. It must not stand in the way of a teardown."""


def reckon(runs: RunTable, run: str, cell: str | None, resources: Iterable[Resource], now: datetime) -> None:
    """Writes down what a cell has cost; or without one the run, and each of its cells.

    Args:
        resources: of the run, as they are on record; all of them gone, as far as is known.
    """
    with suppress(*_ANY):
        terms = runs.terms(run)
        if terms is None:
            return
        every, known = runs.cells.of(run), list(resources)
        for one in every:
            if cell in (None, one.cell):
                cost = spending.actual(terms, [one], known, now)
                if one.cost is None or rounded(cost.amount) != one.cost.amount:  # else that is on record
                    runs.set_cost(run, one.cell, cost)
        if cell is None:
            runs.set_cost(run, None, spending.actual(terms, every, known, now))


def over_budget(runs: RunTable, run: str, cell: str) -> str | None:
    """Why a cell, or an attempt at one, must not be launched, see :func:`troop.bench.spending.over_budget`."""
    terms = runs.terms(run)
    if terms is None or terms.budget is None:
        return None
    return spending.over_budget(terms, cell, runs.cells.of(run))
