"""Implements `troop leash`, `unleash`, `halt`, `resume`, `reaper` and `schedules`, which change the switch."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.chaos.switch import describe, who_and_why
from cli.client.connection import Connection, connection
from cli.shared import show
from cli.shared.context import confirm
from cli.shared.errors import CliError, Exit
from troop.shared import values
from troop.shared.formatting import counted
from troop.shared.outputs import STATE_TABLE
from troop.shared.state_keys import REAPER_OFF, SCHEDULES_OFF

if TYPE_CHECKING:
    from cli.client.deployment import Deployment

Reason = Annotated[
    str | None,
    typer.Option(help="The reason, recorded with caller and time.", callback=lambda reason: _checked(reason)),
]
AsJson = Annotated[bool, typer.Option("--json", help="The switch as one JSON document.")]
HALT_BY_HAND = (
    """--key '{"key": {"S": "switch"}}' """
    """--update-expression 'SET halted = :yes, reason = :why """
    """REMOVE changed_at, changed_by, changed_request, halt_id' """
    """--expression-attribute-values '{":yes": {"BOOL": true}, ":why": {"S": "halted by hand"}}'"""
)
"""Arguments of ``aws dynamodb update-item``. They remove the caller of the last change, who did not halt."""

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def leash(ctx: typer.Context, reason: Reason = None, as_json: AsJson = False) -> None:
    """Make chaos decide and record, but hit nothing."""
    _change(connection(ctx), {"leashed": True}, reason, as_json)


def unleash(ctx: typer.Context, reason: Reason = None, yes: Yes = False, as_json: AsJson = False) -> None:
    """Let chaos hit instances. Asks first."""
    conn = connection(ctx)
    if not yes:
        _tell_health(conn)
    confirm(f"Let {conn.deployment} hit instances from its next tick on", yes)
    _change(conn, {"leashed": False}, reason, as_json)


def halt(ctx: typer.Context, reason: Reason = None, as_json: AsJson = False) -> None:
    """Stop all chaos at once, even decisions."""
    _change(connection(ctx), {"halted": True}, reason, as_json)


def resume(ctx: typer.Context, reason: Reason = None, yes: Yes = False, as_json: AsJson = False) -> None:
    """End a halt. Asks first."""
    conn = connection(ctx)
    if not yes:
        switch = conn.client.switch()
        if halt := switch.get("itself"):
            show.note(f"it has halted itself, {who_and_why(switch)}; {_broken(halt['events'])}", style="bold yellow")
        leashed = switch["leashed"]
        show.note("it is leashed: it will decide and record" if leashed else "it is unleashed: it will hit instances")
    confirm(f"Resume {conn.deployment} from its next tick on", yes)
    _change(conn, {"halted": False}, reason, as_json)


def _broken(events: Sequence[str]) -> str:
    """Returns what a person should see before resuming a deployment that has halted itself."""
    first = (
        f"`troop events {shlex.quote(events[0])}` shows the first of {counted(len(events), 'event')}, and "
        if events
        else ""
    )
    return f"{first}the broken units stay out of chaos until their owners return them"


def _switch(summary: str, field: str, off: str, on: str, question: str) -> typer.Typer:
    """Returns the commands ``off`` and ``on`` of a field of the switch. ``on`` asks first."""
    commands = typer.Typer(no_args_is_help=True, help=summary)

    @commands.command("off", help=off)
    def stop(ctx: typer.Context, reason: Reason = None, as_json: AsJson = False) -> None:
        _change(connection(ctx), {field: True}, reason, as_json)

    @commands.command("on", help=f"{on} Asks first.")
    def start(ctx: typer.Context, reason: Reason = None, yes: Yes = False, as_json: AsJson = False) -> None:
        conn = connection(ctx)
        confirm(question.format(conn.deployment), yes)
        _change(conn, {field: False}, reason, as_json)

    return commands


reaper = _switch(
    "The reaper of benchmarks, which removes what remains after runs.",
    REAPER_OFF,
    "Stop the reaper from removing anything. Runs that end still tear down, and nodes expire.",
    "Let the reaper remove what remains after runs.",
    "Let the reaper of {} remove what remains after runs",
)
schedules = _switch(
    "All schedules of benchmarks, stopped or not by one switch.",
    SCHEDULES_OFF,
    "Stop all schedules of benchmarks from starting runs. Runs that have started go on.",
    "Let schedules start runs of benchmarks.",
    "Let the schedules of {} start runs",
)


def _checked(reason: str | None) -> str | None:
    try:
        return values.text()(reason) if reason else None
    except values.BadValue as error:
        raise CliError(Exit.USAGE, f"--reason has {len(reason or '')} characters: must be {error}") from None


def _change(conn: Connection, change: dict[str, Any], reason: str | None, as_json: bool) -> None:
    try:
        switch = conn.client.change_switch(change | ({"reason": reason} if reason else {}))
    except CliError as error:
        stops_chaos = change.get("halted") or change.get("leashed")
        if error.code not in (Exit.API_FAILED, Exit.UNREACHABLE) or not stops_chaos:
            raise
        raise CliError(error.code, f"{error}\nTo halt it without the API:\n{_by_hand(conn.deployment)}") from error
    if as_json:
        show.document(switch)
    else:
        show.say(f"{conn.deployment}: {describe(switch)}")


def _by_hand(deployment: Deployment) -> str:
    """Returns the runbook's command, which needs neither the API nor Lambda."""
    table = deployment.outputs.get(STATE_TABLE, "STATE-TABLE")
    return f"aws --region {deployment.region} dynamodb update-item --table-name {table} {HALT_BY_HAND}"


def _tell_health(conn: Connection) -> None:
    try:
        health = conn.client.health()
    except CliError as error:
        show.note(f"its health is unknown: {error}", style="yellow")
        return
    bad = [check["name"] for check in health["checks"] if check["status"] != "ok"]
    if bad:
        show.note(f"its health is {health['status']} ({', '.join(bad)}): `troop doctor` shows details", style="yellow")
