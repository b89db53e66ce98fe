"""Uses ARNs without an account for AWS's public parameters; MiniStack checks the account's ARN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ministack.core import iam_actions

from ..config import ACCOUNT_ID
from ._wrap import wrap


def apply() -> None:
    @wrap(iam_actions, "extract_resource_arn")
    def extract(original: Callable[..., str], service: str, *request: Any, **more: Any) -> str:
        arn = original(service, *request, **more)
        if service == "ssm":
            return arn.replace(f":{ACCOUNT_ID}:parameter/aws/service/", "::parameter/aws/service/")
        return arn
