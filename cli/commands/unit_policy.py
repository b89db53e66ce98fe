"""Implements `troop opt-out`, `opt-in` and `set`: changes the policy of one unit in the table GroupTags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from cli.chaos.units import AHEAD_HINT, departure, differences, missing_alarms, outlook
from cli.client.client import TroopClient
from cli.client.connection import connection
from cli.policies.values import KEYS, OVER, BadPolicy, assignments, normal, past_opt_out
from cli.shared import show
from cli.shared.errors import CliError, Exit

AsJson = Annotated[bool, typer.Option("--json", help="The changed unit as one JSON document.")]
Unit = Annotated[str, typer.Argument(help="The name of a unit or group.")]
Ahead = Annotated[bool, typer.Option("--ahead", help="Allow a unit that does not exist yet.")]


def opt_out(
    ctx: typer.Context,
    unit: Unit,
    reason: Annotated[str | None, typer.Option(help="The reason, shown wherever the unit is skipped.")] = None,
    until: Annotated[str | None, typer.Option(help="The last day of the opt-out, YYYY-MM-DD; default: no end.")] = None,
    owner: Annotated[str | None, typer.Option(help="The owner of the unit.")] = None,
    ahead: Ahead = False,
    as_json: AsJson = False,
) -> None:
    """Opt a unit out of chaos, at once."""
    client = connection(ctx).client
    # The end and reason of an earlier opt-out must not apply to this one.
    changes = {"opt_out": True, "until": _checked("until", until), "reason": _checked("reason", reason)}
    if day := past_opt_out(changes):
        raise CliError(Exit.USAGE, f"--until is {day}, a day in the past: {OVER}")
    if owner:
        changes["owner"] = _checked("owner", owner)
    _change(client, unit, _before(client, unit, ahead), changes, as_json)


def opt_in(ctx: typer.Context, unit: Unit, ahead: Ahead = False, as_json: AsJson = False) -> None:
    """Let a unit take part, and return it to chaos if its last hit has taken it out."""
    client = connection(ctx).client
    changes: dict[str, Any] = {"opt_in": True, "opt_out": None, "until": None, "reason": None}
    before = _before(client, unit, ahead)
    if before and before["unrecovered"]:
        show.note(f"{before['unit']} {departure(before)}: this returns it to chaos")
        changes["unrecovered"] = False
    _change(client, unit, before, changes, as_json)


def set_values(
    ctx: typer.Context,
    unit: Unit,
    values: Annotated[
        list[str],
        typer.Argument(
            metavar="KEY=VALUE...",
            help="KEY= removes the key. Keys: " + ", ".join(KEYS) + ".",
            autocompletion=lambda incomplete: [f"{key}=" for key in KEYS if key.startswith(incomplete)],
        ),
    ],
    ahead: Ahead = False,
    as_json: AsJson = False,
) -> None:
    """Set or remove values of a unit's policy."""
    changes, client = assignments(values), connection(ctx).client
    _change(client, unit, _before(client, unit, ahead), changes, as_json)


def _checked(key: str, value: str | None) -> Any:
    """Returns None, which removes the key, or the value in the API's form."""
    if value is None:
        return None
    try:
        return normal(key, value)
    except BadPolicy as error:
        raise CliError(Exit.USAGE, f"--{error}") from None


def _before(client: TroopClient, unit: str, ahead: bool) -> dict[str, Any] | None:
    """Returns the unit before the change; None only for one that does not exist, with ``ahead``."""
    # An opt-out under a misspelt name would protect nothing, without notice.
    before = client.unit(unit) if ahead else client.known_unit(unit, AHEAD_HINT)
    if before and before["unit"] != unit:
        show.note(f"{unit} belongs to the unit {before['unit']}: changing that unit")
    return before


def _change(
    client: TroopClient, name: str, before: Mapping[str, Any] | None, changes: Mapping[str, Any], as_json: bool
) -> None:
    """Changes a unit; prints what has changed and then the unit's state.

    Args:
        name: what the user typed; the unit's own name if it is not known.
    """
    unit = client.change_unit(before["unit"] if before else name, changes)
    if as_json:
        show.document(unit)
        return
    for line in differences(before, unit, changes):
        show.say(line)
    for words in missing_alarms(unit):
        show.note(words, style="red")
    now, name = outlook(unit), unit["unit"]
    if not unit["groups"]:
        show.say(f"{name}: recorded; applies once a group of this unit exists")
    elif not now["takes_part"]:
        show.say(f"{name} is skipped: {now['why']}", style="red" if now["reason"] == "malformed" else "")
    else:
        probability = unit["policy"]["probability"]["value"]
        show.say(f"{name} takes part, with probability {probability:g} per business day")
        if now["why"]:
            show.say(f"not now: {now['why']}")
