"""Implements `troop leash`, `unleash`, `halt`, `resume`, `reaper` and `schedules`, which change the switch."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.chaos import halts
from cli.chaos.switch import describe, who_and_why
from cli.client.calls import NOT_STARTED
from cli.client.connection import Connection, connection
from cli.client.everywhere import MOST_AT_ONCE, SECONDS, Everywhere, Reply, everywhere, finish, merged, tell
from cli.shared import show, times
from cli.shared.context import confirm, to_type
from cli.shared.errors import CliError, Exit
from cli.shared.listings import Form
from troop.shared import values
from troop.shared.formatting import counted
from troop.shared.outputs import STATE_TABLE
from troop.shared.state_keys import HALT_ID, REAPER_OFF, SCHEDULES_OFF

if TYPE_CHECKING:
    from cli.client.deployment import Deployment
    from cli.client.deployments_file import ListedDeployment

Reason = Annotated[
    str | None,
    typer.Option(help="The reason, recorded with caller and time.", callback=lambda reason: _checked(reason)),
]
AsJson = Annotated[bool, typer.Option("--json", help="The switch as one JSON document.")]
HALT_BY_HAND = (
    """--key '{"key": {"S": "switch"}}' """
    """--update-expression 'SET halted = :yes, reason = :why """
    """REMOVE changed_at, changed_by, changed_request, halt, halt_id' """
    """--expression-attribute-values '{":yes": {"BOOL": true}, ":why": {"S": "halted by hand"}}'"""
)
"""Arguments of ``aws dynamodb update-item``. They remove the caller of the last change, who did not halt."""

_VERIFIED_WITHIN = 10.0
"""Seconds in which a deployment must say whether a halt without an answer has halted it."""

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
    if all_of_them := everywhere(ctx):
        _halt_all(ctx, all_of_them, reason, as_json)
    else:
        _change(connection(ctx), {"halted": True}, reason, as_json)


def _halt_all(ctx: typer.Context, all_of_them: Everywhere, reason: str | None, as_json: bool) -> None:
    """Halts all deployments with one id, and says at once what is known of each. Asks those again whose answer may be
    lost.
    """
    halt_id, why = halts.new_id(times.now()), {"reason": reason} if reason else {}
    unknown, shown = [one.label for one in all_of_them.deployments], set[str]()
    width, line = max(map(len, unknown)), show.note if as_json else show.say
    show.note(f"halting {counted(len(unknown), 'deployment')}; `{to_type(ctx, 'resume', '--halt', halt_id)}` ends this")

    def say(reply: Reply) -> None:
        shown.add(reply.deployment.label)
        if not reply.error:
            unknown.remove(reply.deployment.label)
        line(f"{reply.deployment.label:<{width}}  {reply.in_words(halts.in_words)}")

    def heard(reply: Reply) -> None:
        if not (reply.error and reply.connection):
            say(reply)

    try:
        replies = all_of_them.ask(lambda conn: halts.halt(conn.client, halt_id, why), SECONDS, MOST_AT_ONCE, heard)
        lost = all_of_them.among([one.deployment.label for one in replies if one.error and one.connection])
        verified = lost.ask(lambda conn: halts.verify(conn.client, halt_id), _VERIFIED_WITHIN, MOST_AT_ONCE)
        replies = merged(replies, [one for one in verified if not one.error])
        for one in replies:
            if one.deployment.label not in shown or (one.deployment.label in unknown and not one.error):
                say(one)
    except KeyboardInterrupt:
        show.note(f"not known to be halted: {', '.join(unknown)}; see docs/guides/runbook.md#{NOT_STARTED}", "bold red")
        raise
    if as_json:
        tell(Form.JSON, replies, halt_id=halt_id)
    for one in replies:
        if one.error:
            by_hand = f" docs/guides/runbook.md#{NOT_STARTED}"
            if one.connection:
                by_hand = f"{_as_role(one.deployment)}\n{_by_hand(one.connection.deployment, one.deployment.profile)}"
            show.note(f"To halt {one.deployment.label} without the API:{by_hand}", style="bold red")
    finish(replies, any(one.answer["outcome"] == halts.OTHERWISE for one in replies if one.answer))


def _as_role(listed: ListedDeployment) -> str:
    """Returns which role must be assumed before a command by hand; "" without one."""
    external_id = f" with the external id {listed.external_id}" if listed.external_id else ""
    return f" assume the role {listed.role}{external_id}, then" if listed.role else ""


def resume(
    ctx: typer.Context,
    halt_id: Annotated[
        str | None, typer.Option("--halt", metavar="ID", help="Only the halt with this id, which `--all halt` printed.")
    ] = None,
    reason: Reason = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """End a halt. Asks first.

    With --all, ends only the halt of one `troop --all halt`. Any other halt stays, and is listed with who and why.
    """
    if all_of_them := everywhere(ctx):
        _resume_all(all_of_them, halt_id, reason, yes, as_json)
        return
    conn = connection(ctx)
    if not yes:
        switch = conn.client.switch()
        if halt := switch.get("itself"):
            show.note(f"it has halted itself, {who_and_why(switch)}; {_broken(halt['events'])}", style="bold yellow")
        elif switch["halted"] and (shared := switch.get(HALT_ID)):
            show.note(f"it is halted with other deployments: `troop resume --all --halt {shared}` resumes all of them")
        leashed = switch["leashed"]
        show.note("it is leashed: it will decide and record" if leashed else "it is unleashed: it will hit instances")
    confirm(f"Resume {conn.deployment} from its next tick on", yes)
    _change(conn, {"halted": False} | ({HALT_ID: halt_id} if halt_id else {}), reason, as_json)


def _resume_all(all_of_them: Everywhere, halt_id: str | None, reason: str | None, yes: bool, as_json: bool) -> None:
    """Resumes the deployments that show the id, or the only id that they show.

    Raises:
        CliError: USAGE, if they show several ids; REFUSED, if they do not show the given one.
    """
    replies = all_of_them.ask(lambda conn: halts.standing(conn.client.switch()))
    halted: dict[str, list[str]] = {}
    for one in replies:
        if shown := one.answer and one.answer["switch"].get(HALT_ID):
            halted.setdefault(shown, []).append(one.deployment.label)
    if halt_id is None and len(halted) > 1:
        ids = "; ".join(f"{shown} of {', '.join(labels)}" for shown, labels in halted.items())
        raise CliError(Exit.USAGE, f"there are several halts of many deployments, choose one with --halt: {ids}")
    halt_id = halt_id or next(iter(halted), None)
    if labels := halted.get(halt_id or ""):
        confirm(f"Resume {', '.join(labels)} from the next tick on, halted by {halt_id}", yes)
        why = {"reason": reason} if reason else {}
        resumed = all_of_them.among(labels).ask(lambda conn: halts.resume(conn.client, str(halt_id), why))
        replies = merged(replies, resumed)
    tell(Form.JSON if as_json else Form.TABLE, replies, sentence=halts.in_words, halt_id=halt_id)
    if not labels:
        show.note(f"no deployment is halted by {halt_id or '`troop --all halt`'}", style="yellow")
    finish(replies, failed=not labels and halt_id is not None)


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


def _by_hand(deployment: Deployment, profile: str | None = None) -> str:
    """Returns the runbook's command, which needs neither the API nor Lambda."""
    own = f" --profile {shlex.quote(profile)}" if profile else ""
    table = deployment.outputs.get(STATE_TABLE, "STATE-TABLE")
    return f"aws{own} --region {deployment.region} dynamodb update-item --table-name {table} {HALT_BY_HAND}"


def _tell_health(conn: Connection) -> None:
    try:
        health = conn.client.health()
    except CliError as error:
        show.note(f"its health is unknown: {error}", style="yellow")
        return
    bad = [check["name"] for check in health["checks"] if check["status"] != "ok"]
    if bad:
        show.note(f"its health is {health['status']} ({', '.join(bad)}): `troop doctor` shows details", style="yellow")
