"""Summarises the risks on record for a period: which hold, which appeared, and which are gone. Pure.

A report shows it, and the weekly letter ends with its lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from troop.chaos.letter import MOST_OWNERS, named, short
from troop.risks.last_reading import LastReading
from troop.risks.risk import Risk
from troop.risks.rule import CHARGED, Severity
from troop.risks.rules import BY_NAME
from troop.shared import moments
from troop.shared.formatting import counted

_ORDER = {severity: place for place, severity in enumerate(Severity)}


def risk_changes(
    risks: Iterable[tuple[Risk, bool]], reading: LastReading, since: datetime, until: datetime, now: datetime
) -> dict[str, Any]:
    """Returns the summary in JSON's types. Exempt risks are only counted.

    Args:
        risks: those on record, each with whether somebody is exempt from it.
        reading: the last one.
        since, until: the period; ``until`` is not included.
    """
    rows = sorted(risks, key=lambda row: (_ORDER[row[0].severity], row[0].key))
    heeded = [risk for risk, exempt in rows if not exempt]
    holding = [risk for risk in heeded if risk.gone_since is None]
    by_severity = Counter(risk.severity for risk in holding)
    monthly: dict[str, Decimal] = {}
    for price in (risk.monthly for risk in holding if risk.monthly):
        monthly[price.currency] = monthly.get(price.currency, Decimal()) + price.amount
    return {
        "holding": {severity.value: by_severity[severity] for severity in Severity},
        "exempt": sum(exempt and risk.gone_since is None for risk, exempt in rows),
        "monthly": {currency: float(amount) for currency, amount in monthly.items()},
        "unpriced": sum(risk.monthly is None and _is_charged(risk) for risk in holding),
        "remarks": [*reading.remarks(now, sum(bool(risk.unknown) for risk in holding))],
        "appeared": [_row(risk) for risk in heeded if since <= risk.first_seen < until],
        "gone": [_row(risk) for risk in heeded if risk.gone_since and since <= risk.gone_since < until],
    }


def _is_charged(risk: Risk) -> bool:
    rule = BY_NAME.get(risk.rule)
    return rule is not None and rule.subject in CHARGED


def _row(risk: Risk) -> dict[str, Any]:
    return {
        "rule": risk.rule,
        "subject": risk.subject,
        "severity": risk.severity.value,
        "owner": risk.owner or None,
        "first_seen": moments.iso(risk.first_seen),
        "gone_since": moments.iso(risk.gone_since) if risk.gone_since else None,
        "confirmed": risk.confirmed or None,
    }


def risk_lines(changes: Mapping[str, Any]) -> list[str]:
    """Returns the lines of a letter: about all risks, what is not known of them, then one for each owner with changes.

    Args:
        changes: see :func:`risk_changes`.
    """
    appeared, gone = changes["appeared"], changes["gone"]
    holding = ", ".join(f"{number:,} {severity}" for severity, number in changes["holding"].items() if number)
    parts = [f"Risks: {holding or 'none'}"]
    if appeared or gone:
        parts.append(f"; {len(appeared):,} appeared, {len(gone):,} gone")
    if changes["exempt"]:
        parts.append(f"; {changes['exempt']:,} exempt")
    costs = " and ".join(f"{amount:,.2f} {currency}" for currency, amount in changes["monthly"].items())
    if costs:
        parts.append(f". Leftovers cost at most {costs} a month")
    if changes["unpriced"]:
        parts.append(f"; the price of {counted(changes['unpriced'], 'leftover')} is unknown")
    lines = ["".join(parts) + ".", *changes["remarks"]]
    owners = sorted({one["owner"] for one in (*appeared, *gone)}, key=lambda owner: (owner is None, owner or ""))
    for owner in owners[:MOST_OWNERS]:
        lines.append(f"Risks of {short(owner or 'no owner')}{''.join(_parts(owner, appeared, gone))}.")
    if len(owners) > MOST_OWNERS:
        lines.append(f"{counted(len(owners) - MOST_OWNERS, 'more owner')}: `troop risks` has all of them.")
    return lines


def _parts(
    owner: str | None, appeared: Sequence[Mapping[str, Any]], gone: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    for head, risks in (("; appeared: ", appeared), ("; gone: ", gone)):
        its = [f"{one['rule']} of {short(one['subject'])}" for one in risks if one["owner"] == owner]
        yield named(head, its)
