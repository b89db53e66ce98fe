"""Names what the caller of `troop terminate` can do about a refusal."""

from __future__ import annotations

_REMEDIES = {
    "protected": "requests cannot override the tag troop:protected; remove it if the group should take part",
    "malformed": "`troop group {group}` shows the source of each value",
    "halted": "`troop resume` ends the halt",
    "opted-out": "`troop opt-in {group}` ends the opt-out",
    "not-opted-in": "`troop opt-in {group}` opts it in",
    "unrecovered": "`troop opt-in {group}` returns it to chaos",
    "broken": "`troop opt-in {group}` returns it to chaos",
    "operated": "name a group that no AWS service operates",
    "inside": "name a termination, such as crash, or a group whose owner consents; see docs/guides/faults.md",
    "suspended": "resume these processes of the group",
    "refreshing": "try again when it is over",
    "too-small": "enlarge the group or, if it may be that small, run `troop set {group} min_healthy=...`",
    "unhealthy": "try again when the group has its capacity back",
    "protected-instances": "remove scale-in protection, or the tag troop:protected, from an instance",
    "stop-alarm": "try again when it is OK, or name other alarms; `troop group {group}` shows the unit's alarms",
    "day-cap": "to allow more, raise the setting troop:max_per_day",
    "in-flight": "`troop events` shows the hits in flight; the setting troop:max_in_flight limits them",
    "leashed": "`troop unleash` lets it hit instances",
}
"""Remedies by the reason of each guard that applies to a termination on demand."""


def remedy(reason: str, group: str, desired: int | None = None) -> str:
    """Returns what to do, to follow a refusal's sentence; "" for an unknown reason.

    Args:
        desired: the group's desired capacity; None if not known.
    """
    if reason == "too-small" and desired == 0:
        return "enlarge the group"
    return _REMEDIES.get(reason, "").format(group=group)
