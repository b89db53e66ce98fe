"""Describes, estimates and starts benchmark runs, for the commands and for the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cli.bench import cells, detecting
from cli.bench.detecting import Noise
from cli.bench.files import Source
from cli.client.bench_client import BenchClient, RefusedFileError
from cli.shared.errors import CliError
from troop.bench.admission import merging
from troop.bench.admission.units import units_of
from troop.bench.definition.money import shown
from troop.bench.records.line import Line
from troop.shared.formatting import counted, duration

RECORDED = 100
"""The newest runs on record from which the noise of a benchmark is computed."""


def describe(source: Source) -> str:
    """Describes a benchmark in a few words."""
    benchmark, plan = source.benchmark, source.plan
    size = f" in size {benchmark.size.replace(',', ' and ')}" if benchmark.size else ""
    most = duration(plan.longest)
    nodes, phases = counted(plan.nodes, "node"), counted(len(benchmark.phases), "phase")
    if points := max(cells.points_of(cell.benchmark) for cell in plan.cells):
        searches = any(phase.search for cell in plan.cells for phase in cell.benchmark.phases)
        phases += f" with {'at most ' if searches else ''}{counted(points, 'point')}"
    if len(plan.cells) == 1:
        return f"{benchmark.name}{size}: {nodes}, {phases}, ends at most {most} after launch"
    at_once = f"{plan.parallel} at a time" if plan.parallel > 1 else "one at a time"
    several = f"{len(plan.cells)} cells, {at_once}, at most {nodes} at once"
    return f"{benchmark.name}{size}: {several}; {phases} each, ends within {most} plus the time to launch"


def merge(source: Source) -> str:
    """States how much of the time to merge results the largest cell may take."""
    budget = merging.budget(source.plan)
    return "merging the results of the largest cell: at most {seconds} of {most} s of processor time".format(**budget)


def estimate(client: BenchClient, source: Source, size: str | None, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the deployment's estimate of a run.

    Raises:
        CliError: the deployment refuses the file, or cannot be reached.
    """
    try:
        return client.estimate(_request(source, size, changes))
    except RefusedFileError as refused:
        raise source.refused(refused.problems) from None


def noises(lines: Sequence[Line], source: Source, figure: str | None = None) -> list[Noise]:
    """Computes the noise of a file's measurements from the runs on record.

    Args:
        figure: of which changes are to be detected; None for that of the file's comparison.
    """
    plan = source.plan
    chosen = figure or detecting.figure_of(plan)
    return detecting.noises(lines, not plan.has_pairs, chosen, detecting.plan_filter(plan))


def detects(client: BenchClient, source: Source, cost_estimate: Mapping[str, Any]) -> str:
    """Says what a file's comparison with its baseline detects at which cost, from the runs on record; "" without a
    baseline, and where to look if too few pairs are known.
    """
    if not source.plan.baseline:
        return ""
    try:
        known = detecting.deciding(noises(client.history(source.benchmark.name, RECORDED), source))
    except CliError:  # an estimate needs no history
        known = None
    if known is None:
        return "what this comparison detects is unknown: `troop bench noise` says what to run"
    design = replace(detecting.design_of(source.plan), cost=float(cost_estimate["expected"]))
    return detecting.sentence(known, design, lambda amount: shown(amount, cost_estimate["currency"], up=True))


def start(
    client: BenchClient, source: Source, size: str | None, changes: Mapping[str, Any], key: str
) -> tuple[dict[str, Any], bool]:
    """Starts a run; its artifacts must be staged. First permits it to hit the units that it names.

    Returns:
        The run, and whether it was already on record.

    Raises:
        CliError: as :func:`estimate`; or the caller may not terminate on demand.
    """
    if units := units_of(source.plan):
        client.permit("benchmark", key, units)
    try:
        return client.start_run({**_request(source, size, changes), "key": key})
    except RefusedFileError as refused:
        raise source.refused(refused.problems) from None


def _request(source: Source, size: str | None, changes: Mapping[str, Any]) -> dict[str, Any]:
    return {"definition": source.document, "size": size, "set": dict(changes), "files": source.encoded()}
