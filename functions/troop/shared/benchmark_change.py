"""Describes that a benchmark measures another level than before: a report finds it, a notification tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ChangedFigure:
    """A figure of one measurement that has changed.

    Attributes:
        measurement: what a history distinguishes: variant, phase, point, role and operation, such as
            ``measure/drivers/read``.
        figure: ``throughput``, ``mean`` or ``p99``.
        before, after: geometric means over the runs before and from the change on; of the ratios to the baseline, if
            there is one.
    """

    measurement: str
    figure: str
    before: float
    after: float


@dataclass(frozen=True)
class BenchmarkChange:
    """A change of a benchmark that a schedule runs.

    Attributes:
        benchmark: its name.
        size: the size that the schedule runs; None for none.
        run: the first run after the change.
        run_before: the last run before it.
        reporting_run: the run whose report has found it.
        has_baseline: whether the figures are ratios to a baseline.
        figures: those that changed most clearly, the clearest first.
        more: the number of further ones.
        differences: what else differs between ``run_before`` and ``run``: values before and after by name, "" for none.
    """

    benchmark: str
    size: str | None
    schedule: str
    run: str
    run_before: str
    reporting_run: str
    has_baseline: bool
    figures: tuple[ChangedFigure, ...]
    more: int = 0
    differences: Mapping[str, tuple[str, str]] = field(default_factory=dict)
