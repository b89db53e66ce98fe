"""Authorizes actions on resources as AWS does: only on those of the types that the authorization reference names.

For some actions MiniStack takes another resource, such as the role of AddRoleToInstanceProfile. A policy that names it
allows nothing on AWS. The resource of such a request is ``*`` here, so no narrower policy allows it either.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from ministack.core import iam_evaluator

from ..reference import Reference
from ._wrap import wrap


def apply(reference: Reference) -> None:
    @cache
    def supported(action: str) -> re.Pattern[str]:
        arns = (arn for arn, _, _ in reference.kinds(action))
        return re.compile("|".join(".*".join(map(re.escape, re.split(r"\*+", arn))) for arn in arns) or "-")

    @wrap(iam_evaluator, "_first_match")
    def first_match(original: Callable[..., Any], context: Any, statements: Any, effect: str) -> Any:
        if reference.action(context.action) is None:
            return None  # what AWS does not have is allowed to nobody
        if not supported(context.action).fullmatch(context.resource_arn):
            context = replace(context, resource_arn="*")
        return original(context, statements, effect)
