"""What surrounds a deployment in its account: Lambda's limits, roles of services, and what stays when a stack goes."""

from __future__ import annotations

import json

import pytest
from botocore.exceptions import ClientError

from troop.bench.aws.service_roles import SPREADING, ServiceRoles
from troop.bench.fleets.fleet_requests import LaunchImpossibleError
from troop.chaos.aws.account_reads import AccountReads
from troop.chaos.aws.earlier_tables import EarlierTables
from troop.shared.concurrency import Concurrency
from troop.shared.service_roles import AUTO_SCALING, SPOT
from troop.shared.tags import DATA_TAG, DECLINED_TAG, DEPLOYMENT_TAG

from .helpers import World, allow, code, unique
from .test_cloudformation import settled

TABLE = {
    "Type": "AWS::DynamoDB::Table",
    "DeletionPolicy": "Retain",
    "Properties": {
        "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    },
}


def earlier(world: World, role: str, deployment: str = "None") -> EarlierTables:
    tagging, dynamodb = (
        world.account.client(service, world.as_role(role)) for service in ("resourcegroupstaggingapi", "dynamodb")
    )
    return EarlierTables(tagging, dynamodb, deployment, parts=["State"], own=())


def concurrency(world: World, role: str) -> Concurrency:
    lambda_ = world.account.client("lambda", world.as_role(role))
    return AccountReads(lambda_, earlier(world, role)).concurrency()


def test_how_many_functions_run_at_a_time_has_to_be_allowed(world: World) -> None:
    read = concurrency(world, world.role(allow("lambda:GetAccountSettings")))
    assert read.limit >= read.unreserved > 0
    assert read.region == "us-east-1"
    with pytest.raises(ClientError, match="lambda:GetAccountSettings") as refused:
        concurrency(world, world.role())
    assert "AccessDenied" in code(refused)


def test_a_retained_table_is_known_by_the_tags_of_people_alone(world: World) -> None:
    """DynamoDB has no tags of CloudFormation. Whether the table is empty is known without a right to read its items."""
    stacks, dynamodb, name = world.account.client("cloudformation"), world.account.client("dynamodb"), unique("Left")
    tags = [{"Key": DEPLOYMENT_TAG, "Value": name}, {"Key": DATA_TAG, "Value": "State"}]
    table = {**TABLE, "Properties": {**TABLE["Properties"], "Tags": tags}}  # type: ignore[dict-item]
    template = json.dumps({"Resources": {"State": table}, "Outputs": {"State": {"Value": {"Ref": "State"}}}})
    stacks.create_stack(StackName=name, TemplateBody=template)
    stack = settled(world, name)
    (output,) = stack["Outputs"]
    stacks.delete_stack(StackName=stack["StackId"])
    stacks.get_waiter("stack_delete_complete").wait(StackName=stack["StackId"], WaiterConfig={"Delay": 1})
    arn = dynamodb.describe_table(TableName=output["OutputValue"])["Table"]["TableArn"]
    assert {tag["Key"] for tag in dynamodb.list_tags_of_resource(ResourceArn=arn)["Tags"]} == {DEPLOYMENT_TAG, DATA_TAG}

    left, counts = f"arn:aws:dynamodb:*:*:table/{name}-*", {"StringEquals": {"dynamodb:Select": "COUNT"}}
    role = world.role(
        allow("tag:GetResources"),
        allow("dynamodb:DescribeTable", left),
        allow("dynamodb:Scan", left, Condition=counts),
    )
    (leftover,) = earlier(world, role, name).undecided()
    assert (leftover.name, leftover.part, leftover.empty) == (output["OutputValue"], "State", True)
    dynamodb.put_item(TableName=leftover.name, Item={"k": {"S": "switch"}})
    (leftover,) = earlier(world, role, name).undecided()
    assert not leftover.empty
    with pytest.raises(ClientError, match="dynamodb:Scan"):
        world.account.client("dynamodb", world.as_role(role)).scan(TableName=leftover.name)
    with pytest.raises(ClientError, match="tag:GetResources"):
        earlier(world, world.role(), name).undecided()
    dynamodb.tag_resource(ResourceArn=arn, Tags=[{"Key": DECLINED_TAG, "Value": "yes"}])
    assert earlier(world, role, name).undecided() == ()


def test_services_have_their_own_roles_under_their_own_names(world: World) -> None:
    arns = {
        role.service: f"arn:aws:iam::000000000000:role/aws-service-role/{role.service}/{role.name}"
        for role in (AUTO_SCALING, SPOT)
    }
    for role in (AUTO_SCALING, SPOT):
        if role.name in {one["RoleName"] for one in world.iam.list_roles()["Roles"]}:
            world.iam.delete_role(RoleName=role.name)
    sees = allow("iam:GetRole", list(arns.values()))

    def ensure(*statements: dict[str, object], spot: bool = True) -> list[float]:
        slept: list[float] = []
        session = world.as_role(world.role(sees, *statements))
        ServiceRoles(world.account.client("iam", session), slept.append).ensure(spot=spot)
        return slept

    with pytest.raises(LaunchImpossibleError, match="has no role AWSServiceRoleForAutoScaling yet"):
        ensure()
    service = AUTO_SCALING.service
    only = {"StringEquals": {"iam:AWSServiceName": service}}
    creates = allow("iam:CreateServiceLinkedRole", arns[service], Condition=only)
    with pytest.raises(LaunchImpossibleError, match="has no role AWSServiceRoleForEC2Spot yet"):
        ensure(creates)
    assert ensure(creates, spot=False) == [], "it was created before Spot's was refused"
    service, name = SPOT.service, SPOT.name
    assert ensure(allow("iam:CreateServiceLinkedRole", arns[service])) == [SPREADING]
    assert world.iam.get_role(RoleName=name)["Role"]["Arn"] == arns[service]
    with pytest.raises(ClientError, match="has been taken in this account") as taken:
        world.iam.create_service_linked_role(AWSServiceName=service)
    assert code(taken) == "InvalidInput"
