"""What must be true of lasting faults, judged by what truly was on the machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.model.fleet import Instance
from tests.model.machine import Command
from tests.model.verdict_checks import A_MINUTE, SKEW, plain, seconds
from troop import faults
from troop.shared.tags import UNTOUCHABLE_TAGS

if TYPE_CHECKING:
    from tests.model.world import World

SENT_WITHIN, DELIVERED_WITHIN = 10.0, 30.0
"""The seconds from the attempt to the request, and from it to the machine: later ones must not be, or never start."""

ROLLS_BACK, BUDGET = 20.0, 60.0
"""The seconds after its end in which a fault is gone, and in which a probe has its answer."""

PROVEN_WITHIN = 120.0
"""The seconds after its latest end in which a fault is over, or its instance is terminated."""

BEGUN_PROVEN_WITHIN = 110.0
"""The same after the latest end of a command that Systems Manager has shown on its machine."""

ENDED_WITHIN = 5.0
"""The seconds in which Run Command is asked for the end of a fault that must end, where functions work."""

A_REPORT = 1.0
"""The seconds in which an agent that can be reached reports that a command has begun."""

MOST_PROBES = 60
"""More probes of one event are a loop."""

ONCE = ("parameters", "installs", "ends_by", "began_at", "command_id", "end_request", "status", "over_at", "proof")
"""What is written once about a fault."""

Item = Mapping[str, Any]


class LastingChecks:
    """Watches events with a lasting fault, and the commands behind them.

    Attributes:
        faults: the accepted commands with a fault, by instance: one in its life.
        repaired: the instances that Troop has terminated because the end of their fault was not proven.
        came_back: when a backstop has last called, by event.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.faults: dict[str, Command] = {}
        self.repaired: dict[str, str] = {}
        self._last: dict[str, tuple[Item, dict[str, Any]]] = {}
        self.came_back: dict[str, float] = {}
        self.cancelled: dict[str, float] = {}
        self._events: dict[str, str] = {}
        self._probes: Counter[str] = Counter()
        self._must_end: dict[str, float] = {}
        self._refused: set[str] = set()
        self._repairers: dict[str, object] = {}

    def fail(self, words: str) -> None:
        self._world.checks.fail(words)

    @property
    def is_punctual(self) -> bool:
        """Whether nothing hinders functions, so that limits of time hold, and only what is planned happens."""
        odds = self._world.faults
        return not (odds.call or odds.kill or odds.slow or odds.clock or odds.people or self._world.is_resting)

    def _event(self, event_id: str) -> dict[str, Any]:
        return plain(self._world.dynamo.item("Events", event_id))

    # What Run Command accepted, and what came of it

    def watch(self, change: str, command: Command) -> None:
        """Something has become of a command."""
        if command.fault is None:
            if change == "sent":
                self._probe(command)
        elif change == "sent":
            self._sent(command)
        elif change == "felt":
            self._felt(command)
        elif change == "cancelled":
            self._world.checks.seen["fault cancelled"] += 1
            self.cancelled.setdefault(command.command_id, self._world.stage.now)

    def _probe(self, command: Command) -> None:
        event_id = self._events.get(command.instance_id)
        if event_id is None:
            self.fail(f"{command.instance_id} is probed, and no event names it")
            return
        self._probes[event_id] += 1
        if self._probes[event_id] > MOST_PROBES:
            self.fail(f"{event_id} is probed for ever")

    def _sent(self, command: Command) -> None:
        world, name = self._world, command.instance_id
        now, began = world.stage.now, world.notes["began"]
        world.checks.seen["fault sent"] += 1
        if name in self.faults:
            self.fail(f"{name} gets a second fault in its life")
        self.faults[name] = command
        event = self._event(self._events.get(name, ""))
        if not event:
            self.fail(f"{name} gets a fault, and no event names it")
        event_id, injection = event["event_id"], event["injection"]
        if event["status"] != "RUNNING" or event.get("attempts") != 1:
            self.fail(f"{event_id} is sent while it is {event['status']}, with {event.get('attempts')} attempts")
        if injection.get("proof") or injection.get("command_id"):
            self.fail(f"{event_id} is sent, and was sent or proven before")
        if not world.faults.slow and now > seconds(event["attempted_at"]) + SENT_WITHIN + SKEW:
            self.fail(f"{event_id} is sent {now - seconds(event['attempted_at']):.0f} s after its attempt")
        fault = command.fault
        assert fault is not None
        request = fault.request(injection["parameters"])
        own = {key: value for key, value in command.parameters.items() if key != "InstallDependencies"}
        if fault.name != event["method"] or own != request:
            self.fail(f"{event_id} is {event['method']} {request}, and {fault.name} {own} is sent")
        if command.parameters.get("InstallDependencies") == "True" and not injection.get("installs"):
            self.fail(f"{event_id} may install packages, which its owner has not allowed")
        if command.limit != DELIVERED_WITHIN:
            self.fail(f"{event_id} can be delivered for {command.limit} s")
        if not self._has_backstop(event):
            self.fail(f"{event_id} is sent without a backstop")
        if now > seconds(event["deadline"]):
            self.fail(f"{event_id} is sent past its deadline")
        halted = [one for one in (world.checks.halted_since, world.checks.verdicts.halted_since) if one is not None]
        if any(since < began for since in halted):
            self.fail(f"{event_id} is sent by a try that began after a halt")
        stopped = world.checks.verdicts.stopped.get(event_id)
        if "abort" in event and stopped is not None and stopped < began:
            self.fail(f"{event_id} is sent by a try that began after an alarm had stopped it")
        out = world.checks.opted_out_since.get(event["unit"])
        if out is not None and out < began:
            self.fail(f"{event_id} is sent by a try that began after its unit had opted out")

    def _has_backstop(self, event: Mapping[str, Any]) -> bool:
        latest = seconds(event["injection"]["ends_by"]) + PROVEN_WITHIN
        if self._world.stage.now - self.came_back.get(event["event_id"], 0.0) < A_MINUTE:  # it makes the next one
            return True
        return any(
            f'"{event["event_id"]}"' in one.payload and one.due <= latest for one in self._world.schedules.all.values()
        )

    def _felt(self, command: Command) -> None:
        """A fault begins: no event that says otherwise may exist, and its end has a latest moment."""
        world = self._world
        world.checks.seen["fault felt"] += 1
        event = self._event(self._events[command.instance_id])
        if event["status"] != "RUNNING" or event["injection"].get("proof"):
            self.fail(f"the fault of {event['event_id']} begins, and the event is {_shown(event)}")
        check = partial(self._outlives, command, event["event_id"], self.is_punctual)
        reported = command.starts[0] + A_REPORT
        for latest in (reported + _longest(event) + BEGUN_PROVEN_WITHIN, _latest(event) + PROVEN_WITHIN):
            world.stage.at(max(world.stage.now, latest + SKEW), check)

    def _outlives(self, command: Command, event_id: str, is_limited: bool) -> None:
        """It is checked without a function: nothing can hide a violation, so the history ends with it."""
        event, world = self._event(event_id), self._world
        if not world.run_command.has(command):
            return
        began = _began(command)
        if began is None and world.stage.now < _latest(event) + PROVEN_WITHIN:
            return
        if began is not None and world.stage.now < began + _longest(event) + BEGUN_PROVEN_WITHIN:
            return
        self._world.checks.seen["fault outlived its end"] += 1
        if is_limited and not event["injection"].get("unproven"):
            self.fail(
                f"the fault of {event_id} outlives its end by {BEGUN_PROVEN_WITHIN:.0f} s or more,"
                f" and the event is {_shown(event)}"
            )

    # What happened to events

    def changed(self, old: Item, new: Item) -> None:
        """An event with an injection was written."""
        if old and new["injection"] is old["injection"] and new["status"] == old["status"]:
            return
        event, event_id = plain(new), new["event_id"]["S"]
        injection, status = event["injection"], event["status"]
        last, before = self._last.get(event_id, (None, {}))
        if last is not old:
            before = plain(old) if old else {}
        self._last[event_id] = new, event
        earlier, was = before.get("injection") or {}, before.get("status")
        self._events[event["instance_id"]] = event_id
        self._only_once(event_id, earlier, injection)
        if event.get("attempts", 0) > 1:
            self.fail(f"{event_id} has {event['attempts']} attempts")
        if status == "RUNNING" and was == "CLAIMED":
            self._begins(before, event)
        if injection.get("end_request") and not earlier.get("end_request"):
            self._world.checks.seen["fault ended early"] += 1
        if injection.get("unproven") and not earlier.get("unproven"):
            self._unproven(event)
        if injection.get("proof") and not earlier.get("proof"):
            self._proven(event)
        if status != was and status not in ("CLAIMED", "RUNNING", "TERMINATED", "LEASHED"):
            self._closed(event, was)
        if injection.get("repairs") and injection["repairs"] != earlier.get("repairs"):
            self._repairers[event_id] = self._world.stage.running
        is_new = status == "TERMINATED" and was == "RUNNING"
        if is_new and event["instance_id"] not in self.repaired and not self._may_have_ended(event, earlier):
            self.fail(f"{event_id} is TERMINATED, and Troop has not terminated {event['instance_id']}")

    def _may_have_ended(self, event: Item, earlier: Item) -> bool:
        """Whether an instance has ended, and who writes this cannot know whether a request of Troop has done it: there
        were several, the only one was another call's, or botocore has sent it more than once.
        """
        world = self._world
        instance = world.fleet.instances.get(event["instance_id"])
        others = earlier.get("repairs") and self._repairers[event["event_id"]] is not world.stage.running
        several = earlier.get("repairs", 0) > 1 or "repeated terminate_instances" in world.notes
        return (others or several) and (instance is None or instance.state == "terminated")

    def _only_once(self, event_id: str, earlier: Item, now: Item) -> None:
        """What is on record about a fault stays as it is."""
        for name in ONCE:
            if earlier.get(name) and earlier[name] != now.get(name):
                self.fail(f"{event_id} changes {name} from {earlier[name]} to {now.get(name)}")
        for name in ("before", "after"):
            first, last = earlier.get(name), now.get(name)
            if first and not last:
                self.fail(f"{event_id} loses the probe {name}")
            elif first and last and first["token"] == last["token"]:
                for part in ("command_id", "reading", "failure"):
                    if first.get(part) and first[part] != last.get(part):
                        self.fail(f"{event_id} changes the {part} of its probe {name}")
            elif first and last and last["sent_at"] < first["sent_at"]:
                self.fail(f"{event_id} replaces its probe {name} by an earlier one")
        if earlier.get("ends_by") and earlier.get("before") != now.get("before"):
            self.fail(f"{event_id} changes the probe before its fault after the attempt")

    def _begins(self, before: Item, event: Item) -> None:
        """An attempt is on record: the machine was read, and nothing spoke against it."""
        event_id, injection = event["event_id"], event["injection"]
        fault = faults.find_lasting(event["method"])
        assert fault is not None
        reading = ((before["injection"].get("before") or {}).get("reading")) or {}
        if not reading:
            self.fail(f"{event_id} is attempted, and nobody has read its instance")
        needed = ("stress", "rollbacks", "hosts", *(trace.field for trace in fault.traces))
        if any(reading.get(name) is None for name in needed):
            self.fail(f"{event_id} is attempted, and its instance was not read in full: {reading}")
        if any(reading[name] for name in ("stress", "rollbacks", "hosts")):
            self.fail(f"{event_id} is attempted on an instance that is not clean: {reading}")
        if (lacking := set(fault.tools) & set(reading["missing"])) and not injection.get("installs"):
            self.fail(f"{event_id} is attempted without {lacking}")
        if fault.returns and not reading.get("running"):
            self.fail(f"{event_id} is to kill what does not run")
        if "abort" in before:
            self.fail(f"{event_id} is attempted after an alarm has stopped it")
        spent = seconds(injection["ends_by"]) - seconds(event["attempted_at"]) - int(injection["parameters"]["seconds"])
        if fault.returns:
            spent = max(spent, DELIVERED_WITHIN)
        if spent < DELIVERED_WITHIN - SKEW:
            self.fail(f"{event_id} may be delivered {spent:.0f} s before it has to end")
        if abs(seconds(event["attempted_at"]) - self._world.stage.now) > 61:
            self.fail(f"{event_id} is attempted at another moment than it says")

    def _proven(self, event: Item) -> None:
        """A proof is on record: the fault is over, and it was by the moment that the proof says."""
        world, event_id = self._world, event["event_id"]
        injection, name = event["injection"], event["instance_id"]
        proof = injection["proof"]
        world.checks.seen[f"proof by {proof['by']}"] += 1
        command = self.faults.get(name)
        if command and world.run_command.has(command):
            self.fail(f"{event_id} is proven to be over ({proof['why']}), and its fault is there")
        instance = world.fleet.instances.get(name)
        if proof["by"] == "probe":
            self._by_probe(event)
        elif instance is not None and instance.state != "terminated":
            self.fail(f"{event_id} is proven by the end of {name}, which is {instance.state}")
        if (proof["by"] == "replaced") != ("terminated_at" in event):
            self.fail(f"{event_id} is proven by {proof['by']}, and Troop has terminated {sorted(self.repaired)}")
        if name not in self.repaired:
            loss = world.checks.verdicts.losses.by_event.get(event_id)
            if loss and proof["by"] == "probe":
                loss.stays = True
                loss.update(world.fleet, world.stage.now)

    def _by_probe(self, event: Item) -> None:
        """A probe proves something only if it was sent after the command was over, and has read this boot."""
        world, event_id, injection = self._world, event["event_id"], event["injection"]
        after, over_at = injection.get("after") or {"token": "none"}, injection.get("over_at")
        probes = (one for one in world.run_command.commands.values() if one.parameters.get("Token") == after["token"])
        probe = next((one for one in probes if one.read is not None), None)
        fault = self.faults.get(event["instance_id"])
        if not over_at or not injection.get("status"):
            self.fail(f"{event_id} is proven, and its command is not over")
        if probe is None or after["token"] not in probe.output:
            self.fail(f"{event_id} is proven by a probe without an answer")
            return
        if fault and (not fault.is_over or probe.sent < fault.states[-1][0]):
            self.fail(f"{event_id} is proven by a probe that was sent before its command was over")
        if after["reading"]["boot"] != injection["before"]["reading"]["boot"]:
            self.fail(f"{event_id} is proven after another boot")

    def _unproven(self, event: Item) -> None:
        """An event stays open: only because the instance must not be terminated, or AWS does not do it."""
        self._world.checks.seen["left unproven"] += 1
        instance = self._world.fleet.instances.get(event["instance_id"])
        if instance is None or instance.state == "terminated":  # it has ended just now: the next look proves that
            return
        if self.is_punctual and not self.must_stay(event):
            self.fail(f"{event['event_id']} is left unproven without a reason: {event['injection']['unproven']}")

    def must_stay(self, event: Item) -> bool:
        """Whether an instance must not be terminated: its owner protects it, or it is its group's last one."""
        world = self._world
        instance = world.fleet.instances.get(event["instance_id"])
        group = world.fleet.groups.get(event["group"])
        if instance is None or group is None or instance.state == "terminated":
            return group is None
        if not instance.group:  # nothing would replace it
            return True
        protected = instance.tagged_protected or instance.scale_in_protected or instance.termination_protected
        others = [one for one in group.serving if one is not instance and one.state == "running"]
        return protected or not others or not group.tags.keys().isdisjoint(UNTOUCHABLE_TAGS)

    def _closed(self, event: Item, was: str | None) -> None:
        event_id, status, name = event["event_id"], event["status"], event["instance_id"]
        command = self.faults.get(name)
        if command and self._world.run_command.has(command):
            self.fail(f"{event_id} is {status}, and its fault is there")
        if status in ("ABANDONED", "GONE_ELSEWHERE"):
            if command:
                self.fail(f"{event_id} is {status} although its fault was sent")
        elif not event["injection"].get("proof"):
            self.fail(f"{event_id} is {status} without a proof")

    # What happened to instances

    def terminated(self, event: Item, instance: Instance) -> None:
        """Troop terminates an instance because the end of its fault is not proven."""
        world, event_id, injection = self._world, event["event_id"], event["injection"]
        name, now = instance.instance_id, world.stage.now
        world.checks.seen["fault repaired"] += 1
        if event["status"] != "RUNNING" or injection.get("proof"):
            self.fail(f"{name} is terminated, and {event_id} is {_shown(event)}")
        if name in self.repaired:
            self.fail(f"{name} is terminated twice")
        self.repaired[name] = event_id
        ends = [_latest(event)]
        began = _began(self.faults[name]) if name in self.faults else None
        if began is not None:
            ends.append(began + _longest(event))
        if injection.get("over_at"):
            ends.append(seconds(injection["over_at"]))
        if injection.get("end_request"):
            ends.append(seconds(injection["end_request"]["at"]) + ROLLS_BACK)
        if now < min(ends) + ROLLS_BACK + BUDGET - SKEW - abs(world.notes.get("skew", 0.0)):
            self.fail(f"{name} is terminated {min(ends) + ROLLS_BACK + BUDGET - now:.0f} s before its time was up")
        seen = world.notes["seen"]
        group = seen.get("groups", {}).get(event["group"])
        if group is None or name in seen.get("protected", {name}):
            self.fail(f"{name} is terminated, and nobody has looked whether it is protected")
            return
        if {tag["Key"] for tag in group["Tags"]} & {*UNTOUCHABLE_TAGS}:
            self.fail(f"{name} is terminated though its group is protected")
        serving = [one for one in group["Instances"] if one["LifecycleState"] == "InService"]
        if any(one["InstanceId"] == name and one["ProtectedFromScaleIn"] for one in serving):
            self.fail(f"{name} is terminated though it is protected from scale-in")
        if not [one for one in serving if one["InstanceId"] != name]:
            self.fail(f"{name} is terminated, the last of its group")

    # Executions

    def answered(self, event_id: str, output: Mapping[str, Any]) -> None:
        """The state Inject is answered: nothing is left to do for the fault itself."""
        event = self._event(event_id)
        self._world.checks.seen["inject answered"] += 1
        proven = event["injection"].get("proof")
        answer = output["event_id"], output["status"]
        if event["status"] == "CLAIMED" or (event["status"] == "RUNNING" and not proven):
            self.fail(f"the execution of {event_id} is told {answer}, and the event is {_shown(event)}")
        if output["status"] not in (event["status"], "RUNNING", "TERMINATED"):
            self.fail(f"the execution of {event_id} is told {answer}, and the event is {event['status']}")

    # Ends on request

    def must_end(self, unit: str | None) -> None:
        """From now on the faults of a unit must end, or all: soon after, Run Command is asked."""
        world = self._world
        if not self.is_punctual:
            return
        for item in world.dynamo.tables["Events"].values():
            if "injection" in item and item["status"]["S"] == "RUNNING" and unit in (None, item["unit"]["S"]):
                world.stage.at(world.stage.now + ENDED_WITHIN, partial(self._has_ended, item["event_id"]["S"]))

    def _has_ended(self, event_id: str) -> None:
        event = self._event(event_id)
        command = self.faults.get(event["instance_id"])
        if event["status"] != "RUNNING" or command is None or command.fault is None:
            return
        injection = event["injection"]
        is_ending = injection.get("end_request") or injection.get("over_at") or injection.get("proof")
        if not is_ending and self._world.run_command.has(command):
            self.fail(f"nobody wants the end of {event_id}, {ENDED_WITHIN:.0f} s after it had to end")
        instance = self._world.fleet.instances.get(event["instance_id"])
        runs = instance is not None and instance.state == "running" and not injection.get("proof")
        is_known = runs and injection.get("command_id") and not command.fault.returns
        if is_known and not command.is_over and command.command_id not in self.cancelled:
            self.fail(f"Run Command is not asked for the end of {event_id}, {ENDED_WITHIN:.0f} s after it had to end")

    # What must be true when all is quiet

    def at_rest(self, events: Mapping[str, Item]) -> set[str]:
        """Returns the ids of events that may be open still: their instances must not be terminated."""
        staying = set()
        for event_id, item in events.items():
            if "injection" not in item:
                continue
            event = plain(item)
            status, name = event["status"], event["instance_id"]
            if status == "RUNNING" and event["injection"].get("unproven") and self.must_stay(event):
                staying.add(event_id)
            if self.repaired.get(name) == event_id and "terminated_at" not in event:
                self.fail(f"Troop has terminated {name}, and {event_id} does not say so")
        return staying


def _began(command: Command) -> float | None:
    """When Systems Manager has shown that a command is on its machine."""
    return next((at for at, status in command.states if status == "InProgress"), None)


def _latest(event: Item) -> float:
    return seconds(event["injection"]["ends_by"])


def _longest(event: Item) -> float:
    """The seconds that its command can take on the machine."""
    return _latest(event) - seconds(event["attempted_at"]) - SENT_WITHIN - DELIVERED_WITHIN


def _shown(event: Item) -> str:
    return f"{event['status']}, {(event['injection'].get('proof') or {}).get('why', 'not proven')}"
