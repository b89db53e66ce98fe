"""What EC2 and Auto Scaling say when they do not launch an instance: whether it is of any use to wait."""

from __future__ import annotations

from collections.abc import Iterable

PERMANENT = (
    "vcpulimitexceeded",
    "more vcpu capacity than your current vcpu limit",
    "enough free addresses in subnet",
    "insufficientfreeaddressesinsubnet",
    "instancelimitexceeded",
    "volumelimitexceeded",
    "maximum storage limit",
    "maxiopslimitexceeded",
    "optinrequired",
    "pendingverification",
    "blocked",
    "invalidamiid",
    "invalidparameter",
    "the requested configuration is currently not supported",
    "is not supported in your requested availability zone",
    "invalidkmskey",
    "client.internalerror",  # a volume's key that Auto Scaling may not use
    "launch template",
    "architecture",
)
"""What EC2 says, in lower case, when it would say the same of the next try: quotas, rights, and what does not exist.
Lack of capacity is not among it: that may pass.
"""

OF_RIGHTS = ("not authorized", "unauthorized", "accessdenied", "invalid iaminstanceprofile")
"""The same of rights and roles. AWS also says this for a while after it made a role, such as the one with which Auto
Scaling launches the first group of an account.
"""

SPREAD = 180.0
"""Seconds after which AWS knows everywhere what was made."""

NO_SPOT = (
    "maxspotinstancecountexceeded",
    "max spot instance count exceeded",
    "spotmaxpricetoolow",
)
"""What is said, in lower case, when waiting for spot is of no use. Lack of capacity is not among it here either."""


_NO_SPOT_ROLE = ("servicelinkedrole",)
"""What is said where Spot's own role is missing: to be believed as :data:`OF_RIGHTS` is."""


def is_permanent(refusal: str, elapsed: float) -> bool:
    """Tells whether a failed launch would fail again.

    Args:
        elapsed: seconds since the group was made.
    """
    return _says(refusal, PERMANENT) or (elapsed >= SPREAD and _says(refusal, OF_RIGHTS))


def is_vain(refusal: str, elapsed: float) -> bool:
    """Tells whether a failed launch of a fleet that nothing stands in for would fail again, on demand or on spot."""
    no_spot = _says(refusal, NO_SPOT) or (elapsed >= SPREAD and _says(refusal, _NO_SPOT_ROLE))
    return no_spot or is_permanent(refusal, elapsed)


def _says(refusal: str, fragments: Iterable[str]) -> bool:
    said = refusal.lower()
    return any(fragment in said for fragment in fragments)
