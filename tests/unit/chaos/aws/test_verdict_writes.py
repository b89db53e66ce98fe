"""Verdicts are written with what follows from them: the unit leaves chaos, and the deployment halts itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from tests.unit.account.account import FRIDAY, OVERDUE, WEB, Account, Cut, before, calls, losing, refusing
from tests.unit.account.asking import get, patch
from tests.unit.account.changing import recorded
from troop.chaos.aws.event_table import EventTable, StepRefused
from troop.chaos.events import Event, Status
from troop.chaos.verdict import AlarmRecord, AlarmState, Verdict, VerdictValue
from troop.shared.aws.dynamo import typed
from troop.shared.aws.throttling import ThrottledError
from troop.shared.tables import EVENT_SETTLES

WHOLE, SETTLED = OVERDUE + timedelta(minutes=2), OVERDUE + timedelta(minutes=6)
HALT_AFTER = 3


def verdict(value: VerdictValue, *alarms: str, at: datetime = SETTLED) -> Verdict:
    """A verdict after which these alarms were in ALARM."""
    records = tuple(AlarmRecord(name, (AlarmState(OVERDUE, "ALARM"),)) for name in alarms)
    return Verdict(value, "a reason", at, OVERDUE, at, records)


HELD, UNKNOWN = verdict(VerdictValue.HELD), verdict(VerdictValue.UNKNOWN)


def broken(*alarms: str, at: datetime = SETTLED) -> Verdict:
    return verdict(VerdictValue.BROKEN, *alarms, at=at)


@pytest.fixture
def table(account: Account) -> EventTable:
    return replace(account.events, halt_after=HALT_AFTER, sleep=lambda _: None)


def terminated(account: Account, unit: str = "web") -> Event:
    account.group(unit)
    account.terminate(account.item(unit))
    return account.event(f"{FRIDAY}#{unit}")


def close(table: EventTable, event: Event, verdict: Verdict | None = None) -> Event:
    settles_at = None if verdict else SETTLED
    return table.close(event, Status.RECOVERED, "", WHOLE, verdict=verdict, settles_at=settles_at)


# ------------------------------------------------------------------ at once


@pytest.mark.parametrize("outcome", [HELD, UNKNOWN])
def test_a_verdict_at_once_closes_the_event_for_good(account: Account, table: EventTable, outcome: Verdict) -> None:
    closed = close(table, terminated(account), outcome)
    assert account.event(WEB) == closed
    assert (closed.verdict, closed.awaits_verdict) == (outcome, False)
    assert table.open_ids() == table.open_ids(EVENT_SETTLES) == []
    assert "unrecovered" not in account.state("unit#web")
    assert account.state("broken") == account.state("unrecovered") == {}


def test_a_broken_unit_leaves_chaos_although_it_recovered(account: Account, table: EventTable) -> None:
    close(table, terminated(account), broken("errors"))
    unit = account.state("unit#web")
    assert (unit["unrecovered"], unit["left_for"]) == (WEB, "broken")
    assert account.state("unrecovered")["units"] == {"web"}
    assert account.count("in-flight") == 0
    assert account.state("self-halt") == {}
    (counted,) = account.state("broken")["events"]
    assert counted == {"event_id": WEB, "unit": "web", "at": "2026-11-20T22:52:00.000Z", "alarms": ["errors"]}
    account.clock.moment = OVERDUE + timedelta(days=3)
    account.decide()
    assert account.decisions()["web"]["reason"] == "broken"


def test_an_unrecovered_unit_leaves_chaos_as_such(account: Account, table: EventTable) -> None:
    table.close(terminated(account), Status.UNRECOVERED, "", verdict=broken())
    assert account.state("unit#web")["left_for"] == "unrecovered"
    assert len(account.state("broken")["events"]) == 1
    table.close(terminated(account, "api"), Status.UNRECOVERED, "")
    assert account.state("unit#api")["left_for"] == "unrecovered"
    assert len(account.state("broken")["events"]) == 1, "an event without a verdict does not count"


# ------------------------------------------------------------------ later


def test_an_event_awaits_its_verdict_without_its_place_in_flight(account: Account, table: EventTable) -> None:
    closed = close(table, terminated(account))
    assert account.event(WEB) == closed
    assert (closed.status, closed.awaits_verdict, closed.settles_at) == (Status.RECOVERED, True, SETTLED)
    assert account.count("in-flight") == 0
    assert (table.open_ids(), table.open_ids(EVENT_SETTLES)) == ([], [WEB])


@pytest.mark.parametrize("outcome", [HELD, UNKNOWN, broken("errors")])
def test_a_later_verdict_ends_the_wait(account: Account, table: EventTable, outcome: Verdict) -> None:
    judged = table.judge(close(table, terminated(account)), outcome)
    assert account.event(WEB) == judged
    assert (judged.verdict, judged.settles_at, judged.awaits_verdict) == (outcome, SETTLED, False)
    assert table.open_ids(EVENT_SETTLES) == []
    assert account.state("unit#web").get("left_for") == ("broken" if outcome.value is VerdictValue.BROKEN else None)


def test_the_first_verdict_stays(account: Account, table: EventTable) -> None:
    awaiting = close(table, terminated(account))
    table.judge(awaiting, HELD)
    with pytest.raises(StepRefused):
        table.judge(awaiting, broken("errors"))
    assert account.event(WEB).verdict == HELD
    assert account.state("broken") == {}


def test_an_event_in_flight_has_no_verdict_yet(account: Account, table: EventTable) -> None:
    with pytest.raises(StepRefused):
        table.judge(terminated(account), HELD)
    assert account.event(WEB).verdict is None


def test_a_lost_answer_counts_once(account: Account, table: EventTable, monkeypatch: pytest.MonkeyPatch) -> None:
    awaiting = close(table, terminated(account))
    with calls(monkeypatch, losing("TransactWriteItems")), pytest.raises(Cut):
        table.judge(awaiting, broken("errors"))
    with pytest.raises(StepRefused):
        table.judge(awaiting, broken("errors"))
    assert len(account.state("broken")["events"]) == 1


# ------------------------------------------------------------------ the deployment's own halt


def test_the_deployment_halts_itself_after_several_causes(account: Account, table: EventTable) -> None:
    for unit in ("web", "api"):
        close(table, terminated(account, unit), broken(f"{unit}-errors"))
    assert account.state("self-halt") == {}
    table.close(terminated(account, "db"), Status.UNRECOVERED, "", verdict=broken())
    halt = account.state("self-halt")
    assert halt["why"] == (
        "3 causes broke units within an hour: web (alarm web-errors); api (alarm api-errors); db (recovery)"
    )
    assert halt["at"] == "2026-11-20T22:52:00.000Z"
    assert halt["events"] == [f"{FRIDAY}#{unit}" for unit in ("web", "api", "db")]


def test_a_shared_alarm_is_one_cause(account: Account, table: EventTable) -> None:
    for unit in ("web", "api", "db", "queue"):
        close(table, terminated(account, unit), broken("shared"))
    assert account.state("self-halt") == {}
    assert len(account.state("broken")["events"]) == 4


def test_causes_of_another_hour_do_not_count(account: Account, table: EventTable) -> None:
    close(table, terminated(account, "web"), broken("a"))
    close(table, terminated(account, "api"), broken("b", at=SETTLED + timedelta(minutes=50)))
    close(table, terminated(account, "db"), broken("c", at=SETTLED + timedelta(minutes=61)))
    assert account.state("self-halt") == {}
    assert [one["unit"] for one in account.state("broken")["events"]] == ["api", "db"]


def test_zero_never_halts(account: Account, table: EventTable) -> None:
    never = replace(table, halt_after=0)
    for unit in ("web", "api", "db", "queue"):
        close(never, terminated(account, unit), broken(unit))
    assert account.state("self-halt") == {}


def test_hits_of_benchmarks_break_units_but_never_halt(account: Account, table: EventTable) -> None:
    for unit in ("web", "api", "db", "queue"):
        close(table, replace(terminated(account, unit), benchmark="a run"), broken(unit))
        assert account.state(f"unit#{unit}")["left_for"] == "broken"
    assert account.state("self-halt") == account.state("broken") == {}
    close(table, terminated(account, "cache"), broken("cache"))
    assert [one["unit"] for one in account.state("broken")["events"]] == ["cache"]


def test_the_first_halt_stays(account: Account, table: EventTable) -> None:
    for event in [terminated(account, unit) for unit in ("web", "api", "db", "queue")]:
        close(table, event, broken(event.unit))
    halt = account.state("self-halt")
    assert len(halt["events"]) == 3
    assert len(account.state("broken")["events"]) == 4


def test_two_verdicts_at_once_both_count(account: Account, table: EventTable, monkeypatch: pytest.MonkeyPatch) -> None:
    web, api, db = (close(table, terminated(account, unit)) for unit in ("web", "api", "db"))
    table.judge(web, broken("a"))
    with calls(monkeypatch, before("TransactWriteItems", lambda: table.judge(api, broken("b")))):
        table.judge(db, broken("c"))
    assert [one["unit"] for one in account.state("broken")["events"]] == ["web", "api", "db"]
    assert len(account.state("self-halt")["events"]) == 3


def test_a_halt_that_another_verdict_has_just_written_stays(
    account: Account, table: EventTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    units = ("web", "api", "db", "queue")
    web, api, db, queue = (close(table, terminated(account, unit)) for unit in units)
    table.judge(web, broken("a"))
    table.judge(api, broken("b"))
    with calls(monkeypatch, before("TransactWriteItems", lambda: table.judge(db, broken("c")))):
        table.judge(queue, broken("d"))
    assert account.state("self-halt")["events"] == [f"{FRIDAY}#{unit}" for unit in units[:3]]
    assert len(account.state("broken")["events"]) == 4


def test_a_resumption_begins_a_new_count(account: Account, table: EventTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The API removes both items, and another verdict writes the first one of a new count."""
    web, api, db = (close(table, terminated(account, unit)) for unit in ("web", "api", "db"))
    table.judge(web, broken("a"))

    def resume() -> None:
        account.dynamodb.delete_item(TableName="State", Key={"key": {"S": "broken"}})
        table.judge(api, broken("b"))

    with calls(monkeypatch, before("TransactWriteItems", resume)):
        table.judge(db, broken("c"))
    assert [one["unit"] for one in account.state("broken")["events"]] == ["api", "db"]


def test_a_resumption_during_a_verdict_ends_the_halt_for_good(
    account: Account, table: EventTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verdict does not halt the deployment again for what was broken before."""
    web, api, db, queue = (close(table, terminated(account, unit)) for unit in ("web", "api", "db", "queue"))
    for number, event in enumerate((web, api, db)):
        table.judge(event, broken(str(number)))
    assert get("/switch")["halted"]
    with calls(monkeypatch, before("TransactWriteItems", lambda: patch("/switch", {"halted": False}))):
        table.judge(queue, broken("errors"))
    assert not get("/switch")["halted"]
    assert [one["unit"] for one in account.state("broken")["events"]] == ["queue"]
    (change,) = [one["changes"] for one in recorded(account)]
    assert len(change["itself"]["old"]["events"]) == 3


def test_an_item_edited_by_hand_keeps_no_verdict_from_being_recorded(account: Account, table: EventTable) -> None:
    account.put("State", typed({"key": "broken", "version": "x", "events": ["damaged", {"unit": "web"}]}))
    close(table, terminated(account), broken("errors"))
    assert [one["unit"] for one in account.state("broken")["events"]] == ["web"]


def test_a_verdict_that_others_always_precede_is_an_error_that_passes(
    account: Account, table: EventTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    awaiting = close(table, terminated(account))
    turns = iter(range(100))

    def another() -> None:
        account.put("State", typed({"key": "broken", "version": f"another {next(turns)}"}))

    with (
        calls(monkeypatch, before("TransactWriteItems", another, times=100)),
        pytest.raises(ThrottledError, match="other transactions write the same items"),
    ):
        table.judge(awaiting, broken("errors"))
    assert account.event(WEB).awaits_verdict


def test_a_verdict_that_does_not_break_reads_nothing_else(
    account: Account, table: EventTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    awaiting = close(table, terminated(account))
    with calls(monkeypatch, refusing("GetItem", "AccessDenied")) as operations:
        table.judge(awaiting, HELD)
    assert operations == ["TransactWriteItems"]
