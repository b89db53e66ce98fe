"""Lets the endpoint of a network decide, too, and gives policies the keys of the network that a request comes from.

A request of an instance to SQS needs the leave of its role, of the queue and of the endpoint. MiniStack has no
networks. It also evaluates the policy of a queue once more without the keys of the caller, and takes the session of a
role for `aws:PrincipalArn`, which is the ARN of the role.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from ministack.core import iam_actions, iam_evaluator
from ministack.core.iam_evaluator import EvalContext, EvalResult
from ministack.services import iam

from ..config import ACCOUNT_ID, REGION
from ..decisions import role_arn
from ..endpoints import Way, open_ways, taken_way
from ._wrap import wrap

_refused: ContextVar[str] = ContextVar("refused", default="")
"""Why the endpoint has refused the current request; empty if it has not."""


def apply() -> None:
    """Applies the patch. Decisions must be recorded outside it: each endpoint that is tried makes some."""

    @wrap(iam_evaluator, "enforce")
    def enforce(original: Callable[..., Any], access_key_id: str, iam_action: str, *args: Any, **named: Any) -> Any:
        _refused.set("")
        outcome: Any = None
        for way in open_ways.get() or (None,):
            taken_way.set(way)
            outcome = original(access_key_id, iam_action, *args, **named)
            if outcome is None and way:
                outcome = _refusal(way, access_key_id, iam_action, named["resource_arn"])
            if outcome is None:
                break
        return outcome

    @wrap(iam_evaluator, "_principal_keys")
    def keys_of(original: Callable[..., dict[str, Any]], credential: Any) -> dict[str, Any]:
        return {**original(credential), **_network_keys()}

    @wrap(iam_evaluator, "_resolve_condition_key")
    def value_of(original: Callable[..., Any], key: str, ctx: EvalContext) -> Any:
        if key.lower() == "aws:principalarn":
            return _principal_arn(ctx.principal_arn)
        if key.lower() == "aws:sourceip" and "aws:sourcevpce" in ctx.principal_keys:
            return None
        return original(key, ctx)

    @wrap(iam_evaluator, "resource_policy_allows")
    def allows(original: Callable[..., bool], policy: Any, ctx: EvalContext, same_account: bool) -> bool:
        return original(policy, replace(ctx, principal_keys={**ctx.principal_keys, **_network_keys()}), same_account)

    @wrap(iam_actions, "access_denied_response")
    def denied(original: Callable[..., Any], service: str, action: str, caller: str, *args: Any, **named: Any) -> Any:
        if reason := _refused.get():
            named["message"] = f"User: {caller} is not authorized to perform: {action} {reason}"
        return original(service, action, caller, *args, **named)


def _network_keys() -> dict[str, str]:
    way = taken_way.get()
    return way.keys if way else {}


def _refusal(way: Way, access_key_id: str, action: str, resource: str) -> EvalResult | None:
    """Returns the refusal of an endpoint's policy; None if it allows the request."""
    caller = iam_evaluator.resolve_principal(access_key_id, ACCOUNT_ID)
    assert isinstance(caller, iam_evaluator.PrincipalInfo)  # else IAM has refused it
    context = EvalContext(caller.arn, caller.type, ACCOUNT_ID, action, resource, REGION, principal_keys=caller.keys)
    outcome = iam_evaluator.evaluate_resource_policy(way.policy, context)
    if outcome.decision == "Allow":
        return None
    _refused.set(
        f"on resource: {resource} with an explicit deny in a VPC endpoint policy: {way.arn}"
        if outcome.decision == "Deny"
        else f"on resource: {resource} because no VPC endpoint policy allows the {action} action: {way.arn}"
    )
    return outcome


def _principal_arn(caller: str) -> str:
    """Returns the ARN of the role of a session, with the role's path; other ARNs unchanged."""
    if ":assumed-role/" not in caller:
        return caller
    role = iam._roles.get(role_arn(caller).rsplit("/", 1)[-1])
    return str(role["Arn"]) if role else role_arn(caller)
