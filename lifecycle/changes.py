"""Prints which settings a deployment changes, and asks before it resets those of an earlier command."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from cli.shared.errors import CliError, Exit
from infra.settings import PREFIX
from infra.settings_record import Change, Record, changes, override, overrides_of, record, uncompared
from lifecycle.console import answer, say
from lifecycle.project import settings_with
from troop.shared.stages import STAGE


def with_deployed(name: str, deployed: Record | None, overrides: Sequence[str]) -> list[str]:
    """Returns the overrides, and those of the deployment that they lack, as ``KEY=VALUE``.

    Args:
        name: the deployment's.
        deployed: None if the deployment has no record.
        overrides: of the command line.

    Raises:
        CliError: FAILED without a record; USAGE, if cdk.json does not allow the settings together.
    """
    if deployed is None:
        raise CliError(Exit.FAILED, f"{_no_record(name)}: nothing to keep. Deploy without KEEP")
    together = list(overrides)
    while resets := _resets(deployed, record(settings_with(together, name)), together):
        # The stage first: its values need no override.
        stage = [change for change in resets if change.key == STAGE]
        together += [override(change) for change in stage or resets]
    return together


def _resets(deployed: Record, new: Record, overrides: Sequence[str]) -> list[Change]:
    return [change for change in changes(deployed, new, _keys(overrides)) if change.is_reset]


def _keys(overrides: Sequence[str]) -> frozenset[str]:
    """Returns the keys of the settings in ``KEY=VALUE``, without prefix."""
    return frozenset(one.partition("=")[0].removeprefix(PREFIX) for one in overrides)


def command_for(name: str, settings: Record | None) -> str:
    """Returns the command that makes a deployment with these settings, where cdk.json does not have them.

    Args:
        settings: None if they are not on record.
    """
    overrides = overrides_of(settings) if settings else []
    options = " ".join(f"-c {shlex.quote(one)}" for one in overrides).replace("$", "$$")  # make expands $
    return f"make deploy DEPLOYMENT={name}" + (f" ARGS={shlex.quote(options)}" if options else "")


def confirm_changes(
    name: str, deployed: Record | None, new: Record | None, overrides: Sequence[str], *, reset: bool, yes: bool
) -> None:
    """Prints the settings that change, and asks for the name of the deployment if some are reset.

    Args:
        deployed, new: the records of the deployed and the new template; None without one.
        overrides: of the command line, as ``KEY=VALUE``.
        reset: whether the caller has confirmed resets in advance.
        yes: whether the caller has asked for no question.

    Raises:
        CliError: NOT_CONFIRMED.
    """
    if deployed is None or new is None:
        say(f"Warning: {_no_record(name)}, so this cannot show which ones change.")
        resets, how = "all settings of earlier commands", "add RESET=1 if cdk.json and this command have all of them"
    else:
        differing = changes(deployed, new, _keys(overrides))
        _say(differing)
        if missing := uncompared(deployed, new):
            say(f"An older version deployed it, and did not record these settings: {', '.join(missing)}.")
        resets = ", ".join(PREFIX + change.key for change in differing if change.is_reset)
        if not resets:
            return
        perhaps = "perhaps " if deployed.overrides is None else ""
        say(
            f"An earlier command {perhaps}set {resets} with -c, STAGE or an app's code, and this one does not. So the "
            "values of cdk.json return. KEEP=1 keeps the deployed ones."
        )
        how = "add KEEP=1 to keep the deployed values, or RESET=1 to reset them"
    if reset:
        return
    unconfirmed = f"this would reset {resets}, and YES=1 does not confirm that: {how}"
    if yes:
        raise CliError(Exit.NOT_CONFIRMED, unconfirmed)
    if answer(f"Type the deployment's name to reset {resets}: ", unconfirmed) != name:
        raise CliError(Exit.NOT_CONFIRMED, f"the name is not {name}: nothing was changed")


def say_differences(label: str, there: Record, new: Record) -> None:
    """Prints the settings that differ from those of another deployment."""
    differing = [change for change in changes(there, new, ()) if change.key != STAGE]
    say(f"Settings that differ from {label}:" if differing else f"All settings are those of {label}.")
    for change in differing:
        for name, before, after in change.rows():
            say(f"  {name}: {before} there, {after} here")


def _no_record(name: str) -> str:
    return f"the template of {name} has no record of its settings"


def _say(differing: Sequence[Change]) -> None:
    if not differing:
        say("No setting changes.")
        return
    say("This changes settings:")
    for change in differing:
        notes = ", ".join(note for note in ("reset" if change.is_reset else "", change.risk) if note)
        for name, deployed, new in change.rows():
            say(f"  {name}: {deployed} -> {new}" + (f" ({notes})" if notes else ""))
