"""Implements `troop doctor`: prints every health check of the deployment, and what to do about those that fail."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Annotated, Any

import typer

from cli.chaos import malformed
from cli.chaos.switch import describe
from cli.client.client import TroopClient
from cli.client.connection import connection
from cli.client.everywhere import PART_SECONDS, Table, everywhere, finish
from cli.shared import listings, show
from cli.shared.errors import Exit
from cli.shared.listings import Column
from troop.shared import zones
from troop.shared.formatting import counted

_COLUMNS = (
    Column("", lambda check: check["status"]),
    Column("check", lambda check: check["name"]),
    Column("is", lambda check: check["value"]),
    Column("should be", lambda check: check["threshold"]),
    Column("", lambda check: show.timed(check["detail"])),
)


def doctor(
    ctx: typer.Context,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 on warnings, too.")] = False,
    output: listings.Output = None,
    as_json: listings.AsJson = False,
) -> None:
    """Check the health of the deployment. Exit with 0 if all checks pass, with 1 if one fails.

    For each finding, prints what to do, the commands for it, which have the deployment's own names, and the entry of
    the runbook.
    """
    form, bad = listings.form_of(output, as_json), {"fail", "warn"} if strict else {"fail"}
    if all_of_them := everywhere(ctx):
        table = Table((*_COLUMNS, Column("to do", itemgetter("todo"))), _findings, ("should be", "is"))
        replies = all_of_them.show(
            form, lambda conn: _health(conn.client, PART_SECONDS), table=table, sentence=_summary
        )
        finish(replies, any(one.answer["status"] in bad for one in replies if one.answer))
        return
    conn = connection(ctx)
    health = _health(conn.client)
    if listings.is_for_programs(form):
        listings.write(form, health["checks"], health)
    else:
        show.say(f"{conn.deployment}: {describe(conn.client.switch())}")
        listings.tell(form, _COLUMNS, health["checks"], {}, drop=("should be", "is"))
        for check in _findings(health):
            _tell(check)
    if health["status"] in bad:
        raise typer.Exit(Exit.FAILED)


def _health(client: TroopClient, seconds: float | None = None) -> dict[str, Any]:
    """Returns the answer of GET /health with the checks that the command makes itself.

    Args:
        seconds: the time for the check of all units.
    """
    health = client.health()
    health["checks"] += [_check_time_zones(health.get("time_zones")), malformed.check(client, seconds)]
    grades = {check["status"] for check in health["checks"]}
    health["status"] = next((grade for grade in ("fail", "warn") if grade in grades), "ok")
    return health


def _findings(health: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [check for check in health["checks"] if check["status"] != "ok"]


def _summary(health: Mapping[str, Any]) -> str:
    findings = len(_findings(health))
    return f"{health['status']}: {counted(findings, 'finding')} in {counted(len(health['checks']), 'check')}"


def _tell(check: Mapping[str, Any]) -> None:
    """Prints a finding. An older API has neither commands nor entries of the runbook."""
    entry = check.get("runbook")
    show.say(f"\n{check['name']}: {check['todo']}" + (f"; see {entry}" if entry else ""))
    for command in check.get("commands") or ():
        show.say(f"  {command}")


def _check_time_zones(deployed: str | None) -> dict[str, Any]:
    """Returns the check in the form of GET /health.

    Args:
        deployed: the functions' release of the IANA time zones, such as ``2026f``; None if they do not tell it.
    """
    base: dict[str, Any] = {"name": "time-zones-here", "value": None, "threshold": 0}
    if deployed == zones.VERSION:
        return base | {"status": "ok", "value": 0, "detail": f"as in the functions: {deployed}", "todo": ""}
    detail = f"this command has {zones.VERSION}, the functions have {deployed or 'an unknown release'}"
    todo = "plans and the page can differ from what happens: "
    if deployed and deployed > zones.VERSION:  # a year and a letter sort by age
        todo, command = todo + "update the package tzdata of this command", "pip install --upgrade tzdata"
    else:
        todo, command = todo + "deploy again with this version", "make deploy KEEP=1"
    return base | {"status": "warn", "value": 1, "detail": detail, "todo": todo, "commands": [command]}
