"""The first hour itself: the commands of the guide show on local AWS what it says, and leave no process."""

from __future__ import annotations

import time

import pytest

from local.first_hour.steps import STEPS
from tests.e2e.benches import EXHAUSTIVE
from tests.e2e.test_demo import left_over, run_local


@pytest.mark.skipif(not EXHAUSTIVE, reason="four minutes; make test-all runs it")
def test_the_first_hour_ends_well_and_leaves_no_process() -> None:
    began = time.time()
    output = run_local("first-hour")
    for number, step in enumerate(STEPS, 1):
        section = output.partition(f"\n{number}. {step.title}\n")[2].partition(f"\n{number + 1}. ")[0]
        assert f"skipped: {step.skipped}" in section if step.skipped else "  $ " in section, output
        assert f"only AWS proves {step.only_aws}" in section
    assert left_over(began, "first-hour") == []
