"""`troop bench`: what a run would cost, and what it has cost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.client.api import Answer
from cli.shared.errors import Exit
from tests.unit.cli.bench_runs import ENDED, ESTIMATE, ID, ONE, ROW, TEXT, run_document
from tests.unit.cli.conftest import FakeApi, Run

BUDGET = {
    "where": "budget",
    "problem": "is 0.1: must be at least $0.12",
    "allowed": "at least $0.12",
    "loc": ["budget"],
}
COST: dict[str, Any] = {
    "amount": 0.03,
    "currency": "USD",
    "items": [
        {"what": "drivers, c7g.large, spot", "quantity": 0.5, "unit": "node-hour", "price": 0.06, "amount": 0.03},
        {"what": "drivers, storage gp3", "quantity": 0.01, "unit": "GiB-month", "price": None, "amount": None},
    ],
    "unknown": ["drivers, storage gp3"],
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "read.py").write_text("print()\n")
    (tmp_path / "benchmark.yaml").write_text(f"{TEXT}budget: 0.1\n")
    return tmp_path / "benchmark.yaml"


def test_an_estimate_line_by_line(run: Run, ok: Callable[..., Any], api: FakeApi, file: Path) -> None:
    result = run("bench", "estimate", str(file), "--size", "smoke")
    assert result.exit_code == 0, result.output
    assert api.calls == [(*ESTIMATE, api.calls[0][2])]
    assert "key" not in api.calls[0][2]
    row = next(line for line in result.stdout.splitlines() if "c7g.large" in line)
    for shown in ("c001", "drivers, c7g.large, on-demand", "0.333", "node-hour", "0.0725", "$0.02"):
        assert shown in row
    assert "merging the results of the largest cell: at most 2 of 150 s of processor time" in result.stdout
    assert result.stdout.splitlines()[-1] == "expected to cost $0.13, at most $1.50"
    assert ok("bench", "estimate", str(file)) == api.estimate


def test_items_below_a_cent_share_one_line_of_an_estimate(run: Run, api: FakeApi, file: Path) -> None:
    cell = api.estimate["cells"][0]
    small = {"what": "S3 requests", "quantity": 2000.0, "unit": "request", "price": 0.00000041, "amount": 0.0048}
    more = [small, small | {"what": "Troop's own calls", "quantity": 1, "price": 0.00552109618, "amount": 0.0053}]
    api.estimate = api.estimate | {"cells": [cell | {"items": [*cell["items"], *more]}]}
    output = run("bench", "estimate", str(file)).stdout
    (line,) = [line for line in output.splitlines() if "below" in line]
    assert line.split() == ["-", "2", "items", "below", "$0.01", "each", "-", "-", "-", "$0.01"]
    assert "S3 requests" not in output
    api.estimate = api.estimate | {"cells": [cell | {"items": [*cell["items"], more[1]]}]}
    assert "0.00552" in run("bench", "estimate", str(file)).stdout, "a single one keeps its line"


QUOTA: dict[str, Any] = {
    "service": "ec2",
    "code": "L-1216C47A",
    "what": "on-demand Standard (A, C, D, H, I, M, R, T, Z) instances",
    "vcpus": 1152,
    "without_spot": 1632,
    "desired": 1632,
    "value": 1200.0,
}


@pytest.mark.parametrize(("value", "asks"), [(1200.0, True), (1631.0, True), (1632.0, False), (None, False)])
def test_an_estimate_lists_the_quotas_to_request_and_the_time(
    run: Run, ok: Callable[..., Any], api: FakeApi, file: Path, value: float | None, asks: bool
) -> None:
    api.estimate |= {"seconds": 5400, "region": "eu-central-1", "quotas": [{**QUOTA, "value": value}]}
    output = run("bench", "estimate", str(file)).stdout
    row = next(line for line in output.splitlines() if line.startswith("on-demand Standard"))
    for shown in ("ec2", "L-1216C47A", "1,152", "1,632", "-" if value is None else f"{value:,.0f}"):
        assert shown in row.split()
    assert "quotas of vCPUs in eu-central-1" in output
    assert "expected to take 1 h 30 min" in output
    words = " ".join(output.split())
    assert asks == (
        "aws service-quotas request-service-quota-increase --region eu-central-1 --service-code ec2 --quota-code "
        "L-1216C47A --desired-value 1632" in words
    )
    assert ok("bench", "estimate", str(file))["quotas"] == [{**QUOTA, "value": value}]


def test_expected_cost_is_rounded_up_to_a_sufficient_budget(run: Run, api: FakeApi, file: Path) -> None:
    """The refusal rounds up as well, and nobody should be told two amounts."""
    cells = [{**api.estimate["cells"][0], "cell": cell} for cell in ("c001", "c002")]
    api.estimate |= {"expected": 0.0303, "most": 0.361, "cells": cells}
    output = run("bench", "estimate", str(file)).stdout
    assert "expected to cost $0.04, at most $0.37" in output
    (sums,) = (line for line in output.splitlines() if line.startswith("c002") and "node-hour" not in line)
    assert sums.split() == ["c002", "-", "$0.03", "$0.13", "$1.50"]


def test_an_estimate_has_a_sum_for_each_role(run: Run, api: FakeApi, file: Path) -> None:
    cell = api.estimate["cells"][0]
    others = [("drivers, storage gp3", 0.25), ("cache, r7g.large, on-demand", 1.5), ("Troop's own calls", 9.0)]
    items = [{**cell["items"][0], "what": item, "amount": amount} for item, amount in others]
    api.estimate |= {"cells": [{**cell, "items": [*cell["items"], *items, {**items[1], "amount": None}]}]}
    lines = [line.split() for line in run("bench", "estimate", str(file)).stdout.splitlines()]
    assert ["cell", "drivers", "cache", "expected", "at", "most"] in lines
    assert next(line for line in lines if len(line) == 6 and line[0] == "c001")[2:4] == ["$0.28", "$1.50"]


def test_an_estimate_says_what_speaks_against_the_run(run: Run, api: FakeApi, file: Path) -> None:
    api.estimate |= {"problems": [BUDGET], "warnings": ["no price of io2"], "budget": 0.1, "unknown": ["x"]}
    result = run("bench", "estimate", str(file))
    assert result.exit_code == Exit.REFUSED
    assert "plus items without a price, of a budget of $0.10" in result.stdout.replace("\n", " ")
    assert "this would be refused: budget is 0.1: must be at least $0.12" in result.stderr
    assert "no price of io2" in result.stderr


def test_run_over_its_budget_is_refused_before_anything_is_staged(run: Run, api: FakeApi, file: Path) -> None:
    api.estimate |= {"problems": [BUDGET]}
    result = run("bench", "run", str(file))
    assert result.exit_code == Exit.REFUSED
    assert f"{file}:17: budget is 0.1: must be at least $0.12" in result.stderr.replace("\n", " ")
    assert [call[:2] for call in api.calls] == [ESTIMATE]


@pytest.mark.parametrize("command", ["estimate", "run"])
def test_unknown_prices_are_accepted_by_an_option(run: Run, api: FakeApi, file: Path, command: str) -> None:
    run("bench", command, str(file), "--accept-unknown-prices", "--set", "parameters.threads=8")
    assert api.calls[0][2]["set"] == {"parameters.threads": 8, "accept_unknown_prices": True}


@pytest.mark.parametrize("command", ["status", "results"])
def test_ended_run_shows_its_cost(run: Run, api: FakeApi, command: str) -> None:
    ended = run_document("launch", "over", results=[ROW], **ENDED, cost=COST)
    ended["cells"][0]["cost"] = COST
    again = {**ended["cells"][0], "cell": "c001-2", "cost": {**COST, "amount": 7.0}}
    ended["cells"].append(again)
    api.refusals[ONE] = [Answer(200, ended)]
    result = run("bench", command, ID)
    assert result.exit_code == 0, result.output
    assert "cost: $0.03, plus items without a price: drivers, storage gp3" in result.stdout.replace("\n", " ")
    rows = result.stdout.splitlines()
    assert any("drivers, c7g.large, spot" in row and "$0.03" in row for row in rows)
    assert any("c001-2" in row and "$7.00" in row for row in rows)


def test_open_run_shows_its_cost_so_far(run: Run, api: FakeApi) -> None:
    api.refusals[ONE] = [Answer(200, {**run_document("launch", cost=None), "cost_so_far": COST})]
    result = run("bench", "status", ID)
    assert result.exit_code == 0, result.output
    assert "cost so far: $0.03, plus items without a price: drivers, storage gp3" in result.stdout.replace("\n", " ")


def test_ended_run_shows_its_cost_at_its_files_prices(run: Run, api: FakeApi) -> None:
    ended = run_document("launch", "over", **ENDED, cost=COST, cost_of_file={**COST, "amount": 0.0, "unknown": []})
    api.refusals[ONE] = [Answer(200, ended)]
    result = run("bench", "status", ID)
    assert "storage gp3; with the file's own prices: $0.00" in result.stdout.replace("\n", " ")


def test_open_run_without_a_cost_shows_none(run: Run, api: FakeApi) -> None:
    api.refusals[ONE] = [Answer(200, run_document("launch", cost=None))]
    result = run("bench", "status", ID)
    assert result.exit_code == 0, result.output
    assert "cost" not in result.stdout
