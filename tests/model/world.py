"""The world of one history: an account, its faults, and the flows that run in it.

Every AWS call may fail before it acts, act and lose its answer, be throttled, be made twice, or be the last of its
function; between any two calls others may run, time may pass, and people may change their minds.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, ReadTimeoutError

from tests.model.alarms import CloudWatch, suffer
from tests.model.baton import Actor, Stage, Stopped
from tests.model.bus import Bus, Delivery
from tests.model.checks import Checks, Violation
from tests.model.dynamo import Dynamo, refusal
from tests.model.fleet import Fleet, Instance
from tests.model.run_command import RunCommand
from tests.model.schedules import Schedules
from tests.model.tokens import Tokens
from troop.chaos.aws.account_reader import AccountReader
from troop.chaos.aws.alarm_history import AlarmHistory
from troop.chaos.aws.balancers import Balancers
from troop.chaos.aws.claim_transaction import ClaimTransaction
from troop.chaos.aws.decision_table import DecisionTable
from troop.chaos.aws.event_items import from_item
from troop.chaos.aws.event_table import EventTable, StepRefused
from troop.chaos.aws.on_demand_executions import OnDemandExecutions
from troop.chaos.aws.state_table import PolicyTable, StateTable
from troop.chaos.aws.stray_table import StrayTable
from troop.chaos.aws.task_tokens import TaskTokens
from troop.chaos.aws.terminator import Terminator
from troop.chaos.events import Event
from troop.chaos.flows.alarm_stop import AlarmStop
from troop.chaos.flows.clock_check import ClockError
from troop.chaos.flows.hearing import Hearing
from troop.chaos.flows.judgement import Judgement
from troop.chaos.flows.on_demand import OnDemand
from troop.chaos.flows.recovery_check import RecoveryCheck
from troop.chaos.flows.sweep import Sweep
from troop.chaos.flows.termination import Termination
from troop.chaos.flows.tick import Tick
from troop.shared.settings import Settings
from troop.shared.state_keys import EARLIER_TABLES

SALT = b"model"
DECISIVE = {
    "transact_write_items", "update_item", "send_command",
    "terminate_instances", "terminate_instance_in_auto_scaling_group",
}  # fmt: skip
"""Calls between which and their neighbours the narrow places are."""

ONCE = ("transact_write_items", "put_object", "send_command")
"""Calls that are not made twice: they have a token, or their client repeats nothing."""

EXPECTED = (ClientError, BotoCoreError, StepRefused, ClockError)
"""What a step may raise under faults; anything else is a bug."""


class Killed(BaseException):
    """A function's end in the middle: its time ran out, or its machine died."""


class Aborted(BaseException):
    """An execution's end in the middle."""


@dataclass(frozen=True)
class Done:
    """A try of a step that has succeeded."""

    answer: Any


@dataclass
class Faults:
    """Probabilities, for each call (``abort``: each step that failed)."""

    call: float = 0.0
    kill: float = 0.0
    switch: float = 0.3
    people: float = 0.0
    slow: float = 0.0
    clock: float = 0.0
    abort: float = 0.0
    twin: float = 0.0


@dataclass
class World:
    """``people`` is called now and then, to change something; ``leashed`` and all limits are the settings'.
    ``suffers`` is called with the unit that has lost an instance.
    ``is_upgraded``: the executions are those of an earlier version; ``is_resting``: the day is over.
    """

    dice: random.Random
    settings: Settings
    start: datetime
    faults: Faults
    people: Callable[[], None] = lambda: None
    delivery: Delivery = field(default_factory=Delivery)
    suffers: Callable[[World, str], None] = suffer
    objects: dict[str, bytes] = field(default_factory=dict)
    started: dict[str, str] = field(default_factory=dict)
    begin: Callable[[dict[str, Any]], None] = lambda work: None
    due: Callable[[str], None] = lambda payload: None
    trace: list[str] | None = None
    calls: int = 0
    is_upgraded: bool = False
    is_resting: bool = False
    injector: Any = None
    waiting: list[str] = field(default_factory=list)
    until: float = float("inf")

    def __post_init__(self) -> None:
        self.stage = Stage(self.start.timestamp(), self._pick)
        self.checks = Checks(self)
        self.dynamo = Dynamo(self._seconds, lambda: self.dice.random() < 0.5, self.checks.changed)
        self.dynamo.write("State", {"key": {"S": EARLIER_TABLES}})  # no earlier deployment left a table
        self.bus = Bus(self)
        self.fleet = Fleet(
            self._seconds, self.stage.at, self.dice, self._terminated, self.checks.capacity_changed, self.bus.emit
        )
        self.run_command = RunCommand(
            self._seconds, self.stage.at, self.dice, self.fleet, self.bus.emit, self.checks.lasting.watch
        )
        self.schedules = Schedules(self._seconds, self.stage.at, self.dice, self._due)
        self.cloudwatch = CloudWatch(self._seconds, lambda: self.dice.random() < 0.5, self.bus.emit)
        dynamodb, ec2, autoscaling = Client(self, self.dynamo), Client(self, self.fleet), Client(self, self.fleet)
        other, cloudwatch = Client(self, Others(self)), Client(self, self.cloudwatch)
        events = Events(dynamodb, "Events", "State", self.stage_sleep, self.settings.halt_after_broken)
        policies = PolicyTable(dynamodb, "GroupTags")
        state = StateTable(dynamodb, "State", self.settings.leashed)
        balancers = Balancers(lambda service: other)
        self.ssm = Client(self, self.run_command)
        clients = {"autoscaling": autoscaling, "ec2": ec2, "cloudwatch": cloudwatch, "ssm": self.ssm}
        reader = AccountReader(self.settings, lambda service: clients.get(service, other), policies, state)
        self.s3, self.events = other, events
        decisions = DecisionTable(dynamodb, "Decisions", timedelta(days=90), self.stage_sleep)
        strays = StrayTable(dynamodb, "State", self.stage_sleep)
        self.tick = Tick(reader, decisions, events, strays, lambda: None, self._salt, self.clock)
        self.termination = Termination(
            reader,
            ClaimTransaction(dynamodb, "Events", "State", "GroupTags", self.settings.leashed, self.stage_sleep),
            decisions,
            events,
            Terminator({"ec2": ec2, "autoscaling": autoscaling}),
            self._salt,
            self.clock,
        )
        executions = OnDemandExecutions(other, "arn:aws:states:r:1:stateMachine:od")
        self.on_demand = OnDemand(reader, self.termination.claims, events, executions, lambda: None, self.clock)
        timeout = timedelta(minutes=self.settings.recovery_timeout_minutes)
        self.tokens = Tokens(self.stage, self.dice)
        tokens = TaskTokens(Client(self, self.tokens))
        judgement = Judgement(AlarmHistory(cloudwatch))
        self.recovery_check = RecoveryCheck(
            autoscaling, ec2, balancers, events, tokens, judgement, timeout, self.clock, self.stage_sleep
        )
        self.hearing = Hearing(autoscaling, events, self.recovery_check, self.clock)
        self.alarm_stop = AlarmStop(events, self.recovery_check, self.clock)
        self.sweeper = Sweep(ec2, autoscaling, events, self.recovery_check, self.clock, self.stage_sleep)

    def watch_tables(self, stream: Callable[[str, Any], None]) -> None:
        """Tells of every change of a table, as DynamoDB's streams do, and first the checks."""
        checked = self.checks.changed

        def changed(table: str, old: Any, new: Any) -> None:
            checked(table, old, new)
            stream(table, new)

        self.dynamo._changed = changed

    # Time

    def _seconds(self) -> float:
        return self.stage.now

    def now(self) -> datetime:
        """The true time."""
        return datetime.fromtimestamp(self.stage.now, UTC)

    def clock(self) -> datetime:
        """What the running function's clock shows."""
        skew: float = self.notes.get("skew", 0.0)
        return datetime.fromtimestamp(self.stage.now + skew, UTC)

    def stage_sleep(self, seconds: float) -> None:
        self.stage.pause(seconds)

    @property
    def notes(self) -> dict[str, Any]:
        """What is known of the running function."""
        return self.stage.running.notes if self.stage.running else {}

    @property
    def is_reliable(self) -> bool:
        """Whether nothing keeps functions from what they do, and hardly an event is lost."""
        faults, delivery = self.faults, self.delivery
        hindered = faults.call or faults.kill or faults.slow or faults.clock or faults.people or delivery.late
        return not (hindered or self.is_upgraded or self.is_resting) and delivery.lost <= 0.01

    def _pick(self, current: Actor, awake: list[Actor]) -> Actor:
        if current in awake and self.dice.random() >= self.faults.switch:
            return current
        return self.dice.choice(awake)

    # Steps of the workflow

    def invoke(self, step: str, timeout: float, tries: int, run: Callable[[], Any]) -> Any:
        """A step with its retries; None when all have failed.

        Raises:
            Aborted: the execution ends here.
            Violation: the step raised what no fault explains.
        """
        for attempt in range(tries):
            if done := self.attempt(step, timeout, attempt, run):
                return done.answer
            if self.dice.random() < self.faults.abort:
                raise Aborted
            late = self.dice.random() < self.faults.slow
            self.stage.pause(self.dice.uniform(0, 900 if late else min(60, 2.0 * 2**attempt)))
        return None

    def attempt(self, step: str, timeout: float, number: int, run: Callable[[], Any]) -> Done | None:
        """One try of a step; None if it has failed.

        Raises:
            Violation: it raised what no fault explains.
        """
        skew = self.dice.uniform(-1, 1)
        if self.dice.random() < self.faults.clock:
            skew = self.dice.choice((-3600.0, 3600.0))
        now = self.stage.now
        self.notes.update(step=step, attempt=number, ends=now + timeout, began=now, seen={}, unread=False, skew=skew)
        self.say(f"{step} try {number}, clock {skew:+.1f}")
        try:
            return Done(run())
        except Killed:
            self.say(f"{step} killed")
        except EXPECTED as error:
            self.say(f"{step} failed: {type(error).__name__}: {error}")
        except RuntimeError as error:
            if "could not be written" not in str(error):
                raise
        except Exception as error:
            if isinstance(error, Violation):
                raise
            raise Violation(f"{step} raised {type(error).__name__}: {error}") from error
        finally:
            self.notes["ends"] = float("inf")
        return None

    def say(self, words: str) -> None:
        if self.trace is not None:
            who = self.stage.running.name if self.stage.running else "-"
            self.trace.append(f"{self.now():%d %H:%M:%S} {who}: {words}")

    # Calls

    def call(self, backend: Any, operation: str, request: dict[str, Any]) -> Any:
        """One call of a function to AWS, with whatever may come between."""
        late = self._between(operation)
        fault = self._fault()
        if fault == "before":
            self.checks.failed(operation)
            raise self._refusal(operation)
        act = getattr(backend, operation)
        answer = act(**request)
        self.checks.answered(operation, request, answer)
        if fault == "twice" and operation not in ONCE:
            answer = dict(act(**request))
            answer["ResponseMetadata"] = {"RetryAttempts": 1}
            self.notes[f"repeated {operation}"] = self.stage.now
        if fault == "lost":
            self.say(f"{operation}: answer lost")
            self.checks.failed(operation)
            raise ReadTimeoutError(endpoint_url="https://aws")
        if late:
            self.stage.pause(late)
        if self.dice.random() < self.faults.kill:
            self.checks.failed(operation)
            raise Killed
        return answer

    def _between(self, operation: str) -> float:
        """Lets time pass before a call, and others act; returns the seconds until its answer arrives."""
        self.calls += 1
        if self.calls > 20_000:
            raise Violation("it never ends")
        before, after = self.dice.random() * 0.2, 0.0
        if self.faults.slow and self.dice.random() < self.faults.slow:
            before, after = self.dice.choice(((20.0, 0.0), (0.2, 20.0), (10.0, 10.0)))
            before, after = self.dice.random() * before, self.dice.random() * after
        self.stage.pause(before)
        if self.dice.random() < self.faults.people * (5 if operation in DECISIVE else 1):
            self.people()
        if self.stage.now > self.notes.get("ends", float("inf")):
            raise Killed
        if self.trace is not None:
            self.say(operation)
        return after

    def _fault(self) -> str:
        if self.dice.random() >= self.faults.call:
            return ""
        return self.dice.choice(("before", "before", "lost", "twice"))

    def _refusal(self, operation: str) -> Exception:
        kind = self.dice.choice(("throttled", "conflict", "timeout", "internal"))
        self.say(f"{operation}: {kind}")
        if kind == "conflict" and operation == "transact_write_items":
            reasons = [{"Code": "None"}, {"Code": "TransactionConflict"}]
            return refusal("TransactionCanceledException", operation, CancellationReasons=reasons)
        if kind == "conflict" and operation in ("update_item", "put_item"):
            return refusal("TransactionConflictException", operation)
        if kind == "timeout":
            return ReadTimeoutError(endpoint_url="https://aws")
        return refusal({"throttled": "ThrottlingException"}.get(kind, "InternalServerError"), operation)

    def _salt(self) -> bytes:
        return SALT

    def _due(self, payload: str) -> None:
        self.due(payload)

    def _terminated(self, instance: Instance, how: str) -> None:
        self.checks.terminated(instance, how)
        self.suffers(self, instance.group.partition("-")[0])


@dataclass(frozen=True)
class Events(EventTable):
    """The product's table. It decodes each version of an item once: histories read the same one many times."""

    decoded: dict[str, tuple[Any, Event]] = field(default_factory=dict)

    def get(self, event_id: str) -> Event | None:
        key = {"event_id": {"S": event_id}}
        item = self.client.get_item(TableName=self.table, Key=key, ConsistentRead=True).get("Item")
        if item is None:
            return None
        if event_id not in self.decoded or self.decoded[event_id][0] is not item:
            self.decoded[event_id] = item, from_item(item)
        return self.decoded[event_id][1]


class Client:
    """A boto3 client of the world."""

    exceptions = SimpleNamespace(TargetGroupNotFoundException=KeyError)

    def __init__(self, world: World, backend: Any) -> None:
        self._world, self._backend = world, backend

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        def call(**request: Any) -> Any:
            return self._world.call(self._backend, operation, request)

        self.__dict__[operation] = call
        return call

    def get_paginator(self, operation: str) -> Any:
        def paginate(**request: Any) -> Iterator[Any]:
            request.pop("PaginationConfig", None)
            yield self._world.call(self._backend, operation, request)

        return SimpleNamespace(paginate=paginate)


class Others:
    """Step Functions, S3 and load balancers."""

    def __init__(self, world: World) -> None:
        self._world = world

    def put_object(self, Bucket: str, Key: str, Body: bytes, ContentType: str) -> Any:
        self._world.objects[Key] = Body
        return {}

    def start_execution(self, stateMachineArn: str, name: str, input: str) -> Any:
        world = self._world
        if name in world.started:
            if world.started[name] != input:
                raise Violation(f"{name} is started with another input")
            return {}
        world.started[name] = input
        world.begin(json.loads(input))
        return {}

    def describe_target_health(self, **request: Any) -> Any:
        return self._world.fleet.describe_target_health(**request)


__all__ = ["Aborted", "Client", "Faults", "Killed", "Stopped", "Violation", "World"]
