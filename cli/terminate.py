"""`troop terminate`: one instance of a group, now."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any
from uuid import uuid4

import typer

from cli import idempotency, show
from cli.client import TroopClient
from cli.context import confirm, connection
from cli.errors import CliError, Exit
from troop import moments
from troop.chaos.events import OPEN, Status

_POLL_SECONDS = 2.0
_GRACE_SECONDS = 180.0
"""For steps that are tried again, and for the last look."""

_LONGEST_CLAIM, _LONGEST_RECOVERY = 600.0, 43_200.0
"""Seconds; what holds when an API that is older than this command says nothing else."""

_OPEN = frozenset(str(status) for status in OPEN)


class Method(StrEnum):
    CRASH = "crash"
    DRAIN = "drain"


def terminate(
    ctx: typer.Context,
    group: Annotated[str, typer.Argument(help="An Auto Scaling group, by its name.")],
    method: Annotated[Method | None, typer.Option(help="By default what the unit's policy says.")] = None,
    key: Annotated[str | None, idempotency.option("terminates nothing more")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    wait: Annotated[bool, typer.Option(help="Until the group has recovered, or not in time.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="The event as one JSON document.")] = False,
) -> None:
    """Terminate an instance of a group now, whatever roll and calendar say. Asks first."""
    conn = connection(ctx)
    confirm(f"Terminate an instance of {group} in {conn.deployment} now", yes)
    key = key or str(uuid4())
    request = {"group": group, "idempotency_key": key} | ({"method": str(method)} if method else {})
    tell: Callable[[str], None] = show.note if as_json else show.say
    event, repeated = conn.client.terminate(request)
    before = "already on record" if repeated else "claimed"
    tell(f"{before}: {event['instance_id']} of {event['group']} (key {key})")
    if wait:
        event = _watch(conn.client, event, tell, time.sleep, time.monotonic)
    if as_json:
        show.document(event)
    if wait and event["status"] != Status.RECOVERED:
        raise CliError(Exit.FAILED, f"{event['status']}: {event['detail'] or 'see `troop events`'}")


def _watch(
    client: TroopClient,
    event: Mapping[str, Any],
    tell: Callable[[str], None],
    sleep: Callable[[float], None],
    clock: Callable[[], float],
) -> dict[str, Any]:
    """Follows an event to its end; says each status once.

    Args:
        clock: seconds that only grow. How long a status can last is the difference of two moments of the API's: what
            time it is on this machine does not matter.

    Raises:
        CliError: the event stays in a status beyond the time that it can rightly have.
    """
    status, since = "CLAIMED", clock()
    while True:
        now = client.event(str(event["id"]))
        if now["status"] != status:
            status, since = now["status"], clock()
            seconds = now["recovery_seconds"]
            tell(status.lower().replace("_", " ") + (f" in {seconds:.1f} s" if seconds is not None else ""))
        if status not in _OPEN:
            return now
        if clock() - since > _longest(now) + _GRACE_SECONDS:
            raise CliError(Exit.FAILED, _STUCK[status].format(id=now["event_id"]))
        sleep(_POLL_SECONDS)


_STUCK = {
    "CLAIMED": "{id} is still CLAIMED past its deadline, and is not carried out any more. A sweep, a quarter of an "
    "hour away at most, finds out whether the instance lives: see `troop events`, and why in `troop doctor`",
    "TERMINATED": "{id} is still TERMINATED: the instance is gone, and nobody seems to watch its group, whose time is "
    "over. Look at the group, and at `troop doctor`",
}


def _longest(event: Mapping[str, Any]) -> float:
    """Seconds for which an event in flight can be in its status, by what it says of itself."""
    if event["status"] == Status.CLAIMED:
        begin, end, longest = event["at"], event.get("deadline"), _LONGEST_CLAIM
    else:
        begin, end, longest = event.get("terminated_at"), event.get("recover_by"), _LONGEST_RECOVERY
    return (moments.parse(end) - moments.parse(begin)).total_seconds() if begin and end else longest
