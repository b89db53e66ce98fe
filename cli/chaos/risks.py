"""Chooses and describes risks, as GET /risks returns them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from cli.shared import show
from troop.bench.definition.money import shown
from troop.risks.last_reading import LastReading
from troop.risks.price import Price
from troop.risks.risk import Risk as OnRecord
from troop.risks.rule import CHARGED, Severity
from troop.shared import moments
from troop.shared.formatting import counted

Risk = Mapping[str, Any]

_ORDER = {severity.value: place for place, severity in enumerate(Severity)}


def on_record(risk: Risk) -> OnRecord:
    """Returns a risk of the API as it is on record."""
    monthly, gone = risk["monthly"], risk["gone_since"]
    return OnRecord(
        rule=risk["rule"],
        subject=risk["subject"],
        severity=Severity(risk["severity"]),
        owner=risk["owner"],
        evidence=dict(risk["evidence"]),
        first_seen=moments.parse(risk["first_seen"]),
        last_seen=moments.parse(risk["last_seen"]),
        gone_since=moments.parse(gone) if gone else None,
        unknown=risk["unknown"],
        monthly=Price(Decimal(str(monthly["amount"])), monthly["currency"]) if monthly else None,
        confirmed=risk["confirmed"] or "",
    )


def last_reading(reading: Mapping[str, Any]) -> LastReading:
    """Returns the last reading of the API as it is on record."""
    unread, unrecorded = tuple(reading["unread"]), reading["unrecorded"]
    return LastReading(moments.parse(reading["at"]), reading["subjects"], unread, unrecorded)


def worst_first(risks: Iterable[Risk]) -> list[Risk]:
    """Returns risks by severity, then by rule and subject; those that are gone last."""
    return sorted(risks, key=lambda risk: (bool(risk["gone_since"]), _ORDER[risk["severity"]], risk["rule"]))


def ordered(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an answer of GET /risks with the worst risks first, and the kinds of leftovers that AWS charges for."""
    return {**answer, "risks": worst_first(answer["risks"]), "charged": sorted(CHARGED)}


def totals(answer: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Returns how many risks of an answer with a reading hold that nobody is exempt from, by severity, the worst first,
    with what must be known of them.
    """
    heeded = [risk for risk in answer["risks"] if not risk["gone_since"] and not risk["exemption"]]
    counts, unknown = Counter(risk["severity"] for risk in heeded), sum(bool(risk["unknown"]) for risk in heeded)
    return {
        "by_severity": {severity.value: counts[severity.value] for severity in Severity},
        "remarks": [*last_reading(answer["reading"]).remarks(now, unknown)],
    }


def state(risk: Risk) -> str:
    """Returns whether a risk holds, and whether somebody is exempt from it."""
    if risk["gone_since"]:
        return f"gone since {risk['gone_since'][:10]}"
    if exemption := risk["exemption"]:
        return f"exempt until {exemption['until']}: {exemption['reason']}"
    return "unknown now" if risk["unknown"] else show.NOTHING


def evidence(risk: Risk) -> str:
    """Returns the values that show a risk: ``zone: eu-west-1a``."""
    return "; ".join(f"{name}: {show.plain(value)}" for name, value in risk["evidence"].items())


def price(risk: Risk, priced: bool) -> str:
    """Returns what a leftover costs in a month; "" for anything else.

    Args:
        priced: whether its rule is about something that AWS charges for.
    """
    if monthly := risk["monthly"]:
        return shown(monthly["amount"], monthly["currency"])
    return "unknown" if priced else ""


def remarks(answer: Mapping[str, Any], risks: Sequence[Risk]) -> Iterator[str]:
    """Yields what a person must know of a list: how old it is, what was not read, and what leftovers cost."""
    reading = answer["reading"]
    if reading is None:
        yield "the account is not read yet: that happens once a day, at 3:23 UTC"
        return
    subjects = ", ".join(counted(number, kind) for kind, number in reading["subjects"].items() if number)
    yield f"read {show.moment(reading['at'])}: {subjects or 'nothing'}"
    yield from (f"not known: {sentence}" for sentence in reading["unread"])
    if reading["unrecorded"]:
        yield f"{counted(reading['unrecorded'], 'more risk')} not recorded, of the lowest severities"
    open_ones = [risk for risk in risks if not risk["gone_since"]]
    sums: Counter[str] = Counter()
    for risk in open_ones:
        if monthly := risk["monthly"]:
            sums[monthly["currency"]] += monthly["amount"]
    for currency, amount in sums.items():
        yield f"leftovers: at most {shown(amount, currency)} a month"
    if unknown := sum(risk["kind"] in CHARGED and not risk["monthly"] for risk in open_ones):
        yield f"the price of {counted(unknown, 'leftover')} is unknown"


def advice(answer: Mapping[str, Any], risks: Sequence[Risk]) -> Iterator[str]:
    """Yields a line for each rule of some risks: what it says, and what to do."""
    names = {risk["rule"] for risk in risks if not risk["gone_since"]}
    return (f"{rule['name']}: {rule['title']}. {rule['remedy']}" for rule in answer["rules"] if rule["name"] in names)
