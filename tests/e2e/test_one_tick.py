"""One tick over many kinds of groups, and what IAM had to say about it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from local.demo.groups import SERVER
from local.launcher import LocalAccount
from tests.e2e.conftest import BUSY, Deployment, eventually
from tests.e2e.hearing import Heard, listen_to_the_bus, listen_to_the_topic
from tests.e2e.roles import UNOBSERVED, allowed, as_role, role_name, role_of
from troop.chaos.events import Status
from troop.chaos.hypothesis import Hypothesis
from troop.shared import moments
from troop.shared.tags import DATA_TAG, DEPLOYMENT_TAG

SCHEMA = jsonschema_rs.validator_for(
    json.loads((Path(__file__).parents[2] / "docs/reference/notifications.schema.json").read_text(encoding="utf-8"))
)

ALARMED, CALM = "tick-alarmed", "tick-calm"
DRAINED, LOST, SMALL, PROTECTED = "tick-drained", "tick-lost", "tick-small", "tick-protected"
BROKEN = "tick-broken"
NAMES = (ALARMED, BROKEN, CALM, DRAINED, LOST, SMALL, PROTECTED)
GO = "go"


def user_data_that_boots_only(times: int, folder: Path) -> bytes:
    """A server whose first instances boot. Any later one hangs until the folder has a file GO."""
    lines = SERVER.read_text().splitlines()
    hang = (
        f"boots = pathlib.Path({str(folder)!r}); (boots / INSTANCE).touch()\n"
        f"if len(list(boots.iterdir())) > {times}:\n"
        f"    while not (boots / {GO!r}).exists():\n        time.sleep(0.1)\n"
    )
    at = next(number for number, line in enumerate(lines) if line.startswith("time.sleep("))
    return "\n".join([*lines[:at], hang, *lines[at:]]).encode()


@pytest.fixture(scope="module")
def deployment(account: LocalAccount, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    deployment = Deployment(account, "OneTick")
    # The tick can choose the group of an earlier module too, and its deletion takes a while.
    eventually(lambda: deployment.groups.names() == [] or None, BUSY)
    # As a first deployment that failed leaves it: the settings unleash, and the first tick looks whether it has data.
    deployment.dynamodb.create_table(
        TableName="OneTick-DataState-EMPTY",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
        Tags=[{"Key": DEPLOYMENT_TAG, "Value": "OneTick"}, {"Key": DATA_TAG, "Value": "State"}],
    )
    deployment.bus = listen_to_the_bus(deployment)  # type: ignore[attr-defined]
    deployment.news = listen_to_the_topic(deployment)  # type: ignore[attr-defined]
    cloudwatch = account.client("cloudwatch")
    for name, state in (("tick-bad", "ALARM"), ("tick-good", "OK"), ("tick-errors", "OK")):
        cloudwatch.put_metric_alarm(
            AlarmName=name,
            Namespace="Shop",
            MetricName=name,
            Statistic="Sum",
            Period=10,  # the verdict comes that long after the recovery, and a minute
            EvaluationPeriods=1,
            TreatMissingData="notBreaching",
            Threshold=1,
            ComparisonOperator="GreaterThanThreshold",
        )
        cloudwatch.set_alarm_state(AlarmName=name, StateValue=state, StateReason="for the test")
    _policy(deployment, ALARMED, stop_alarms={"S": "tick-good, tick-bad"})
    _policy(deployment, BROKEN, success_alarms={"SS": ["tick-errors"]})
    _policy(deployment, CALM, stop_alarms={"SS": ["tick-good"]}, success_alarms={"SS": ["tick-good"]})
    _policy(deployment, SMALL, min_healthy={"N": "3"})
    deployment.groups.create(ALARMED, 2)
    deployment.groups.create(CALM, 2, TargetGroupARNs=[_target_group(account, "tick-calm")])
    deployment.groups.create(SMALL, 2)
    deployment.groups.create(
        DRAINED,
        2,
        TargetGroupARNs=[_target_group(account, "tick-drained")],
        Tags=[{"Key": "troop:method", "Value": "drain", "PropagateAtLaunch": False}],
    )
    boots = tmp_path_factory.mktemp("broken")
    deployment.groups.create(BROKEN, 2, user_data_that_boots_only(2, boots))
    deployment.groups.create(LOST, 2, user_data_that_boots_only(2, tmp_path_factory.mktemp("boots")))
    deployment.groups.create(PROTECTED, 2, Tags=[{"Key": "troop:protected", "Value": "", "PropagateAtLaunch": True}])
    for name in NAMES:
        deployment.groups.await_in_service(name, 2, BUSY)
    deployment.before = {name: deployment.ids(name) for name in NAMES}  # type: ignore[attr-defined]
    tick = deployment.start_tick()
    _await_termination(deployment, BROKEN)
    cloudwatch.set_alarm_state(AlarmName="tick-errors", StateValue="ALARM", StateReason="for the test")
    (boots / GO).touch()
    _let_time_pass(deployment, LOST)
    assert deployment.ended(tick)["status"] == "SUCCEEDED"
    eventually(lambda: _are_over(deployment, BROKEN, CALM, DRAINED, LOST), BUSY)
    yield deployment
    for name in NAMES:
        deployment.groups.delete(name)


def _let_time_pass(deployment: Deployment, unit: str) -> None:
    """Moves the termination of a unit an hour back, which is longer than a group may take to recover."""
    event = _await_termination(deployment, unit)
    # The first check is so early that it can still find the group complete, with the instance that ends.
    eventually(lambda: event["instance_id"] not in deployment.ids(unit) or None, BUSY)
    deployment.dynamodb.update_item(
        TableName=deployment.outputs["EventsTable"],
        Key={"event_id": {"S": event["event_id"]}},
        UpdateExpression="SET terminated_at = :then",
        ExpressionAttributeValues={":then": {"S": moments.iso(datetime.now(UTC) - timedelta(hours=1))}},
    )


def _await_termination(deployment: Deployment, unit: str) -> dict[str, Any]:
    """The event of a unit of which an instance was terminated, and which has not recovered."""

    def terminated() -> dict[str, Any] | None:
        event = deployment.event(unit)
        return event if event and event["status"] == "TERMINATED" else None

    event: dict[str, Any] = eventually(terminated, BUSY)
    return event


def _are_over(deployment: Deployment, *units: str) -> bool | None:
    """Whether the events of units have ended. On a busy machine a step may fail, and another tick carries on."""
    events = [deployment.event(unit) for unit in units]
    if all(event and event["status"] not in ("CLAIMED", "TERMINATED") for event in events):
        return True
    deployment.tick()
    return None


def _policy(deployment: Deployment, unit: str, **attributes: Any) -> None:
    item = {"unit": {"S": unit}} | attributes
    deployment.dynamodb.put_item(TableName=deployment.outputs["GroupTagsTable"], Item=item)


def _target_group(account: LocalAccount, name: str) -> str:
    vpc = account.client("ec2").describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])["Vpcs"][0]["VpcId"]
    created = account.client("elbv2").create_target_group(Name=name, Protocol="HTTP", Port=8080, VpcId=vpc)
    return str(created["TargetGroups"][0]["TargetGroupArn"])


def _decision(deployment: Deployment, unit: str) -> tuple[str, str]:
    latest = deployment.view.decisions(unit)[0]
    return latest["reason"], latest["detail"]


@pytest.mark.parametrize("unit", [CALM, DRAINED])
def test_due_unit_is_terminated_and_recovers(deployment: Deployment, unit: str) -> None:
    event = deployment.event(unit)
    assert event is not None
    assert (event["status"], event["method"]) == ("RECOVERED", "drain" if unit == DRAINED else "crash")
    now, before = deployment.ids(unit), deployment.before[unit]  # type: ignore[attr-defined]
    assert before - now == {event["instance_id"]}
    assert len(now) == 2
    assert {event["replacement"]["instance_id"]} == now - before
    assert event["replacement"]["differences"] == []


def test_a_quiet_alarm_without_data_proves_nothing(deployment: Deployment) -> None:
    event = eventually(lambda: (deployment.event(CALM) or {}).get("verdict") and deployment.event(CALM), BUSY)
    assert (event["verdict"]["value"], event["verdict"]["alarms"][0]["name"]) == ("UNKNOWN", "tick-good")
    assert event["verdict"]["alarms"][0]["doubt"] == "its metric had no data at all"


@pytest.mark.parametrize("unit", [CALM, DRAINED])
def test_the_stages_of_a_recovery_are_known(deployment: Deployment, unit: str) -> None:
    event = deployment.event(unit)
    assert event is not None
    stages = event["stages"]
    moments = [stages["noticed"], stages["launched"], stages["in_service"]]
    assert all(moments)
    assert moments == sorted(moments)
    assert event["terminated_at"] <= stages["noticed"]
    assert stages["in_service"] <= event["recovered_at"]
    assert [(unit in one["source"], bool(one["at"])) for one in stages["healthy"]] == [(True, True)]
    hearing = [entry for entry in deployment.account.decisions() if "HearRole" in entry["caller"]]
    assert {"states:SendTaskSuccess"} <= {entry["action"] for entry in hearing}, "no event has woken a workflow"


@pytest.mark.parametrize(
    ("unit", "reason", "words"),
    [
        (ALARMED, "stop-alarm", "tick-bad is ALARM"),
        (SMALL, "too-small", "min_healthy 3"),
        (PROTECTED, "protected", "troop:protected"),
    ],
)
def test_guard_spares_its_unit(deployment: Deployment, unit: str, reason: str, words: str) -> None:
    actual, detail = _decision(deployment, unit)
    assert (actual, words in detail) == (reason, True), detail
    assert deployment.event(unit) is None
    assert deployment.ids(unit) == deployment.before[unit]  # type: ignore[attr-defined]


def test_a_group_that_does_not_recover_leaves_chaos_and_is_announced(deployment: Deployment) -> None:
    event = deployment.event(LOST)
    assert event is not None
    assert event["status"] == "UNRECOVERED"
    assert "capacity 1 of 2" in event["detail"]
    notice = deployment.bus.first(lambda m: m["detail-type"] == "Unit unrecovered")  # type: ignore[attr-defined]
    SCHEMA.validate(notice["detail"])
    assert (notice["source"], notice["detail"]["event_id"]) == ("troop", event["event_id"])
    assert deployment.tick()["status"] == "SUCCEEDED"
    assert _decision(deployment, LOST)[0] == "unrecovered"


def test_an_alarm_that_goes_off_breaks_the_unit_which_leaves_chaos(deployment: Deployment) -> None:
    event = eventually(lambda: (deployment.event(BROKEN) or {}).get("verdict") and deployment.event(BROKEN), BUSY)
    assert (event["status"], event["verdict"]["value"]) == ("RECOVERED", "BROKEN")
    assert event["abort"]["alarm"] == "tick-errors"
    (alarm,) = event["verdict"]["alarms"]
    assert (alarm["name"], [one["state"] for one in alarm["states"]]) == ("tick-errors", ["OK", "ALARM"])
    notice = deployment.bus.first(lambda m: m["detail-type"] == "Unit broken")  # type: ignore[attr-defined]
    SCHEMA.validate(notice["detail"])
    assert notice["detail"]["event_id"] == event["event_id"]
    assert deployment.tick()["status"] == "SUCCEEDED"
    assert _decision(deployment, BROKEN)[0] == "broken"
    unit = deployment.view.api.get(f"groups/{BROKEN}").body
    assert (unit["left_for"], unit["unrecovered"]) == ("broken", event["event_id"])


@pytest.mark.parametrize("kind", ["terminated", "recovered"])
def test_others_hear_of_a_termination_and_how_it_ended(deployment: Deployment, kind: str) -> None:
    event = deployment.event(CALM)
    assert event is not None
    news: Heard = deployment.news  # type: ignore[attr-defined]
    notice = news.first(lambda document: (document["kind"], document["unit"]) == (kind, CALM))
    SCHEMA.validate(notice)
    assert (notice["event_id"], notice["instance_id"]) == (event["event_id"], event["instance_id"])
    assert notice["recovery_seconds"] == (event["recovery_seconds"] if kind == "recovered" else None)
    on_bus = deployment.bus.first(lambda m: m["detail"]["id"] == notice["id"])  # type: ignore[attr-defined]
    assert on_bus["detail"] == notice
    ids = [document["id"] for document in news.messages]
    assert len(ids) == len(set(ids)), "once is enough while nothing fails"
    assert {document["kind"] for document in news.messages} <= {"terminated", "recovered", "policy-changed"}


def test_the_terminating_role_itself_cannot_touch_what_is_protected(deployment: Deployment) -> None:
    """The Deny of IAM, asked with the role's own credentials: no guard of ours stands before it."""
    session = as_role(deployment, "TerminateRole")
    protected = sorted(deployment.ids(PROTECTED))[0]
    ec2 = deployment.account.client("ec2", session)
    with pytest.raises(ec2.exceptions.ClientError, match="UnauthorizedOperation"):
        ec2.terminate_instances(InstanceIds=[protected])
    groups = deployment.account.client("autoscaling", session)
    with pytest.raises(groups.exceptions.ClientError, match="AccessDenied"):
        groups.terminate_instance_in_auto_scaling_group(InstanceId=protected, ShouldDecrementDesiredCapacity=False)
    bystander = deployment.account.client("ec2").run_instances(ImageId="ami-12345678", MinCount=1, MaxCount=1)
    with pytest.raises(ec2.exceptions.ClientError, match="UnauthorizedOperation"):
        ec2.terminate_instances(InstanceIds=[bystander["Instances"][0]["InstanceId"]])


def test_abandoned_events_are_swept_without_a_tick(deployment: Deployment) -> None:
    """Events as a workflow leaves them that was cut off: before it asked AWS, after, while it watched, and before the
    verdict.
    """
    long_ago = datetime.now(UTC) - timedelta(hours=2)
    alive = sorted(deployment.ids(DRAINED))[0]
    terminated: dict[str, Any] = {"terminated_at": long_ago}
    left: dict[str, dict[str, Any]] = {
        "ABANDONED": {"status": Status.CLAIMED, "instance_id": alive},
        "GONE_ELSEWHERE": {"status": Status.CLAIMED},
        "RECOVERED": terminated | {"token": "of a workflow that is gone"},
        "UNRECOVERED": terminated | {"group": LOST},
    }
    deadline = long_ago + timedelta(minutes=10)
    for status, changes in left.items():
        deployment.put_event(f"left-{status}", long_ago, **{"group": DRAINED, "deadline": deadline, **changes})
    settled = {"recovered_at": long_ago, "settles_at": deadline, "hypothesis": Hypothesis(("tick-good",))}
    deployment.put_event("left-JUDGED", long_ago, Status.RECOVERED, group=DRAINED, **terminated, **settled)
    deployment.dynamodb.update_item(
        TableName=deployment.outputs["StateTable"],
        Key={"key": {"S": "in-flight"}},
        UpdateExpression="ADD #count :left",
        ExpressionAttributeNames={"#count": "count"},
        ExpressionAttributeValues={":left": {"N": str(len(left))}},
    )
    deployment.sweep()

    def swept() -> bool | None:
        statuses = {status: (deployment.event(f"left-{status}") or {})["status"] for status in left}
        return True if statuses == {status: status for status in left} else None

    eventually(swept, BUSY)
    verdict = eventually(lambda: (deployment.event("left-JUDGED") or {})["verdict"], BUSY)
    assert verdict["value"] == "UNKNOWN", "the alarm is younger than the termination"
    counter = deployment.dynamodb.get_item(
        TableName=deployment.outputs["StateTable"], Key={"key": {"S": "in-flight"}}, ConsistentRead=True
    )
    assert counter["Item"]["count"] == {"N": "0"}
    assert alive in deployment.ids(DRAINED)


def test_a_deployment_with_three_broken_units_halts_itself_until_somebody_resumes_chaos(deployment: Deployment) -> None:
    """The units of the tests above: one by its alarm, two that did not recover."""
    ask = deployment.view.api.request
    itself = eventually(lambda: ask("GET", "switch").body["itself"], BUSY)
    assert {event_id.partition("#")[2] for event_id in itself["events"]} == {BROKEN, LOST, "left-UNRECOVERED"}
    assert deployment.tick()["status"] == "SUCCEEDED"
    assert _decision(deployment, CALM)[0] == "halted"
    notice = deployment.bus.first(  # type: ignore[attr-defined]
        lambda message: message["detail"]["kind"] == "halted-itself"
    )
    SCHEMA.validate(notice["detail"])
    resumed = ask("PATCH", "switch", body={"halted": False}).body
    assert resumed == ask("GET", "switch").body
    assert (resumed["halted"], resumed["itself"]) == (False, None)
    assert deployment.tick()["status"] == "SUCCEEDED"
    assert _decision(deployment, LOST)[0] == "unrecovered"


def test_a_termination_on_demand_recovers(deployment: Deployment) -> None:
    _policy(deployment, DRAINED, success_alarms={"SS": ["tick-good"]})
    ask = deployment.view.api.request
    claimed = ask("POST", "terminations", body={"group": DRAINED, "idempotency_key": "for-the-test"})
    assert claimed.status == 202, claimed
    path = f"events/{claimed.body['id']}"
    eventually(lambda: ask("GET", path).body["status"] == "RECOVERED" or None, BUSY)
    no_error = [{"MetricName": "tick-good", "Value": 0}]
    deployment.account.client("cloudwatch").put_metric_data(Namespace="Shop", MetricData=no_error)
    deployment.on_demand = path  # type: ignore[attr-defined]


def test_a_unit_from_all_sides_and_back_into_chaos_by_its_owner(deployment: Deployment) -> None:
    ask = deployment.view.api.request
    listed = ask("GET", "groups", {"limit": "50"}).body["groups"]
    assert {row["group"]: row["unrecovered"] for row in listed if row["group"] in (LOST, CALM)} == {
        CALM: None,
        LOST: deployment.event(LOST)["event_id"],  # type: ignore[index]
    }
    before = ask("GET", f"groups/{LOST}").body
    assert (before["decision"]["reason"], before["next_possible"]) == ("unrecovered", None)
    assert before["groups"] == [{"group": LOST, "desired": 2, "in_service": 1, "protected": None, "inside": None}]
    assert [event["status"] for event in before["events"]] == ["UNRECOVERED"]
    after = ask("PATCH", f"groups/{LOST}", body={"unrecovered": False, "min_healthy": 2, "version": 0}).body
    assert (after["unrecovered"], after["version"], after["item"]["min_healthy"]) == (None, 1, 2)
    assert after == ask("GET", f"groups/{LOST}").body
    (change,) = after["changes"]
    assert change["changes"]["unrecovered"] == {"old": before["unrecovered"], "new": None}
    assert change["caller"] == _caller(deployment)
    notice = deployment.news.first(  # type: ignore[attr-defined]
        lambda document: document["kind"] == "policy-changed" and document["unit"] == LOST
    )
    SCHEMA.validate(notice)
    assert (notice["caller"], notice["changes"]) == (change["caller"], change["changes"])
    assert ask("PATCH", f"groups/{LOST}", body={"min_healthy": 3, "version": 0}).status == 409
    assert ask("GET", "groups/tick-nobody").status == 404
    known = deployment.dynamodb.get_item(
        TableName=deployment.outputs["StateTable"], Key={"key": {"S": "unrecovered"}}, ConsistentRead=True
    )["Item"]
    assert LOST not in known.get("units", {"SS": []})["SS"]


def test_dashboards_show_what_was_done_and_why(deployment: Deployment) -> None:
    """Their function has a role and a layer of its own; here both are what is deployed."""
    event = deployment.event(CALM)
    assert event is not None
    assert event["instance_id"] in deployment.shown("events", unit=CALM)
    assert "is to be terminated" in deployment.shown("decisions")
    assert f">{SMALL}</button>" in deployment.shown("units")
    assert "stop_alarms=tick-good" in deployment.shown("units", unit=CALM)
    assert "does not run benchmarks" in deployment.shown("runs")


def test_the_switch_by_the_api_takes_effect_at_the_next_tick(deployment: Deployment) -> None:
    ask = deployment.view.api.request
    assert ask("PATCH", "switch", body={"halted": True, "reason": "for the test"}).body["halted"] is True
    assert deployment.tick()["status"] == "SUCCEEDED"
    assert _decision(deployment, CALM)[0] == "halted"
    notice = deployment.news.first(lambda document: document["kind"] == "halted")  # type: ignore[attr-defined]
    SCHEMA.validate(notice)
    assert (notice["caller"], notice["reason"]) == (_caller(deployment), "for the test")
    assert ask("PATCH", "switch", body={"halted": False, "halt_id": "20261120-120000-00000001"}).status == 409
    assert ask("PATCH", "switch", body={"halted": False}).body == ask("GET", "switch").body
    assert deployment.tick()["status"] == "SUCCEEDED"
    assert _decision(deployment, CALM)[0] == "already-today"


def test_lost_notification_is_sent_late(deployment: Deployment) -> None:
    """As if Lambda had given up the last change: its letter names the record, and the record is still in the stream."""
    streams, sqs = (deployment.account.client(service) for service in ("dynamodbstreams", "sqs"))
    table = deployment.dynamodb.describe_table(TableName=deployment.outputs["ChangesTable"])["Table"]
    stream = {"StreamArn": table["LatestStreamArn"]}
    shard = streams.describe_stream(**stream)["StreamDescription"]["Shards"][-1]["ShardId"]
    start = streams.get_shard_iterator(**stream, ShardId=shard, ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
    number = streams.get_records(ShardIterator=start)["Records"][-1]["dynamodb"]["SequenceNumber"]
    which = {"shardId": shard, "startSequenceNumber": number, "endSequenceNumber": number, "batchSize": 1}
    (queue,) = [
        url for url in sqs.list_queues()["QueueUrls"] if deployment.name in url and "NotificationsUndelivered" in url
    ]
    letter = {"version": "1.0", "DDBStreamBatchInfo": {**which, "streamArn": table["LatestStreamArn"]}}
    sqs.send_message(QueueUrl=queue, MessageBody=json.dumps(letter))
    deployment.redrive()

    (redriven,) = eventually(lambda: deployment.log_lines("otify", '"redriven"') or None, BUSY)
    assert (redriven["letters"], redriven["told"], redriven["kept"]) == (1, 1, [])
    assert [line["Repairs"] for line in deployment.metric_lines("otify") if "Repairs" in line] == [[1]]
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    left = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=names)["Attributes"]
    assert sum(map(int, left.values())) == 0


def test_weekly_letter_reaches_those_who_listen(deployment: Deployment) -> None:
    deployment.write_letter()
    letter = deployment.news.first(lambda document: document["kind"] == "weekly-letter")  # type: ignore[attr-defined]
    SCHEMA.validate(letter)
    assert letter["letter"] == [f"{letter['first']} to {letter['last']}: no hits."]
    report = deployment.view.api.get("events", {"limit": "100"}).body["events"]
    assert report, "those of today are no part of the last week"


def test_risks_are_read_and_somebody_exempts_from_one(deployment: Deployment) -> None:
    volume = deployment.account.client("ec2").create_volume(AvailabilityZone="us-east-1a", Size=10, VolumeType="gp3")
    line = deployment.read_risks()
    assert line["unread"] == []
    answer = deployment.view.api.get("risks", {"limit": "500"}).body
    by_key = {(risk["rule"], risk["subject"]): risk for risk in answer["risks"]}
    assert by_key["unattached-volume", volume["VolumeId"]]["monthly"] == {"amount": 0.8, "currency": "USD"}
    unit = next(subject for rule, subject in by_key if rule == "no-alarm")
    exemption = {"reason": "a test", "until": f"{datetime.now(UTC).date() + timedelta(days=30)}"}
    change = {"rule": "no-alarm", "subject": unit, "exemption": exemption}
    exempt = deployment.view.api.request("PATCH", "risks", body=change).body
    assert exempt["exemption"]["by"] == _caller(deployment)
    deployment.account.client("ec2").delete_volume(VolumeId=volume["VolumeId"])


def test_a_quiet_alarm_proves_the_hypothesis_once_it_had_time_to_go_off(deployment: Deployment) -> None:
    """Of the termination on demand, to which the alarm has had time during the other tests."""
    path = deployment.on_demand  # type: ignore[attr-defined]

    def judged() -> dict[str, Any] | None:
        event: dict[str, Any] = deployment.view.api.get(path).body
        return event if event["verdict"] else None

    event = eventually(judged, BUSY)
    assert event["verdict"]["value"] == "HELD", event["verdict"]
    assert event["verdict"]["until"] == event["settles_at"] > event["recovered_at"]
    assert [[one["state"] for one in alarm["states"]] for alarm in event["verdict"]["alarms"]] == [["OK"]]


def test_no_role_may_do_what_it_never_does(deployment: Deployment) -> None:
    deployment.view.api.get("events")
    deployment.view.api.get("events/2026-01-01~nobody")
    deployment.view.api.get("policies")
    deployment.view.api.get("health")
    assert deployment.view.api.get("decisions", {"day": f"{datetime.now(UTC).date()}"}).status == 200
    for parameters in ({"widget": "events"}, {"widget": "units"}, {"widget": "units", "unit": CALM}):
        deployment.shown(**parameters)
    deployment.watch()
    _leashed_tick(deployment)
    used: dict[str, set[str]] = {}
    for entry in deployment.account.decisions():
        if entry["decision"] == "Allow":
            used.setdefault(role_of(entry["caller"]), set()).add(entry["action"].lower())
    # Whichever of these first finds a group whole closes its event: each may, and which one does follows no order.
    closing = [name for name in used if any(part in name for part in ("CheckRecovery", "Hear", "Sweep"))]
    used |= {name: set().union(*(used[other] for other in closing)) for name in closing}
    unused = {}
    for role, actions in allowed(deployment).items():
        idle = {a for a in actions if a.lower() not in used.get(role, set())} - UNOBSERVED
        if idle:
            unused[role] = idle
    assert unused == {}


def test_nothing_was_refused_by_iam(deployment: Deployment) -> None:
    """Other than what the test above asks for: a role that lacks a permission would show here, even were it retried."""
    refused = [
        e
        for e in deployment.account.decisions()
        if e["decision"] != "Allow"
        and "OneTick" in e["caller"]
        and not e["action"].lower().startswith(("ec2:term", "autoscaling:term"))
    ]
    assert refused == []


def test_a_role_without_one_action_fails_the_run_with_access_denied(deployment: Deployment) -> None:
    iam = deployment.account.client("iam")
    role = role_name(deployment, "DecideRole")
    (policy,) = iam.list_role_policies(RoleName=role)["PolicyNames"]
    document = iam.get_role_policy(RoleName=role, PolicyName=policy)["PolicyDocument"]
    poorer = json.loads(json.dumps(document).replace('"autoscaling:DescribeAutoScalingGroups", ', ""))
    assert poorer != document
    iam.put_role_policy(RoleName=role, PolicyName=policy, PolicyDocument=json.dumps(poorer))
    try:
        ended = deployment.tick()
    finally:
        iam.put_role_policy(RoleName=role, PolicyName=policy, PolicyDocument=json.dumps(document))
    assert ended["status"] == "FAILED"
    assert "AccessDenied" in ended["error"] + ended["cause"]
    assert "autoscaling:DescribeAutoScalingGroups" in ended["cause"]


def _leashed_tick(deployment: Deployment) -> None:
    """A tick that records something as leashed, so that the permission to do so is seen used."""
    deployment.switch(halted=False, leashed=True)
    deployment.group("tick-later")
    assert deployment.tick()["status"] == "SUCCEEDED"
    deployment.groups.delete("tick-later")
    deployment.switch(halted=False, leashed=False)


def _caller(deployment: Deployment) -> str:
    return str(deployment.account.client("sts").get_caller_identity()["Arn"])
