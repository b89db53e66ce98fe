"""Requires a permission to read the limits of Lambda; MiniStack answers GetAccountSettings to every caller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ministack.core import iam_actions

from ._wrap import wrap


def apply() -> None:
    @wrap(iam_actions, "extract_iam_action")
    def action(original: Callable[..., str | None], service: str, method: str, path: str, *rest: Any) -> str | None:
        if service == "lambda" and method == "GET" and path.rstrip("/").endswith("/account-settings"):
            return "lambda:GetAccountSettings"
        return original(service, method, path, *rest)
