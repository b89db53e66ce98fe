"""Decides about instances outside Auto Scaling groups, and about leftovers of the account. Pure."""

from __future__ import annotations

from datetime import timedelta

from troop.risks.facts import Leftover, Machine
from troop.risks.rule import Evidence, Hit, Unknown

OLD = timedelta(days=365)
"""The age from which on an unused snapshot or template is listed."""

YOUNG = timedelta(days=1)
"""The age up to which an instance outside groups can be there for a task only, such as a build of an image."""

Outcome = Hit | Unknown | None


def outside_groups(machine: Machine) -> Outcome:
    if machine.group or machine.keeper:
        return None
    if machine.now - machine.launched < YOUNG:
        return Unknown("it was started less than a day ago")
    title = {"name": machine.title} if machine.title else {}
    return Hit({**title, "type": machine.kind, "zone": machine.zone, "launched": machine.launched.date().isoformat()})


def unused(leftover: Leftover) -> Outcome:
    if leftover.used is None:
        return Unknown("what could use it could not be read")
    return None if leftover.used else Hit(_evidence(leftover), leftover.monthly)


def unused_and_old(leftover: Leftover) -> Outcome:
    if leftover.created is None or leftover.now - leftover.created < OLD:
        return None
    return unused(leftover)


def _evidence(leftover: Leftover) -> Evidence:
    created = {"created": leftover.created.date().isoformat()} if leftover.created else {}
    return {"is": leftover.kind, **created, **({"price": "at most"} if leftover.monthly and leftover.at_most else {})}
