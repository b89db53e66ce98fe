"""What surrounds a deployment in its account: Lambda's limits, roles of services, and what stays when a stack goes."""

from __future__ import annotations

import json

import pytest
from botocore.exceptions import ClientError

from troop.aws.account_reads import AccountReads
from troop.aws.bench.service_roles import SPREADING, ServiceRoles
from troop.bench.fleet_requests import LaunchImpossibleError
from troop.service_roles import AUTO_SCALING, SPOT
from troop.tags import DATA_TAG, DEPLOYMENT_TAG

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


def reads(world: World, role: str | None = None, deployment: str = "None") -> AccountReads:
    session = world.as_role(role) if role else None
    lambda_, tagging, dynamodb = (
        world.account.client(service, session) for service in ("lambda", "resourcegroupstaggingapi", "dynamodb")
    )
    return AccountReads(lambda_, tagging, dynamodb, deployment=deployment, parts=["State"], own=())


def test_how_many_functions_run_at_a_time_has_to_be_allowed(world: World) -> None:
    concurrency = reads(world, world.role(allow("lambda:GetAccountSettings"))).concurrency()
    assert concurrency.limit >= concurrency.unreserved > 0
    assert concurrency.region == "us-east-1"
    with pytest.raises(ClientError, match="lambda:GetAccountSettings") as refused:
        reads(world, world.role()).concurrency()
    assert "AccessDenied" in code(refused)


def test_a_retained_table_keeps_the_tag_by_which_its_stack_is_known(world: World) -> None:
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
    by_key = {tag["Key"]: tag["Value"] for tag in dynamodb.list_tags_of_resource(ResourceArn=arn)["Tags"]}
    assert by_key["aws:cloudformation:stack-id"] == stack["StackId"]

    role = world.role(
        allow("tag:GetResources"), allow("dynamodb:DescribeTable", f"arn:aws:dynamodb:*:*:table/{name}-*")
    )
    (leftover,) = reads(world, role, name).tables_beside()
    assert (leftover.name, leftover.part) == (output["OutputValue"], "State")
    with pytest.raises(ClientError, match="tag:GetResources"):
        reads(world, world.role(), name).tables_beside()


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
