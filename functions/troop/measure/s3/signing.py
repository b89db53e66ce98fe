"""Signs requests to AWS with Signature Version 4, without the AWS CLI and without a process for each request."""

from __future__ import annotations

import hashlib
import hmac
import threading
import time
from collections.abc import Mapping
from typing import Any, Callable
from urllib.parse import quote

from troop.measure.s3.credentials import Credentials

EMPTY = hashlib.sha256(b"").hexdigest()
"""The hash of a request without a body."""
ALGORITHM = "AWS4-HMAC-SHA256"
_SHA256 = hashlib.sha256()
"""A hash to copy, which takes less time than creating another."""
_INNER, _OUTER = (bytes(byte ^ pad for byte in range(256)) for pad in (0x36, 0x5C))
Halves = tuple[Any, Any]
"""HMAC's two hashes after they have read the key: :mod:`hmac` would read it for each signature."""
UNRESERVED = "-_.~"
"""Characters beside letters and digits that S3 leaves unchanged; slashes stay only in paths."""


def encoded_path(key: str) -> str:
    """Returns the path of a key. S3 demands exactly one encoding, and neither removes double slashes nor dots."""
    return quote(key, safe="/" + UNRESERVED)


def encoded_query(query: Mapping[str, str]) -> str:
    """Returns the query in the order of the signature, which is also sent."""
    pairs = ((quote(name, safe=UNRESERVED), quote(value, safe=UNRESERVED)) for name, value in query.items())
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))


class Signer:
    """Signs for one region with the current credentials, from any number of threads.

    Args:
        current: returns the credentials to sign with.
        clock: seconds since 1970.
        service: the name of the service in signatures.
    """

    def __init__(
        self,
        current: Callable[[], Credentials],
        region: str,
        clock: Callable[[], float] = time.time,
        service: str = "s3",
    ) -> None:
        self._current, self._region, self._clock, self._service = current, region, clock, service
        self._offset = 0.0
        self._lock = threading.Lock()
        self._stamp = (0, "")
        self._key: tuple[str, str, Halves] = ("", "", _halves(b""))

    def correct(self, now: float) -> float:
        """Takes the service's time, in seconds since 1970, in place of this node's.

        Returns:
            The seconds that this changes.
        """
        with self._lock:
            offset = now - self._clock()
            change, self._offset = offset - self._offset, offset
            return change

    def headers(
        self, method: str, path: str, query: str, headers: Mapping[str, str], content: str = EMPTY
    ) -> dict[str, str]:
        """Returns all headers of a request, with its signature.

        Args:
            path: encoded, as it is sent.
            query: encoded and sorted, as it is sent.
            headers: with ``host``; names in lower case, values without superfluous blanks. All are signed.
            content: the SHA-256 of the body in hexadecimal.
        """
        every, _, authorization = self._signed(method, path, query, headers, content)
        return {**every, "authorization": authorization}

    def request(self, path: str, headers: Mapping[str, str]) -> bytes:
        """Returns a whole request to get an object; the arguments are those of :meth:`headers`."""
        _, lines, authorization = self._signed("GET", path, "", headers, EMPTY)
        lines = lines.replace("\n", "\r\n")
        return f"GET {path} HTTP/1.1\r\n{lines}authorization:{authorization}\r\n\r\n".encode("ascii")

    def _signed(
        self, method: str, path: str, query: str, headers: Mapping[str, str], content: str
    ) -> tuple[dict[str, str], str, str]:
        """Returns the headers that are signed, their lines, and the header ``authorization``."""
        credentials, stamp = self._current(), self._now()
        every = {**headers, "x-amz-content-sha256": content, "x-amz-date": stamp}
        if credentials.token:
            every["x-amz-security-token"] = credentials.token
        names = sorted(every)
        lines, signed = "".join([f"{name}:{every[name]}\n" for name in names]), ";".join(names)
        request = f"{method}\n{path}\n{query}\n{lines}\n{signed}\n{content}"
        scope = f"{stamp[:8]}/{self._region}/{self._service}/aws4_request"
        digest = _SHA256.copy()
        digest.update(request.encode())
        text = f"{ALGORITHM}\n{stamp}\n{scope}\n{digest.hexdigest()}"
        inner, outer = self._key_of(stamp[:8], credentials)
        inner, outer = inner.copy(), outer.copy()
        inner.update(text.encode())
        outer.update(inner.digest())
        signature = outer.hexdigest()
        credential = f"{credentials.access_key}/{scope}"
        return every, lines, f"{ALGORITHM} Credential={credential},SignedHeaders={signed},Signature={signature}"

    def _now(self) -> str:
        """Returns the time of a signature, which is formatted once a second."""
        now = int(self._clock() + self._offset)
        second, stamp = self._stamp  # threads may do the same work twice, but never see a mixture
        if second != now:
            stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
            self._stamp = now, stamp
        return stamp

    def _key_of(self, day: str, credentials: Credentials) -> Halves:
        """Returns the signing key, which is derived once a day and after each change of the credentials."""
        known_day, secret, halves = self._key
        if (known_day, secret) != (day, credentials.secret):
            key = f"AWS4{credentials.secret}".encode()
            for part in (day, self._region, self._service, "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            halves = _halves(key)
            self._key = day, credentials.secret, halves
        return halves


def _halves(key: bytes) -> Halves:
    padded = key.ljust(_SHA256.block_size, b"\0")
    return hashlib.sha256(padded.translate(_INNER)), hashlib.sha256(padded.translate(_OUTER))
