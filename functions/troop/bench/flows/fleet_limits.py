"""Checks sizes and ends of standing fleets against node limits, other runs, and what their budgets can pay for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from troop.bench.admission import spending
from troop.bench.admission.spending import Budget
from troop.bench.aws.run_table import RunTable
from troop.bench.definition import standing
from troop.bench.definition.limits import no_room
from troop.bench.definition.problems import Problem
from troop.bench.definition.standing import Standing
from troop.bench.living.scaling import largest
from troop.bench.records.record import Run
from troop.shared.settings import Settings


@dataclass(frozen=True)
class FleetLimits:
    """The limits of a deployment's fleets."""

    runs: RunTable
    settings: Settings

    def problems(self, record: Run, fleet: Standing, desired: Mapping[str, int], now: datetime) -> list[Problem]:
        """Lists all limits that a size exceeds. If it exceeds only that of all runs together, the change itself is
        refused, because it depends on the others at that moment.
        """
        grows = any(count > fleet.desired[role] for role, count in desired.items())
        budget = self.budget(record, record.expires_at, now) if grows else None
        exceeded = _problems(self.settings, fleet, desired, budget)
        if exceeded and _reserved(fleet, desired) > _reserved(fleet, fleet.desired):
            exceeded += self._no_room(fleet, desired, self.runs.reservations.read().others(record.run))
        return exceeded

    def fitting(self, record: Run, fleet: Standing, role: str, count: int, now: datetime) -> tuple[int, str]:
        """Returns the largest number of a role's nodes up to ``count`` that all limits allow, but at least as many as
        it should have now; and the reason, "" if that is ``count``.
        """
        if count <= fleet.desired[role]:
            return count, ""
        others = self.runs.reservations.read().others(record.run)
        budget = self.budget(record, record.expires_at, now)

        def problems(nodes: int) -> list[Problem]:
            desired = {**fleet.desired, role: nodes}
            return _problems(self.settings, fleet, desired, budget) + self._no_room(fleet, desired, others)

        return largest(fleet.desired[role], count, problems)

    def budget(self, record: Run, expires_at: datetime, now: datetime) -> Budget | None:
        """Reads what a fleet can pay for until its end; None without a limit."""
        terms = self.runs.terms(record.run)
        if terms is None or terms.limit is None:
            return None
        resources = self.runs.resources.get_all(record.run)
        spent = spending.actual(terms, self.runs.cells.get_all(record.run), resources, now).amount
        return Budget(terms, spent, (expires_at - now).total_seconds())

    def _no_room(self, fleet: Standing, desired: Mapping[str, int], others: Mapping[str, int]) -> list[Problem]:
        problem = no_room(("count",), _reserved(fleet, desired), others, self.settings.max_nodes_total)
        return [problem] if problem else []


def _problems(settings: Settings, fleet: Standing, desired: Mapping[str, int], budget: Budget | None) -> list[Problem]:
    exceeded = [
        standing.too_many(fleet.desired, desired, settings.max_nodes, fleet.backups),
        budget.too_many(fleet.desired, desired) if budget else None,
    ]
    return [problem for problem in exceeded if problem is not None]


def _reserved(fleet: Standing, desired: Mapping[str, int]) -> int:
    return standing.reserved(desired, fleet.backups)
