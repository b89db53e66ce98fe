"""Creates the tables of risks and of exemptions."""

from __future__ import annotations

from datetime import date

from troop.risks.aws.exemption_table import ExemptionTable
from troop.risks.aws.risk_table import RiskTable
from troop.risks.risk import Exemption, Key
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
