"""Decides which instances Systems Manager manages.

On EC2, an image of Amazon Linux has the agent. It registers if the instance's role allows it, as the policy
AmazonSSMManagedInstanceCore does. Differences: the role decides when the instance starts; an account has no Default
Host Management.
"""

from __future__ import annotations

from typing import Any

from ministack.core.iam_evaluator import EvalContext, _gather_role_policies, evaluate
from ministack.core.responses import set_request_account_id, set_request_region

from .config import ACCOUNT_ID, REGION
from .metadata import role_of

_REGISTRATION = "ssm:UpdateInstanceInformation"


def may_register(instance: Any) -> bool:
    """Checks whether the role of an instance of moto lets its agent register."""
    role = role_of(instance)
    if role is None:
        return False
    set_request_account_id(ACCOUNT_ID)
    set_request_region(REGION)
    caller = f"arn:aws:sts::{ACCOUNT_ID}:assumed-role/{role['RoleName']}/{instance.id}"
    context = EvalContext(caller, "AssumedRole", ACCOUNT_ID, _REGISTRATION, "*", REGION)
    return bool(evaluate(context, _gather_role_policies(role["RoleName"], ACCOUNT_ID)).decision == "Allow")
