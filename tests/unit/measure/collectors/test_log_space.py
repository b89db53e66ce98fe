"""Room for a load generator's log."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from troop.measure.collectors.log_space import lacking


@pytest.mark.parametrize(
    ("free_gib", "per_second", "is_enough"), [(1, 100, True), (0.03, 100, False), (4, 0, True), (3, 0, False)]
)
def test_an_hour_of_the_log_must_fit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, free_gib: float, per_second: float, *, is_enough: bool
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free_gib * 2**30))
    problem = lacking(tmp_path, per_second)
    assert (problem == "") is is_enough, problem
