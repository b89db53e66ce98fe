"""What EC2 and Auto Scaling say when they do not launch an instance: whether it is of any use to wait."""

from __future__ import annotations

PERMANENT = (
    "vcpulimitexceeded",
    "more vcpu capacity than your current vcpu limit",
    "enough free addresses in subnet",
    "insufficientfreeaddressesinsubnet",
    "instancelimitexceeded",
    "volumelimitexceeded",
    "maximum storage limit",
    "maxiopslimitexceeded",
    "not authorized",
    "unauthorized",
    "accessdenied",
    "optinrequired",
    "pendingverification",
    "blocked",
    "invalidamiid",
    "invalidparameter",
    "the requested configuration is currently not supported",
    "is not supported in your requested availability zone",
    "invalid iaminstanceprofile",
    "invalidkmskey",
    "client.internalerror",  # a volume's key that Auto Scaling may not use
    "launch template",
    "architecture",
)
"""What EC2 says, in lower case, when it would say the same of the next try: quotas, rights, and what does not exist.
Lack of capacity is not among it: that may pass.
"""


NO_SPOT = (
    "maxspotinstancecountexceeded",
    "max spot instance count exceeded",
    "spotmaxpricetoolow",
    "servicelinkedrole",
)
"""What is said, in lower case, when waiting for spot is of no use. Lack of capacity is not among it here either."""


def is_permanent(refusal: str) -> bool:
    """Whether a failed launch would fail again."""
    said = refusal.lower()
    return any(fragment in said for fragment in PERMANENT)


def is_vain(refusal: str) -> bool:
    """Whether a failed launch of a fleet that nothing stands in for would fail again, on demand or on spot."""
    return is_permanent(refusal) or any(said in refusal.lower() for said in NO_SPOT)
