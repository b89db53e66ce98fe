"""`troop bench history`: which figures of which runs form a series, and how they are grouped."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.bench import history
from cli.bench.history import Figure, Period, Series, Value
from cli.client.api import Answer
from cli.shared.errors import Exit
from tests.unit.cli.bench_runs import ENDED, ROW, run_out
from tests.unit.cli.conftest import FakeApi, Run

BERLIN = ZoneInfo("Europe/Berlin")


def view(run: str, at: str, *rows: Any, began: str | None = None, status: str = "SUCCEEDED") -> dict[str, Any]:
    """What GET /benchmarks/{run} says of a run with one cell."""
    steps = [{"phase": "measure", "at": began}] if began else []
    cell = {"cell": "c001", "label": "n2", "status": status, "steps": steps, "results": list(rows)}
    return {"run": run_out(run=run, at=at, **ENDED), "cells": [cell]}


MONDAY = view("run-1", "2026-11-16T22:50:00.000Z", {**ROW, "per_second": 400.0}, began="2026-11-16T23:30:00.000Z")
TUESDAY = view("run-2", "2026-11-17T08:00:00.000Z", {**ROW, "per_second": 500.0}, began="2026-11-17T08:10:00.000Z")


def test_a_series_has_a_value_of_each_run_at_the_begin_of_its_phase() -> None:
    (one,) = history.series([TUESDAY, MONDAY], Figure.THROUGHPUT, BERLIN)
    assert one.name == "n2 · measure · drivers · read"
    assert one.values == (
        Value("run-1", datetime(2026, 11, 17, 0, 30, tzinfo=BERLIN), 400.0),
        Value("run-2", datetime(2026, 11, 17, 9, 10, tzinfo=BERLIN), 500.0),
    )
    assert [group.period for group in history.groups(one, Period.HOUR)] == ["00:00", "09:00"]
    assert [(group.period, group.runs) for group in history.groups(one, Period.WEEKDAY)] == [("Tuesday", 2)]


def test_runs_of_another_size_form_another_series() -> None:
    small = view("run-3", "2026-11-18T08:00:00Z", {**ROW, "per_second": 7.0})
    small["run"]["size"] = "smoke"
    every = {
        one.name: [value.value for value in one.values]
        for one in history.series([MONDAY, small], Figure.THROUGHPUT, None)
    }
    assert every == {"n2 · measure · drivers · read": [400.0], "smoke · n2 · measure · drivers · read": [7.0]}


def test_each_operation_and_point_is_a_series() -> None:
    rows = [{**ROW, "operation": name} for name in ("read", "write")]
    point = {**ROW, "point": 2, "parameters": {"threads": 8}, "repeat": 1}
    names = [one.name for one in history.series([view("r", "2026-11-16T08:00:00Z", *rows, point)], Figure.P99, None)]
    assert names == [
        "n2 · measure · drivers · read",
        "n2 · measure · drivers · write",
        "n2 · measure, threads=8 · drivers · read",
    ]


def test_a_point_has_the_moment_of_its_own_step() -> None:
    one = view("r", "2026-11-16T08:00:00Z", {**ROW, "point": 2, "parameters": {"threads": 8}})
    one["cells"][0]["steps"] = [
        {"phase": "measure.1", "at": "2026-11-16T08:10:00Z"},
        {"phase": "measure.2", "at": "2026-11-16T09:10:00Z"},
    ]
    ((value,),) = [each.values for each in history.series([one], Figure.P99, BERLIN)]
    assert value.at == datetime(2026, 11, 16, 10, 10, tzinfo=BERLIN)


def test_only_the_last_attempt_counts_and_only_if_it_succeeded() -> None:
    invalid = view("run-3", "2026-11-18T08:00:00Z", ROW, status="INVALID")
    assert history.series([invalid], Figure.THROUGHPUT, None) == []
    again = {**invalid["cells"][0], "cell": "c001-2", "status": "SUCCEEDED", "results": [{**ROW, "per_second": 7.0}]}
    invalid["cells"] = [{**invalid["cells"][0], "status": "SUCCEEDED"}, again]
    assert [one.value for each in history.series([invalid], Figure.THROUGHPUT, None) for one in each.values] == [7.0]


@pytest.mark.parametrize(
    ("figure", "value"),
    [
        (Figure.THROUGHPUT, 400.0),
        (Figure.MEAN, 12.34),
        (Figure.P99, 101.5),
        (Figure.MAXIMUM, 1234.0),
        (Figure.ERRORS, 5 / 120_005),
    ],
)
def test_a_figure_is_the_column_of_the_results(figure: Figure, value: float) -> None:
    (one,) = history.series([view("r", "2026-11-16T08:00:00Z", ROW)], figure, None)
    assert one.values[0].value == value


def test_a_tool_without_times_has_no_percentiles() -> None:
    row = {**ROW, "p99_ms": None, "per_second": None}
    assert history.series([view("r", "2026-11-16T08:00:00Z", row)], Figure.P99, None) == []
    assert history.series([view("r", "2026-11-16T08:00:00Z", row)], Figure.THROUGHPUT, None) == []


_moments = st.integers(1_577_836_800, 1_893_456_000).map(lambda second: datetime.fromtimestamp(second, BERLIN))


@given(st.lists(st.tuples(_moments, st.floats(0, 1e9)), min_size=1), st.sampled_from(Period))
def test_each_value_is_in_one_group_between_its_ends(values: list[tuple[datetime, float]], period: Period) -> None:
    one = Series(("x",), tuple(Value("r", at, value) for at, value in values))
    groups = history.groups(one, period)
    assert sum(group.runs for group in groups) == len(values)
    assert all(group.lowest <= group.median <= group.highest for group in groups)
    assert min(group.lowest for group in groups) == min(value for _, value in values)
    assert max(group.highest for group in groups) == max(value for _, value in values)


# ------------------------------------------------------------------ the command


def on_record(api: FakeApi, *views: dict[str, Any]) -> None:
    others = [run_out(run="other", name="writes", **ENDED), run_out(run="open", status="RUNNING")]
    runs = [*others, *(one["run"] for one in views)]
    api.refusals["GET", "benchmarks"] = [Answer(200, {"runs": runs, "cursor": None})]
    for one in views:
        api.refusals["GET", f"benchmarks/{one['run']['run']}"] = [Answer(200, one)]


def lines(run: Run, *more: str) -> list[str]:
    result = run("bench", "history", "reads", "--zone", "Europe/Berlin", *more)
    assert result.exit_code == 0, result.output
    return [" ".join(line.split()) for line in result.stdout.splitlines() if line.strip()]


def test_the_table_has_a_line_for_each_run(run: Run, api: FakeApi) -> None:
    on_record(api, TUESDAY, MONDAY)
    shown = lines(run)
    assert shown[0] == "reads: throughput, operations per second"
    assert shown[-2].startswith("Tue 2026-11-17 00:30 CET run-1 400/s ")
    assert shown[-1].startswith("Tue 2026-11-17 09:10 CET run-2 500/s ")
    assert len(shown[-2].rpartition(" ")[2]) < len(shown[-1].rpartition(" ")[2]), "bars are as long as the values"


def test_runs_are_grouped_in_the_time_zone_of_the_request(run: Run, api: FakeApi) -> None:
    on_record(api, TUESDAY, MONDAY)
    assert lines(run, "--by", "hour")[-1].startswith("09:00 1 500/s 500/s 500/s")
    on_record(api, TUESDAY, MONDAY)
    assert lines(run, "--by", "weekday")[-1].startswith("Tuesday 2 450/s 400/s 500/s")


def test_json_has_all_values_and_both_groupings(run: Run, api: FakeApi) -> None:
    on_record(api, TUESDAY, MONDAY)
    result = run("bench", "history", "reads", "--zone", "UTC", "--figure", "p99", "--json")
    document = json.loads(result.stdout)
    assert (document["benchmark"], document["figure"], document["time_zone"]) == ("reads", "p99", "UTC")
    (one,) = document["series"]
    assert one["measurement"] == ["n2", "measure", "drivers", "read"]
    assert one["values"][0] == {"run": "run-1", "at": "2026-11-16T23:30:00.000Z", "value": 101.5}
    assert [group["period"] for group in one["by_hour"]] == ["08:00", "23:00"]
    assert [(group["period"], group["runs"]) for group in one["by_weekday"]] == [("Monday", 1), ("Tuesday", 1)]


def test_the_page_shows_names_of_others_as_text(run: Run, api: FakeApi, tmp_path: Path) -> None:
    attack = {**ROW, "operation": "</script><script>alert(1)</script>"}
    on_record(api, view("run-1", "2026-11-16T08:00:00.000Z", ROW, attack))
    lines(run, "--html", str(tmp_path / "history.html"))
    page = (tmp_path / "history.html").read_text(encoding="utf-8")
    assert "alert(1)" in page
    assert "<script>alert(1)" not in page
    assert "Mon 2026-11-16 09:00 CET" in page
    assert "cannot be written" in run("bench", "history", "reads", "--html", str(tmp_path)).stderr


def test_page_charts_operations_together_from_five_runs_on(run: Run, api: FakeApi, tmp_path: Path) -> None:
    path = tmp_path / "history.html"
    runs = [view(f"run-{n}", f"2026-11-1{n}T08:00:00.000Z", ROW, {**ROW, "operation": "scan"}) for n in range(5)]
    on_record(api, *runs[:4])
    lines(run, "--html", str(path))
    few = path.read_text(encoding="utf-8")
    assert "appear from five runs on" in few
    assert 'id="runs-chart"' not in few
    on_record(api, *runs)
    lines(run, "--html", str(path))
    page = path.read_text(encoding="utf-8")
    assert 'id="runs-chart"' in page
    assert set(re.findall(r'"topic": ?"([^"]+)"', page)) == {"n2 · measure · drivers"}, "both operations in one chart"
    assert "Times are in the zone Europe/Berlin" in page


def test_no_more_runs_are_read_than_the_limit(run: Run, api: FakeApi) -> None:
    on_record(api, TUESDAY, MONDAY)
    assert not any("run-1" in line for line in lines(run, "--limit", "1"))


def test_without_a_figure_it_says_so(run: Run, api: FakeApi) -> None:
    on_record(api, view("r", "2026-11-16T08:00:00Z", ROW, status="FAILED"))
    result = run("bench", "history", "reads")
    assert (result.exit_code, "no run of 'reads' has a cell" in result.stderr) == (Exit.FAILED, True)
    assert "IANA" in run("bench", "history", "reads", "--zone", "Nowhere").stderr
