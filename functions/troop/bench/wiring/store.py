"""Creates what reads and writes the record and the stored files of runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from troop.bench.aws.cell_store import CellStore
from troop.bench.aws.run_table import RunTable
from troop.bench.aws.stored_runs import StoredRuns
from troop.shared.aws.clients import client, many_client
from troop.shared.variables import Variable
from troop.shared.wiring import environment
from troop.shared.wiring.environment import variable


def runs() -> RunTable:
    return RunTable(client("dynamodb"), variable(Variable.RUNS_TABLE), environment.sleep)


def stored_runs(client_of: Callable[[str], Any] = client) -> StoredRuns:
    """Creates the reader of stored runs. ``client_of``: returns a service's client."""
    return StoredRuns(client_of("s3"), variable(Variable.RESULTS_BUCKET))


def cell_store() -> CellStore:
    return CellStore(many_client("s3"), variable(Variable.RESULTS_BUCKET))
