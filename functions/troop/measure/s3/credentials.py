"""Gets the credentials of the node's role from the instance metadata service, and renews them in time.

EC2 provides new credentials at least five minutes before the old ones expire.
"""

from __future__ import annotations

import calendar
import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, Callable
from urllib.request import ProxyHandler, Request, build_opener

SERVICE = "http://169.254.169.254"
ROLES = "latest/meta-data/iam/security-credentials/"
TIMEOUT_SECONDS = 5.0
TRIES = 10
EARLY_SECONDS = 900.0
"""Time before the expiry from which new credentials are requested."""
PAUSE_SECONDS = 10.0
"""Time between two requests to the service, also if S3 refuses many reads at once."""
REFUSALS = (
    *("ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "TokenRefreshRequired"),
    *("ExpiredTokenException", "InvalidClientTokenId", "UnrecognizedClientException"),
)
"""Codes of S3, and of other services, for credentials that are no longer valid."""

_FIELDS = ("AccessKeyId", "SecretAccessKey", "Token", "Expiration")


class CredentialsError(Exception):
    """There are no credentials; the message says why."""


@dataclass(frozen=True)
class Credentials:
    """An access key.

    Attributes:
        token: of a role's session; empty for a user's access key.
        expires_at: seconds since 1970; None if they do not expire.
    """

    access_key: str
    secret: str
    token: str = ""
    expires_at: float | None = None

    def __repr__(self) -> str:
        return f"Credentials({self.access_key!r})"


def environment_credentials(variables: Mapping[str, str]) -> Credentials | None:
    """Returns the credentials in the variables of the AWS CLI; nodes have none there."""
    access_key, secret = variables.get("AWS_ACCESS_KEY_ID"), variables.get("AWS_SECRET_ACCESS_KEY")
    return Credentials(access_key, secret, variables.get("AWS_SESSION_TOKEN", "")) if access_key and secret else None


def instance_credentials() -> Credentials:
    """Returns the credentials of the instance's role.

    Raises:
        CredentialsError: the service did not answer, or the instance has no role.
    """
    base = (os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or SERVICE).rstrip("/")
    try:
        token = _get(f"{base}/latest/api/token", "PUT", {"X-aws-ec2-metadata-token-ttl-seconds": "60"})
        header = {"X-aws-ec2-metadata-token": token}
        role = _get(f"{base}/{ROLES}", "GET", header).split("\n")[0].strip()
        return parse(json.loads(_get(f"{base}/{ROLES}{role}", "GET", header)))
    except (OSError, ValueError, HTTPException) as error:
        raise CredentialsError(f"no credentials from the instance metadata service at {base}: {error}") from None


def parse(document: Any) -> Credentials:
    """Reads the service's document.

    Raises:
        ValueError: it has no valid credentials.
    """
    if not isinstance(document, dict) or document.get("Code", "Success") != "Success":
        raise ValueError(f"its answer is {document!r:.200}")
    try:
        access_key, secret, token, expiry = (str(document[name]) for name in _FIELDS)
    except KeyError as name:
        raise ValueError(f"its answer has no {name}") from None
    return Credentials(access_key, secret, token, calendar.timegm(time.strptime(expiry[:19], "%Y-%m-%dT%H:%M:%S")))


def _get(url: str, method: str, headers: dict[str, str]) -> str:
    opener = build_opener(ProxyHandler({}))  # the service is on the node itself
    with opener.open(Request(url, headers=headers, method=method), timeout=TIMEOUT_SECONDS) as answer:
        return str(answer.read().decode())


class CredentialStore:
    """The current credentials of one process, for any number of threads. The thread that needs them first renews them.

    Args:
        fetch: returns new credentials, or raises CredentialsError. By default, the variables of the AWS CLI count
            before the role of the instance.
        clock: seconds since 1970.
        sleep: waits for seconds.

    Raises:
        CredentialsError: there are none, after several tries: a role may not be there right after boot.
    """

    def __init__(
        self,
        fetch: Callable[[], Credentials] | None = None,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._fetch, self._clock = fetch or instance_credentials, clock
        self._lock = threading.Lock()
        self._is_refused = False
        self._credentials = (None if fetch else environment_credentials(os.environ)) or self._first(sleep)
        self._requested_at = clock()
        self._renew_at = self._due()

    def current(self) -> Credentials:
        """Returns credentials that are valid for some minutes, as far as the service provides them."""
        if (self._is_refused or self._clock() >= self._renew_at) and self._lock.acquire(blocking=False):
            try:
                self._renew()
            finally:
                self._lock.release()
        return self._credentials

    def refused(self, code: str) -> None:
        """Notes an error of a service: if it is about the credentials, the next request renews them."""
        if code in REFUSALS and self._credentials.expires_at is not None:
            self._is_refused = True

    def _renew(self) -> None:
        now = self._clock()
        if now - self._requested_at < PAUSE_SECONDS:
            return
        self._requested_at, self._is_refused = now, False
        try:
            self._credentials = self._fetch()
        except CredentialsError as error:
            sys.stdout.write(f"cannot renew the credentials: {error}\n")
            sys.stdout.flush()
        self._renew_at = max(self._due(), now + PAUSE_SECONDS)

    def _due(self) -> float:
        expires_at = self._credentials.expires_at
        return float("inf") if expires_at is None else expires_at - EARLY_SECONDS

    def _first(self, sleep: Callable[[float], None]) -> Credentials:
        for number in range(TRIES):
            try:
                return self._fetch()
            except CredentialsError as error:
                problem = error
            if number < TRIES - 1:
                sleep(min(0.2 * 2**number, 5))
        raise problem
