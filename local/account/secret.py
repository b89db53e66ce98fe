"""Creates the secrets of an account at every start. They are in memory and in the private run directory only."""

from __future__ import annotations

import hmac
import secrets
import string
from dataclasses import dataclass

_KEY_ID_ALPHABET = string.ascii_uppercase + "234567"


@dataclass(frozen=True)
class Secrets:
    """The secrets. `key_id`, `key`: the access key of root. `token`: for the private endpoint, see control.py."""

    key_id: str
    key: str
    token: str

    @classmethod
    def draw(cls) -> Secrets:
        key_id = "AKIA" + "".join(secrets.choice(_KEY_ID_ALPHABET) for _ in range(16))
        return cls(key_id, secrets.token_urlsafe(30), secrets.token_urlsafe(32))

    def opens(self, authorization: str) -> bool:
        """Checks in constant time whether a request's header `Authorization` has the token."""
        return hmac.compare_digest(authorization.encode(), f"Bearer {self.token}".encode())
