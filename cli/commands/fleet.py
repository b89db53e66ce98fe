"""Implements `troop fleet`: starts, scales, shows and removes standing fleets."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, ClassVar
from uuid import uuid4

import typer

from cli.bench import checking, fleet_health, fleet_show
from cli.bench import files as bench_files
from cli.bench import money as bench_money
from cli.bench.artifacts import Staging, in_question
from cli.bench.checking import Accept
from cli.bench.files import Source
from cli.client.bench_client import BenchClient, RefusedFileError
from cli.client.connection import connection
from cli.shared import aws, idempotency, listings, show, watching
from cli.shared.context import to_type
from cli.shared.errors import CliError, Exit
from cli.shared.lazy import LazyGroup
from troop.bench.definition.definition import AROUND, to_document
from troop.bench.definition.keys import seconds
from troop.bench.definition.plan import sole
from troop.shared import moments
from troop.shared.formatting import USD, duration


class Commands(LazyGroup):
    """The commands about fleets; those about tasks import what the others do not need."""

    lazy: ClassVar = {
        "submit": (
            "cli.commands.fleet_work:submit",
            "Give tasks to a fleet: one a line, as text or as JSON with id and body. Exits with 10 if one is refused.",
        ),
        "results": (
            "cli.commands.fleet_work:results",
            "List the results of a fleet's tasks, or download all of them. They outlive the fleet.",
        ),
        "jobs": (
            "cli.commands.fleet_work:jobs",
            "Show the tasks of a fleet: submitted, done, waiting, in work, dead, and what one costs.",
        ),
    }


app = typer.Typer(cls=Commands, no_args_is_help=True, help="Standing fleets: nodes that stay until they expire.")

_STALE_SECONDS = 60.0
"""The time for which a refusal may stem from an earlier launch: it is the newest one until the next launch fails."""

_LONGEST_SECONDS = 4 * 3600 + 5 * 60
"""The longest that nodes may take to become ready; a deployment of an older version does not return it."""

FleetId = Annotated[str, typer.Argument(metavar="FLEET", help="A fleet's id, from `troop fleet list`.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document.")]


File = Annotated[Path, typer.Argument(help="A fleet's file, its folder, or a name in the catalogue.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a value, such as fleets.workers.count=5; repeatable."),
]


@app.command("validate")
def validate(file: File, changes: Set = None, as_json: Json = False) -> None:
    """Check a fleet's file and its local artifacts. Needs no AWS.

    Limits come from this checkout's cdk.json. `up` checks the deployment's limits, and what only the region knows.
    """
    with checking.json_errors(as_json):
        source = bench_files.load_fleet(file, bench_files.assignments(changes or []))
    warnings = list(in_question(source.artifacts(), source.path.parent))
    beyond = checking.beyond_limits(source.benchmark, sole(source.benchmark))
    if as_json:
        show.document(
            {
                "valid": True,
                "problems": [],
                "warnings": [*warnings, *beyond],
                "copied": source.sizes(),
                "fleet": to_document(source.benchmark),
            }
        )
        return
    fleet = source.benchmark
    nodes = ", ".join(f"{one.count} {one.role} ({one.instance_type})" for one in fleet.fleets)
    ready = duration(fleet.longest + AROUND)
    lasts = f"it expires after {duration(fleet.expires_after)}"
    show.say(f"{source.path}: {checking.verdict(warnings)}; {fleet.name}: {nodes}, ready within {ready}; {lasts}")
    show.say(source.copied())
    for warning in (*warnings, *beyond):
        show.note(warning)


@app.command("estimate")
def estimate(
    ctx: typer.Context, file: File, changes: Set = None, accept: Accept = False, as_json: Json = False
) -> None:
    """Show what a fleet would cost until it expires, line by line. Launches and stores nothing; fails if Troop would
    refuse the fleet.
    """
    with checking.json_errors(as_json):
        values = checking.accepting(bench_files.assignments(changes or []), accept)
        source = bench_files.load_fleet(file, values)
        cost_estimate = _estimate(connection(ctx).client.benchmarks, source, values)
    bench_money.tell(cost_estimate, as_json)


@app.command("up")
def up(
    ctx: typer.Context,
    file: File,
    changes: Set = None,
    key: Annotated[str | None, idempotency.option("starts nothing more")] = None,
    wait: Annotated[bool, typer.Option(help="Wait until all nodes are ready.")] = True,
    accept: Accept = False,
    as_json: Json = False,
) -> None:
    """Start a standing fleet. It stays until it expires or `down` removes it. Does not ask."""
    values = checking.accepting(bench_files.assignments(changes or []), accept)
    source = bench_files.load_fleet(file, values)
    client, tell = connection(ctx).client.benchmarks, show.note if as_json else show.say
    tell(source.copied())
    checking.expect(lambda: _estimate(client, source, values), source, key, tell)
    staging = Staging(client, source.path.parent, lambda: aws.make_session(ctx.obj.profile, ctx.obj.region), tell)
    for artifact in source.artifacts():
        staging.stage(artifact)
    started, repeated = _start(client, source, values, key or str(uuid4()))
    id = str(started["fleet"])
    tell(f"{'already started' if repeated else 'started'}: {id}, until {show.moment(started['expires_at'])}")
    _settle(ctx, client, started, wait, as_json)


@app.command("scale")
def scale(
    ctx: typer.Context,
    fleet: FleetId,
    count: Annotated[int, typer.Option(min=0, max=10_000, help="The number of nodes.")],
    role: Annotated[str | None, typer.Option(help="The role; required if the fleet has several.")] = None,
    wait: Annotated[bool, typer.Option(help="Wait until the fleet has that many.")] = True,
    as_json: Json = False,
) -> None:
    """Grow or shrink a fleet. Auto Scaling chooses which nodes to remove. Does not ask."""
    client = connection(ctx).client.benchmarks
    request = {"count": count} | ({"role": role} if role else {})
    _settle(ctx, client, client.scale_fleet(fleet, request), wait, as_json)


@app.command("extend")
def extend(
    ctx: typer.Context,
    fleet: FleetId,
    span: Annotated[str, typer.Option("--for", metavar="TIME", help="How much longer, such as 24h or 90m.")],
    as_json: Json = False,
) -> None:
    """Let a fleet expire later, if its budget and the limits pay for all nodes until then. Does not ask."""
    try:
        longer = timedelta(seconds=seconds(span))
    except ValueError:
        raise CliError(Exit.USAGE, f"--for is {span!r}: must be a time such as 45m or 24h") from None
    client = connection(ctx).client.benchmarks
    before = moments.parse(client.fleet(fleet)["fleet"]["expires_at"])
    extended = client.extend_fleet(fleet, moments.iso(before + longer))
    if as_json:
        show.document(extended)
    else:
        until, earlier = show.moment(extended["expires_at"]), show.moment(moments.iso(before))
        show.say(f"{fleet} stays until {until}; before: {earlier}")


@app.command("status")
def status(ctx: typer.Context, fleet: FleetId, as_json: Json = False) -> None:
    """Show the state, health, work, nodes and cost of a fleet, and what to do about checks that fail."""
    view = connection(ctx).client.benchmarks.fleet(fleet)
    if as_json:
        show.document(view)
        return
    show.say(fleet_show.summary(view["fleet"]))
    if not view["fleet"]["ended_at"]:
        show.say(fleet_show.estimate(view["fleet"]) or f"until {show.moment(view['fleet']['expires_at'])}")
        if now := bench_money.so_far(view):
            show.say(now)
    for line in fleet_show.bought(view):
        show.say(line)
    for refusal in view["refusals"]:
        show.say(f"could not be launched: {refusal}")
    _tell_life(view)
    if view["nodes"]:
        show.table(fleet_show.NODE_COLUMNS, fleet_show.node_rows(view["nodes"]), title=" ")
    if view.get("nodes_left_out"):
        show.say(f"and {view['nodes_left_out']:,} more nodes")


def _tell_life(view: Mapping[str, Any]) -> None:
    """Prints the health, repairs and work of a fleet; nothing for one of an older version."""
    if work := view.get("work"):
        for line in fleet_health.work_lines(work, (view.get("cost_so_far") or {}).get("currency", USD)):
            show.say(line)
    for line in fleet_health.withheld(view):
        show.say(line)
    roles = view.get("health") or []
    for role in roles:
        show.say(fleet_health.role_health(role))
    if rows := fleet_health.check_rows(roles):
        show.table(fleet_health.CHECK_COLUMNS, rows, title=" ", drop=fleet_health.CHECK_DROPPED)
        for line in fleet_health.remedies(roles):
            show.say(f"  {line}")
    if repairs := view.get("repairs"):
        show.say(fleet_health.repaired(view["fleet"].get("repaired", 0)))
        show.table(fleet_health.REPAIR_COLUMNS, fleet_health.repair_rows(repairs))


@app.command("list")
def list_all(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Option(help="Only fleets of this name.")] = None,
    status: Annotated[str | None, typer.Option(help="Only fleets with this status, such as RUNNING.")] = None,
    sort: listings.Sort = None,
    reverse: listings.Reverse = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="The most fleets to show.")] = 20,
    output: listings.Output = None,
    as_json: listings.AsJson = False,
) -> None:
    """List the deployment's fleets, newest first, including ended ones."""
    form = listings.form_of(output, as_json)
    if sort is not None:
        listings.by(fleet_show.FLEET_COLUMNS, sort)
    chosen = listings.same({"name": name, "status": status})
    fleets = listings.first(connection(ctx).client.benchmarks.fleets, chosen, limit)
    fleets = listings.ordered(fleets, fleet_show.FLEET_COLUMNS, sort, reverse)
    if fleets or listings.is_for_programs(form):
        listings.tell(form, fleet_show.FLEET_COLUMNS, fleets, {"fleets": fleets}, drop=fleet_show.FLEET_DROPPED)
    else:
        show.note("no fleets match" if name or status else "there are no fleets")


@app.command("down")
def down(
    ctx: typer.Context,
    fleet: FleetId,
    wait: Annotated[bool, typer.Option(help="Wait until nothing of it is left.")] = True,
    as_json: Json = False,
) -> None:
    """Remove a fleet: launch nothing more, and delete everything it created. Does not ask."""
    client = connection(ctx).client.benchmarks
    removed = client.remove_fleet(fleet)
    if wait and not removed["ended_at"]:
        view = _watch(ctx, client, fleet, lambda view: bool(view["fleet"]["ended_at"]), quiet=as_json)
        removed = view["fleet"]
    if as_json:
        show.document(removed)
    elif removed["ended_at"]:
        show.say(fleet_show.summary(removed))
    else:
        show.say(f"{fleet} is being removed; to see when nothing is left: {to_type(ctx, 'fleet', 'status', fleet)}")


def _request(source: Source, changes: Mapping[str, Any]) -> dict[str, Any]:
    return {"definition": source.document, "set": dict(changes), "files": source.encoded()}


def _estimate(client: BenchClient, source: Source, changes: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return client.estimate_fleet(_request(source, changes))
    except RefusedFileError as refused:
        raise source.refused(refused.problems) from None


def _start(client: BenchClient, source: Source, changes: Mapping[str, Any], key: str) -> tuple[dict[str, Any], bool]:
    try:
        return client.start_fleet({**_request(source, changes), "key": key})
    except RefusedFileError as refused:
        raise source.refused(refused.problems) from None


def _settle(ctx: typer.Context, client: BenchClient, fleet: dict[str, Any], wait: bool, as_json: bool) -> None:
    """Waits until a fleet has the wanted nodes, and shows the outcome.

    Raises:
        CliError: FAILED, if the fleet ended, or its nodes are not ready in time.
    """
    id = fleet["fleet"]
    if not wait:
        if as_json:
            show.document(fleet)
        else:
            show.say(f"to check its state: {to_type(ctx, 'fleet', 'status', id)}")
        return

    began = time.monotonic()
    longest = float(fleet.get("ready_within") or _LONGEST_SECONDS)

    def is_over(view: Mapping[str, Any]) -> bool:
        now, elapsed = view["fleet"], time.monotonic() - began
        if now["closed_at"] or fleet_show.is_complete(now) or fleet_show.is_stuck(now):
            return True
        return elapsed >= longest or (elapsed >= _STALE_SECONDS and fleet_show.hopeless(view) is not None)

    view = _watch(ctx, client, id, is_over, quiet=as_json)
    if as_json:
        show.document(view)
    if view["fleet"]["closed_at"]:
        raise CliError(Exit.FAILED, fleet_show.summary(view["fleet"]))
    if fleet_show.is_stuck(view["fleet"]):
        hint = f"the fleet stays; {to_type(ctx, 'fleet', 'status', id)} shows each node"
        raise CliError(Exit.FAILED, f"{fleet_show.problem(view)}; {hint}")
    if not fleet_show.is_complete(view["fleet"]):
        refusal = fleet_show.hopeless(view)
        why = f"could not be launched: {refusal}" if refusal else f"not all nodes are ready after {longest:.0f} s"
        commands = ", ".join(to_type(ctx, "fleet", command, id) for command in ("status", "down"))
        costs = f"the fleet stays, and costs money: {commands}"
        raise CliError(Exit.FAILED, f"{fleet_show.role_states(view['fleet'])}; {why}; {costs}")
    if not as_json:
        show.say(f"{id} is ready; to remove it: {to_type(ctx, 'fleet', 'down', id)}")


def _watch(
    ctx: typer.Context, client: BenchClient, id: str, is_over: Callable[[Mapping[str, Any]], bool], *, quiet: bool
) -> dict[str, Any]:
    """Prints what changes until ``is_over``; returns the last view. Tolerates single failed requests."""
    tell: Callable[[str], None] = show.note if quiet else show.say
    history: set[str] = set()
    last = ""
    try:
        for view in watching.poll(lambda: client.fleet(id), is_over):
            now = fleet_show.role_states(view["fleet"])
            if now != last:
                tell(now)
                last = now
            for refusal in view["refusals"]:
                if refusal not in history:
                    history.add(refusal)
                    tell(f"could not be launched: {refusal}")
    except KeyboardInterrupt:
        show.note(f"the fleet continues; to remove it: {to_type(ctx, 'fleet', 'down', id)}")
        raise typer.Exit(Exit.INTERRUPTED) from None
    except CliError as error:
        if error.code is Exit.NO_SUCH_UNIT:
            raise
        raise CliError(error.code, f"{error}; the fleet continues: {to_type(ctx, 'fleet', 'status', id)}") from None
    return view
