"""Implements `troop policy`: exports and imports policies as a YAML file, and compares two stages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from cli.chaos import overview
from cli.chaos.units import AHEAD_HINT
from cli.client.client import TroopClient
from cli.client.connection import connection
from cli.policies import files as policy_files
from cli.policies.export import exported
from cli.policies.files import UnitChange
from cli.policies.values import item_policy, past_opt_out
from cli.shared import show, yaml_files
from cli.shared.context import confirm
from cli.shared.errors import CliError, Exit
from cli.shared.lazy import LazyGroup
from troop.shared.errors import ErrorCode
from troop.shared.formatting import counted

_OPT_OUT = ("opt_out", "until")


class Commands(LazyGroup):
    """The commands about the policies of many units."""

    lazy: ClassVar = {
        "diff": ("cli.commands.policy_diff:diff", "Show how two stages differ. Needs AWS only with --deployed."),
    }


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    help="Policies of many units as one YAML file; differences between stages.",
)


@app.command("export")
def export(
    ctx: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of YAML.")] = False,
) -> None:
    """Print what people have set in the table GroupTags, including units without a group."""
    conn = connection(ctx)
    units = exported(conn.client)
    _tell_strays(conn.client)
    if as_json:
        show.document({"units": units})
    else:
        comment = f"Policy of {conn.deployment}, as set in the table GroupTags.\nTo apply: troop policy import FILE"
        typer.echo(policy_files.dump(units, comment), nl=False)


def _tell_strays(client: TroopClient) -> None:
    try:
        stray = overview.strays(client.health())
    except CliError as error:
        show.note(f"whether every item has a unit is not known: {error}", style="yellow")
        return
    if stray:
        show.note(f"items that have no effect: {stray['detail']}", style="yellow")


@app.command("import")
def import_file(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="A file as export prints it; - for stdin.", allow_dash=True)],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the difference; change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    ahead: Annotated[
        bool, typer.Option("--ahead", help="Allow units that have neither a group nor an item yet.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The changes as one JSON document.")] = False,
) -> None:
    """Give each unit in the file exactly the policy in the file; other units stay as they are.

    Shows the difference first, and asks. If a unit fails, reports it and continues with the others.
    """
    policies = policy_files.load(yaml_files.read(file))
    client = connection(ctx).client
    plan, failed = _plan(client, policies, ahead)
    if not as_json:
        _show(plan, failed)
    changing = [change for change in plan if change.changes]
    if changing and not dry_run:
        confirm(f"Change {len(changing)} of {counted(len(policies), 'unit')}", yes)
        for n, change in enumerate(plan):
            if not change.changes:
                continue
            try:
                plan[n] = _send(client, change, policies[change.unit])
                if not as_json:
                    show.say(f"{change.unit}: {'changed' if plan[n].changes else 'not changed'}")
            except CliError as error:
                failed[change.unit] = str(error)
                if not as_json:
                    show.note(f"{change.unit}: not changed: {error}", style="red")
    if as_json:
        show.document({"dry_run": dry_run, "units": _report(plan, failed, dry_run)})
    elif not changing and not failed:
        show.say("nothing to change")
    if failed:
        raise CliError(
            Exit.FAILED, f"{len(failed)} of {counted(len(policies), 'unit')} failed: {', '.join(sorted(failed))}"
        )


def _plan(
    client: TroopClient, policies: Mapping[str, dict[str, Any]], ahead: bool
) -> tuple[list[UnitChange], dict[str, str]]:
    """Returns the changes, and the units whose changes cannot be determined, with the reason."""
    plan, failed = [], {}
    for unit, policy in policies.items():
        try:
            record = client.unit(unit) if ahead else client.known_unit(unit, AHEAD_HINT)
            if record and record["unit"] != unit:
                raise CliError(Exit.NO_SUCH_UNIT, f"{unit} is a group of the unit {record['unit']}: name the unit")
        except CliError as error:
            if error.code not in (Exit.NO_SUCH_UNIT, Exit.REFUSED, Exit.API_FAILED, Exit.FORBIDDEN):
                raise  # every unit would fail in the same way
            failed[unit] = str(error)
            continue
        stored = item_policy(record["item"]) if record else {}
        if (until := past_opt_out(policy)) and any(stored.get(key) != policy.get(key) for key in _OPT_OUT):
            policy = _without_opt_out(unit, policy, until)
        plan.append(policy_files.compare(unit, stored, policy, record["version"] if record else None))
    return plan, failed


def _without_opt_out(unit: str, policy: Mapping[str, Any], until: str) -> dict[str, Any]:
    """Returns the policy without an opt-out that is over: it would have no effect, and the API refuses it."""
    show.note(f"{unit}: its opt-out ended on {until} and is omitted: the unit takes part as without it")
    return {k: value for k, value in policy.items() if k not in _OPT_OUT or (k == "opt_out" and value is False)}


def _send(client: TroopClient, change: UnitChange, policy: Mapping[str, Any]) -> UnitChange:
    """Makes a change and returns it. Omits an opt-out that is over on the unit's calendar only.

    Args:
        policy: the unit's policy in the file.

    Raises:
        CliError: the change failed.
    """
    body = change.patch()
    try:
        client.change_unit(change.unit, body)
    except CliError as error:
        until = past_opt_out(body, somewhere=True)
        if until is None or error.api_code != ErrorCode.OPT_OUT_OVER:
            raise
        stored = {**policy, **{key: old for key, (old, _) in change.changes.items()}}
        rest = policy_files.compare(change.unit, stored, _without_opt_out(change.unit, policy, until), change.version)
        if rest.changes:
            client.change_unit(rest.unit, rest.patch())
        return rest
    return change


def _show(plan: list[UnitChange], failed: Mapping[str, str]) -> None:
    for change in plan:
        for key, (old, new) in change.changes.items():
            show.say(f"{change.unit}: {key}: {show.plain(old)} -> {show.plain(new)}")
    for unit, message in failed.items():
        show.note(f"{unit}: {message}", style="red")


def _report(plan: list[UnitChange], failed: Mapping[str, str], dry_run: bool) -> list[dict[str, Any]]:
    done = "would-change" if dry_run else "changed"
    report = []
    for change in plan:
        status = "failed" if change.unit in failed else done if change.changes else "unchanged"
        report.append(change.as_json() | {"status": status, "message": failed.get(change.unit, "")})
    missing = [unit for unit in failed if unit not in {change.unit for change in plan}]
    report += [{"unit": u, "changes": {}, "status": "failed", "message": failed[u]} for u in missing]
    return report
