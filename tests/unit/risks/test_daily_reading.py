"""The daily function: what it reads of an account, by how many calls, and what it records."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from handlers import risks
from tests.unit.account.account import CONTEXT, Account, Call, calls
from tests.unit.account.market import Market
from tests.unit.chaos.build import event, judged
from troop.chaos.aws.event_items import to_item
from troop.risks.aws import resource_reads
from troop.risks.flows import daily_reading
from troop.risks.last_reading import LastReading
from troop.risks.risk import Risk
from troop.risks.wiring.records import risk_table
from troop.shared import moments
from troop.shared.aws.clients import client


def run() -> dict[tuple[str, str], Risk]:
    """Runs the function; returns the risks on record."""
    risks.handler({}, CONTEXT)
    return {risk.key: risk for risk in risk_table().all()}


def last() -> LastReading:
    reading = risk_table().last()
    assert reading
    return reading


def refusing(*operations: str) -> Any:
    def intercept(number: int, operation: str, call: Call) -> Any:
        if operation in operations:
            raise ClientError({"Error": {"Code": "UnauthorizedOperation", "Message": "no"}}, operation)
        return call()

    return intercept


def balanced(account: Account, zones: list[str]) -> str:
    """Creates a load balancer in some zones; returns the ARN of its target group."""
    elbv2, subnets = client("elbv2"), account.ec2.describe_subnets()["Subnets"]
    ids = [one["SubnetId"] for one in subnets if one["AvailabilityZone"] in zones]
    targets = elbv2.create_target_group(Name="web", Protocol="HTTP", Port=80, VpcId=subnets[0]["VpcId"])
    arn = str(targets["TargetGroups"][0]["TargetGroupArn"])
    balancer = elbv2.create_load_balancer(Name="web-lb", Subnets=ids)["LoadBalancers"][0]["LoadBalancerArn"]
    forward = [{"Type": "forward", "TargetGroupArn": arn}]
    elbv2.create_listener(LoadBalancerArn=balancer, Protocol="HTTP", Port=80, DefaultActions=forward)
    return arn


def test_units_have_the_risks_of_their_groups_and_of_their_policy(account: Account) -> None:
    account.group("web", tags={"troop:owner": "shop"}, TargetGroupARNs=[balanced(account, ["eu-central-1a"])])
    account.group("api", 1, HealthCheckType="ELB", HealthCheckGracePeriod=60)
    account.policy("api", opt_out=True, reason="a migration", stop_alarms=["api-5xx"])
    client("autoscaling").suspend_processes(AutoScalingGroupName="api", ScalingProcesses=["Launch"])
    known = run()
    by_unit = {unit: {rule for rule, subject in known if subject == unit} for unit in ("web", "api")}
    assert by_unit == {  # moto knows no image
        "web": {"missing-image", "no-balancer-check", "other-zones", "no-alarm"},
        "api": {"missing-image", "one-instance", "suspended-process", "endless-opt-out"},
    }
    web = known["other-zones", "web"]
    assert (web.owner, web.evidence, web.first_seen) == ("shop", {"groups": ["web"]}, account.clock())
    assert known["endless-opt-out", "api"].evidence == {"by": "item", "reason": "a migration"}
    assert last().subjects["unit"] == 2
    assert last().unread == ()


def test_instances_outside_groups_are_risks_but_not_those_of_groups_and_of_troop(account: Account) -> None:
    account.group("web")
    own = [{"ResourceType": "instance", "Tags": [{"Key": "troop:run", "Value": "r"}]}]
    account.ec2.run_instances(ImageId="ami-12c6146b", MinCount=1, MaxCount=1, TagSpecifications=own)
    tags = [
        {"ResourceType": "instance", "Tags": [{"Key": "Owner", "Value": "data"}, {"Key": "Name", "Value": "bastion"}]}
    ]
    alone = account.ec2.run_instances(ImageId="ami-12c6146b", MinCount=1, MaxCount=1, TagSpecifications=tags)
    account.clock.forward(days=30)
    outside = [risk for (rule, _), risk in run().items() if rule == "outside-groups"]
    assert [(risk.subject, risk.owner) for risk in outside] == [(alone["Instances"][0]["InstanceId"], "data")]
    assert outside[0].evidence["name"] == "bastion"


@pytest.mark.parametrize("tag", resource_reads.KEEPERS)
def test_instances_that_something_else_replaces_are_not_alone(
    account: Account, monkeypatch: pytest.MonkeyPatch, tag: str
) -> None:
    account.ec2.run_instances(ImageId="ami-12c6146b", MinCount=1, MaxCount=1)
    account.clock.forward(days=30)

    def intercept(number: int, operation: str, call: Call) -> Any:
        answer = call()
        for reservation in answer.get("Reservations", []):
            reservation["Instances"][0]["Tags"] = [{"Key": tag, "Value": "x"}]
        return answer

    with calls(monkeypatch, intercept):
        assert run() == {}


LIVE, DEAD = "a live image", "ami-0dead"


@pytest.mark.parametrize(
    ("versions", "launched", "wants", "images"),
    [
        ([DEAD, LIVE], "1", "$Latest", []),
        ([DEAD, LIVE], "1", "2", []),
        ([LIVE, DEAD], "1", "$Latest", [DEAD]),
        ([LIVE, DEAD], "1", "$Default", []),
        ([DEAD, LIVE], "2", "$Default", [DEAD]),
        ([LIVE, DEAD, LIVE], "2", "2", [DEAD]),  # neither the latest nor the default: judged by an instance of it
        ([LIVE, DEAD, LIVE], "1", "2", []),  # not known
        ([DEAD, "resolve:ssm:/images/web"], "1", "$Latest", []),  # not known
    ],
)
def test_images_are_those_that_a_group_launches_next(
    account: Account,
    monkeypatch: pytest.MonkeyPatch,
    versions: list[str],
    launched: str,
    wants: str,
    images: list[str],
) -> None:
    alone = account.ec2.run_instances(ImageId="ami-12c6146b", MinCount=1, MaxCount=1)["Instances"][0]["InstanceId"]
    live = account.ec2.create_image(InstanceId=alone, Name="golden")["ImageId"]
    data = [{"ImageId": live if image == LIVE else image} for image in versions]
    account.ec2.create_launch_template(LaunchTemplateName="web", LaunchTemplateData=data[0])
    for one in data[1:]:
        account.ec2.create_launch_template_version(LaunchTemplateName="web", LaunchTemplateData=one)
    account.group("web", 0)
    for version in (launched, wants):
        template = {"LaunchTemplateName": "web", "Version": version}
        account.autoscaling.update_auto_scaling_group(
            AutoScalingGroupName="web", LaunchTemplate=template, DesiredCapacity=2
        )

    def intercept(number: int, operation: str, call: Call) -> Any:
        answer = call()
        for group in answer.get("AutoScalingGroups", []):
            for instance in group["Instances"]:
                instance["LaunchTemplate"]["Version"] = launched  # moto names the default version
        return answer

    with calls(monkeypatch, intercept):
        missing = run().get(("missing-image", "web"))
    assert (missing.evidence["images"] if missing else []) == images


@pytest.mark.parametrize(
    ("distribution", "requirements", "expected"),
    [
        ({"OnDemandPercentageAboveBaseCapacity": 0}, False, True),
        ({"OnDemandPercentageAboveBaseCapacity": 20}, False, False),
        ({"OnDemandPercentageAboveBaseCapacity": 0, "OnDemandBaseCapacity": 1}, False, False),
        ({"OnDemandPercentageAboveBaseCapacity": 0}, True, False),
        ({}, False, False),
    ],
)
def test_a_group_is_on_one_spot_type_without_any_other_part(
    account: Account, distribution: dict[str, int], requirements: bool, expected: bool
) -> None:
    kind: dict[str, Any] = {"InstanceType": "m7g.large"}
    if requirements:
        kind = {"InstanceRequirements": {"VCpuCount": {"Min": 2}, "MemoryMiB": {"Min": 4096}}}
    data = {"ImageId": "ami-12c6146b", **kind}
    account.ec2.create_launch_template(LaunchTemplateName="web", LaunchTemplateData=data)
    template = {"LaunchTemplateSpecification": {"LaunchTemplateName": "web", "Version": "$Latest"}}
    policy = {"LaunchTemplate": template, "InstancesDistribution": distribution}
    account.group("web", 0)
    account.autoscaling.update_auto_scaling_group(AutoScalingGroupName="web", MixedInstancesPolicy=policy)
    assert (("one-spot-type", "web") in run()) is expected


def test_leftovers_have_a_price_for_a_month(account: Account) -> None:
    volume = account.ec2.create_volume(AvailabilityZone="eu-central-1a", Size=100, VolumeType="gp3", Iops=4000)
    snapshot = account.ec2.create_snapshot(VolumeId=volume["VolumeId"])["SnapshotId"]
    address = account.ec2.allocate_address(Domain="vpc")["AllocationId"]
    fresh = run()
    assert fresh["unattached-volume", volume["VolumeId"]].evidence["is"] == "100 GiB gp3"
    prices = {subject: str(risk.monthly.amount) for (_, subject), risk in fresh.items() if risk.monthly}
    assert prices == {volume["VolumeId"]: "15.52", address: "3.65"}
    account.clock.forward(days=800)
    old = run()
    assert old["old-snapshot", snapshot].evidence["price"] == "at most"
    assert str(old["old-snapshot", snapshot].monthly) == "Price(amount=Decimal('5.40'), currency='USD')"
    template = next(risk for (rule, _), risk in old.items() if rule == "unused-template")
    assert (template.evidence["is"], template.monthly) == ("nodes", None)


def test_a_snapshot_of_an_image_and_a_template_of_a_group_are_in_use(account: Account) -> None:
    account.group("web")
    account.ec2.create_image(InstanceId=account.instances("web")[0], Name="golden")
    account.clock.forward(days=800)
    assert {rule for rule, _ in run()}.isdisjoint({"old-snapshot", "unused-template"})


def test_a_snapshot_that_people_cannot_delete_is_in_use(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    volume = account.ec2.create_volume(AvailabilityZone="eu-central-1a", Size=8, VolumeType="gp3")["VolumeId"]
    backup, disabled, old = (account.ec2.create_snapshot(VolumeId=volume)["SnapshotId"] for _ in range(3))
    account.clock.forward(days=800)

    def intercept(number: int, operation: str, call: Call) -> Any:
        if operation == "DescribeImages" and call.args[-1].get("IncludeDisabled"):
            return {"Images": [{"ImageId": "ami-1", "BlockDeviceMappings": [{"Ebs": {"SnapshotId": disabled}}]}]}
        answer = call()
        for one in answer.get("Snapshots", []):
            if one["SnapshotId"] == backup:
                one["Tags"] = [{"Key": "aws:backup:source-resource", "Value": volume}]
        return answer

    with calls(monkeypatch, intercept):
        known = run()
    assert [subject for rule, subject in known if rule == "old-snapshot" and subject in (backup, disabled, old)] == [
        old
    ]


def test_a_template_of_a_stopped_instance_is_in_use_and_with_eks_nobody_knows(account: Account) -> None:
    started = account.ec2.run_instances(LaunchTemplate={"LaunchTemplateName": "nodes"}, MinCount=1, MaxCount=1)
    account.ec2.stop_instances(InstanceIds=[started["Instances"][0]["InstanceId"]])
    account.clock.forward(days=800)
    assert "unused-template" not in {rule for rule, _ in run()}
    assert last().subjects["instance"] == 0
    account.ec2.create_launch_template(LaunchTemplateName="other", LaunchTemplateData={"ImageId": "ami-12c6146b"})
    assert "unused-template" in {rule for rule, _ in run()}
    account.group("nodes", tags={"eks:nodegroup-name": "nodes"})
    assert next(risk for (rule, _), risk in run().items() if rule == "unused-template").unknown


def test_prices_that_cannot_be_read_are_unknown(account: Account, market: Market) -> None:
    market.fails["GetProducts"] = "AccessDeniedException"
    volume = account.ec2.create_volume(AvailabilityZone="eu-central-1a", Size=100, VolumeType="gp3")["VolumeId"]
    assert run()["unattached-volume", volume].monthly is None
    assert last().unread == ("prices could not be read: AccessDeniedException",)


@pytest.mark.parametrize("settings", [{}], indirect=True)
def test_a_region_without_a_price_list_says_so(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("troop.risks.wiring.survey.region_of_list", lambda region: None)
    run()
    assert last().unread == ("there is no price list for this Region: all prices are unknown",)


def test_a_listing_that_is_refused_stops_no_other_and_ends_no_risk(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    volume = account.ec2.create_volume(AvailabilityZone="eu-central-1a", Size=8, VolumeType="gp3")["VolumeId"]
    account.group("web", TargetGroupARNs=[balanced(account, ["eu-central-1a"])])
    first = run()
    account.clock.forward(days=1)
    with calls(monkeypatch, refusing("DescribeVolumes", "DescribeTargetGroups", "DescribeImages")):
        second = run()
    assert last().unread == (
        "volumes could not be read: UnauthorizedOperation",
        "images could not be read: UnauthorizedOperation",
        "target groups could not be read: UnauthorizedOperation",
        "the account's images could not be read: UnauthorizedOperation",
    )
    for key in (("unattached-volume", volume), ("other-zones", "web")):
        assert second[key] == replace(first[key], unknown=second[key].unknown)
        assert second[key].unknown
    assert second["no-alarm", "web"].last_seen == account.clock()


def test_a_limit_of_pages_ends_no_risk(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.ec2.create_volume(AvailabilityZone="eu-central-1a", Size=8, VolumeType="gp3")
    first = run()
    monkeypatch.setattr(resource_reads, "VOLUME_PAGES", 0)
    assert run().keys() == first.keys()
    assert last().unread == ("only the first 0 volumes were read",)


def test_events_measure_the_boot_and_confirm_what_they_broke_for(account: Account) -> None:
    account.clock.moment = event().at
    targets = balanced(account, ["eu-central-1a"])
    account.group("web", HealthCheckType="ELB", HealthCheckGracePeriod=30, TargetGroupARNs=[targets])
    healthy = judged().stages
    assert healthy
    stages = replace(healthy, healthy=healthy.healthy[:1])
    earlier = event().at - timedelta(days=1)
    account.put("Events", to_item(judged(event_id="2026-11-19#web", at=earlier, stages=stages, verdict=None)))
    known = run()
    assert known["short-grace", "web"].evidence == {"grace s": 30, "boot s": 120.0, "groups": ["web"]}
    assert known["short-grace", "web"].confirmed == ""
    account.clock.forward(hours=4)
    lost = judged(stages=stages, hypothesis=replace(judged().hypothesis, recovery_within=100))  # type: ignore[type-var]
    account.put("Events", to_item(lost))
    known = run()
    assert known["short-grace", "web"].confirmed == lost.event_id
    assert (known["other-zones", "web"].confirmed, known["no-alarm", "web"].confirmed) == ("", "")


def test_events_that_could_not_be_read_in_time_end_no_risk(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web")
    for days in range(9):
        one = judged(event_id=f"{days}#web", at=event().at - timedelta(days=days))
        assert one.recovered_at
        took = timedelta(0) if days else timedelta(hours=1)
        account.put("Events", to_item(replace(one, recovered_at=one.recovered_at + took)))
    account.clock.moment = event().at + timedelta(days=1)
    first = run()
    assert first["slower-recovery", "web"].unknown == ""
    monkeypatch.setattr(daily_reading, "LONGEST", -1.0)
    monkeypatch.setattr(daily_reading, "READS", 1)
    monkeypatch.setattr(daily_reading, "EXAMINED", 4)
    account.clock.forward(days=1)
    second = run()
    assert second["slower-recovery", "web"].gone_since is None
    assert second["slower-recovery", "web"].unknown
    assert "could not be read in time" in last().unread[-1]


def test_a_unit_was_never_hit_only_once_it_could_be_for_long(account: Account) -> None:
    account.group("web")
    account.clock.forward(days=300)  # the group is old when the deployment reads it first
    assert ("never-hit", "web") not in run()
    account.clock.forward(days=90)
    assert run()["never-hit", "web"].evidence == {"hits": 0, "days": 90}
    account.policy("web", opt_in=True, changed_at=moments.iso(account.clock()))
    assert run()["never-hit", "web"].gone_since


def test_the_worst_risks_are_recorded_and_the_others_counted(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web", 1)
    monkeypatch.setattr(daily_reading, "MOST_RECORDED", 1)
    account.ec2.create_volume(AvailabilityZone="eu-central-1a", Size=8, VolumeType="gp3")
    assert {rule for rule, _ in run()} == {"missing-image"}
    assert last().unrecorded == 3


def test_a_reading_makes_few_calls_and_changes_nothing(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("web", "api", "db"):
        account.group(name, tags={"troop:unit": name})
    with calls(monkeypatch) as operations:
        run()
    counted = Counter(operations)
    writes = {name for name in counted if not name.startswith(("Describe", "Query", "Scan", "Get"))}
    assert writes == {"BatchWriteItem"}
    assert sum(counted.values()) <= 25
    assert max(count for name, count in counted.items() if name.startswith("Describe")) == 2


def test_decisions_of_units_do_not_show_risks(account: Account) -> None:
    account.group("web")
    run()
    account.decide()
    assert [unit for unit in account.decisions() if not unit.isprintable()] == ["\trisks"]
    items = client("dynamodb").query(
        TableName="Decisions",
        IndexName="by-day",
        KeyConditionExpression="day_shard = :day",
        ExpressionAttributeValues={":day": {"S": f"{date(2026, 11, 20)}#0"}},
    )["Items"]
    assert all(item["unit"]["S"] != "\trisks" for item in items)
