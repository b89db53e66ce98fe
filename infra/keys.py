"""Encrypts a deployment's data with the operator's own key, if the settings name one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

_KEY = "Key"
_ACTIONS = (
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
)
_STORES = ("dynamodb", "s3", "secretsmanager", "sns", "sqs")
"""Services that use the key with the permissions of their caller."""
WITHOUT_DATA = frozenset({"sns:GetTopicAttributes"})
"""Actions of these services that touch nothing encrypted: IAM limits the characters of a role's permissions."""


def set_data_key(stack: cdk.Stack, arn: str) -> None:
    """Makes a key the one that encrypts the data of the stack. The key is not the stack's, and neither is its policy:
    docs/guides/organization.md has the statements that it needs.
    """
    kms.Key.from_key_arn(stack, _KEY, arn)


def data_key(scope: Construct) -> kms.IKey | None:
    """Returns the key that encrypts the data of the stack; None if AWS's own keys do."""
    # An imported key has no class of its own that could be checked.
    return cast("kms.IKey | None", cdk.Stack.of(scope).node.try_find_child(_KEY))


def uses_key(scope: Construct, service: str, statements: Sequence[iam.PolicyStatement]) -> list[iam.PolicyStatement]:
    """Allows the use of the key, if there is one, only through the services that the statements allow.

    Args:
        service: the principal of the role. Lambda decrypts a function's variables with the role's permissions.
    """
    key = data_key(scope)
    every = {action for statement in statements for action in statement.actions}
    used = {action.partition(":")[0] for action in every - WITHOUT_DATA}
    through = [store for store in _STORES if store in used]
    if service.startswith("lambda."):
        through.append("lambda")
    if key is None or not through:
        return []
    # Region and domain follow. The key has a region, and IAM limits the characters of a role's permissions.
    names = [f"{name}.*" for name in through]
    return [
        iam.PolicyStatement(
            actions=list(_ACTIONS), resources=[key.key_arn], conditions={"StringLike": {"kms:ViaService": names}}
        )
    ]
