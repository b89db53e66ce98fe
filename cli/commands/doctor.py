"""Implements `troop doctor`: prints every health check of the deployment, and what to do about those that fail."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.chaos import malformed
from cli.chaos.switch import describe
from cli.client.connection import connection
from cli.shared import show
from cli.shared.errors import Exit


def doctor(
    ctx: typer.Context,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 on warnings, too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Check the health of the deployment. Exit with 0 if all checks pass, with 1 if one fails."""
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
