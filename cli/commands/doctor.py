"""Implements `troop doctor`: prints every health check of the deployment, and what to do about those that fail."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.chaos import malformed, time_zones
from cli.chaos.switch import describe
from cli.client.connection import connection
from cli.shared import listings, show
from cli.shared.errors import Exit
from cli.shared.listings import Column

_COLUMNS = (
    Column("", lambda check: check["status"]),
    Column("check", lambda check: check["name"]),
    Column("is", lambda check: check["value"]),
    Column("should be", lambda check: check["threshold"]),
    Column("", lambda check: check["detail"]),
)


def doctor(
    ctx: typer.Context,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 on warnings, too.")] = False,
    output: listings.Output = None,
    as_json: listings.AsJson = False,
) -> None:
    """Check the health of the deployment. Exit with 0 if all checks pass, with 1 if one fails."""
    form = listings.form_of(output, as_json)
    conn = connection(ctx)
    health = conn.client.health()
    health["checks"] += [time_zones.check(health.get("time_zones")), malformed.check(conn.client)]
    grades = {check["status"] for check in health["checks"]}
    health["status"] = next((grade for grade in ("fail", "warn") if grade in grades), "ok")
    if listings.is_for_programs(form):
        listings.write(form, health["checks"], health)
    else:
        show.say(f"{conn.deployment}: {describe(conn.client.switch())}")
        listings.tell(form, _COLUMNS, health["checks"], {}, drop=("should be", "is"))
        for check in health["checks"]:
            if check["status"] != "ok":
                show.say(f"{check['name']}: {check['todo']}")
    bad = {"fail", "warn"} if strict else {"fail"}
    if health["status"] in bad:
        raise typer.Exit(Exit.FAILED)
