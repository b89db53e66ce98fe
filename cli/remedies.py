"""What somebody who wants a termination can do about what speaks against it."""

from __future__ import annotations

_REMEDIES = {
    "protected": "no request is stronger; where that is not meant, remove the tag troop:protected",
    "malformed": "`troop group {group}` shows where each value comes from",
    "halted": "`troop resume` ends that",
    "opted-out": "`troop opt-in {group}` ends that",
    "not-opted-in": "`troop opt-in {group}` does that",
    "unrecovered": "`troop opt-in {group}` puts it back",
    "operated": "name a group that no AWS service operates",
    "suspended": "resume these processes of the group",
    "refreshing": "try again when it is over",
    "too-small": "a larger group helps or, if it may be that small, `troop set {group} min_healthy=...`",
    "unhealthy": "try again when the group is whole",
    "protected-instances": "take protection from scale-in, or the tag troop:protected, off an instance",
    "stop-alarm": "try again when it is OK; `troop set {group} stop_alarms=...` names others",
    "day-cap": "the setting troop:max_per_day allows more",
    "in-flight": "`troop events` shows which; the setting troop:max_in_flight says how many at a time",
    "leashed": "`troop unleash` lets it terminate",
}
"""By the reason of a guard: those that a termination on demand can meet. What changed meanwhile says so itself."""


def remedy(reason: str, detail: str, group: str) -> str:
    """What to do, as it follows a refusal's sentence; "" when nothing is known of the reason."""
    if reason == "too-small" and detail.endswith("wants no instances"):
        return "a larger group helps"
    return _REMEDIES.get(reason, "").format(group=group)
