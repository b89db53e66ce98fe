"""What must be true of every history, judged by other code than the product's: by what the tables and instances were
at the moment something happened, not by what a function believed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from tests.model.fleet import Instance
from tests.model.lasting_checks import LastingChecks
from tests.model.verdict_checks import SELF_HALT, VerdictChecks, plain, recovers_from

if TYPE_CHECKING:
    from tests.model.world import World

ZONE = ZoneInfo("America/Los_Angeles")
OPENS, CLOSES = 9 * 60, 10 * 60
DAYS_OFF = {date(2026, 11, 26): "Thanksgiving", date(2026, 11, 30): "freeze"}
SKEW = timedelta(seconds=1)
"""How far a function's clock is off that is right."""

A_FUNCTIONS_LIFE = timedelta(seconds=61)

READ_BY_VERDICTS = ("describe_alarms", "describe_alarm_history", "get_metric_data")

LEGAL = {
    None: {"LEASHED", "CLAIMED"},
    "LEASHED": {"CLAIMED"},
    "CLAIMED": {"TERMINATED", "GONE_ELSEWHERE", "ABANDONED"},
    "TERMINATED": {"RECOVERED", "UNRECOVERED", "GROUP_DELETED"},
}
LEGAL_LASTING = LEGAL | {
    "CLAIMED": {"RUNNING", "ABANDONED"},
    "RUNNING": {"ABANDONED", "TERMINATED", "RECOVERED", "UNRECOVERED", "GROUP_DELETED"},
}
IN_FLIGHT = ("CLAIMED", "RUNNING", "TERMINATED")
WITHOUT_TERMINATION = ("GONE_ELSEWHERE", "ABANDONED")
MAY_CHANGE = {"open", "token"}
"""The attributes that may change after an event's end."""

AWAITED = frozenset({"abort", "detail", "verdict"})
"""Those that may change as long as the verdict is awaited."""

FINAL = {"RECOVERED", "UNRECOVERED", "GROUP_DELETED", "GONE_ELSEWHERE", "ABANDONED"}


class Violation(AssertionError):
    """A history in which something happened that must not."""


def closed(moment: datetime) -> str:
    """Why no chaos may happen at a moment; "" when it may."""
    local = moment.astimezone(ZONE)
    if local.weekday() >= 5:
        return "weekend"
    if local.date() in DAYS_OFF:
        return DAYS_OFF[local.date()]
    minute = local.hour * 60 + local.minute
    return "" if OPENS <= minute < CLOSES else f"{local:%H:%M} is outside the window"


class Checks:
    """Watches a world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.claims: dict[str, dict[str, Any]] = {}
        self.ours: dict[str, str] = {}
        self.claimed_keys: set[tuple[str, str]] = set()
        self.taken_out: set[str] = set()
        self.nothing_since: dict[str, float] = {}
        self.unanswered: set[str] = set()
        self.first: set[tuple[str, str]] = set()
        self.seen: Counter[str] = Counter()
        self.halted_since: float | None = None
        self.opted_out_since: dict[str, float] = {}
        self.verdicts = VerdictChecks(world)
        self.lasting = LastingChecks(world)
        self.violation: Violation | None = None

    def fail(self, words: str) -> None:
        """Ends the history. A flow that goes on after any error must not hide it."""
        self.violation = self.violation or Violation(words)
        raise self.violation

    # What a function was told, for "when it last looked"

    def answered(self, operation: str, request: Mapping[str, Any], answer: Any) -> None:
        if operation == "transact_write_items":
            self.verdicts.committed()
        seen = self._world.notes.get("seen")
        if seen is not None:
            if operation == "describe_auto_scaling_groups":
                groups = {g["AutoScalingGroupName"]: g for g in answer["AutoScalingGroups"]}
                seen["groups"] = seen.get("groups", {}) | groups
            elif operation == "describe_instances" and _asks_for_protected(request):
                seen["protected"] = {i["InstanceId"] for r in answer["Reservations"] for i in r["Instances"]}
            elif operation == "describe_instance_attribute":
                seen.setdefault(operation, {}).setdefault(answer["InstanceId"], []).append(answer)
            elif operation == "describe_instance_refreshes":
                seen.setdefault(operation, {}).setdefault(request["AutoScalingGroupName"], []).append(answer)
            elif operation == "describe_alarms":
                seen.setdefault(operation, []).append(answer)
                seen.setdefault("alarms now", []).append(answer)

    def failed(self, operation: str) -> None:
        """A call to which its function gets no answer that it could trust."""
        if operation in READ_BY_VERDICTS:
            self._world.notes["unread"] = True
        if operation.startswith("terminate"):
            self.unanswered.add(self._world.notes.get("attempts", ""))

    def requested(self, group: str, key: str, repeated: bool) -> None:
        """What a request was told: one of its key is the first, and no other."""
        self.seen["asked again" if repeated else "asked"] += 1
        if not repeated and (group, key) in self.first:
            self.fail(f"two requests for {group} of the key {key} were told that they are the first")
        if not repeated:
            self.first.add((group, key))

    # What happened to the tables

    def changed(self, table: str, old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> None:
        if table == "Events":
            self._event(old, new)
        elif table == "Decisions":
            self._decision(new)
        elif table == "State":
            self._state((new or old or {})["key"]["S"], old or {}, new)
        elif new.get("opt_out", {"BOOL": False})["BOOL"]:
            self.opted_out_since.setdefault(new["unit"]["S"], self._world.stage.now)
        else:
            self.opted_out_since.pop((new or old or {})["unit"]["S"], None)

    def _state(self, key: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        if not new:
            self.verdicts.removed(key)
        elif key.startswith("day#") and int(new["count"]["N"]) < 0:
            self.fail(f"fewer than none on {key}")
        elif key == "switch":
            halted = new.get("halted", {"BOOL": False})["BOOL"]
            self.halted_since = (self.halted_since or self._world.stage.now) if halted else None
        elif key == SELF_HALT:
            if old:
                self.fail("the deployment's own halt is changed")
            self.verdicts.halted()
        elif key.startswith("unit#"):
            if "unrecovered" in new:
                self.taken_out.add(key + " after " + new["unrecovered"]["S"])
            self.verdicts.unit_changed(key, old, new)
        elif key == "in-flight" and int(new["count"]["N"]) < 0:
            self.fail("fewer than none in flight")

    def _event(self, old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> None:
        before, after = old["status"]["S"] if old else None, new["status"]["S"]
        if after != before:
            self.seen[after] += 1
            if after not in (LEGAL_LASTING if "injection" in new else LEGAL).get(before, set()):
                self.fail(f"{new['event_id']['S']} went from {before} to {after}")
            if after == "CLAIMED":
                self._claim(new)
            if after == "UNRECOVERED":
                self._unrecovered(new)
            if after == "RECOVERED":
                self.verdicts.recovered(new)
            if after in WITHOUT_TERMINATION:
                self.nothing_since[new["event_id"]["S"]] = self._world.stage.now
        elif before in FINAL and old and _changed(old, new):
            self.fail(f"{new['event_id']['S']} was changed after its end")
        elif old and old["instance_id"] != new["instance_id"] and after != "LEASHED":
            self.fail(f"{new['event_id']['S']} changed its instance")
        if old and after == ("RUNNING" if "injection" in new else "CLAIMED"):
            if old.get("attempts") != new.get("attempts"):
                self._attempt(old, new)
            elif after == before and "attempted_at" in new:
                self._world.notes["attempts"] = new["event_id"]["S"]
        if "injection" in new:
            self.lasting.changed(old or {}, new)
        self.verdicts.changed(old or {}, new)

    def _attempt(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """An attempt is counted: no alarm is known to have gone off, and before the first one all were read again."""
        event_id, notes = new["event_id"]["S"], self._world.notes
        notes["attempts"] = event_id
        if "abort" in old:
            self.fail(f"{event_id} is attempted after an alarm has stopped it")
        states = _states(notes["seen"].get("alarms now", ()))
        for name in self.verdicts.alarms_of(new) if "attempts" not in old else ():
            if states.get(name) != "OK":
                self.fail(f"{event_id} is attempted though its alarm {name} is {states.get(name)} after the claim")

    def _claim(self, event: Mapping[str, Any]) -> None:
        world = self._world
        plain = {key: next(iter(value.values())) for key, value in event.items()}
        event_id, unit = plain["event_id"], plain["unit"]
        now, table = world.now(), world.dynamo.tables
        if event_id in self.claims:
            self.fail(f"{event_id} is claimed for the second time")
        if event_id.startswith("od#"):
            request_key = plain["group"], event_id.rpartition("#")[2]
            if request_key in self.claimed_keys:
                self.fail(f"{event_id} is claimed for a key of {plain['group']} that led to another event before")
            self.claimed_keys.add(request_key)
        self.claims[event_id] = plain
        looked = datetime.fromisoformat(plain["at"].partition("#")[0])  # the claim comes a little later
        on_demand = event_id.startswith("od#")
        if not on_demand and (words := closed(looked + SKEW) and closed(looked - SKEW)):
            self.fail(f"{event_id} is claimed: {words}")
        if not looked - SKEW <= now <= looked + A_FUNCTIONS_LIFE:
            self.fail(f"{event_id} is claimed at {now} for {looked}")
        if plain["day"] != str(now.astimezone(ZONE).date()):
            self.fail(f"{event_id} is claimed on {now} for {plain['day']}")
        if event_id.rpartition("#")[0] != f"od#{unit}" if on_demand else event_id != f"{plain['day']}#{unit}":
            self.fail(f"{event_id} is claimed on {now}")
        deadline = datetime.fromisoformat(plain["deadline"])
        if deadline > now + timedelta(minutes=10) + SKEW or (not on_demand and closed(deadline - timedelta(seconds=1))):
            self.fail(f"{event_id} may be carried out until {deadline}")
        switch = world.dynamo.item("State", "switch")
        leashed = switch.get("leashed", {"BOOL": world.settings.leashed})["BOOL"]
        if leashed or switch.get("halted", {"BOOL": False})["BOOL"]:
            self.fail(f"{event_id} is claimed after the switch was set")
        self.verdicts.claimed(plain)
        world.notes["seen"]["alarms now"] = []
        if world.notes["step"] != "claim":  # lasting.py claims what is fit
            self._policy(event_id, unit, plain)
        if "unrecovered" in world.dynamo.item("State", f"unit#{unit}"):
            self.fail(f"{event_id} is claimed of a unit that has not recovered")
        if any(
            e["unit"]["S"] == unit and e["status"]["S"] in IN_FLIGHT for e in table["Events"].values() if e != event
        ):
            self.fail(f"{event_id} is claimed while another of its unit is in flight")
        others = [e for e in table["Events"].values() if e["event_id"]["S"] != event_id]
        if sum(e["status"]["S"] in IN_FLIGHT for e in others) >= world.settings.max_in_flight:
            self.fail(f"{event_id} is one in flight too many")
        claims = [c for c in self.claims.values() if c["day"] == plain["day"] and self._counts(c["event_id"])]
        if len(claims) > world.settings.max_per_day:
            self.fail(f"{event_id} is one too many for the day")
        before = [c for c in self.claims.values() if (c["unit"], c["day"]) == (unit, plain["day"]) and c is not plain]
        for other in () if on_demand else before:
            if self._counts(other["event_id"]):
                self.fail(f"{event_id} is claimed though {other['event_id']} was the unit's termination of the day")
            if other["event_id"] in self.unanswered and self._status(other["event_id"]) == "ABANDONED":
                self.fail(f"{event_id} is claimed though nobody knows what AWS made of {other['event_id']}")

    def _status(self, event_id: str) -> str:
        return str(self._world.dynamo.item("Events", event_id).get("status", {"S": "CLAIMED"})["S"])

    def _counts(self, event_id: str) -> bool:
        """Whether a claim is a termination, or may become one."""
        return self._status(event_id) not in WITHOUT_TERMINATION

    def _decision(self, new: Mapping[str, Any]) -> None:
        event_id = f"{new['day']['S']}#{new['unit']['S']}"
        spent = self.nothing_since.get(event_id, float("inf"))
        if new["reason"]["S"] == "terminate" and spent < self._world.notes["began"]:
            self.fail(f"{event_id} is decided though it was given up before: it cannot be claimed again")

    def _unrecovered(self, event: Mapping[str, Any]) -> None:
        patience = timedelta(minutes=self._world.settings.recovery_timeout_minutes)
        if self._world.now() + SKEW < datetime.fromisoformat(recovers_from(plain(event))) + patience:
            self.fail(f"{event['event_id']['S']} is UNRECOVERED before its time was up")

    def _policy(self, event_id: str, unit: str, plain: Mapping[str, Any]) -> None:
        """The table's policy as it is now; the group as this try has last read it."""
        item = self._world.dynamo.item("GroupTags", unit)
        seen = self._world.notes["seen"]
        group = seen.get("groups", {}).get(plain["group"])
        if group is None:
            self.fail(f"{event_id} is claimed without a look at its group")
        every = {name: {t["Key"]: t["Value"] for t in g["Tags"]} for name, g in seen["groups"].items()}
        tags = [own for name, own in every.items() if own.get("troop:unit", name.partition("-")[0]) == unit]
        own = {t["Key"]: t["Value"] for t in group["Tags"]}
        out = item.get("opt_out", {}).get("BOOL")
        if out or (out is None and any(t.get("troop:opt_out") == "true" for t in tags)):
            self.fail(f"{event_id} is claimed of a unit that is opted out")
        if item.get("probability", {}).get("N") == "0" and not event_id.startswith("od#"):
            self.fail(f"{event_id} is claimed at probability 0")
        if "troop:protected" in own or "troop:fleet" in own:
            self.fail(f"{event_id} is claimed of a protected group")
        serving = [i for i in group["Instances"] if i["LifecycleState"] == "InService"]
        minimum = int(item.get("min_healthy", {"N": str(self._world.settings.min_healthy)})["N"])
        minimum = max(minimum, self._world.settings.lowest_min_healthy)
        weight = sum(int(i.get("WeightedCapacity", 1)) for i in serving)
        if len(serving) < minimum or weight < group["DesiredCapacity"]:
            self.fail(f"{event_id} is claimed below its minimum: {len(serving)} in service")
        victim = next((i for i in serving if i["InstanceId"] == plain["instance_id"]), None)
        if victim is None or victim["ProtectedFromScaleIn"]:
            self.fail(f"{event_id} names an instance that is out of service or protected")
        if "protected" not in seen or plain["instance_id"] in seen["protected"]:
            self.fail(f"{event_id} names an instance that is tagged protected, or nobody has looked")
        readings = seen.get("describe_instance_attribute", {}).get(plain["instance_id"], [])
        protection = {name: a[name]["Value"] for a in readings for name in a if name != "InstanceId"}
        if protection != {"DisableApiTermination": False, "DisableApiStop": False}:
            self.fail(f"{event_id} names an instance that EC2 protects, or nobody has asked: {protection}")
        if group["SuspendedProcesses"]:
            self.fail(f"{event_id} is claimed of a group with suspended processes")
        answers = seen.get("describe_instance_refreshes", {}).get(plain["group"])
        if not answers or any(r["Status"] == "InProgress" for a in answers for r in a["InstanceRefreshes"]):
            self.fail(f"{event_id} is claimed during an instance refresh, or nobody has looked")
        states = _states(seen.get("describe_alarms", ()))
        named = [item.get(key, {"S": ""})["S"] for key in ("stop_alarms", "success_alarms")]
        for name in ",".join(named).replace(",", " ").split():
            if states.get(name) != "OK":
                self.fail(f"{event_id} is claimed though its alarm {name} is {states.get(name)}")

    # What happened to instances

    def capacity_changed(self, group: str) -> None:
        """A group's capacity, as AWS shows it, may have changed."""
        self.verdicts.losses.update(group, self._world.fleet, self._world.stage.now)

    def terminated(self, instance: Instance, how: str) -> None:
        """A call of ours terminates an instance that was not on its way out."""
        world, name = self._world, instance.instance_id
        self.seen[f"terminated by {how}"] += 1
        events = world.dynamo.tables["Events"]
        over = {key for (key,), e in events.items() if e["status"]["S"] in ("ABANDONED", "GONE_ELSEWHERE")}
        claims = [c for c in self.claims.values() if c["instance_id"] == name and c["event_id"] not in over]
        if len(claims) != 1:
            self.fail(f"{name} is terminated, named by {len(claims)} events")
        event_id = claims[0]["event_id"]
        stored = world.dynamo.item("Events", event_id)
        if "injection" in stored:
            self.lasting.terminated(plain(stored), instance)
            return
        if stored["status"]["S"] != "CLAIMED" or "attempted_at" not in stored:
            self.fail(f"{name} is terminated, its event is {stored['status']['S']}")
        if event_id in self.ours.values():
            self.fail(f"{event_id} terminates a second instance")
        self.ours[name] = event_id
        if not event_id.startswith("od#") and (words := closed(world.now())):
            self.fail(f"{name} is terminated: {words}")
        if stored.get("os_shutdown", {}).get("BOOL") is not (how != "crash"):
            self.fail(f"{name} is terminated by {how}, and its event says otherwise: {stored.get('os_shutdown')}")
        method = stored["method"]["S"]
        if how not in (method, "shutdown" if method == "crash" else method):
            self.fail(f"{name} is terminated by {how}, and its event's method is {method}")
        if world.now() > datetime.fromisoformat(claims[0]["deadline"]):
            self.fail(f"{name} is terminated past the deadline")
        if self.halted_since is not None and self.halted_since < world.notes["began"]:
            self.fail(f"{name} is terminated by a try that began after a halt")
        if "abort" in stored and self.verdicts.stopped[event_id] < world.notes["began"]:
            self.fail(f"{name} is terminated by a try that began after an alarm had stopped its event")
        since = self.verdicts.halted_since
        if since is not None and since < world.notes["began"]:
            self.fail(f"{name} is terminated by a try that began after the deployment had halted itself")

    # What must be true when all is quiet

    def at_rest(self) -> None:
        if self.violation:
            raise self.violation
        world = self._world
        events = {e["event_id"]["S"]: e for e in world.dynamo.tables["Events"].values()}
        staying = self.lasting.at_rest(events)
        for event_id, event in events.items():
            if event_id in staying:
                continue
            if event["status"]["S"] not in FINAL | {"LEASHED"}:
                self.fail(f"{event_id} is still {event['status']['S']}")
            if "open" in event:
                self.fail(f"{event_id} is over and still counted as open")
        count = int(world.dynamo.item("State", "in-flight").get("count", {"N": "0"})["N"])
        if count != len(staying):
            self.fail(f"{count} in flight, {len(staying)} open")
        for day in {c["day"] for c in self.claims.values()}:
            counted = int(world.dynamo.item("State", f"day#{day}")["count"]["N"])
            terminated = sum(c["day"] == day and self._counts(c["event_id"]) for c in self.claims.values())
            if counted != terminated:
                self.fail(f"{counted} counted on {day}, {terminated} terminated")
        self._units_at_rest()
        self.verdicts.at_rest(events)
        for name, event_id in self.ours.items():
            if events[event_id]["status"]["S"] not in ("RECOVERED", "UNRECOVERED", "GROUP_DELETED"):
                self.fail(f"{name} was terminated by us, its event says {events[event_id]['status']['S']}")
        for event_id, event in events.items():
            status = event["status"]["S"]
            untried = status == "ABANDONED" and "attempts" not in event
            if "abort" in event and untried and event["cause"]["S"] != "alarm":
                self.fail(f"{event_id} was stopped by an alarm, and is abandoned because of {event['cause']['S']}")
            if event_id in self.ours.values() and "os_shutdown" not in event:
                self.fail(f"{event_id} does not say whether the operating system was shut down")
            if status in ("RECOVERED", "UNRECOVERED", "GROUP_DELETED"):
                if ("terminated_at" not in event and "injection" not in event) or "attempted_at" not in event:
                    self.fail(f"{event_id} is {status} and was never terminated")
                if status == "RECOVERED" and float(event["recovery_seconds"]["N"]) < 0:
                    self.fail(f"{event_id} recovered before it was terminated")
            if status == "UNRECOVERED" and f"unit#{event['unit']['S']} after {event_id}" not in self.taken_out:
                self.fail(f"{event_id} is UNRECOVERED and its unit goes on")
        for event_id in self.claims:
            if event_id not in events:
                self.fail(f"{event_id} is lost")

    def _units_at_rest(self) -> None:
        """A unit's last termination is the newest that there was, not a claim that came to nothing."""
        for unit in {c["unit"] for c in self.claims.values()}:
            counting = [c for c in self.claims.values() if c["unit"] == unit and self._counts(c["event_id"])]
            item = self._world.dynamo.item("State", f"unit#{unit}")
            last_termination = tuple(item[name]["S"] if name in item else None for name in ("last_day", "last_event"))
            # Claims are kept in the order in which they were made.
            true = (counting[-1]["day"], counting[-1]["event_id"]) if counting else (None, None)
            if last_termination != true:
                self.fail(f"the last termination of {unit} is said to be {last_termination}, and was {true}")


def _asks_for_protected(request: Mapping[str, Any]) -> bool:
    """Whether a call reads the instances with the tag that protects them."""
    return any(one["Name"] == "tag-key" for one in request.get("Filters", ()))


def _states(answers: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The state of each alarm in the last answer with it."""
    alarms = [alarm for answer in answers for kind in answer.values() for alarm in kind]
    return {alarm["AlarmName"]: alarm["StateValue"] for alarm in alarms}


def _changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> set[str]:
    """The attributes of an event that differ, and must not after its end."""
    later = AWAITED if "settles_at" in old and "verdict" not in old else frozenset()
    return {key for key in {*old, *new} - MAY_CHANGE - later if old.get(key) != new.get(key)}
