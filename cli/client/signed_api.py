"""Calls the deployed API over HTTPS and signs each request with AWS credentials (SigV4)."""

from __future__ import annotations

import json
import threading
import urllib.parse
from collections.abc import Mapping
from typing import Any, ClassVar

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import ConnectionError as NoConnectionError
from botocore.exceptions import HTTPClientError, NoCredentialsError
from botocore.httpsession import URLLib3Session
from botocore.utils import get_environ_proxies

from cli.client.api import ANSWER_HEADERS, Answer, UnreachableError
from cli.shared import aws
from troop.shared.version import COMMAND_HEADER, VERSION

_CONNECT_SECONDS = 5
_READ_SECONDS = 35
"""Longer than API Gateway's own limit, so that its answer arrives."""


class _Http(URLLib3Session):
    """An HTTP client that reads the trusted certificates once; botocore's reads them for each connection, in 20 ms."""

    _reading: ClassVar = threading.Lock()

    def _setup_ssl_cert(self, conn: Any, url: str, verify: Any) -> None:
        setup: Any = super()
        setup._setup_ssl_cert(conn, url, verify)
        context = conn.conn_kw.get("ssl_context")
        if conn.ca_certs and context:
            with self._reading:  # requests may be side by side
                if not context.cert_store_stats()["x509"]:
                    context.load_verify_locations(conn.ca_certs)
            conn.ca_certs = None


class SignedApi:
    """The API at ``url`` (ends in a slash), called with a session's credentials.

    Args:
        url: with the stage, such as ``https://ID.execute-api.REGION.amazonaws.com/v1/``.
        session: signs the requests; its region is the API's.
        ca_bundle: path of certificates to trust, as for boto3's ``verify``; None for the default ones.
    """

    def __init__(self, url: str, session: aws.AnySession, ca_bundle: str | None = None) -> None:
        self.url = url
        self._session = session
        http: Any = _Http  # the type stubs of its base are too narrow
        self._http = http(  # does not follow redirects, so signatures stay with the API
            verify=ca_bundle or True,
            proxies=get_environ_proxies(url),
            timeout=(_CONNECT_SECONDS, _READ_SECONDS),
        )

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Answer:
        """Sends a GET request for a path below the API's address, such as ``events``."""
        return self.request("GET", path, query)

    def request(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None
    ) -> Answer:
        """Sends a signed request.

        Raises:
            NoCredentialsError: there are no credentials to sign with.
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
        headers = {COMMAND_HEADER: VERSION}
        if body is None:
            return AWSRequest(method=method, url=address, headers=headers)
        headers["Content-Type"] = "application/json"
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
