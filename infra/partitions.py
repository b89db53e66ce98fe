"""Defines conditions for the differences between partitions of AWS, because one template serves all of them.

Each condition names a partition that lacks something, and never ``aws``, which has every feature first. So a condition
that cannot be evaluated, as on local AWS, is false.
"""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct


def in_china(scope: Construct) -> str:
    """Returns the id of the stack's condition for the partition ``aws-cn``."""
    return _in_partition(scope, "InChina", "aws-cn")


def in_govcloud(scope: Construct) -> str:
    """Returns the id of the stack's condition for the partition ``aws-us-gov``."""
    return _in_partition(scope, "InGovCloud", "aws-us-gov")


def _in_partition(scope: Construct, name: str, partition: str) -> str:
    stack = cdk.Stack.of(scope)
    if stack.node.try_find_child(name) is None:
        cdk.CfnCondition(stack, name, expression=cdk.Fn.condition_equals(cdk.Aws.PARTITION, partition))
    return name
