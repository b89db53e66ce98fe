"""Defines what the deployed API answers, for whoever calls it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from cli.client.wording import for_people
from troop.shared.version import VERSION_HEADER

ANSWER_HEADERS = ("Troop-Complete-After", "Location", "Retry-After", VERSION_HEADER)
"""Headers with information that the body does not have."""


class UnreachableError(Exception):
    """No answer: the name does not resolve, nothing listens, TLS fails, or the request times out."""


@dataclass(frozen=True)
class Answer:
    """An answer of the API.

    Attributes:
        status: the HTTP status.
        body: the decoded JSON; None if the answer is not JSON.
        error: API Gateway's header ``x-amzn-errortype``; "" without one.
        headers: those of :data:`ANSWER_HEADERS` that it has.
    """

    status: int
    body: Any
    error: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def message(self) -> str:
        """The API's ``message`` in words for people, or API Gateway's ``Message``; "" without one."""
        if isinstance(self.body, Mapping):
            return for_people(str(self.body.get("message") or self.body.get("Message") or ""))
        return ""

    @property
    def code(self) -> str:
        """The API's ``code``, one of :class:`troop.shared.errors.ErrorCode`; "" without one."""
        return str(self.body.get("code") or "") if isinstance(self.body, Mapping) else ""


class Api(Protocol):
    """The interface of the API: answers requests."""

    def request(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None
    ) -> Answer: ...
