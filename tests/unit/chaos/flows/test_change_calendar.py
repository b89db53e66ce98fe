"""An SSM Change Calendar that a calendar names closes the window for ticks and claims; health tells its state."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

from local.account import change_calendars
from tests.unit.account.account import OVERDUE, SETTINGS, Account
from tests.unit.account.deployed import Deployed
from tests.unit.chaos.api.test_health import failing, get_health
from tests.unit.chaos.build import at
from troop.chaos.aws.change_calendars import PERIODS_READ, read_period, read_periods
from troop.shared import moments
from troop.shared.aws.clients import client

SHARED = "arn:aws:ssm:eu-central-1:111122223333:document/group-wide"
NAMED = SETTINGS | {
    "calendars": {**SETTINGS["calendars"], "default": SETTINGS["calendars"]["default"] | {"change_calendar": "prod"}}
}
CHANGING = pytest.mark.parametrize("settings", [NAMED], indirect=True)


def document(*events: tuple[datetime, datetime]) -> str:
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "X-CALENDAR-TYPE:DEFAULT_OPEN"]
    for start, end in events:
        lines += ["BEGIN:VEVENT", f"DTSTART:{start:%Y%m%dT%H%M%SZ}", f"DTEND:{end:%Y%m%dT%H%M%SZ}", "END:VEVENT"]
    return "\r\n".join([*lines, "END:VCALENDAR"])


@dataclass
class ChangeCalendars:
    """SSM's Change Calendars, as local AWS has them, in place of moto, which has none."""

    documents: dict[str, str] = field(default_factory=dict)
    requests: list[dict[str, Any]] = field(default_factory=list)
    refusal: str = ""

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        self.requests.append(request)
        (name,) = request["CalendarNames"]
        if self.refusal or name not in self.documents:
            code = self.refusal or "InvalidDocument"
            raise ClientError({"Error": {"Code": code, "Message": "no"}}, "GetCalendarState")
        is_open, change = change_calendars.state(self.documents[name], moments.parse(request["AtTime"]))
        answer = {"State": "OPEN" if is_open else "CLOSED", "AtTime": request["AtTime"]}
        return answer | ({"NextTransitionTime": moments.second(change)} if change else {})


@pytest.fixture
def ssm(monkeypatch: pytest.MonkeyPatch) -> ChangeCalendars:
    calendars, real = ChangeCalendars(), BaseClient._make_api_call  # type: ignore[attr-defined]

    def call(self: Any, operation: str, parameters: dict[str, Any]) -> Any:
        return calendars.answer(parameters) if operation == "GetCalendarState" else real(self, operation, parameters)

    monkeypatch.setattr(BaseClient, "_make_api_call", call)
    return calendars


HOUR = timedelta(hours=1)
CLOSED_NOW = document((OVERDUE - HOUR, OVERDUE + HOUR))


def test_a_calendar_without_one_asks_ssm_nothing(account: Account, ssm: ChangeCalendars) -> None:
    account.group("web")
    assert account.decide()["count"] == 1
    assert ssm.requests == []


@CHANGING
def test_change_calendar_closes_and_opens_the_window(account: Account, ssm: ChangeCalendars) -> None:
    account.group("web")
    account.group("out", tags={"troop:opt_out": "true"})
    ssm.documents["prod"] = CLOSED_NOW
    assert account.decide()["count"] == 0
    web = account.decisions()["web"]
    assert web["reason"] == "change-calendar"
    assert web["detail"] == f"SSM Change Calendar prod is closed until {moments.second(OVERDUE + HOUR)}"
    assert len(ssm.requests) == 1
    assert ssm.requests[0]["AtTime"] == moments.second(OVERDUE)  # the moment of the tick
    ssm.documents["prod"] = document()
    account.clock.forward(seconds=1)
    assert account.decide()["count"] == 1


@CHANGING
@pytest.mark.parametrize(
    "refusal", ["", "AccessDeniedException", "InvalidDocumentType", "UnsupportedCalendarException"]
)
def test_one_that_cannot_be_read_closes_the_window(account: Account, ssm: ChangeCalendars, refusal: str) -> None:
    account.group("web")
    ssm.refusal = refusal
    assert account.decide()["reasons"] == {"change-calendar": 1}
    assert (refusal or "InvalidDocument") in account.decisions()["web"]["detail"]


@CHANGING
def test_a_tick_of_another_calendar_does_not_ask(account: Account, ssm: ChangeCalendars) -> None:
    account.group("web")
    account.decide("night")
    assert ssm.requests == []


@CHANGING
def test_the_claim_asks_again(account: Account, ssm: ChangeCalendars) -> None:
    account.group("web")
    ssm.documents["prod"] = document()
    (item,) = account.work(account.decide())
    ssm.documents["prod"] = CLOSED_NOW
    answer = account.terminate(item)
    assert (answer["status"], answer["reason"]) == ("REFUSED", "change-calendar")
    assert account.decisions()["web"]["reason"] == "change-calendar"
    assert account.gone() == []
    ssm.documents["prod"] = document()
    assert account.terminate(item)["status"] == "TERMINATED"


@CHANGING
def test_no_claim_outlives_the_open_period(account: Account, ssm: ChangeCalendars) -> None:
    account.group("web")
    ssm.documents["prod"] = document((OVERDUE + timedelta(minutes=2), OVERDUE + HOUR))
    (item,) = account.work(account.decide())
    assert account.terminate(item)["status"] == "TERMINATED"
    assert account.event(item["event_id"]).deadline == OVERDUE + timedelta(minutes=2)


@CHANGING
def test_health_tells_its_state_and_warns_if_it_cannot_be_read(deployed: Deployed, ssm: ChangeCalendars) -> None:
    ssm.documents["prod"] = CLOSED_NOW
    (check,) = [c for c in get_health()["checks"] if c["name"] == "change-calendars"]
    assert (check["status"], check["value"], check["threshold"]) == ("ok", 1, 1)
    assert check["detail"] == f"prod is closed until {moments.second(OVERDUE + HOUR)}"
    ssm.refusal = "AccessDeniedException"
    body = get_health()
    assert body["status"] == "warn"
    assert "prod cannot be read: ClientError" in failing(body)["change-calendars"]


def test_a_forecast_reads_every_change_but_not_forever(ssm: ChangeCalendars) -> None:
    first = at("09:00")
    nights = [(first + timedelta(days=n), first + timedelta(days=n, hours=12)) for n in range(100)]
    ssm.documents[SHARED] = document(*nights)
    ahead = read_periods(client("ssm"), SHARED, first, first + timedelta(days=3))
    assert [period.is_open for period in ahead] == [False, True] * 3 + [False]
    assert all(one.end == other.start for one, other in pairwise(ahead))
    far = read_periods(client("ssm"), SHARED, first, first + timedelta(days=90))
    assert len(far) == PERIODS_READ + 1
    assert (far[-1].is_open, far[-1].end) == (True, None)
    ssm.refusal = "InternalServerError"
    with pytest.raises(ClientError):
        read_periods(client("ssm"), SHARED, first, first)


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        ({"State": "OPEN", "NextTransitionTime": "2026-11-21T00:00:00Z"}, at("16:00")),
        ({"State": "OPEN", "NextTransitionTime": "2026-11-21T01:00:00+01:00"}, at("16:00")),
        ({"State": "OPEN", "NextTransitionTime": "2026-11-21T00:00:00"}, at("16:00")),
        ({"State": "OPEN", "NextTransitionTime": "soon"}, None),
        ({"State": "OPEN", "NextTransitionTime": "2026-11-20T00:00:00Z"}, None),  # over: no endless reading
        ({"State": "OPEN"}, None),
    ],
)
def test_the_next_change_is_read_in_any_form(
    monkeypatch: pytest.MonkeyPatch, answer: dict[str, str], end: datetime | None
) -> None:
    monkeypatch.setattr(BaseClient, "_make_api_call", lambda *_: answer)
    period = read_period(client("ssm"), "prod", at("12:00"))
    assert (period.is_open, period.end) == (True, end)
