"""Creates roles with exactly the permissions of :mod:`infra.permissions`."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import aws_cdk as cdk
import jsii
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct, IConstruct, IValidation

from infra.keys import uses_key

_SERVICE_CONDITIONS = {"states.amazonaws.com": {"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}}}
"""State machines of other accounts cannot use a role, even if they name it. AWS recommends this condition for Step
Functions; for execution roles of Lambda it documents none.
"""


def make_role(
    scope: Construct,
    construct_id: str,
    *,
    service: str,
    description: str,
    statements: Sequence[iam.PolicyStatement],
    conditions: Mapping[str, Any] | None = None,
) -> iam.Role:
    """Creates a role for one service with inline permissions, so that it is complete as soon as it exists.

    Args:
        scope, construct_id: of the role.
        service: the principal, such as ``lambda.amazonaws.com``.
        description: shown beside the role.
        statements: all permissions of the role, besides that to use the deployment's key for them; none for a role
            that gets them with a policy of its own.
        conditions: under which the service may assume it; by default those of the service, if any.
    """
    permissions = iam.PolicyDocument(statements=[*statements, *uses_key(scope, service, statements)])
    role = iam.Role(
        scope,
        construct_id,
        assumed_by=iam.ServicePrincipal(service, conditions=conditions or _SERVICE_CONDITIONS.get(service)),
        description=description,
        inline_policies={"Permissions": permissions} if statements else None,
    )
    role.node.add_validation(_Size(role, permissions))
    return role


MOST_CHARACTERS = 10_240
"""IAM's quota for all inline policies of a role, without white space. CloudFormation would find out in the middle of an
update.
"""

_LENGTHS = {"AWS::Partition": 10, "AWS::Region": 14, "AWS::AccountId": 12, "AWS::URLSuffix": 16, "Arn": 130}
_LENGTH_OF_A_NAME = 64
"""The most characters of the names that CloudFormation creates here."""
_LENGTH_OF_A_BUCKET = len("arn:aws-us-gov:s3:::") + 63
"""The most characters of a bucket's ARN."""


@jsii.implements(IValidation)
class _Size:
    """Checks at synth whether IAM accepts a role's permissions, which grow with the lists in the settings."""

    def __init__(self, role: iam.Role, permissions: iam.PolicyDocument) -> None:
        self._role, self._permissions = role, permissions

    def validate(self) -> list[str]:
        stack = cdk.Stack.of(self._role)
        resolved = stack.resolve(self._permissions)
        size = characters(resolved)
        if size > MOST_CHARACTERS:  # the search for buckets takes long, so only where it can matter
            buckets = (one for one in stack.node.find_all() if isinstance(one, s3.CfnBucket))
            size = characters(resolved, [str(stack.resolve(bucket.logical_id)) for bucket in buckets])
        if size <= MOST_CHARACTERS:
            return []
        return [
            f"the permissions of this role may have {size:,} characters, and IAM accepts {MOST_CHARACTERS:,}: shorten "
            "troop:allowed_buckets, troop:allowed_images or troop:allowed_snapshots; a * at the end of the name of an "
            "image's parameter, or as the only snapshot, stands for many"
        ]


def characters(resolved: Any, buckets: Collection[str] = ()) -> int:
    """Returns the most characters that a resolved part of a template can have in JSON without white space.

    Args:
        buckets: logical ids of buckets, whose ARNs are shorter than others.
    """
    if isinstance(resolved, Mapping):
        if len(resolved) == 1:
            ((name, argument),) = resolved.items()
            if name == "Ref":
                return _LENGTHS.get(argument, _LENGTH_OF_A_NAME) + 2
            if name == "Fn::GetAtt":
                logical_id, attribute = argument
                is_bucket = attribute == "Arn" and logical_id in buckets
                return (_LENGTH_OF_A_BUCKET if is_bucket else _LENGTHS.get(attribute, _LENGTH_OF_A_NAME)) + 2
            if name == "Fn::Join":
                separators = len(argument[0]) * max(0, len(argument[1]) - 1)
                return sum(characters(part, buckets) - 2 for part in argument[1]) + separators + 2
        return 1 + sum(len(json.dumps(key)) + 2 + characters(value, buckets) for key, value in resolved.items())
    if isinstance(resolved, (list, tuple)):
        return 1 + sum(1 + characters(value, buckets) for value in resolved)
    return len("".join(json.dumps(resolved).split()))


def as_listed(role: iam.Role) -> iam.IRole:
    """Returns the role for constructs that would otherwise add permissions by themselves."""
    return role.without_policy_updates()


def drop_depends_on(construct: IConstruct) -> None:
    """Removes the library's DependsOn if the reference to the role already implies it (cfn-lint W3005)."""
    resource = construct.node.default_child
    if not isinstance(resource, cdk.CfnResource):
        raise TypeError(f"{construct.node.path} is no single resource")
    resource.add_deletion_override("DependsOn")


def logical_id(construct: IConstruct) -> str:
    """Returns the id in the template of a construct that is one resource."""
    resource = construct if isinstance(construct, cdk.CfnResource) else construct.node.default_child
    if not isinstance(resource, cdk.CfnResource):
        raise TypeError(f"{construct.node.path} is no single resource")
    return str(cdk.Stack.of(construct).resolve(resource.logical_id))
