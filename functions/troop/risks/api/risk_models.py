"""Defines the API's models of risks."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from pydantic import BaseModel, Field, JsonValue

from troop.risks.last_reading import LastReading
from troop.risks.price import Price
from troop.risks.risk import Exemption, Risk
from troop.risks.rules import BY_NAME, RULES
from troop.shared.api.models import In, Listing, Moment, Out

SEVERITIES = "high: a recovery fails; medium: it takes longer, or nobody knows; low: it costs money or order"


class RuleOut(Out):
    """A rule."""

    name: str
    severity: str = Field(description=SEVERITIES)
    subject: str = Field(description="What it is about: unit, instance, volume, snapshot, launch template or address")
    title: str = Field(description="The risk in a sentence without a period")
    reason: str
    remedy: str


class PriceOut(BaseModel):
    """A price of a month."""

    amount: float
    currency: str

    @classmethod
    def from_price(cls, price: Price) -> PriceOut:
        return cls(amount=float(price.amount), currency=price.currency)


class ExemptionOut(Out):
    """Somebody accepts a risk until a day."""

    reason: str
    until: date = Field(description="The last day, on the clock of the calendar default")
    by: str = Field(description="The caller's ARN in IAM")
    at: Moment


class RiskOut(BaseModel):
    """A rule that holds for a subject, or has held."""

    rule: str = Field(description="The name of one of rules, if this version still has it")
    subject: str = Field(description="A unit, or the id of a resource")
    kind: str = Field(description="The kind of the subject, as in rules; empty if this version lacks the rule")
    severity: str = Field(description=SEVERITIES)
    owner: str = Field(description="By the unit's policy, or by a tag of the resource; empty without one")
    evidence: dict[str, JsonValue] = Field(description="The values that show it, by words for people")
    first_seen: Moment = Field(description="The first daily reading that saw it")
    last_seen: Moment
    gone_since: Moment | None = Field(description="The first reading that no longer saw it; null while it holds")
    unknown: str = Field(description="Why the last reading could not tell whether it holds; empty if it could")
    monthly: PriceOut | None = Field(
        description="The price of a leftover for a month, of a snapshot at most; null if not known, or for no leftover"
    )
    confirmed: str | None = Field(description="The event that broke, or did not recover, for this reason; null if none")
    exemption: ExemptionOut | None

    @classmethod
    def from_risk(cls, risk: Risk, exemption: Exemption | None) -> RiskOut:
        rule = BY_NAME.get(risk.rule)
        return cls(
            rule=risk.rule,
            subject=risk.subject,
            kind=rule.subject.value if rule else "",
            severity=risk.severity.value,
            owner=risk.owner,
            evidence=risk.evidence,
            first_seen=risk.first_seen,
            last_seen=risk.last_seen,
            gone_since=risk.gone_since,
            unknown=risk.unknown,
            monthly=PriceOut.from_price(risk.monthly) if risk.monthly else None,
            confirmed=risk.confirmed or None,
            exemption=ExemptionOut.model_validate(exemption) if exemption else None,
        )


class LastReadingOut(Out):
    """The last reading of the account."""

    at: Moment
    subjects: dict[str, int] = Field(description="How many of each kind it has read")
    unread: list[str] = Field(description="What it could not read, or not completely: there, risks are not known")
    unrecorded: int = Field(description="Risks that exceed the 20,000 on record, of the lowest severities")

    @classmethod
    def from_reading(cls, reading: LastReading) -> LastReadingOut:
        return cls.model_validate(reading)


class RisksOut(Listing):
    """A page of risks, by rule and subject."""

    reading: LastReadingOut | None = Field(description="null before the first daily reading")
    rules: list[RuleOut] = Field(description="All rules of this version, the worst first")
    risks: list[RiskOut]
    cursor: str | None = Field(description="Pass it to get the next page; null on the last page")


ALL_RULES = [RuleOut.model_validate(rule) for rule in RULES]


_Text = Annotated[str, Field(min_length=1, max_length=256, pattern=r"\S")]


class ExemptionIn(In):
    """An exemption."""

    reason: _Text
    until: date = Field(description="The last day, at most 366 days from today")


class RiskPatch(In):
    """A change of a risk's exemption."""

    rule: _Text
    subject: Annotated[str, Field(min_length=1, max_length=1024)]
    exemption: ExemptionIn | None = Field(description="null ends an exemption")
