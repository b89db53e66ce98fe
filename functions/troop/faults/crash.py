"""Defines ``crash``: EC2 ends the instance without a shutdown of its operating system.

Where EC2 rejects that, a crash becomes a :mod:`troop.faults.shutdown`, and the event records it.
"""

from __future__ import annotations

import re
from typing import Any

from troop.faults import shutdown
from troop.faults.fault import INVALID_REQUEST, Failure, Fault, Instance, Meaning

_PARAMETER = re.compile(r"skip[\s_-]*os[\s_-]*shutdown", re.IGNORECASE)

_REJECTIONS = frozenset(
    {
        INVALID_REQUEST,
        "InvalidParameter",
        "InvalidParameterCombination",
        "InvalidParameterValue",
        "InvalidRequest",
        "Unsupported",
        "UnsupportedOperation",
    }
)
"""Codes that reject a parameter if the text names it. ``UnsupportedOperation`` can also mean that a service operates
the instance.
"""


def _strike(instance: Instance) -> Any:
    # Without the parameter EC2 stops the services of the instance in order, for up to minutes.
    return shutdown.terminate(instance, **({} if instance.os_shutdown else {"SkipOsShutdown": True}))


def _meaning(failure: Failure) -> Meaning | None:
    # Of the call's parameters, only this one can be unknown.
    rejected = failure.code == "UnknownParameter" or (failure.code in _REJECTIONS and _PARAMETER.search(failure.text))
    return Meaning.NEEDS_SHUTDOWN if rejected and not failure.os_shutdown else shutdown.meaning(failure)


CRASH = Fault(
    name="crash",
    summary="EC2 ends the instance without shutting down its operating system, like a hardware failure",
    services=("ec2",),
    permissions=shutdown.PERMISSIONS,
    os_shutdown=False,
    strike=_strike,
    meaning=_meaning,
    was_over=shutdown.was_over,
    refused_if_protected=True,
    fallback="its operating system was shut down first, because AWS rejects a crash without that",
)
