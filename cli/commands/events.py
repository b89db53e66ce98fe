"""Implements `troop events`: lists terminations, newest first, or follows them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from cli.chaos.events import row
from cli.client.client import TroopClient
from cli.client.connection import connection
from cli.shared import show
from cli.shared.errors import CliError, Exit
from cli.shared.times import parse_moment
from troop import moments
from troop.chaos.events import OPEN, Status

_POLL_SECONDS = 5.0
_FOLLOWED = 500
"""Events that --follow reads at each poll: more than a deployment claims between two polls."""

_COLUMNS = ("when", "unit", "group", "status", "instance", "zone", "recovered after", "detail")
_OPEN = frozenset(str(status) for status in OPEN)


def events(
    ctx: typer.Context,
    group: Annotated[str | None, typer.Option(help="Only events of this Auto Scaling group.")] = None,
    unit: Annotated[str | None, typer.Option(help="Only events of this unit.")] = None,
    since: Annotated[str | None, typer.Option(help="From then on: 2026-11-20, 2026-11-20T14:00, 2d or 3h.")] = None,
    until: Annotated[str | None, typer.Option(help="Before then, in the same formats.")] = None,
    status: Annotated[Status | None, typer.Option(case_sensitive=False, help="Only events with this status.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Show at most this many events.")] = 25,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document; with --follow, one object per line.")
    ] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep showing new events until Ctrl-C.")] = False,
) -> None:
    """Show terminations, newest first."""
    now = datetime.now(UTC)
    query = {"group": group, "unit": unit, "status": status and str(status)}
    query |= {"since": _moment("--since", since, now), "until": _moment("--until", until, now)}
    filters = {key: value for key, value in query.items() if value}
    client = connection(ctx).client
    if follow:
        if until:
            raise CliError(Exit.USAGE, "--follow never ends: remove --until")
        if (group or unit) and not client.events(filters, 1):
            _check(client, group, unit)
        _follow(client, filters, limit, as_json)
        return
    terminations = client.events(filters, limit)
    if not terminations:
        _check(client, group, unit)
    if as_json:
        show.document({"events": terminations})
    elif terminations:
        show.table(_COLUMNS, map(row, terminations))
    else:
        show.note("no events match")


def _check(client: TroopClient, group: str | None, unit: str | None) -> None:
    """Runs :func:`_check_names`, and ignores errors of its look-ups.

    Raises:
        CliError: NO_SUCH_UNIT.
    """
    try:
        _check_names(client, group, unit)
    except CliError as error:
        if error.code is Exit.NO_SUCH_UNIT:
            raise


def _check_names(client: TroopClient, group: str | None, unit: str | None) -> None:
    """Refuses names that have neither events nor a unit or group: an empty list would hide a typing error.

    Raises:
        CliError: NO_SUCH_UNIT, with similar names, or with what the name belongs to; other codes from the look-up.
    """
    if unit and not client.events({"unit": unit}, 1) and (owner := client.known_unit(unit)["unit"]) != unit:
        raise CliError(Exit.NO_SUCH_UNIT, f"{unit} is a group of the unit {owner}: --unit {owner}, or --group {unit}")
    if group and not client.events({"group": group}, 1):
        record = client.known_unit(group)
        groups = [member["group"] for member in record["groups"]]
        if record["unit"] == group and group not in groups:
            groups_hint = f", of the groups {', '.join(groups[:5])}" if groups else ""
            raise CliError(Exit.NO_SUCH_UNIT, f"{group} is a unit{groups_hint}: --unit {group}")


def _moment(option: str, text: str | None, now: datetime) -> str | None:
    if text is None:
        return None
    try:
        return moments.iso(parse_moment(text, now))
    except ValueError as error:
        raise CliError(Exit.USAGE, f"{option}: {error}") from None


def _follow(client: TroopClient, query: Mapping[str, str], limit: int, as_json: bool) -> None:
    try:
        for event in changes(client, query, limit, time.sleep):
            if as_json:
                show.line(event)
            else:
                when, unit, group, status, instance, _, recovered, detail = (show.plain(v) for v in row(event))
                after = f" after {recovered}" if recovered != show.NOTHING else ""
                suffix = f": {detail}" if detail != show.NOTHING else ""
                show.say(f"{when}  {unit} ({group})  {status}{after}  {instance}{suffix}")
    except KeyboardInterrupt:
        pass  # Ctrl-C is how following ends


def changes(
    client: TroopClient, query: Mapping[str, str], limit: int, sleep: Callable[[float], None]
) -> Iterator[dict[str, Any]]:
    """Yields the latest events, oldest first, and then each new or changed event, without end."""
    seen: dict[str, dict[str, Any]] = {}
    batch = client.events(query, limit)
    began = query.get("since", moments.iso(datetime.now(UTC)))
    while True:
        for event in reversed(batch):
            if seen.get(event["event_id"]) != event:
                seen[event["event_id"]] = event
                yield event
        # Events before the earliest open one no longer change; a leashed event may still become a claim.
        unfinished = [e["at"] for e in seen.values() if e["status"] in _OPEN]
        latest = max((e["at"] for e in seen.values()), default=began)
        since = min([*unfinished, latest])
        seen = {key: event for key, event in seen.items() if event["at"] >= since}
        sleep(_POLL_SECONDS)
        batch = client.events({**query, "since": since}, _FOLLOWED)
