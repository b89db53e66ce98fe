"""Asks the application of a standing fleet's node for its health, by Troop's contract.

``GET`` answers 200, or 503 if a check fails, with ``{"checks": [{"name", "status", ...}]}``. Any other answer fails.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from agent.definition import Health
from agent.errors import UNREADABLE
from troop.measure.s3.web import ERRORS

OK, WARN, FAIL = "ok", "warn", "fail"
"""Statuses, the better ones first."""
STATUSES = (OK, WARN, FAIL)
ANSWER, WORK = "answer", "work"
"""Checks that the agent adds: whether there is an answer, and whether work is done."""
MOST_BYTES = 64 << 10
"""Bytes of an answer that are read."""
MOST_CHECKS, LONGEST_NAME, LONGEST_TEXT, LARGEST = 20, 64, 200, 10**15
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Check:
    """The result of one check.

    Attributes:
        value, threshold: None for none.
        todo: what to do about it; "" for nothing.
        actionable: whether somebody must act now.
    """

    name: str
    status: str
    value: float | None = None
    threshold: float | None = None
    detail: str = ""
    todo: str = ""
    actionable: bool = False

    def document(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Answered:
    """What one request has shown.

    Attributes:
        work: the application's own counter of work; None if it has none.
    """

    checks: tuple[Check, ...]
    work: float | None = None


def worst(checks: Iterable[Check]) -> str:
    """Returns the worst status of some checks; OK without any."""
    return max((check.status for check in checks), key=STATUSES.index, default=OK)


def ask(address: str, health: Health, *, and_loopback: bool) -> Answered:
    """Asks an application. Raises nothing: what goes wrong is a failed check.

    Args:
        address: of the node.
        and_loopback: whether an application that refuses connections at this address is asked at 127.0.0.1, too.
    """
    hosts = (address, _LOOPBACK) if and_loopback else (address,)
    problem = ""
    for host in hosts:
        try:
            status, body = _get(host, health)
        except ConnectionRefusedError:
            problem = f"nothing listens on port {health.port}"
        except ERRORS as error:
            return _failed(f"no answer from {host}:{health.port}{health.path}: {error!r}")
        else:
            return parse(status, body)
    return _failed(problem)


def _get(host: str, health: Health) -> tuple[int, bytes]:
    """Returns an answer, at most :data:`MOST_BYTES` of it. The time limit is for all of it together."""
    began = time.monotonic()
    connection = http.client.HTTPConnection(host, health.port, timeout=health.timeout)
    connection.connect()
    used: socket.socket = connection.sock
    limit = threading.Timer(max(0.0, health.timeout - (time.monotonic() - began)), _cut, (used,))
    limit.daemon = True
    limit.start()
    try:
        connection.request("GET", health.path, headers={"Connection": "close"})
        response = connection.getresponse()
        answer = response.status, response.read(MOST_BYTES)
        response.close()
    finally:
        limit.cancel()
        connection.close()
    if time.monotonic() - began >= health.timeout:
        raise TimeoutError(f"it took longer than {health.timeout} s")
    return answer


def _cut(used: socket.socket) -> None:
    with contextlib.suppress(OSError):
        used.shutdown(socket.SHUT_RDWR)


def parse(status: int, body: bytes) -> Answered:
    """Judges an answer."""
    if status not in (200, 503):
        return _failed(f"the answer has the status {status}, not 200 or 503")
    try:
        document = json.loads(body)
        if not isinstance(document, dict) or not isinstance(document.get("checks"), list):
            raise ValueError("no checks")
        checks = [_check(one) for one in document["checks"]]
        work = _number(document.get("work"))
    except UNREADABLE:
        if status == 200:
            return Answered((Check(ANSWER, OK),))
        return _failed("the answer has the status 503, and no document of checks")
    if status == 503 and worst(checks) != FAIL:
        checks.append(Check(ANSWER, FAIL, detail="the answer has the status 503, and no check fails", actionable=True))
    checks.sort(key=lambda check: -STATUSES.index(check.status))
    return Answered(tuple(checks[:MOST_CHECKS]), work)


def _failed(detail: str) -> Answered:
    return Answered((Check(ANSWER, FAIL, detail=detail[:LONGEST_TEXT], actionable=True),))


def _check(document: Mapping[str, Any]) -> Check:
    name, status, actionable = document["name"], document["status"], document.get("actionable")
    if not isinstance(name, str) or not name or status not in STATUSES:
        raise ValueError(f"a check is {document!r:.200}")
    return Check(
        name[:LONGEST_NAME],
        status,
        _number(document.get("value")),
        _number(document.get("threshold")),
        str(document.get("detail") or "")[:LONGEST_TEXT],
        str(document.get("todo") or "")[:LONGEST_TEXT],
        actionable if isinstance(actionable, bool) else status == FAIL,
    )


def _number(value: Any) -> float | None:
    """Returns a number that reports can hold; None for anything else."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number and abs(value) <= LARGEST else None
