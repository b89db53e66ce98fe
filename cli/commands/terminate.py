"""Implements `troop terminate`: hits one instance of a group now, by a termination or a lasting fault."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any
from uuid import uuid4

import typer

from cli.chaos import course
from cli.client.client import TroopClient
from cli.client.connection import connection
from cli.shared import idempotency, show
from cli.shared.context import confirm, to_type
from cli.shared.errors import CliError, Exit
from troop.chaos.events import OPEN, Status
from troop.chaos.verdict import VerdictValue
from troop.faults import names
from troop.faults.lasting_fault import SECONDS
from troop.shared import moments
from troop.shared.choice import parse_choice
from troop.shared.formatting import duration
from troop.shared.values import BadValue

_POLL_SECONDS = 2.0
_GRACE_SECONDS = 180.0
"""Time for retries of steps, and for the last recovery check."""

_LONGEST_CLAIM, _LONGEST_RECOVERY = 600.0, 43_200.0
"""Seconds; the bounds if an older API returns none."""

_OPEN = frozenset(str(status) for status in OPEN)


def _method(text: str) -> str:
    try:
        return parse_choice(text).text
    except BadValue as error:
        raise typer.BadParameter(f"{text!r} must be {error}") from None


def terminate(
    ctx: typer.Context,
    group: Annotated[str, typer.Argument(help="The name of an Auto Scaling group.")],
    method: Annotated[
        str | None,
        typer.Option(
            parser=_method,
            metavar=f"<{'|'.join(names())}>",
            help="A fault, with parameters as in 'latency delay=200 seconds=60'. By default one of the unit's policy.",
        ),
    ] = None,
    key: Annotated[str | None, idempotency.option("hits nothing more")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    wait: Annotated[
        bool, typer.Option(help="Wait for the recovery and the verdict, or until the group's time is over.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="The event as one JSON document.")] = False,
) -> None:
    """Terminate one instance of a group now, or inject a fault, regardless of roll and calendar. Asks first."""
    conn = connection(ctx)
    confirm(_question(method, f"an instance of {group} in {conn.deployment} now"), yes)
    key = key or str(uuid4())
    request = {"group": group, "idempotency_key": key} | ({"method": method} if method else {})
    tell: Callable[[str], None] = show.note if as_json else show.say
    event, repeated = conn.client.terminate(request)
    before = "already requested" if repeated else "claimed"
    tell(f"{before}: {event['instance_id']} of {event['group']} (key {key})")
    if wait:
        try:
            event = _watch(conn.client, event, tell, time.sleep, time.monotonic)
        except KeyboardInterrupt:
            command = to_type(ctx, "events", "--follow", "--unit", shlex.quote(str(event["unit"])))
            show.note(f"{_after_interrupt(event)}; see it with: {command}")
            raise typer.Exit(Exit.INTERRUPTED) from None
    if as_json:
        show.document(event)
    if wait and event["status"] != Status.RECOVERED:
        raise CliError(Exit.FAILED, f"{event['status']}: {event['detail'] or 'see `troop events`'}")
    if wait and course.verdict(event) == VerdictValue.BROKEN:
        raise CliError(Exit.FAILED, course.verdict_detail(event))


def _question(method: str | None, instance: str) -> str:
    """Returns what to confirm: what happens to the instance, and for how long."""
    if method is None:
        return f"Hit {instance}, by the method of its policy"
    choice = parse_choice(method)
    fault = choice.lasting
    if fault is None:
        return f"Terminate {instance}"
    values = fault.complete(dict(choice.parameters))
    lasts = "it is over when the process runs again" if fault.returns else f"for {duration(float(values[SECONDS]))}"
    settings = " ".join(f"{name}={value}" for name, value in values.items())
    return f"Inject {choice.name} into {instance}: {fault.summary}, {lasts} ({settings})"


def _after_interrupt(event: Mapping[str, Any]) -> str:
    if event.get("injection"):
        return (
            f"{event['method']} on {event['instance_id']} continues, and ends by itself; `troop halt` ends every fault "
            "now"
        )
    return f"the termination of {event['instance_id']} continues, and cannot be stopped"


def _watch(
    client: TroopClient,
    event: Mapping[str, Any],
    tell: Callable[[str], None],
    sleep: Callable[[float], None],
    clock: Callable[[], float],
) -> dict[str, Any]:
    """Follows an event to its verdict, and prints each status and each stage once.

    Args:
        clock: a monotonic clock, in seconds. How long a status can last is the difference of two moments of the API, so
            the time of this machine does not matter.

    Raises:
        CliError: the event stays in a status longer than it can.
    """
    status, since = "CLAIMED", clock()
    shown = set(_STATUS_STEPS)
    while True:
        now = client.event(str(event["id"]))
        changed = now["status"] != status
        if changed:
            status, since = now["status"], clock()
        if changed and status == Status.TERMINATED and not now.get("injection"):
            tell("terminated")
        for step in course.steps(now):
            if (step.at or step.name == "unproven") and step.name not in shown:
                shown.add(step.name)
                tell(f"{_when(step)}: {step.words}")
        if changed and status not in (Status.RUNNING, Status.TERMINATED):
            tell(_ended(now))
            if course.awaits_verdict(now):
                tell(f"the verdict comes after {show.moment(now['settles_at'])}: until then its alarms can go off")
        if verdict := now.get("verdict"):
            tell(f"verdict: {verdict['value']}: {verdict['why']}")
        if status not in _OPEN and not course.awaits_verdict(now):
            return now
        if clock() - since > _longest(now) + _GRACE_SECONDS:
            raise CliError(Exit.FAILED, _STUCK[status].format(id=now["event_id"]))
        sleep(_POLL_SECONDS)


def _ended(event: Mapping[str, Any]) -> str:
    """Returns how an event has ended, in words: ``recovered in 3 s``."""
    took = course.recovery(event)
    if took and course.victim_stays(event):
        return f"the group {course.recovery_in_words(event)}"
    return str(event["status"]).lower().replace("_", " ") + (f" in {took}" if took else "")


def _when(step: course.Step) -> str:
    """Returns when a step was: ``after 3 s``, or as it says where it has no time after the hit."""
    return step.after if step.after in (course.BEFORE, course.STILL) else f"after {step.after}"


_STATUS_STEPS = ("terminated", "recovered", "verdict")
"""The steps that statuses and the verdict already tell."""

_STUCK = {
    "CLAIMED": "{id} is still CLAIMED after its deadline, and Troop no longer carries it out. Within 15 minutes, a "
    "sweep checks whether the instance still runs. See `troop events` for the result, and `troop doctor` for the cause",
    "RUNNING": "{id} is still RUNNING: its fault is not proven to be over, or no recovery check has ended the event. "
    "See `troop events '{id}'`, and run `troop doctor`",
    "TERMINATED": "{id} is still TERMINATED: the instance is gone, and the time for recovery is over, but no recovery "
    "check has ended the event. Check the group, and run `troop doctor`",
    "RECOVERED": "{id} has recovered, but its verdict is overdue. Within 15 minutes, a sweep gives it: see "
    "`troop events`, and `troop doctor` for the cause",
}


def _longest(event: Mapping[str, Any]) -> float:
    """Returns how many seconds an event in flight can be in its status."""
    if event["status"] == Status.CLAIMED:
        begin, end, longest = event["at"], event.get("deadline"), _LONGEST_CLAIM
    elif event["status"] == Status.RECOVERED:
        begin, end, longest = event["recovered_at"], event["settles_at"], 0.0
    elif event["status"] == Status.RUNNING:
        begin, end = event["hit_at"], event.get("recover_by") or event["injection"]["ends_by"]
        longest = _LONGEST_RECOVERY
    else:
        begin, end, longest = event.get("terminated_at"), event.get("recover_by"), _LONGEST_RECOVERY
    return (moments.parse(end) - moments.parse(begin)).total_seconds() if begin and end else longest
