"""Launch: what a cell is made of, and that nothing is made twice, of somebody else's, or for a closed run."""

from __future__ import annotations

import base64
import hashlib
import os
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.unit.account.account import Call, Cut, before, calls, cut_at, ends, refusing
from tests.unit.account.benches import AGENT, BENCHMARK, BUCKET, CELL, PROFILE, ROLE_ID, Bench
from troop.bench.admission.reach import Balancer, balancers_document
from troop.bench.aws.fleets import TRIES
from troop.bench.definition import names
from troop.bench.definition.definition import Fleet, Target
from troop.bench.fleets.fleet_requests import LaunchImpossibleError
from troop.bench.flows.launching import LaunchTooLateError
from troop.bench.records.record import CellStatus, Kind, RunStatus
from troop.shared.errors import RunClosedError
from troop.shared.variables import Variable
from troop.shared.wiring import environment

CREATES = ("CreateSecurityGroup", "CreateLaunchTemplate", "CreateAutoScalingGroup")
CHANGES = (
    *CREATES,
    "AuthorizeSecurityGroupIngress",
    "AuthorizeSecurityGroupEgress",
    "SuspendProcesses",
    "PutScheduledUpdateGroupAction",
)


def _tags(described: Any) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in described["Tags"]}


def test_a_fleet_is_a_group_of_exactly_its_nodes_that_chaos_never_touches(bench: Bench) -> None:
    bench.launched()
    assert len(bench.groups()) == 2
    for fleet in BENCHMARK.fleets:
        group = bench.groups()[names.fleet_name(bench.run, CELL, fleet.role)]
        sizes = [group[key] for key in ("MinSize", "DesiredCapacity", "MaxSize")]
        assert sizes == [0, fleet.count, fleet.count]
        assert group["HealthCheckType"] == "EC2"
        assert not group["NewInstancesProtectedFromScaleIn"]
        assert {p["ProcessName"] for p in group["SuspendedProcesses"]} == {"AZRebalance"}
        tags = _tags(group)
        assert tags["troop:deployment"] == "Troop"
        assert (tags["troop:run"], tags["troop:cell"], tags["troop:fleet"]) == (bench.run, CELL, fleet.role)
        assert tags["troop:expires-at"] == "2026-11-21T00:46:00.000Z"
        assert all(tag["PropagateAtLaunch"] for tag in group["Tags"])


@pytest.mark.parametrize("settings", [{"tags": {"CostCenter": "1234", "Name": "ours"}}], indirect=True)
def test_all_that_a_cell_creates_has_the_deployments_own_tags_from_the_beginning(bench: Bench) -> None:
    bench.launched()
    fleet = names.fleet_name(bench.run, CELL, "servers")
    templates = bench.ec2.describe_launch_templates()["LaunchTemplates"]
    own = [one for one in templates if one["LaunchTemplateName"].startswith("troop-")]
    created = [*bench.groups().values(), *bench.security_groups(), *own]
    specified = bench.template_data(fleet)["TagSpecifications"]
    assert len(created) == 2 + 1 + 2
    assert [one for one in [*created, *specified] if _tags(one).get("CostCenter") != "1234"] == []
    assert _tags(bench.groups()[fleet])["Name"] == fleet, "the run's own tags win"


def test_when_a_run_expires_auto_scaling_itself_takes_its_groups_down(bench: Bench) -> None:
    """Nodes shut themselves down at that moment, and a group would replace them as long as nobody else is there."""
    bench.launched()
    every = bench.autoscaling.describe_scheduled_actions()["ScheduledUpdateGroupActions"]
    assert {one["AutoScalingGroupName"] for one in every} == set(bench.groups())
    for one in every:
        assert (one["MinSize"], one["MaxSize"], one["DesiredCapacity"]) == (0, 0, 0)
        assert one["StartTime"] == datetime(2026, 11, 21, 0, 46, tzinfo=UTC)


def test_fleets_go_to_the_first_zones_that_offer_their_type(bench: Bench) -> None:
    subnets = {s["SubnetId"]: s["AvailabilityZone"] for s in bench.ec2.describe_subnets()["Subnets"]}
    bench.launched()
    zones = {
        name.rpartition("-")[2]: sorted(subnets[s] for s in group["VPCZoneIdentifier"].split(","))
        for name, group in bench.groups().items()
    }
    assert zones == {"servers": ["eu-central-1a", "eu-central-1b"], "drivers": ["eu-central-1a"]}


def test_a_node_is_closed_encrypted_and_tagged_and_ends_for_good(bench: Bench) -> None:
    bench.launched()
    data = bench.template_data(names.fleet_name(bench.run, CELL, "servers"))
    assert data["ImageId"] == bench.images["arm64"]
    assert data["InstanceType"] == "c7g.large"
    assert data["IamInstanceProfile"] == {"Arn": PROFILE}
    assert data["MetadataOptions"] == {
        "HttpEndpoint": "enabled", "HttpTokens": "required", "HttpPutResponseHopLimit": 1,
    }  # fmt: skip
    assert data["InstanceInitiatedShutdownBehavior"] == "terminate"
    (interface,) = data["NetworkInterfaces"]
    assert interface["AssociatePublicIpAddress"] is False
    assert interface["Groups"] == [bench.security_groups()[0]["GroupId"]]
    root, extra = data["BlockDeviceMappings"]
    described = bench.ec2.describe_images(ImageIds=[data["ImageId"]])["Images"][0]
    assert root["DeviceName"] == described["RootDeviceName"]
    for device, size in ((root, 8), (extra, 100)):
        ebs = device["Ebs"]
        assert (ebs["Encrypted"], ebs["DeleteOnTermination"], ebs["VolumeType"]) == (True, True, "gp3")
        assert ebs["VolumeSize"] == size
    assert (extra["Ebs"]["Iops"], extra["Ebs"]["Throughput"]) == (4000, 250)
    assert "Iops" not in root["Ebs"]
    tagged = {s["ResourceType"]: _tags(s) for s in data["TagSpecifications"]}
    for kind in ("instance", "volume", "network-interface"):
        assert tagged[kind]["troop:run"] == bench.run
        assert tagged[kind]["troop:fleet"] == "servers"
    assert bench.template_data(names.fleet_name(bench.run, CELL, "drivers"))["ImageId"] == bench.images["x86_64"]


def test_a_node_learns_where_it_belongs_and_which_agent_to_trust(bench: Bench) -> None:
    bench.launched()
    stored = bench.s3.get_object(Bucket=BUCKET, Key=names.agent_key(bench.run))["Body"].read()
    assert stored == AGENT
    data = base64.b64decode(bench.template_data(names.fleet_name(bench.run, CELL, "drivers"))["UserData"]).decode()
    for known in (hashlib.sha256(AGENT).hexdigest(), ROLE_ID, bench.run, CELL, "drivers", BUCKET, "eu-central-1"):
        assert known in data


def test_nodes_reach_each_other_and_s3_and_nobody_reaches_them(bench: Bench) -> None:
    bench.launched()
    (group,) = bench.security_groups()
    own = group["GroupId"]
    (inside,) = group["IpPermissions"]
    assert [p["GroupId"] for p in inside["UserIdGroupPairs"]] == [own]
    assert not inside["IpRanges"]
    lists = bench.ec2.describe_managed_prefix_lists()["PrefixLists"]
    s3 = next(p["PrefixListId"] for p in lists if p["PrefixListName"] == "com.amazonaws.eu-central-1.s3")
    outside = {p["IpProtocol"]: p for p in group["IpPermissionsEgress"]}
    assert set(outside) == {"-1", "tcp"}
    assert [p["GroupId"] for p in outside["-1"]["UserIdGroupPairs"]] == [own]
    assert [p["PrefixListId"] for p in outside["tcp"]["PrefixListIds"]] == [s3]
    assert (outside["tcp"]["FromPort"], outside["tcp"]["ToPort"]) == (443, 443)
    assert not any(p["IpRanges"] or p["Ipv6Ranges"] for p in outside.values())


def test_only_the_nodes_of_a_role_reach_its_targets(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """As often as the step is tried: by a security group of the role beside that of the cell, recorded before it is
    there.
    """
    targets = (
        Target("shop", ("443",), ("drivers",), load_balancer="shop"),
        Target("range", ("80", "8000-8100"), ("drivers",), addresses=("10.20.0.0/16",)),
    )
    bench = bench.again("targets", replace(BENCHMARK, targets=targets))
    vpc = os.environ[Variable.NETWORK_VPC]
    shop = bench.ec2.create_security_group(GroupName="shop", Description="-", VpcId=vpc)["GroupId"]
    balancer = Balancer("internal-shop", vpc, security_groups=(shop,))
    bench.put(names.load_balancers_key(bench.run), balancers_document({"shop": balancer}))
    fleet = names.fleet_name(bench.run, CELL, "drivers")
    bench.open()

    def lose_answer(number: int, operation: str, call: Call) -> Any:
        answer = call()
        if "ToPort': 8100" in str(getattr(call, "args", "")):
            raise Cut(operation)
        return answer

    with calls(monkeypatch, lose_answer), pytest.raises(Cut):
        bench.launch()
    bench.launch()
    groups = {group["GroupName"]: group for group in bench.security_groups()}
    cell, own = groups[names.security_group_name(bench.run, CELL)], groups[fleet]
    assert _rules(own["IpPermissionsEgress"]) == {
        (443, 443, shop), (80, 80, "10.20.0.0/16"), (8000, 8100, "10.20.0.0/16"),
    }  # fmt: skip
    assert own["IpPermissions"] == []
    (drivers,) = bench.template_data(fleet)["NetworkInterfaces"]
    assert drivers["Groups"] == [cell["GroupId"], own["GroupId"]]
    (servers,) = bench.template_data(names.fleet_name(bench.run, CELL, "servers"))["NetworkInterfaces"]
    assert servers["Groups"] == [cell["GroupId"]]
    assert not {"10.20.0.0/16", shop} & {to for _, _, to in _rules(cell["IpPermissionsEgress"])}
    recorded = {(one.kind, one.name) for one in bench.runs.resources.get_all(bench.run) if one.created_at}
    assert (Kind.SECURITY_GROUP, fleet) in recorded
    assert bench.get(names.targets_key(bench.run, CELL, "drivers"))["targets"]["shop"]["host"] == "internal-shop"


def _rules(permissions: list[dict[str, Any]]) -> set[tuple[int | None, int | None, str]]:
    return {
        (one.get("FromPort"), one.get("ToPort"), to)
        for one in permissions
        for to in (
            *(pair["GroupId"] for pair in one["UserIdGroupPairs"]),
            *(ip["CidrIp"] for ip in one["IpRanges"]),
            *(prefix["PrefixListId"] for prefix in one["PrefixListIds"]),
        )
    }


def test_all_barriers_hold_before_any_node_is_there(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.open()

    def check() -> None:
        for phase in BENCHMARK.phases:
            assert bench.barrier(phase.name)["state"] == "hold"

    with calls(monkeypatch, before("CreateAutoScalingGroup", check, times=2)) as operations:
        bench.launch()
    assert operations.count("CreateAutoScalingGroup") == 2
    assert bench.barrier("measure") == {
        "format": "troop.barrier/1", "phase": "measure", "state": "hold", "script": "read.py",
        "timeout_seconds": 600, "start_up_seconds": 0, "warm_up_seconds": 30, "measured_seconds": 300, "start_at": None,
    }  # fmt: skip


def test_resource_is_on_record_before_it_is_created(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.open()
    planned: dict[str, set[tuple[str, str]]] = {}

    def intercept(number: int, operation: str, call: Call) -> Any:
        if operation in CREATES and operation not in planned:
            planned[operation] = {(r.kind, r.name) for r in bench.runs.resources.get_all(bench.run)}
        return call()

    with calls(monkeypatch, intercept):
        bench.launch()
    fleets = [names.fleet_name(bench.run, CELL, role) for role in ("servers", "drivers")]
    expected = {(Kind.SECURITY_GROUP, names.security_group_name(bench.run, CELL))}
    expected |= {(kind, name) for kind in (Kind.LAUNCH_TEMPLATE, Kind.AUTO_SCALING_GROUP) for name in fleets}
    assert [planned[operation] for operation in CREATES] == [expected] * 3
    assert all(r.created_at for r in bench.runs.resources.get_all(bench.run))
    assert bench.runs.launches.get_all(bench.run) == []
    cell = bench.cell()
    assert (cell.status, cell.phase) == (CellStatus.RUNNING, "boot")


def test_cut_anywhere_another_try_makes_the_same_and_nothing_twice(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = replace(BENCHMARK, fleets=(Fleet("drivers", 1, "c5.large", 1, 300, 8),), phases=BENCHMARK.phases[1:])
    first = bench.again("first", small)
    first.open()
    with calls(monkeypatch) as operations:
        first.launch()
    first.drop()
    writes = [i for i, operation in enumerate(operations) if not operation.startswith(("Get", "List", "Describe"))]
    for number in ends(writes, operations):
        one = bench.again(str(number), small)
        one.open()
        with calls(monkeypatch, cut_at(number, acted=True)), pytest.raises(Cut):
            one.launch()
        one.launch()
        assert len([name for name in one.groups() if one.run in name]) == 1, operations[number]
        assert len([name for name in one.templates() if one.run in name]) == 1, operations[number]
        assert len([g for g in one.security_groups() if one.run in g["GroupName"]]) == 1, operations[number]
        assert len(one.nodes()) == 1
        assert one.cell().phase == "boot"
        one.drop()


def test_a_launch_that_is_done_is_not_done_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.launched()
    bench.register(bench.nodes())
    bench.gather()
    bench.step("release", phase_index=0)
    with calls(monkeypatch) as operations:
        bench.launch()
    assert not set(operations) & set(CHANGES)
    assert bench.barrier("prepare")["state"] == "release"


def test_a_run_that_is_closed_while_it_launches_creates_no_more(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closed after any of its writes (a sample of them in ``make test``): nothing is created from then on."""
    small = replace(BENCHMARK, fleets=(Fleet("drivers", 1, "c5.large", 1, 300, 8),), phases=BENCHMARK.phases[1:])
    first = bench.again("first", small)
    first.open()
    with calls(monkeypatch) as operations:
        first.launch()
    first.drop()
    last = max(i for i, operation in enumerate(operations) if operation in CREATES)
    begun = operations.index("TransactWriteItems")
    writes = [i for i in range(begun, last) if not operations[i].startswith(("Get", "List", "Describe"))]
    for at in ends(writes, operations):
        one = bench.again(str(at), small)
        one.open()

        def closing(number: int, operation: str, call: Call, at: int = at, one: Bench = one) -> Any:
            answer = call()
            if number == at:
                one.runs.close(one.run, RunStatus.STOPPED, "by hand", bench.account.clock())
            return answer

        with calls(monkeypatch, closing) as cut, pytest.raises(RunClosedError):
            one.launch()
        assert not set(cut[at + 1 :]) & set(CREATES), operations[at]
        assert one.runs.launches.get_all(one.run) == [], "teardown need not wait for its time to end"
        one.drop()


def test_for_a_closed_run_nothing_is_created(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.open()
    bench.runs.close(bench.run, RunStatus.STOPPED, "by hand", bench.account.clock())
    with calls(monkeypatch) as operations, pytest.raises(RunClosedError):
        bench.launch()
    assert not set(operations) & set(CHANGES)


def test_an_expired_run_is_not_launched(bench: Bench) -> None:
    bench.open()
    bench.account.clock.forward(hours=2)
    with pytest.raises(LaunchImpossibleError, match="expired"):
        bench.launch()
    assert not bench.groups()


def test_nothing_is_created_when_the_right_to_has_run_out(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.open()
    slow = before("CreateSecurityGroup", lambda: bench.account.clock.forward(minutes=5))
    with calls(monkeypatch, slow), pytest.raises(LaunchTooLateError):
        bench.launch()
    assert not bench.templates()


@pytest.mark.parametrize("kind", ["security group", "launch template", "Auto Scaling group"])
def test_resource_with_our_name_but_not_our_tags_is_untouched(bench: Bench, kind: str) -> None:
    bench.open()
    fleet = names.fleet_name(bench.run, CELL, "servers")
    tags = [{"Key": "troop:deployment", "Value": "Other"}, {"Key": "troop:run", "Value": bench.run}]
    if kind == "security group":
        bench.ec2.create_security_group(
            GroupName=names.security_group_name(bench.run, CELL),
            Description="theirs",
            VpcId=environment.variable(Variable.NETWORK_VPC),
            TagSpecifications=[{"ResourceType": "security-group", "Tags": tags}],
        )
    elif kind == "launch template":
        bench.ec2.create_launch_template(LaunchTemplateName=fleet, LaunchTemplateData={"ImageId": "ami-12c6146b"})
    else:
        bench.account.group(fleet, 1, {tag["Key"]: tag["Value"] for tag in tags})
    with pytest.raises(LaunchImpossibleError, match=f"the {kind} {fleet[:20]}.* exists, but this run did not create"):
        bench.launch()
    bench.step("fail", error="LaunchImpossibleError", cause='{"errorMessage": "there is one of that name"}')
    cell = bench.cell()
    assert (cell.status, cell.reason) == (CellStatus.FAILED, "LaunchImpossibleError: there is one of that name")


@pytest.mark.parametrize(
    ("operation", "code", "message"),
    [
        ("CreateAutoScalingGroup", "ValidationError", "You must use a valid fully-formed launch template. Invalid "
         "IamInstanceProfile: arn:aws:iam::123456789012:instance-profile/node"),
        ("CreateAutoScalingGroup", "ValidationError", "The specified launch template does not exist."),
        ("AuthorizeSecurityGroupIngress", "InvalidGroup.NotFound", "The security group 'sg-1' does not exist"),
    ],
)  # fmt: skip
def test_launch_waits_for_a_resource_that_aws_does_not_know_yet(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, operation: str, code: str, message: str
) -> None:
    bench.open()
    left = [TRIES - 1]

    def refuse() -> None:
        left[0] -= 1
        raise ClientError({"Error": {"Code": code, "Message": message}}, operation)

    with calls(monkeypatch, before(operation, refuse, times=TRIES - 1)):
        bench.launch()
    assert left == [0]
    assert len(bench.groups()) == 2


def test_permanent_refusal_is_not_retried(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.open()
    full = refusing("CreateAutoScalingGroup", "LimitExceeded")
    with calls(monkeypatch, full) as operations, pytest.raises(ClientError, match="LimitExceeded"):
        bench.launch()
    assert operations.count("CreateAutoScalingGroup") == 1


def test_a_type_that_too_few_zones_offer_is_refused_with_what_to_do(bench: Bench) -> None:
    wide = replace(BENCHMARK, fleets=(Fleet("drivers", 5, "c5.large", 4, 300, 8),))
    run = Bench(bench.account, images=bench.images).admit(replace(wide, phases=BENCHMARK.phases[1:]), "wide")
    run.open()
    with pytest.raises(LaunchImpossibleError, match=r"needs 4 zones with c5\.large, but only 3 of the network's"):
        run.launch()
    assert not run.groups()
    assert not run.security_groups()


def test_all_cells_and_attempts_use_the_image_of_the_first(bench: Bench) -> None:
    first = dict(bench.images)
    bench.launched()
    bench.drop()
    bench.images["arm64"] = "ami-newer"
    bench.account.change("Runs", {"run": bench.run, "item": f"cell#{CELL}"}, phase="launch")
    bench.launch()
    assert bench.template_data(names.fleet_name(bench.run, CELL, "servers"))["ImageId"] == first["arm64"]


def test_a_fleet_boots_from_the_image_that_its_admission_has_checked(bench: Bench) -> None:
    servers, drivers = BENCHMARK.fleets
    bench.admit(replace(BENCHMARK, fleets=(replace(servers, image="/images/db"), drivers)), "own")
    bench.put(names.image_key(bench.run, "/images/db"), {"id": bench.images["x86_64"], "root_device": "/dev/sda1"})
    bench.launched()
    data = bench.template_data(names.fleet_name(bench.run, CELL, "servers"))
    assert data["ImageId"] == bench.images["x86_64"]
    assert data["BlockDeviceMappings"][0]["DeviceName"] == "/dev/sda1"
    assert bench.template_data(names.fleet_name(bench.run, CELL, "drivers"))["ImageId"] == bench.images["x86_64"]


def test_a_fleet_gets_its_placement_group_before_its_nodes(bench: Bench) -> None:
    servers, drivers = BENCHMARK.fleets
    placed = (replace(servers, placement="spread"), replace(drivers, placement="partition"))
    bench.admit(replace(BENCHMARK, fleets=placed), "placed").launched()
    groups = {g["GroupName"]: g for g in bench.ec2.describe_placement_groups()["PlacementGroups"]}
    own = {role: names.fleet_name(bench.run, CELL, role) for role in ("servers", "drivers")}
    assert {role: groups[name]["Strategy"] for role, name in own.items()} == {
        "servers": "spread",
        "drivers": "partition",
    }
    assert groups[own["drivers"]]["PartitionCount"] == 7
    for role, name in own.items():
        assert bench.template_data(name)["Placement"] == {"GroupName": name}
        tags = {tag["Key"]: tag["Value"] for tag in groups[name]["Tags"]}
        assert (tags["troop:run"], tags["troop:cell"], tags["troop:fleet"]) == (bench.run, CELL, role)
    recorded = {r.name: r for r in bench.runs.resources.get_all(bench.run) if r.kind is Kind.PLACEMENT_GROUP}
    assert set(recorded) == set(own.values())
    assert all(one.created_at for one in recorded.values())


def test_a_placement_group_of_somebody_else_is_not_used(bench: Bench) -> None:
    servers, _ = BENCHMARK.fleets
    bench.admit(replace(BENCHMARK, fleets=(replace(servers, placement="cluster", zones=1),), phases=()), "placed")
    bench.open()
    name = names.fleet_name(bench.run, CELL, "servers")
    bench.ec2.create_placement_group(GroupName=name, Strategy="cluster")
    with pytest.raises(LaunchImpossibleError, match=f"the placement group {name} exists"):
        bench.launch()
    assert bench.groups() == {}
