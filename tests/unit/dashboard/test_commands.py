"""Every command that a widget shows is one that the real command takes, whatever people call their units."""

from __future__ import annotations

import html
import re
import shlex
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import pytest
import typer
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cli.app import app
from cli.policies.values import assignments
from tests.unit.dashboard import build
from troop.chaos.policy import PARSERS
from troop.dashboard.commands import Command, Shell
from troop.dashboard.page import page

COMMAND = typer.main.get_command(app)
SHELL = Shell("Blue", "eu-central-1")

awkward = st.sampled_from("- '\"$`\\;|&*=#~!\u202e\n")
names = st.text(awkward | st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40).filter(
    lambda name: bool(name.strip())
)


@dataclass(frozen=True)
class Read:
    """What the command's own parser makes of a line."""

    path: str
    parameters: dict[str, Any]
    shared: dict[str, Any]


def read(line: str) -> Read:
    """Parses as the console script would, and runs nothing."""
    word, *words = shlex.split(line)
    assert word == "troop"
    context = shared = COMMAND.make_context("troop", words)
    path = []
    while hasattr(context.command, "commands"):
        group: Any = context.command
        name, command, rest = group.resolve_command(context, [*context._protected_args, *context.args])
        path.append(name)
        context = command.make_context(name, rest, parent=context)
    assert not context.args
    return Read(" ".join(path), context.params, shared.params)


def shown(line: Command | None) -> Read:
    assert line is not None
    return read(line)


@settings(deadline=None, max_examples=50)
@given(names, st.booleans())
@example("--help", True)
@example("a b", False)
def test_a_units_name_arrives_as_it_is_or_no_command_is_shown(name: str, by_default: bool) -> None:
    shell = Shell("Troop" if by_default else "Blue", "eu-central-1")
    for line in (shell.opt_out(name), shell.opt_out(name, date(2026, 12, 1)), shell.opt_in(name), shell.why(name)):
        assert (line is not None) is name.isprintable()
        if line:
            command = read(line)
            assert command.parameters["unit"] == name
            assert command.shared["deployment"] == shell.deployment
            assert command.shared["region"] == "eu-central-1"


VALUES = {
    "probability": st.floats(0, 1),
    "min_healthy": st.integers(1, 10_000),
    "min_days_between": st.integers(0, 250),
    "method": st.sampled_from(["crash", "crash, latency delay=300 seconds=60"]),
    "calendar": names,
    "reason": names,
    "owner": names,
    "stop_alarms": st.lists(names, min_size=1, max_size=3).map(tuple),
    "success_alarms": st.lists(names, min_size=1, max_size=3).map(tuple),
    "recovery_within": st.integers(1, 86_400),
}


@settings(deadline=None, max_examples=50)
@given(names, st.sampled_from(sorted(VALUES)).flatmap(lambda key: st.tuples(st.just(key), VALUES[key])))
@example("web", ("probability", 0.123456789))
def test_a_value_is_set_to_what_it_is(unit: str, pair: tuple[str, Any]) -> None:
    key, value = pair
    line = SHELL.set(unit, key, value)
    if line is None:
        return
    command = read(line)
    assert (command.path, command.parameters["unit"]) == ("set", unit)
    set_to = assignments(command.parameters["values"])
    assert PARSERS[key](set_to[key]) == PARSERS[key](value)


def test_alarms_that_commas_would_part_are_not_shown_as_others() -> None:
    assert SHELL.set("web", "stop_alarms", ("a,b",)) is None


@pytest.mark.parametrize("name", ["web\u202ebew", "we\u200bb", "a\nb", "\x1b[31mred"])
def test_invisible_characters_are_in_no_command(name: str) -> None:
    assert SHELL.opt_out(name) is None


def test_a_long_command_is_not_cut() -> None:
    """Cut text is for reading; a cut command would do something else."""
    unit = "'" * 250
    lines = _lines(page(build.unit_view(unit), build.frame()))
    assert lines
    assert {read(line).parameters["unit"] for line in lines} == {unit}


def test_the_switch_and_standing_fleets() -> None:
    assert [shown(one).path for one in (SHELL.halt(), SHELL.resume(), SHELL.leash(), SHELL.unleash())] == [
        "halt",
        "resume",
        "leash",
        "unleash",
    ]
    assert shown(SHELL.scale("20261121-150312-1f0c9b2e", "workers", 3)).parameters["count"] == 3


@pytest.mark.parametrize("view", build.views())
@pytest.mark.parametrize("width", [None, 300])
def test_every_line_that_is_printed_is_a_command(view: str, width: int | None) -> None:
    text = page(build.views()[view], replace(build.frame(build.looked_at(width=width)), shell=SHELL))
    for line in _lines(text):
        assert read(line).shared["deployment"] == "Blue"


def test_each_view_shows_the_commands_that_make_its_changes() -> None:
    views = build.views()
    paths = {
        name: {read(line).path for line in _lines(page(views[name], build.frame())) if "report" not in line}
        for name in ("events", "unit", "runs", "fleets", "live")
    }
    assert paths["events"] == {"halt", "unleash"}
    assert paths["unit"] == {"opt-out", "opt-in", "set", "why"}
    assert paths["live"] == {"bench watch", "bench stop"}
    assert paths["runs"] == {"bench status", "bench stop", "bench results"}
    assert paths["fleets"] == {"fleet status", "fleet jobs", "fleet scale", "fleet down"}


def _lines(text: str) -> list[str]:
    return [html.unescape(line) for line in re.findall(r"<code>(.*?)</code>", text, re.DOTALL)]
