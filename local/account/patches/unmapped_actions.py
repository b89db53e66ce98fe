"""Refuses requests for which MiniStack knows no IAM action to all but root; MiniStack serves them to every caller."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ministack import app
from ministack.core import iam_evaluator
from ministack.core.iam_evaluator import AuthError

from ..config import ACCOUNT_ID
from ._wrap import wrap

_ROOT = f"arn:aws:iam::{ACCOUNT_ID}:root"
_FOR_ALL = ("sts",)
"""Services with calls that need no permission."""


def apply() -> None:
    @wrap(app, "_authenticate_only")
    def authenticate(
        original: Callable[..., Any], service: str, headers: Mapping[str, str], query: Any, request_id: str
    ) -> Any:
        if (failure := original(service, headers, query, request_id)) or service in _FOR_ALL:
            return failure
        caller = iam_evaluator.resolve_caller_identity(app.extract_access_key_id(headers, query)) or {}
        if caller.get("userArn", _ROOT) == _ROOT:
            return None
        message = f"User: {caller['userArn']} is not authorized: the local account knows no action of this request"
        return app._credential_failure(service, "", request_id, AuthError("AccessDeniedException", message), headers)
