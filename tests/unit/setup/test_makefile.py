"""What the Makefile promises: a target that exists in name only succeeds and does nothing."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.patience import PATIENCE

ROOT = Path(__file__).parents[3]
FOLDERS = sorted({path.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").glob("*/**/test_*.py")})
NAMES = {"local": "local-tests", "opinions": "second-opinions"}
"""Of the targets that are not called as the folder they test."""


def _output_of_make(*arguments: str) -> str:
    """What make says, asked by nobody else, of what it would do or has read."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(
        ["make", "-n", *arguments],
        cwd=ROOT,
        env=environment | {"LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    return done.stdout + done.stderr


def test_every_name_that_is_no_file_has_a_rule() -> None:
    declared = re.search(r"^\.PHONY:(.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert declared
    idle = re.findall(r"Nothing to be done for '(.+)'", _output_of_make("-B", *declared[1].split()))
    # Of many at once it says so, too, of what was done for another.
    assert [name for name in idle if "Nothing to be done" in _output_of_make("-B", name)] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_folder_of_tests_has_a_target(folder: str) -> None:
    assert re.search(rf"pytest .*tests/{folder}$", _output_of_make(NAMES.get(folder, folder)), re.MULTILINE)


@pytest.mark.parametrize("target", ["test", "test-all"])
def test_the_first_line_of_a_whole_run_says_how_long_it_takes(target: str) -> None:
    first = _output_of_make("-B", target).splitlines()[0]
    assert first == 'echo "== tests: about half an hour on two cores"'
    assert "make test     # half an hour on two cores" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("name", ["bad name!", "it's", "$(id)", "--yes", "a;b"])
def test_a_name_reaches_the_commands_as_one_word(name: str) -> None:
    """They say what is wrong with it; a shell would do something else with it first."""
    for command, option in (("deploy", "DEPLOYMENT"), ("destroy", "DEPLOYMENT"), ("destroy", "CONFIRM")):
        output = _output_of_make("-o", ".build/.ready", command, f"{option}={name.replace('$', '$$')}")
        (line,) = (line for line in output.splitlines() if f"-m lifecycle.{command}" in line)
        assert f"--{option.lower()}={name}" in shlex.split(line.removesuffix("\\"))
