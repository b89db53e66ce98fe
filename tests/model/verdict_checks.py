"""What must be true of recoveries, verdicts and of the deployment's own halt, judged by what truly happened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tests.model.alarms import ALARM, OK, RECORDED
from tests.model.truth import Loss, Losses, changed_since, family, lived, settle

if TYPE_CHECKING:
    from tests.model.world import World

SKEW = 1.1
"""The seconds by which two moments of functions with right clocks may be off, together with their rounding."""

MARGIN = 60.0
"""The seconds after the slowest alarm's time that a verdict waits."""

KNOWN_IN_TIME = 5.0
"""Seconds within which a recovery is known where events arrive."""

ANSWERED_IN = 10.0
"""Seconds within which an execution goes on after what it waits for."""

HEARD_IN = 5.0
"""Seconds within which Troop knows that an alarm went off, where events arrive."""

A_MINUTE, HOUR = 60.0, 3600.0
RECOVERED, UNRECOVERED = "RECOVERED", "UNRECOVERED"
HELD, BROKEN, UNKNOWN = "HELD", "BROKEN", "UNKNOWN"
SELF_HALT = "self-halt"
UNTOLD = ("CLAIMED", "RUNNING", "TERMINATED")
"""The statuses with which the state CheckRecovery is not answered."""


@dataclass(frozen=True)
class Breach:
    """A verdict BROKEN: when it was written, and its causes: its unit, and the alarms that went off."""

    at: float
    unit: str
    causes: frozenset[str]


class VerdictChecks:
    """Watches the ends of events.

    Attributes:
        out: the units that must stay out of chaos, with the event that is the reason.
        halted_since: when the deployment halted itself; None if it has not, or people have taken it back.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.losses = Losses()
        self.out: dict[str, str] = {}
        self.halted_since: float | None = None
        self.was_reliable = False
        self._breaches: list[Breach] = []
        self._closed: dict[str, float] = {}
        self.stopped: dict[str, float] = {}
        self._fresh: list[dict[str, Any]] = []

    def fail(self, words: str) -> None:
        self._world.checks.fail(words)

    # Recoveries

    def claimed(self, event: Mapping[str, Any]) -> None:
        """A claim: from now on the truth about its group is followed."""
        self.was_reliable = self._world.is_reliable
        world = self._world
        if self.halted_since is not None:
            self.fail(f"{event['event_id']} is claimed after the deployment halted itself")
        if reason := self.out.get(event["unit"]):
            self.fail(f"{event['event_id']} is claimed, though {reason} took the unit out of chaos")
        loss = Loss(event["group"], event["instance_id"], int(event["desired"]), is_lasting="injection" in event)
        self.losses.follow(event["event_id"], loss, world.fleet, world.stage.now)

    def recovered(self, item: Mapping[str, Any]) -> None:
        """An event is closed as RECOVERED: the group was whole between the last look that found it short and the first
        that found it whole.
        """
        event = plain(item)
        loss, world = self.losses.by_event[event["event_id"]], self._world
        until = seconds(event["recovered_at"]) + SKEW
        short = event["watch"].get("short_at")
        since = (seconds(short) if short else seconds(recovers_from(event))) - SKEW
        if not loss.was_whole(since, until):
            self.fail(f"{event['event_id']} is RECOVERED, and its group was not whole")
        rise = loss.rise(until)
        if short and rise is not None and rise < seconds(short) - SKEW:
            self.fail(f"{event['event_id']} was whole {seconds(short) - rise:.1f} s before it was last found short")
        self._closed[event["event_id"]] = world.stage.now
        if world.is_reliable:
            proven = seconds(event["injection"]["proof"]["at"]) if "injection" in event else 0.0
            late = until - SKEW - world.notes.get("skew", 0.0) - max(rise or 0.0, proven)
            world.checks.seen[f"recovery known {'in time' if late <= KNOWN_IN_TIME else 'late'}"] += 1
            # A group that was whole at the proof has no event, so that only the workflow could look.
            lost = world.checks.seen["event lost"] or ("injection" in event and world.checks.seen["workflow lost"])
            if late > KNOWN_IN_TIME + 2 and not lost:
                self.fail(f"{event['event_id']} has recovered {late:.1f} s before anybody knew, and no event was lost")

    def check_answer(self, event_id: str, output: Mapping[str, Any]) -> None:
        """An execution is told that the event that it waits for is over, or has recovered."""
        stored = plain(self._world.dynamo.item("Events", event_id))
        self._world.checks.seen["token answered"] += 1
        if output["event_id"] != event_id or output["status"] != stored["status"] or stored["status"] in UNTOLD:
            self.fail(f"the execution of {event_id} is told {output}, and the event is {stored['status']}")
        waited = self._world.stage.now - self._closed.get(event_id, float("inf"))
        if self._world.is_reliable and waited > ANSWERED_IN and "settles_at" not in stored:
            self.fail(f"the execution of {event_id} is told {waited:.0f} s after the event was over")

    # Verdicts

    def changed(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """An event was changed."""
        if "abort" in new and "abort" not in old:
            self._stopped(plain(new))
        if "verdict" in new and "verdict" not in old:
            event = plain(new)
            self._judged(event)
            self._fresh.append(event)

    def alarms_of(self, item: Mapping[str, Any]) -> list[str]:
        """Returns the names of all alarms of an event."""
        hypothesis = plain(item).get("hypothesis") or {}
        return [*(hypothesis.get("success_alarms") or ()), *(hypothesis.get("stop_alarms") or ())]

    def _stopped(self, event: dict[str, Any]) -> None:
        """An alarm stops an event: it is one of the event's, and went off then, and not before the claim."""
        event_id, alarm, world = event["event_id"], event["abort"]["alarm"], self._world
        at = seconds(event["abort"]["at"])
        self.stopped[event_id] = world.stage.now
        world.checks.seen["stopped by an alarm"] += 1
        hypothesis = event.get("hypothesis") or {}
        if alarm not in [*(hypothesis.get("success_alarms") or ()), *(hypothesis.get("stop_alarms") or ())]:
            self.fail(f"{event_id} is stopped by {alarm}, which is not its alarm")
        if ALARM not in lived(world.cloudwatch, alarm, at - 0.01, at + 0.01):
            self.fail(f"{event_id} is stopped by {alarm}, which did not go off then")
        if at < seconds(event["at"].partition("#")[0]) - A_MINUTE - SKEW:
            self.fail(f"{event_id} is stopped by {alarm}, which went off long before the claim")

    def _judged(self, event: dict[str, Any]) -> None:
        verdict, event_id, status = event["verdict"], event["event_id"], event["status"]
        value = verdict["value"]
        self._world.checks.seen[f"verdict {value}"] += 1
        if verdict["since"] != hit_at(event):
            self.fail(f"{event_id} is judged from {verdict['since']} on")
        names = _names(event)
        if [record["name"] for record in verdict["alarms"]] != names:
            self.fail(f"{event_id} is judged by {verdict['alarms']}, and has {names}")
        if value != _again(event):
            self.fail(f"{event_id} is {value}, and what it stores makes it {_again(event)}")
        since, until = seconds(verdict["since"]), seconds(verdict["until"])
        surely = [lived(self._world.cloudwatch, name, since + SKEW, until - SKEW - RECORDED) for name in names]
        perhaps = [lived(self._world.cloudwatch, name, since - SKEW, until + SKEW) for name in names]
        if value == HELD:
            self._held(event, surely, until)
        elif value == BROKEN:
            if not (status == UNRECOVERED or any(ALARM in states for states in perhaps) or self._was_slow(event)):
                self.fail(f"{event_id} is BROKEN without evidence: {verdict['why']}")
        elif status == RECOVERED and not _was_cut_short(event) and self._is_clear(event, perhaps, since, until):
            self.fail(f"{event_id} is UNKNOWN, and everything was clear: {verdict['why']}")

    def _held(self, event: dict[str, Any], surely: list[set[str]], until: float) -> None:
        event_id, names = event["event_id"], _names(event)
        if event["status"] != RECOVERED:
            self.fail(f"{event_id} is HELD, and {event['status']}")
        for name, states in zip(names, surely, strict=True):
            if states != {OK}:
                self.fail(f"{event_id} is HELD, and its alarm {name} was {', '.join(sorted(states))}")
        # Somebody can change an alarm after it was read for the verdict: then nobody knows what it was.
        if names and not changed_since(self._world.cloudwatch, names, until):
            began = seconds(hit_at(event)) - SKEW
            for name in names:
                if not self._world.cloudwatch.had_data(name, began, until + SKEW):
                    self.fail(f"{event_id} is HELD, and its alarm {name} had no data")
            needed = min(HOUR, settle(self._world.cloudwatch, names)) + MARGIN
            if until < seconds(event["recovered_at"]) + needed - SKEW:
                self.fail(f"{event_id} is HELD before its alarms had the time to go off")
        limit, loss = _limit(event), self.losses.by_event[event["event_id"]]
        rise = loss.rise(seconds(event["recovered_at"]) + SKEW)
        if limit is not None and rise is not None and rise - seconds(recovers_from(event)) > limit + SKEW:
            self.fail(f"{event_id} is HELD, and its recovery took {rise - seconds(recovers_from(event)):.1f} s")

    def _was_slow(self, event: dict[str, Any]) -> bool:
        """Whether its recovery truly took longer than its hypothesis allows."""
        limit = _limit(event)
        if limit is None or event["status"] != RECOVERED:
            return False
        rise = self.losses.by_event[event["event_id"]].rise(seconds(event["recovered_at"]) + SKEW)
        return rise is not None and rise - seconds(recovers_from(event)) > limit - SKEW

    def _is_clear(self, event: dict[str, Any], perhaps: list[set[str]], since: float, until: float) -> bool:
        """Whether nothing was in doubt, and everything could be read."""
        cloudwatch, names, limit = self._world.cloudwatch, _names(event), _limit(event)
        whole = sorted({one for name in names for one in family(cloudwatch, name)})
        calm = all(lived(cloudwatch, name, since - SKEW, self._world.stage.now) == {OK} for name in whole)
        quick = limit is None or seconds(event["recovered_at"]) - seconds(recovers_from(event)) <= limit - SKEW
        with_data = all(cloudwatch.had_data(name, since, until) for name in whole)
        return calm and quick and with_data and not self._world.notes.get("unread")

    # Units, and the halt

    def returned(self, unit: str) -> None:
        """Its owner returns a unit to chaos."""
        self.out.pop(unit, None)

    def resumed(self) -> None:
        """Somebody takes the deployment's own halt back."""
        self.halted_since = None
        self._breaches.clear()

    def removed(self, key: str) -> None:
        """An item of State is gone."""
        if key == SELF_HALT and self.halted_since is not None:
            self.fail("the deployment's own halt is removed, and not by people")

    def unit_changed(self, key: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        unit = key.removeprefix("unit#")
        if "unrecovered" in old and "unrecovered" not in new and unit in self.out:
            self.fail(f"{unit} returns to chaos after {self.out[unit]}, and not by people")

    def committed(self) -> None:
        """A transaction was written as a whole."""
        fresh, self._fresh = self._fresh, []
        for event in fresh:
            if event["verdict"]["value"] == BROKEN:
                self._broken(event)

    def _broken(self, event: dict[str, Any]) -> None:
        world, now = self._world, self._world.stage.now
        self.out[event["unit"]] = event["event_id"]
        if "unrecovered" not in world.dynamo.item("State", f"unit#{event['unit']}"):
            self.fail(f"{event['event_id']} is BROKEN, and its unit goes on")
        causes = {f"unit {event['unit']}", *(f"alarm {name}" for name in _went_off(event))}
        self._breaches.append(Breach(now, event["unit"], frozenset(causes)))
        after = world.settings.halt_after_broken
        least = independent(one.causes for one in self._breaches if one.at >= now - HOUR + 5)
        is_halted = bool(world.dynamo.item("State", SELF_HALT))
        if after and least >= after and not is_halted:
            self.fail(f"{least} causes broke units within an hour, and the deployment has not halted itself")

    def halted(self) -> None:
        """The deployment halts itself, in the transaction of a verdict."""
        world, now = self._world, self._world.stage.now
        world.checks.seen["halted itself"] += 1
        fresh = [{f"unit {e['unit']}", *(f"alarm {n}" for n in _went_off(e))} for e in self._fresh]
        recent = [one.causes for one in self._breaches if one.at >= now - HOUR - 5]
        most, after = independent([*recent, *fresh]), world.settings.halt_after_broken
        if not after or most < after:
            self.fail(f"the deployment halts itself because of {most} causes, not {after}")
        if self.halted_since is None:
            self.halted_since = now

    def at_rest(self, events: Mapping[str, Mapping[str, Any]]) -> None:
        for event_id, item in events.items():
            if item["status"]["S"] in (RECOVERED, UNRECOVERED, "GROUP_DELETED") and "verdict" not in item:
                self.fail(f"{event_id} is {item['status']['S']} and has no verdict")
            if self.was_reliable and not self._world.checks.seen["event lost"] and "verdict" in item:
                self._heard(plain(item))
        for unit, event_id in self.out.items():
            if "unrecovered" not in self._world.dynamo.item("State", f"unit#{unit}"):
                self.fail(f"{unit} is back in chaos, and nobody has returned it after {event_id}")
        if (self.halted_since is not None) != bool(self._world.dynamo.item("State", SELF_HALT)):
            self.fail("the deployment's own halt is gone, and nobody has taken it back")

    def _heard(self, event: dict[str, Any]) -> None:
        """Where events arrive, an alarm that goes off stops what it can, at once."""
        since, until = seconds(hit_at(event)) + HEARD_IN, seconds(event["verdict"]["at"]) - HEARD_IN
        # While an event changes its place in the index, a query can miss it: then the verdict finds the alarm.
        ended = seconds(event["watch"]["checked_at"])
        for record in event["verdict"]["alarms"]:
            loud = [
                one
                for one in record["states"]
                if one["state"] == ALARM
                and since < seconds(one["at"]) < until
                and abs(seconds(one["at"]) - ended) > HEARD_IN
            ]
            if loud and "abort" not in event:
                self.fail(f"{event['event_id']} is not stopped, though {record['name']} went off at {loud[0]['at']}")


def independent(causes: Iterable[Iterable[str]]) -> int:
    """Counts what broke for reasons of its own: sets that share something, also through others, count once."""
    groups: list[set[str]] = []
    for one in causes:
        joined = {*one}
        for group in [group for group in groups if group & joined]:
            groups.remove(group)
            joined |= group
        # What it has joined may now touch another group.
        groups = [group for group in groups if not group & joined] + [joined]
    return len(groups)


def hit_at(event: Mapping[str, Any]) -> str:
    """Returns when a fault hit: a lasting one at its attempt."""
    return str(event["attempted_at" if "injection" in event else "terminated_at"])


def recovers_from(event: Mapping[str, Any]) -> str:
    """Returns from when on the recovery of a closed event counts."""
    return str(event.get("terminated_at") or event["injection"]["proof"]["at"])


def seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def plain(item: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an item of DynamoDB without types."""
    return {name: _value(value) for name, value in item.items()}


def _value(value: Mapping[str, Any]) -> Any:
    ((kind, inner),) = value.items()
    if kind == "M":
        return plain(inner)
    if kind == "L":
        return [_value(one) for one in inner]
    return None if kind == "NULL" else float(inner) if kind == "N" else inner


def _names(event: Mapping[str, Any]) -> list[str]:
    """Returns the names of its success alarms."""
    return list((event.get("hypothesis") or {}).get("success_alarms") or ())


def _limit(event: Mapping[str, Any]) -> float | None:
    return (event.get("hypothesis") or {}).get("recovery_within")


def _states(event: Mapping[str, Any], record: Mapping[str, Any]) -> list[str]:
    """Returns the stored states of an alarm in the watched span."""
    since, until = event["verdict"]["since"], event["verdict"]["until"]
    ends = [one["at"] for one in record["states"][1:]] + ["9999"]
    return [
        one["state"]
        for one, end in zip(record["states"], ends, strict=False)  # without states it has no end either
        if one["at"] <= until and (end > since or one["at"] >= since)
    ]


def _went_off(event: Mapping[str, Any]) -> list[str]:
    return [record["name"] for record in event["verdict"]["alarms"] if ALARM in _states(event, record)]


def _again(event: Mapping[str, Any]) -> str:
    """Returns the verdict that follows from what an event stores."""
    since, limit = seconds(recovers_from(event)), _limit(event)
    least = most = 0.0
    if event["status"] == RECOVERED:
        most = seconds(event["recovered_at"])
        short = event["watch"].get("short_at")
        least = min(most, max(since, seconds(short) if short else since)) - since
        most -= since
    if event["status"] == UNRECOVERED or _went_off(event) or (limit is not None and least > limit):
        return BROKEN
    doubtful = any(
        record.get("doubt")
        or set(_states(event, record)) != {OK}
        or record["states"][0]["at"] > event["verdict"]["since"]
        for record in event["verdict"]["alarms"]
    )
    open_question = limit is not None and least <= limit < most
    return UNKNOWN if event["status"] != RECOVERED or doubtful or open_question or _was_cut_short(event) else HELD


def _was_cut_short(event: Mapping[str, Any]) -> bool:
    """Whether nothing shows that an instance which stays has felt all of its lasting fault."""
    injection = event.get("injection") or {}
    stays = (injection.get("proof") or {}).get("by") == "probe"
    return stays and injection.get("status") != "Success"
