"""Calls the deployed API as a person or a program would: signed with SigV4."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest


@dataclass(frozen=True)
class Answer:
    """An answer of the API: HTTP status and the decoded JSON body."""

    status: int
    body: Any


@dataclass(frozen=True)
class SignedApi:
    """The API at `url` (ends in a slash), called with a session's credentials; `ca_bundle` as for boto3's verify."""

    url: str
    session: boto3.Session
    ca_bundle: str | None = None

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Answer:
        """GET of a path below the API's address, such as ``events``."""
        address = urllib.parse.urljoin(self.url, path)
        if query:
            address += "?" + urllib.parse.urlencode(query)
        signed = AWSRequest(method="GET", url=address)
        credentials = self.session.get_credentials()
        if credentials is None:
            raise RuntimeError("there are no AWS credentials to sign with")
        SigV4Auth(credentials, "execute-api", self.session.region_name).add_auth(signed)
        return self._send(urllib.request.Request(address, headers=dict(signed.headers)))

    def unsigned(self, path: str) -> Answer:
        """The same without a signature: what anybody else is told."""
        return self._send(urllib.request.Request(urllib.parse.urljoin(self.url, path)))

    def _send(self, request: urllib.request.Request) -> Answer:
        context = ssl.create_default_context(cafile=self.ca_bundle)
        try:
            with urllib.request.urlopen(request, timeout=30, context=context) as answer:
                return Answer(answer.status, json.load(answer))
        except urllib.error.HTTPError as refused:
            return Answer(refused.code, json.loads(refused.read() or b"null"))
