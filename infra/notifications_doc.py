"""Generates kinds, fields and examples in docs/reference/notifications.md: ``python -m infra.notifications_doc``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from infra import ROOT
from infra.generated import filled, table
from troop.chaos.changes import Change
from troop.chaos.events import Abort, Event, Status
from troop.chaos.injection import EndRequest, Injection, Proof, Way
from troop.chaos.letter import bounds, letter
from troop.chaos.notifications import (
    DETAIL_TYPES,
    WHEN,
    Kind,
    Notification,
    benchmark_notifications,
    change_notifications,
    event_notifications,
    letter_notification,
    self_halt_notifications,
    stray_notifications,
)
from troop.chaos.period import Outcome, Period
from troop.chaos.replacements import Build, Replacement
from troop.chaos.self_halt import SelfHalt
from troop.chaos.stages import HealthySince, Stages
from troop.chaos.strays import Stray, StrayRecord
from troop.chaos.verdict import AlarmRecord, AlarmState, Verdict, VerdictValue
from troop.shared.benchmark_change import BenchmarkChange, ChangedFigure
from troop.shared.zones import zone

PATH = ROOT / "docs" / "reference" / "notifications.md"
SCHEMA = ROOT / "docs" / "reference" / "notifications.schema.json"

PARTS = {
    "event_fields": "events",
    "slow": "slow recoveries",
    "self_halt": "the deployment's own halt",
    "who": "changes",
    "switch": "the switch",
    "policy": "policy",
    "stray": "stray items",
    "change_point": "benchmarks",
    "letter": "the weekly letter",
}
"""Part of the schema -> which notifications have its fields."""

WIDER = {"slow recoveries": ("events",)}
"""Notifications that are some of others, and have their fields."""

IN_FULL = (
    Kind.BROKEN,
    Kind.PROVEN,
    Kind.SLOW_RECOVERY,
    Kind.HALTED_ITSELF,
    Kind.HALTED,
    Kind.POLICY_CHANGED,
    Kind.STRAY_ITEM,
    Kind.CHANGE_POINT,
    Kind.WEEKLY_LETTER,
)
"""The kinds that are shown in full; the other ones have the fields of one of these."""

_NAME = "Troop"
_AT = datetime(2026, 11, 20, 18, 12, 3, 120000, UTC)
_ANN = "arn:aws:sts::123456789012:assumed-role/Admin/ann"
_BUILD = Build("lt-0123456789abcdef0:3", "m7g.large", "ami-0123456789abcdef0")
_EVENT = Event(
    event_id="2026-11-20#web",
    unit="web",
    day=_AT.date(),
    status=Status.TERMINATED,
    at=_AT,
    group="web-v042",
    instance_id="i-0123456789abcdef0",
    zone="us-west-2a",
    method="crash",
    rolled=0.1,
    probability=0.2,
    desired=3,
    os_shutdown=False,
    terminated_at=_AT + timedelta(seconds=1.4),
    build=_BUILD,
    owner="team-web",
)
_TARGETS = "arn:aws:elasticloadbalancing:us-west-2:123456789012:targetgroup/web/6d0ecf831eec9f09"


def _after(seconds: float) -> datetime:
    return _AT + timedelta(seconds=seconds)


_STATES = (AlarmState(_after(1.4), "OK"), AlarmState(_after(122), "ALARM"), AlarmState(_after(242), "OK"))
_VERDICT = Verdict(
    VerdictValue.BROKEN,
    "alarm web-errors went off",
    _after(318),
    _after(1.4),
    _after(318),
    (AlarmRecord("web-errors", _STATES),),
)
_ENDS: Mapping[Status, Mapping[str, Any]] = {
    Status.TERMINATED: {},
    Status.RECOVERED: {
        "recovered_at": _after(313.4),
        "replacement": Replacement("i-0fedcba9876543210", _BUILD),
        "stages": Stages(
            noticed=_after(6),
            launched=_after(11),
            running=_after(22),
            in_service=_after(71),
            healthy=(HealthySince(_TARGETS, _after(313.4)),),
        ),
        "verdict": _VERDICT,
        "abort": Abort(_after(122), "web-errors"),
        "detail": "capacity 3 of 3",
    },
    Status.UNRECOVERED: {
        "detail": "capacity 2 of 3 after 30 minutes",
        "launch_failure": "The image id '[ami-0123456789abcdef0]' does not exist. Launching EC2 instance failed.",
    },
    Status.GROUP_DELETED: {"detail": "the group is gone"},
    Status.ABANDONED: {"terminated_at": None, "os_shutdown": None, "detail": "chaos was halted"},
}
_INJECTION = Injection(
    parameters={"delay": "200", "jitter": "10", "sources": "ALL", "direction": "egress", "seconds": "300"},
    ends_by=_after(336),
    packages=("jq",),
    command_id="0831e1a8-a1ac-4257-a1fd-c831b48d9e2a",
)
_ENDED = replace(
    _INJECTION,
    end_request=EndRequest(_after(122), "alarm web-errors went off"),
    status="Cancelled",
    over_at=_after(124),
    proof=Proof(Way.PROBE, _after(141), "a probe found no trace of it"),
)
_INJECTED = replace(
    _EVENT,
    status=Status.RUNNING,
    method="latency",
    attempted_at=_after(6.2),
    os_shutdown=None,
    terminated_at=None,
    injection=_INJECTION,
)
_FAULTS: Sequence[tuple[Event, Status, float]] = (
    (_INJECTED, Status.CLAIMED, 6.2),
    (replace(_INJECTED, injection=replace(_ENDED, status="", over_at=None, proof=None)), Status.RUNNING, 122),
    (replace(_INJECTED, injection=replace(_ENDED, end_request=None)), Status.RUNNING, 141),
    (
        replace(
            _INJECTED,
            status=Status.TERMINATED,
            terminated_at=_after(416),
            detail="a probe found qdiscs 1, before 0",
        ),
        Status.RUNNING,
        416,
    ),
    (replace(_INJECTED, injection=replace(_INJECTION, unproven="the instance is protected")), Status.RUNNING, 416),
)
"""Writes of a lasting fault: the event after the write, its status before, and the seconds since the claim."""

_SWITCHES = [(key, new) for key in ("halted", "leashed", "reaper_off", "schedules_off") for new in (True, False)]


def text(document: str) -> str:
    """Returns docs/reference/notifications.md with current tables and examples."""
    shown = {one.kind: one for one in examples()}
    kinds = [
        (f"`{kind}`", f"`{DETAIL_TYPES[kind]}`", WHEN[kind], str(shown[kind].detail["summary"]).replace(_ANN, "ARN"))
        for kind in Kind
    ]
    blocks = (f"`{kind}`:\n\n```json\n{json.dumps(shown[kind].detail, indent=2)}\n```\n" for kind in IN_FULL)
    document = filled(document, "kinds", table(["kind", "detail-type on the bus", "when", "such as"], kinds))
    document = filled(document, "fields", table(["field", "in", "meaning"], fields()))
    return filled(document, "examples", "\n".join(blocks))


def fields() -> Iterator[tuple[str, str, str]]:
    """Yields name, notifications and meaning of each field of the schema."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    parts = {"all": schema, **{PARTS[name]: part for name, part in schema["$defs"].items() if name in PARTS}}
    having: dict[str, list[str]] = {}
    meanings: dict[str, str] = {}
    for where, part in parts.items():
        for name, one in part["properties"].items():
            if where == "all" or not {"all", *WIDER.get(where, ())} & {*having.get(name, ())}:
                having.setdefault(name, []).append(where)
            meanings[name] = meanings.get(name) or one.get("description", "")
    for name, wheres in having.items():
        yield f"`{name}`", ", ".join(wheres), meanings[name]


def examples() -> Iterator[Notification]:
    """Yields a notification of each kind, as the code makes it."""
    for status, end in _ENDS.items():
        before = Status.CLAIMED if status in (Status.TERMINATED, Status.ABANDONED) else Status.TERMINATED
        seconds = {Status.RECOVERED: 318, Status.UNRECOVERED: 1805, Status.GROUP_DELETED: 60}.get(status, 2)
        event = replace(_EVENT, status=status, **end)
        yield from event_notifications(_NAME, event, before, _AT + timedelta(seconds=seconds), 95.0)
    for event, before, second in _FAULTS:
        yield from event_notifications(_NAME, event, before, _after(second))
    yield from self_halt_notifications(
        _NAME,
        SelfHalt(
            _AT,
            "3 causes broke units within an hour: web (alarm web-errors); db (recovery); cache (recovery)",
            ("2026-11-20#web", "2026-11-20#db", "2026-11-20#cache"),
        ),
    )
    for key, new in _SWITCHES:
        old = (not new) if key == "leashed" else None if new else True
        values: Mapping[str, Any] = {key: (old, new), "reason": (None, "incident 4711" if new else None)}
        yield from change_notifications(_NAME, Change("switch", _AT, _ANN, values), _change_id("switch"), leashed=True)
    changes = {"opt_out": (None, True), "reason": (None, "migration"), "until": (None, "2026-12-01")}
    yield from change_notifications(
        _NAME, Change("unit#web", _AT, _ANN, changes, owner="team-web"), _change_id("unit#web"), leashed=True
    )
    stray = Stray("Web", "web", "team-web", _AT - timedelta(days=1))
    yield from stray_notifications(_NAME, StrayRecord(reports=(stray,), at=_AT))
    figures = (
        ChangedFigure("measure/drivers/read", "throughput", 0.998, 0.951),
        ChangedFigure("measure/drivers/read", "p99", 1.003, 1.049),
    )
    change = BenchmarkChange(
        "cassandra-read",
        "small",
        "nightly",
        "20261112-030005-7c1f2a9e",
        "20261111-030004-1f0c9b2e",
        "20261120-030005-5d0e8a71",
        True,
        figures,
        differences={"kernel": ("6.1.158-180.294.amzn2023.x86_64", "6.1.159-181.297.amzn2023.x86_64")},
    )
    yield from benchmark_notifications(_NAME, _AT, change)
    yield _letter()


def _letter() -> Notification:
    monday, sunday = date(2026, 11, 16), date(2026, 11, 22)
    week = Period(*bounds(monday, sunday, zone("UTC")), monday, sunday)
    broken = replace(_EVENT, status=Status.RECOVERED, **_ENDS[Status.RECOVERED])
    week.add(Outcome.from_event(broken))
    held = Verdict(VerdictValue.HELD, "", _after(0), _after(0), _after(0))
    week.add(Outcome.from_event(replace(broken, event_id="2026-11-20#db", unit="db", owner="team-db", verdict=held)))
    summary = week.document()
    due = datetime(2026, 11, 23, 17, tzinfo=UTC)
    return letter_notification(_NAME, due, summary, letter(summary))


def _change_id(subject: str) -> str:
    return f"{subject}#2026-11-20T18:12:03.120Z#9f3b7c1e"


if __name__ == "__main__":
    PATH.write_text(text(PATH.read_text(encoding="utf-8")), encoding="utf-8")
