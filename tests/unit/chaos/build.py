"""Builders: a unit against which nothing speaks, and what differs from it said in one argument."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from troop.chaos.decisions import Decision, decide_all
from troop.chaos.events import Abort, Event, Status, Watch
from troop.chaos.facts import Account, Counts, Facts, Switch, UnitState, facts_of_units
from troop.chaos.groups import Group, Instance
from troop.chaos.hypothesis import Hypothesis
from troop.chaos.injection import Injection, Proof, Way
from troop.chaos.policy import Policy, effective_policy
from troop.chaos.probe import Probe, Reading
from troop.chaos.stages import HealthySince, Stages
from troop.chaos.verdict import AlarmRecord, AlarmState, Verdict, VerdictValue
from troop.shared.calendars import Calendar, parse_calendar
from troop.shared.settings import SETTINGS, Settings, parse_settings

SALT = b"a fixed salt, so that a test says the same every time"

FRIDAY = date(2026, 11, 20)
"""A business day, as is the Thursday before; a weekend follows, then a week with Thanksgiving Day (the 26th)."""

DEFAULTS: dict[str, Any] = {key: one.default for key, one in SETTINGS.items()} | {"leashed": False, "probability": 1}
DEFAULT_CALENDAR: dict[str, Any] = DEFAULTS["calendars"]["default"]

RUNNING = Switch(halted=False, leashed=False)

WORKING_WEEK = ["MON", "TUE", "WED", "THU", "FRI"]
SUN_TO_THU = ["SUN", "MON", "TUE", "WED", "THU"]
EVERY_DAY = [*WORKING_WEEK, "SAT", "SUN"]


def raw_settings(**changes: Any) -> dict[str, Any]:
    return {**DEFAULTS, **changes}


def settings(**changes: Any) -> Settings:
    """Unleashed, probability 1, otherwise the defaults."""
    return parse_settings(raw_settings(**changes))


def raw_calendar(**changes: Any) -> dict[str, Any]:
    return {**DEFAULT_CALENDAR, **changes}


def calendar(name: str = "default", **changes: Any) -> Calendar:
    return parse_calendar("troop:calendars", name, raw_calendar(**changes))


def calendars(**changes: Any) -> dict[str, Any]:
    """The setting ``calendars`` with one calendar, ``default``."""
    return {"default": raw_calendar(**changes)}


def at(clock: str, day: date = FRIDAY, zone: str = "America/Los_Angeles", fold: int = 0) -> datetime:
    """The moment, in UTC, at which the clocks of ``zone`` show ``clock`` (``HH:MM`` or ``HH:MM:SS``)."""
    local = datetime.fromisoformat(f"{day.isoformat()}T{clock}").replace(tzinfo=ZoneInfo(zone), fold=fold)
    return local.astimezone(UTC)


LAST_TICK = at("14:45")
"""Every roll of :data:`FRIDAY` is due by now."""


def instance(number: int = 0, **changes: Any) -> Instance:
    return Instance(**{"instance_id": f"i-{number:017x}", "zone": "us-west-2a", **changes})


def group(name: str = "web", size: int = 3, first: int = 0, **changes: Any) -> Group:
    """A healthy group of ``size`` instances numbered from ``first``; ``desired`` is their number."""
    instances = tuple(instance(first + n) for n in range(size))
    return Group(
        **{"name": name, "desired": len(changes.get("instances", instances)), "instances": instances, **changes}
    )


def policy(
    groups: tuple[Group, ...] | None = None,
    item: Mapping[str, Any] | None = None,
    chosen: Settings | None = None,
    day: date = FRIDAY,
) -> Policy:
    """The effective policy, on ``day`` in every zone."""
    return effective_policy(groups or (group(),), item or {}, chosen or settings(), lambda _: day)


def facts(
    unit: str = "web",
    item: Mapping[str, Any] | None = None,
    chosen: Settings | None = None,
    groups: tuple[Group, ...] | None = None,
    now: datetime = LAST_TICK,
    **changes: Any,
) -> Facts:
    """The facts of a unit that is due: nothing speaks against its termination, unless ``changes`` do."""
    configured, members = chosen or settings(), groups or (group(unit),)
    defaults: dict[str, Any] = {
        "unit": unit,
        "now": now,
        "salt": SALT,
        "settings": configured,
        "switch": RUNNING,
        "groups": members,
        "policy": effective_policy(members, item or {}, configured, lambda c: configured.calendars[c].at(now).day),
        "state": UnitState(),
        "counts": Counts(),
        "refreshing": frozenset(),
        "alarms": {},
    }
    return Facts(**{**defaults, **changes})


def account(*groups: Group, **changes: Any) -> Account:
    return Account(**{"groups": groups, "items": {}, "states": {}, "switch": RUNNING, "counts": Counts(), **changes})


def event(**changes: Any) -> Event:
    """A termination of one of three instances of ``web``, on its way to recovery."""
    return Event(
        **{
            "event_id": "2026-11-20#web",
            "unit": "web",
            "day": FRIDAY,
            "status": Status.TERMINATED,
            "at": at("12:00"),
            "group": "web",
            "instance_id": instance(0).instance_id,
            "zone": "us-west-2a",
            "method": "crash",
            "rolled": 0.1,
            "probability": 0.2,
            "desired": 3,
            "deadline": at("12:10"),
            "execution": "arn:execution",
            "attempted_at": at("12:00:01"),
            "terminated_at": at("12:00:02"),
            **changes,
        }
    )


TARGETS = "arn:aws:elasticloadbalancing:us-west-2:123456789012:targetgroup/web/6d0ecf831eec9f09"


def judged(**changes: Any) -> Event:
    """A termination whose group recovered after some three minutes, and whose alarm went off meanwhile."""
    alarm = AlarmRecord(
        "web-errors",
        (AlarmState(at("12:00:02"), "OK"), AlarmState(at("12:01:30"), "ALARM"), AlarmState(at("12:02:30"), "OK")),
    )
    return event(
        **{
            "status": Status.RECOVERED,
            "recovered_at": at("12:03:12"),
            "watch": Watch(checks=4, whole=2, whole_since=at("12:03:12"), short_at=at("12:03:08")),
            "hypothesis": Hypothesis(("web-errors",), ("web-latency",), 300),
            "stages": Stages(
                noticed=at("12:00:06"),
                launched=at("12:00:11"),
                in_service=at("12:01:12"),
                healthy=(HealthySince(TARGETS, at("12:03:12")), HealthySince("web-classic")),
            ),
            "settles_at": at("12:06:12"),
            "verdict": Verdict(
                VerdictValue.BROKEN,
                "web-errors was in ALARM from 20:01:30 to 20:02:30 UTC",
                at("12:03:15"),
                at("12:00:02"),
                at("12:06:12"),
                (alarm,),
            ),
            "abort": Abort(at("12:01:30"), "web-errors"),
            **changes,
        }
    )


CLEAN = Reading("b007" * 9, qdiscs=0, drops=0, stress=0, rollbacks=0, hosts=0, used=41.0)
"""What a probe reads on an instance without a fault."""

DELAYED = Reading("b007" * 9, qdiscs=1, drops=0, stress=0, rollbacks=2, hosts=0, used=41.0)
"""What a probe reads on an instance with the fault latency."""


def injection(**changes: Any) -> Injection:
    """A latency of 60 s that a probe has proven to be over."""
    return Injection(
        **{
            "parameters": {"delay": "200", "jitter": "10", "sources": "ALL", "direction": "egress", "seconds": "60"},
            "before": Probe("a" * 32, at("12:00:01"), "c-1", at("12:00:04"), CLEAN),
            "ends_by": at("12:01:35"),
            "command_id": "c-2",
            "status": "Success",
            "over_at": at("12:01:08"),
            "after": Probe("b" * 32, at("12:01:08"), "c-3", at("12:01:11"), CLEAN),
            "proof": Proof(Way.PROBE, at("12:01:11"), "a probe found no trace of it"),
            **changes,
        }
    )


def injected(**changes: Any) -> Event:
    """A latency on one of three instances of ``web``, whose group was whole again at once."""
    return event(
        **{
            "status": Status.RECOVERED,
            "method": "latency",
            "attempted_at": at("12:00:05"),
            "attempts": 1,
            "terminated_at": None,
            "recovered_at": at("12:01:14"),
            "watch": Watch(checks=2, whole=2, whole_since=at("12:01:14")),
            "hypothesis": Hypothesis((), (), 300),
            "verdict": Verdict(
                VerdictValue.HELD,
                "the group recovered in 3 s, within 300 s; the unit has no success alarms",
                at("12:01:17"),
                at("12:00:05"),
                at("12:01:14"),
            ),
            "injection": injection(),
            **changes,
        }
    )


NOT_OVER: dict[str, Any] = {"status": "", "over_at": None, "after": None, "proof": None}


def running(**changes: Any) -> Event:
    """A latency that was injected, and whose command runs."""
    still = {"status": Status.RUNNING, "recovered_at": None, "watch": Watch(), "verdict": None}
    return injected(**(still | {"injection": injection(**NOT_OVER)} | changes))


def still_there(**changes: Any) -> Injection:
    """A latency that a probe still found after its end; the instance is gone since."""
    probe = Probe("b" * 32, at("12:02:41"), "c-9", at("12:02:44"), DELAYED)
    proof = Proof(Way.REPLACED, at("12:03:00"), "the instance was terminated")
    return injection(**({"after": probe, "proof": proof} | changes))


def replaced(**changes: Any) -> Event:
    """A latency that a probe still found after its end, so that Troop had the instance terminated."""
    later = {
        "terminated_at": at("12:02:45"),
        "recovered_at": at("12:05:05"),
        "watch": Watch(checks=4, whole=2, whole_since=at("12:05:05"), short_at=at("12:05:01")),
        "stages": Stages(noticed=at("12:02:50"), launched=at("12:02:55"), in_service=at("12:05:00")),
        "injection": still_there(),
    }
    return injected(**(later | changes))


EARLIER_ITEM: Mapping[str, Any] = {
    "event_id": {"S": "2026-11-20#old"},
    "unit": {"S": "old"},
    "day": {"S": "2026-11-20"},
    "status": {"S": "RECOVERED"},
    "at": {"S": "2026-11-20T20:00:00.000Z#2026-11-20#old"},
    "kind": {"S": "event"},
    "schema": {"N": "1"},
    "group": {"S": "old"},
    "instance_id": {"S": "i-00000000000000000"},
    "zone": {"S": "us-west-2a"},
    "method": {"S": "crash"},
    "rolled": {"N": "0.1"},
    "probability": {"N": "0.2"},
    "desired": {"N": "3"},
    "execution": {"S": "arn:execution"},
    "deadline": {"S": "2026-11-20T20:10:00.000Z"},
    "terminated_at": {"S": "2026-11-20T20:00:02.000Z"},
    "recovered_at": {"S": "2026-11-20T20:01:14.000Z"},
    "recovery_seconds": {"N": "72"},
    "detail": {"S": ""},
    "watch": {"M": {"checks": {"N": "3"}, "whole": {"N": "2"}, "whole_since": {"S": "2026-11-20T20:01:14.000Z"}}},
}
"""An event as earlier versions wrote it: without stages, hypothesis and verdict."""


def days(first: date, last: date) -> list[date]:
    """Every day from ``first`` to ``last``, both included."""
    return [first + timedelta(days=n) for n in range((last - first).days + 1)]


def closed(moment: datetime, **changes: Any) -> tuple[str, str] | None:
    closure = calendar(**changes).at(moment).closure
    return (closure.kind, closure.detail) if closure else None


TWO_MORE = {**calendars(), "night": raw_calendar(), "day": raw_calendar()}
"""Calendars to choose from, all alike."""


def tagged(name: str = "web", **tags: str) -> Group:
    return group(name, tags={f"troop:{key}": value for key, value in tags.items()})


def unit_policy(*groups: Group, item: dict[str, Any] | None = None, day: date = FRIDAY, **changes: Any) -> Policy:
    return policy(groups, item, settings(calendars=TWO_MORE, **changes), day)


def fleet(count: int, **changes: Any) -> list[Group]:
    return [group(f"service-{n:02}", first=10 * n, **changes) for n in range(count)]


def tick(read: Account, chosen: Settings | None = None, now: datetime = LAST_TICK) -> dict[str, Decision]:
    return {d.unit: d for d in decide_all(list(facts_of_units(read, chosen or settings(), SALT, now)))}


def reasons(decisions: dict[str, Decision]) -> Counter[str]:
    return Counter(d.reason for d in decisions.values())


def units(decisions: dict[str, Decision], reason: str) -> list[str]:
    return sorted(unit for unit, d in decisions.items() if d.reason == reason)
