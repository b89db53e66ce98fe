"""The walk through the first hour: what it runs, repeats and skips, and when it fails. The real steps: tests/e2e."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from local.demo.failure import DemoFailed
from local.demo.narrator import Narrator
from local.first_hour import walk
from local.first_hour.steps import GROUP, Step
from local.first_hour.walk import Walk, salt_due_early, unmet
from troop.chaos.roll import due_at
from troop.shared.calendars import Calendar

STEP = Step("Say it", "echo one\necho two", "the sound", expects=("one", "t.o"))


def run(*steps: Step) -> None:
    Walk(dict(os.environ), Narrator(), steps).run()


def test_output_shows_commands_results_and_the_limits_of_the_proof(capsys: pytest.CaptureFixture[str]) -> None:
    run(STEP, replace(STEP, title="Pay", script="exit 7", skipped="no bill here"))
    output = capsys.readouterr().out
    for text in ("1. Say it", "$ echo one", "\n          two\n", "only AWS proves the sound", "skipped: no bill here"):
        assert text in output


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo one two; exit 3", "exit code 3"),
        ("echo one", "the output lacks t.o"),
        ("echo one two; false; true", "exit code 1"),
        ("false | echo one two", "exit code 1"),
    ],
)
def test_a_step_that_shows_something_else_ends_the_walk(script: str, reason: str) -> None:
    with pytest.raises(DemoFailed, match=f"Say it: {reason}"):
        run(replace(STEP, script=script), replace(STEP, title="never"))


def test_a_step_is_repeated_only_if_its_reader_repeats_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "_PAUSE", 0)
    script = f"echo x >> {tmp_path / 'runs'}; [ $(wc -l < {tmp_path / 'runs'}) = 3 ] && echo one two"
    with pytest.raises(DemoFailed):
        run(replace(STEP, script=script))
    run(replace(STEP, script=script, repeats=True))
    assert (tmp_path / "runs").read_text() == "x\n" * 3


def test_the_progress_of_cloudformation_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    run(
        replace(
            STEP,
            script="echo 'Troop |  12/252 | 9:00:20 AM | CREATE_COMPLETE'; echo 'T: success: Built X'; echo one two",
        )
    )
    output = capsys.readouterr().out.partition("one two")[2]
    assert "\n          one two\n" in output
    assert "\n          Troop |" not in output
    assert "\n          T: success" not in output


def test_an_exit_code_counts_before_the_output() -> None:
    assert [unmet(STEP, 1, "one two"), unmet(STEP, 0, "two"), unmet(STEP, 0, "one two")] == [
        "exit code 1",
        "the output lacks one",
        "",
    ]


@pytest.mark.parametrize("now", [datetime(2026, 11, 23, 0, 1, tzinfo=UTC), datetime(2026, 12, 31, 23, 59, tzinfo=UTC)])
def test_the_roll_of_the_group_is_due_early_today_and_tomorrow(now: datetime) -> None:
    salt = salt_due_early(GROUP, now)
    calendar = Calendar("default", "UTC", frozenset(range(7)), 0, 24 * 60)
    for day in (now.date(), now.date().fromordinal(now.date().toordinal() + 1)):
        due = due_at(salt.encode(), day, GROUP, calendar)
        assert (due.hour, due.minute < 5) == (0, True)
