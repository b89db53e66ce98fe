"""Renders reports and comparisons as pages: one file each, which loads nothing and runs only its own scripts."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from troop.bench.measuring.failure import WORST
from troop.measure.operations import TOTAL
from troop.report import (
    bills,
    charts,
    failures,
    findings,
    limit_rows,
    open_loop,
    over_time,
    overview,
    points,
    verdicts,
)
from troop.report.baseline import name_of
from troop.report.comparison import Comparison
from troop.report.document import Cell, Phase, Report
from troop.report.formatting import (
    HasRole,
    baseline,
    by_fleet,
    cell_name,
    each_of,
    gibi,
    mebi_as_gibi,
    mega,
    quantity,
)
from troop.report.outline import outline
from troop.report.processors import WAITING
from troop.report.timeline import timelines
from troop.report.totals import rate_of, rows_of
from troop.shared import formatting

TEMPLATES: Final = Path(__file__).resolve().parent / "templates"
MOST_ROWS: Final = 1000
"""The most rows of nodes over all cells; a larger report shows the slowest nodes of each phase."""
FEWEST_DRAWN: Final = 5
"""Runs from which on a history has charts. A table tells fewer better."""
FEW_POINTS: Final = 16
"""The most rows of a table that is not folded, such as points of scaling."""

_WORDS: Final[tuple[Callable[..., Any], ...]] = (
    formatting.plain,
    formatting.whole,
    formatting.short,
    quantity,
    formatting.percent,
    formatting.share,
    mega,
    gibi,
    mebi_as_gibi,
    baseline,
    each_of,
    formatting.money,
    formatting.price,
    formatting.moment,
    formatting.duration,
    formatting.listed,
    formatting.counted,
    verdicts.ratio,
    verdicts.spread,
    verdicts.need,
    open_loop.word,
    outline,
    failures.seconds,
    failures.windows,
    failures.figures,
    failures.fallen,
    failures.fault_name,
)
_One = TypeVar("_One", bound=HasRole)

_TURNING: Final = dict.fromkeys([0, *range(0x202A, 0x202F), *range(0x2066, 0x206A)], "\N{REPLACEMENT CHARACTER}")
"""Characters that change the text direction, and NUL, which HTML does not allow."""


_NO_SCRIPTS: Final = "'none'"
FAILED_PAGE: Final = b'<meta name="troop-verdict" content="FAILED">'
"""Part of the page of a report whose results do not hold the limits, for the command's exit code."""
FAULT_PAGES: Final = {verdict: f'<meta name="troop-faults" content="{verdict}">'.encode() for verdict in WORST}
"""The same of the verdict on planned faults."""


def report_page(report: Report, script: str) -> str:
    """Renders the page of a report.

    Args:
        script: the chart library, see :func:`troop.report.assets.chart_script`.
    """
    rows = [(phase, operation) for cell in report.cells for phase, operation in charts.measured(cell)]
    entries = over_time.entries(report.cells)
    roles = {operation.role for _, operation in rows}
    pairs = {(phase.phase, operation.role) for phase, operation in rows}
    by_phase = len(pairs) == len({phase for phase, _ in pairs})  # then a role need not be told beside its phase
    reason = (report.run.reason or "").split("\n")[0].rstrip(".")
    limits, limits_left_out = limit_rows.shown_rows(report)
    faults, deciding = failures.rows(report.cells), failures.deciding(report)
    return page(
        "report.html",
        ("ratios.js", "over_time.js", "failure.js", "parameters.js", "report.js"),
        script,
        report=report,
        answer=overview.answer(report),
        told=f"{overview.headline(report)} {overview.cost(report)}",
        keys=overview.keys(report),
        findings=findings.group_findings(report),
        states_reason=any(not one.cell and reason in one.text for one in report.findings),
        limits=limits,
        limits_left_out=limits_left_out,
        faults=faults,
        decisive=next(iter(deciding), None),
        fault_name=failures.name,
        fault_tally=failures.tally(deciding),
        fault_place=failures.place,
        fault_places=any(failures.place(row, faults) for row in faults),
        fault_groups=failures.repeated(faults),
        fallen_warning=failures.fallen_warning(faults),
        searches=limit_rows.searches(report),
        scaling=charts.scaling_groups(report),
        ideal=charts.ideal,
        few_points=sum(len(one.points) for one in report.scaling) <= FEW_POINTS,
        data={
            **charts.chart_data(report),
            "failures": failures.pictures(faults),
            "baseline": verdicts.baseline_data(report.ratios),
            "over_time": _over_time_data(report.cells, entries),
        },
        baseline=name_of(report.baseline),
        verdict=verdicts.verdict,
        interval=verdicts.interval,
        row_name=verdicts.names(report.ratios),
        over_time=entries,
        several_phases=len({phase.phase for cell in report.cells for phase in cell.phases}) > 1,
        has_points=any(phase.point is not None or phase.partial for cell in report.cells for phase in cell.phases),
        shares_nodes=points.shares_nodes,
        within=list(points.within(report)),
        several_roles=len(roles) > 1 and not by_phase,
        role_by_phase=len(roles) > 1 and by_phase,
        capacities=overview.capacities(report),
        devices=_least(report, lambda phase: phase.devices, lambda one: -(one.busy or 0)),
        is_mixed=any(one.operation == TOTAL for cell in report.cells for _, one in charts.rows(cell)),
        priced=any(operation.cost_per_million is not None for _, operation in rows),
        has_errors=any(operation.errors for _, operation in rows),
        bytes_known=any(operation.bytes_per_second for _, operation in rows),
        members=_least(report, lambda phase: phase.members, lambda one: (one.outcome == "ok", one.count)),
        fleets=overview.fleets(report),
        timelines=timelines(sorted(report.cells, key=_place)),
        uses=[(cell, phase) for cell in report.cells for phase in cell.phases if phase.use],
        interruptions=overview.interruptions(report),
        replaced=overview.replaced_nodes(report),
        earlier=[(cell, one) for cell in report.cells for one in cell.earlier],
        lines=bills.lines(report),
        bills=bills.bills(report.cells),
        rates=bills.rates(report.cells),
        disk_rates=bills.disk_rates(report.cells),
        monthly=bills.monthly,
        FEW_POINTS=FEW_POINTS,
        separate=_least(report, lambda phase: phase.separate, lambda one: (one.rank, one.node)),
        labelled=open_loop.is_labelled(report.cells),
        explained=open_loop.explained(report.cells),
        service=[
            (cell, phase, one)
            for cell in report.cells
            for phase in cell.phases
            for one in rows_of(phase)
            if one.service is not None
        ],
    )


def comparison_page(comparison: Comparison, script: str, a: Sequence[Cell] = (), b: Sequence[Cell] = ()) -> str:
    """Renders the page of a comparison.

    Args:
        script: as of :func:`report_page`.
        a, b: cells of both sides, to draw their values over time.
    """
    half = over_time.MOST_VALUES // 2
    named = [verdicts.full_name(row) for row in comparison.rows]
    sized = verdicts.without_parts(comparison.rows)
    entries = [*over_time.entries(a, "A: ", half), *over_time.entries(b, "B: ", half)]
    return page(
        "comparison.html",
        ("ratios.js", "over_time.js", "failure.js", "comparison.js"),
        script,
        over_time=entries,
        comparison=comparison,
        summary=verdicts.summed_up(comparison),
        outcome=verdicts.outcome(comparison),
        source=verdicts.source(comparison),
        data={
            **verdicts.chart_data(comparison),
            "failures": failures.overlaid(a, b),
            "over_time": _over_time_data([*a, *b], entries),
        },
        warnings=[
            *(("Warning", same) for same in findings.alike(comparison.warnings, named)),
            *(("Not compared", same) for same in findings.alike(comparison.unmatched, [])),
        ],
        equal=[row for row in sized if row.equal is not None],
        verdict=verdicts.verdict,
        interval=verdicts.interval,
        row_name=verdicts.names(comparison.rows),
        TIMES=verdicts.TIMES,
        SCALED=verdicts.SCALED,
        basis=verdicts.basis(comparison),
        cheaper=verdicts.cheaper(comparison),
        affordable=[row for row in sized if row.affordable is not None],
        FEW_POINTS=FEW_POINTS,
        TERMS=verdicts.TERMS,
        DAY=bills.DAY,
    )


def history_page(history: Mapping[str, Any], script: str) -> str:
    """Renders the page of a benchmark's history.

    Args:
        history: ``{"benchmark", "figure", "unit", "time_zone", "scale", "suffix", "runs", "versions", "series"}``.
            Values times ``scale``, with the suffix, are what people read. Runs have ``run``, ``at`` and ``version`` as
            people read them, ``wall`` (milliseconds of the wall clock since 1970), ``hour`` with a fraction and
            ``weekday`` from 0. Versions have a run's ``place``, ``size``, and ``texts``: what changed there. A series
            has ``name``, ``topic`` (without the operation), ``size``, ``against`` (the baseline), ``noise`` as text,
            ``places`` of its runs, ``values`` and their ``texts``, ``ratios``; ``changes`` with ``place``, ``levels``,
            ``before``, ``after``, ``text``, ``is_worse``, ``lasts`` and ``beside``; and groups ``by_hour`` and
            ``by_weekday`` with ``period``, ``runs``, ``median``, ``lowest``, ``highest`` as text, ``place`` and
            ``number``.
        script: as of :func:`report_page`.
    """
    drawn = ("name", "topic", "size", "against", "places", "values", "ratios")
    series = [
        {
            **{key: one[key] for key in drawn},
            "changes": [
                {key: change[key] for key in ("place", "levels", "text", "is_worse")} for change in one["changes"]
            ],
            **{key: [[group["place"], group["number"]] for group in one[key]] for key in ("by_hour", "by_weekday")},
        }
        for one in history["series"]
    ]
    changes = [(one, change) for one in history["series"] for change in one["changes"]]
    each = max(3, MOST_ROWS // len(history["series"]))
    return page(
        "history.html",
        ("history.js",),
        script,
        history=history,
        data={**{key: history[key] for key in ("unit", "scale", "suffix", "runs", "versions")}, "series": series},
        is_drawn=len(history["runs"]) >= FEWEST_DRAWN,
        changes=sorted(changes, key=lambda pair: -pair[1]["place"]),
        each=each if sum(len(one["values"]) for one in history["series"]) > MOST_ROWS else len(history["runs"]),
    )


def _over_time_data(cells: Sequence[Cell], entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"panels": over_time.panels(cells), "tracks": over_time.tracks(entries)}


def page(template: str, drawn_by: tuple[str, ...], script: str, **values: Any) -> str:
    """Renders a page.

    Args:
        drawn_by: names of the scripts that draw its charts; empty for a page without scripts.
        script: as of :func:`report_page`; "" for a page without scripts.
        values: what the template uses.
    """
    parts = ("chart.js", "drawing.js", *drawn_by) if drawn_by else ()
    drawing = Markup("".join((TEMPLATES / part).read_text(encoding="utf-8") for part in parts))
    library = Markup(script.replace("</script", r"<\/script"))
    rendered = (
        _environment()
        .get_template(template)
        .render(
            style=Markup((TEMPLATES / "style.css").read_text(encoding="utf-8")),
            library=library,
            drawing=drawing,
            policy=_policy(library, drawing) if drawn_by else _policy(),
            **values,
        )
    )
    return rendered.encode("utf-8", "replace").decode("utf-8")  # unpaired surrogates cannot be written to a file


def _policy(*scripts: str) -> str:
    """Returns a content security policy that allows only these scripts."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8', 'replace')).digest()).decode()}'"
        for text in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes or _NO_SCRIPTS}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


@cache  # with the compiled templates: compiling takes longer than rendering
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: value.translate(_TURNING) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        word.__name__: word for word in (*_WORDS, charts.embedded, charts.packed, rate_of, rows_of, by_fleet)
    }
    environment.globals |= {
        "NOTHING": formatting.NOTHING,
        "TOTAL": TOTAL,
        "cell_name": cell_name,
        "WAITING": WAITING,
    }
    return environment


def _least(
    report: Report, rows: Callable[[Phase], Sequence[_One]], order: Callable[[_One], Any]
) -> list[tuple[str, Sequence[_One], int]]:
    """Returns the rows of each phase of each cell: its name, the rows, and the number of rows left out.

    If there are too many rows, the first in ``order`` of each phase are kept.
    """
    named = [
        (cell_name(cell) + f" · {phase.title}", by_fleet(rows(phase), cell))
        for cell in report.cells
        for phase in cell.phases
        if rows(phase)
    ]
    total = sum(len(phases) for _, phases in named)
    if total <= MOST_ROWS:
        return [(name, phases, 0) for name, phases in named]
    each = max(3, MOST_ROWS // len(named))
    return [(name, sorted(phases, key=order)[:each], max(0, len(phases) - each)) for name, phases in named]


def _place(cell: Cell) -> int:
    """Returns the cell's place in the order of starts; 0 in reports of earlier versions."""
    return cell.order or 0
