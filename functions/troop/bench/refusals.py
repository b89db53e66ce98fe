"""What EC2 and Auto Scaling say when they do not launch an instance: whether it is of any use to wait."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

PERMANENT = (
    # quotas
    "vcpulimitexceeded",
    "more vcpu capacity than your current vcpu limit",
    "than your current instance limit",
    "your quota allows for",
    "instancelimitexceeded",
    "volumelimitexceeded",
    "maximum storage limit",
    "maxiopslimitexceeded",
    r"exceeded your maximum (number of )?.{0,40}\b(storage|iops|volumes?)\b",
    # the network
    "enough free addresses in subnet",
    "insufficientfreeaddressesinsubnet",
    # what the account may do at all
    "optinrequired",
    "not subscribed",
    "pendingverification",
    "is being validated",  # a region that the account has never used
    "blocked",
    # what does not exist, or does not fit
    "invalidamiid",
    r"\b(image id|ami|security group|subnet id|key pair)\b.{0,80}does not exist",
    "invalidparameter",
    "the requested configuration is currently not supported",
    "is not supported in your requested availability zone",
    "launch template",
    "architecture",
    # what an instance has died of while it was pending
    "invalidkmskey",
    "client.internalerror",  # a volume's key that Auto Scaling may not use
    "invalidsnapshot",
)
"""Regular expressions over what EC2 says, in lower case, when it would say the same of the next try. Lack of capacity
is not among it: that may pass.
"""

OF_RIGHTS = ("not authorized", "unauthorized", "accessdenied", "invalid iam ?instance ?profile")
"""The same of rights and roles. AWS also says this for a while after it creates a role, such as the one with which Auto
Scaling launches the first group of an account.
"""

SPREAD = 180.0
"""Seconds after which AWS knows a new role everywhere."""

NO_SPOT = (
    "maxspotinstancecountexceeded",
    "max spot instance count exceeded",
    "spotmaxpricetoolow",
)
"""The same when waiting for spot is of no use. Lack of capacity is not among it here either."""

_NO_SPOT_ROLE = ("servicelinkedrole",)
"""What is said where Spot's own role is missing: to be believed as :data:`OF_RIGHTS` is."""

PASSING = ("access denied when attempting to assume role",)
"""What passes by itself, whatever else is said: Auto Scaling's own role takes about a minute to be usable in an account
that never had it.
"""

_DIED = "termination reason:"
"""Auto Scaling cancels the activity of an instance that dies while it is pending, and says of what."""

_BY_REQUEST = ("userinitiatedshutdown", "user initiated")
"""The reason of an instance that somebody has terminated, as a deletion or a smaller size of its group does."""

NO_REASON = "no reason given"


def is_permanent(refusal: str, elapsed: float = math.inf) -> bool:
    """Tells whether a failed launch would fail again.

    Args:
        elapsed: seconds since the group was created; unset where that was long ago.
    """
    if _matches(refusal, PASSING):
        return False
    return _matches(refusal, PERMANENT) or (elapsed >= SPREAD and _matches(refusal, OF_RIGHTS))


def is_vain(refusal: str, elapsed: float = math.inf) -> bool:
    """Tells whether a failed launch of a fleet that nothing stands in for would fail again, on demand or on spot."""
    if _matches(refusal, PASSING):
        return False
    no_spot = _matches(refusal, NO_SPOT) or (elapsed >= SPREAD and _matches(refusal, _NO_SPOT_ROLE))
    return no_spot or is_permanent(refusal, elapsed)


def of_launches(
    activities: Iterable[Mapping[str, Any]], *, since_success: bool = False, rights_since: datetime | None = None
) -> Iterator[str]:
    """Says why launches have failed, in the order of the activities.

    Args:
        activities: scaling activities of one group as Auto Scaling describes them, newest first.
        since_success: whether to end at the newest launch that went well: what failed before it has passed.
        rights_since: leave out launches that failed for want of a right before this moment; None for none.
    """
    for activity in activities:
        description = str(activity.get("Description") or "")
        if description.startswith("Terminating"):
            continue
        if since_success and activity["StatusCode"] == "Successful":
            return
        reason = str(activity.get("StatusMessage") or description or NO_REASON)
        began = activity.get("StartTime")
        if rights_since and began and began < rights_since and _matches(reason, (*OF_RIGHTS, *_NO_SPOT_ROLE)):
            continue
        if activity["StatusCode"] == "Failed" or (activity["StatusCode"] == "Cancelled" and _has_died(reason)):
            yield reason


def _matches(refusal: str, patterns: Iterable[str]) -> bool:
    return re.search("|".join(patterns), refusal.lower()) is not None


def _has_died(reason: str) -> bool:
    """Tells whether a cancelled launch names an instance that nobody wanted to end."""
    lowered = reason.lower()
    return _DIED in lowered and not any(words in lowered for words in _BY_REQUEST)
