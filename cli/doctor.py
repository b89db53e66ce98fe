"""`troop doctor`: every check of the deployment's health, and what to do about each that is not well."""

from __future__ import annotations

from typing import Annotated

import typer

from cli import malformed, show
from cli.context import connection
from cli.errors import Exit
from cli.switch import describe


def doctor(
    ctx: typer.Context,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 on a warning, too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> None:
    """Check the deployment. Exit code 0 when all is well, 1 when a check fails."""
    conn = connection(ctx)
    health = conn.client.health()
    health["checks"].append(malformed.check(conn.client))
    grades = {check["status"] for check in health["checks"]}
    health["status"] = next((grade for grade in ("fail", "warn") if grade in grades), "ok")
    if as_json:
        show.document(health)
    else:
        show.say(f"{conn.deployment}: {describe(conn.client.switch())}")
        rows = [(c["status"], c["name"], c["value"], c["threshold"], c["detail"]) for c in health["checks"]]
        show.table(("", "check", "is", "should be", ""), rows)
        for check in health["checks"]:
            if check["status"] != "ok":
                show.say(f"{check['name']}: {check['todo']}")
    bad = {"fail", "warn"} if strict else {"fail"}
    if health["status"] in bad:
        raise typer.Exit(Exit.FAILED)
