"""docs/start/first-hour.md has the steps that `make first-hour` runs, and costs what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from infra import ROOT
from local.first_hour.steps import DEPLOYMENT, GROUP, STAGE, STEPS, Step
from perf.price import PRICES
from tests.infra.test_stages import staged

DOCUMENT = (ROOT / "docs" / "start" / "first-hour.md").read_text(encoding="utf-8")
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


def test_the_guide_has_the_steps_in_their_order() -> None:
    headings = [heading for heading in SECTIONS if heading != "What it costs"]
    assert headings == [f"{number}. {step.title}" for number, step in enumerate(STEPS, 1)]


@pytest.mark.parametrize(("number", "step"), list(enumerate(STEPS, 1)), ids=lambda value: str(value)[:12])
def test_a_step_of_the_guide_is_what_the_command_runs(number: int, step: Step) -> None:
    section = SECTIONS[f"{number}. {step.title}"]
    assert re.findall(r"^```sh\n(.*?)\n```$", section, re.MULTILINE | re.DOTALL) == [step.script]
    assert f"- **Only AWS proves** {step.only_aws}.\n" in section
    assert all(f"**{word}" in section for word in ("Time:**", "Cost:**", "If it fails:**"))


def test_the_guide_names_the_steps_that_local_aws_skips() -> None:
    skipped = [str(number) for number, step in enumerate(STEPS, 1) if step.skipped]
    assert f"It skips steps {', '.join(skipped[:-1])} and {skipped[-1]}." in DOCUMENT


def test_the_commands_name_the_deployment_of_the_stage_and_one_group() -> None:
    scripts = "\n".join(step.script for step in STEPS)
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
