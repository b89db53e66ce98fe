"""Implements `troop why`: explains why a unit was skipped on a day, or the outcome of its hit."""

from __future__ import annotations

from datetime import date
from operator import itemgetter
from typing import Annotated, Any

import typer

from cli.chaos import banner
from cli.chaos.why import explain
from cli.client.connection import Connection, connection
from cli.client.everywhere import everywhere, finish
from cli.shared import show, times
from cli.shared.errors import CliError, Exit
from cli.shared.listings import Form
from troop.shared import values


def why(
    ctx: typer.Context,
    unit: Annotated[str, typer.Argument(help="The name of a unit or group.")],
    day: Annotated[
        str | None, typer.Option(help="YYYY-MM-DD, today or yesterday; by default the unit's last day.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--ticks", "-v", help="Also show the decision of each tick of the day.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document, with every tick.")] = False,
) -> None:
    """Explain in one sentence why a unit was skipped, or the outcome of its hit."""
    requested_day = _day(day)
    now = times.now()
    if all_of_them := everywhere(ctx, {"--ticks": every}):
        form = Form.JSON if as_json else Form.TABLE

        def ask(conn: Connection) -> dict[str, Any]:
            return explain(conn.client, unit, requested_day, now).document()

        finish(all_of_them.show(form, ask, sentence=itemgetter("answer")))
        return
    client = connection(ctx).client
    tell_banner = banner.ask(client)
    explanation = explain(client, unit, requested_day, now)
    tell_banner()
    if as_json:
        show.document(explanation.document())
        return
    show.say(explanation.sentence)
    if every and explanation.decisions:
        show.table((f"time in {explanation.zone.key}", "ticks", "reason", "detail"), explanation.rows())
    today, effective_day = now.astimezone(explanation.zone).date(), explanation.day
    if requested_day is None and effective_day and effective_day < today:
        show.note(
            f"no decision about {explanation.unit} yet today, {today:%A} {today.isoformat()}: this is its last day"
        )


def _day(text: str | None) -> date | None:
    try:
        return None if text is None else values.day(times.day_in_words(text, times.now()))
    except values.BadValue as error:
        raise CliError(Exit.USAGE, f"--day is {text!r}: must be {error}") from None
