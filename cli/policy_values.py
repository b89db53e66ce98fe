"""Policy as people type it: `key=value`, checked by the core's own parsers before anything is sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from cli.errors import CliError, Exit
from troop import values
from troop.chaos.policy import BOOKKEEPING, PARSERS

KEYS = tuple(PARSERS)
"""What may be set for a unit."""


OVER = "such an opt-out would leave nobody alone; give a day to come, or none for an opt-out without an end"


class BadPolicy(ValueError):
    """A key or value that no policy has; the message says which, and what is allowed."""


def normal(key: str, value: Any) -> Any:
    """A value as JSON for the API: parsed, dates as text, names as a list.

    Raises:
        BadPolicy: there is no such key, or it takes no such value.
    """
    if key not in PARSERS:
        raise BadPolicy(f"{key} is no key of a policy: must be {values.spelling(key, KEYS)}")
    try:
        parsed = PARSERS[key](value)
    except values.BadValue as error:
        raise BadPolicy(f"{key} is {str(value)!r}: must be {error}") from None
    if isinstance(parsed, date):
        return parsed.isoformat()
    return list(parsed) if isinstance(parsed, tuple) else parsed


def over(policy: Mapping[str, Any], *, somewhere: bool = False) -> str | None:
    """The last day of an opt-out that is over on every calendar there can be; None when it is not, or there is none.

    Args:
        policy: or a change of one: where it does not speak of ``opt_out``, ``until`` is the end of one, too.
        somewhere: on any calendar there can be is enough.
    """
    until = policy.get("until")
    # The day ends last at UTC-12, and first at UTC+14; what is over on the unit's own calendar the API knows, and
    # refuses.
    today = (datetime.now(UTC) + timedelta(hours=14 if somewhere else -12)).date()
    return until if policy.get("opt_out", True) and until and until < today.isoformat() else None


def assignments(words: Iterable[str]) -> dict[str, Any]:
    """``["probability=0.1", "owner="]`` as ``{"probability": 0.1, "owner": None}``.

    Raises:
        CliError: USAGE.
    """
    policy: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise CliError(Exit.USAGE, f"{word!r} is no assignment: write KEY=VALUE, or KEY= to remove the key")
        if key in policy:
            raise CliError(Exit.USAGE, f"{key} is given twice")
        if value == "" and key in PARSERS:
            policy[key] = None
            continue
        try:
            policy[key] = normal(key, value)
        except BadPolicy as error:
            raise CliError(Exit.USAGE, str(error)) from None
    if until := over(policy):
        raise CliError(Exit.USAGE, f"until is {until}, which is over: {OVER}")
    return policy


def written(item: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """All that people have written into a unit's item, and what of it is malformed, a sentence each.

    What is malformed is among it, for it counts: the unit is left alone on its account.
    """
    others = {key: item[key] for key in sorted(item) if key not in PARSERS and key not in BOOKKEEPING}
    policy = of_item(item) | others
    problems = []
    for key, value in policy.items():
        try:
            normal(key, value)
        except BadPolicy as error:
            problems.append(str(error))
    return policy, problems


def of_item(item: Mapping[str, Any]) -> dict[str, Any]:
    """The policy among the attributes of a unit's item, in order; what is malformed stays as it is."""
    policy = {}
    for key in KEYS:
        if item.get(key) is not None:
            try:
                policy[key] = normal(key, item[key])
            except BadPolicy:
                policy[key] = item[key]
    return policy
