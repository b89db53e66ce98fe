"""Implements `troop bench schedule`, `unschedule` and `schedules`: benchmarks that run on a schedule."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from cli.bench import files as bench_files
from cli.bench.artifacts import Staging
from cli.bench.options import File, Json, Set, Sizes
from cli.client.bench_client import RefusedFileError
from cli.client.connection import connection
from cli.shared import aws, listings, show
from cli.shared.errors import CliError, Exit
from cli.shared.listings import Column
from troop.bench.admission.units import units_of
from troop.bench.definition.money import shown
from troop.bench.records import schedule as rules
from troop.shared.values import BadValue

COLUMNS = (
    Column("schedule", lambda one: one["name"]),
    Column("benchmark", lambda one: one["benchmark"] + (f" ({one['size']})" if one["size"] else "")),
    Column("when", lambda one: one["expression"] + ("" if one["time_zone"] == "UTC" else f" {one['time_zone']}")),
    Column("expected", lambda one: shown(one["expected"], one["currency"], up=True), lambda one: one["expected"]),
    Column("at most", lambda one: shown(one["most"], one["currency"], up=True), lambda one: one["most"]),
    Column("next start", lambda one: show.moment(one["next_at"] or "none"), lambda one: one["next_at"] or ""),
    Column("last start", lambda one: show.moment(one["last_at"]), lambda one: one["last_at"] or ""),
    Column("outcome", lambda one: one["last_run"] or (f"refused: {one['last_refusal']}" if one["last_at"] else "")),
    Column("created", lambda one: show.moment(one["created_at"]), lambda one: one["created_at"], wide=True),
    Column("by", lambda one: one["created_by"], wide=True),
)


def schedule(
    ctx: typer.Context,
    file: File,
    every: Annotated[str | None, typer.Option("--every", metavar="TIME", help="Such as '6 hours' or '1 day'.")] = None,
    cron: Annotated[
        str | None, typer.Option("--cron", metavar="FIELDS", help="Six fields, such as '0 3 ? * MON-FRI *'.")
    ] = None,
    at: Annotated[str | None, typer.Option("--at", metavar="TIME", help="Once, such as 2027-01-31T03:00:00.")] = None,
    zone: Annotated[str, typer.Option("--zone", metavar="ZONE", help="Time zone, such as Europe/Berlin.")] = "UTC",
    name: Annotated[str | None, typer.Option("--name", help="Name; default: that of the benchmark.")] = None,
    sizes: Sizes = None,
    changes: Set = None,
    as_json: Json = False,
) -> None:
    """Run a benchmark on a schedule.

    Uploads its files and artifacts, and starts nothing now. Each start passes the same checks as `run`, and the month's
    budget (troop:max_scheduled_cost).
    """
    expression = _expression(every, cron, at)
    try:
        rules.check_zone(zone)
    except BadValue as bad:
        raise CliError(Exit.USAGE, f"--zone {zone}: must be {bad}") from None
    try:
        rules.check_expression(expression, zone, datetime.now(UTC))
    except BadValue as bad:
        raise CliError(Exit.USAGE, f"{expression}: must be {bad}") from None
    values = bench_files.assignments(changes or [])
    size = ",".join(sizes) if sizes else None
    source = bench_files.load(file, size, values)
    name = name or source.benchmark.name
    try:
        rules.check_name(name)
    except BadValue as bad:
        raise CliError(Exit.USAGE, f"--name {name}: must be {bad}") from None
    client = connection(ctx).client.benchmarks
    session = ctx.obj.profile, ctx.obj.region
    staging = Staging(client, source.path.parent, lambda: aws.make_session(*session), show.note)
    for artifact in source.artifacts():
        staging.stage(artifact)
    request = {
        **{"name": name, "expression": expression, "time_zone": zone, "size": size},
        **{"definition": source.document, "set": dict(values), "files": source.encoded()},
    }
    if units := units_of(source.plan):
        client.permit("schedule", name, units)
    try:
        created, existed = client.create_schedule(request)
    except RefusedFileError as refused:
        raise source.refused(refused.problems) from None
    if as_json:
        show.document(created)
        return
    cost, most = (shown(created[key], created["currency"], up=True) for key in ("expected", "most"))
    state = "already exists" if existed else "is scheduled"
    show.say(f"{name} {state}: {expression} {zone}, each run {cost}, at most {most}")
    if created["next_at"]:
        show.say(f"next start: {show.moment(created['next_at'])}")
    else:
        show.note("no start is ahead: `troop bench schedules` says whether all are switched off", style="yellow")


def unschedule(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a schedule, from `troop bench schedules`.")],
    as_json: Json = False,
) -> None:
    """Remove a schedule; its runs stay."""
    removed = connection(ctx).client.benchmarks.delete_schedule(name)
    if as_json:
        show.document(removed)
    else:
        show.say(f"{name} is removed: it starts no more runs of {removed['benchmark']}")


def schedules(
    ctx: typer.Context,
    sort: listings.Sort = None,
    reverse: listings.Reverse = False,
    output: listings.Output = None,
    as_json: listings.AsJson = False,
) -> None:
    """List the schedules with their next starts and last outcomes."""
    form = listings.form_of(output, as_json)
    answer = connection(ctx).client.benchmarks.schedules()
    every: list[dict[str, Any]] = listings.ordered(answer["schedules"], COLUMNS, sort, reverse)
    if listings.is_for_programs(form):
        listings.write(form, every, {**answer, "schedules": every})
        return
    if answer["off"]:
        show.note("all schedules are switched off: `troop schedules on` switches them on", style="yellow")
    if not every:
        show.note("there are no schedules")
        return
    listings.tell(form, COLUMNS, every, {}, drop=("at most", "expected"))
    currency = every[0]["currency"]
    budget = "no limit" if answer["budget"] is None else shown(answer["budget"], currency)
    cost = "unknown" if answer["cost"] is None else shown(answer["cost"], currency, up=True)
    show.say(f"{answer['month']}: the runs so far cost at most {cost} of {budget}")


def _expression(every: str | None, cron: str | None, at: str | None) -> str:
    if [every, cron, at].count(None) != 2:
        raise CliError(Exit.USAGE, "a schedule has exactly one of --every, --cron and --at")
    if every is not None:
        if not (match := re.fullmatch(r"([1-9]\d*) (minute|hour|day)s?", every.strip())):
            raise CliError(
                Exit.USAGE, f"--every {every}: must be a number of minutes, hours or days, such as '6 hours'"
            )
        return f"rate({match[1]} {match[2]}{'' if match[1] == '1' else 's'})"
    return f"cron({' '.join(cron.split())})" if cron is not None else f"at({at})"
