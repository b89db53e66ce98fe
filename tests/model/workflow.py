"""The executions of a history, as the state machines define them, and the functions that AWS calls by itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

from tests.model.bus import Notice
from tests.model.checks import ZONE
from tests.model.fleet import LAUNCHED
from tests.model.tokens import Task
from tests.model.world import Aborted, Violation, World
from troop.chaos.aws.decision_table import put_work
from troop.chaos.events import Status
from troop.chaos.flows.on_demand import OtherGroupError, RefusedError
from troop.chaos.flows.termination import Outcome, Work
from troop.chaos.recovery import EARLIER_SECONDS, EARLIER_WAIT
from troop.shared import moments
from troop.shared.errors import MissingGroupError

WAITS, FUNCTION = 120.0, 150.0
"""Seconds after which the state CheckRecovery begins again without an answer, and for which its function may run."""

FAILURES = 4
"""How often the state repeats a function that has failed."""

EXPLAINED = ("ClientError", "ReadTimeoutError", "ClockError")
"""Errors of a sweep that faults explain."""


def execute(world: World, at: float, stalled: float) -> None:
    """Runs one tick."""
    started = datetime.fromtimestamp(at, UTC)
    name = world.stage.running.name if world.stage.running else ""
    try:
        world.stage.pause(stalled)
        world.invoke("sweep", 120, 4, lambda: _sweep(world, started))
        world.stage.pause(world.dice.choice((0.0, 0.0, 5.0)))
        items = world.invoke("decide", 300, 4, lambda: _decide(world, name, started))
        for item in items or ():
            twins = 2 if world.dice.random() < world.faults.twin else 1
            for twin in range(twins):
                play = partial(_child, world, json.loads(json.dumps(item)), watching=twin == 0)
                world.stage.spawn(f"{name}/{item['unit']}{twin}", play, world.stage.now)
    except Aborted:
        world.say("aborted")


def sweep(world: World, tries: int = 1) -> None:
    """Sweeps by its own schedule, or for an execution whose Decide then fails."""
    with suppress(Aborted):
        world.invoke("sweep", 120, tries, lambda: _sweep(world, world.now()))


def ask(world: World, group: str, key: str) -> None:
    """Requests a termination: each try of it may be cut off, and is made again or not."""
    world.begin = lambda work: world.stage.spawn(
        f"od/{work['event_id']}", partial(_child, world, work, True), world.stage.now
    )

    def request() -> None:
        try:
            claim = world.on_demand.request(group, key, world.now())
            world.checks.requested(group, key, claim.repeated)
        except RefusedError as error:
            world.checks.seen[f"on demand: {error.reason}"] += 1
        except (MissingGroupError, OtherGroupError) as error:
            world.say(f"on demand: {error}")

    with suppress(Aborted):
        world.invoke("ask", 29, 3, request)


def start_by_hand(world: World, group: str, at: float) -> None:
    """Runs a child that nobody has decided."""
    day = datetime.fromtimestamp(at, ZONE).date()
    unit = group.partition("-")[0]
    item = {"event_id": f"{day}#{unit}", "unit": unit, "day": str(day), "groups": [group]}
    _child(world, item | {"tick": moments.iso(datetime.fromtimestamp(at, UTC)), "execution": "hand"}, watching=True)


def hear(world: World, notice: Notice) -> None:
    """Gives an event of AWS to its function, as EventBridge does."""
    with suppress(Aborted):
        world.invoke("hear", FUNCTION, 3, partial(_hear, world, notice))


def _sweep(world: World, started: datetime) -> None:
    for one in world.sweeper.run(started):
        world.say(f"swept {one.event_id} {one.status} {one.error}")
        kind = one.error.partition(":")[0]
        if kind and kind not in EXPLAINED:
            raise Violation(f"sweep: {one.error}")


def _decide(world: World, execution: str, started: datetime) -> list[dict[str, Any]]:
    ticked = world.tick.run("default", execution, started)
    decisions, work = ticked.decisions, ticked.work
    for decision in decisions:
        world.checks.seen[decision.reason] += 1
        if world.trace is not None:
            world.say(f"{decision.unit}: {decision.reason} ({decision.detail})")
    if not work:
        return []
    key = f"ticks/{moments.iso(started)}-{execution}.json"
    put_work(world.s3, "bucket", key, work)
    items: list[dict[str, Any]] = json.loads(world.objects[key])
    return items


def _child(world: World, item: dict[str, Any], watching: bool) -> None:
    """One child: terminate, then wait until it is over. A twin is a try that Lambda made twice: it does not wait."""
    try:
        outcome: Outcome | None = world.invoke("terminate", 60, 5, lambda: world.termination.run(Work.parse(item)))
        if outcome is None:
            return
        if outcome.event is None:
            world.checks.seen[f"refused: {outcome.reason}"] += 1
            world.say(f"refused: {outcome.reason} {outcome.detail}")
            return
        if watching and outcome.event.status is Status.TERMINATED:
            wait: Callable[[World, str], None] = _await_as_before if world.is_upgraded else await_end
            wait(world, item["event_id"])
    except Aborted:
        world.say("aborted")


def await_end(world: World, event_id: str) -> None:
    """The states CheckRecovery, IsSettled and Settle."""
    failures = 0
    while failures <= FAILURES:
        task = world.tokens.issue(event_id)
        world.stage.spawn(f"{task.actor.name}/check", partial(_check, world, task, world.now()), world.stage.now)
        world.stage.pause(WAITS)
        if output := task.output:
            world.checks.verdicts.check_answer(event_id, output)
            if output["settles_at"] is None:
                return
            failures = 0
            world.stage.pause(max(0.0, moments.parse(output["settles_at"]).timestamp() - world.stage.now))
        elif task.is_over:
            failures += 1
            if world.dice.random() < world.faults.abort:
                raise Aborted
            world.stage.pause(world.dice.uniform(0, min(60.0, 10.0 * 2**failures)))
        else:
            task.is_over, failures = True, 0
            if world.dice.random() < world.faults.abort / 10:
                raise Aborted


def _check(world: World, task: Task, entered: datetime) -> None:
    """The function of CheckRecovery: a failure of it ends the task, an answer of it does not."""
    run = partial(world.recovery_check.wait, task.event_id, entered, task.token)
    if world.attempt("check_recovery", FUNCTION, 0, run) is None and not task.is_over:
        world.tokens.end(task)


def _await_as_before(world: World, event_id: str) -> None:
    """The states of the version before task tokens: its executions are under way when this one is deployed."""
    while True:
        world.stage.pause(EARLIER_WAIT)
        run = partial(world.recovery_check.watch, event_id, world.now(), EARLIER_SECONDS)
        seen = world.invoke("check_recovery", 60, 7, run)
        if seen is None or seen.event.status is not Status.TERMINATED:
            return


def _hear(world: World, notice: Notice) -> None:
    at, detail = moments.parse(notice["time"]), notice["detail"]
    if notice["source"] == "aws.ec2":
        world.hearing.instance_runs(detail["instance-id"], at)
    elif notice["source"] == "aws.autoscaling":
        world.hearing.group_changed(detail["AutoScalingGroupName"], at, notice["detail-type"] == LAUNCHED)
    else:
        list(world.alarm_stop.went_off(detail["alarmName"], moments.parse(detail["state"]["timestamp"])))
