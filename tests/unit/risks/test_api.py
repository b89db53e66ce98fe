"""GET and PATCH /risks: what is on record, and who exempts from what until when."""

from __future__ import annotations

from typing import Any

import pytest

from handlers import risks
from tests.unit.account.account import CONTEXT, Account
from tests.unit.account.asking import ANNA, BERT, ask, get, patch
from troop.risks.rules import RULES
from troop.shared import moments

TODAY = "2026-11-20"
NEXT_YEAR = "2027-11-21"
ACCEPTED = {"reason": "moves in spring", "until": "2027-03-31"}


@pytest.fixture
def web(account: Account) -> Account:
    """An account with a group of one instance that was read once."""
    account.group("web", 1, tags={"troop:owner": "shop"})
    risks.handler({}, CONTEXT)
    return account


def by_rule(**query: Any) -> dict[str, Any]:
    return {risk["rule"]: risk for risk in get("/risks", **query)["risks"]}


def exempt(rule: str = "one-instance", subject: str = "web", caller: str = ANNA, **exemption: str) -> tuple[int, Any]:
    return ask("PATCH", "/risks", {"rule": rule, "subject": subject, "exemption": ACCEPTED | exemption}, caller)


def test_before_the_first_reading_there_is_nothing(account: Account) -> None:
    answer = get("/risks")
    assert (answer["reading"], answer["risks"], answer["cursor"]) == (None, [], None)
    assert [rule["name"] for rule in answer["rules"]] == [rule.name for rule in RULES]


def test_a_risk_has_all_that_people_decide_by(web: Account) -> None:
    now = moments.iso(web.clock())
    assert by_rule()["one-instance"] == {
        "rule": "one-instance",
        "subject": "web",
        "kind": "unit",
        "severity": "medium",
        "owner": "shop",
        "evidence": {"desired": 1},
        "first_seen": now,
        "last_seen": now,
        "gone_since": None,
        "unknown": "",
        "monthly": None,
        "confirmed": None,
        "exemption": None,
    }
    reading = get("/risks")["reading"]
    assert (reading["at"], reading["subjects"]["unit"], reading["unread"]) == (now, 1, [])


def test_pages_have_all_risks_once(web: Account) -> None:
    every, seen = list(by_rule()), list[str]()
    cursor: dict[str, str] = {}
    while True:
        page = get("/risks", limit=1, **cursor)
        seen += [risk["rule"] for risk in page["risks"]]
        if page["cursor"] is None:
            break
        cursor = {"cursor": page["cursor"]}
    assert seen == every == sorted(every)
    assert ask("GET", "/risks", gone="true", cursor=cursor["cursor"])[0] == 400


def test_risks_that_are_gone_are_listed_on_request(web: Account) -> None:
    web.clock.forward(days=1)
    web.autoscaling.update_auto_scaling_group(AutoScalingGroupName="web", DesiredCapacity=2)
    risks.handler({}, CONTEXT)
    assert "one-instance" not in by_rule()
    assert by_rule(gone="true")["one-instance"]["gone_since"] == moments.iso(web.clock())
    assert exempt()[0] == 404


def test_an_exemption_has_its_reason_its_end_and_its_author(web: Account) -> None:
    status, risk = exempt()
    accepted = ACCEPTED | {"by": ANNA, "at": moments.iso(web.clock())}
    assert (status, risk["exemption"]) == (200, accepted)
    assert by_rule()["one-instance"]["exemption"] == accepted
    assert by_rule()["no-alarm"]["exemption"] is None
    web.clock.forward(minutes=1)
    exempt(reason="never moves", caller=BERT)
    assert by_rule()["one-instance"]["exemption"]["by"] == BERT


def test_an_exemption_ends_after_its_day_or_when_somebody_ends_it(web: Account) -> None:
    exempt(until="2026-11-21")
    web.clock.forward(days=1)
    assert by_rule()["one-instance"]["exemption"]
    web.clock.forward(days=1)
    assert by_rule()["one-instance"]["exemption"] is None
    exempt()
    web.clock.forward(minutes=1)
    assert patch("/risks", {"rule": "one-instance", "subject": "web", "exemption": None})["exemption"] is None
    assert by_rule()["one-instance"]["exemption"] is None


@pytest.mark.parametrize(("days", "unknown"), [(1, ""), (101, "it is no longer on record")])
def test_an_exemption_ends_also_if_its_risk_is_gone(web: Account, days: int, unknown: str) -> None:
    exempt(until=NEXT_YEAR)
    web.autoscaling.update_auto_scaling_group(AutoScalingGroupName="web", DesiredCapacity=2)
    for more in (1, days):
        web.clock.forward(days=more)
        risks.handler({}, CONTEXT)
    change = {"rule": "one-instance", "subject": "web", "exemption": None}
    ended = patch("/risks", change)
    assert (ended["exemption"], ended["unknown"], bool(ended["gone_since"])) == (None, unknown, True)
    web.clock.forward(minutes=1)
    assert ask("PATCH", "/risks", change)[0] == 404


def test_the_longest_exemption_lasts_to_the_end_of_its_last_day(web: Account) -> None:
    exempt(until=NEXT_YEAR)
    web.clock.moment = moments.parse("2027-11-22T07:59:00Z")  # 23:59 in Los Angeles
    assert by_rule()["one-instance"]["exemption"]
    web.clock.forward(minutes=1)
    assert by_rule()["one-instance"]["exemption"] is None


@pytest.mark.parametrize(
    ("exemption", "status"),
    [
        ({"until": "2026-11-19"}, 400),
        ({"until": TODAY}, 200),
        ({"until": NEXT_YEAR}, 200),
        ({"until": "2027-11-22"}, 400),
        ({"until": "tomorrow"}, 400),
        ({"reason": " "}, 400),
        ({"rule": "one-zone"}, 404),
        ({"subject": "wbe"}, 404),
    ],
)
def test_an_exemption_needs_a_risk_a_reason_and_a_near_end(
    web: Account, exemption: dict[str, str], status: int
) -> None:
    assert exempt(**exemption)[0] == status


def test_changes_of_policies_do_not_list_exemptions(web: Account) -> None:
    exempt()
    assert get("/changes")["changes"] == []
    items = web.dynamodb.scan(TableName="Changes")["Items"]
    assert [item["caller"]["S"] for item in items] == [ANNA]


def test_a_damaged_risk_hides_no_other(web: Account) -> None:
    web.change("Decisions", {"unit": "\trisks", "tick": "no-alarm/web"}, first_seen="yesterday")
    answer = get("/risks")
    assert [one["item"] for one in answer["malformed"]] == ["Decisions: no-alarm/web"]
    assert "one-instance" in [risk["rule"] for risk in answer["risks"]]
