"""Histories of lasting faults: one or two claims, and the minutes until their events are closed.

They leave out ticks and days, so that they are short. Everything in one follows from its seed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, time
from functools import partial
from typing import Any

from tests.model.alarms import ALARM, NAMES, OK, add_alarm
from tests.model.bus import ALARM_CHANGED, Delivery, Notice
from tests.model.checks import ZONE
from tests.model.fleet import Group
from tests.model.history import Failed, History, hypothesis, rest, settings
from tests.model.machine import Temper
from tests.model.people import People
from tests.model.run_command import SSM_CHANGED
from tests.model.schedules import Misfires
from tests.model.tokens import Task
from tests.model.workflow import FAILURES, FUNCTION, await_end, hear
from tests.model.world import Aborted, Client, Faults, Violation, World
from troop import faults
from troop.chaos.aws.backstops import Backstops
from troop.chaos.aws.claim_transaction import ClaimRefused
from troop.chaos.aws.injection_steps import InjectionSteps
from troop.chaos.aws.run_command import RunCommand
from troop.chaos.aws.task_tokens import TaskTokens
from troop.chaos.aws.terminator import Terminator
from troop.chaos.claim_rules import deadline
from troop.chaos.events import Event, Status, on_demand_id
from troop.chaos.flows.injector import Injector
from troop.chaos.flows.objections import Objections
from troop.chaos.flows.on_demand import OtherGroupError, RefusedError
from troop.chaos.flows.termination import Work
from troop.chaos.hypothesis import Hypothesis
from troop.chaos.injection import Injection
from troop.chaos.replacements import Build
from troop.shared import moments
from troop.shared.choice import Choice
from troop.shared.errors import MissingGroupError
from troop.shared.tags import CONSENT_TO_INSTALL

OPENS = datetime.combine(date(2026, 11, 20), time(10), ZONE).astimezone(UTC)
SPAN = 150.0
"""The seconds within which what disturbs a fault happens."""

HORIZON, AT_REST = 540.0, 240.0
"""The seconds after which an event that stays open is left alone: while things happen, and at rest."""

INJECT_WAITS = 60.0
"""Seconds after which the state Inject begins again without an answer."""

REQUESTS = 0.15
"""How many events begin with a request; the others with the claim, which needs far fewer calls."""

REPEATS = (60.0, 120.0)
"""The seconds after which Lambda repeats a call that failed."""

PARAMETERS: dict[str, dict[str, str]] = {"kill": {"process": "nginx"}, "blackhole": {"port": "8080"}}


def run(seed: int, traced: bool = False, prepare: Callable[[World], None] | None = None) -> History:
    """Plays the history of a seed to its end, and judges it, as :func:`tests.model.history.run` does."""
    dice = random.Random(seed)
    random.seed(seed)  # the jitter of retries
    world = _world(dice)
    world.trace = [] if traced else None
    if prepare:
        prepare(world)
    try:
        _minutes(world, dice)
        _rest(world)
        world.checks.at_rest()
    except Exception as error:
        raise Failed(seed, error, world.trace or [], "--lasting ") from error
    return History(seed, world.checks.seen, world.calls, world.trace or [])


def _world(dice: random.Random) -> World:
    rate = dice.choice((0.0, 0.005, 0.02, 0.08))
    trouble = Faults(
        call=rate,
        kill=rate / 3,
        switch=dice.choice((0.1, 0.5, 0.9)),
        people=dice.choice((0.0, 0.0, 0.003, 0.01)),
        slow=dice.choice((0.0, 0.0, 0.01, 0.05)),
        clock=dice.choice((0.0, 0.0, 0.05)),
        abort=dice.choice((0.0, 0.1, 0.3)),
    )
    if dice.random() < 0.4:
        trouble = replace(trouble, call=0.0, kill=0.0, slow=0.0, clock=0.0, people=0.0)
    world = World(dice, settings(20, dice.choice((1, 5)), "crash", False, dice.choice((0, 1, 3))), OPENS, trouble)
    world.delivery = dice.choice((Delivery(), Delivery(0.01), Delivery(0.2, 0.2, 0.2), Delivery(1.0)))
    world.bus.hear = partial(_hear, world)
    _heed_backstops(world, world.stage.now + HORIZON)
    lost = 0.0 if trouble.abort else dice.choice((0.0, 0.0, 1.0))
    if trouble.call or trouble.kill or trouble.clock:  # then an execution can end, too: one of the two has to live
        lost = 0.0
    world.schedules.misfires = Misfires(lost, 0.2)
    calm = dice.random() < 0.2
    world.run_command.temper = Temper(*[0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]) if calm else Temper()
    for name in NAMES:
        add_alarm(world, name, OK)
    world.people = People(world, dice.choice((1, 3, 8))).change
    world.fleet.skips = dice.random() < 0.8
    for name in ("web-v041", "db")[: dice.choice((1, 1, 2))]:
        group = Group(name, dice.choice((2, 3)), {"troop:inside": "yes"}, boots=dice.random() < 0.9)
        if dice.random() < 0.1:
            group.tags["troop:inside"] = "install"
        group.hook = dice.choice((0.0, 30.0, 90.0))
        group.failing = dice.choice((0, 0, 0, 1))
        group.target_groups = [f"tg-{name}"] if dice.random() < 0.2 else []
        world.fleet.add(group)
        if dice.random() < 0.5:
            unit = name.partition("-")[0]
            world.dynamo.write("GroupTags", {"unit": {"S": unit}} | hypothesis(dice, unit))
    world.injector = _injector(world)
    world.watch_tables(partial(_stream, world))
    return world


def _injector(world: World) -> Injector:
    """The product's own."""
    ssm, ec2 = world.ssm, Client(world, world.fleet)
    return Injector(
        InjectionSteps(world.events),
        RunCommand(ssm, ssm),
        Backstops(Client(world, world.schedules), "troop-backstops", "arn:role", "arn:function"),
        Objections(world.termination.reader),
        Terminator({"ec2": ec2, "autoscaling": ec2}),
        TaskTokens(Client(world, world.tokens)),
        world.alarm_stop,
        ec2,
        "Troop-Probe",
        world.clock,
        world.stage_sleep,
        lambda: f"{world.dice.getrandbits(128):032x}",
    )


# What happens


def _minutes(world: World, dice: random.Random) -> None:
    began = world.stage.now
    for group in list(world.fleet.groups.values()):
        for again in range(dice.choice((1, 1, 1, 2))):
            at, lasting = began + again * dice.choice((1.0, 200.0)) + dice.random(), dice.choice(faults.LASTING)
            parameters = PARAMETERS.get(lasting.name, {}) | {"seconds": dice.choice(("10", "30", "30", "120"))}
            choice = Choice(lasting.name, tuple(parameters.items()))
            begin = _ask if dice.random() < REQUESTS else _claim
            world.stage.spawn(f"ask/{group.name}{again}", partial(begin, world, group.name, f"{again}", choice), at)
    for odds, act in (
        (0.2, _halt),
        (0.1, _opt_out),
        (0.15, _alarm),
        (0.1, _protect),
        (0.05, _withdraw),
        (0.05, _end),
        (0.05, drain),
        (0.05, _shrink),
    ):
        if dice.random() < odds:
            world.stage.at(began + dice.uniform(0, SPAN), partial(act, world, dice))
    world.stage.run()


def _rest(world: World) -> None:
    """Nothing fails any more. What nobody may terminate is let go half of the time."""
    dice = world.dice
    if dice.random() < 0.7:
        for instance in world.fleet.instances.values():
            instance.tagged_protected = instance.scale_in_protected = instance.termination_protected = False
        for group in world.fleet.groups.values():
            group.tags.pop("troop:protected", None)
    world.schedules.misfires = Misfires()
    world.schedules.lost.clear()
    _heed_backstops(world, world.stage.now + AT_REST)
    rest(world, 6)  # a verdict can take an hour


def _ask(world: World, group: str, key: str, choice: Choice) -> None:
    """Requests a lasting fault on demand; who has no answer asks once more."""
    world.begin = lambda work: world.stage.spawn(
        f"od/{work['event_id']}", partial(_execute, world, work), world.stage.now
    )

    def request() -> None:
        try:
            world.on_demand.request(group, key, world.now(), choice)
        except RefusedError as error:
            world.checks.seen[f"on demand: {error.reason}"] += 1
        except (MissingGroupError, OtherGroupError) as error:
            world.say(f"on demand: {error}")

    with suppress(Aborted):
        world.invoke("ask", 29, 2, request)


def _claim(world: World, name: str, key: str, choice: Choice) -> None:
    """Claims an instance for a lasting fault, and runs its workflow from there."""
    group, reader, settings = world.fleet.groups.get(name), world.termination.reader, world.settings
    fit = [one for one in group.serving if one.consent] if group else []
    lasting = choice.lasting
    if group is None or lasting is None or not fit:
        return
    unit, instance = name.partition("-")[0], world.dice.choice(fit)
    desired, installs = group.desired, instance.consent == CONSENT_TO_INSTALL

    def claim() -> str:
        now, policy, state = world.now(), reader.policies.raw(unit), reader.state.unit_state(unit)
        if any(one["unit"]["S"] == unit and "open" in one for one in world.dynamo.tables["Events"].values()):
            return ""
        event = Event(
            event_id=on_demand_id(unit, key),
            unit=unit,
            day=now.astimezone(ZONE).date(),
            status=Status.CLAIMED,
            at=now,
            group=name,
            instance_id=instance.instance_id,
            zone="a",
            method=lasting.name,
            rolled=None,
            probability=None,
            desired=desired,
            deadline=deadline(now, None),
            execution=f"od-{unit}-{key}",
            build=Build("", ""),
            hypothesis=_hypothesis_of(policy),
            injection=Injection(lasting.complete(dict(choice.parameters)), installs),
        )
        try:
            world.termination.claims.make(event, policy, state, settings.max_per_day, settings.max_in_flight)
        except ClaimRefused as refused:
            world.say(f"not claimed: {refused}")
            return ""
        return event.event_id

    with suppress(Aborted):
        if claimed := world.invoke("claim", 29, 1, claim):
            _wait_for_it(world, claimed)


def _hypothesis_of(policy: Mapping[str, Any]) -> Hypothesis:
    named = {
        key: tuple(policy[key]["S"].replace(",", " ").split()) if key in policy else ()
        for key in ("success_alarms", "stop_alarms")
    }
    within = int(policy["recovery_within"]["N"]) if "recovery_within" in policy else None
    return Hypothesis(recovery_within=within, **named)


def _execute(world: World, work: dict[str, Any]) -> None:
    """The execution: the state Terminate leaves it to Inject."""
    event_id = work["event_id"]
    with suppress(Aborted):
        outcome = world.invoke("terminate", 60, 5, lambda: world.termination.run(Work.parse(work)))
        if outcome is None or outcome.event is None:
            return
        if outcome.event.injection is None or outcome.event.status is Status.TERMINATED:
            raise Violation(f"{event_id} is {outcome.event.status}, and a lasting fault was requested")
        if outcome.event.status is Status.CLAIMED:
            _wait_for_it(world, event_id)


def _wait_for_it(world: World, event_id: str) -> None:
    """The states after the claim: Inject, then those of the recovery."""
    try:
        world.stage.pause(world.dice.choice((0.0, 1.0, 1.0, 20.0)))
        if _inject(world, event_id) in ("RUNNING", "TERMINATED"):
            await_end(world, event_id)
    except Aborted:
        world.checks.seen["workflow lost"] += 1
        world.say("aborted")


def _inject(world: World, event_id: str) -> str:
    """The state Inject: begins again every minute, and after its function's failures. Returns the answer's status."""
    failures = 0
    while failures <= FAILURES and not (world.stage.now > world.until and _is_left(world, event_id)):
        task = world.tokens.issue(event_id)
        world.stage.spawn(f"{task.actor.name}/inject", partial(_wait, world, task, world.now()), world.stage.now)
        world.stage.pause(INJECT_WAITS)
        if output := task.output:
            return _answered(world, event_id, output)
        if task.is_over:
            failures += 1
            if world.dice.random() < world.faults.abort:
                raise Aborted
            world.stage.pause(world.dice.uniform(0, min(60.0, 10.0 * 2**failures)))
        else:
            task.is_over, failures = True, 0
            if world.dice.random() < world.faults.abort:
                raise Aborted
    return ""


def _answered(world: World, event_id: str, output: dict[str, Any]) -> str:
    world.checks.lasting.answered(event_id, output)
    return str(output["status"])


def _wait(world: World, task: Task, entered: datetime) -> None:
    """The function of the state Inject: a failure of it ends the task, an answer of it does not."""
    run = partial(world.injector.wait, task.event_id, entered, task.token)
    if world.attempt("inject", FUNCTION, 0, run) is None and not task.is_over:
        world.tokens.end(task)


# Calls of AWS


def _repeated(world: World, step: str, run: Callable[[], Any]) -> None:
    """A call that Lambda repeats by itself."""
    for number, wait in enumerate((*REPEATS, None)):
        if world.attempt(step, FUNCTION, number, run) or wait is None:
            return
        world.stage.pause(wait * world.dice.random())


def _heed_backstops(world: World, until: float) -> None:
    """Backstops call the function. Those of an event that stays open do so up to a moment, as they have no end."""
    waiting, world.waiting, world.until = world.waiting, [], until

    def due(payload: str) -> None:
        if world.stage.now < until or not _is_left(world, json.loads(payload)["event_id"]):
            world.stage.spawn("backstop", partial(_come_back, world, payload), world.stage.now)
        else:
            world.waiting.append(payload)

    world.due = due
    for payload in waiting:
        due(payload)


def _is_left(world: World, event_id: str) -> bool:
    """Whether an event stays open, because its instance must not be terminated."""
    return "unproven" in world.dynamo.item("Events", event_id).get("injection", {"M": {}})["M"]


def _come_back(world: World, payload: str) -> None:
    """The backstop: Scheduler calls the function."""
    call = json.loads(payload)
    world.checks.lasting.came_back[call["event_id"]] = world.stage.now
    world.checks.seen["backstop"] += 1
    at = moments.parse(call["due"])
    _repeated(world, "backstop", lambda: world.injector.come_back(call["event_id"], at) or True)


def _hear(world: World, notice: Notice) -> None:
    """Gives an event of AWS to those who hear it."""
    detail, at = notice["detail"], moments.parse(notice["time"])
    if notice["detail-type"] == SSM_CHANGED:
        run = world.injector.command_changed
        _repeated(world, "command over", lambda: list(run(detail["instance-id"], at)) or True)
        return
    if notice["detail-type"] == ALARM_CHANGED:
        went_off = moments.parse(detail["state"]["timestamp"])
        stop = partial(world.injector.alarm_went_off, detail["alarmName"], went_off)
        world.stage.spawn("alarm", lambda: _repeated(world, "alarm", lambda: list(stop()) or True), world.stage.now)
    hear(world, notice)


def _stream(world: World, table: str, item: dict[str, Any]) -> None:
    """A stream of a table: a change of the switch, or of a policy, calls the function."""
    unit = item["unit"]["S"] if table == "GroupTags" and item else ""
    if table == "GroupTags" or item.get("key", {}).get("S") in ("switch", "self-halt"):
        at, begins = world.now(), world.stage.now + world.dice.uniform(0.2, 1.0)
        change = partial(world.injector.people_changed, at, unit)
        world.stage.spawn("stream", lambda: _repeated(world, "stream", lambda: list(change()) or True), begins)


# What disturbs


def _halt(world: World, dice: random.Random) -> None:
    world.say("HALT")
    world.dynamo.write(
        "State", world.dynamo.item("State", "switch") | {"key": {"S": "switch"}, "halted": {"BOOL": True}}
    )
    world.checks.lasting.must_end(None)


def _opt_out(world: World, dice: random.Random) -> None:
    world.say("OPT OUT web")
    world.dynamo.write(
        "GroupTags", world.dynamo.item("GroupTags", "web") | {"unit": {"S": "web"}, "opt_out": {"BOOL": True}}
    )
    world.checks.lasting.must_end("web")


def _alarm(world: World, dice: random.Random) -> None:
    name = dice.choice(NAMES)
    world.cloudwatch.set(name, ALARM)
    world.stage.at(world.stage.now + dice.uniform(1, 300), partial(world.cloudwatch.set, name, OK))


def _victims(world: World) -> list[Any]:
    instances = world.fleet.instances
    named = [c["instance_id"] for c in world.checks.claims.values() if c["instance_id"] in instances]
    return [instances[one] for one in named]


def _protect(world: World, dice: random.Random) -> None:
    for instance in _victims(world)[:1]:
        how = dice.choice(("tagged_protected", "scale_in_protected", "termination_protected", "group"))
        world.say(f"PROTECT {instance.instance_id} {how}")
        if how != "group":
            setattr(instance, how, True)
        elif instance.group in world.fleet.groups:
            world.fleet.groups[instance.group].tags["troop:protected"] = "x"


def _withdraw(world: World, dice: random.Random) -> None:
    """Owners take their consent back."""
    for group in world.fleet.groups.values():
        group.tags.pop("troop:inside", None)


def _end(world: World, dice: random.Random) -> None:
    """The group's own reasons, or somebody's, end an instance."""
    for instance in [one for one in _victims(world)[:1] if one.state == "running"]:
        world.say(f"END {instance.instance_id}")
        world.fleet.end(instance, dice.choice(("terminated", "terminated", "stopped")))


def drain(world: World, dice: random.Random) -> None:
    """Its group takes an instance out of service, and waits for a hook."""
    for instance in _victims(world)[:1]:
        if instance.group and instance.state == "running" and not instance.leaving:
            world.say(f"DRAIN {instance.instance_id}")
            world.fleet.drain(instance)


def _shrink(world: World, dice: random.Random) -> None:
    """The other instances of a group end, and are not replaced."""
    victims = _victims(world)
    for group in list(world.fleet.groups.values()):
        group.boots = False
        for instance in list(group.members):
            if instance not in victims and instance.state == "running":
                world.fleet.end(instance)
