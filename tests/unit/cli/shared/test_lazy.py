"""Commands are imported when they run; until then, lists show their names and helps."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from cli.app import app
from cli.client import suggestions
from cli.shared.context import Options
from cli.shared.errors import Exit
from cli.shared.examples import EXAMPLES
from cli.shared.lazy import LazyCommand

ROOT = Path(__file__).resolve().parents[4]
TROOP: Any = typer.main.get_command(app)


def entries(group: Any) -> Iterator[LazyCommand]:
    for command in group.commands.values():
        if isinstance(command, LazyCommand):
            yield command
        loaded = command.load() if isinstance(command, LazyCommand) else command
        if hasattr(loaded, "commands"):
            yield from entries(loaded)


@pytest.mark.parametrize("entry", list(entries(TROOP)), ids=lambda entry: entry.source)
def test_the_listed_name_and_help_are_those_of_the_command(entry: LazyCommand) -> None:
    command = entry.load()
    first, *_ = inspect.cleandoc(command.help).split("\n\n")
    assert (entry.name, entry.help) == (command.name, " ".join(first.split()))


def test_every_command_is_listed() -> None:
    folder = ROOT / "cli" / "commands"
    listed = {entry.source.partition(":")[0].rpartition(".")[2] for entry in entries(TROOP)}
    assert listed == {path.stem for path in folder.glob("*.py")} - {"__init__"}


MODULES = """import sys
from cli.app import app
try:
    app(sys.argv[1:], prog_name="troop")
finally:
    print(*sys.modules, file=sys.stderr)
"""


ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret"}


def imported(*words: str, code: int = 0) -> set[str]:
    """Lists the modules that a run of the command imports."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "functions")])
    line, environment = [sys.executable, "-c", MODULES, *words], os.environ | ENVIRONMENT | {"PYTHONPATH": paths}
    ended = subprocess.run(line, capture_output=True, text=True, timeout=60, env=environment)
    assert ended.returncode == code, ended.stderr
    return set(ended.stderr.split())


@pytest.mark.parametrize("words", [("--help",), ("--version",)])
def test_help_imports_no_command_and_no_sdk(words: tuple[str, ...]) -> None:
    modules = imported(*words)
    assert "cli.app" in modules
    assert not {name for name in modules if name.startswith("cli.commands.")}
    assert not modules & {"boto3", "botocore", "pydantic", "rich", "yaml", "holidays", "troop.bench", "troop.chaos"}


@pytest.mark.parametrize("words", [(), ("bench",), ("fleet",), ("reaper",)])
def test_lists_of_commands_show_whole_sentences(words: tuple[str, ...]) -> None:
    group = TROOP
    for word in words:
        group = group.commands[word].load()
    shown = " ".join(CliRunner().invoke(app, [*words, "--help"]).stdout.split())
    helps = [" ".join(command.help.partition("\n\n")[0].split()) for command in group.commands.values()]
    assert [help for help in helps if help not in shown] == []


def test_each_example_in_a_help_is_a_line() -> None:
    lines = CliRunner().invoke(app, ["groups", "--help"], env={"COLUMNS": "50"}).stdout.splitlines()
    assert [f"    {line}" for line in EXAMPLES["groups"] if f"    {line}" not in lines] == []


@pytest.mark.parametrize(
    ("words", "needless"),
    [
        (
            ("events", "--help"),
            {"botocore", "rich", "yaml", "holidays", "troop.bench.definition.plan", "troop.report", "troop.chaos.aws"},
        ),
        (("leash", "--help"), {"botocore", "rich", "yaml", "holidays", "troop.bench.definition.plan"}),
        (("bench", "--help"), {"troop.report", "troop.chaos.aws", "cli.commands.bench_compare"}),
        (("simulate", "--help"), {"boto3", "troop.bench", "troop.report", "troop.chaos.aws"}),
        (("policy", "diff", "--help"), {"troop.bench.definition.plan", "troop.report", "troop.chaos.aws"}),
    ],
)
def test_a_command_imports_only_what_it_needs(words: tuple[str, ...], needless: set[str]) -> None:
    modules = imported(*words)
    assert TROOP.commands[words[0]].source.partition(":")[0] in modules
    assert not modules & needless


def test_completion_from_the_cache_needs_no_sdk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    line = {"_TROOP_COMPLETE": "complete_bash", "COMP_WORDS": "troop group w", "COMP_CWORD": "2"}
    for name, value in (ENVIRONMENT | line | {"XDG_CACHE_HOME": str(tmp_path)}).items():
        monkeypatch.setenv(name, value)
    file = suggestions.cache_file("_groups", Options())
    file.parent.mkdir()
    file.write_text(json.dumps([{"unit": "web"}]))
    modules = imported()
    assert "cli.client.suggestions" in modules
    assert not modules & {"botocore", "pydantic", "rich", "yaml", "holidays"}


@pytest.mark.parametrize(
    "line",
    ["groups", "status", "group web", "why web", "events --unit web", "set web calendar= owner=ada", "bench status 1"],
)
def test_a_request_needs_neither_boto3_nor_pydantic(line: str) -> None:
    words = ("--region", "eu-central-1", "-d", "impossible/name")  # the last moment before the first request
    modules = imported(*words, *line.split(), code=Exit.NO_DEPLOYMENT)
    assert "botocore.auth" in modules
    assert not modules & {"boto3", "pydantic"}


@pytest.mark.parametrize(
    ("words", "meant"), [(["evnts"], "'events'"), (["bench", "comprae"], "'compare'"), (["reaper", "of"], "'off'")]
)
def test_a_misspelt_command_gets_a_hint(words: list[str], meant: str) -> None:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert f"Did you mean {meant}" in result.stderr


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("troop ev", {"events"}),
        ("troop bench re", {"results", "report"}),
        ("troop policy d", {"diff"}),
        ("troop reaper o", {"off", "on"}),
        ("troop events --fo", {"--follow"}),
        ("troop set web own", {"owner="}),
    ],
)
def test_completion_knows_commands_and_their_arguments(
    monkeypatch: pytest.MonkeyPatch, line: str, expected: set[str]
) -> None:
    monkeypatch.setenv("_TROOP_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    result = CliRunner().invoke(app, [], prog_name="troop")
    assert set(result.stdout.split()) == expected
