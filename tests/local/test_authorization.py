"""EC2, Auto Scaling and load balancing behind IAM: signatures, roles, conditions on tags, explicit denials."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.patience import eventually

from .helpers import Fleet, World, allow, unique

GROUPED = {"Null": {"aws:ResourceTag/aws:autoscaling:groupName": "false"}}


@pytest.fixture(scope="module")
def instances(fleet: Fleet) -> dict[str, str]:
    """An instance each of a plain group ("plain"), of a protected one ("protected"), and of none ("single")."""
    plain, protected = fleet.group(1), fleet.group(1, tags={"troop:protected": "true"})
    single = fleet.ec2.run_instances(ImageId="ami-12345678", MinCount=1, MaxCount=1)["Instances"][0]["InstanceId"]
    return {
        "plain": next(iter(fleet.members(plain))),
        "protected": next(iter(fleet.members(protected))),
        "single": single,
    }


def attempt(world: World, role: str, service: str, call: str, **arguments: Any) -> str:
    """ "allowed", or the error's code."""
    client = world.account.client(service, world.as_role(role))
    try:
        getattr(client, call)(**arguments)
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return "allowed"


def terminate(world: World, role: str, instance: str) -> str:
    return attempt(world, role, "ec2", "terminate_instances", InstanceIds=[instance])


@pytest.mark.parametrize(
    ("service", "call", "action", "refused"),
    [
        ("ec2", "describe_instances", "ec2:DescribeInstances", "UnauthorizedOperation"),
        ("autoscaling", "describe_auto_scaling_groups", "autoscaling:DescribeAutoScalingGroups", "AccessDenied"),
        ("elb", "describe_load_balancers", "elasticloadbalancing:DescribeLoadBalancers", "AccessDenied"),
        ("elbv2", "describe_target_groups", "elasticloadbalancing:DescribeTargetGroups", "AccessDenied"),
    ],
)
def test_an_action_has_to_be_allowed(world: World, service: str, call: str, action: str, refused: str) -> None:
    assert attempt(world, world.role(), service, call) == refused
    assert attempt(world, world.role(allow(action)), service, call) == "allowed"
    denied = world.role(allow("*"), {"Effect": "Deny", "Action": action, "Resource": "*"})
    assert attempt(world, denied, service, call) == refused


def test_conditions_on_tags_of_instances(world: World, instances: dict[str, str]) -> None:
    arn = "arn:aws:ec2:us-east-1:000000000000:instance/*"
    protected = {"Null": {"aws:ResourceTag/troop:protected": "false"}}
    deny = {"Effect": "Deny", "Action": "ec2:TerminateInstances", "Resource": "*", "Condition": protected}
    role = world.role(allow("ec2:TerminateInstances", arn, Condition=GROUPED), deny)
    assert terminate(world, role, instances["single"]) == "UnauthorizedOperation"
    assert terminate(world, role, instances["protected"]) == "UnauthorizedOperation"
    assert terminate(world, role, instances["plain"]) == "allowed"


def test_attributes_of_an_instance_are_described_by_resource(world: World, instances: dict[str, str]) -> None:
    other = {"InstanceId": instances["single"], "Attribute": "disableApiTermination"}
    arn = f"arn:aws:ec2:*:*:instance/{instances['plain']}"
    role = world.role(allow("ec2:DescribeInstanceAttribute", arn))
    assert attempt(world, role, "ec2", "describe_instance_attribute", **other) == "UnauthorizedOperation"
    assert attempt(world, role, "ec2", "describe_instance_attribute", **other | {"InstanceId": instances["plain"]}) == (
        "allowed"
    )


def test_all_named_resources_have_to_be_allowed(world: World, fleet: Fleet, instances: dict[str, str]) -> None:
    role = world.role(allow("ec2:TerminateInstances", Condition=GROUPED))
    grouped = next(iter(fleet.members(fleet.group(1))))
    client = fleet.account.client("ec2", world.as_role(role))
    with pytest.raises(ClientError, match="UnauthorizedOperation"):
        client.terminate_instances(InstanceIds=[grouped, instances["single"]])
    assert fleet.instance(grouped)["State"]["Name"] == "running"


@pytest.mark.parametrize("prefix", ["aws", "autoscaling"])
def test_conditions_on_tags_of_groups(world: World, fleet: Fleet, prefix: str) -> None:
    condition = {"StringEquals": {f"{prefix}:ResourceTag/team": "blue"}}
    role = world.role(allow("autoscaling:TerminateInstanceInAutoScalingGroup", Condition=condition))
    for team, expected in (("red", "AccessDenied"), ("blue", "allowed")):
        (instance,) = fleet.members(fleet.group(1, tags={"team": team}))
        call = {"InstanceId": instance, "ShouldDecrementDesiredCapacity": False}
        assert attempt(world, role, "autoscaling", "terminate_instance_in_auto_scaling_group", **call) == expected


def test_conditions_on_names_of_groups(world: World, fleet: Fleet) -> None:
    named = "arn:aws:autoscaling:us-east-1:000000000000:autoScalingGroup:*:autoScalingGroupName/{}"
    group = fleet.group(1)
    others, own = (world.role(allow("autoscaling:DeleteAutoScalingGroup", named.format(one))) for one in ("x-*", group))
    call = {"AutoScalingGroupName": group, "ForceDelete": True}
    assert attempt(world, others, "autoscaling", "delete_auto_scaling_group", **call) == "AccessDenied"
    assert attempt(world, own, "autoscaling", "delete_auto_scaling_group", **call) == "allowed"


def test_a_condition_on_the_instance_profile(world: World, fleet: Fleet) -> None:
    profile, other = world.profile(world.role()), world.profile(world.role())
    data = {"ImageId": "ami-12345678", "InstanceType": "t3.micro", "IamInstanceProfile": {"Arn": profile}}
    template = fleet.ec2.create_launch_template(LaunchTemplateName=unique("profile"), LaunchTemplateData=data)
    named = {"LaunchTemplateId": template["LaunchTemplate"]["LaunchTemplateId"]}
    (node,) = fleet.ec2.run_instances(LaunchTemplate=named, MinCount=1, MaxCount=1)["Instances"]
    (plain,) = fleet.ec2.run_instances(ImageId="ami-12345678", MinCount=1, MaxCount=1)["Instances"]

    def role(arn: str) -> str:
        return world.role(allow("ec2:TerminateInstances", Condition={"ArnEquals": {"ec2:InstanceProfile": arn}}))

    assert terminate(world, role(other), node["InstanceId"]) == "UnauthorizedOperation"
    assert terminate(world, role(profile), plain["InstanceId"]) == "UnauthorizedOperation"
    assert terminate(world, role(profile), node["InstanceId"]) == "allowed"


def test_a_condition_on_the_network_of_a_security_group(world: World, fleet: Fleet) -> None:
    vpcs = [fleet.ec2.create_vpc(CidrBlock=f"10.{n}.0.0/16")["Vpc"]["VpcId"] for n in (71, 72)]
    own, other = (
        fleet.ec2.create_security_group(GroupName=unique("net"), Description="x", VpcId=vpc)["GroupId"] for vpc in vpcs
    )
    condition = {"ArnEquals": {"ec2:Vpc": f"arn:aws:ec2:us-east-1:000000000000:vpc/{vpcs[0]}"}}
    role = world.role(allow("ec2:DeleteSecurityGroup", Condition=condition))
    assert attempt(world, role, "ec2", "delete_security_group", GroupId=other) == "UnauthorizedOperation"
    assert attempt(world, role, "ec2", "delete_security_group", GroupId=own) == "allowed"


def test_a_condition_on_the_encryption_of_a_volume(world: World, fleet: Fleet) -> None:
    plain, encrypted = (
        fleet.ec2.create_volume(AvailabilityZone="us-east-1a", Size=1, Encrypted=one)["VolumeId"]
        for one in (False, True)
    )
    role = world.role(allow("ec2:DeleteVolume", Condition={"Bool": {"ec2:Encrypted": "true"}}))
    assert attempt(world, role, "ec2", "delete_volume", VolumeId=plain) == "UnauthorizedOperation"
    assert attempt(world, role, "ec2", "delete_volume", VolumeId=encrypted) == "allowed"


def test_an_unmodelled_call_is_refused_to_roles_that_name_resources(world: World) -> None:
    role = world.role(allow("ec2:CreateVolume", "arn:aws:ec2:us-east-1:000000000000:volume/*"))
    call = {"AvailabilityZone": "us-east-1a", "Size": 1}
    assert attempt(world, role, "ec2", "create_volume", **call) == "UnauthorizedOperation"


def test_signatures_are_verified(world: World) -> None:
    account = world.account
    root = account.exports["AWS_ACCESS_KEY_ID"]
    forged = account.session(aws_access_key_id=root, aws_secret_access_key="guess")
    with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
        account.client("ec2", forged).describe_instances()
    unknown = account.session(aws_access_key_id="AKIAABCDEFGHIJKLMNOP", aws_secret_access_key="guess")
    with pytest.raises(ClientError, match="AuthFailure"):
        account.client("ec2", unknown).describe_instances()
    body = b"Action=DescribeInstances&Version=2016-11-15"
    with pytest.raises(urllib.error.HTTPError) as unsigned:
        urllib.request.urlopen(urllib.request.Request(account.endpoint("ec2"), data=body))
    assert b"MissingAuthenticationToken" in unsigned.value.read()


def test_other_services_are_not_served_here(world: World) -> None:
    session = world.account.session()
    client = session.client("sqs", endpoint_url=world.account.endpoint("ec2"))
    with pytest.raises(ClientError):
        client.list_queues()


FUNCTION = """
import boto3
def handler(event, context):
    return len(boto3.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"])
"""


def test_functions_call_as_their_role_and_it_is_recorded(world: World) -> None:
    role = world.role(allow("autoscaling:DescribeAutoScalingGroups"))
    assert isinstance(invoke(world, world.function(FUNCTION, role)), int)
    assert "AccessDenied" in invoke(world, world.function(FUNCTION))["errorMessage"]
    assert {
        "caller": role,
        "action": "autoscaling:DescribeAutoScalingGroups",
        "resource": "*",
        "decision": "Allow",
        "source": "gate",
        "count": 1,
    } in world.account.decisions()


def invoke(world: World, function: str) -> Any:
    return json.load(world.functions.invoke(FunctionName=function)["Payload"])


def test_the_accounts_own_decisions_are_recorded(world: World) -> None:
    role = world.role(allow("dynamodb:ListTables"))
    client = world.account.client("dynamodb", world.as_role(role))
    client.list_tables()
    with pytest.raises(ClientError, match="AccessDenied"):
        client.describe_table(TableName="there-is-none")
    entries = [entry for entry in world.account.decisions() if entry["caller"] == role]
    assert [(one["action"], one["decision"], one["source"]) for one in entries] == [
        ("dynamodb:ListTables", "Allow", "account"),
        ("dynamodb:DescribeTable", "ImplicitDeny", "account"),
    ]


def test_a_stream_is_read_by_those_who_may_read_it(world: World) -> None:
    dynamodb = world.account.client("dynamodb")
    streams = []
    for _ in range(2):
        table = dynamodb.create_table(
            TableName=unique("streamed"),
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        )
        streams.append(table["TableDescription"]["LatestStreamArn"])
    own, others = streams
    actions = ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"]
    client = world.account.client("dynamodbstreams", world.as_role(world.role(allow(actions, own))))
    (shard,) = client.describe_stream(StreamArn=own)["StreamDescription"]["Shards"]
    which = {"ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
    assert client.get_records(ShardIterator=client.get_shard_iterator(StreamArn=own, **which)["ShardIterator"])
    foreign = world.account.client("dynamodbstreams").get_shard_iterator(StreamArn=others, **which)["ShardIterator"]
    for refused in (
        lambda: client.get_shard_iterator(StreamArn=others, **which),
        lambda: client.get_records(ShardIterator=foreign),
    ):
        with pytest.raises(ClientError, match="AccessDenied"):
            refused()


def test_a_condition_on_the_keys_of_items(world: World) -> None:
    """In a transaction, the key of a condition check is none of the updates'."""
    table = unique("keyed")
    root = world.account.client("dynamodb")
    arn = root.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
    )["TableDescription"]["TableArn"]
    own = {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["unit#*"]},
        "Null": {"dynamodb:LeadingKeys": "false"},
    }
    writes = ["dynamodb:BatchWriteItem", "dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem"]
    denied = {
        **allow("dynamodb:*", Condition={"ForAnyValue:StringEquals": {"dynamodb:LeadingKeys": ["switch"]}}),
        "Effect": "Deny",
        "Action": writes,
    }
    narrow = world.role(allow(writes, arn, Condition=own), allow("dynamodb:ConditionCheckItem", arn))
    wide = world.role(allow([*writes, "dynamodb:ConditionCheckItem"], arn), denied)

    def written(role: str, key: str) -> set[str]:
        where = {"key": {"S": key}}
        change = {"TableName": table, "Key": where, "UpdateExpression": "REMOVE a"}
        unset = {"TableName": table, "ConditionExpression": "attribute_not_exists(a)"}
        checked = {"ConditionCheck": {**unset, "Key": {"key": {"S": "switch" if key != "switch" else "unit#b"}}}}
        good = {"Update": {**change, "Key": {"key": {"S": "unit#a"}}}}
        both = [good, {"Update": change}] if key != "unit#a" else [good]
        calls: dict[str, Any] = {
            "update_item": change,
            "put_item": {"TableName": table, "Item": where},
            "delete_item": {"TableName": table, "Key": where},
            "batch_write_item": {"RequestItems": {table: [{"PutRequest": {"Item": where}}]}},
            "transact_write_items": {"TransactItems": [checked, *both]},
        }
        return {attempt(world, role, "dynamodb", call, **arguments) for call, arguments in calls.items()}

    assert written(narrow, "unit#a") == {"allowed"}
    assert written(narrow, "switch") == written(narrow, "day#unit#a") == {"AccessDeniedException"}
    assert written(wide, "day#unit#a") == {"allowed"}
    assert written(wide, "switch") == {"AccessDeniedException"}


def test_a_policy_allows_only_uploads_on_a_condition(world: World) -> None:
    bucket = unique("once")
    world.account.client("s3").create_bucket(Bucket=bucket)
    once = {"Null": {"s3:if-none-match": "false"}}
    role = world.role(allow("s3:PutObject", f"arn:aws:s3:::{bucket}/*", Condition=once))

    def put(**more: str) -> str:
        return attempt(world, role, "s3", "put_object", Bucket=bucket, Key="key", Body=b"x", **more)

    assert put() == put(IfMatch='"x"') == "AccessDenied"
    assert [put(IfNoneMatch="*"), put(IfNoneMatch="*")] == ["allowed", "PreconditionFailed"]
    assert attempt(world, role, "s3", "create_multipart_upload", Bucket=bucket, Key="key") == "AccessDenied"


def test_groups_use_networks_of_cloudformation(world: World, fleet: Fleet) -> None:
    template = {
        "Resources": {
            "Vpc": {
                "Type": "AWS::EC2::VPC",
                "Properties": {"CidrBlock": "10.9.0.0/16", "Tags": [{"Key": "a", "Value": "b"}]},
            },
            "Subnet": {
                "Type": "AWS::EC2::Subnet",
                "Properties": {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.9.1.0/24", "AvailabilityZone": "us-east-1b"},
            },
            "Group": {
                "Type": "AWS::EC2::SecurityGroup",
                "Properties": {"VpcId": {"Ref": "Vpc"}, "GroupDescription": "of a test"},
            },
        },
        "Outputs": {"Vpc": {"Value": {"Ref": "Vpc"}}, "Group": {"Value": {"Fn::GetAtt": ["Group", "GroupId"]}}},
    }
    stacks, name = world.account.client("cloudformation"), unique("network")
    stacks.create_stack(StackName=name, TemplateBody=json.dumps(template))
    stack = eventually(
        lambda: [
            one for one in stacks.describe_stacks(StackName=name)["Stacks"] if one["StackStatus"] == "CREATE_COMPLETE"
        ]
    )[0]
    outputs = {one["OutputKey"]: one["OutputValue"] for one in stack["Outputs"]}
    vpc = fleet.ec2.describe_vpcs(VpcIds=[outputs["Vpc"]])["Vpcs"][0]
    assert (vpc["CidrBlock"], {"Key": "a", "Value": "b"} in vpc["Tags"]) == ("10.9.0.0/16", True)
    subnet = fleet.ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [outputs["Vpc"]]}])["Subnets"][0]
    template_id = fleet.ec2.create_launch_template(
        LaunchTemplateName=unique("networked"),
        LaunchTemplateData={
            "ImageId": "ami-12345678",
            "InstanceType": "t3.micro",
            "SecurityGroupIds": [outputs["Group"]],
        },
    )["LaunchTemplate"]["LaunchTemplateId"]
    group = unique("networked")
    fleet.groups.create_auto_scaling_group(
        AutoScalingGroupName=group,
        MinSize=0,
        MaxSize=1,
        DesiredCapacity=1,
        VPCZoneIdentifier=subnet["SubnetId"],
        LaunchTemplate={"LaunchTemplateId": template_id},
    )
    (instance,) = fleet.members(group)
    assert fleet.instance(instance)["SubnetId"] == subnet["SubnetId"]
    assert [one["GroupId"] for one in fleet.instance(instance)["SecurityGroups"]] == [outputs["Group"]]


def test_a_resource_of_another_type_allows_nothing(world: World) -> None:
    """IAM asks for the profile, to which the role is added."""
    added = world.role()
    name = unique("profile")
    world.iam.create_instance_profile(InstanceProfileName=name)
    call = {"InstanceProfileName": name, "RoleName": added.rpartition("/")[2]}
    action = "iam:AddRoleToInstanceProfile"
    needed = allow("iam:PassRole", added)
    by_role, by_all = world.role(needed, allow(action, added)), world.role(needed, allow(action))
    assert attempt(world, by_role, "iam", "add_role_to_instance_profile", **call) == "AccessDenied"
    assert attempt(world, by_all, "iam", "add_role_to_instance_profile", **call) == "allowed"


@pytest.mark.parametrize(("action", "expected"), [("SendMessage", "allowed"), ("SendMessageBatch", "AccessDenied")])
def test_a_batch_needs_the_action_of_a_single_request(world: World, action: str, expected: str) -> None:
    sqs = world.account.client("sqs")
    url = sqs.create_queue(QueueName=unique("queue"))["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    role, entries = world.role(allow(f"sqs:{action}", arn)), [{"Id": "1", "MessageBody": "x"}]
    assert attempt(world, role, "sqs", "send_message_batch", QueueUrl=url, Entries=entries) == expected


def test_log_group_permission_needs_the_groups_name_with_a_star(world: World) -> None:
    logs, name = world.account.client("logs"), unique("/group")
    logs.create_log_group(logGroupName=name, tags={"team": "x"})
    logs.create_log_stream(logGroupName=name, logStreamName="s")
    calls: dict[str, dict[str, Any]] = {"get_log_events": {"logStreamName": "s"}, "filter_log_events": {}}
    tagged = {"StringEquals": {"aws:ResourceTag/team": "x"}}
    own_arn, other_arn = (f"arn:aws:logs:*:*:log-group:{one}:*" for one in (name, name + "x"))
    role, other = (world.role(allow("logs:*", arn, Condition=tagged)) for arn in (own_arn, other_arn))
    for call, more in calls.items():
        assert attempt(world, role, "logs", call, logGroupName=name, **more) == "allowed"
        assert attempt(world, other, "logs", call, logGroupName=name, **more) == "AccessDeniedException"


def test_a_rule_of_the_default_bus_does_not_name_it(world: World) -> None:
    name = unique("rule")
    role = world.role(allow("events:*", f"arn:aws:events:*:*:rule/{name}"))
    rule = {"Name": name, "ScheduleExpression": "rate(1 day)"}
    target = {"Id": "1", "Arn": "arn:aws:sqs:us-east-1:000000000000:q"}
    assert attempt(world, role, "events", "put_rule", **rule) == "allowed"
    assert attempt(world, role, "events", "put_targets", Rule=name, Targets=[target]) == "allowed"
    assert attempt(world, role, "events", "put_rule", **rule | {"Name": name + "x"}) == "AccessDeniedException"
