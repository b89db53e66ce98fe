"""Numbers, amounts and definitions as a page says them; and where it gets its charts from."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.report import sample_comparisons as comparisons
from tests.unit.report import sample_reports as samples
from tests.unit.report.sample_cells import BEGAN
from troop.measure.operations import TOTAL
from troop.report import assets, findings, overview, verdicts
from troop.report.document import Attempt, Cell, Finding, Fleet, Interruption, Operation, Phase, Point, Scaling
from troop.report.formatting import gibi, mega
from troop.report.outline import outline
from troop.shared import formatting

_TEXT = st.text(st.characters(exclude_categories=("C", "Z"), include_characters=" \n\t"), max_size=12)
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT
_VALUES = st.recursive(_SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4))
_WORDS = [
    "yes",
    "null",
    "1:1",
    "- a",
    "a: b",
    "a #b",
    "1e3",
    "0x1f",
    "1_000",
    "2026-11-20",
    "~",
    "=",
    "12:30:45",
    "",
    "%a",
    "@b",
]


@settings(deadline=None, derandomize=True, database=None, max_examples=60)
@given(_VALUES | st.lists(st.sampled_from(_WORDS), max_size=8))
def test_an_outline_reads_as_what_it_is_of(value: Any) -> None:
    assert yaml.safe_load(outline(value)) == value


def test_an_outline_looks_like_a_file() -> None:
    text = outline(samples.DEFINITION)
    assert "    instance_type: i4i.xlarge\n" in text
    assert "  - name: measure\n    roles: [servers, drivers]\n" in text
    assert '  ratio: "1:1"\n' in text


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (formatting.plain(None), formatting.NOTHING),
        (formatting.plain(math.nan), formatting.NOTHING),
        (formatting.plain(0), "0"),
        (formatting.plain(0.0421), "0.0421"),
        (formatting.plain(0.1666), "0.167"),
        (formatting.plain(0.00000004), "0.000000"),
        (formatting.plain(0.5), "0.500"),
        (formatting.plain(0.9996), "1.00"),
        (formatting.times_as_much(2.0, "A"), "twice as much as A"),
        (formatting.times_as_much(1.0002, "A"), "as much as A"),
        (formatting.times_as_much(0.5, "A"), "half as much as A"),
        (formatting.times_as_much(1.12, "A"), "12 % more than A"),
        (formatting.times_as_much(0.453, "A"), "55 % less than A"),
        (formatting.times_as_much(3.4, "A"), "3.40 times as much as A"),
        (formatting.count_of_role(1, "servers"), "1 server"),
        (formatting.count_of_role(3, "servers"), "3 servers"),
        (formatting.count_of_role(1, "redis"), "1 redis"),
        (formatting.milliseconds(11.0), "11.0 ms"),
        (formatting.duration(12.53), "12.5 s"),
        (formatting.plain(3.14159), "3.14"),
        (formatting.plain(9.996), "10.0"),
        (formatting.plain(99.96), "100"),
        (formatting.plain(12345.6), "12,346"),
        (formatting.short(464_123_456), "464 million"),
        (formatting.short(999_960_000), "1 billion"),
        (formatting.short(87_863), "87,860"),
        (formatting.percent(82.3), "82 %"),
        (formatting.percent(0.43), "0.4 %"),
        (formatting.percent(0.00091), "0.0009 %"),
        (formatting.percent(0.00001), "below 0.0001 %"),
        (formatting.percent(0), "0 %"),
        (formatting.share(0.974), "97 %"),
        (mega(1_740_000), "1.74"),
        (gibi(2 * 2**30), "2.00"),
        (formatting.money(None), formatting.NOTHING),
        (formatting.money(0), "$0.00"),
        (formatting.money(1234.5), "$1,234.50"),
        (formatting.money(0.5), "$0.50"),
        (formatting.money(0.04231), "$0.0423"),
        (formatting.money(0.9951), "$1.00"),
        (formatting.money(0.0000001), "less than $0.000001"),
        (formatting.money(12.3, "CNY"), "CNY 12.30"),
        (formatting.price(0.0416), "$0.0416"),
        (formatting.price(0.088), "$0.088"),
        (formatting.price(1.5), "$1.50"),
        (formatting.price(0.0000007), "$0.0000007"),
        (formatting.duration(None), formatting.NOTHING),
        (formatting.duration(4.25), "4.2 s"),
        (formatting.duration(600), "10 min"),
        (formatting.duration(615), "10 min 15 s"),
        (formatting.duration(4320), "1 h 12 min"),
        (formatting.counted(1, "cell"), "1 cell"),
        (formatting.counted(1200, "cell"), "1,200 cells"),
        (formatting.moment(BEGAN), "2026-11-20 09:30 UTC"),
    ],
)
def test_numbers_are_formatted_for_people(shown: str, expected: str) -> None:
    assert shown.replace("\N{NO-BREAK SPACE}", " ") == expected


def test_the_first_sentence_tells_what_was_run_and_what_it_cost() -> None:
    report = samples.study()
    sentence = f"{overview.headline(report)} {overview.cost(report)}".replace("\N{NO-BREAK SPACE}", " ")
    assert sentence == (
        "18 cells of servers (up to 12 x i4i.xlarge) and drivers (up to 4 x c6i.2xlarge), in 3 zones, spot and "
        "on-demand. "
        "It cost $33.42 (and what has no price); $31.20 were expected, and at most $118.75."
    )


def test_key_figures_are_of_cells_that_succeeded() -> None:
    report = samples.study()
    best = report.cells[0].model_copy(update={"status": "INVALID"})
    phase = best.phases[0]
    faster = [one.model_copy(update={"per_second": 1e9}) for one in phase.operations]
    cells = [best.model_copy(update={"phases": [phase.model_copy(update={"operations": faster})]}), *report.cells[1:]]
    figures = {key.label: key for key in overview.keys(report.model_copy(update={"cells": cells}))}
    assert figures["Cells succeeded"].value == "16 of 18"
    assert figures["Highest throughput"].note == "all operations, n12, threads=200"
    assert figures["Efficiency at 12 servers"].note == "write, relative to ideal growth, threads=200"


def test_all_key_figures_are_of_the_role_that_generates_the_load() -> None:
    """Servers count each operation once more, and grow better; their disks do far more operations than the drivers."""
    timed: dict[str, Any] = {"mean_ms": 1.0, "p99_ms": 5.0, "max_ms": 9.0}
    cells, growths = [], []
    for n, nodes in enumerate((3, 6)):
        counted = Operation(role="servers", operation="read", count=10_000, per_second=9e6, **timed)
        read = Operation(
            role="drivers", operation="read", count=99 * nodes, per_second=9.9, errors={"t": nodes}, **timed
        )
        disk = Operation(role="servers", operation="random-read", count=10**9, per_second=9e7)
        phases = [
            Phase(phase="disk", nodes=1, measured_seconds=10, operations=[disk]),
            Phase(phase="measure", nodes=1, measured_seconds=10, operations=[counted, read]),
        ]
        fleets = [Fleet(role=role, nodes=1, instance_type="i4i.large") for role in ("servers", "drivers")]
        cells.append(_measured(n + 1, f"n{nodes}", 1, 1.0).model_copy(update={"phases": phases, "fleets": fleets}))
    for role, phase, efficiency in (("servers", "disk", 1.0), ("servers", "measure", 0.9), ("drivers", "measure", 0.5)):
        points = [Point(cell=f"c{n}", nodes=n, per_second=n, efficiency=efficiency) for n in (3, 6)]
        growths.append(Scaling(phase=phase, role=role, operation="read", counted="servers", points=points))
    report = samples.bare().model_copy(update={"cells": cells, "scaling": growths})
    figures = {key.label: (key.value.replace("\N{NO-BREAK SPACE}", " "), key.note) for key in overview.keys(report)}
    assert figures["Highest throughput"][0] == "9.90/s"
    assert figures["Errors"] == ("1.0 %", "9 of 900 operations of drivers")
    assert figures["Efficiency at 6 servers"][0] == "50 %"


def test_interruptions_of_earlier_attempts_name_the_attempt() -> None:
    taken, warned = (
        Interruption(node="i-1", action="terminate"),
        Interruption(node="i-2", action="rebalance-recommended"),
    )
    attempt = Attempt(cell="c001", status="INVALID", interruptions=[taken])
    cell = Cell(cell="c001-2", label="n3", status="SUCCEEDED", earlier=[attempt], interruptions=[warned])
    rows = overview.interruptions(samples.bare().model_copy(update={"cells": [cell]}))
    assert rows == [("c001 (attempt of c001-2 n3)", taken), ("c001-2 n3", warned)]


# Findings


def _findings(*texts: tuple[str | None, str], severity: Any = "warning") -> list[Finding]:
    return [Finding(severity=severity, cell=cell, text=text) for cell, text in texts]


def test_findings_that_differ_in_point_nodes_and_numbers_are_one_group() -> None:
    labels = [f"threads={n}" for n in (5, 50, 500)]
    phases = [
        Phase(phase="measure", point=n, label=label, nodes=1, measured_seconds=1) for n, label in enumerate(labels, 1)
    ]
    cells = [Cell(cell=name, status="SUCCEEDED", phases=phases) for name in ("c001", "c002")]
    points = [(cell.cell, phase) for cell in cells for phase in phases]
    few = [(cell, f"{phase.title}, get of drivers: {n} of 1,00{n} operations (0.{n}%) failed: {n} read-timeout.")
           for n, (cell, phase) in enumerate(points, 1)]  # fmt: skip
    lost = [(cell, f"{phase.title}, servers: EC2 queued or dropped packets of {', '.join(['i-0a1'] * n)} and more.")
            for n, (cell, phase) in enumerate(points, 1)]  # fmt: skip
    alone = _findings((None, "The run's cost was unknown."), ("c001", "It is unsteady: 5."))
    error = _findings(("c002", "measure, threads=5, get of drivers: 7 of 7 operations failed."), severity="error")
    report = samples.bare().model_copy(
        update={"cells": cells, "findings": [*alone, *_findings(*few), *_findings(*lost), *error]}
    )
    groups = findings.group_findings(report)
    assert [(len(one.findings), one.cells) for one in groups] == [
        (1, ["c002"]),
        (1, []),
        (1, ["c001"]),
        (6, ["c001", "c002"]),
        (6, ["c001", "c002"]),
    ]
    assert groups[0].first == error[0]
    assert [one.text for one in groups[3].findings] == [text for _, text in few]
    assert sum(len(one.findings) for one in groups) == len(report.findings)


def test_findings_of_one_cause_are_one_line_however_their_words_differ() -> None:
    """Of one cell with two points, whose causes come once for each point, operation and role."""
    report = samples.tiers()
    groups = findings.group_findings(report)
    assert len(report.findings) > 9
    assert len({(one.first.severity, one.cause) for one in groups}) == len(groups) <= 6
    assert all(len(one.cause) < 60 and one.is_folded for one in groups if len(one.findings) > 1)
    assert all(one.is_folded for one in groups if len(one.first.text) > findings.SHORT)
    assert sum(len(one.findings) for one in groups) == len(report.findings)
    assert {one.severity for one in report.findings} == {"warning"}


def test_every_finding_of_a_cell_has_a_cause() -> None:
    assert [one for one in samples.tiers().findings if not one.cause] == []


def test_the_answer_is_a_sentence() -> None:
    report = samples.study()
    figures = {key.label: key for key in overview.keys(report)}
    answer = overview.answer(report)
    best = figures["Highest throughput"]
    assert answer.startswith(f"Highest throughput {best.value} ({best.note}): mean ")
    assert f"p99 {figures['p99 at highest throughput'].value}" in answer
    assert answer.endswith(f"{figures['Efficiency at 12 servers'].value} of ideal growth at 12 servers.")
    assert overview.answer(samples.empty()) == overview.answer(samples.bare()) == ""


@pytest.mark.parametrize(("best_fails", "share"), [(False, "no errors."), (True, "50\N{NO-BREAK SPACE}% errors.")])
def test_the_answer_has_the_errors_of_the_highest_throughput_and_not_of_others(best_fails: bool, share: str) -> None:
    report = samples.study()
    best = {key.label: key for key in overview.keys(report)}["Highest throughput"].note

    def failing(cell: Cell, phase: Phase) -> Phase:
        (threads,) = cell.values.values()
        fails = best.endswith(f", {cell.scale}, threads={threads}") is best_fails
        changed = {
            name: [
                one.model_copy(update={"errors": {"timeout": one.count} if fails else {}})
                for one in getattr(phase, name)
            ]
            for name in ("operations", "totals")
        }
        return phase.model_copy(update=changed)

    cells = [
        cell.model_copy(update={"phases": [failing(cell, phase) for phase in cell.phases]}) for cell in report.cells
    ]
    report = report.model_copy(update={"cells": cells})
    assert share in overview.answer(report)


def test_the_processors_of_all_roles_are_a_key_figure() -> None:
    (cpu,) = [key for key in overview.keys(samples.tiers()) if key.label == "Highest CPU"]
    roles = [part.rsplit(" ", 1)[0] for part in cpu.note.replace("; ", ", ").split(", ")]
    assert [role.split("\N{NO-BREAK SPACE}")[0].split(" ")[0] for role in roles] == [*samples.TIERS]
    assert cpu.value.startswith("83")


def _measured(number: int, scale: str, repetition: int, rate: float, **more: Any) -> Cell:
    """A cell with the total of all operations, and a rare one of them that costs next to nothing."""
    fields = {
        "role": "drivers",
        "operation": "all operations",
        "count": int(rate * 10),
        "p99_ms": 5.0,
        "cost_per_million": 2.0,
    }
    total = Operation(**{**fields, "per_second": rate, **more})
    reads = total.model_copy(update={"operation": "read", "per_second": 1.0})
    beats = Operation(role="drivers", operation="beat", count=9, per_second=9e9, cost_per_million=1e-6)
    return Cell(
        cell=f"c{number:03d}",
        label=f"{scale}, #{repetition}",
        scale=scale,
        repetition=repetition,
        status="SUCCEEDED",
        phases=[Phase(phase="measure", nodes=1, measured_seconds=10, operations=[beats, reads], totals=[total])],
    )


def test_key_figures_are_of_all_repetitions_and_of_all_operations() -> None:
    """One lucky repetition of n3 has the greatest rate and the least cost of all; n6 does more, for less."""
    cells = [
        _measured(1, "n3", 1, 100.0, p99_ms=5.0, cost_per_million=3.0),
        _measured(2, "n3", 2, 900.0, p99_ms=1.0, cost_per_million=0.5),
        _measured(3, "n3", 3, 100.0, p99_ms=9.0, cost_per_million=4.0),
        _measured(4, "n6", 1, 400.0, p99_ms=7.0, cost_per_million=2.0),
        _measured(5, "n6", 2, 625.0, p99_ms=6.0, cost_per_million=1.0),
    ]
    figures = {key.label: key for key in overview.keys(samples.bare().model_copy(update={"cells": cells}))}
    assert (figures["Highest throughput"].value, figures["Highest throughput"].note) == ("500/s", "all operations, n6")
    assert figures["p99 at highest throughput"].value.replace("\N{NO-BREAK SPACE}", " ") == "6.50 ms"
    cheapest = figures["Lowest cost per million"]
    assert (cheapest.value, cheapest.note) == ("$1.50", "all operations, n6")


def test_charts_come_from_beside_the_code_or_from_the_checkout(tmp_path: Path) -> None:
    beside, checkout = tmp_path / "a.js", tmp_path / "b.js"
    checkout.write_text("checkout", encoding="utf-8")
    assert assets.chart_script((beside, checkout)) == "checkout"
    beside.write_text("beside", encoding="utf-8")
    assert assets.chart_script((beside, checkout)) == "beside"


def test_missing_charts_are_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(assets.MissingChartsError, match="make setup"):
        assets.chart_script((tmp_path / "none.js",))


def test_efficiency_is_the_mean_of_the_repetitions_with_the_most_nodes() -> None:
    parts = [(3, 1.0), (6, 0.5), (6, 0.7)]
    points = [Point(cell=f"c{n}", nodes=n, per_second=1.0, efficiency=each) for n, each in parts]
    one = Scaling(
        label="threads=4", phase="measure", role="drivers", operation="read", counted="servers", points=points
    )
    few = one.model_copy(update={"points": points[:1]})
    (figure,) = overview._growth(samples.bare().model_copy(update={"scaling": [few, one]}))
    assert (figure.label, figure.value) == ("Efficiency at 6 servers", "60\N{NO-BREAK SPACE}%")
    assert figure.note == "read, relative to ideal growth, threads=4"


# Comparisons


def test_warnings_of_a_comparison_that_differ_in_their_row_are_one_group() -> None:
    comparison = comparisons.compared(variants=8)
    names = [verdicts.full_name(row) for row in comparison.rows]
    texts = [f"{name}: {side} has 0.0{n} errors per success" for n, name in enumerate(names) for side in "AB"]
    alone = "the noise is unknown"
    assert findings.alike([*texts, alone], names) == [texts[::2], texts[1::2], [alone]]
    assert findings.alike(texts[:4], names) == [texts[:4:2], texts[1:4:2]]


def test_a_mixed_workload_is_sized_by_its_total() -> None:
    """Nodes for the reads alone say nothing: they serve the writes too."""
    one = comparisons.compared().rows[0]
    mixed = [one.model_copy(update={"operation": name}) for name in (TOTAL, "read", "write")]
    other = one.model_copy(update={"role": "servers", "operation": "read"})
    assert verdicts.without_parts([*mixed, other]) == [mixed[0], other]


def test_a_row_names_its_role_only_where_its_phase_does_not() -> None:
    one = comparisons.compared().rows[0]
    disk = one.model_copy(update={"phase": "disk", "role": "servers", "operation": "scan"})
    also = one.model_copy(update={"role": "servers"})
    assert verdicts.names([one, disk])(disk) == f"{one.label} · disk · scan"
    assert verdicts.names([one, also])(also) == f"{one.label} · servers · {one.operation}"
