"""Roles that can do exactly what :mod:`infra.permissions` lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

_OF_SERVICES = {"states.amazonaws.com": {"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}}}
"""State machines of other accounts cannot use a role, whoever names it. AWS recommends that for Step Functions; for
execution roles of Lambda it documents no such condition.
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
    """A role for one service whose permissions are part of it, so that it is complete as soon as it exists.

    Args:
        scope, construct_id: where the role belongs.
        service: the principal, such as ``lambda.amazonaws.com``.
        description: shown beside the role.
        statements: all it may do.
        conditions: under which the service may assume it; those of the service by default, if it has any.
    """
    return iam.Role(
        scope,
        construct_id,
        assumed_by=iam.ServicePrincipal(service, conditions=conditions or _OF_SERVICES.get(service)),
        description=description,
        inline_policies={"Permissions": iam.PolicyDocument(statements=list(statements))},
    )


def as_listed(role: iam.Role) -> iam.IRole:
    """The role for constructs that would otherwise add permissions of their own accord."""
    return role.without_policy_updates()


def drop_depends_on(construct: IConstruct) -> None:
    """Removes what the library says of order when the reference to the role says it already (cfn-lint W3005)."""
    resource = construct.node.default_child
    if not isinstance(resource, cdk.CfnResource):
        raise TypeError(f"{construct.node.path} is no single resource")
    resource.add_deletion_override("DependsOn")


def logical_id(construct: IConstruct) -> str:
    """The id in the template of a construct that is one resource."""
    resource = construct.node.default_child
    if not isinstance(resource, cdk.CfnResource):
        raise TypeError(f"{construct.node.path} is no single resource")
    return str(cdk.Stack.of(construct).resolve(resource.logical_id))
