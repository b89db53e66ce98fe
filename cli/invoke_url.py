"""The address of an API as API Gateway makes it up, and where AWS on this machine answers for it."""

from __future__ import annotations

import re

INVOKE_URL = re.compile(r"https://(?P<api>\w+)\.execute-api\.[\w-]+\.amazonaws\.com(?:\.cn)?/(?P<stage>\w+)/?")


def served_at(endpoint: str, text: str) -> str:
    """``text`` with addresses of APIs as the account at ``endpoint`` serves them: no amazonaws.com leads there."""
    return INVOKE_URL.sub(rf"{endpoint.rstrip('/')}/restapis/\g<api>/\g<stage>/_user_request_/", text)
