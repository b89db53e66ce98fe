"""Sends requests to a deployment's API: retries where that is safe, reads pages, and explains refusals."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cli.client import retries
from cli.client.api import Answer, Api, UnreachableError
from cli.shared.errors import CliError, Exit

_PLACE = re.compile(r"(?<![.\w])(?:body|query)(?:\.([\w.]+))?: ")
"""Matches the place of a problem in a request; messages show only the value's name."""

NOT_STARTED = "halt-without-the-api"
"""The runbook's section about an API that does not answer."""


@dataclass(frozen=True)
class Calls:
    """Calls of a deployment's API.

    Attributes:
        api: sends the requests.
        arn: the ARN of the API's stage, for messages about a missing permission.
        where: the deployment, account and region, for messages.
        sleep: waits for a number of seconds between tries.
        tell: is told of each item that an answer leaves out because it is malformed.
    """

    api: Api
    arn: str
    where: str
    sleep: Callable[[float], None] = field(default=time.sleep)
    tell: Callable[[str], None] = field(default=lambda _: None)

    def ok(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Sends a request and returns the answer's body.

        Raises:
            CliError: the request is refused, see :meth:`refusal`; or the API cannot be reached.
        """
        return self.checked(self.send(method, path, query, body), method, path)

    def send(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None
    ) -> Answer:
        """Sends a request and returns any answer; retries where :mod:`cli.client.retries` says so.

        Raises:
            CliError: UNREACHABLE.
        """
        return self._answer(method, path, query, body)

    def again(self, method: str, path: str, body: Mapping[str, Any] | None) -> Answer:
        """Sends a request that is safe to repeat, and returns any answer.

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
        from cli.shared import aws  # here, because help and completion need no AWS SDK

        try:
            with aws.translated_errors():
                answer = retries.request(self.api, method, path, query, body, sleep=self.sleep, how=how)
        except UnreachableError as error:
            raise CliError(Exit.UNREACHABLE, f"the API of {self.where} cannot be reached: {error}") from error
        for one in answer.body.get("malformed", ()) if isinstance(answer.body, dict) else ():
            self.tell(f"left out, because it is malformed: {one['item']}: {one['why']}")
        return answer

    def entries(self, name: str, page_size: int) -> Iterator[dict[str, Any]]:
        """Yields all entries of a listing; reads each page when it is needed."""
        for page in self.pages(name, page_size):
            yield from page

    def pages(
        self, name: str, page_size: int, query: Mapping[str, str] | None = None
    ) -> Iterator[list[dict[str, Any]]]:
        """Yields the entries of each page of a listing. ``query``: its parameters but limit and cursor."""
        first = {**(query or {}), "limit": str(page_size)}
        page = self.ok("GET", name, first)
        while True:
            yield page[name]
            if not page.get("cursor"):
                return
            page = self.ok("GET", name, {**first, "cursor": page["cursor"]})

    def checked(self, answer: Answer, method: str, path: str) -> dict[str, Any]:
        """Returns the body of an answer with status 200.

        Raises:
            CliError: the status is another one, see :meth:`refusal`.
        """
        if answer.status == 200 and isinstance(answer.body, dict):
            return answer.body
        raise self.refusal(answer, method, path)

    def refusal(self, answer: Answer, method: str, path: str) -> CliError:
        """Returns the error for an answer whose status is not 200, with what to do."""
        message = _PLACE.sub(lambda match: f"{match[1]} " if match[1] else "", answer.message)
        if answer.status in (401, 403):
            return self._forbidden(answer, method, path)
        if answer.status == 409:
            return CliError(Exit.CONFLICT, message or "it has changed in the meantime: check it and try again")
        if answer.status in (400, 404, 413, 415):
            message = message or f"the API refuses {method} /{path} with {answer.status}"
            return CliError(Exit.REFUSED, message, answer.code)
        if answer.status == 429:
            return CliError(Exit.API_FAILED, "too many requests to the API: try again in a minute")
        if retries.function_did_not_start(answer):
            return CliError(
                Exit.API_FAILED,
                f"the API of {self.where} could not start its function for {method} /{path} ({answer.status}). Lambda "
                "may be throttling it: check the account's concurrency with `aws lambda get-account-settings`, "
                f"and see docs/guides/runbook.md#{NOT_STARTED}",
            )
        shown = f": {message}" if message else ""
        return CliError(
            Exit.API_FAILED,
            f"the API of {self.where} answered {method} /{path} with {answer.status}{shown}; see its logs",
        )

    def _forbidden(self, answer: Answer, method: str, path: str) -> CliError:
        from cli.shared import aws

        message, kind = answer.message.lower(), answer.error
        if "ExpiredToken" in kind or ("expired" in message and "signature" not in message):
            return CliError(Exit.EXPIRED_CREDENTIALS, aws.EXPIRED)
        if "signature expired" in message or "signature not yet current" in message:
            return CliError(Exit.FORBIDDEN, "this machine's clock is wrong: AWS rejects the time of the signature")
        if "UnrecognizedClient" in kind or "InvalidSignature" in kind or "security token included" in message:
            return CliError(Exit.NO_CREDENTIALS, f"the API rejects the credentials: {answer.message}")
        if "MissingAuthenticationToken" in kind or "missing authentication token" in message:
            return CliError(
                Exit.REFUSED,
                f"the API of {self.where} has no {method} /{path}: it is older than this command, so update it with "
                "make deploy KEEP=1",
            )
        resource = f"{self.arn}/{method}/{path}"
        return CliError(
            Exit.FORBIDDEN,
            f"permission denied: your policies must allow execute-api:Invoke on {resource} and must not deny it",
        )


def listed(
    get: Callable[[Mapping[str, str]], dict[str, Any]], name: str, limit: int, page_size: int
) -> list[dict[str, Any]]:
    """Returns up to ``limit`` entries of a listing.

    Args:
        get: returns the page for query parameters.
        name: the key of the list in a page.
        page_size: the longest page that the API returns.
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
