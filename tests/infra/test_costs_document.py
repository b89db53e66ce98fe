"""The page on costs counts what there is: alarms and dashboards of the stack, and the totals of its own arithmetic."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from infra import ROOT
from infra.api import ROUTES
from perf import price
from tests.infra.cfn import resources_of
from troop.shared.metrics import ALWAYS, MEANINGS

Template = Mapping[str, Any]

DOCUMENT = price.PATH.read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", DOCUMENT, re.MULTILINE | re.DOTALL))
BENCHMARKS = SECTIONS["Benchmarks, while none runs"]

BENCHMARK_ALARMS = re.compile(r"Reaper|Teardown|Report|Healing|BenchmarkCost|StartsRefused|Cell|Runs|LeftBehind")
"""Alarms of the half that runs benchmarks; a test of the alarms holds that there are no others without it."""

FREE_DASHBOARDS = 3


def rows(section: str) -> dict[str, tuple[str, float]]:
    """(arithmetic, dollars) by item, of the section's first table."""
    table = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    assert table
    cells = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in table[0].splitlines()[2:]]
    return {
        item: (arithmetic, float(dollars.removeprefix("$").replace(",", ""))) for item, arithmetic, dollars in cells
    }


def watched(template: Template) -> dict[str, int]:
    """By alarm how many metrics it watches, which is what AWS charges for."""
    alarms = resources_of(template, "AWS::CloudWatch::Alarm")
    return {
        name.removeprefix("Alarms"): sum("MetricStat" in one for one in alarm["Properties"].get("Metrics", ())) or 1
        for name, alarm in alarms.items()
    }


def test_the_table_of_a_month_is_current() -> None:
    assert price.text(DOCUMENT) == DOCUMENT, "run: make openapi"


def test_fis_asks_hundreds_of_times_as_much_for_the_same_faults() -> None:
    lasting = sum(one.price for one in price.faults(4200, 300))
    assert price.elsewhere(4200, 300).price == pytest.approx(2100)
    assert lasting == pytest.approx(rows(SECTIONS["Faults inside instances"])["in all"][1], abs=0.005)
    assert 500 * lasting < 2100


def test_document_counts_the_alarms_of_the_stack(template: Template) -> None:
    bench_metrics = sum(n for name, n in watched(template).items() if BENCHMARK_ALARMS.search(name))
    (chaos_metrics,) = [one.units for one in price.month(1000, 0.2, 180) if one.kind == "alarm"]
    assert chaos_metrics == sum(watched(template).values()) - bench_metrics
    arithmetic, dollars = rows(BENCHMARKS)["CloudWatch alarms, by the metrics they watch"]
    assert arithmetic == f"{bench_metrics} x $0.10"
    assert dollars == pytest.approx(bench_metrics * price.PRICES["alarm"][0])


def test_its_dashboards_are_free(template: Template) -> None:
    assert len(resources_of(template, "AWS::CloudWatch::Dashboard")) <= FREE_DASHBOARDS


def test_the_table_bench_metrics_adds_up() -> None:
    table = rows(BENCHMARKS)
    parts = [dollars for item, (_, dollars) in table.items() if item != "in all"]
    assert sum(parts) == pytest.approx(table["in all"][1], abs=0.005 * len(parts))


def test_idle_benchmarks_cost_the_same_in_both_tables() -> None:
    assert sum(one.price for one in price.idle_benchmarks()) == pytest.approx(rows(BENCHMARKS)["in all"][1], abs=0.01)


def test_idle_accounts_add_up_and_what_is_free_counts_once(template: Template) -> None:
    assert len(resources_of(template, "AWS::CloudWatch::Dashboard")) == price.DASHBOARDS
    table = re.search(r"(?:^\|.*\n)+", SECTIONS["Forty accounts"], re.MULTILINE)
    assert table
    cells = [[cell.strip(" *") for cell in line.strip("|\n").split("|")] for line in table[0].splitlines()[2:]]
    one, all_of_them = ({row[0]: float(row[n].strip("$")) for row in cells} for n in (1, 2))
    parts = [name for name in one if "free" not in name]
    assert len(parts) == 3
    for name in parts:
        assert all_of_them[name] == pytest.approx(price.ACCOUNTS * one[name], abs=0.005 * price.ACCOUNTS)
    free = {kind: count * price.PRICES[kind][0] for kind, count in price.FREE.items()}
    units = {item.kind for items in price.idle_deployments(1).values() for item in items}
    most_free = sum(dollars for kind, dollars in free.items() if kind in units)
    whole = sum(all_of_them[name] for name in parts)
    left = all_of_them["in all, after what is always free"]
    assert whole - most_free <= left + 0.01 <= whole
    dashboards = (price.ACCOUNTS * price.DASHBOARDS - price.FREE["dashboard"]) * price.PRICES["dashboard"][0]
    assert left - all_of_them["without dashboards, after what is always free"] == pytest.approx(dashboards)


def test_metrics_that_are_written_all_month_are_counted_as_that() -> None:
    always = [one.writer for one in MEANINGS.values() if one.when.startswith(ALWAYS) and "there are" not in one.when]
    assert sum(by == "watchdog" for by in always) == 3
    assert next(one.units for one in price.month(1000, 0.2, 180) if one.kind == "metric") == 3
    assert sum(by == "reaper" for by in always) == 1
    assert "| CloudWatch metric of the reaper | 1 x $0.30 |" in BENCHMARKS


def test_cost_of_metrics_per_route_covers_all_routes() -> None:
    assert f"5 of each of {len(ROUTES)} routes, at most ${len(ROUTES) * 5 * price.PRICES['metric'][0]:.2f}" in DOCUMENT


def test_the_table_of_cold_starts_has_every_handler_and_no_other() -> None:
    document = (ROOT / "docs" / "background" / "performance.md").read_text(encoding="utf-8")
    measured = re.search(r"^\| handler \| import .*\n(?:\|.*\n)+", document, re.MULTILINE)
    assert measured
    handlers = [path.stem for path in (ROOT / "functions" / "handlers").glob("[!_]*.py")]
    assert re.findall(r"^\| `(\w+)` \|", measured[0], re.MULTILINE) == sorted(handlers)
