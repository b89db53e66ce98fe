"""Steps try permissions with roles and tables of their own."""

from __future__ import annotations

import boto3

from cli.prove.ledger import PREFIX
from cli.prove.probes import Probes
from troop.shared.state_keys import SWITCH, UNIT


def test_role_has_only_its_permissions_and_only_this_caller_assumes_it(probes: Probes, account: boto3.Session) -> None:
    ec2, iam = account.client("ec2"), account.client("iam")
    image = ec2.register_image(Name="image")["ImageId"]
    other, ended = (one["InstanceId"] for one in ec2.run_instances(ImageId=image, MinCount=2, MaxCount=2)["Instances"])
    ec2.terminate_instances(InstanceIds=[ended])
    ec2.create_tags(Resources=[ended], Tags=[{"Key": "aws:autoscaling:groupName", "Value": "web"}])
    before = {role["RoleName"] for role in iam.list_roles()["Roles"]}
    (answer,) = probes.late_termination()
    assert (answer["has_tag"], answer["code"]) == (True, "DryRunOperation")
    assert probes.attribute_condition() == {"allowed": "success", "other": "success"}, "moto knows no dry run here"
    assert probes.absent_role() == "NoSuchEntity"
    roles = [role for role in iam.list_roles()["Roles"] if role["RoleName"] not in before]
    assert len(roles) == 3
    actions = set()
    for role in roles:
        assert role["RoleName"].startswith(PREFIX)
        (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
        caller = account.client("sts").get_caller_identity()["UserId"]
        assert trust["Condition"] == {"StringEquals": {"aws:userid": caller}}
        policy = iam.get_role_policy(RoleName=role["RoleName"], PolicyName="probe")["PolicyDocument"]
        actions |= {statement["Action"] for statement in policy["Statement"]}
        assert iam.list_role_tags(RoleName=role["RoleName"])["Tags"][0]["Key"] == "troop:prove"
    assert actions == {"ec2:TerminateInstances", "ec2:DescribeInstanceAttribute", "iam:GetRole"}
    assert probes.ledger.remove_all()
    assert {role["RoleName"] for role in iam.list_roles()["Roles"]} == before
    state = ec2.describe_instances(InstanceIds=[other])["Reservations"][0]["Instances"][0]["State"]["Name"]
    assert state == "running"


def test_the_items_of_a_transaction_are_tried_on_a_table_of_their_own(probes: Probes, account: boto3.Session) -> None:
    dynamodb = account.client("dynamodb")
    assert set(probes.leading_keys().values()) == {"success"}, "moto checks no permissions"
    (table,) = dynamodb.list_tables()["TableNames"]
    assert table.startswith(PREFIX)
    keys = {item["key"]["S"] for item in dynamodb.scan(TableName=table)["Items"]}
    assert keys == {f"{UNIT}probe", SWITCH}
    assert probes.ledger.remove_all()
    assert dynamodb.list_tables()["TableNames"] == []
