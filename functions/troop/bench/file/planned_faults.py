"""Models and checks the planned faults of a measured phase."""

from __future__ import annotations

from troop.bench.definition.planned_fault import Expectation, PlannedFault
from troop.bench.file.fields import described, model_of, plain_values

MOST_FAULTS = 20
"""The most faults of a phase."""


class ExpectationIn(model_of(Expectation)):  # type: ignore[misc]
    """What the load must bear: the hypothesis, which the results hold or break."""

    def build(self) -> Expectation:
        return Expectation(**plain_values(Expectation, self))


class FaultIn(model_of(PlannedFault)):  # type: ignore[misc]
    """A failure under load. It has exactly one of role, unit, and zone; a role can also have a zone."""

    expect: ExpectationIn | None = described(
        "a mapping with at least one of rate, rate_back_within, p99_back_within and failed_at_most",
        "What the load must bear: without, the report only shows what happened",
        default=None,
    )

    def build(self) -> PlannedFault:
        return PlannedFault(**plain_values(PlannedFault, self), expect=self.expect.build() if self.expect else None)
