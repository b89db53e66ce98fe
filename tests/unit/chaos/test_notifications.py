"""Which records are news, and what is said of them; every document is as notifications.schema.json has it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.chaos.build import NOT_OVER, TARGETS, injected, injection, judged, replaced, running
from tests.unit.chaos.build import event as built_event
from troop.chaos.changes import Change
from troop.chaos.events import STEPS, Event, Status
from troop.chaos.facts import Switch
from troop.chaos.injection import EndRequest
from troop.chaos.notifications import (
    DETAIL_TYPES,
    NEWS,
    Kind,
    Notification,
    change_notifications,
    edited_by_hand,
    event_notifications,
    self_halt_notifications,
    self_halt_removed_by_hand,
)
from troop.chaos.self_halt import SelfHalt
from troop.chaos.verdict import Verdict, VerdictValue

DOCS = Path(__file__).parents[3] / "docs" / "reference"
SCHEMA = jsonschema_rs.validator_for(json.loads((DOCS / "notifications.schema.json").read_text(encoding="utf-8")))

AT = datetime(2026, 11, 20, 22, 46, tzinfo=UTC)
NOW = "2026-11-20T22:46:00.000Z"
ANN = "arn:aws:sts::123456789012:assumed-role/Admin/ann"


def in_status(status: Status, before: Status | None = None, **changes: Any) -> Event:
    if Status.RUNNING in (status, before):
        return injected(status=status, injection=injection(**NOT_OVER), **changes)
    event = built_event(status=status, terminated_at=AT - timedelta(seconds=300), **changes)
    return replace(event, recovered_at=AT) if status is Status.RECOVERED else event


def notifications_of(
    event: Event,
    before: Status | None,
    usually: float | None = None,
    was_judged: bool = False,
    had: Collection[str] = (),
) -> list[Notification]:
    notifications = list(event_notifications("Troop", event, before, AT, usually, was_judged=was_judged, had=had))
    for notification in notifications:
        SCHEMA.validate(notification.detail)
    return notifications


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (Status.CLAIMED, Status.TERMINATED, Kind.TERMINATED),
        (Status.TERMINATED, Status.RECOVERED, Kind.RECOVERED),
        (Status.TERMINATED, Status.UNRECOVERED, Kind.UNRECOVERED),
        (Status.TERMINATED, Status.GROUP_DELETED, Kind.GROUP_DELETED),
        (Status.CLAIMED, Status.ABANDONED, Kind.FAILED),
        (Status.CLAIMED, Status.GONE_ELSEWHERE, Kind.FAILED),
        (Status.CLAIMED, Status.RUNNING, Kind.INJECTED),
        (Status.RUNNING, Status.TERMINATED, Kind.REPLACED),
        (Status.RUNNING, Status.ABANDONED, Kind.FAILED),
        (Status.RUNNING, Status.RECOVERED, Kind.RECOVERED),
        (Status.RUNNING, Status.UNRECOVERED, Kind.UNRECOVERED),
        (Status.RUNNING, Status.GROUP_DELETED, Kind.GROUP_DELETED),
    ],
)
def test_step_of_an_event_has_one_notification(before: Status, after: Status, kind: Kind) -> None:
    event = in_status(after, before)
    (notification,) = notifications_of(event, before)
    detail = notification.detail
    assert (detail["kind"], detail["status"], detail["at"]) == (kind, after, NOW)
    assert detail["id"] == f"{kind}#{event.event_id}"
    assert notification.detail_type == DETAIL_TYPES[kind]


def test_every_step_after_the_claim_is_news() -> None:
    """So whoever hears of a termination also hears how it ended."""
    expected = {status: set(after) for status, after in STEPS.items() if status is not Status.LEASHED}
    assert {status: set(after) for status, after in NEWS.items()} == expected


def summaries(event: Event, before: Status, had: Collection[str] = ()) -> dict[Kind, str]:
    return {one.kind: one.detail["summary"] for one in notifications_of(event, before, had=had)}


INSTANCE = "i-00000000000000000 of web"


def test_a_lasting_fault_has_news_of_its_own_and_is_never_called_a_termination() -> None:
    fault = "latency delay=200 jitter=10 sources=ALL direction=egress seconds=60"
    assert summaries(running(), Status.CLAIMED) == {Kind.INJECTED: f"{fault} was injected into {INSTANCE}"}
    halted = running(injection=injection(**NOT_OVER | {"end_request": EndRequest(AT, "chaos was halted")}))
    assert summaries(halted, Status.RUNNING) == {
        Kind.END_REQUESTED: f"latency on {INSTANCE} was asked to end: chaos was halted"
    }
    assert summaries(halted, Status.RUNNING, {"end_request"}) == {}, "it is told once"
    proven = running(injection=injection())
    over = {Kind.PROVEN: f"latency on {INSTANCE} is proven to be over: a probe found no trace of it"}
    assert summaries(proven, Status.RUNNING) == over
    recovered = "web was whole when latency was over; its hypothesis held"
    assert summaries(injected(), Status.RUNNING, {"proof"}) == {Kind.RECOVERED: recovered}
    assert summaries(injected(), Status.RUNNING) == over | {Kind.RECOVERED: recovered}, "one write can be both"
    refused = running(status=Status.ABANDONED, detail="AWS refused it")
    assert summaries(refused, Status.RUNNING) == {
        Kind.FAILED: f"latency was not injected into {INSTANCE}: AWS refused it"
    }


def test_a_fault_that_is_not_proven_over_is_replaced_or_a_person_must_act() -> None:
    gone = replaced(
        status=Status.TERMINATED, recovered_at=None, verdict=None, detail="a probe found qdiscs 1, before 0"
    )
    assert summaries(gone, Status.RUNNING, {"proof"}) == {
        Kind.REPLACED: f"{INSTANCE} was terminated, because latency on it was not proven to be over: "
        "a probe found qdiscs 1, before 0"
    }
    assert summaries(replaced(), Status.TERMINATED)[Kind.RECOVERED].startswith("web has recovered in 140 s;")
    stuck = running(injection=injection(**NOT_OVER | {"unproven": "the instance is protected"}))
    assert summaries(stuck, Status.RUNNING) == {
        Kind.UNPROVEN: f"latency on {INSTANCE} is not proven to be over, and the instance was not terminated: "
        "the instance is protected"
    }
    assert summaries(stuck, Status.RUNNING, {"unproven"}) == {}


def test_the_document_has_the_injection_without_what_probes_have_read() -> None:
    (notification,) = notifications_of(injected(), Status.RUNNING, had={"proof"})
    assert notification.detail["injection"] == {
        "parameters": {"delay": "200", "jitter": "10", "sources": "ALL", "direction": "egress", "seconds": "60"},
        "ends_by": "2026-11-20T20:01:35.000Z",
        "packages": [],
        "end_request": None,
        "command_status": "Success",
        "over_at": "2026-11-20T20:01:08.000Z",
        "unproven": None,
        "proof": {"by": "probe", "at": "2026-11-20T20:01:11.000Z", "why": "a probe found no trace of it"},
    }
    assert (notification.detail["hit_at"], notification.detail["terminated_at"]) == ("2026-11-20T20:00:05.000Z", None)


def test_a_broken_hypothesis_names_the_fault() -> None:
    broken = injected(verdict=replace(verdict(VerdictValue.BROKEN), why="alarm web-errors went off"))
    assert summaries(broken, Status.RUNNING)[Kind.BROKEN] == (
        f"web is broken after latency on {INSTANCE}, and has left chaos: alarm web-errors went off"
    )


@pytest.mark.parametrize("before", [None, *Status])
@pytest.mark.parametrize("after", list(Status))
def test_no_other_step_has_a_notification(before: Status | None, after: Status) -> None:
    expected = before is not None and after in NEWS.get(before, ())
    assert bool(notifications_of(in_status(after, before), before)) is expected


@pytest.mark.parametrize(("usually", "kinds"), [(None, 1), (240.0, 1), (60.0, 2)])
def test_slow_recovery_has_a_second_notification(usually: float | None, kinds: int) -> None:
    notifications = notifications_of(in_status(Status.RECOVERED), Status.TERMINATED, usually)
    assert [n.kind for n in notifications] == [Kind.RECOVERED, Kind.SLOW_RECOVERY][:kinds]
    if kinds == 2:
        slow = notifications[1].detail
        assert (slow["recovery_seconds"], slow["usual_seconds"]) == (300.0, 60.0)
        assert slow["summary"].endswith("took 300 s to recover; it usually takes 60 s")
        assert slow["id"] != notifications[0].detail["id"]


def test_a_slow_unit_that_has_not_recovered_is_only_unrecovered() -> None:
    assert [n.kind for n in notifications_of(in_status(Status.UNRECOVERED), Status.TERMINATED, 1.0)] == [
        Kind.UNRECOVERED
    ]


def kinds_of(event: Event, before: Status, was_judged: bool = False) -> list[Kind]:
    return [notification.kind for notification in notifications_of(event, before, was_judged=was_judged)]


def verdict(value: VerdictValue) -> Verdict:
    broken = judged().verdict
    assert broken
    return replace(broken, value=value)


@pytest.mark.parametrize(
    ("status", "value", "kinds"),
    [
        (Status.RECOVERED, VerdictValue.BROKEN, [Kind.RECOVERED, Kind.BROKEN]),
        (Status.RECOVERED, VerdictValue.HELD, [Kind.RECOVERED]),
        (Status.RECOVERED, VerdictValue.UNKNOWN, [Kind.RECOVERED]),
        (Status.GROUP_DELETED, VerdictValue.BROKEN, [Kind.GROUP_DELETED, Kind.BROKEN]),
        (Status.UNRECOVERED, VerdictValue.BROKEN, [Kind.UNRECOVERED]),  # it says the same
    ],
)
def test_a_verdict_with_the_last_step(status: Status, value: VerdictValue, kinds: list[Kind]) -> None:
    assert kinds_of(judged(status=status, verdict=verdict(value)), Status.TERMINATED) == kinds


def test_a_later_verdict_is_news_once_and_only_if_broken() -> None:
    broken = judged()
    assert kinds_of(replace(broken, verdict=None), Status.TERMINATED) == [Kind.RECOVERED]
    assert kinds_of(broken, Status.RECOVERED) == [Kind.BROKEN]
    assert kinds_of(broken, Status.RECOVERED, was_judged=True) == []
    assert kinds_of(judged(verdict=verdict(VerdictValue.HELD)), Status.RECOVERED) == []


def test_the_document_has_stages_and_verdict() -> None:
    recovered, broken = notifications_of(judged(), Status.TERMINATED)
    assert recovered.detail["summary"] == "web has recovered in 190 s; its hypothesis did not hold"
    detail = broken.detail
    assert detail["summary"] == (
        "web is broken after the termination of i-00000000000000000 of web, and has left chaos: "
        "web-errors was in ALARM from 20:01:30 to 20:02:30 UTC"
    )
    assert detail["stages"] == {
        "noticed": "2026-11-20T20:00:06.000Z",
        "launched": "2026-11-20T20:00:11.000Z",
        "running": None,
        "in_service": "2026-11-20T20:01:12.000Z",
        "healthy": [{"source": TARGETS, "at": "2026-11-20T20:03:12.000Z"}, {"source": "web-classic", "at": None}],
    }
    assert detail["verdict"] == {
        "value": "BROKEN",
        "why": "web-errors was in ALARM from 20:01:30 to 20:02:30 UTC",
        "since": "2026-11-20T20:00:02.000Z",
        "until": "2026-11-20T20:06:12.000Z",
        "went_off": ["web-errors"],
    }
    assert detail["abort"] == {"at": "2026-11-20T20:01:30.000Z", "alarm": "web-errors"}
    (old,) = notifications_of(in_status(Status.RECOVERED), Status.TERMINATED)
    assert old.detail["abort"] is None
    assert (old.detail["stages"], old.detail["settles_at"], old.detail["verdict"]) == (None, None, None)


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (None, "; its alarms can be judged from 2026-11-20T20:06:12.000Z on"),
        (verdict(VerdictValue.HELD), "; its hypothesis held"),
        (replace(verdict(VerdictValue.UNKNOWN), why="no data"), "; whether its hypothesis held is unknown: no data"),
    ],
)
def test_a_recovery_says_what_is_known_of_the_verdict(one: Verdict | None, words: str) -> None:
    (notification,) = notifications_of(judged(verdict=one), Status.TERMINATED)
    assert notification.detail["summary"] == f"web has recovered in 190 s{words}"


def test_the_deployment_says_why_it_halted_itself() -> None:
    halt = SelfHalt(AT, "3 causes broke units within an hour", ("2026-11-20#web", "2026-11-20#db"))
    (notification,) = self_halt_notifications("Troop", halt)
    SCHEMA.validate(notification.detail)
    assert notification.detail_type == "Chaos halted itself"
    assert notification.detail == {
        "schema": 1,
        "id": f"halted-itself#{NOW}",
        "kind": "halted-itself",
        "deployment": "Troop",
        "summary": "The deployment halted itself: 3 causes broke units within an hour",
        "at": NOW,
        "why": "3 causes broke units within an hour",
        "events": ["2026-11-20#web", "2026-11-20#db"],
    }


def test_a_halt_of_its_own_that_is_removed_by_hand_is_a_resumption() -> None:
    change = self_halt_removed_by_hand(AT)
    (notification,) = change_notifications("Troop", change, "self-halt#1", leashed=False, by_hand=True)
    SCHEMA.validate(notification.detail)
    assert (notification.kind, notification.detail["caller"]) == (Kind.RESUMED, None)
    assert "self-halt" in notification.detail["reason"]


def changed(subject: str, values: Mapping[str, tuple[Any, Any]], by_hand: bool = False) -> list[Mapping[str, Any]]:
    change = Change(subject, AT, "" if by_hand else ANN, values)
    details = [n.detail for n in change_notifications("Troop", change, f"{subject}#1", leashed=True, by_hand=by_hand)]
    for detail in details:
        SCHEMA.validate(detail)
    return details


@pytest.mark.parametrize(
    ("values", "kinds"),
    [
        ({"halted": (None, True)}, [Kind.HALTED]),
        ({"halted": (True, False), "reason": ("x", None)}, [Kind.RESUMED]),
        ({"halted": (None, False)}, []),
        ({"leashed": (None, True)}, []),  # it was so, by the settings
        ({"leashed": (None, False)}, [Kind.UNLEASHED]),
        ({"leashed": (False, True)}, [Kind.LEASHED]),
        ({"leashed": (False, None)}, [Kind.LEASHED]),  # the item was removed: what the settings say holds again
        ({"reason": ("x", "y")}, []),
        ({"halted": (False, True), "leashed": (True, False), "reason": (None, "y")}, [Kind.HALTED, Kind.UNLEASHED]),
    ],
)
def test_the_switch(values: dict[str, Any], kinds: list[Kind]) -> None:
    details = changed("switch", values)
    assert [detail["kind"] for detail in details] == kinds
    assert all((d["caller"], d["by_hand"]) == (ANN, False) for d in details)
    assert all(d["reason"] == values.get("reason", (None, None))[1] for d in details)
    assert len({d["id"] for d in details}) == len(details)


@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize("attribute", [one.name for one in fields(Switch) if one.name != "itself"])
def test_every_attribute_of_the_switch_has_notifications(attribute: str, by_hand: bool) -> None:
    """Whatever the switch stops or lets go again: spending, removals, terminations."""
    kinds = {
        detail["kind"] for new in (True, False) for detail in changed("switch", {attribute: (not new, new)}, by_hand)
    }
    assert len(kinds) == 2


def test_a_policy_changed_says_who_and_what() -> None:
    (detail,) = changed("unit#web", {"opt_out": (None, True), "probability": (0.5, None)})
    assert (detail["unit"], detail["caller"], detail["by_hand"]) == ("web", ANN, False)
    assert detail["changes"] == {"opt_out": {"old": None, "new": True}, "probability": {"old": 0.5, "new": None}}
    assert detail["summary"] == f"The policy of web was changed by {ANN}: opt_out, probability"
    assert changed("unit#web", {}) == []


def test_by_hand_nobody_knows_who() -> None:
    (detail,) = changed("unit#web", {"opt_out": (None, True)}, by_hand=True)
    assert (detail["caller"], detail["by_hand"]) == (None, True)
    assert "by hand" in detail["summary"]


ITEMS = st.dictionaries(st.text(max_size=3000), st.text(max_size=3000) | st.lists(st.text(max_size=500)), max_size=60)


@given(ITEMS, ITEMS)
def test_however_much_was_changed_the_bus_takes_it(old: dict[str, Any], new: dict[str, Any]) -> None:
    values = {key: (old.get(key), new.get(key)) for key in {*old, *new}}
    for detail in changed("unit#" + "u" * 255, values, by_hand=True):
        assert len(json.dumps(detail, ensure_ascii=False).encode(errors="surrogatepass")) < 120_000
        assert detail["keys_changed"] == len(values)


EDITED_AT = datetime(2026, 11, 20, 18, 12, 3, tzinfo=UTC)
SIGNED = {"changed_at": "2026-11-20T18:12:03.000Z", "changed_by": ANN, "version": 1, "schema": 1}
FIRST, SECOND = SIGNED | {"changed_request": "first"}, SIGNED | {"changed_request": "second"}
OUT, IN = {"opt_out": True}, {"opt_out": False}


def record(old: Any, new: Any, replaces: str | None = "first", at: datetime = EDITED_AT, **more: Any) -> Change:
    """What the API records when it changes ``opt_out``."""
    return Change("unit#web", at, ANN, {"opt_out": (old, new)} | more, replaces)


@pytest.mark.parametrize(
    ("old", "new", "recorded"),
    [
        ({}, OUT | FIRST, record(None, True, None)),
        (OUT | FIRST, IN | SECOND, record(True, False)),
        (OUT | FIRST, IN | SECOND, record(True, False, unrecovered=("2026-11-19#web", None))),
        (OUT | FIRST, IN | SECOND, record(True, False, at=EDITED_AT - timedelta(seconds=30))),
        (OUT | FIRST, IN | SECOND, record(True, False, reason=("x", "x"))),  # text that was a set of one before
        (OUT | SIGNED, IN | SECOND, record(True, False, None)),  # signed by a version that named no request
    ],
)
def test_change_by_the_api_is_not_an_edit_by_hand(old: dict[str, Any], new: dict[str, Any], recorded: Change) -> None:
    assert edited_by_hand(old, new, recorded, EDITED_AT) == {}


FORGED = (OUT | FIRST, IN | SECOND)


@pytest.mark.parametrize(
    ("old", "new", "recorded", "expected"),
    [
        ({}, {"unit": "web"} | OUT, None, {"opt_out": (None, True)}),
        (OUT | FIRST, IN | FIRST, None, {"opt_out": (True, False)}),
        (OUT | FIRST, IN | FIRST, record(True, False, None), {"opt_out": (True, False)}),
        (OUT, OUT | {"version": 7}, None, {}),
        (*FORGED, None, {"opt_out": (True, False), "changed_request": ("first", "second")}),
        (*FORGED, record(True, False, "other"), {"opt_out": (True, False), "changed_request": ("first", "second")}),
        (*FORGED, record(True, False, at=EDITED_AT - timedelta(minutes=5)), {"opt_out": (True, False)}),
        (*FORGED, record(False, True), {"opt_out": (True, False)}),
        (*FORGED, record(True, False, reason=(None, "x")), {"opt_out": (True, False)}),
        (OUT | FIRST, OUT | SECOND, None, {"changed_request": ("first", "second")}),
        (OUT | FIRST, {}, record(True, None), {"opt_out": (True, None)}),
    ],
)
def test_an_edit_that_no_record_of_its_own_vouches_for_is_by_hand(
    old: dict[str, Any], new: dict[str, Any], recorded: Change | None, expected: dict[str, Any]
) -> None:
    edits = edited_by_hand(old, new, recorded, EDITED_AT)
    assert edits.items() >= expected.items()
    assert bool(edits) is bool(expected)
