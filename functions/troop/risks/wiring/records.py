"""Creates the tables of risks and of exemptions."""

from __future__ import annotations

from troop.risks.aws.exemption_table import ExemptionTable
from troop.risks.aws.risk_table import RiskTable
from troop.shared.aws.clients import client
from troop.shared.variables import Variable
from troop.shared.wiring import environment
from troop.shared.wiring.environment import variable


def risk_table() -> RiskTable:
    return RiskTable(client("dynamodb"), variable(Variable.DECISIONS_TABLE), environment.sleep)


def exemptions() -> ExemptionTable:
    return ExemptionTable(client("dynamodb"), variable(Variable.CHANGES_TABLE))
