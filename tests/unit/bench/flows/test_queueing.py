"""The queue of a standing fleet: what Launch creates for it, that nothing is made twice, and what it is refused for."""

from __future__ import annotations

import base64
import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.unit.account.account import Call, Cut, calls, changing, cut_at, ends, refusing
from tests.unit.account.benches import BUCKET, CELL, Bench
from troop.bench.definition import names
from troop.bench.definition.definition import Benchmark, Fleet
from troop.bench.definition.living import Queue
from troop.bench.fleets.fleet_requests import LaunchImpossibleError
from troop.bench.records.record import Kind
from troop.shared.aws.clients import client

WORKERS = Fleet("workers", 2, "c7g.large", 2, 600, 8)
FLEET = Benchmark("workers", "", 7200, (WORKERS,), (), {}, (), standing=True, queue=Queue(lease=600, tries=3))
CREATES = {"CreateVpcEndpoint", "CreateQueue", "CreateAutoScalingGroup"}


@pytest.fixture(name="settings")
def with_queues(settings: dict[str, Any], request: pytest.FixtureRequest) -> dict[str, Any]:
    return settings | {"queues": True} | getattr(request, "param", {})


@pytest.fixture
def fleet(bench: Bench) -> Bench:
    return bench.admit(FLEET, "fleet")


def endpoints(bench: Bench) -> list[dict[str, Any]]:
    every = bench.ec2.describe_vpc_endpoints()["VpcEndpoints"]
    return [one for one in every if one["State"] != "deleted"]


def queues(bench: Bench) -> dict[str, str]:
    """Addresses of the run's queues by name."""
    urls = client("sqs").list_queues(QueueNamePrefix=f"troop-{bench.run}").get("QueueUrls", [])
    return {url.rpartition("/")[2]: url for url in urls}


def attributes(url: str) -> dict[str, Any]:
    raw = client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    return {key: json.loads(value) if value.startswith("{") else value for key, value in raw.items()}


def test_a_fleet_has_a_queue_with_dead_letters_that_only_its_endpoint_reaches(fleet: Bench) -> None:
    fleet.launched()
    (endpoint,) = endpoints(fleet)
    own, dead = names.queue_name(fleet.run, CELL), names.dead_queue_name(fleet.run, CELL)
    urls = queues(fleet)
    assert set(urls) == {own, dead}
    described = attributes(urls[own])
    letters = attributes(urls[dead])
    assert described["VisibilityTimeout"] == "600"
    assert described["RedrivePolicy"] == {"deadLetterTargetArn": letters["QueueArn"], "maxReceiveCount": 3}
    (reached,) = json.loads(endpoint["PolicyDocument"])["Statement"]
    assert reached["Resource"] == described["QueueArn"]
    (group,) = fleet.security_groups()
    assert [one["GroupId"] for one in endpoint["Groups"]] == [group["GroupId"]]
    zones = {s["SubnetId"]: s["AvailabilityZone"] for s in fleet.ec2.describe_subnets()["Subnets"]}
    assert sorted(zones[one] for one in endpoint["SubnetIds"]) == ["eu-central-1a", "eu-central-1b"]


def test_everything_of_a_queue_carries_the_tags_of_the_run(fleet: Bench) -> None:
    fleet.launched()
    tagged = [{tag["Key"]: tag["Value"] for tag in one["Tags"]} for one in endpoints(fleet)]
    tagged += [client("sqs").list_queue_tags(QueueUrl=url)["Tags"] for url in queues(fleet).values()]
    assert len(tagged) == 3
    for tags in tagged:
        assert (tags["troop:deployment"], tags["troop:run"], tags["troop:cell"]) == ("Troop", fleet.run, CELL)
        assert "troop:expires-at" in tags


def test_workers_learn_their_queue_and_its_names(fleet: Bench) -> None:
    fleet.launched()
    (endpoint,) = endpoints(fleet)
    document = fleet.get(names.queue_key(fleet.run, CELL))
    assert document["format"] == "troop.queue/1"
    assert document["url"] == queues(fleet)[names.queue_name(fleet.run, CELL)]
    assert document["host"] == "sqs.eu-central-1.amazonaws.com"
    assert document["endpoints"] == [entry["DnsName"] for entry in endpoint["DnsEntries"]]
    assert document["lease"] == 600
    assert document["results"] == names.work_results_prefix(fleet.run)
    assert (document["bucket"], document["region"]) == (BUCKET, "eu-central-1")


def test_nodes_of_standing_fleets_have_orders_from_the_beginning(bench: Bench) -> None:
    bench.admit(replace(FLEET, queue=None), "one").launched()
    orders = bench.get(names.orders_key(bench.run, CELL))
    assert orders["expires_at"] == int(bench.runs.get(bench.run).expires_at.timestamp())
    assert not orders["drain"]


def test_auto_scaling_takes_no_worker_by_itself(bench: Bench) -> None:
    """Also not of the backup: a worker first finishes its tasks."""
    bench.admit(replace(FLEET, fleets=(replace(WORKERS, purchase="spot", backup="5m"),)), "spot").launched()
    assert len(bench.groups()) == 2
    assert all(group["NewInstancesProtectedFromScaleIn"] for group in bench.groups().values())


def test_the_queue_is_recorded_before_its_creation(fleet: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    planned: dict[str, set[tuple[Kind, str]]] = {}

    def looking(number: int, operation: str, call: Call) -> Any:
        if operation in CREATES:
            planned.setdefault(operation, {(r.kind, r.name) for r in fleet.runs.resources.get_all(fleet.run)})
        return call()

    fleet.open()
    with calls(monkeypatch, looking) as operations:
        fleet.launch()
    own = {(Kind.ENDPOINT, names.security_group_name(fleet.run, CELL))}
    own |= {(Kind.QUEUE, name) for name in queues(fleet)}
    assert own <= planned["CreateVpcEndpoint"]
    order = [name for name in operations if name in CREATES]
    assert order == ["CreateVpcEndpoint", "CreateQueue", "CreateQueue", "CreateAutoScalingGroup"]
    recorded = {(r.kind, r.name): r for r in fleet.runs.resources.get_all(fleet.run)}
    assert all(recorded[one].created_at for one in own)
    assert recorded[Kind.ENDPOINT, names.security_group_name(fleet.run, CELL)].zones == 2


def test_cut_anywhere_another_try_makes_the_same_queue_and_endpoint(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = replace(FLEET, fleets=(replace(WORKERS, count=1, zones=1),))
    first = bench.again("first", small)
    first.open()
    with calls(monkeypatch) as operations:
        first.launch()
    first.drop()
    begun, last = operations.index("CreateVpcEndpoint"), operations.index("CreateLaunchTemplate")
    writes = [i for i in range(begun, last) if not operations[i].startswith(("Get", "List", "Describe"))]
    for number in ends(writes, operations):
        one = bench.again(str(number), small)
        one.open()
        with calls(monkeypatch, cut_at(number, acted=True)), pytest.raises(Cut):
            one.launch()
        one.launch()
        its = Counter(tag["Value"] for each in endpoints(one) for tag in each["Tags"] if tag["Key"] == "troop:run")
        assert its[one.run] == 1, operations[number]
        assert len(queues(one)) == 2
        described = attributes(queues(one)[names.queue_name(one.run, CELL)])
        assert described["RedrivePolicy"]["maxReceiveCount"] == 3
        one.drop()


def test_an_endpoint_of_an_earlier_try_that_is_not_listed_yet_is_waited_for(
    fleet: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.open()
    with calls(monkeypatch, refusing("CreateQueue", "InternalError")), pytest.raises(ClientError):
        fleet.launch()
    looks = iter([False])

    def lagging(number: int, operation: str, call: Call) -> Any:
        if operation == "DescribeVpcEndpoints" and not next(looks, True):
            return {"VpcEndpoints": []}
        if operation == "CreateVpcEndpoint":
            raise ClientError({"Error": {"Code": "IdempotentParameterMismatch", "Message": "another one"}}, operation)
        return call()

    with calls(monkeypatch, lagging):
        fleet.launch()
    assert len(endpoints(fleet)) == 1


def test_a_full_network_is_refused_with_the_quota_to_raise(fleet: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.open()
    full = refusing("CreateVpcEndpoint", "VpcEndpointLimitExceeded")
    with (
        calls(monkeypatch, full),
        pytest.raises(LaunchImpossibleError, match=r"raise the account's quota .*L-29B6F2EB"),
    ):
        fleet.launch()
    assert fleet.groups() == {}


def test_an_endpoint_that_aws_could_not_create_is_no_endpoint(fleet: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(answer: Any) -> None:
        answer["VpcEndpoint"] |= {"State": "failed", "LastError": {"Message": "no addresses are left"}}

    fleet.open()
    failing = calls(monkeypatch, changing("CreateVpcEndpoint", fail))
    with failing, pytest.raises(LaunchImpossibleError, match="no addresses are left"):
        fleet.launch()
    assert fleet.groups() == {}


def test_names_of_an_endpoint_are_waited_for(fleet: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.open()
    with calls(monkeypatch, changing("CreateVpcEndpoint", lambda answer: answer["VpcEndpoint"].pop("DnsEntries"))):
        fleet.launch()
    assert fleet.get(names.queue_key(fleet.run, CELL))["endpoints"]


def test_a_queue_of_somebody_else_is_not_used(fleet: Bench) -> None:
    fleet.open()
    name = names.dead_queue_name(fleet.run, CELL)
    client("sqs").create_queue(QueueName=name, Attributes={"VisibilityTimeout": "5"}, tags={"troop:run": fleet.run})
    with pytest.raises(LaunchImpossibleError, match=f"the queue {name} exists"):
        fleet.launch()
    assert fleet.groups() == {}


@pytest.mark.parametrize("settings", [{"queues": False}], indirect=True)
def test_a_deployment_that_lost_the_setting_creates_no_queue(fleet: Bench) -> None:
    fleet.open()
    with pytest.raises(LaunchImpossibleError, match="set troop:queues"):
        fleet.launch()
    assert endpoints(fleet) == []
    assert fleet.security_groups() == []


def test_a_node_knows_its_deployment_and_stage(fleet: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TROOP_STAGE", "prod")
    fleet.launched()
    data = base64.b64decode(fleet.template_data(names.fleet_name(fleet.run, CELL, "workers"))["UserData"]).decode()
    assert '"deployment": "Troop"' in data
    assert '"stage": "prod"' in data


@pytest.mark.parametrize("key", ["", "arn:aws:kms:eu-central-1:123456789012:key/own"])
def test_queues_have_the_key_of_the_deployment(fleet: Bench, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("TROOP_DATA_KEY", key)
    fleet.launched()
    assert {attributes(url).get("KmsMasterKeyId", "") for url in queues(fleet).values()} == {key}
