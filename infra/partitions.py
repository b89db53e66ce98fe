"""What is not the same in all partitions of AWS, told apart by conditions: one template is for all of them.

Each names a partition that lacks something, and none ``aws``, where everything comes first: so one that cannot be
evaluated, as on local AWS, does not hold.
"""

from __future__ import annotations

import aws_cdk as cdk
from constructs import Construct


def in_china(scope: Construct) -> str:
    """The id of the condition on the stack that holds in the partition ``aws-cn``."""
    return _in_partition(scope, "InChina", "aws-cn")


def in_govcloud(scope: Construct) -> str:
    """The id of the condition on the stack that holds in the partition ``aws-us-gov``."""
    return _in_partition(scope, "InGovCloud", "aws-us-gov")


def _in_partition(scope: Construct, name: str, partition: str) -> str:
    stack = cdk.Stack.of(scope)
    if stack.node.try_find_child(name) is None:
        cdk.CfnCondition(stack, name, expression=cdk.Fn.condition_equals(cdk.Aws.PARTITION, partition))
    return name
