"""Allows a single access key for root, and verifies its signature.

MiniStack accepts `test`, an empty key, an account id and the key of its environment for root, and verifies none of
their signatures. Here, root's key is stored like an issued key, with its secret. In MiniStack's evaluator, also a
caller of an API without any key was root, and was refused only later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ministack.core import iam_evaluator
from ministack.core.iam_evaluator import AuthError
from ministack.services import sts

from ..config import ACCOUNT_ID
from ..secret import Secrets
from ._wrap import wrap


def apply(drawn: Secrets) -> None:
    for module in (iam_evaluator, sts):

        @wrap(module, "is_root_access_key")
        def nobody(_original: Any, _access_key_id: str) -> bool:
            return False

    @wrap(iam_evaluator, "enforce")
    def enforce(original: Callable[..., Any], access_key_id: str, iam_action: str, *args: Any, **kwargs: Any) -> Any:
        if iam_action == "execute-api:Invoke" and iam_evaluator._anonymous.get():
            return AuthError("MissingAuthenticationToken", "Missing Authentication Token")
        return original(access_key_id, iam_action, *args, **kwargs)

    sts.register_session(
        drawn.key_id,
        {
            "Arn": f"arn:aws:iam::{ACCOUNT_ID}:root",
            "UserId": ACCOUNT_ID,
            "AccountId": ACCOUNT_ID,
            "PrincipalType": "Root",
            "SecretAccessKey": drawn.key,
        },
    )
