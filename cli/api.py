"""The deployed API over HTTPS, each request signed with AWS credentials (SigV4)."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import ConnectionError as NoConnectionError
from botocore.exceptions import HTTPClientError, NoCredentialsError
from botocore.httpsession import URLLib3Session
from botocore.utils import get_environ_proxies

_CONNECT_SECONDS = 5
_READ_SECONDS = 35
"""Longer than API Gateway's own limit, so that its answer arrives."""

ANSWER_HEADERS = ("Troop-Complete-After", "Location", "Retry-After")
"""Headers that say something of an answer that its body does not."""


class UnreachableError(Exception):
    """No answer: the name does not resolve, nobody listens, TLS fails, or time is up."""


@dataclass(frozen=True)
class Answer:
    """An answer of the API.

    Attributes:
        status: the HTTP status.
        body: the decoded JSON; None when the answer is none.
        error: API Gateway's header ``x-amzn-errortype``, "" when there is none.
        headers: those of :data:`TOLD` that it has.
    """

    status: int
    body: Any
    error: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def message(self) -> str:
        """What the answer says about itself: the API's ``message``, or API Gateway's ``Message``."""
        if isinstance(self.body, Mapping):
            return str(self.body.get("message") or self.body.get("Message") or "")
        return ""


class Api(Protocol):
    """Whatever answers requests as the API does."""

    def request(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None
    ) -> Answer: ...


class SignedApi:
    """The API at ``url`` (ends in a slash), called with a session's credentials.

    Args:
        url: with the stage, such as ``https://ID.execute-api.REGION.amazonaws.com/v1/``.
        session: signs; its region is the API's.
        ca_bundle: path of certificates to trust, as for boto3's ``verify``; None for the usual ones.
    """

    def __init__(self, url: str, session: boto3.Session, ca_bundle: str | None = None) -> None:
        self.url = url
        self._session = session
        http: Any = URLLib3Session  # its stubs are narrower than what it takes
        self._http = http(  # follows no redirects, and so takes no signature elsewhere
            verify=ca_bundle or True,
            proxies=get_environ_proxies(url),
            timeout=(_CONNECT_SECONDS, _READ_SECONDS),
        )

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Answer:
        """GET of a path below the API's address, such as ``events``."""
        return self.request("GET", path, query)

    def request(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None
    ) -> Answer:
        """One request.

        Raises:
            NoCredentialsError: there is nothing to sign with.
            UnreachableError: no answer came.
        """
        request = self._prepare(method, path, query, body)
        credentials = self._session.get_credentials()
        if credentials is None:
            raise NoCredentialsError
        SigV4Auth(credentials.get_frozen_credentials(), "execute-api", self._session.region_name).add_auth(request)
        return self._send(request)

    def _prepare(
        self, method: str, path: str, query: Mapping[str, str] | None, body: Mapping[str, Any] | None
    ) -> AWSRequest:
        address = urllib.parse.urljoin(self.url, path)
        if query:
            address += "?" + urllib.parse.urlencode(query, quote_via=urllib.parse.quote)
        if body is None:
            return AWSRequest(method=method, url=address)
        headers = {"Content-Type": "application/json"}
        return AWSRequest(method=method, url=address, data=json.dumps(body).encode(), headers=headers)

    def _send(self, request: AWSRequest) -> Answer:
        try:
            answer = self._http.send(request.prepare())
        except (HTTPClientError, NoConnectionError) as error:
            raise UnreachableError(str(error)) from error
        try:
            decoded = json.loads(answer.content)
        except (ValueError, RecursionError):
            decoded = None
        headers = {name: str(answer.headers[name]) for name in ANSWER_HEADERS if name in answer.headers}
        return Answer(answer.status_code, decoded, answer.headers.get("x-amzn-errortype", ""), headers)
