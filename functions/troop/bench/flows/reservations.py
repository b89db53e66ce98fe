"""Keeps the reservations of nodes consistent with the open runs."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime

from troop.bench.aws.run_table import RunTable
from troop.bench.records.record import Run
from troop.bench.removal.reaping import PATIENCE
from troop.shared.errors import MissingRunError
from troop.shared.malformed import MalformedItemError


def mend_reservations(runs: RunTable, open_runs: Iterable[Run], now: datetime) -> None:
    """Releases reservations without an open run, and reserves the nodes of open runs that lack a reservation.

    Transactions normally keep both consistent. This repairs runs that an earlier version admitted, and manual edits.

    Args:
        open_runs: from the index, which lags behind: each run is read again before a change.
    """
    known = runs.reservations.read()
    ids = {run.run for run in open_runs}
    for run in known.unknown(ids):
        with suppress(MalformedItemError):  # it may be open: its reservation stays
            record = _find(runs, run)
            if record is None or record.ended_at is not None:
                runs.reservations.release(run)
    for run in sorted(ids - set(known.nodes)):
        record = _find(runs, run)
        if record is not None and record.ended_at is None and now - record.at >= PATIENCE:
            nodes = sum(record.standing.desired.values()) if record.standing else record.nodes
            runs.reservations.reserve(run, nodes)


def _find(runs: RunTable, run: str) -> Run | None:
    try:
        return runs.get(run)
    except MissingRunError:
        return None
