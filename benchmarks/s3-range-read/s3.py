"""Requests of one bucket: listing, and whole objects. Range reads have a faster client, in ranges.py."""

from __future__ import annotations

import hashlib
import http.client
import os
import random
import re
import time
import xml.etree.ElementTree as ElementTree
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from urllib.parse import unquote_plus
from xml.sax.saxutils import escape

from troop.measure.s3.addresses import address_of, endpoint_of, trust
from troop.measure.s3.credentials import REFUSALS, CredentialStore
from troop.measure.s3.signing import EMPTY, Signer, encoded_query

TIMEOUT_SECONDS = 30.0
TRIES = 6
TRIES_WHILE_BUSY = 14
"""While S3 asks for fewer requests: it takes minutes to provide for a new prefix. The waits last 40 s on average."""
LONGEST_WAIT = 10.0
SKEWED = "RequestTimeTooSkewed"
BUSY = frozenset({429, 503})
PASSING = BUSY | {500, 502, 504}
PASSING_CODES = frozenset({"InternalError", "ServiceUnavailable", "SlowDown"})
"""Passing codes of single objects, or in an answer with status 200."""
MOST_DELETED = 1000
"""Keys of one DeleteObjects."""
_CODE = re.compile(rb"<Code>([A-Za-z0-9]{1,50})</Code>")


class S3Error(Exception):
    """S3 refused a request.

    Attributes:
        status: of HTTP; 0 if there was no complete answer.
        code: S3's own, such as ``AccessDenied``; empty if there is none.
    """

    def __init__(self, message: str, status: int = 0, code: str = "") -> None:
        super().__init__(message)
        self.status, self.code = status, code


def region_of(variables: Mapping[str, str]) -> str:
    """Returns the node's region.

    Raises:
        S3Error: no variable names it.
    """
    region = variables.get("AWS_REGION") or variables.get("AWS_DEFAULT_REGION")
    if not region:
        raise S3Error("the region is unknown: set AWS_DEFAULT_REGION, as the node's user data does")
    return region


def code_of(body: bytes) -> str:
    """Returns the code in an error's body; empty if there is none."""
    code = _CODE.search(body)
    return code.group(1).decode() if code else ""


@dataclass(frozen=True)
class Listed:
    """An object of a listing; its size in bytes."""

    key: str
    size: int


class Bucket:
    """A bucket, over one connection that stays open: for one thread.

    Args:
        store: the credentials.
        region, endpoint: as of :func:`address_of`; by default those of the environment.
    """

    def __init__(self, name: str, store: CredentialStore, region: str = "", endpoint: str | None = None) -> None:
        self.name, self._store = name, store
        self._region = region or region_of(os.environ)
        self.address = address_of(name, self._region, endpoint_of(os.environ) if endpoint is None else endpoint)
        self.signer = Signer(store.current, self._region)
        self._connection: http.client.HTTPConnection | None = None

    def listing(self, prefix: str) -> Iterator[list[Listed]]:
        """Yields the objects below a prefix, page by page, in the order of their keys: a page has up to 1,000.

        Raises:
            S3Error: the bucket cannot be listed.
        """
        query = {"list-type": "2", "prefix": prefix, "encoding-type": "url"}
        while True:
            root = _parsed(self.ask("GET", "", query))
            yield [_listed(node) for node in root if _tag(node) == "Contents"]
            token = _text(root, "NextContinuationToken")
            if _text(root, "IsTruncated") != "true" or not token:
                return
            query["continuation-token"] = token

    def open(self, key: str) -> http.client.HTTPResponse:
        """Returns an object's content, to read in parts.

        Raises:
            S3Error: S3 refused it.
        """
        return self._answer("GET", key, {}, b"", {})

    def put(self, key: str, body: bytes) -> None:
        """Writes an object.

        Raises:
            S3Error: S3 refused it.
        """
        self.ask("PUT", key, {}, body)

    def delete(self, keys: Sequence[str]) -> dict[str, str]:
        """Deletes at most 1,000 objects. Repeats the request for those that S3 refuses because it is busy.

        Returns:
            S3's code of each object that it did not delete.

        Raises:
            S3Error: S3 refused the request.
        """
        refused: dict[str, str] = {}
        for number in range(TRIES_WHILE_BUSY):
            refused = {key: code for key, code in refused.items() if code not in PASSING_CODES} | self._delete(keys)
            keys = [key for key, code in refused.items() if code in PASSING_CODES]
            if not keys:
                break
            if number < TRIES_WHILE_BUSY - 1:
                pause(number)
        return refused

    def _delete(self, keys: Sequence[str]) -> dict[str, str]:
        parts = "".join(f"<Object><Key>{escape(key)}</Key></Object>" for key in keys)
        body = f'<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Quiet>true</Quiet>{parts}</Delete>'.encode()
        # Required, and the only digest that every version of S3 takes.
        digest = {"content-md5": b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()}
        root = _parsed(self.ask("POST", "", {"delete": ""}, body, digest))
        if _tag(root) == "Error":  # S3 can refuse the whole request with status 200
            return dict.fromkeys(keys, _text(root, "Code") or "InternalError")
        return {_text(node, "Key"): _text(node, "Code") for node in root if _tag(node) == "Error"}

    def ask(
        self,
        method: str,
        key: str,
        query: Mapping[str, str],
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Sends a request, and repeats it after a failure that may pass. Returns the answer's body.

        Raises:
            S3Error: S3 refused it, or did not answer.
        """
        with self._answer(method, key, query, body, headers or {}) as answer:
            try:
                return answer.read()
            except (OSError, http.client.HTTPException) as error:
                self.close()
                raise S3Error(f"{self.name}: the answer to {method} {key!r} broke off: {error!r}") from None

    def _answer(
        self, method: str, key: str, query: Mapping[str, str], body: bytes, headers: Mapping[str, str]
    ) -> http.client.HTTPResponse:
        for number in range(TRIES_WHILE_BUSY):
            tries = TRIES
            try:
                answer = self._send(method, key, query, body, headers)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                problem = S3Error(f"{self.name}: no answer from {self.address.host}: {error!r}")
            else:
                if answer.status < 300:
                    return answer
                problem, may_pass = self._refusal(answer, method, key)
                if not may_pass:
                    raise problem
                tries = TRIES_WHILE_BUSY if answer.status in BUSY else TRIES
            if number >= tries - 1:
                break
            pause(number)
        raise problem

    def _send(
        self, method: str, key: str, query: Mapping[str, str], body: bytes, headers: Mapping[str, str]
    ) -> http.client.HTTPResponse:
        address = self.address
        if self._connection is None:
            self._connection = (
                http.client.HTTPSConnection(address.name, address.port, timeout=TIMEOUT_SECONDS, context=trust())
                if address.is_tls
                else http.client.HTTPConnection(address.name, address.port, timeout=TIMEOUT_SECONDS)
            )
        path, text = address.path(key), encoded_query(query)
        content = hashlib.sha256(body).hexdigest() if body else EMPTY
        every = self.signer.headers(method, path, text, {"host": address.host, **headers}, content)
        self._connection.request(method, f"{path}?{text}" if text else path, body or None, every)
        return self._connection.getresponse()

    def _refusal(self, answer: http.client.HTTPResponse, method: str, key: str) -> tuple[S3Error, bool]:
        """Returns the error, and whether the same request may succeed now."""
        body = answer.read()
        self.close()
        code = code_of(body)
        self._store.refused(code)
        where = answer.headers.get("x-amz-bucket-region", "")
        message = f"{self.name}: S3 answered {answer.status} {code} to {method} {key!r}".rstrip()
        if where and where != self._region:
            message += f". The bucket is in {where}, and nodes read only buckets of their own region, {self._region}"
        if code == SKEWED:
            note = skew(self.signer, answer.headers.get("Date", ""))
            print(note, flush=True)
            return S3Error(f"{message}. {note}", answer.status, code), True
        return S3Error(message, answer.status, code), answer.status in PASSING or code in REFUSALS

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def pause(number: int) -> None:
    """Waits before a request is repeated: longer each time, and not for the same time on all threads and nodes."""
    time.sleep(random.uniform(0.5, 1) * min(0.1 * 2**number, LONGEST_WAIT))


def skew(signer: Signer, date: str) -> str:
    """Corrects the time of signatures by the date of an answer. Returns a sentence that says so."""
    try:
        change = signer.correct(parsedate_to_datetime(date).timestamp())
    except (TypeError, ValueError, IndexError):
        return f"The clock of this node is wrong, and S3's time is unknown: its date is {date!r}."
    side = "behind" if change > 0 else "ahead of"
    return (
        f"The clock of this node is {abs(change):,.0f} s {side} S3's. Requests are now signed with S3's time; check "
        "the time synchronization of the image."
    )


def _parsed(body: bytes) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(body)
    except ElementTree.ParseError as error:
        raise S3Error(f"S3's answer is no XML: {error}") from None


def _tag(node: ElementTree.Element) -> str:
    return node.tag.rpartition("}")[2]


def _text(node: ElementTree.Element, name: str) -> str:
    return next((one.text or "" for one in node if _tag(one) == name), "")


def _listed(node: ElementTree.Element) -> Listed:
    return Listed(unquote_plus(_text(node, "Key")), int(_text(node, "Size") or 0))
