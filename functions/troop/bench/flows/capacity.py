"""Moves a cell on to its next choice of instance type and zone when EC2 lacks capacity."""

from __future__ import annotations

from collections.abc import Sequence

from troop.bench.aws.cell_store import CellStore
from troop.bench.definition import names
from troop.bench.definition.definition import Benchmark
from troop.bench.definition.plan import from_plan_document
from troop.bench.fleets.booting import FleetStatus
from troop.bench.fleets.choices import Choice, choices_document, choices_of, chosen, following, shown, without_capacity
from troop.bench.measuring.verdicts import State, Verdict, cut
from troop.bench.records.record import CellStatus


def choices_at(store: CellStore, run: str, cell: str) -> dict[str, Choice]:
    """Returns the choices of an attempt: those of the last attempt that moved on."""
    first, attempt = names.attempt_of(cell)
    for earlier in range(attempt, 1, -1):
        document = store.find_document(names.choices_key(run, names.attempt_id(first, earlier)))
        if document is not None:
            return choices_of(document)
    return {}


def move_on(
    store: CellStore, run: str, cell: str, benchmark: Benchmark, fleets: Sequence[FleetStatus]
) -> Verdict | None:
    """Ends an attempt that EC2 has refused for lack of capacity, and stores the choices of the next one.

    Args:
        benchmark: of the cell, with the choices of this attempt.

    Returns:
        None if EC2 has not refused a launch, or there is no further choice or attempt: capacity may still come.
    """
    refusals = without_capacity(benchmark, fleets)
    first, attempt = names.attempt_of(cell)
    if not refusals or attempt >= benchmark.attempts:
        return None
    planned = from_plan_document(store.read(names.plan_key(run))).benchmark_of(cell)
    choices = following(planned, choices_at(store, run, cell), refusals)
    if choices is None:
        return None
    further = names.attempt_id(first, attempt + 1)
    store.write(names.choices_key(run, further), choices_document(choices))
    after = chosen(planned, choices)
    reasons = (
        f"EC2 has no capacity for the fleet {role} ({shown(benchmark.fleet(role))}): {cut(refusal)}; "
        f"the next attempt takes {shown(after.fleet(role))}"
        for role, refusal in refusals.items()
    )
    return Verdict(State.FAILED, CellStatus.INVALID, "; ".join(reasons))
