"""Generates the table of metrics in docs/reference/metrics.md: ``python -m infra.metrics_doc`` writes it."""

from __future__ import annotations

from collections.abc import Mapping

from infra import ROOT
from infra.generated import filled, table
from troop.bench.records.record import RunStatus
from troop.chaos.decisions import TERMINATE
from troop.chaos.events import Status
from troop.chaos.guards import REASONS
from troop.chaos.verdict import VerdictValue
from troop.shared.metrics import BENCHMARK_KIND, FLEET_KIND, MEANINGS, REFUSED, Metric, Repair

PATH = ROOT / "docs" / "reference" / "metrics.md"

VALUES: Mapping[Metric, tuple[str, ...]] = {
    Metric.DECISIONS: (TERMINATE, *REASONS),
    Metric.OUTCOMES: (REFUSED, *(one for one in Status if one not in (Status.LEASHED, Status.CLAIMED))),
    Metric.VERDICTS: tuple(VerdictValue),
    Metric.RUNS_ENDED: (RunStatus.SUCCEEDED, RunStatus.PARTIAL, RunStatus.FAILED, RunStatus.STOPPED),
    Metric.RUNS_OPEN: (BENCHMARK_KIND, FLEET_KIND),
    Metric.NODES_ALIVE: (BENCHMARK_KIND, FLEET_KIND),
    Metric.REPAIRS: tuple(Repair),
}
"""All values of the second dimension, except calendars and currencies, of which a deployment has one or more."""

SHOWN = 8
"""The number of values from which only their number is shown."""


def text(document: str) -> str:
    """Returns docs/reference/metrics.md with a current table."""
    rows = [
        (f"`{metric}`", _dimension(metric), meaning.writer, meaning.when, meaning.text)
        for metric, meaning in MEANINGS.items()
    ]
    most = sum(len(VALUES.get(metric, ("",))) for metric in Metric)
    content = table(["metric", "second dimension", "written by", "when", "meaning"], rows)
    return filled(document, "metrics", f"{content}\nWith one calendar, there are at most {most} metrics.")


def _dimension(metric: Metric) -> str:
    dimension = MEANINGS[metric].dimension
    if not dimension:
        return ""
    values = VALUES.get(metric, ())
    named = ", ".join(f"`{value}`" for value in values) if len(values) < SHOWN else f"{len(values)} values"
    return f"`{dimension}`: {named}" if values else f"`{dimension.replace(',', '`, `')}`"


if __name__ == "__main__":
    PATH.write_text(text(PATH.read_text(encoding="utf-8")), encoding="utf-8")
