"""Hits that benchmarks request while they load a unit: who must agree, when they happen, and what is hit of them."""

from __future__ import annotations

import copy
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from handlers import request as function
from tests.unit.account.account import CONTEXT, OVERDUE, SETTINGS, Account, calls, inputs
from tests.unit.chaos.build import at, event, judged
from tests.unit.chaos.flows.test_change_calendar import CLOSED_NOW, NAMED, ChangeCalendars, document, ssm
from troop.chaos.aws.event_items import to_item
from troop.chaos.events import AbandonReason, Status
from troop.chaos.flows.clock_check import ClockError
from troop.chaos.stages import HealthySince, Stages
from troop.shared import moments
from troop.shared.aws.clients import client
from troop.shared.errors import MissingEventError

__all__ = ["ssm"]

MACHINE = "arn:aws:states:eu-central-1:123456789012:stateMachine:on-demand"
RUN = "20261120-224500-1f0c9b2e"
EVENT = f"od#web#bench/{RUN}/c001/measure/1"
AGREED = {"troop:under_load": "true"}
ON = SETTINGS | {"under_load": True}


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    chosen: dict[str, Any] = copy.deepcopy(getattr(request, "param", ON))
    return chosen


@pytest.fixture(autouse=True)
def machine(account: Account) -> None:
    role = client("iam").create_role(RoleName="od", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    client("stepfunctions").create_state_machine(name="on-demand", definition="{}", roleArn=role)


def requested(account: Account, **changes: Any) -> dict[str, Any]:
    now = moments.iso(account.clock())
    payload = {"run": RUN, "cell": "c001", "step": "measure", "number": 1, "unit": "web", "choice": None}
    answer: dict[str, Any] = function.handler({**payload, "requested_at": now, "latest": now, **changes}, CONTEXT)
    return answer


def read(event_id: str = EVENT) -> dict[str, Any]:
    answer: dict[str, Any] = function.handler({"event_id": event_id}, CONTEXT)
    return answer


def refusal(answer: dict[str, Any]) -> str:
    assert (answer["outcome"], answer["event"]) == ("REFUSED", None)
    return str(answer["why"])


def test_a_hit_is_claimed_for_the_run_and_carried_out_by_its_workflow(account: Account) -> None:
    account.group("web", tags=AGREED)
    answer = requested(account)
    stored = account.event(EVENT)
    assert (answer["outcome"], answer["why"]) == ("DONE", None)
    hit = answer["event"]
    assert (hit["event_id"], hit["status"], hit["group"], hit["over"]) == (EVENT, "CLAIMED", "web", False)
    assert hit["instance_id"] == stored.instance_id
    assert (stored.benchmark, stored.method) == (RUN, "crash")
    (work,) = inputs(MACHINE).values()
    account.terminate(work)
    assert account.gone() == [stored.instance_id]
    later = read()["event"]
    assert (later["status"], later["hit_at"]) == ("TERMINATED", OVERDUE.timestamp())


def test_the_same_place_in_a_run_is_hit_once(account: Account) -> None:
    account.group("web", tags=AGREED)
    first = requested(account)
    account.drop_group("web")
    assert requested(account) == first
    assert account.all_events() == [EVENT]
    assert len(inputs(MACHINE)) == 1
    account.group("web", tags=AGREED)
    assert "in-flight" in refusal(requested(account, number=2)), "another fault of the run is another hit"


@pytest.mark.parametrize("tags", [{}, {"troop:under_load": "false"}])
def test_a_unit_whose_owner_does_not_agree_is_refused(account: Account, tags: dict[str, str]) -> None:
    account.group("web", tags=tags)
    assert refusal(requested(account)).startswith("not-under-load: its policy does not agree: under_load is false")
    assert account.all_events() == []


def test_all_groups_of_a_unit_must_agree(account: Account) -> None:
    account.group("web-v1", tags=AGREED)
    account.group("web-v2")
    assert refusal(requested(account)).startswith("not-under-load")
    account.policy("web", under_load=True)
    assert requested(account)["event"]["group"] in ("web-v1", "web-v2")


@pytest.mark.parametrize("settings", [SETTINGS], indirect=True)
def test_without_the_setting_no_unit_is_hit(account: Account) -> None:
    account.group("web", tags=AGREED)
    assert refusal(requested(account)) == "not-under-load: the setting troop:under_load is false"


@pytest.mark.parametrize(
    ("moment", "reason"),
    [
        (datetime(2026, 11, 22, 20, 0, tzinfo=UTC), "weekend"),
        (at("12:00", date(2026, 11, 26)), "holiday"),
        (at("12:00", date(2026, 12, 14)), "freeze"),
        (at("15:00"), "outside-window"),
        (at("14:59:45"), "outside-window: too close to the end of the window"),
    ],
)
def test_window_holidays_and_freezes_count(account: Account, moment: datetime, reason: str) -> None:
    account.group("web", tags=AGREED)
    account.clock.moment = moment
    assert refusal(requested(account)).startswith(reason)
    assert account.all_events() == []


@pytest.mark.parametrize("settings", [NAMED | {"under_load": True}], indirect=True)
def test_a_closed_change_calendar_refuses_and_bounds_the_claim(account: Account, ssm: ChangeCalendars) -> None:
    account.group("web", tags=AGREED)
    ssm.documents["prod"] = CLOSED_NOW
    assert refusal(requested(account)).startswith("change-calendar: SSM Change Calendar prod is closed")
    soon = OVERDUE + timedelta(minutes=3)
    ssm.documents["prod"] = document((soon, soon + timedelta(hours=1)))
    requested(account)
    assert account.event(EVENT).deadline == soon


def test_claim_is_not_carried_out_after_the_window(account: Account) -> None:
    account.group("web", tags=AGREED)
    account.clock.moment = at("14:55")
    requested(account)
    assert account.event(EVENT).deadline == at("15:00")
    account.clock.moment = at("15:00")
    (work,) = inputs(MACHINE).values()
    account.terminate(work)
    assert account.gone() == []


def test_an_owner_who_withdraws_after_the_claim_is_obeyed(account: Account) -> None:
    account.group("web", tags=AGREED)
    requested(account)
    account.policy("web", under_load=False)
    (work,) = inputs(MACHINE).values()
    assert account.terminate(work)["status"] == "ABANDONED"
    answer = read()
    assert (answer["outcome"], answer["event"]["status"], answer["event"]["over"]) == ("REFUSED", "ABANDONED", True)
    assert answer["why"].startswith("not-under-load: its policy does not agree")


def test_guards_caps_and_halts_hold_as_for_other_requests(account: Account) -> None:
    account.group("web", tags=AGREED)
    account.switch(halted=True)
    assert refusal(requested(account)).startswith("halted")
    account.switch(halted=False)
    account.put("State", {"key": {"S": "day#2026-11-20"}, "count": {"N": "20"}})
    assert refusal(requested(account)).startswith("day-cap")


def test_an_unknown_unit_is_refused(account: Account) -> None:
    assert refusal(requested(account)) == "no-groups: no Auto Scaling group belongs to the unit web"


def test_a_fault_may_be_chosen(account: Account) -> None:
    account.group("web", tags=AGREED)
    requested(account, choice="shutdown")
    assert account.event(EVENT).method == "shutdown"


def test_a_wrong_clock_claims_nothing(account: Account) -> None:
    account.group("web", tags=AGREED)
    with pytest.raises(ClockError):
        requested(account, requested_at=moments.iso(account.clock() - timedelta(hours=1)))
    assert account.all_events() == []


def test_a_late_request_claims_nothing_but_finds_an_earlier_one(account: Account) -> None:
    """The answer to the earlier one may be lost."""
    account.group("web", tags=AGREED)
    late = moments.iso(account.clock() - timedelta(seconds=1))
    assert refusal(requested(account, latest=late)).startswith("too-late: no request was claimed until ")
    assert account.all_events() == []
    first = requested(account)
    assert requested(account, latest=late) == first


def test_a_late_request_starts_no_workflow_of_an_earlier_claim(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The load may be over."""
    account.group("web", tags=AGREED)
    first, late = requested(account), moments.iso(account.clock() - timedelta(seconds=1))
    with calls(monkeypatch) as operations:
        assert requested(account, latest=late) == first
    assert "StartExecution" not in operations


def test_reading_tells_recovery_verdict_and_stages(account: Account) -> None:
    account.put("Events", to_item(judged(event_id=EVENT, benchmark=RUN)))
    assert read() == {
        "outcome": "DONE",
        "why": None,
        "event": {
            "event_id": EVENT,
            "status": "RECOVERED",
            "verdict": "BROKEN",
            "group": "web",
            "instance_id": "i-00000000000000000",
            "hit_at": at("12:00:02").timestamp(),
            "terminated_at": at("12:00:02").timestamp(),
            "recovery_seconds": 190.0,
            "stages": {
                "noticed": at("12:00:06").timestamp(),
                "launched": at("12:00:11").timestamp(),
                "running": None,
                "in_service": at("12:01:12").timestamp(),
                "healthy": None,
            },
            "over": True,
        },
    }


def test_an_event_is_not_over_before_its_verdict(account: Account) -> None:
    account.put("Events", to_item(judged(event_id=EVENT, verdict=None)))
    hit = read()["event"]
    assert (hit["status"], hit["verdict"], hit["over"]) == ("RECOVERED", None, False)


def test_the_last_traffic_source_ends_the_recovery(account: Account) -> None:
    healthy = (HealthySince("a", at("12:01:30")), HealthySince("b", at("12:01:50")))
    account.put("Events", to_item(judged(event_id=EVENT, stages=Stages(healthy=healthy))))
    assert read()["event"]["stages"]["healthy"] == at("12:01:50").timestamp()


def test_a_claim_whose_instance_was_gone_is_refused_with_its_reason(account: Account) -> None:
    gone = event(event_id=EVENT, status=Status.GONE_ELSEWHERE, detail="", cause=AbandonReason.GONE, terminated_at=None)
    account.put("Events", to_item(gone))
    answer = read()
    assert (answer["outcome"], answer["why"]) == ("REFUSED", "the event is GONE_ELSEWHERE")


def test_an_event_that_does_not_exist_is_an_error(account: Account) -> None:
    with pytest.raises(MissingEventError):
        read("od#web#none")
