"""The command reads of the API what the deployment's own letter reads of the table."""

from __future__ import annotations

import pytest

from cli.chaos.period_reader import outcome_of
from tests.unit.account.account import Account
from tests.unit.account.asking import get
from tests.unit.chaos.build import event, injected, judged, replaced, running
from troop.chaos.aws.event_items import to_item
from troop.chaos.events import Event, Status
from troop.chaos.period import Outcome


@pytest.mark.parametrize(
    "stored",
    [
        judged(),
        judged(owner="team-web", verdict=None),
        event(),
        event(status=Status.UNRECOVERED, detail="capacity 2 of 3"),
        event(status=Status.LEASHED, terminated_at=None),
        injected(),
        running(),
        replaced(),
    ],
    ids=[
        *("judged", "awaiting its verdict", "in flight", "unrecovered", "leashed"),
        *("fault over", "fault runs", "replaced"),
    ],
)
def test_api_and_table_give_the_same_outcome(account: Account, stored: Event) -> None:
    account.put("Events", to_item(stored))
    (answer,) = get("/events")["events"]
    assert outcome_of(answer) == Outcome.from_event(stored)
