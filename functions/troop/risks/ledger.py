"""Keeps risks on record from one reading to the next: first seen, gone, and confirmed by chaos. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from troop.chaos.events import Event
from troop.risks.assessment import Assessment, Finding
from troop.risks.risk import REMEMBERED, Key, Risk
from troop.risks.rules import BY_NAME
from troop.risks.signs import signs

PARTIAL = "it is not among what could be listed"


def next_risks(before: Mapping[Key, Risk], assessment: Assessment, failed: Iterable[Event]) -> list[Risk]:
    """Returns the risks on record after a reading.

    A risk whose rule could not decide stays as it is: it is neither seen nor gone. One that was gone and returns is a
    new one. One that is gone for :data:`troop.risks.risk.REMEMBERED` is forgotten.

    Args:
        before: those on record before it.
        failed: events that failed since the oldest of them was first seen, as far as they could be read.
    """
    seen = {one.key: _seen(one, before.get(one.key), assessment) for one in assessment.findings}
    unseen = (_unseen(one, assessment) for key, one in before.items() if key not in seen)
    remembered = [one for one in unseen if one.gone_since is None or assessment.at - one.gone_since < REMEMBERED]
    return [_confirmed(one, events) for events in [_by_unit(failed)] for one in (*seen.values(), *remembered)]


def _seen(finding: Finding, before: Risk | None, assessment: Assessment) -> Risk:
    lasts = before is not None and before.gone_since is None
    return Risk(
        rule=finding.rule.name,
        subject=finding.subject,
        severity=finding.rule.severity,
        owner=finding.owner,
        evidence=dict(finding.hit.evidence),
        first_seen=before.first_seen if before and lasts else assessment.at,
        last_seen=assessment.at,
        monthly=finding.hit.monthly,
        confirmed=before.confirmed if before and lasts else "",
    )


def _unseen(risk: Risk, assessment: Assessment) -> Risk:
    if risk.gone_since is not None:
        return risk
    rule = BY_NAME.get(risk.rule)  # another version can have more
    why = assessment.unknown.get(risk.key) or (PARTIAL if rule and rule.subject in assessment.partial else "")
    return replace(risk, unknown=why) if why else replace(risk, unknown="", gone_since=assessment.at)


def _by_unit(failed: Iterable[Event]) -> dict[str, list[Event]]:
    by_unit: dict[str, list[Event]] = {}
    for event in sorted(failed, key=lambda event: event.at):
        by_unit.setdefault(event.unit, []).append(event)
    return by_unit


def _confirmed(risk: Risk, failed: Mapping[str, list[Event]]) -> Risk:
    rule = BY_NAME.get(risk.rule)
    if risk.confirmed or rule is None or not rule.confirmed_by:
        return risk
    for event in failed.get(risk.subject, ()):
        on_record = risk.first_seen <= event.at and (risk.gone_since is None or event.at < risk.gone_since)
        if on_record and rule.confirmed_by & signs(event):
            return replace(risk, confirmed=event.event_id)
    return risk
