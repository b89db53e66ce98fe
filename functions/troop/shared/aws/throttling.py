"""Defines which errors mean that AWS throttles, and repeats what DynamoDB throttles.

botocore itself repeats throttled requests and transient errors. :mod:`troop.shared.aws.clients` sets its mode
"standard", with random waits up to 1, 2, 4 and more seconds, at most 20. botocore repeats neither the unprocessed part
of a batch nor a write that conflicts with a transaction: :func:`repeat` does.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from botocore.exceptions import ClientError

from troop.shared.errors import TroopError

USUAL_ATTEMPTS = 7
"""botocore's attempts at a request, the first included. The waits are at most 51 seconds together."""

TERMINATION_ATTEMPTS = 3
"""All attempts together must end well before a claim's deadline (claim_rules.LAST_CALL)."""

QUICK_ATTEMPTS = 2
"""A health check must report what does not answer, not wait for it."""

CODES = frozenset(
    {
        *("Throttling", "ThrottlingException", "ThrottledException", "RequestThrottledException", "RequestThrottled"),
        *("TooManyRequestsException", "RequestLimitExceeded", "BandwidthLimitExceeded", "LimitExceededException"),
        *("ProvisionedThroughputExceededException", "TransactionInProgressException", "PriorRequestNotComplete"),
        *("SlowDown", "EC2ThrottledException"),
    }
)
"""The codes of errors with which services throttle: those of ThrottledRetryableChecker in botocore.retries.standard.
botocore has already repeated a request that ends with one of them.
"""

CONTENDED = frozenset(
    {"TransactionConflict", "TransactionConflictException", "ThrottlingError", "ProvisionedThroughputExceeded"}
)
"""Why a write may succeed a moment later, although botocore does not repeat it: the reasons with which DynamoDB cancels
a transaction, and the code of a plain write that conflicts with one. DynamoDB's API reference lists them under
TransactWriteItems.
"""

Sleep = Callable[[float], None]
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Waits:
    """How often :func:`repeat` tries, and how long it waits.

    Attributes:
        tries: the most calls.
        first: the longest first wait, in seconds. Each further wait can be twice as long.
    """

    tries: int
    first: float


READS = Waits(tries=5, first=0.2)
"""On average 1.5 seconds: callers of the API wait for reads."""

WRITES = Waits(tries=8, first=0.1)
"""On average 6.35 seconds."""


class ThrottledError(TroopError, ClientError):
    """DynamoDB throttles a batch or a write, or other transactions write the same items all the time.

    It is also botocore's error: a caller that tolerates refusals by AWS tolerates this one too.

    Attributes:
        work: what could not be completed, such as ``3 decisions of Decisions``.
        conflicts: whether other transactions are the reason.
        tries: the number of calls.
        waited: the seconds of the waits between them.
    """

    def __init__(self, operation: str, work: str, response: Any = None, tries: int = 1, waited: float = 0) -> None:
        self.operation_name, self.work, self.tries, self.waited = operation, work, tries, waited
        self.response: Any = response or {"Error": {"Code": "ThrottlingException", "Message": "unprocessed"}}
        self.conflicts = any(code.startswith("TransactionConflict") for code in reasons(self))
        cause = "other transactions write the same items" if self.conflicts else "DynamoDB throttles it"
        Exception.__init__(
            self,
            f"{operation} of {work} failed {tries} times, with {waited:.1f} seconds of waits, because {cause}: "
            "try again later, and if it still fails, see throttled in docs/guides/runbook.md",
        )


def is_throttled(error: ClientError) -> bool:
    """Checks whether a service refused a request because of too many requests."""
    return error.response["Error"]["Code"] in CODES


def reasons(error: ClientError) -> list[str]:
    """Returns the reason for each part of a cancelled transaction, ``None`` for a part without one; otherwise the
    error's code alone.
    """
    cancelled = error.response.get("CancellationReasons")
    return [one.get("Code", "None") for one in cancelled] if cancelled else [error.response["Error"]["Code"]]


def repeat(call: Callable[[], Answer], waits: Waits, sleep: Sleep) -> Answer:
    """Repeats a call while it raises :class:`ThrottledError`, with full jitter. Returns its answer.

    Raises:
        ThrottledError: the last try failed, too. It has the number of tries and the time.
    """
    waited = 0.0
    for number in range(waits.tries):
        try:
            return call()
        except ThrottledError as error:
            if number == waits.tries - 1:
                last = ThrottledError(error.operation_name, error.work, error.response, waits.tries, waited)
                raise last from error.__cause__
        pause = random.uniform(0, waits.first * 2**number)
        waited += pause
        sleep(pause)
    raise AssertionError("the last try returns or raises")
