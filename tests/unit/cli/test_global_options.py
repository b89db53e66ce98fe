"""The options that all commands share stand before or after the command."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from cli.app import app
from cli.client import connection
from cli.client.client import TroopClient
from cli.client.connection import Connection
from cli.client.deployment import Deployment
from cli.shared.context import ANYWHERE, Options
from cli.shared.examples import EXAMPLES
from cli.shared.lazy import Conversion
from tests.unit.cli.conftest import ARN, FakeApi

TROOP: Any = typer.main.get_command(app)
GLOBAL = {"--deployment", "-d", "--region", "--profile"}
Used = Callable[..., Options]


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch, client: TroopClient) -> Used:
    """The options that a command line uses; it must succeed."""
    monkeypatch.delenv("TROOP_DEPLOYMENT", raising=False)
    connected: list[Options] = []

    def connect(options: Options) -> Connection:
        connected.append(options)
        return Connection(Deployment("Troop", "eu-central-1", "111122223333", {"ApiUrl": "https://api/"}, ARN), client)

    monkeypatch.setattr(connection, "connect", connect)

    def used(*words: str) -> Options:
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.output
        return connected.pop()

    return used


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("groups", Options()),
        ("-d A --region r1 --profile p groups", Options("A", "r1", "p")),
        ("groups -d A --region r1 --profile p", Options("A", "r1", "p")),
        ("groups --deployment=A --region=r1", Options("A", "r1")),
        ("-d A --region r1 groups --region r2", Options("A", "r2")),
        ("policy -d A export --region r2", Options("A", "r2")),
        ("policy --region r1 export --region r2", Options("Troop", "r2")),
        ("-d A policy -d B export", Options("B")),
        ("reaper off --reason --region -d A", Options("A")),
        ("set web -d A reason=x", Options("A")),
        ("group web --region r1", Options("Troop", "r1")),
        ("opt-out web --reason -d", Options()),
    ],
)
def test_the_value_nearest_to_the_end_wins(used: Used, api: FakeApi, line: str, expected: Options) -> None:
    api.add("web")
    assert used(*line.split()) == expected


def test_the_environment_gives_way_to_an_option_after_the_command(used: Used, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TROOP_DEPLOYMENT", "Other")
    assert (used("groups"), used("groups", "-d", "Mine")) == (Options("Other"), Options("Mine"))


def test_word_after_two_hyphens_is_no_option(used: Used, api: FakeApi) -> None:
    api.add("-d")
    assert used("group", "--", "-d") == Options()


def commands(group: Any, context: Any) -> Iterator[tuple[str, Any]]:
    for name in group.commands:
        _, command, _ = group.resolve_command(context, [name])
        nested = type(context)(command, info_name=name, parent=context)
        yield " ".join([*nested.command_path.split()[1:]]), command
        if hasattr(command, "commands"):
            yield from commands(command, nested)


def every_command() -> list[tuple[str, Any]]:
    return list(commands(TROOP, typer.Context(TROOP, info_name="troop")))


EVERY_COMMAND = every_command()


def test_every_command_takes_them_once_and_its_help_names_them() -> None:
    taken = {
        path: sorted(name for param in command.params for name in param.opts if name in GLOBAL)
        for path, command in EVERY_COMMAND
    }
    assert taken == {path: sorted(GLOBAL) for path, _ in EVERY_COMMAND}
    assert [path for path, command in EVERY_COMMAND if ANYWHERE not in command.epilog] == []


def outcome(conversion: Any, value: Any, param: Any, ctx: Any) -> Any:
    try:
        return conversion.coerce(value, param=param, ctx=ctx)
    except typer.BadParameter as error:
        return str(error)


@pytest.mark.parametrize("text", ["default", None, "", " text", "7", "-1", "1.5", "yes", "JSON", "2026-11-20"])
def test_every_value_is_converted_as_typer_does_it(text: str | None) -> None:
    """Commands convert text without pydantic."""
    differing = {}
    for path, command in EVERY_COMMAND:
        context = typer.Context(command)
        for param in command.get_params(context):
            value: Any = param.default if text == "default" else text
            if isinstance(value, str) and (param.multiple or param.nargs == -1):
                value = (value, value)
            ours = outcome(Conversion(), value, param, context)
            param._runtime_param = None
            theirs = outcome(param.get_runtime_param(), value, param, context)
            if (ours, type(ours)) != (theirs, type(theirs)):
                differing[path, param.name] = ours, theirs
    assert differing == {}


def parse(line: str) -> str:
    """Parses a line as the command does, without running it; returns the words of its command. It can read a pipe."""
    command, args = TROOP, shlex.split(line.rpartition(" | ")[2].partition(" > ")[0])[1:]
    context = command.make_context("troop", args)
    while hasattr(command, "commands"):
        name, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(name, rest, parent=context)
    return " ".join(str(context.command_path).split()[1:])


def test_every_help_has_examples_that_parse() -> None:
    parsed = {(path, line): parse(line) for path, _ in EVERY_COMMAND for line in EXAMPLES.get(path, [])}
    assert {where: words for where, words in parsed.items() if not f"{words} ".startswith(f"{where[0]} ")} == {}
    epilogs = {path: command.epilog for path, command in EVERY_COMMAND}
    assert [where for where in parsed if f"  {where[1]}\n" not in epilogs[where[0]]] == []


def test_there_are_examples_of_what_there_is() -> None:
    assert set(EXAMPLES) - {""} == {path for path, _ in EVERY_COMMAND}
    assert all(parse(line) for line in EXAMPLES[""])
