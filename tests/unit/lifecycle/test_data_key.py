"""`make deploy` refuses a key that cannot be used, and retained tables with another one."""

from __future__ import annotations

import pytest

from cli.shared.errors import CliError
from tests.unit.lifecycle.world import AWS_KEY, KEY, Printed, Run, World, old

OTHER = KEY.replace("01234567", "76543210")
SETTING = f"troop:key={KEY}"


def steps(world: World) -> list[str]:
    return [arguments[0] for arguments in world.done]


def test_a_usable_key_is_named_before_the_question(run: Run, world: World, capsys: Printed) -> None:
    run(SETTING, typed="y\n")
    before, _ = capsys.readouterr().out.split("[y/N]")
    assert f"The key {KEY} encrypts its data" in before
    assert "Warning" not in before
    assert steps(world) == ["synth", "deploy"]


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({"KeyState": "PendingDeletion"}, "KeyState is PendingDeletion, not Enabled"),
        ({"KeySpec": "RSA_2048", "KeyUsage": "SIGN_VERIFY"}, "KeyUsage is SIGN_VERIFY.*KeySpec is RSA_2048"),
    ],
)
def test_a_key_that_encrypts_nothing_is_refused(run: Run, world: World, metadata: dict[str, str], why: str) -> None:
    world.keys = {KEY: metadata}
    with pytest.raises(CliError, match=why):
        run(SETTING, yes=True)
    assert world.done == []


def test_a_key_that_does_not_exist_is_refused(run: Run, world: World) -> None:
    world.keys = {}
    with pytest.raises(CliError, match="there is no such key"):
        run(SETTING, yes=True)
    assert world.done == []


def test_a_key_that_cannot_be_checked_is_a_warning(run: Run, world: World, capsys: Printed) -> None:
    world.refuses = {"describe_key": "AccessDeniedException"}
    run(SETTING, yes=True)
    assert "Warning: cannot check that key" in capsys.readouterr().out
    assert steps(world) == ["synth", "deploy"]


@pytest.mark.parametrize(
    ("settings", "table_key", "named"),
    [
        ((SETTING,), AWS_KEY, "a key of AWS"),
        ((SETTING,), None, "a key of AWS"),
        ((SETTING,), OTHER, OTHER),
        ((), OTHER, OTHER),
    ],
)
def test_retained_tables_with_another_key_are_refused(
    run: Run, world: World, settings: tuple[str, ...], table_key: str | None, named: str
) -> None:
    world.keys = {KEY: {}, OTHER: {}}
    world.retained, world.key_of_tables = [old("Troop-State-1")], table_key
    with pytest.raises(CliError, match=f"Troop-State-1: {named}.*second deployment.*ADOPT=none"):
        run(*settings, yes=True)
    assert steps(world) == ["synth"], "nothing is taken over"
    world.done.clear()
    run(*settings, yes=True, adopt="none")
    assert steps(world) == ["synth", "tag", "deploy"]


@pytest.mark.parametrize(("settings", "table_key"), [((SETTING,), KEY), ((), AWS_KEY), ((), None)])
def test_retained_tables_with_the_same_key_are_taken_over(
    run: Run, world: World, settings: tuple[str, ...], table_key: str | None
) -> None:
    world.retained, world.key_of_tables = [old("Troop-State-1")], table_key
    run(*settings, yes=True)
    assert steps(world) == ["synth", "adopt", "deploy"]
