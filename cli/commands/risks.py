"""Implements `troop risks` and `troop exempt`: what could make a recovery fail, and who accepts it until when."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cli.chaos import risks as words
from cli.client.connection import connection
from cli.shared import listings, show, times
from cli.shared.errors import CliError, Exit
from cli.shared.listings import Column
from troop.risks.rule import CHARGED, Severity
from troop.risks.rules import BY_NAME
from troop.shared import values

_COLUMNS = (
    Column("severity", lambda risk: risk["severity"]),
    Column("rule", lambda risk: risk["rule"]),
    Column("subject", lambda risk: risk["subject"]),
    Column("owner", lambda risk: risk["owner"] or show.NOTHING),
    Column("evidence", words.evidence),
    Column("a month", lambda risk: words.price(risk, risk["kind"] in CHARGED) or show.NOTHING),
    Column("first seen", lambda risk: risk["first_seen"][:10], lambda risk: risk["first_seen"]),
    Column("last seen", lambda risk: risk["last_seen"][:10], lambda risk: risk["last_seen"], wide=True),
    Column("confirmed by", lambda risk: risk["confirmed"] or show.NOTHING),
    Column("state", words.state),
)


def risks(
    ctx: typer.Context,
    severity: Annotated[Severity | None, typer.Option(help="Only risks of this severity.")] = None,
    owner: Annotated[str | None, typer.Option(help="Only risks of this owner.")] = None,
    unit: Annotated[str | None, typer.Option(help="Only risks of this unit.")] = None,
    rule: Annotated[str | None, typer.Option(help="Only risks by this rule.")] = None,
    exempt: Annotated[bool, typer.Option("--exempt", help="Also risks that somebody is exempt from.")] = False,
    gone: Annotated[bool, typer.Option("--gone", help="Also risks that are gone, of the last 100 days.")] = False,
    sort: listings.Sort = None,
    reverse: listings.Reverse = False,
    output: listings.Output = None,
    as_json: listings.AsJson = False,
) -> None:
    """Show what could make a recovery fail, and leftovers that cost money, the worst first. Changes nothing.

    Troop reads the account once a day; this shows what it has recorded.
    """
    form = listings.form_of(output, as_json)
    if sort is not None:
        listings.by(_COLUMNS, sort)
    if rule is not None:
        _check(rule)
    answer = connection(ctx).client.risks(gone)
    chosen = listings.same({"severity": severity and severity.value, "owner": owner, "rule": rule})
    rows = [
        risk
        for risk in words.worst_first(answer["risks"])
        if all(str(risk[key]).casefold() == value for key, value in chosen.items())
        and (exempt or not risk["exemption"])
        and unit in (None, risk["kind"] == "unit" and risk["subject"])
    ]
    rows = listings.ordered(rows, _COLUMNS, sort, reverse)
    if listings.is_for_programs(form):
        listings.write(form, rows, answer | {"risks": rows})
        return
    if rows:
        listings.tell(form, _COLUMNS, rows, {}, drop=("owner", "confirmed by"))
        for line in words.advice(answer, rows):
            show.say(line)
    else:
        show.note("no risks match")
    for line in words.remarks(answer, rows):
        show.note(line)


def exempt(
    ctx: typer.Context,
    rule: Annotated[str, typer.Argument(help="The rule, as `troop risks` names it.")],
    subject: Annotated[str, typer.Argument(help="The unit, or the id of the resource.")],
    until: Annotated[str | None, typer.Option(help="The last day, YYYY-MM-DD, at most 366 days from today.")] = None,
    reason: Annotated[str | None, typer.Option(help="Why the risk is accepted.")] = None,
    end: Annotated[bool, typer.Option("--end", help="End the exemption.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The risk as one JSON document.")] = False,
) -> None:
    """Accept a risk until a day, for a reason, or end that."""
    _check(rule)
    exemption: dict[str, Any] | None = None
    if end:
        if until or reason:
            raise CliError(Exit.USAGE, "--end ends an exemption: leave out --until and --reason")
    elif not (until and reason and reason.strip()):
        raise CliError(Exit.USAGE, "an exemption needs --until DAY and --reason TEXT")
    else:
        exemption = {"reason": reason, "until": _day(until)}
    risk = connection(ctx).client.exempt(rule, subject, exemption)
    if as_json:
        show.document(risk)
    else:
        show.say(f"{subject} is no longer exempt from {rule}" if end else f"{subject}: {rule} {words.state(risk)}")


def _check(rule: str) -> None:
    """Checks that a rule exists.

    Raises:
        CliError: USAGE.
    """
    if rule not in BY_NAME:
        raise CliError(Exit.USAGE, f"there is no rule {rule!r}: it must be {values.spelling(rule, tuple(BY_NAME))}")


def _day(text: str) -> str:
    try:
        return values.day(times.day_in_words(text, times.now())).isoformat()
    except values.BadValue:
        raise CliError(Exit.USAGE, f"--until is {text!r}: must be a day, YYYY-MM-DD") from None
