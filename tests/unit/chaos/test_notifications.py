"""Which records are news, and what is said of them; every document is as notifications.schema.json has it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.chaos.build import event as built_event
from troop.chaos.changes import Change
from troop.chaos.events import STEPS, Event, Status
from troop.chaos.facts import Switch
from troop.chaos.notifications import (
    DETAIL_TYPES,
    NEWS,
    Kind,
    Notification,
    change_notifications,
    edited_by_hand,
    event_notifications,
)

DOCS = Path(__file__).parents[3] / "docs" / "reference"
SCHEMA = jsonschema_rs.validator_for(json.loads((DOCS / "notifications.schema.json").read_text(encoding="utf-8")))

AT = datetime(2026, 11, 20, 22, 46, tzinfo=UTC)
NOW = "2026-11-20T22:46:00.000Z"
ANN = "arn:aws:sts::123456789012:assumed-role/Admin/ann"


def in_status(status: Status, **changes: Any) -> Event:
    event = built_event(status=status, terminated_at=AT - timedelta(seconds=300), **changes)
    return replace(event, recovered_at=AT) if status is Status.RECOVERED else event


def notifications_of(event: Event, before: Status | None, usually: float | None = None) -> list[Notification]:
    notifications = list(event_notifications("Troop", event, before, AT, usually))
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
    ],
)
def test_step_of_an_event_has_one_notification(before: Status, after: Status, kind: Kind) -> None:
    event = in_status(after)
    (notification,) = notifications_of(event, before)
    detail = notification.detail
    assert (detail["kind"], detail["status"], detail["at"]) == (kind, after, NOW)
    assert detail["id"] == f"{kind}#{event.event_id}"
    assert notification.detail_type == DETAIL_TYPES[kind]


def test_every_step_after_the_claim_is_news() -> None:
    """So whoever hears of a termination also hears how it ended."""
    expected = {status: set(after) for status, after in STEPS.items() if status is not Status.LEASHED}
    assert {status: set(after) for status, after in NEWS.items()} == expected


@pytest.mark.parametrize("before", [None, *Status])
@pytest.mark.parametrize("after", list(Status))
def test_no_other_step_has_a_notification(before: Status | None, after: Status) -> None:
    expected = before is not None and after in NEWS.get(before, ())
    assert bool(notifications_of(in_status(after), before)) is expected


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
@pytest.mark.parametrize("attribute", [one.name for one in fields(Switch)])
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
