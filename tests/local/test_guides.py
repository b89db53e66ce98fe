"""Commands of a document: what is read, run, repeated and skipped, and when a walk fails. Real ones: tests/e2e."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from local.demo.failure import DemoFailed
from local.demo.narrator import Narrator
from local.guides import walk
from local.guides.block import Block, read
from local.guides.walk import GROUP, Walk, salt_due_early
from troop.chaos.roll import due_at
from troop.shared.calendars import Calendar

BLOCK = Block("Say it", "echo one\necho two", ("one", "two"))


def run(*blocks: Block, deployment: str = "") -> None:
    Walk(dict(os.environ), Narrator(), blocks, deployment=deployment).run()


def test_a_document_marks_commands_that_run_repeat_or_are_left_out(tmp_path: Path) -> None:
    document = tmp_path / "guide.md"
    document.write_text(
        """\
# Guide

```sh
echo unmarked
```

## Ask

<!-- runs on local AWS -->
```sh
troop status
troop why web
```

```console
Troop in account 1
...
```

<!-- runs on local AWS until it prints this -->

```console
$ troop events \\
    --limit 1
RECOVERED
$ troop groups
```

## Pay

<!-- not on local AWS: it has no bill -->
```sh
aws ce
```

```console
$ echo unmarked, too
```
"""
    )
    assert read(document) == (
        Block("Ask", "troop status\ntroop why web", ("Troop in account 1", "...")),
        Block("Ask", "troop events \\\n    --limit 1\ntroop groups", ("RECOVERED",), repeats=True),
        Block("Pay", "aws ce", skipped="it has no bill"),
    )


def test_commands_and_their_output_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    run(BLOCK, Block("Pay", "exit 7", skipped="no bill here"))
    output = capsys.readouterr().out
    for text in ("\nSay it\n", "$ echo one", "\n          two\n", "\nPay\n", "skipped: no bill here"):
        assert text in output


@pytest.mark.parametrize(
    ("shown", "output", "unmet"),
    [
        (("one", "two"), "one\n\ntwo\n", ""),
        (("one", "two"), "one\nand\ntwo\n", "the output lacks: two"),
        (("one", "...", "two"), "one\nand\ntwo\n", ""),
        (("...", "two"), "two\none\n", "the output has more than: two"),
        (("one",), "one and more\n", "the output lacks: one"),
        (("one...", "...", "i-0123  recovered, 4.4 s"), "one and more\ni-99 recovered, 1.25 s\n", ""),
        (("web  RECOVERED",), "web UNRECOVERED\n", "the output lacks: web  RECOVERED"),
    ],
)
def test_output_agrees_if_its_words_do(shown: tuple[str, ...], output: str, unmet: str) -> None:
    assert replace(BLOCK, shown=shown).unmet(0, output) == unmet
    assert replace(BLOCK, shown=shown).unmet(1, output) == "exit code 1"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo one; echo two; exit 3", "exit code 3"),
        ("echo one", "the output lacks: two"),
        ("echo one; echo two; false; true", "exit code 1"),
        ("false | echo two", "exit code 1"),
        ("echo $UNSET_VARIABLE", "exit code 1"),
    ],
)
def test_another_output_ends_the_walk(script: str, reason: str) -> None:
    with pytest.raises(DemoFailed, match=f"Say it: {reason}"):
        run(replace(BLOCK, script=script), replace(BLOCK, heading="never"))


def test_commands_see_variables_and_folder_of_those_before(tmp_path: Path) -> None:
    run(
        replace(BLOCK, script=f"words='one two'\ncd {tmp_path}", shown=()),
        replace(BLOCK, script="for word in $words; do echo $word; done; touch here"),
    )
    assert (tmp_path / "here").exists()


def test_a_document_names_the_deployment_troop() -> None:
    script = "echo 'Tested in account 1: troop -d Tested why web'"
    run(replace(BLOCK, script=script, shown=("Troop in account 1: troop why web",)), deployment="Tested")


def test_commands_are_repeated_only_if_their_reader_repeats_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk, "_PAUSE", 0)
    script = f"echo x >> {tmp_path / 'runs'}; [ $(wc -l < {tmp_path / 'runs'}) = 3 ] && echo one && echo two"
    with pytest.raises(DemoFailed):
        run(replace(BLOCK, script=script))
    run(replace(BLOCK, script=script, repeats=True))
    assert (tmp_path / "runs").read_text() == "x\n" * 3


def test_the_progress_of_cloudformation_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    progress = "echo 'Troop |  12/252 | 9:00:20 AM | CREATE_COMPLETE'; echo 'T: success: Built X'; echo one two"
    run(replace(BLOCK, script=progress, shown=()))
    output = capsys.readouterr().out.partition("one two")[2]
    assert "\n          one two\n" in output
    assert "\n          Troop |" not in output
    assert "\n          T: success" not in output


@pytest.mark.parametrize("now", [datetime(2026, 11, 23, 0, 1, tzinfo=UTC), datetime(2026, 12, 31, 23, 59, tzinfo=UTC)])
def test_the_roll_of_the_group_is_due_early_today_and_tomorrow(now: datetime) -> None:
    salt = salt_due_early(GROUP, now)
    calendar = Calendar("default", "UTC", frozenset(range(7)), 0, 24 * 60)
    for day in (now.date(), now.date().fromordinal(now.date().toordinal() + 1)):
        due = due_at(salt.encode(), day, GROUP, calendar)
        assert (due.hour, due.minute < 5) == (0, True)
