"""Histories: everything in one follows from its seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import cache, partial
from typing import Any

from tests.model.alarms import NAMES, OK, add_alarm
from tests.model.bus import Delivery
from tests.model.checks import ZONE
from tests.model.fleet import Group
from tests.model.people import People
from tests.model.workflow import ask, execute, hear, start_by_hand, sweep
from tests.model.world import Faults, World
from troop import faults
from troop.shared.settings import Settings, parse_settings

DAYS = (
    *[date(2026, 11, 20)] * 17,
    date(2026, 11, 21),  # a Saturday
    date(2026, 11, 26),  # a holiday
    date(2026, 11, 30),  # a freeze
)
UNITS = {"web-v*": "web"}
TERMINATIONS = tuple(fault.name for fault in faults.FAULTS)


@cache
def settings(max_per_day: int, max_in_flight: int, method: str, leashed: bool, halt_after_broken: int) -> Settings:
    """Settings of a deployment with a window of one hour, in which everything is rolled."""
    calendar = {
        "time_zone": "America/Los_Angeles",
        "open": "09:00",
        "close": "10:00",
        "country": "US",
        "freezes": [{"from": "2026-11-30", "to": "2026-11-30", "reason": "release"}],
    }
    return parse_settings(
        {
            "deployment": "Model",
            "leashed": leashed,
            "participation": "opt-out",
            "probability": 1,
            "min_healthy": 2,
            "lowest_min_healthy": 2,
            "min_days_between": 0,
            "method": method,
            "max_per_day": max_per_day,
            "max_in_flight": max_in_flight,
            "on_demand": True,
            "under_load": False,
            "units": UNITS,
            "calendars": {"default": calendar},
            "halt_after_broken": halt_after_broken,
            "recovery_timeout_minutes": 5,
            "inside_instances": True,
            "decision_retention_days": 90,
            "results_retention_days": 365,
            "benchmarks": True,
            "max_nodes": 600,
            "max_nodes_total": 700,
            "max_run_cost": 500,
            "max_scheduled_cost": 500,
            "instance_types": ["*"],
            "allowed_buckets": [],
            "allowed_images": [],
            "allowed_snapshots": [],
            "allowed_targets": [],
            "own_data": False,
            "queues": False,
            "tags": {},
        }
    )


@dataclass(frozen=True)
class History:
    """What a history was: how often what happened, and (when asked for) what, line by line."""

    seed: int
    seen: Counter[str]
    calls: int
    trace: list[str]


class Failed(AssertionError):
    """A history that broke a rule; says how to see it again."""

    def __init__(self, seed: int, violation: BaseException, trace: list[str], kind: str = "") -> None:
        self.seed, self.violation, self.trace = seed, violation, trace
        super().__init__(f"seed {seed}: {violation}\nreplay: python -m perf.model {kind}--seed {seed}")


def run(seed: int, traced: bool = False, prepare: Callable[[World], None] | None = None) -> History:
    """Plays the history of a seed to its end, and judges it.

    Args:
        seed: of everything that is random in it.
        traced: keeps what happened, line by line.
        prepare: changes the world before it starts (mutants do).

    Raises:
        Failed: it broke a rule.
    """
    dice = random.Random(seed)
    random.seed(seed)  # the jitter of retries
    world = _world(dice)
    world.trace = [] if traced else None
    if prepare:
        prepare(world)
    try:
        _day(world, dice)
        rest(world)
        world.checks.at_rest()
    except Exception as error:
        raise Failed(seed, error, world.trace or []) from error
    return History(seed, world.checks.seen, world.calls, world.trace or [])


def _world(dice: random.Random) -> World:
    rate = dice.choice((0.0, 0.01, 0.05, 0.15))
    trouble = Faults(
        call=rate,
        kill=rate / 3,
        switch=dice.choice((0.1, 0.5, 0.9)),
        people=dice.choice((0.0, 0.01, 0.05)),
        slow=dice.choice((0.0, 0.01, 0.1)),
        clock=dice.choice((0.0, 0.0, 0.05)),
        abort=dice.choice((0.0, 0.1, 0.5)),
        twin=dice.choice((0.0, 0.3)),
    )
    is_reliable = dice.random() < 0.15
    delivery = dice.choice((Delivery(), Delivery(0.01), Delivery(0.2, 0.2, 0.2), Delivery(1.0)))
    if is_reliable:
        trouble = replace(trouble, call=0.0, kill=0.0, slow=0.0, clock=0.0, people=0.0)
        delivery = dice.choice((Delivery(), Delivery(0.01)))
    opens = datetime.combine(dice.choice(DAYS), time(9), ZONE).astimezone(UTC)
    chosen = settings(
        dice.choice((1, 2, 20)),
        dice.choice((1, 2, 5)),
        dice.choice(TERMINATIONS),
        dice.random() < 0.1,
        dice.choice((0, 1, 2, 3, 3)),
    )
    world = World(dice, chosen, opens - timedelta(minutes=1), trouble)
    world.delivery = delivery
    world.is_upgraded = not is_reliable and dice.random() < 0.05
    world.bus.hear = partial(hear, world)
    for name in NAMES:
        add_alarm(world, name, OK)
    world.people = People(world, dice.choice((1, 3, 8))).change
    world.fleet.skips = dice.random() < 0.8
    for name in ("web-v041", "db", "api")[: dice.choice((1, 2, 3))]:
        weight = dice.choice((1, 1, 2))
        tags = {"troop:method": dice.choice(TERMINATIONS)} if dice.random() < 0.5 else {}
        group = Group(name, weight * dice.choice((2, 3, 4)), tags, weight=weight, boots=dice.random() < 0.9)
        group.hook = dice.choice((0.0, 30.0, 3000.0))
        group.target_groups = [f"tg-{name}-{n}" for n in range(dice.choice((0, 0, 0, 0, 1, 2)))]
        group.failing = dice.choice((0, 0, 0, 0, 1, 3))
        world.fleet.add(group)
        if dice.random() < 0.5:
            unit = name.partition("-")[0]
            world.dynamo.write("GroupTags", {"unit": {"S": unit}} | hypothesis(dice, unit))
    return world


def hypothesis(dice: random.Random, unit: str) -> dict[str, Any]:
    """What a unit's owner expects of a termination, as attributes of its item."""
    alarms = ("errors", "site", f"{unit}-slow", f"errors, {unit}-slow")
    item: dict[str, Any] = {}
    if dice.random() < 0.8:
        item["success_alarms"] = {"S": dice.choice(alarms)}
    if dice.random() < 0.3:
        item["stop_alarms"] = {"S": dice.choice(alarms)}
    if dice.random() < 0.4:
        item["recovery_within"] = {"N": dice.choice(("30", "100", "200"))}
    return item


def _day(world: World, dice: random.Random) -> None:
    """The ticks of a day: some lost, doubled or late, one now and then where none should be."""
    opens = world.start.timestamp() + 60
    for number in range(6):
        at = opens + 900 * number + dice.choice((0, 0, dice.uniform(0, 800)))
        for _ in range(dice.choice((0, 1, 1, 1, 1, 2))):
            stalled = dice.choice((0.0,) * 8 + (dice.uniform(0, 1200),))
            _start(world, at + dice.uniform(0, 2), stalled)
        if dice.random() < 0.5:  # by its own schedule
            world.stage.spawn(f"between{number}", partial(sweep, world), opens + 900 * number + 480)
    if dice.random() < 0.3:  # in the window's last minutes
        _start(world, opens + 3600 - dice.uniform(20, 120), 0.0)
    for name in list(world.fleet.groups):
        for _ in range(dice.choice((0, 0, 1, 3))):  # whoever has no answer asks again
            key, first = dice.choice("ab"), opens + dice.uniform(0, 5000)
            for again in range(dice.choice((1, 1, 2))):
                at = first + again * dice.choice((0.5, 30.0, 900.0))
                world.stage.spawn(f"ask/{name}/{key}{again}", partial(ask, world, name, key), at)
        if dice.random() < 0.2:  # what nobody has decided, as if somebody had started a child by hand
            at = opens + dice.choice((1800.0, 2700.0, 3500.0)) + dice.uniform(0, 3)
            world.stage.spawn(f"hand/{name}", partial(start_by_hand, world, name, at), at)
    world.stage.run()


def _start(world: World, at: float, stalled: float) -> None:
    number = world.stage.spawned
    world.stage.spawn(f"tick{number}", partial(execute, world, at, stalled), at)
    if world.dice.random() < 0.3:
        world.stage.spawn(f"sweep{number}", partial(sweep, world), at + world.dice.uniform(0, 5))


def rest(world: World, most: int = 8) -> None:
    """Nothing fails any more, and nobody changes anything: halted ticks sweep up what is left."""
    world.is_resting = True
    world.faults = replace(world.faults, call=0, kill=0, people=0, slow=0, clock=0, abort=0, twin=0)
    world.dynamo.write(
        "State", world.dynamo.item("State", "switch") | {"key": {"S": "switch"}, "halted": {"BOOL": True}}
    )

    def sweeps() -> None:
        for _ in range(most):  # a last recovery is known first, and its verdict comes after that
            world.stage.pause(900)
            sweep(world, 4)
            if not any("open" in event for event in world.dynamo.tables["Events"].values()):
                break

    world.stage.spawn("rest", sweeps, world.stage.now)
    world.stage.run()
