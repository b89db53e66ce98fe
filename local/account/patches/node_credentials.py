"""Evaluates what policies of nodes use: the key `aws:SourceVpc`, and the variable `${aws:userid}` in resources.

MiniStack has no networks, so no request comes from one. Here, a session of an instance always comes from the network of
that instance. MiniStack compares a resource with a variable as it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ministack.core import iam_evaluator
from ministack.core.iam_evaluator import EvalContext, ParsedStatement
from ministack.services import sts

from ._wrap import wrap

SOURCE_VPC = "SourceVpc"
"""The key of the network in a stored session."""
_USER_ID = "${aws:userid}"


def apply() -> None:
    @wrap(iam_evaluator, "_principal_keys")
    def keys_of(original: Callable[..., dict[str, Any]], credential: Any) -> dict[str, Any]:
        session = sts._sessions.get(credential.access_key_id) or {}
        from_network = {"aws:sourcevpc": session[SOURCE_VPC]} if SOURCE_VPC in session else {}
        return {**original(credential), **from_network}

    @wrap(iam_evaluator, "_first_match")
    def first_match(
        original: Callable[..., Any], ctx: EvalContext, statements: Sequence[ParsedStatement], effect: str
    ) -> Any:
        return original(ctx, [_expanded(one, ctx) for one in statements], effect)


def _expanded(statement: ParsedStatement, ctx: EvalContext) -> ParsedStatement:
    if not any(_USER_ID in resource for resource in statement.resources):
        return statement
    user = str(ctx.principal_keys.get("aws:userid", ""))
    return replace(statement, resources=[resource.replace(_USER_ID, user) for resource in statement.resources])
