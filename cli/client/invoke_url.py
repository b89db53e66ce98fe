"""Maps the addresses that API Gateway gives to APIs to those of local AWS."""

from __future__ import annotations

import re

INVOKE_URL = re.compile(r"https://(?P<api>\w+)\.execute-api\.[\w-]+\.amazonaws\.com(?:\.cn)?/(?P<stage>\w+)/?")


def served_at(endpoint: str, text: str) -> str:
    """Replaces addresses of APIs in ``text`` by those at ``endpoint``: local AWS is not at amazonaws.com."""
    return INVOKE_URL.sub(rf"{endpoint.rstrip('/')}/restapis/\g<api>/\g<stage>/_user_request_/", text)
