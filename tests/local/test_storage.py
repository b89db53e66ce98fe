"""Storage on real kernels. The order of the layouts is tested, and no absolute figure: the machine may be busy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from local.storage import kernel
from local.storage.study import Result, measure, problems, table

RESULTS = [
    Result("single", 100),
    Result("raid0", 400),
    Result("raid0-cache", 3000, 0.9, (300, 3000)),
    Result("raid0-cache", 9000, 0.99, (9000, 9000)),
]


def test_the_expected_order_has_no_problem_and_the_table_shows_the_warm_up() -> None:
    assert problems(RESULTS) == []
    assert "90.0%   300 3,000" in table(RESULTS)


@pytest.mark.parametrize(
    ("number", "reads", "hits", "sentence"),
    [
        (0, 400, None, "one volume is not slower than RAID-0: 400 and 400 reads a second"),
        (3, 300, 0.99, "RAID-0 is not slower than RAID-0 with a warm cache: 400 and 300 reads a second"),
        (3, 9000, 0.9, "the cache does not warm up: it has 90.0% of the reads, then 90.0%"),
        (3, 9000, None, "the agent's samples have no cache"),
    ],
)
def test_another_order_is_a_problem(number: int, reads: float, hits: float | None, sentence: str) -> None:
    results = [*RESULTS]
    results[number] = replace(results[number], reads=reads, hits=hits)
    assert problems(results) == [sentence]


def test_missing_programs_are_named_with_their_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kernel, "PATH", str(tmp_path))
    assert "apt-get install -y user-mode-linux fio mdadm" in str(kernel.missing())


@pytest.mark.skipif(kernel.missing() is not None, reason=f"no kernel to boot: {kernel.missing()}")
def test_real_kernels_show_single_below_raid0_below_a_cache_that_warms_up(tmp_path: Path) -> None:
    results = measure(tmp_path / "kernels", print)
    assert problems(results) == [], table(results)
