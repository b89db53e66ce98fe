"""Requests to a deployment's API as the commands make them: tried again where that is safe, listed page by page, and
what a refusal tells the caller to do.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cli import aws, retries
from cli.api import Answer, Api, UnreachableError
from cli.errors import CliError, Exit

_PLACE = re.compile(r"(?<![.\w])(?:body|query)(?:\.([\w.]+))?: ")
"""Where in a request the API has found something, which to whoever types a command is the value's name."""

NOT_STARTED = "halt-without-the-api"
"""The runbook's paragraph about an API that does not answer."""


@dataclass(frozen=True)
class Calls:
    """Calls of a deployment's API.

    Attributes:
        api: sends the requests.
        arn: of the API's stage, for the message about a missing permission.
        where: the deployment, account and region, for messages.
        sleep: waits that many seconds between tries.
    """

    api: Api
    arn: str
    where: str
    sleep: Callable[[float], None] = field(default=time.sleep)

    def ok(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """What a request is answered with.

        Raises:
            CliError: it is refused, see :meth:`refusal`; or the API cannot be reached.
        """
        return self.checked(self.send(method, path, query, body), method, path)

    def send(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None
    ) -> Answer:
        """A request's answer, whatever it is; repeated where :func:`cli.retries.patience` says that it is safe.

        Raises:
            CliError: UNREACHABLE.
        """
        return self._answer(method, path, query, body)

    def again(self, method: str, path: str, body: Mapping[str, Any] | None) -> Answer:
        """The answer to a request that may be made any number of times.

        Raises:
            CliError: UNREACHABLE.
        """
        return self._answer(method, path, None, body, retries.REPEATABLE)

    def _answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Mapping[str, Any] | None,
        how: retries.Patience | None = None,
    ) -> Answer:
        try:
            with aws.translated_errors():
                return retries.request(self.api, method, path, query, body, sleep=self.sleep, how=how)
        except UnreachableError as error:
            raise CliError(Exit.UNREACHABLE, f"the API of {self.where} cannot be reached: {error}") from error

    def pages(self, name: str, page_size: int) -> Iterator[dict[str, Any]]:
        """All of a listing, page by page as it is asked for."""
        query = {"limit": str(page_size)}
        while True:
            page = self.ok("GET", name, query)
            yield from page[name]
            if not page.get("cursor"):
                return
            query = {"limit": str(page_size), "cursor": page["cursor"]}

    def checked(self, answer: Answer, method: str, path: str) -> dict[str, Any]:
        """The body of an answer that is 200.

        Raises:
            CliError: it is not, see :meth:`refusal`.
        """
        if answer.status == 200 and isinstance(answer.body, dict):
            return answer.body
        raise self.refusal(answer, method, path)

    def refusal(self, answer: Answer, method: str, path: str) -> CliError:
        """What an answer that is not 200 says, and what to do about it."""
        message = _PLACE.sub(lambda match: f"{match[1]} " if match[1] else "", answer.message)
        if answer.status in (401, 403):
            return self._forbidden(answer, method, path)
        if answer.status == 409:
            return CliError(Exit.CONFLICT, message or "somebody has changed it in the meantime: look, and try again")
        if answer.status in (400, 404, 413, 415):
            return CliError(Exit.REFUSED, message or f"the API refuses {method} /{path} with {answer.status}")
        if answer.status == 429:
            return CliError(Exit.API_FAILED, "the API is asked too often: try again in a minute")
        if retries.function_did_not_start(answer):
            return CliError(
                Exit.API_FAILED,
                f"the API of {self.where} could not start its function for {method} /{path} ({answer.status}): Lambda "
                "throttles it or cannot start it; `aws lambda get-account-settings` shows the account's concurrency, "
                f"and docs/runbook.md#{NOT_STARTED} what to do",
            )
        shown = f": {message}" if message else ""
        return CliError(
            Exit.API_FAILED,
            f"the API of {self.where} answered {method} /{path} with {answer.status}{shown}; its logs tell more",
        )

    def _forbidden(self, answer: Answer, method: str, path: str) -> CliError:
        message, kind = answer.message.lower(), answer.error
        if "ExpiredToken" in kind or ("expired" in message and "signature" not in message):
            return CliError(Exit.EXPIRED_CREDENTIALS, aws.EXPIRED)
        if "signature expired" in message or "signature not yet current" in message:
            return CliError(Exit.FORBIDDEN, "this machine's clock is wrong: AWS does not accept its signature's time")
        if "UnrecognizedClient" in kind or "InvalidSignature" in kind or "security token included" in message:
            return CliError(Exit.NO_CREDENTIALS, f"the API does not accept the credentials: {answer.message}")
        if "MissingAuthenticationToken" in kind or "missing authentication token" in message:
            return CliError(
                Exit.REFUSED,
                f"the API of {self.where} has no {method} /{path}: it is older than this command",
            )
        resource = f"{self.arn}/{method}/{path}"
        return CliError(
            Exit.FORBIDDEN,
            f"you may not do that: your policies must allow execute-api:Invoke on {resource}, and none may deny it",
        )


def listed(
    get: Callable[[Mapping[str, str]], dict[str, Any]], name: str, limit: int, page_size: int
) -> list[dict[str, Any]]:
    """Up to ``limit`` of a listing.

    Args:
        get: gets a page, by the parameters that say which.
        name: of the list within a page.
        page_size: the longest page there is.
    """
    entries: list[dict[str, Any]] = []
    cursor: str | None = None
    while len(entries) < limit:
        page = get({"limit": str(min(page_size, limit - len(entries)))} | ({"cursor": cursor} if cursor else {}))
        entries += page[name]
        cursor = page.get("cursor")
        if not cursor:
            break
    return entries
