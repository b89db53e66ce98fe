"""The line of a run, made of its report: its figures in pairs, and what can differ from run to run."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.cli.reports import NOW, PAIRS, against_baseline, cell, operation, repeated, report
from tests.unit.report import sample_reports
from tests.unit.report.test_build import complete
from troop.bench.money.costs import Cost
from troop.bench.records.line import Figures, Line, Values, fitted
from troop.bench.records.record import Run, RunStatus
from troop.report import lines
from troop.report.document import Limit, Report, Search, Version
from troop.report.lines import line_of
from troop.shared import codec

ANN = "arn:aws:iam::123456789012:user/ann"


def record(**changes: Any) -> Run:
    run = Run("run-1", "reads", NOW, NOW + timedelta(hours=2), ANN, 6, 4, RunStatus.SUCCEEDED)
    return replace(run, **changes)


def line(one: Report, **changes: Any) -> Line:
    return line_of(record(**changes), one)


def test_line_has_the_figures_of_the_report() -> None:
    whole = complete()
    figures = line(whole, cost=Cost(Decimal("0.14"))).figures
    assert [one.name for one in figures] == [f"{step} · measure · drivers · read" for step in ("n3", "n6", "n12")]
    good = [one for one in whole.cells if one.scale == "n3" and one.status == "SUCCEEDED"]
    measured = [one.phases[0].operations[0] for one in good]
    assert figures[0].values == tuple(
        Values(
            one.per_second or 0,
            one.mean_ms,
            one.p50_ms,
            one.p99_ms,
            one.cost_per_million,
            sum(one.errors.values()) / (one.count + sum(one.errors.values())),
        )
        for one in measured
    )
    assert figures[0].baseline == ()
    assert [len(one.values) for one in figures] == [2, 1, 2], "a cell of n6 has failed"


def test_candidate_and_baseline_are_pairs_under_a_label_without_their_values() -> None:
    one = line(against_baseline(threads=[1, 8]))
    assert one.baseline == {"parameters.version": "1.2"}
    assert [figures.name for figures in one.figures] == [
        f"measure · threads={threads} · drivers · read" for threads in (1, 8)
    ]
    for figures in one.figures:
        pairs = zip(figures.values, figures.baseline, strict=True)
        assert [(ours.per_second, theirs.per_second) for ours, theirs in pairs] == PAIRS


def test_pair_without_a_known_rate_is_left_out() -> None:
    whole = against_baseline()
    broken = whole.cells[2]
    phases = [
        phase.model_copy(update={"operations": [operation(1.0).model_copy(update={"per_second": math.nan})]})
        if phase.point == 1
        else phase
        for phase in broken.phases
    ]
    cells = [*whole.cells[:2], broken.model_copy(update={"phases": phases}), *whole.cells[3:]]
    (figures,) = line(whole.model_copy(update={"cells": cells})).figures
    assert [one.per_second for one in figures.values] == [ours for ours, _ in (*PAIRS[:2], *PAIRS[3:])]
    assert len(figures.baseline) == len(figures.values)


def test_cells_that_did_not_succeed_do_not_count() -> None:
    cells = [cell(1, 100.0), cell(2, 200.0, repetition=2, status="FAILED"), cell(3, None, repetition=3)]
    (figures,) = line(report(cells)).figures
    assert [one.per_second for one in figures.values] == [100.0]
    failed = line(report([cell(1, 100.0, status="FAILED")]), status=RunStatus.FAILED)
    assert (failed.status, failed.figures) == ("FAILED", ())


def test_points_of_a_search_beyond_the_limits_are_left_out() -> None:
    one = cell(1, 100.0)
    (phase,) = one.phases
    limit = Limit(figure="p99_ms", at_most=5, operation="read", value=9, held=False)
    beyond = phase.model_copy(update={"point": 2, "label": "rate=900", "limits": [limit]})
    within = phase.model_copy(update={"point": 1, "label": "rate=800"})
    searched = one.model_copy(
        update={
            "phases": [within, beyond],
            "searches": [Search(phase="measure", parameter="rate", points=2, most=4, text="Largest rate: 800")],
        }
    )
    assert [figures.point for figures in line(report([searched])).figures] == ["rate=800"]


@pytest.mark.parametrize(
    ("caller", "schedule"),
    [(f"{ANN} (schedule nightly)", "nightly"), (ANN, ""), (f"{ANN} (schedule nightly)/x", "")],
)
def test_line_names_the_schedule_that_started_its_run(caller: str, schedule: str) -> None:
    assert line(report([]), requested_by=caller).schedule == schedule


def test_line_states_what_can_differ_between_runs() -> None:
    versions = [("Troop", "1.2"), ("kernel", "6.1.2"), ("kernel", "6.1.1"), ("agent", "f00"), ("artifact db", "v2")]
    one = report(repeated([100.0, 101.0])).model_copy(
        update={
            "versions": [Version(what=name, version=version) for name, version in versions],
            "definition": {"version": "abc", "parameters": {"threads": 8, "mix": {"read": [1, 2]}}, "attempts": 2},
        }
    )
    its = line(one)
    assert (its.version, its.troop) == ("abc", "0.2")
    file = its.versions["file"]
    assert its.versions == {
        "type servers": "s.large",
        "type drivers": "d.large",
        "kernel": "6.1.1, 6.1.2",
        "agent": "f00",
        "artifact db": "v2",
        "parameters.mix": "read:1+2",
        "parameters.threads": "8",
        "file": file,
    }

    def changed_file(**definition: Any) -> str:
        changed = one.model_copy(update={"definition": {**one.definition, **definition}})
        return line(changed).versions["file"]

    assert changed_file(version="def", parameters={"threads": 9}) == file, "the line states these themselves"
    assert changed_file(attempts=3) != file


@pytest.mark.parametrize("name", ["hostile", "bare", "empty", "many", "study", "sweep"])
def test_line_of_any_report_can_be_stored(name: str) -> None:
    one = line(getattr(sample_reports, name)())
    document = codec.to_document(one)
    assert codec.from_document(
        Line, json.loads(json.dumps(document, default=float, allow_nan=False))
    ) == codec.from_document(Line, document)


def test_line_leaves_out_what_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = line(sample_reports.study())
    assert whole.left_out == 0
    monkeypatch.setattr(lines, "fitted", lambda one: fitted(replace(one, figures=one.figures * 300)))
    one = line(sample_reports.study())
    assert 0 < len(one.figures) < len(whole.figures) * 300 == len(one.figures) + one.left_out
    assert isinstance(one.figures[0], Figures)
