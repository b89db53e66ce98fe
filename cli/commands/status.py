"""Implements `troop status`: the state of the deployment at a glance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

import typer

from cli.bench import money
from cli.chaos import course, malformed, overview
from cli.chaos.events import row
from cli.chaos.switch import describe, who_and_why
from cli.client.connection import Connection, connection
from cli.client.everywhere import PART_SECONDS, Table, everywhere, finish
from cli.client.open_benchmarks import open_fleets, open_runs
from cli.shared import listings, show, side_by_side, times, watching
from cli.shared.errors import CliError
from cli.shared.listings import Column, Form
from cli.shared.watching import Watch
from troop.shared import moments

_MOST_EVENTS = 1000

_EVENTS = (
    Column("when", lambda event: row(event)[0]),
    Column("unit", lambda event: event["unit"]),
    Column("method", lambda event: event["method"]),
    Column("status", lambda event: event["status"]),
    Column("verdict", course.verdict),
    Column("instance", lambda event: event["instance_id"]),
    Column("recovered after", lambda event: row(event)[6]),
    Column("detail", lambda event: row(event)[7]),
)
_OPEN = (
    Column("open", lambda one: one["id"]),
    Column("name", lambda one: one["name"]),
    Column("status", lambda one: one["status"]),
    Column("began", lambda one: show.moment(one["at"])),
    Column("nodes", lambda one: one["nodes"]),
    Column("cost so far", lambda one: money.total(one["cost_so_far"]) if one["cost_so_far"] else None),
)
_OVERVIEW = (
    Column("account", lambda state: state["account"], wide=True),
    Column("region", lambda state: state["region"], wide=True),
    Column("chaos", lambda state: describe(state["switch"]).partition(":")[0]),
    Column("health", lambda state: _part(state, "health", _grade)),
    Column("units", lambda state: _part(state, "groups", lambda _: overview.in_words(state["units"]))),
    Column("today", lambda state: _part(state, "events", lambda _: overview.in_words(state["today"]["by_status"]))),
    Column("verdicts", lambda state: overview.in_words(state["today"]["by_verdict"] or {})),
    Column("runs", lambda state: _part(state, "runs", len)),
    Column("fleets", lambda state: _part(state, "fleets", len)),
    Column("who and why", lambda state: who_and_why(state["switch"])),
)


def status(
    ctx: typer.Context, watch: Watch = None, output: listings.Output = None, as_json: listings.AsJson = False
) -> None:
    """Show the state of the deployment: the switch, ticks, today's hits, units, and open runs and fleets."""
    form = listings.form_of(output, as_json)
    if all_of_them := everywhere(ctx):
        table = Table(_OVERVIEW, lambda state: [state], ("units", "verdicts"))
        finish(all_of_them.show(form, lambda conn: _read(conn, times.now(), PART_SECONDS), table=table, watch=watch))
        return
    conn = connection(ctx)

    def tell(state: dict[str, Any]) -> None:
        if listings.is_for_programs(form):
            listings.write(form, state["today"]["events"], state, repeated=watch is not None)
        else:
            _show(state, form)

    watching.repeat(watch, lambda: _read(conn, times.now()), tell)


def _read(conn: Connection, now: datetime, seconds: float | None = None) -> dict[str, Any]:
    """Returns the state. Sends its requests side by side; what cannot be read is None, and why is in ``unknown``.

    Args:
        seconds: the time for each part.

    Raises:
        CliError: the switch cannot be read.
    """
    client = conn.client
    midnight = moments.iso(times.midnight(now.astimezone().date()))
    answers = side_by_side.answers(
        {
            "switch": client.switch,
            "health": client.health,
            "events": lambda: client.events({"since": midnight}, _MOST_EVENTS),
            "groups": lambda: list(islice(client.groups(), malformed.LOOKED_AT)),
            "runs": lambda: open_runs(client),
            "fleets": lambda: open_fleets(client),
        },
        seconds=seconds,
    )
    if isinstance(answers["switch"], CliError):
        raise answers["switch"]
    unknown = {name: str(answer) for name, answer in answers.items() if isinstance(answer, CliError)}
    answers |= dict.fromkeys(unknown)
    events, groups = answers["events"], answers["groups"]
    return {
        "deployment": conn.deployment.name,
        "account": conn.deployment.account,
        "region": conn.deployment.region,
        "at": moments.iso(now),
        "switch": answers["switch"],
        "health": answers["health"],
        "today": {
            "since": midnight,
            "by_status": None if events is None else overview.events_by_status(events),
            "by_verdict": None if events is None else overview.events_by_verdict(events),
            "events": events or [],
        },
        "units": None if groups is None else overview.units_by_state(groups),
        "runs": answers["runs"],
        "fleets": answers["fleets"],
        "unknown": unknown,
    }


def _show(state: Mapping[str, Any], form: Form) -> None:
    switch, health, today, unknown = state["switch"], state["health"], state["today"], state["unknown"]
    by = who_and_why(switch)
    rows = [
        ("deployment", _place(state)),
        *([("release", release)] if (release := overview.release(health)) else []),
        ("chaos", describe(switch) + (f" ({by})" if by else "")),
        ("health", unknown.get("health") or _health(health)),
        *([("ticks", overview.ticks(health, moments.parse(state["at"])))] if health else []),
        ("units", unknown.get("groups") or overview.in_words(state["units"]) or "there are no groups"),
        *([("stray items", stray["detail"])] if health and (stray := overview.strays(health)) else []),
        ("today", unknown.get("events") or overview.in_words(today["by_status"]) or "no hit so far"),
    ]
    if verdicts := overview.in_words(today["by_verdict"] or {}):
        rows.append(("verdicts", verdicts))
    rows += [(name, unknown[name]) for name in ("runs", "fleets") if name in unknown]
    show.table(("", ""), rows)
    if today["events"]:
        listings.tell(form, _EVENTS, today["events"], {}, drop=("instance", "method", "detail"), title=" ")
    opened = [
        {**record, "id": record[kind], "nodes": record.get("nodes") or sum(r["desired"] for r in record["roles"])}
        for kind in ("run", "fleet")
        for record in state[f"{kind}s"] or ()
    ]
    if opened:
        listings.tell(form, _OPEN, opened, {}, drop=("nodes", "began"), title=" ")
    elif state["runs"] is not None and state["fleets"] is not None:
        show.say("no benchmark runs, and no fleet stands")


def _place(state: Mapping[str, Any]) -> str:
    stage = (state["health"] or {}).get("stage")
    place = f"{state['deployment']} in account {state['account']}, region {state['region']}"
    return f"{place}, stage {stage}" if stage else place


def _health(health: Mapping[str, Any]) -> str:
    help = "" if health["status"] == "ok" else ": `troop doctor` has the commands that help"
    return _grade(health) + help


def _grade(health: Mapping[str, Any]) -> str:
    bad = [check["name"] for check in health["checks"] if check["status"] != "ok"]
    return str(health["status"]) + (f" ({', '.join(bad)})" if bad else "")


def _part(state: Mapping[str, Any], name: str, shown: Callable[[Any], Any]) -> Any:
    """Returns a part of the state as it is shown; "unknown" if it could not be read."""
    return "unknown" if name in state["unknown"] else shown(state.get(name))
