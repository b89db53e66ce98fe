"""Implements `troop changes`: who changed policies and the switch, newest first."""

from __future__ import annotations

from operator import itemgetter
from typing import Annotated, Any

import typer

from cli.chaos.changes import in_words, subject, who
from cli.chaos.events import check_names
from cli.client.client import TroopClient
from cli.client.connection import connection
from cli.client.everywhere import Table, everywhere, finish
from cli.shared import listings, show, times, watching
from cli.shared.errors import CliError, Exit
from cli.shared.listings import Column
from cli.shared.watching import Watch

_COLUMNS = (
    Column("when", lambda change: show.moment(change["at"]), lambda change: change["at"]),
    Column("what", subject),
    Column("by", lambda change: who(change["caller"])),
    Column("caller", lambda change: change["caller"], wide=True),
    Column("change", in_words),
)


def changes(
    ctx: typer.Context,
    unit: Annotated[str | None, typer.Option(help="Only changes of this unit's policy.")] = None,
    switch: Annotated[bool, typer.Option("--switch", help="Only changes of the switch.")] = False,
    since: Annotated[
        str | None, typer.Option(help="From then on: 2026-11-20, 2026-11-20T14:00, yesterday, 2d or 3h.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Before then, in the same formats.")] = None,
    sort: listings.Sort = None,
    reverse: listings.Reverse = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Show at most this many changes.")] = 25,
    watch: Watch = None,
    output: listings.Output = None,
    as_json: listings.AsJson = False,
) -> None:
    """Show who changed policies and the switch, when, and from what to what, newest first."""
    form, all_of_them = listings.form_of(output, as_json), everywhere(ctx)
    if unit and switch:
        raise CliError(Exit.USAGE, "--switch is of the whole deployment: remove it, or --unit")
    if sort is not None:
        listings.by(_COLUMNS, sort)

    def query() -> dict[str, str]:
        """Returns the query; ages depend on the time of each look."""
        now = times.now()
        bounds = {"since": times.moment_of("--since", since, now), "until": times.moment_of("--until", until, now)}
        values = {"unit": unit, "switch": "true" if switch else None, **bounds}
        return {key: value for key, value in values.items() if value}

    query()  # refuses wrong options before it connects

    def fetch(client: TroopClient) -> list[dict[str, Any]]:
        rows = client.changes(query(), limit)
        if not rows:
            check_names(client, None, unit)
        return listings.ordered(rows, _COLUMNS, sort, reverse)

    if all_of_them:
        table = Table(_COLUMNS, itemgetter("changes"), ("by",), sort, reverse, newest=True, empty="no changes match")
        finish(all_of_them.show(form, lambda conn: {"changes": fetch(conn.client)}, table=table, watch=watch))
        return
    client = connection(ctx).client

    def tell(rows: list[dict[str, Any]]) -> None:
        if rows or listings.is_for_programs(form):
            listings.tell(form, _COLUMNS, rows, {"changes": rows}, drop=("by",), repeated=watch is not None)
        else:
            show.note("no changes match")

    watching.repeat(watch, lambda: fetch(client), tell)
