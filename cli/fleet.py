"""`troop fleet`: nodes that stay, as many as are wanted, until their time is over."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer

from cli import aws, bench_files, fleet_show, show
from cli.bench_artifacts import Staging
from cli.bench_files import Source
from cli.client import RefusedFileError, TroopClient
from cli.context import connection
from cli.errors import CliError, Exit

app = typer.Typer(no_args_is_help=True, help="Standing fleets: nodes that stay, grown and shrunk by one call.")

_POLL_SECONDS = 2.0
_FAILURES = 30
"""Looks in a row that may fail while a fleet is watched: it goes on without us."""

_STALE_SECONDS = 60.0
"""For which a refusal may be one of before: the newest there is, until the next launch has been tried."""

_LONGEST_SECONDS = 4 * 3600 + 5 * 60
"""That nodes may take until they are ready, where the deployment does not say: no fleet's file allows more."""

_INTERRUPTED = 130
"""What shells make of Ctrl-C."""

FleetId = Annotated[str, typer.Argument(metavar="FLEET", help="A fleet's id, as `troop fleet list` gives it.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document.")]


@app.command("up")
def up(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="A fleet's file, or its folder.")],
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Change a value, such as fleets.workers.count=5; may be repeated."
        ),
    ] = None,
    key: Annotated[str | None, typer.Option(help="Idempotency key: the same one again starts nothing more.")] = None,
    wait: Annotated[bool, typer.Option(help="Until all of its nodes are ready.")] = True,
    as_json: Json = False,
) -> None:
    """Start a standing fleet. It stays until its time is over or it is taken down; asks nothing."""
    values = bench_files.assignments(changes or [])
    source = bench_files.load_fleet(file, values)
    client, tell = connection(ctx).client, show.note if as_json else show.say
    staging = Staging(client, source.path.parent, lambda: aws.make_session(ctx.obj.profile, ctx.obj.region), tell)
    for artifact in source.benchmark.artifacts:
        staging.stage(artifact)
    started, repeated = _start(client, source, values, key or str(uuid4()))
    id = str(started["fleet"])
    tell(f"{'on record already' if repeated else 'started'}: {id}, until {show.moment(started['expires_at'])}")
    if line := fleet_show.estimate(started):
        tell(line)
    _settle(ctx, client, started, wait, as_json)


@app.command("scale")
def scale(
    ctx: typer.Context,
    fleet: FleetId,
    count: Annotated[int, typer.Option(min=0, max=10_000, help="How many nodes there are to be.")],
    role: Annotated[str | None, typer.Option(help="Of which role; needed where the fleet has several.")] = None,
    wait: Annotated[bool, typer.Option(help="Until there are so many.")] = True,
    as_json: Json = False,
) -> None:
    """Grow or shrink a fleet. Auto Scaling picks the nodes that have to go; asks nothing."""
    client = connection(ctx).client
    request = {"count": count} | ({"role": role} if role else {})
    _settle(ctx, client, client.scale_fleet(fleet, request), wait, as_json)


@app.command("status")
def status(ctx: typer.Context, fleet: FleetId, as_json: Json = False) -> None:
    """What there is of a fleet now."""
    told = connection(ctx).client.fleet(fleet)
    if as_json:
        show.document(told)
        return
    show.say(fleet_show.summary(told["fleet"]))
    if not told["fleet"]["ended_at"]:
        show.say(fleet_show.estimate(told["fleet"]) or f"until {show.moment(told['fleet']['expires_at'])}")
    for refusal in told["refusals"]:
        show.say(f"could not be launched: {refusal}")
    if told["nodes"]:
        show.table(fleet_show.NODE_COLUMNS, fleet_show.node_rows(told["nodes"]), title=" ")
    if told.get("nodes_left_out"):
        show.say(f"and {told['nodes_left_out']:,} nodes more")


@app.command("list")
def list_all(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")] = 20,
    as_json: Json = False,
) -> None:
    """The deployment's fleets, newest first; those that have ended, too."""
    fleets = connection(ctx).client.fleets(limit)
    if as_json:
        show.document({"fleets": fleets})
    elif fleets:
        show.table(fleet_show.FLEET_COLUMNS, fleet_show.fleet_rows(fleets))
    else:
        show.note("there are no fleets")


@app.command("down")
def down(
    ctx: typer.Context,
    fleet: FleetId,
    wait: Annotated[bool, typer.Option(help="Until nothing of it is left.")] = True,
    as_json: Json = False,
) -> None:
    """Remove a fleet: nothing more is launched, and whatever it has created goes. Asks nothing."""
    client = connection(ctx).client
    removed = client.remove_fleet(fleet)
    if wait and not removed["ended_at"]:
        told = _watch(ctx, client, fleet, lambda told: bool(told["fleet"]["ended_at"]), quiet=as_json)
        removed = told["fleet"]
    if as_json:
        show.document(removed)
    elif removed["ended_at"]:
        show.say(fleet_show.summary(removed))
    else:
        show.say(f"{fleet} is being removed; to see when nothing is left: {_command(ctx, 'status', fleet)}")


def _start(client: TroopClient, source: Source, changes: Mapping[str, Any], key: str) -> tuple[dict[str, Any], bool]:
    files = {name: base64.b64encode(content).decode() for name, content in source.files.items()}
    try:
        return client.start_fleet({"definition": source.document, "set": dict(changes), "files": files, "key": key})
    except RefusedFileError as refused:
        raise source.refused(refused.problems) from None


def _settle(ctx: typer.Context, client: TroopClient, fleet: dict[str, Any], wait: bool, as_json: bool) -> None:
    """Until a fleet is as it is wanted, if that is to be waited for."""
    id = fleet["fleet"]
    if not wait:
        if as_json:
            show.document(fleet)
        else:
            show.say(f"to see how it is: {_command(ctx, 'status', id)}")
        return

    began = time.monotonic()
    longest = float(fleet.get("ready_within") or _LONGEST_SECONDS)

    def is_over(told: Mapping[str, Any]) -> bool:
        now, elapsed = told["fleet"], time.monotonic() - began
        if now["closed_at"] or fleet_show.is_complete(now) or fleet_show.is_stuck(now):
            return True
        return elapsed >= longest or (elapsed >= _STALE_SECONDS and fleet_show.hopeless(told) is not None)

    told = _watch(ctx, client, id, is_over, quiet=as_json)
    if as_json:
        show.document(told)
    if told["fleet"]["closed_at"]:
        raise CliError(Exit.FAILED, fleet_show.summary(told["fleet"]))
    if fleet_show.is_stuck(told["fleet"]):
        hint = f"the fleet stands; {_command(ctx, 'status', id)} tells of each node"
        raise CliError(Exit.FAILED, f"{fleet_show.problem(told)}; {hint}")
    if not fleet_show.is_complete(told["fleet"]):
        refusal = fleet_show.hopeless(told)
        why = f"could not be launched: {refusal}" if refusal else f"not all are ready within {longest:.0f} s"
        costs = f"the fleet stands, and costs: {_command(ctx, 'status', id)}, {_command(ctx, 'down', id)}"
        raise CliError(Exit.FAILED, f"{fleet_show.of_roles(told['fleet'])}; {why}; {costs}")
    if not as_json:
        show.say(f"{id} stands; to remove it: {_command(ctx, 'down', id)}")


def _watch(
    ctx: typer.Context, client: TroopClient, id: str, is_over: Callable[[Mapping[str, Any]], bool], *, quiet: bool
) -> dict[str, Any]:
    """Says what changes until it is over; what is told of the fleet then. One look in a while may fail."""
    tell: Callable[[str], None] = show.note if quiet else show.say
    said: set[str] = set()
    last, failures = "", 0
    try:
        while True:
            try:
                told = client.fleet(id)
            except CliError as error:
                failures += 1
                if error.code not in (Exit.UNREACHABLE, Exit.API_FAILED) or failures > _FAILURES:
                    raise CliError(error.code, f"{error}; the fleet goes on: {_command(ctx, 'status', id)}") from None
            else:
                failures = 0
                now = fleet_show.of_roles(told["fleet"])
                if now != last:
                    tell(now)
                    last = now
                for refusal in told["refusals"]:
                    if refusal not in said:
                        said.add(refusal)
                        tell(f"could not be launched: {refusal}")
                if is_over(told):
                    return told
            time.sleep(_POLL_SECONDS)
    except KeyboardInterrupt:
        show.note(f"the fleet goes on; to remove it: {_command(ctx, 'down', id)}")
        raise typer.Exit(_INTERRUPTED) from None


def _command(ctx: typer.Context, name: str, fleet: str) -> str:
    """The command to be typed, for the same deployment."""
    deployment = "" if ctx.obj.deployment == "Troop" else f" -d {ctx.obj.deployment}"
    region = f" --region {ctx.obj.region}" if ctx.obj.region else ""
    return f"troop{deployment}{region} fleet {name} {fleet}"
