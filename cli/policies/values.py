"""Parses policy values as people type them (`key=value`), with the core's parsers, before a request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from cli.shared.errors import CliError, Exit
from troop.chaos.changes import to_store
from troop.chaos.policy import BOOKKEEPING, PARSERS
from troop.shared import values
from troop.shared.tags import INSIDE_TAG

KEYS = tuple(PARSERS)
"""The keys that people can set for a unit."""


OVER = "the opt-out would have no effect; use today or a later day, or none for an opt-out without an end"


class BadPolicy(ValueError):
    """An unknown key or invalid value; the message names it and what is allowed."""


def normal(key: str, value: Any) -> Any:
    """Converts a value to JSON for the API: parsed, dates and faults as text, names as a list.

    Raises:
        BadPolicy: the key is unknown, or the value invalid.
    """
    if key in (INSIDE_TAG, INSIDE_TAG.partition(":")[2]):
        raise BadPolicy(
            f"{key} is not a key of a policy: owners consent to faults inside their instances by the tag {INSIDE_TAG} "
            "of the Auto Scaling group, propagated at launch; see docs/guides/faults.md"
        )
    if key not in PARSERS:
        raise BadPolicy(f"{key} is not a key of a policy: must be {values.spelling(key, KEYS)}")
    try:
        return to_store(key, value)
    except values.BadValue as error:
        raise BadPolicy(f"{key} is {str(value)!r}: must be {error}") from None


def past_opt_out(policy: Mapping[str, Any], *, somewhere: bool = False) -> str | None:
    """Returns the last day of an opt-out that is over in every time zone; None otherwise.

    Args:
        policy: a policy or a change of one; without ``opt_out``, ``until`` counts as the end of an opt-out.
        somewhere: being over in one time zone is enough.
    """
    until = policy.get("until")
    # A day ends last at UTC-12 and first at UTC+14. The API refuses what is over on the unit's own calendar.
    today = (datetime.now(UTC) + timedelta(hours=14 if somewhere else -12)).date()
    return until if policy.get("opt_out", True) and until and until < today.isoformat() else None


def assignments(words: Iterable[str]) -> dict[str, Any]:
    """Converts ``["probability=0.1", "owner="]`` to ``{"probability": 0.1, "owner": None}``.

    Raises:
        CliError: USAGE.
    """
    policy: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise CliError(Exit.USAGE, f"{word!r} is not an assignment: write KEY=VALUE, or KEY= to remove the key")
        if key in policy:
            raise CliError(Exit.USAGE, f"{key} occurs twice")
        if value == "" and key in PARSERS:
            policy[key] = None
            continue
        try:
            policy[key] = normal(key, value)
        except BadPolicy as error:
            raise CliError(Exit.USAGE, str(error)) from None
    if until := past_opt_out(policy):
        raise CliError(Exit.USAGE, f"until is {until}, a day in the past: {OVER}")
    return policy


def written(item: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Returns what people have set in a unit's item, and a sentence for each malformed value.

    Malformed values are included, because they have an effect: Troop skips the unit.
    """
    others = {key: item[key] for key in sorted(item) if key not in PARSERS and key not in BOOKKEEPING}
    policy = item_policy(item) | others
    problems = []
    for key, value in policy.items():
        try:
            normal(key, value)
        except BadPolicy as error:
            problems.append(str(error))
    return policy, problems


def item_policy(item: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the policy among the attributes of a unit's item, in order; malformed values stay as they are."""
    policy = {}
    for key in KEYS:
        if item.get(key) is not None:
            try:
                policy[key] = normal(key, item[key])
            except BadPolicy:
                policy[key] = item[key]
    return policy
