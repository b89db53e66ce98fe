"""Sends signed requests to a service, and repeats those whose failure may pass."""

from __future__ import annotations

import hashlib
import json
import random
import re
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Callable
from urllib.parse import urlsplit

from troop.measure.s3.credentials import REFUSALS, CredentialStore
from troop.measure.s3.signing import EMPTY, Signer
from troop.measure.s3.web import ERRORS, Answer, Web
from troop.work.errors import WorkError, say

TIMEOUT_SECONDS = 30.0
"""Longer than the longest poll of a queue."""
TRIES = 10
"""The pauses between so many tries last 24 s on average: longer than credentials take to be renewed."""
LONGEST_PAUSE = 10.0
SKEW_SECONDS = 60.0
"""A difference of clocks above which a refusal is repeated with the service's time."""

CONFLICT = 409
"""S3's status while another write of the same object is under way."""
_PASSING = frozenset({CONFLICT, 429})
_PASSING_CODES = frozenset({"OverLimit", "RequestThrottled", "RequestTimeout", "SlowDown", "ThrottlingException"})
_KMS_THROTTLED = "KmsThrottled"
_CODE = re.compile(rb"<Code>([A-Za-z0-9.]{1,80})</Code>")


@dataclass(frozen=True)
class Reply:
    """A service's answer.

    Attributes:
        tries: how often the request was sent. With more than one, an earlier one may have taken effect.
    """

    answer: Answer
    tries: int


class Service:
    """A service of AWS, for any number of threads; each has a connection of its own.

    Args:
        name: in signatures, such as ``sqs``.
        url: scheme and host.
        endpoints: hosts to connect to in place of the URL's, in turn after a lost connection; empty for the URL's.
    """

    def __init__(
        self,
        name: str,
        region: str,
        url: str,
        store: CredentialStore,
        endpoints: Sequence[str] = (),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name, self._url, self._store, self._sleep = name, url, store, sleep
        self._host, self._endpoints = urlsplit(url).netloc, tuple(endpoints) or ("",)
        self._signer = Signer(store.current, region, service=name)
        self._own = threading.local()
        self._turn = 0

    def ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"", tries: int = TRIES) -> Reply:
        """Sends a request until there is an answer that will not change soon, with any status.

        Args:
            path: encoded, as it is sent.
            headers: names in lower case.

        Raises:
            WorkError: there was no such answer.
            troop.measure.s3.credentials.CredentialsError: the node has no credentials.
        """
        for number in range(1, tries + 1):
            try:
                answer = self._send(method, path, headers, body)
            except ERRORS as error:
                self._turn += 1
                problem = WorkError(f"{self.name}: no answer from {self._host}: {error!r}")
            else:
                if answer.status < 400 or not self._may_pass(answer):
                    return Reply(answer, number)
                code = code_of(answer)
                problem = WorkError(f"{self.name} answered {answer.status} {code}".rstrip(), answer.status, code)
            if number < tries:
                self._sleep(random.uniform(0.5, 1) * min(0.1 * 2.0 ** (number - 1), LONGEST_PAUSE))
        raise problem

    def _send(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        content = hashlib.sha256(body).hexdigest() if body else EMPTY
        signed = self._signer.headers(method, path, "", {"host": self._host, **headers}, content)
        turn, web = getattr(self._own, "web", (-1, None))
        if web is None or turn != self._turn:
            turn = self._turn
            web = Web(TIMEOUT_SECONDS, self._endpoints[turn % len(self._endpoints)])
            self._own.web = turn, web
        answer: Answer = web.ask(f"{self._url}{path}", method, signed, body)
        return answer

    def _may_pass(self, answer: Answer) -> bool:
        """Checks whether the same request may succeed soon; renews credentials and corrects the clock if needed."""
        code = code_of(answer)
        if code in REFUSALS:
            self._store.refused(code)
            return True
        if answer.status >= 500 or answer.status in _PASSING or code in _PASSING_CODES or code == _KMS_THROTTLED:
            return True
        return answer.status in (400, 403) and self._corrects_clock(answer.date)

    def _corrects_clock(self, date: str) -> bool:
        try:
            change = self._signer.correct(parsedate_to_datetime(date).timestamp())
        except (TypeError, ValueError, IndexError):
            return False
        if abs(change) > SKEW_SECONDS:
            say(f"the clock of this node differs by {abs(change):,.0f} s: requests are signed with the service's time")
            return True
        return False


def code_of(answer: Answer) -> str:
    """Returns the code of a refusal, of JSON or XML; empty if there is none."""
    if match := _CODE.search(answer.body):
        return match.group(1).decode()
    try:
        return str(json.loads(answer.body).get("__type") or "").rpartition("#")[2]
    except (ValueError, AttributeError, RecursionError):
        return ""
