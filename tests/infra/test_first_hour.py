"""docs/start: local AWS runs the commands, and the first hour costs what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from infra import ROOT
from local.guides.block import read
from local.guides.walk import DEPLOYMENT, FIRST_HOUR, GROUP, STAGE
from perf.price import PRICES
from tests.infra.test_stages import staged

START = ROOT / "docs" / "start"
DOCUMENT = FIRST_HOUR.read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", DOCUMENT, re.MULTILINE | re.DOTALL))
LIMIT = 2
"""Dollars."""

COSTS = re.findall(r"^\| (.+?) \| (.+?) \| \$([\d.]+) \|$", SECTIONS["What it costs"], re.MULTILINE)
PRICED = {
    "alarms": "alarm",
    "CloudWatch metrics": "metric",
    "the salt": "secret",
    "Step Functions": "transition",
    "Lambda": "GB-second",
}
"""The beginning of an item -> its price in perf.price."""


def test_every_command_of_a_start_runs_or_says_why_not() -> None:
    """Those of the first benchmark that are left out need an account, or continue after it."""
    for document in ("first-hour.md", "first-termination.md"):
        text = (START / document).read_text(encoding="utf-8")
        assert len(read(START / document)) == text.count("\n```sh\n") > 0, document


def test_the_commands_name_the_deployment_of_the_stage_and_one_group() -> None:
    scripts = "\n".join(block.script for block in read(FIRST_HOUR))
    assert staged(STAGE).chaos.deployment == DEPLOYMENT
    assert set(re.findall(r"STAGE=(\S+)", scripts)) == {STAGE}
    assert set(re.findall(r"first-hour-\w+", scripts)) == {GROUP, "first-hour-report"}


def test_the_stage_limits_the_cost_and_touches_only_groups_that_opt_in() -> None:
    settings = staged(STAGE)
    assert settings.chaos.participation == "opt-in"
    assert not settings.retain_data
    assert settings.chaos.max_run_cost is not None
    without_benchmark = sum(float(cost) for item, _, cost in COSTS if "benchmark" not in item)
    assert without_benchmark + float(settings.chaos.max_run_cost) < LIMIT


def test_its_costs_add_up_below_the_limit() -> None:
    (total,) = re.findall(r"\*\*in all, at most\*\* \| \| \*\*\$([\d.]+)\*\*", DOCUMENT)
    assert len(COSTS) > len(PRICED)
    assert float(total) == pytest.approx(sum(float(cost) for _, _, cost in COSTS))
    assert float(total) < LIMIT
    assert f"for less than ${LIMIT}" in DOCUMENT


@pytest.mark.parametrize(("item", "arithmetic", "cost"), COSTS, ids=[item[:20] for item, _, _ in COSTS])
def test_a_cost_is_its_arithmetic(item: str, arithmetic: str, cost: str) -> None:
    assert re.fullmatch(r"[\d. x/+()$]+", arithmetic)
    value = eval(arithmetic.replace("x", "*").replace("$", ""))
    assert float(cost) == pytest.approx(value, abs=0.0051)
    for beginning, kind in PRICED.items():
        if item.startswith(beginning):
            (price,) = re.findall(r"\$([\d. /]+?)(?: x|$)", arithmetic)
            assert eval(price) == pytest.approx(PRICES[kind][0])


def test_the_report_is_no_file_of_the_repository() -> None:
    assert "first-hour-report.html" in Path(ROOT / ".gitignore").read_text().split()
