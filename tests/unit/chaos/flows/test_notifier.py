"""From what is written into the tables to the bus and the topic, by the streams' own records."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import jsonschema_rs
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

from handlers import notify, risks
from tests.unit.account.account import CONTEXT, OVERDUE, WEB, Account, before, calls, changing
from tests.unit.account.asking import ANNA, patch
from tests.unit.chaos.build import (
    EARLIER_ITEM,
    NOT_OVER,
    at,
    event,
    injected,
    injection,
    judged,
    replaced,
    running,
)
from tests.unit.chaos.flows.test_recovery_check import never_whole
from tests.unit.shared.aws.test_metrics import written
from troop.bench.records.line import Line
from troop.chaos.aws.change_table import ChangeTable
from troop.chaos.aws.change_writer import ChangeWriter
from troop.chaos.aws.event_items import to_item
from troop.chaos.changes import Author
from troop.chaos.events import Event, Status
from troop.chaos.flows import weekly_letter
from troop.chaos.injection import EndRequest
from troop.chaos.verdict import Verdict, VerdictValue
from troop.chaos.wiring import notifications as wired
from troop.report.aws.announcements import Announced, Announcements
from troop.report.change_news import Announcement, News
from troop.shared import moments
from troop.shared.aws.clients import client
from troop.shared.aws.dynamo import plain, typed
from troop.shared.benchmark_change import BenchmarkChange, ChangedFigure
from troop.shared.state_keys import CHANGE_POINT
from troop.shared.wiring import environment

ANN = Author("arn:aws:iam::123456789012:user/ann", "request-1")
SCHEMA = jsonschema_rs.validator_for(
    json.loads((Path(__file__).parents[4] / "docs/reference/notifications.schema.json").read_text(encoding="utf-8"))
)


class Listeners:
    """What the bus and the topic have taken, and the streams' records that were not handed on yet."""

    def __init__(self, account: Account, topic: str) -> None:
        self.account, self.topic = account, topic
        self.bus: list[dict[str, Any]] = []
        self.published: list[dict[str, Any]] = []
        self.fail: Callable[[str], None] = lambda operation: None
        self._streams = boto3.client("dynamodbstreams")
        self._seen: dict[str, int] = {}
        for table in ("Events", "Changes", "GroupTags", "State"):
            view = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
            account.dynamodb.update_table(TableName=table, StreamSpecification=view)

    def records(self) -> list[dict[str, Any]]:
        """What was written since this was last asked, as Lambda hands it to a function."""
        pairs = []
        for table in ("Events", "Changes", "GroupTags", "State"):
            arn = self.account.dynamodb.describe_table(TableName=table)["Table"]["LatestStreamArn"]
            (shard,) = self._streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
            iterator = self._streams.get_shard_iterator(
                StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
            )["ShardIterator"]
            records = self._streams.get_records(ShardIterator=iterator)["Records"]
            pairs += [(arn, record) for record in records[self._seen.get(table, 0) :]]
            self._seen[table] = len(records)
        return [self._as_lambda(arn, record) for arn, record in pairs]

    def _as_lambda(self, arn: str, record: dict[str, Any]) -> dict[str, Any]:
        change = dict(record["dynamodb"])
        change["ApproximateCreationDateTime"] = self.account.clock().timestamp()
        raw = {**record, "eventSourceARN": arn, "dynamodb": change}
        assert json.loads(json.dumps(raw)) == raw
        return raw

    def tell(self, records: list[dict[str, Any]] | None = None) -> list[str]:
        """Hands records on; the numbers of those that are to be tried again."""
        event = {"Records": self.records() if records is None else records}
        answer = notify.handler(event, CONTEXT)
        return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]

    def news(self) -> list[dict[str, Any]]:
        """Hands on what was written; the documents since this was last asked."""
        self.tell()
        return self.heard()

    def heard(self) -> list[dict[str, Any]]:
        """Documents since this was last asked; both channels must have had the same."""
        details = [json.loads(entry["Detail"]) for entry in self.bus]
        assert [json.loads(message["Message"]) for message in self.published] == details
        for entry, message, detail in zip(self.bus, self.published, details, strict=True):
            SCHEMA.validate(detail)
            assert (entry["Source"], entry["EventBusName"]) == ("troop", "chaos")
            assert message["TopicArn"] == self.topic
            assert message["MessageAttributes"]["kind"] == {"DataType": "String", "StringValue": detail["kind"]}
            assert message["Subject"].startswith(f"Troop: {entry['DetailType']}")
        self.bus.clear()
        self.published.clear()
        return details

    def kinds(self) -> list[str]:
        return [detail["kind"] for detail in self.news()]


@pytest.fixture
def listeners(account: Account, monkeypatch: pytest.MonkeyPatch) -> Listeners:
    topic = client("sns").create_topic(Name="news")["TopicArn"]
    monkeypatch.setenv("TROOP_NEWS_TOPIC", topic)
    listeners = Listeners(account, topic)
    real = BaseClient._make_api_call  # type: ignore[attr-defined]

    def call(self: Any, operation: str, parameters: dict[str, Any]) -> Any:
        listeners.fail(operation)
        answer = real(self, operation, parameters)
        if operation == "PutEvents":
            listeners.bus += parameters["Entries"]
        if operation == "Publish":
            listeners.published.append(parameters)
        return answer

    monkeypatch.setattr(BaseClient, "_make_api_call", call)
    return listeners


def test_a_verdict_after_the_recovery_has_one_notification(account: Account, listeners: Listeners) -> None:
    recovered = judged(verdict=None)
    for written_event in (
        event(),
        recovered,
        replace(recovered, token="t"),
        judged(),
        judged(token="t"),  # its workflow was answered
    ):
        account.put("Events", to_item(written_event))
    assert listeners.kinds() == ["recovered", "broken"]


def test_each_change_of_a_scheduled_benchmark_is_news_once(account: Account, listeners: Listeners) -> None:
    figures = (ChangedFigure("measure/drivers/read", "p99", 2.0, 2.5),)
    change = BenchmarkChange("reads", None, "nightly", "r7", "r6", "r9", False, figures, 2, {"kernel": ("6.1", "6.2")})
    line = Line("r9", "reads", at("12:00"), None, "SUCCEEDED", "1.2", schedule="nightly")
    announcements, known = Announcements(account.dynamodb, "State"), Announced()
    assert announcements.announce(line, News(change, (Announcement("r7", True),)), known, account.clock())
    (news,) = listeners.news()
    assert news["summary"] == (
        "reads: from the run r7 on, p99 of measure/drivers/read +25.0 %, and 2 more; what else changed: kernel"
    )
    assert (news["id"], news["at"]) == ("change-point#reads##nightly#r7#r9", moments.iso(account.clock()))
    assert (news["differences"], news["command"]) == (
        {"kernel": {"old": "6.1", "new": "6.2"}},
        "troop bench history reads --figure p99",
    )
    assert not announcements.announce(line, News(change, ()), known, account.clock()), "another run was faster"
    assert listeners.kinds() == []
    others = [replace(line, name="writes"), replace(line, size="small"), replace(line, schedule="weekly")]
    assert [announcements.read(one) for one in others] == [Announced()] * 3
    back = replace(change, run="r20", reporting_run="r25", size="small", has_baseline=True)
    assert announcements.announce(line, News(back, ()), announcements.read(line), account.clock())
    (news,) = listeners.news()
    assert news["id"] == "change-point#reads#small#nightly#r20#r25"
    account.change("State", {"key": account_key(account)}, version=9, change="damaged")
    assert listeners.kinds() == [], "it is logged and passed over"


def account_key(account: Account) -> str:
    items = account.dynamodb.scan(TableName="State")["Items"]
    return str(next(item["key"]["S"] for item in items if item["key"]["S"].startswith(CHANGE_POINT)))


def test_steps_of_a_lasting_fault_are_news_once(account: Account, listeners: Listeners) -> None:
    request = EndRequest(at("12:00:40"), "alarm web-errors went off")
    ended, over = NOT_OVER | {"end_request": request}, {"status": "Cancelled", "over_at": at("12:00:43")}
    for injected_event in (
        running(status=Status.CLAIMED, attempted_at=None, injection=injection(**NOT_OVER | {"before": None})),
        running(status=Status.CLAIMED, attempted_at=None),  # its probe
        running(),
        running(injection=injection(**NOT_OVER | {"command_id": "c-9"})),
        running(injection=injection(**ended)),
        running(injection=injection(**ended | over)),
        running(injection=injection(**ended | over | {"unproven": "the instance is protected"})),
        running(injection=injection(end_request=request, unproven="the instance is protected")),
        injected(injection=injection(end_request=request)),
    ):
        account.put("Events", to_item(injected_event))
    assert listeners.kinds() == ["injected", "end-requested", "unproven", "proven", "recovered"]


def test_recovery_with_the_instance_is_not_compared_with_one_that_replaced_it(
    account: Account, listeners: Listeners
) -> None:
    for number in range(5):
        past = injected(event_id=f"2026-11-{number + 1:02}#web", at=at("12:00") - timedelta(days=19 - number))
        account.put("Events", to_item(past))
    listeners.records()
    lost = replace(replaced(), status=Status.TERMINATED, recovered_at=None, verdict=None)
    account.put("Events", to_item(lost))
    account.put("Events", to_item(replaced()))
    assert listeners.kinds() == ["recovered"], "140 s are slow beside the 3 s of instances that stayed"
    account.put("Events", to_item(running(event_id="2026-11-20#web2", injection=injection())))
    account.put("Events", to_item(injected(event_id="2026-11-20#web2", recovered_at=at("12:03:00"))))
    assert listeners.kinds() == ["recovered", "slow-recovery"]


def test_an_event_of_an_earlier_version_has_its_news_without_stages(account: Account, listeners: Listeners) -> None:
    in_flight = {**EARLIER_ITEM, "status": {"S": "TERMINATED"}, "open": {"S": "open"}}
    account.put("Events", {key: one for key, one in in_flight.items() if not key.startswith("recover")})
    account.put("Events", dict(EARLIER_ITEM))
    (news,) = listeners.news()
    assert (news["kind"], news["summary"]) == ("recovered", "old has recovered in 72 s")
    assert (news["stages"], news["verdict"], news["settles_at"]) == (None, None, None)


def test_the_deployment_that_halts_itself_says_so_once(account: Account, listeners: Listeners) -> None:
    halt = {"key": "self-halt", "at": "2026-11-20T22:46:00.000Z", "why": "3 causes", "events": ["2026-11-20#web"]}
    account.put("State", typed({**halt, "schema": 1}))
    account.put("State", typed({**halt, "schema": 2}))
    (news,) = listeners.news()
    assert (news["kind"], news["why"], news["events"]) == ("halted-itself", "3 causes", ["2026-11-20#web"])


def test_a_damaged_halt_has_its_notification_too(account: Account, listeners: Listeners) -> None:
    account.put("State", {"key": {"S": "self-halt"}, "why": {"N": "1"}})
    (news,) = listeners.news()
    assert (news["kind"], "damaged" in news["why"]) == ("halted-itself", True)


def test_removal_of_its_halt_is_a_resumption_by_hand_or_by_the_api(account: Account, listeners: Listeners) -> None:
    item, key = typed({"key": "self-halt", "at": "2026-11-20T22:46:00.000Z", "why": "x"}), {"key": {"S": "self-halt"}}
    account.put("State", item)
    assert listeners.kinds() == ["halted-itself"]
    account.dynamodb.delete_item(TableName="State", Key=key)
    (news,) = listeners.news()
    assert (news["kind"], news["by_hand"], news["caller"]) == ("resumed", True, None)

    account.put("State", item)
    assert listeners.kinds() == ["halted-itself"]
    patch("/switch", {"halted": False})
    (news,) = listeners.news()
    assert (news["kind"], news["by_hand"], news["caller"]) == ("resumed", False, ANNA)

    account.put("State", item)
    patch("/switch", {"halted": True})
    listeners.news()
    patch("/switch", {"halted": False})
    (news,) = listeners.news()
    assert (news["kind"], news["by_hand"], news["caller"]) == ("resumed", False, ANNA)


def test_the_owner_of_an_item_without_a_unit_hears_after_a_day_once(account: Account, listeners: Listeners) -> None:
    account.group("web")
    account.policy("Web", opt_out=True, owner="team")
    listeners.news()  # of the edit
    account.decide()
    assert listeners.kinds() == []
    account.clock.forward(days=1)
    account.decide()
    (stray,) = listeners.news()
    assert stray.pop("summary") == (
        "The policy of 'Web' (nearest unit: 'web') has had no effect since 2026-11-20T22:46:00.000Z: "
        "no Auto Scaling group has this unit"
    )
    assert stray == {
        "schema": 1,
        "id": "stray-item#Web#2026-11-20T22:46:00.000Z",
        "kind": "stray-item",
        "deployment": "Troop",
        "at": "2026-11-21T22:46:00.000Z",
        "unit": "Web",
        "owner": "team",
        "since": "2026-11-20T22:46:00.000Z",
        "nearest": "web",
    }
    account.clock.forward(days=1)
    account.decide()
    assert listeners.kinds() == []
    account.dynamodb.delete_item(TableName="GroupTags", Key={"unit": {"S": "Web"}})
    account.decide()
    assert listeners.kinds() == ["policy-changed"]


def owners(listeners: Listeners) -> list[tuple[str, str | None, str | None]]:
    """The kind, the owner in the document, and the attribute that filters see, of what was sent since."""
    listeners.tell()
    attributes = [message["MessageAttributes"].get("owner", {}).get("StringValue") for message in listeners.published]
    return [(one["kind"], one["owner"], value) for one, value in zip(listeners.heard(), attributes, strict=True)]


@pytest.mark.parametrize("by_tag", [True, False])
def test_owner_of_a_unit_is_an_attribute_of_all_its_messages(
    account: Account, listeners: Listeners, by_tag: bool
) -> None:
    account.group("web", tags={"troop:owner": "team-web"} if by_tag else {})
    if not by_tag:
        account.policy("web", owner="team-web")
        assert owners(listeners) == [("policy-changed", "team-web", "team-web")]
    account.terminate(account.item("web"))
    account.clock.forward(seconds=7)
    account.check_recovery(WEB)
    account.check_recovery(WEB)
    patch("/groups/web", {"probability": 0.4})
    assert owners(listeners) == [
        (kind, "team-web", "team-web") for kind in ("terminated", "recovered", "policy-changed")
    ]


def test_former_owner_hears_of_a_handover_and_the_new_one_from_then_on(account: Account, listeners: Listeners) -> None:
    account.group("web")
    patch("/groups/web", {"probability": 0.4})
    assert owners(listeners) == [("policy-changed", None, None)]
    for owner, heard in (("red", "red"), ("blue", "red"), (None, "blue")):
        patch("/groups/web", {"owner": owner})
        assert owners(listeners) == [("policy-changed", heard, heard)]


def test_owner_with_characters_that_no_filter_can_have_is_sent_without_them(
    account: Account, listeners: Listeners
) -> None:
    account.policy("web", owner="team\nweb\x00")
    assert owners(listeners) == [("policy-changed", "team\nweb\x00", "team web ")]


def writer() -> ChangeWriter:
    return ChangeWriter(client("dynamodb"), "GroupTags", "State", ChangeTable(client("dynamodb"), "Changes"))


def test_a_termination_and_its_recovery(
    account: Account, listeners: Listeners, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.group("web")
    account.terminate(account.item("web"))
    (terminated,) = listeners.news()
    victim = account.event(WEB).instance_id
    assert (terminated["kind"], terminated["event_id"], terminated["instance_id"]) == ("terminated", WEB, victim)
    account.clock.forward(seconds=7)
    with calls(monkeypatch, never_whole):
        account.check_recovery(WEB)
    assert listeners.kinds() == []
    account.check_recovery(WEB)
    (recovered,) = listeners.news()
    assert (recovered["kind"], recovered["recovery_seconds"]) == ("recovered", 7.0)


def test_a_unit_that_does_not_recover(account: Account, listeners: Listeners, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")
    account.terminate(account.item("web"))
    account.clock.forward(minutes=31)
    with calls(monkeypatch, never_whole):
        account.check_recovery(WEB)
    _, detail = listeners.news()
    assert (detail["kind"], detail["unit"], detail["status"]) == ("unrecovered", "web", "UNRECOVERED")
    assert detail["terminated_at"] == "2026-11-20T22:46:00.000Z"


def test_claim_without_a_termination_is_notified_as_failed(account: Account, listeners: Listeners) -> None:
    account.dynamodb.put_item(TableName="Events", Item=to_item(_claimed()))
    account.clock.forward(minutes=1)
    account.sweep()
    (detail,) = listeners.news()
    assert (detail["kind"], detail["status"], detail["terminated_at"]) == ("failed", "GONE_ELSEWHERE", None)


def _claimed() -> Event:
    long_ago = OVERDUE - timedelta(hours=1)
    return event(
        status=Status.CLAIMED,
        at=long_ago,
        deadline=long_ago + timedelta(minutes=10),
        attempted_at=None,
        terminated_at=None,
    )


@pytest.mark.parametrize(
    ("earlier", "method", "days", "kinds"),
    [
        (5, "crash", 30, ["recovered", "slow-recovery"]),
        (4, "crash", 30, ["recovered"]),
        (5, "crash", 366, ["recovered"]),  # the first of them is too long ago
        (5, "drain", 30, ["recovered"]),  # another method takes its own time
    ],
)
def test_slow_by_the_units_own_history(
    account: Account,
    listeners: Listeners,
    capsys: pytest.CaptureFixture[str],
    earlier: int,
    method: str,
    days: int,
    kinds: list[str],
) -> None:
    for number in range(earlier):
        _recovered(account, f"2026-10-{number + 1:02}#web", OVERDUE - timedelta(days=days - number), 20, method)
        _recovered(account, f"2026-10-{number + 1:02}#db", OVERDUE - timedelta(days=days - number), 9000, method)
    listeners.records()  # which tells of nothing: they were not seen on their way
    now = _claimed_and_terminated(account)
    _close(account, now, 100)
    heard = listeners.news()
    assert [detail["kind"] for detail in heard] == ["terminated", *kinds]
    assert heard[-1].get("usual_seconds") == (20.0 if len(kinds) == 2 else None)
    counted = [values["SlowRecoveries"] for _, values in written(capsys) if "SlowRecoveries" in values]
    assert counted == ([[1]] if len(kinds) == 2 else [])


def test_many_recoveries_by_another_method_hide_none_of_its_own(account: Account, listeners: Listeners) -> None:
    for number in range(25):
        by, day = ("crash", 30) if number < 5 else ("drain", 20)
        at = OVERDUE - timedelta(days=day, minutes=number)
        _recovered(account, f"2026-10-{number + 1:02}#web", at, 20, by)
    listeners.records()
    now = _claimed_and_terminated(account)
    _close(account, now, 100)
    assert [detail["kind"] for detail in listeners.news()] == ["terminated", "recovered", "slow-recovery"]


def _recovered(account: Account, event_id: str, at: Any, seconds: float, method: str) -> None:
    past = event(
        event_id=event_id,
        unit=event_id.partition("#")[2],
        status=Status.RECOVERED,
        at=at,
        method=method,
        terminated_at=at,
        recovered_at=at + timedelta(seconds=seconds),
    )
    account.dynamodb.put_item(TableName="Events", Item=to_item(past))


def _claimed_and_terminated(account: Account) -> Event:
    claimed = _claimed()
    account.dynamodb.put_item(TableName="Events", Item=to_item(claimed))
    return account.events.record_termination(claimed, claimed.at)


def _close(account: Account, closed: Event, seconds: float) -> None:
    account.events.close(closed, Status.RECOVERED, "", (closed.terminated_at or closed.at) + timedelta(seconds=seconds))


def test_changes_by_the_api_are_notified_once_with_their_caller(account: Account, listeners: Listeners) -> None:
    writer().write_policy("web", {}, {"opt_out": True, "reason": "Grüße"}, None, ANN, account.clock())
    writer().write_switch({}, {"halted": True, "leashed": False, "reason": "incident"}, {}, ANN, account.clock())
    changed, halted = sorted(listeners.news(), key=lambda detail: str(detail["kind"]), reverse=True)
    assert (changed["kind"], changed["unit"], changed["caller"]) == ("policy-changed", "web", ANN.caller)
    assert changed["changes"]["reason"] == {"old": None, "new": "Grüße"}
    assert (halted["kind"], halted["caller"], halted["reason"]) == ("halted", ANN.caller, "incident")


def test_edits_by_hand_are_notified(account: Account, listeners: Listeners) -> None:
    account.policy("web", opt_out=True, stop_alarms={"a", "b"})
    account.switch(halted=True)
    changed, halted = listeners.news()
    assert (changed["kind"], changed["by_hand"], changed["caller"]) == ("policy-changed", True, None)
    assert changed["changes"] == {
        "opt_out": {"old": None, "new": True},
        "stop_alarms": {"old": None, "new": ["a", "b"]},
    }
    assert (halted["kind"], halted["by_hand"]) == ("halted", True)
    account.dynamodb.delete_item(TableName="State", Key={"key": {"S": "switch"}})
    account.dynamodb.delete_item(TableName="GroupTags", Key={"unit": {"S": "web"}})
    assert sorted(listeners.kinds()) == ["policy-changed", "resumed"]


def _stored(account: Account, table: str, key: dict[str, str]) -> dict[str, Any]:
    item: dict[str, Any] = account.dynamodb.get_item(TableName=table, Key=typed(key)).get("Item", {})
    return item


UNLEASHED, LEASHED = {"leashed": False}, {"leashed": True}


@pytest.mark.parametrize("settings", [{"leashed": True}], indirect=True)
@pytest.mark.parametrize(
    "forged",
    [
        {"changed_at": "2026-11-20T22:46:00.000Z", "changed_by": "arn:aws:iam::123456789012:user/bob"},
        {"changed_at": "2026-11-20T22:46:00.000Z", "changed_by": ANN.caller, "changed_request": "request-9"},
        {"changed_at": "2026-11-20T22:46:00.000Z#request-1", "changed_request": "x" * 5000},
        {"changed_at": "#", "changed_request": "request-1"},
        {"changed_at": 5, "changed_request": True},
    ],
)
def test_unleashing_by_hand_with_a_forged_signature_is_notified(
    account: Account, listeners: Listeners, forged: dict[str, Any]
) -> None:
    writer().write_switch({}, {"halted": True}, {}, ANN, account.clock())
    assert listeners.kinds() == ["halted"]
    item = plain(_stored(account, "State", {"key": "switch"}))
    account.put("State", typed(item | UNLEASHED | forged))
    (detail,) = listeners.news()
    assert (detail["kind"], detail["by_hand"], detail["caller"]) == ("unleashed", True, None)


@pytest.mark.parametrize("settings", [{"leashed": True}], indirect=True)
@pytest.mark.parametrize("later", [timedelta(seconds=20), timedelta(hours=3)])
def test_a_genuine_unleash_cannot_be_replayed(account: Account, listeners: Listeners, later: timedelta) -> None:
    """The same edit, with the record that the API has made of it the first time."""
    writer().write_switch({}, UNLEASHED, {}, ANN, account.clock())
    unleashed = _stored(account, "State", {"key": "switch"})
    writer().write_switch(unleashed, LEASHED, {}, Author(ANN.caller, "request-2"), account.clock())
    assert listeners.kinds() == ["unleashed", "leashed"]
    account.clock.forward(seconds=later.total_seconds())
    account.put("State", unleashed)
    (detail,) = listeners.news()
    assert (detail["kind"], detail["by_hand"]) == ("unleashed", True)


def test_forged_policy_is_notified_with_the_forged_values(account: Account, listeners: Listeners) -> None:
    writer().write_policy("web", {}, {"opt_out": True}, None, ANN, account.clock())
    listeners.kinds()
    item = plain(_stored(account, "GroupTags", {"unit": "web"}))
    account.clock.forward(minutes=1)
    account.put("GroupTags", typed(item | {"opt_out": False, "changed_request": "request-2", "version": 2}))
    (detail,) = listeners.news()
    assert (detail["kind"], detail["by_hand"], detail["caller"]) == ("policy-changed", True, None)
    assert set(detail["changes"]) == {"opt_out", "changed_request"}


def test_a_record_that_is_malformed_vouches_for_nothing(account: Account, listeners: Listeners) -> None:
    at = "2026-11-20T22:46:00.000Z"
    account.put("Changes", typed({"subject": "unit#web", "at": f"{at}#request-9", "caller": "x", "changes": "none"}))
    account.policy("web", opt_out=True, changed_at=at, changed_request="request-9")
    assert [detail["by_hand"] for detail in listeners.news()] == [True]


@pytest.mark.parametrize(
    "changes",
    [
        {"probability": 0.2, "min_healthy": 3, "stop_alarms": ["b", "a"], "until": "2026-12-04"},
        {"opt_out": True, "reason": "Grüße", "owner": None},
        {"probability": None, "stop_alarms": None},
    ],
)
def test_whatever_the_api_writes_is_its_own(account: Account, listeners: Listeners, changes: dict[str, Any]) -> None:
    """Also over an item that was written by hand, in types of its own."""
    account.policy("web", opt_out="yes", probability="0.2", stop_alarms={"a", "b"}, owner="ann")
    listeners.kinds()
    for number in range(2):
        read = _stored(account, "GroupTags", {"unit": "web"})
        author = Author(ANN.caller, f"request-{number}")
        writer().write_policy("web", read, changes | {"min_days_between": number}, None, author, account.clock())
        account.clock.forward(seconds=5)
        assert [(detail["kind"], detail["by_hand"]) for detail in listeners.news()] == [("policy-changed", False)]


def test_changes_of_the_switch_at_once_are_both_the_apis(
    account: Account, listeners: Listeners, monkeypatch: pytest.MonkeyPatch
) -> None:
    between = before("TransactWriteItems", lambda: patch("/switch", {"halted": True}) and None)
    with calls(monkeypatch, between):
        patch("/switch", {"leashed": True})
    assert {(detail["kind"], detail["by_hand"]) for detail in listeners.news()} == {
        ("halted", False),
        ("leashed", False),
    }


@pytest.mark.parametrize("operation", ["PutEvents", "Publish", "Query"])
def test_failed_notification_is_repeated_and_harms_nothing(
    account: Account, listeners: Listeners, operation: str, capsys: pytest.CaptureFixture[str]
) -> None:
    account.policy("web", reason="x")
    _close(account, _claimed_and_terminated(account), 100)
    records = sorted(listeners.records(), key=lambda record: "table/Events" in record["eventSourceARN"])
    before = account.event(WEB)

    def fail(called: str) -> None:
        if called == operation:
            raise ClientError({"Error": {"Code": "InternalError", "Message": ""}}, operation)

    listeners.fail = fail
    capsys.readouterr()
    failed = listeners.tell(records)
    expected = records[-1] if operation == "Query" else records[0]
    assert failed == [expected["dynamodb"]["SequenceNumber"]]
    assert any(values.get("NotificationsFailed") == [1] for _, values in written(capsys))
    assert account.event(WEB) == before
    listeners.fail = lambda called: None
    listeners.bus.clear()
    listeners.published.clear()
    again = records[records.index(expected) :]
    assert listeners.tell(again) == []
    assert listeners.heard()[-1]["kind"] == "recovered"


def test_an_entry_that_the_bus_refuses_is_sent_again(
    account: Account, listeners: Listeners, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.policy("web", reason="x")
    (record,) = listeners.records()
    refused = {"FailedEntryCount": 1, "Entries": [{"ErrorCode": "ThrottlingException", "ErrorMessage": "slow"}]}
    with calls(monkeypatch, changing("PutEvents", lambda answer: answer.update(refused))) as operations:
        assert listeners.tell([record]) == [record["dynamodb"]["SequenceNumber"]]
    assert operations.count("Publish") == 1, "the topic hears of it all the same"


def test_a_record_that_nobody_can_read_holds_up_no_other(
    account: Account, listeners: Listeners, capsys: pytest.CaptureFixture[str]
) -> None:
    account.dynamodb.put_item(TableName="Changes", Item={"subject": {"S": "unit#web"}, "at": {"S": "some day"}})
    account.policy("db", opt_out=True)
    capsys.readouterr()
    assert listeners.tell() == []
    assert [detail["unit"] for detail in listeners.heard()] == ["db"]
    values = [values for _, values in written(capsys)]
    assert values == [{"Notifications": [1], "NotificationsFailed": [1]}]


def test_other_tables_and_other_items_are_no_news(account: Account, listeners: Listeners) -> None:
    account.policy("web", opt_out=True)
    (record,) = listeners.records()
    elsewhere = record | {"eventSourceARN": record["eventSourceARN"].replace("GroupTags", "Other")}
    assert listeners.tell([elsewhere]) == []
    account.dynamodb.put_item(TableName="State", Item={"key": {"S": "in-flight"}, "halted": {"BOOL": True}})
    assert listeners.kinds() == []


@pytest.mark.parametrize("unit", ["w" * 255, "Grüße\nan alle", "x"])
def test_a_subject_is_as_sns_takes_it(account: Account, listeners: Listeners, unit: str) -> None:
    account.policy(unit, opt_out=True)
    listeners.tell()
    subject = listeners.published[0]["Subject"]
    assert subject.isascii()
    assert subject.isprintable()
    assert len(subject) < 100
    listeners.heard()


def test_the_settings_say_what_leashed_was(account: Account, listeners: Listeners) -> None:
    assert environment.settings().leashed is False
    writer().write_switch({}, {"leashed": False}, {}, ANN, account.clock())
    assert listeners.kinds() == []


def _put_last_week(account: Account, unit: str, day: int, **more: Any) -> None:
    """Puts a termination of the week from Monday the 9th to Sunday the 15th, by the clock of Los Angeles."""
    at = datetime(2026, 11, day, 20, tzinfo=UTC)
    recovered = {"terminated_at": at, "recovered_at": at + timedelta(seconds=60), "status": Status.RECOVERED}
    values = {"event_id": f"2026-11-{day}#{unit}", "unit": unit, "day": at.date(), "at": at, "owner": f"team-{unit}"}
    account.put("Events", to_item(event(**values | recovered | more)))


def _verdict(value: VerdictValue) -> Verdict:
    return Verdict(value, "web-errors went off", OVERDUE, OVERDUE, OVERDUE)


MONDAY = "2026-11-16T17:00:00Z"
"""Nine in the morning in Los Angeles."""


def test_weekly_letter_is_about_the_last_week_by_owner(account: Account, listeners: Listeners) -> None:
    for day, unit, value in (
        (9, "web", VerdictValue.BROKEN),
        (13, "web", VerdictValue.HELD),
        (10, "db", VerdictValue.HELD),
    ):
        _put_last_week(account, unit, day, verdict=_verdict(value))
    _put_last_week(account, "late", 16)  # of this week
    _put_last_week(account, "early", 8)
    assert notify.handler({"letter": MONDAY}, CONTEXT) == {"lines": 3}
    (news,) = listeners.heard()
    assert news == {
        "schema": 1,
        "id": "weekly-letter#2026-11-09",
        "kind": "weekly-letter",
        "deployment": "Troop",
        "summary": "2026-11-09 to 2026-11-15: 3 terminations of 2 units, 2 HELD, 1 BROKEN.",
        "at": "2026-11-16T17:00:00.000Z",
        "first": "2026-11-09",
        "last": "2026-11-15",
        "terminations": 3,
        "injections": 0,
        "held": 2,
        "broken": 1,
        "unknown": 0,
        "unrecovered": 0,
        "slower": 0,
        "letter": [
            "2026-11-09 to 2026-11-15: 3 terminations of 2 units, 2 HELD, 1 BROKEN.",
            "team-web: 2 terminations, 1 HELD, 1 BROKEN; recovered in 60 s (median); broken or not recovered: web; "
            "held again: web.",
            "team-db: 1 termination, 1 HELD; recovered in 60 s (median).",
        ],
    }


@pytest.mark.parametrize(
    ("at", "is_inside"),
    [
        ("2026-11-09T07:59:59+00:00", False),
        ("2026-11-09T08:00:00+00:00", True),  # midnight in Los Angeles
        ("2026-11-16T07:59:59+00:00", True),
        ("2026-11-16T08:00:00+00:00", False),
    ],
)
def test_week_of_the_letter_begins_on_the_clock_of_the_calendar(
    account: Account, listeners: Listeners, at: str, is_inside: bool
) -> None:
    _put_last_week(account, "web", 9, at=datetime.fromisoformat(at))
    notify.handler({"letter": MONDAY}, CONTEXT)
    (news,) = listeners.heard()
    assert news["terminations"] == is_inside


def test_letter_compares_recoveries_with_those_of_months(account: Account, listeners: Listeners) -> None:
    for number in range(5):
        _recovered(account, f"2026-07-{number + 1:02}#web", datetime(2026, 7, number + 1, 20, tzinfo=UTC), 20, "crash")
    at = datetime(2026, 11, 13, 20, tzinfo=UTC)
    _put_last_week(account, "web", 13, recovered_at=at + timedelta(seconds=200))
    notify.handler({"letter": MONDAY}, CONTEXT)
    (news,) = listeners.heard()
    assert news["slower"] == 1
    assert news["letter"][1].endswith("; slower than before: web (3 min 20 s, usually 20 s).")


def test_letter_of_a_week_without_terminations_has_one_line(account: Account, listeners: Listeners) -> None:
    assert notify.handler({"letter": MONDAY}, CONTEXT) == {"lines": 1}
    (news,) = listeners.heard()
    assert news["letter"] == [news["summary"]] == ["2026-11-09 to 2026-11-15: no hits."]


def test_letter_ends_with_what_changed_of_the_risks(account: Account, listeners: Listeners) -> None:
    account.clock.moment = moments.parse("2026-11-12T12:00:00Z")
    account.group("web", 1, tags={"troop:owner": "team-web"})
    risks.handler({}, CONTEXT)
    notify.handler({"letter": MONDAY}, CONTEXT)
    (news,) = listeners.heard()
    assert news["letter"][1:] == [
        "Risks: 1 high, 2 medium; 3 appeared, 0 gone.",
        "Risks of team-web; appeared: missing-image of web, no-alarm of web, one-instance of web.",
    ]


def test_letter_says_that_the_account_was_read_long_ago(account: Account, listeners: Listeners) -> None:
    account.clock.moment = moments.parse("2026-11-12T12:00:00Z")
    account.group("web", 1)
    risks.handler({}, CONTEXT)
    account.clock.forward(hours=27)
    notify.handler({"letter": MONDAY}, CONTEXT)
    (news,) = listeners.heard()
    assert news["letter"][2].startswith("The account was last read at 2026-11-12T12:00:00Z")


def test_letter_without_readable_risks_says_so(
    account: Account, listeners: Listeners, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TROOP_DECISIONS_TABLE")
    notify.handler({"letter": MONDAY}, CONTEXT)
    (news,) = listeners.heard()
    assert news["letter"][1:] == ["Risks could not be read."]


@pytest.mark.parametrize(
    ("pages", "terminations", "says"),
    [
        (2, 2, "Events before 2026-11-14T20:00:00Z could not be read in time, and are missing."),
        (6, 4, "Events before 2026-11-07T20:00:00Z could not be read in time, and are not compared with."),
    ],
)
def test_letter_stops_reading_in_time_and_says_so(
    account: Account,
    listeners: Listeners,
    monkeypatch: pytest.MonkeyPatch,
    pages: int,
    terminations: int,
    says: str,
) -> None:
    monkeypatch.setattr(weekly_letter, "_PAGE", 1)
    for day in (15, 14, 13, 12, 8, 7, 6):
        _put_last_week(account, "web", day)
    clock = iter([*[0.0] * pages, 1000.0])
    writer = replace(wired.weekly_letter(), clock=lambda: next(clock))
    writer.send(moments.parse(MONDAY), lambda *_: ())
    (news,) = listeners.heard()
    assert (news["terminations"], news["letter"][-1]) == (terminations, says)


def test_letter_that_the_bus_refuses_reaches_the_topic_and_is_repeated(account: Account, listeners: Listeners) -> None:
    def fail(operation: str) -> None:
        if operation == "PutEvents":
            raise ClientError({"Error": {"Code": "InternalException"}}, operation)

    listeners.fail = fail
    with pytest.raises(ClientError):
        notify.handler({"letter": MONDAY}, CONTEXT)
    listeners.fail = lambda _: None
    first = json.loads(listeners.published.pop()["Message"])
    notify.handler({"letter": MONDAY}, CONTEXT)
    assert listeners.heard() == [first]
