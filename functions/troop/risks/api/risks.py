"""Serves the routes of risks: ``GET /risks`` and ``PATCH /risks``."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from aws_lambda_powertools.event_handler.exceptions import BadRequestError, NotFoundError
from aws_lambda_powertools.event_handler.openapi.params import Body, Query
from aws_lambda_powertools.event_handler.router import APIGatewayRouter

from troop.chaos.api.authors import author_of
from troop.risks.api.risk_models import ALL_RULES, LastReadingOut, RiskOut, RiskPatch, RisksOut
from troop.risks.aws.risk_table import BadPosition
from troop.risks.risk import LONGEST_EXEMPTION, Exemption, Risk
from troop.risks.rule import Severity
from troop.risks.rules import BY_NAME
from troop.risks.wiring import records
from troop.shared.api import cursors
from troop.shared.api.errors import answers
from troop.shared.api.models import listed
from troop.shared.malformed import Read
from troop.shared.wiring import environment

router = APIGatewayRouter()  # type: ignore[no-untyped-call]

LONGEST_PAGE = 500


@router.get(
    "/risks",
    operation_id="list_risks",
    summary="What could make a recovery fail, and leftovers that cost money",
    responses=answers("A page of risks", 400),
)
def list_risks(
    gone: Annotated[bool, Query(description="true for risks that are gone, too, of the last 100 days")] = False,
    limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE)] = 100,
    cursor: Annotated[str | None, Query(max_length=2048)] = None,
) -> RisksOut:
    """Lists the risks on record by rule and subject, with their exemptions. A function reads the account once a day;
    this reads only what it has recorded. Without ``gone``, a page can be short. A page costs two queries, and one for a
    megabyte of exemptions.
    """
    listing = ["risks", gone]
    table = records.risk_table()
    with cursors.refused(BadPosition):
        page = table.page(limit, cursors.decode(cursor, listing), gone=gone)
    exempt, last = records.current_exemptions(), table.last()
    risks, malformed = listed(
        Read(page.risks, page.malformed),
        lambda risk: RiskOut.from_risk(risk, exempt.get(risk.key)),
        lambda risk: f"Decisions: {risk.rule}/{risk.subject}",
    )
    return RisksOut(
        reading=LastReadingOut.from_reading(last) if last else None,
        rules=ALL_RULES,
        risks=risks,
        malformed=malformed,
        cursor=cursors.encode(page.position, listing),
    )


@router.patch(
    "/risks",
    operation_id="exempt_risk",
    summary="Exempt from a risk, or end an exemption",
    responses=answers("The risk, with its exemption", 400, 404),
)
def exempt_risk(body: Annotated[RiskPatch, Body()]) -> RiskOut:
    """Exempts a subject from a rule until a day, for a reason, or ends that, also of a risk that is gone. The record
    has the caller. The last change of a risk counts. Costs two queries and a write.
    """
    today, author = records.today(), author_of(router.current_event.raw_event)
    table, now = records.exemptions(), environment.now()
    risk = records.risk_table().find((body.rule, body.subject))
    if body.exemption is None and (ended := records.current_exemptions().get((body.rule, body.subject))):
        risk = risk or _forgotten(ended, now)
    elif risk is None or risk.gone_since is not None:
        raise NotFoundError(f"there is no risk {body.rule!r} of {body.subject!r}: GET /risks lists those on record")
    if body.exemption is None:
        table.end(risk.key, author.caller, now, author.request_id)
        return RiskOut.from_risk(risk, None)
    until = body.exemption.until
    if not today <= until <= today + LONGEST_EXEMPTION:
        raise BadRequestError(
            f"body.exemption.until: is {until}, must be a day from {today} to {today + LONGEST_EXEMPTION}"
        )
    exemption = Exemption(body.rule, body.subject, body.exemption.reason, until, author.caller, now)
    table.add(exemption, author.request_id)
    return RiskOut.from_risk(risk, exemption)


def _forgotten(exemption: Exemption, now: datetime) -> Risk:
    """Returns what is still known of an exempt risk that is no longer on record: it held when somebody exempted it."""
    rule, at = BY_NAME.get(exemption.rule), exemption.at
    severity = rule.severity if rule else Severity.LOW
    return Risk(*exemption.key, severity, "", {}, at, at, gone_since=now, unknown="it is no longer on record")
