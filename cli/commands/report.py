"""Implements `troop report`: writes the report of a period as one page and a JSON file."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.chaos.period_reader import Reading, read_period
from cli.client.connection import Connection, connection
from cli.client.everywhere import Everywhere, everywhere, finish, tell
from cli.shared import pages, show, times
from cli.shared.context import Options
from cli.shared.errors import CliError, Exit
from cli.shared.listings import Form
from troop.report.period_page import period_page
from troop.shared import values
from troop.shared.formatting import counted

QUARTER_DAYS = 91
"""The days of the default period: thirteen weeks, today included."""

_NOTE_SECONDS = 5.0

_ALL_WITHIN = 600.0
"""Seconds for the report of each of many deployments, which reads all events of its period."""


def report(
    ctx: typer.Context,
    first: Annotated[
        str | None,
        typer.Option("--from", metavar="DAY", help="The first day: YYYY-MM-DD, or yesterday. Default: 91 days in all."),
    ] = None,
    last: Annotated[
        str | None, typer.Option("--to", metavar="DAY", help="The last day, included. Default: today.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The page; the JSON file has its name, with .json."),
    ] = None,
    in_browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the JSON document, and write no file.")] = False,
) -> None:
    """Write a report of a period, by default the last quarter: terminations, verdicts and recoveries, by owner.

    It is one page that loads nothing, and a JSON file with the same numbers. Days are those of your clock. Reads all
    events of the period, 100 a request, and earlier ones to compare recoveries with.
    """
    if as_json and (in_browser or output):
        raise CliError(Exit.USAGE, "--json prints the document: remove --open and -o")
    if output and output.suffix == ".json":
        raise CliError(Exit.USAGE, f"-o {output} is the name of the page: let it end with .html")
    now = times.now()
    until = _day("--to", last, now.astimezone().date())
    since = _day("--from", first, until - timedelta(days=QUARTER_DAYS - 1))
    if since > until:
        raise CliError(Exit.USAGE, f"--from {since} is after --to {until}")
    if since > now.astimezone().date():
        raise CliError(Exit.USAGE, f"{since} to {until} has not begun: choose days until today")
    if all_of_them := everywhere(ctx, {"-o": output, "--open": in_browser}):
        _report_all(all_of_them, since, until, now, as_json)
        return
    conn = connection(ctx)
    document = _document(conn, read_period(conn.client, since, until, now, decision_days(ctx.obj, conn), progress()))
    if as_json:
        show.document(document)
        return
    page = output or Path(f"troop-report-{since}-{until}.html")
    data = _write(page, document, through_links=output is not None)
    show.say(document["letter"][0])
    show.say(f"the report: {page}, and {data}")
    if in_browser:
        pages.open_in_browser(page)


def _report_all(all_of_them: Everywhere, since: date, until: date, now: datetime, as_json: bool) -> None:
    """Writes a page and a JSON file for each deployment, with its label in their names; or prints one document."""

    def ask(conn: Connection) -> dict[str, Any]:
        return _document(conn, read_period(conn.client, since, until, now, None, lambda _: None))

    replies = all_of_them.ask(ask, _ALL_WITHIN)
    tell(Form.JSON if as_json else Form.TABLE, replies, sentence=lambda document: document["letter"][0])
    names = Counter[str]()
    for one in replies if not as_json else ():
        if not one.error:
            label = re.sub(r"[^A-Za-z0-9]+", "-", one.deployment.label).strip("-")
            names[label.casefold()] += 1  # some file systems ignore the case
            number = f"_{times}" if (times := names[label.casefold()]) > 1 else ""
            page = Path(f"troop-report-{since}-{until}-{label}{number}.html")
            show.say(f"the report of {one.deployment.label}: {page}, and {_write(page, one.answer)}")
    finish(replies)


def _document(conn: Connection, period: Mapping[str, Any]) -> dict[str, Any]:
    return {"deployment": conn.deployment.name, "where": str(conn.deployment), **period}


def _write(page: Path, document: Mapping[str, Any], *, through_links: bool = False) -> Path:
    """Writes a report as a page and, beside it, as a JSON file, whose path it returns."""
    data = page.with_suffix(".json")
    pages.write(data, json.dumps(document, ensure_ascii=False, indent=1).encode(), through_links=through_links)
    pages.write(page, period_page(document).encode(), through_links=through_links)
    return data


def _day(option: str, text: str | None, default: date) -> date:
    """Returns the day that an option gives.

    Raises:
        CliError: USAGE.
    """
    if text is None:
        return default
    try:
        return values.day(times.day_in_words(text, times.now()))
    except values.BadValue:
        raise CliError(Exit.USAGE, f"{option} is {text!r}: must be a day, YYYY-MM-DD, today or yesterday") from None


def decision_days(options: Options, conn: Connection) -> int | None:
    """Returns the days for which the deployment stores decisions; None if its settings cannot be read, because a report
    needs no permission for them.
    """
    from cli.forecasts import live_account  # here: it imports the AWS SDK
    from cli.shared import aws

    try:
        session = aws.make_session(options.profile, options.region)
        return live_account.deployed_settings(session, conn.deployment).chaos.decision_retention_days
    except CliError:
        return None


def progress() -> Callable[[Reading], None]:
    """Returns what tells a person every few seconds how far the events are read."""
    noted = time.monotonic()

    def tell(reading: Reading) -> None:
        nonlocal noted
        if show.has_reader() and time.monotonic() - noted > _NOTE_SECONDS:
            noted = time.monotonic()
            show.note(f"read {counted(reading.events, 'event')}, back to {reading.back_to.astimezone().date()}")

    return tell
