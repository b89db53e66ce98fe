"""Makes the credentials of a function unpredictable.

MiniStack derives the key, secret and session token of a function's role from the two ARNs, which are not secret.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Any

from ministack.core import lambda_runtime
from ministack.services import lambda_svc, sts

from ..config import ACCOUNT_ID
from ._wrap import wrap


def apply() -> None:
    root = secrets.token_bytes(32)

    @wrap(lambda_runtime, "execution_credentials")
    def issue(_original: Any, config: dict[str, Any]) -> dict[str, str]:
        """Returns the same credentials for every environment of a function, as MiniStack does."""
        role, name = str(config.get("Role", "")), str(config["FunctionName"])

        def derive(part: str) -> str:
            return hmac.new(root, f"{part} {config['FunctionArn']} {role}".encode(), hashlib.sha256).hexdigest()

        key_id, key, token = f"ASIA{derive('id')[:16].upper()}", derive("secret"), derive("token")
        role_name = role.rsplit("/", 1)[-1]
        sts.register_session(
            key_id,
            {
                "Arn": f"arn:aws:sts::{ACCOUNT_ID}:assumed-role/{role_name}/{name[:64]}",
                "UserId": f"{role_name}:{name[:64]}",
                "SecretAccessKey": key,
                "SessionToken": token,
            },
        )
        return {"AWS_ACCESS_KEY_ID": key_id, "AWS_SECRET_ACCESS_KEY": key, "AWS_SESSION_TOKEN": token}

    lambda_svc.execution_credentials = issue
