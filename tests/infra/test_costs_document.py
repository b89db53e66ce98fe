"""The page on costs counts what there is: alarms and dashboards of the stack, and the totals of its own arithmetic."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from infra import ROOT
from infra.api import ROUTES
from perf.price import PRICES, after_free, month
from tests.infra.cfn import resources_of
from troop.shared.metrics import ALWAYS, MEANINGS

Template = Mapping[str, Any]

DOCUMENT = (ROOT / "docs" / "background" / "costs.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", DOCUMENT, re.MULTILINE | re.DOTALL))
IN_USE = SECTIONS["In use: 1,000 groups at probability 0.2"]
BENCHMARKS = SECTIONS["Benchmarks, while none runs"]
IDLE = next(body for heading, body in SECTIONS.items() if heading.startswith("Idle"))

BENCHMARK_ALARMS = re.compile(r"Reaper|Teardown|Report|BenchmarkCost|StartsRefused|Cell|Runs|LeftBehind")
"""Alarms of the half that runs benchmarks; a test of the alarms holds that there are no others without it."""

FREE_DASHBOARDS = 3


def rows(section: str) -> dict[str, tuple[str, float]]:
    """(arithmetic, dollars) by item, of the section's first table."""
    table = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    assert table
    cells = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in table[0].splitlines()[2:]]
    return {item: (arithmetic, float(price.removeprefix("$"))) for item, arithmetic, price in cells}


def watched(template: Template) -> dict[str, int]:
    """By alarm how many metrics it watches, which is what AWS charges for."""
    alarms = resources_of(template, "AWS::CloudWatch::Alarm")
    return {
        name.removeprefix("Alarms"): sum("MetricStat" in one for one in alarm["Properties"].get("Metrics", ())) or 1
        for name, alarm in alarms.items()
    }


@pytest.mark.parametrize(
    ("section", "for_benchmarks"), [(IN_USE, False), (BENCHMARKS, True)], ids=["chaos", "benchmarks"]
)
def test_document_counts_the_alarms_of_the_stack(template: Template, section: str, for_benchmarks: bool) -> None:
    there = sum(n for name, n in watched(template).items() if bool(BENCHMARK_ALARMS.search(name)) is for_benchmarks)
    arithmetic, price = rows(section)["CloudWatch alarms, by the metrics they watch"]
    assert arithmetic == f"{there} x $0.10"
    assert price == pytest.approx(there * PRICES["alarm"][0])


def test_its_dashboards_are_free(template: Template) -> None:
    there = len(resources_of(template, "AWS::CloudWatch::Dashboard"))
    assert there <= FREE_DASHBOARDS
    assert rows(IN_USE)["CloudWatch dashboards"] == (f"{there} of an account's first {FREE_DASHBOARDS}", 0)


def test_monthly_costs_equal_those_of_the_command() -> None:
    used, idle = month(1000, 0.2, 180), month(20, 0, 180)
    table = rows(IN_USE)
    assert table["in all, by list price"][1] == pytest.approx(sum(one.price for one in used), abs=0.005)
    assert table["after what is always free"][1] == pytest.approx(sum(after_free(used).values()), abs=0.005)
    (by_list,) = re.findall(r"\$([\d.]+) by list price", IDLE)
    assert float(by_list) == pytest.approx(sum(one.price for one in idle), abs=0.005)
    (alarms,) = [one.units for one in used if one.kind == "alarm"]
    assert rows(IN_USE)["CloudWatch alarms, by the metrics they watch"][0] == f"{alarms} x $0.10"


@pytest.mark.parametrize("section", [IN_USE, BENCHMARKS], ids=["chaos", "benchmarks"])
def test_each_table_adds_up(section: str) -> None:
    table = rows(section)
    parts = [price for item, (_, price) in table.items() if not item.startswith(("in all", "after"))]
    (whole,) = [price for item, (_, price) in table.items() if item.startswith("in all")]
    assert sum(parts) == pytest.approx(whole, abs=0.005 * len(parts))


def test_metrics_that_are_written_all_month_are_counted_as_that() -> None:
    always = [one.writer for one in MEANINGS.values() if one.when.startswith(ALWAYS) and "there are" not in one.when]
    assert sum(by == "watchdog" for by in always) == 3
    assert "| CloudWatch metrics | 3 + 16 x" in IN_USE
    assert sum(by == "reaper" for by in always) == 1
    assert "| CloudWatch metric of the reaper | 1 x $0.30 |" in BENCHMARKS


def test_cost_of_metrics_per_route_covers_all_routes() -> None:
    assert f"of each of {len(ROUTES)} routes" in IDLE
    assert f"${len(ROUTES) * 5 * PRICES['metric'][0]:.2f} a month" in IDLE


def test_the_table_of_cold_starts_has_every_handler_and_no_other() -> None:
    measured = re.search(r"^\| handler \| import .*\n(?:\|.*\n)+", DOCUMENT, re.MULTILINE)
    assert measured
    handlers = [path.stem for path in (ROOT / "functions" / "handlers").glob("[!_]*.py")]
    assert re.findall(r"^\| `(\w+)` \|", measured[0], re.MULTILINE) == sorted(handlers)
