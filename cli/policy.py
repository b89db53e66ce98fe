"""`troop opt-out`, `opt-in` and `set`: the policy of one unit, as its item in the table GroupTags holds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from cli import show
from cli.client import TroopClient
from cli.context import connection
from cli.errors import CliError, Exit
from cli.groups import lapse, missing_alarms, protection
from cli.policy_values import KEYS, OVER, BadPolicy, assignments, normal, over

AsJson = Annotated[bool, typer.Option("--json", help="The unit afterwards, as one JSON document.")]
Unit = Annotated[str, typer.Argument(help="A unit, or a group by its name.")]
Ahead = Annotated[bool, typer.Option("--ahead", help="Also for a unit that does not exist yet.")]

AHEAD_HINT = "`troop groups` lists those there are; --ahead sets it for one that is still to come"


def opt_out(
    ctx: typer.Context,
    unit: Unit,
    reason: Annotated[str | None, typer.Option(help="Shown wherever the unit is left alone.")] = None,
    until: Annotated[str | None, typer.Option(help="The last day of it, YYYY-MM-DD; else it has no end.")] = None,
    owner: Annotated[str | None, typer.Option(help="Whose unit it is.")] = None,
    ahead: Ahead = False,
    as_json: AsJson = False,
) -> None:
    """Keep a unit out of chaos, at once."""
    client = connection(ctx).client
    # What an earlier opt-out left behind must not cut this one short, or explain it.
    changes = {"opt_out": True, "until": _checked("until", until), "reason": _checked("reason", reason)}
    if day := over(changes):
        raise CliError(Exit.USAGE, f"--until is {day}, which is over: {OVER}")
    if owner:
        changes["owner"] = _checked("owner", owner)
    _finish(_change(client, unit, changes, ahead), as_json)


def opt_in(ctx: typer.Context, unit: Unit, ahead: Ahead = False, as_json: AsJson = False) -> None:
    """Let chaos touch a unit, and put it back if it has not recovered from its last termination."""
    client = connection(ctx).client
    changes: dict[str, Any] = {"opt_in": True, "opt_out": None, "until": None, "reason": None}
    before = _before(client, unit, ahead)
    if before and before["unrecovered"]:
        show.note(f"{before['unit']} has not recovered from {lapse(before)}: this puts it back into chaos")
        changes["unrecovered"] = False
    after = client.change_unit(before["unit"] if before else unit, changes)
    if after["problems"] and not as_json:
        show.note("recorded; but opting in mends no malformed value, and until that is mended it is left alone", "red")
    _finish(after, as_json)


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
    changes = assignments(values)
    _finish(_change(connection(ctx).client, unit, changes, ahead), as_json)


def _checked(key: str, value: str | None) -> Any:
    """None, which removes the key, or the value as the API takes it."""
    if value is None:
        return None
    try:
        return normal(key, value)
    except BadPolicy as error:
        raise CliError(Exit.USAGE, f"--{error}") from None


def _before(client: TroopClient, unit: str, ahead: bool) -> dict[str, Any] | None:
    """The unit as it is; None only for one that may be set ahead."""
    # An opt-out under a misspelt name would protect nothing, and nobody would know.
    before = client.unit(unit) if ahead else client.known_unit(unit, AHEAD_HINT)
    if before and before["unit"] != unit:
        show.note(f"{unit} belongs to the unit {before['unit']}: that is what is changed")
    return before


def _change(client: TroopClient, unit: str, changes: Mapping[str, Any], ahead: bool) -> dict[str, Any]:
    before = _before(client, unit, ahead)
    return client.change_unit(before["unit"] if before else unit, changes)


def _finish(unit: dict[str, Any], as_json: bool) -> None:
    if as_json:
        show.document(unit)
        return
    for words in missing_alarms(unit):
        show.note(words, style="red")
    policy = unit["policy"]
    part = policy.get("takes_part") if policy else None
    if tag := protection(unit):
        show.say(f"{unit['unit']} is left alone ({tag}), whatever its policy says: this holds when the tag is gone")
    elif unit["problems"]:
        show.say(
            f"{unit['unit']} is left alone, as its policy is malformed: {'; '.join(unit['problems'])}", style="red"
        )
    elif unit["unrecovered"]:
        show.say(f"{unit['unit']} is left alone until it is put back: it has not recovered from {lapse(unit)}")
    elif not part or not unit["groups"]:
        show.say(f"{unit['unit']}: recorded, for when a group of that unit exists")
    elif part["value"]:
        probability = policy["probability"]["value"]
        show.say(f"{unit['unit']} takes part ({part['source']}), with probability {probability:g} a business day")
    else:
        until = policy["until"]["value"]
        end = f" until {until}, that day included" if until else ""
        show.say(f"{unit['unit']} is left alone ({part['source']}){end}")
