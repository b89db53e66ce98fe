"""Creates roles with exactly the permissions of :mod:`infra.permissions`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

_OF_SERVICES = {"states.amazonaws.com": {"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}}}
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
        statements: all permissions of the role.
        conditions: under which the service may assume it; by default those of the service, if any.
    """
    return iam.Role(
        scope,
        construct_id,
        assumed_by=iam.ServicePrincipal(service, conditions=conditions or _OF_SERVICES.get(service)),
        description=description,
        inline_policies={"Permissions": iam.PolicyDocument(statements=list(statements))},
    )


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
    resource = construct.node.default_child
    if not isinstance(resource, cdk.CfnResource):
        raise TypeError(f"{construct.node.path} is no single resource")
    return str(cdk.Stack.of(construct).resolve(resource.logical_id))
