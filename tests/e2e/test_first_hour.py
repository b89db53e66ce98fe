"""The first hour itself: the commands of the guide show on local AWS what it says, and leave no process."""

from __future__ import annotations

import time

import pytest

from local.guides.block import read
from local.guides.walk import FIRST_HOUR
from tests.e2e.benches import EXHAUSTIVE
from tests.e2e.test_demo import left_over, run_local


@pytest.mark.skipif(not EXHAUSTIVE, reason="four minutes; make test-all runs it")
def test_the_first_hour_ends_well_and_leaves_no_process() -> None:
    began = time.time()
    output = run_local("first-hour")
    for block in read(FIRST_HOUR):
        assert f"\n{block.heading}\n" in output, output
        assert (f"skipped: {block.skipped}" if block.skipped else f"$ {block.script.splitlines()[0]}") in output, output
    assert left_over(began, "first-hour") == []
