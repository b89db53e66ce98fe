"""Decides from the messages of failed launches whether waiting can help."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

_UNVERIFIED = "currently being verified"
_FREE_PLAN = "not eligible for free tier"

PERMANENT = (
    # quotas
    r"vcpu limit of 0\b",
    "than your current instance limit",
    "your quota allows for",
    "instancelimitexceeded",
    "volumelimitexceeded",
    "maximum storage limit",
    "maxiopslimitexceeded",
    # but not of a rate, such as that of the initialization of volumes
    r"exceeded your maximum (number of )?(?!.{0,60}\b(initialization|rate)\b).{0,40}\b(storage|iops|volumes?)\b",
    # the network
    "enough free addresses in subnet",
    "insufficientfreeaddressesinsubnet",
    # the account
    "optinrequired",
    "not subscribed",
    "pendingverification",
    "is being validated",  # a region that the account has never used
    _UNVERIFIED,
    _FREE_PLAN,
    "blocked",
    # missing or incompatible resources
    "invalidamiid",
    r"\b(image id|ami|security group|subnet id|key pair)\b.{0,80}does not exist",
    "invalidparameter",
    "the requested configuration is currently not supported",
    "is not supported in your requested availability zone",
    "launch template",
    "architecture",
    # why a pending instance has died
    "invalidkmskey",
    "client.internalerror",  # a volume's key that Auto Scaling may not use
    "invalidsnapshot",
)
"""Regular expressions for EC2's lower-case messages of failures that a retry would repeat. Lack of capacity is not
among them, because it may pass.
"""

REMEDIES = {
    _FREE_PLAN: "The account is on AWS's free plan, which launches only the instance types that `aws ec2 "
    "describe-instance-types --filters Name=free-tier-eligible,Values=true` lists: name one of them, or upgrade the "
    "account to the paid plan",
    _UNVERIFIED: "AWS still verifies this new account: run it again when AWS has sent its mail, or ask AWS Support",
}
"""Sentences that say what to do about failures, where AWS's message does not, by their expression in :data:`PERMANENT`.
"""

FOR_CAPACITY = (
    "insufficient ?(host|instance|reserved|volume)? ?capacity",
    "not enough .{0,30}capacity",
    "insufficient(free)?capacity",
    r"do not have (enough|sufficient) .{0,60}capacity",
    "no .{0,30}capacity available",
    "unfulfillablecapacity",
)
"""Regular expressions for EC2's lower-case messages of lack of capacity in a zone."""

MISSING_RIGHTS = ("not authorized", "unauthorized", "accessdenied", "invalid iam ?instance ?profile")
"""Messages of failed launches that a missing permission causes. AWS also returns these for a while after it creates a
role, such as Auto Scaling's role at the first group of an account.
"""

VCPU_LIMIT = (
    r"vcpulimitexceeded(?!.*vcpu limit of 0\b)",
    r"more vcpu capacity than your current vcpu limit(?! of 0\b)",
)
"""Messages of launches that a quota of vCPUs refuses, unless the quota is 0. EC2 may still count nodes that ended
seconds ago, such as those of the last cell.
"""

SPREAD = 180.0
"""Seconds after which a new role is usable everywhere in AWS, and EC2 no longer counts nodes that ended before."""

NO_SPOT = (
    "maxspotinstancecountexceeded",
    "max spot instance count exceeded",
    "spotmaxpricetoolow",
)
"""Messages of failures for which waiting for spot cannot help. Lack of capacity is not among them."""

_NO_SPOT_ROLE = ("servicelinkedrole",)
"""Messages if Spot's service-linked role is missing; treated like :data:`MISSING_RIGHTS`."""

_SETTLING = (*MISSING_RIGHTS, *_NO_SPOT_ROLE, *VCPU_LIMIT)

PASSING = ("access denied when attempting to assume role",)
"""Messages of failures that pass, whatever else they contain: Auto Scaling's own new role takes about a minute to
become usable.
"""

_DIED = "termination reason:"
"""Words before the reason of an instance's death while pending, for which Auto Scaling cancels its activity."""

_BY_REQUEST = ("userinitiatedshutdown", "user initiated")
"""Reasons of a requested termination, which deleting or shrinking the group also causes."""

NO_REASON = "no reason given"


def is_permanent(refusal: str, elapsed: float = math.inf) -> bool:
    """Checks whether a failed launch would fail again.

    Args:
        elapsed: seconds since the group was created; omitted for an old group.
    """
    if _matches(refusal, PASSING):
        return False
    if _matches(refusal, MISSING_RIGHTS):  # also of a launch template
        return elapsed >= SPREAD
    return _matches(refusal, PERMANENT) or (elapsed >= SPREAD and _matches(refusal, VCPU_LIMIT))


def remedy(refusal: str) -> str:
    """Returns a sentence that says what to do about a failed launch; empty if AWS's message is enough."""
    return next((sentence for pattern, sentence in REMEDIES.items() if _matches(refusal, [pattern])), "")


def is_for_capacity(refusal: str) -> bool:
    """Checks whether EC2 refused a launch because it lacks capacity."""
    return _matches(refusal, FOR_CAPACITY)


def is_vain(refusal: str, elapsed: float = math.inf) -> bool:
    """Checks whether a failed launch of a fleet without a backup would fail again, on demand or on spot."""
    if _matches(refusal, PASSING):
        return False
    no_spot = _matches(refusal, NO_SPOT) or (elapsed >= SPREAD and _matches(refusal, _NO_SPOT_ROLE))
    return no_spot or is_permanent(refusal, elapsed)


def launch_refusals(
    activities: Iterable[Mapping[str, Any]], *, since_success: bool = False, settled_since: datetime | None = None
) -> Iterator[str]:
    """Yields the reasons of failed launches, in the order of the activities.

    Args:
        activities: scaling activities of one group as Auto Scaling describes them, newest first.
        since_success: whether to stop at the newest successful launch: earlier failures have passed.
        settled_since: omit launches that failed for lack of permissions or vCPUs before this moment; None to omit none.
    """
    for activity in activities:
        description = str(activity.get("Description") or "")
        if description.startswith("Terminating"):
            continue
        if since_success and activity["StatusCode"] == "Successful":
            return
        reason = str(activity.get("StatusMessage") or description or NO_REASON)
        began = activity.get("StartTime")
        if settled_since and began and began < settled_since and _matches(reason, _SETTLING):
            continue
        if activity["StatusCode"] == "Failed" or (activity["StatusCode"] == "Cancelled" and _has_died(reason)):
            yield reason


def _matches(refusal: str, patterns: Iterable[str]) -> bool:
    return re.search("|".join(patterns), refusal.lower()) is not None


def _has_died(reason: str) -> bool:
    """Checks whether a cancelled launch names an instance whose termination was not requested."""
    lowered = reason.lower()
    return _DIED in lowered and not any(words in lowered for words in _BY_REQUEST)
