"""Authorizes actions on resources as AWS does: only on those of the types that the authorization reference names.

For some actions MiniStack takes another resource, such as the role of AddRoleToInstanceProfile. A policy that names it
allows nothing on AWS. The resource of such a request is ``*`` here, so no narrower policy allows it either.

A batch of requests needs the action of a single one, as SQS and SNS have no other. An action that the reference does
not have is compared as MiniStack does, because MiniStack calls some requests by other names than AWS.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from ministack.core import iam_actions, iam_evaluator

from ..reference import Reference
from ._wrap import wrap


def apply(reference: Reference) -> None:
    @cache
    def supported(action: str) -> re.Pattern[str]:
        arns = (arn for arn, _, _ in reference.kinds(action))
        return re.compile("|".join(".*".join(map(re.escape, re.split(r"\*+", arn))) for arn in arns) or "-")

    @wrap(iam_actions, "extract_iam_action")
    def action(original: Callable[..., str | None], *request: Any) -> str | None:
        name = original(*request)
        single = (name or "").removesuffix("Batch")
        return single if name and reference.action(name) is None and reference.action(single) else name

    @wrap(iam_evaluator, "_first_match")
    def first_match(original: Callable[..., Any], context: Any, statements: Any, effect: str) -> Any:
        if reference.action(context.action) and not supported(context.action).fullmatch(context.resource_arn):
            context = replace(context, resource_arn="*")
        return original(context, statements, effect)
