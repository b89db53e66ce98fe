"""On demand: which guards hold, and which do not."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.unit.chaos.build import at, event, facts
from tests.unit.chaos.guard_cases import CASES, Case
from troop.chaos.events import OPEN, Status, is_on_demand, on_demand_id, scheduled_id
from troop.chaos.guards import SCHEDULED, Refusal, Target, judge
from troop.chaos.on_demand import IGNORED, ON_DEMAND, execution_name, refuse_if_in_flight
from troop.chaos.verdict import Verdict, VerdictValue

WHEN = {
    *("weekend", "holiday", "freeze", "outside-window", "change-calendar"),
    *("too-soon", "not-rolled", "not-yet", "already-today"),
}


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.detail)
def test_all_but_when_and_how_often_is_obeyed(case: Case) -> None:
    verdict = judge(facts(**case.refused), ON_DEMAND)
    if case.reason in WHEN:
        assert isinstance(verdict, Target)
    else:
        assert verdict == Refusal(case.reason, case.detail)


def test_every_guard_is_either_obeyed_or_ignored() -> None:
    assert [g for g in SCHEDULED if g not in IGNORED] == list(ON_DEMAND)
    assert set(SCHEDULED) >= IGNORED


@pytest.mark.parametrize("status", Status)
def test_no_unit_has_two_in_flight(status: Status) -> None:
    assert (refuse_if_in_flight(event(status=status)) is not None) == (status in OPEN)
    assert refuse_if_in_flight(None) is None


def test_no_unit_has_another_before_its_verdict() -> None:
    over = event(status=Status.RECOVERED, recovered_at=at("12:00"))
    waiting = replace(over, settles_at=at("12:06"))
    assert refuse_if_in_flight(waiting) == Refusal(
        "in-flight", f"its termination {waiting.event_id} awaits its verdict: wait until it is given"
    )
    verdict = Verdict(VerdictValue.HELD, "", at("12:06"), at("11:50"), at("12:06"))
    assert [refuse_if_in_flight(one) for one in (over, replace(waiting, verdict=verdict))] == [None, None]


def test_names_of_executions_are_what_step_functions_takes() -> None:
    names = {
        execution_name(on_demand_id(unit, key)) for unit in ("web", "w#b", "\u00fc" * 256) for key in ("a", "k" * 128)
    }
    assert len(names) == 6
    assert all(re.fullmatch("[A-Za-z0-9-]{1,80}", name) for name in names)


def test_ids_tell_which_is_which() -> None:
    day = event().day
    assert is_on_demand(on_demand_id("web", "k"))
    assert not is_on_demand(scheduled_id(day, "od#web"))
