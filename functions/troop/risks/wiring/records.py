"""Creates the tables of risks and of exemptions."""

from __future__ import annotations

from datetime import date, datetime

from troop.risks.aws.exemption_table import ExemptionTable
from troop.risks.aws.risk_table import RiskTable
from troop.risks.risk import Exemption, Key
from troop.risks.risk_changes import risk_changes, risk_lines
from troop.shared.aws.clients import client
from troop.shared.variables import Variable
from troop.shared.wiring import environment
from troop.shared.wiring.environment import variable


def risk_table() -> RiskTable:
    return RiskTable(client("dynamodb"), variable(Variable.DECISIONS_TABLE), environment.sleep)


def exemptions() -> ExemptionTable:
    return ExemptionTable(client("dynamodb"), variable(Variable.CHANGES_TABLE))


def today() -> date:
    """Returns the day on which exemptions end, by the calendar ``default``."""
    return environment.settings().calendars["default"].at(environment.now()).day


def current_exemptions() -> dict[Key, Exemption]:
    return exemptions().current(environment.now(), today())


def letter_lines(since: datetime, until: datetime) -> list[str]:
    """Returns the lines about risks for a letter of a period; none before the first reading."""
    reading = risk_table().last()
    if reading is None:
        return []
    exempt = current_exemptions()
    risks = ((risk, risk.key in exempt) for risk in risk_table().all())
    return risk_lines(risk_changes(risks, reading, since, until, environment.now()))
