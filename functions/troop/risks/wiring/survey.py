"""Creates what reads the account once a day."""

from __future__ import annotations

from functools import cache

from troop.bench.aws.price_list import PriceList
from troop.bench.money.prices import region_of_list
from troop.chaos.wiring import tables
from troop.risks.aws.account_survey import AccountSurvey
from troop.risks.aws.leftover_prices import LeftoverPrices
from troop.risks.flows.daily_reading import DailyReading
from troop.risks.wiring.records import risk_table
from troop.shared.aws.clients import client, regional_client
from troop.shared.wiring import environment


@cache
def daily_reading() -> DailyReading:
    survey = AccountSurvey(environment.settings(), client, tables.policies(), tables.state(), _prices)
    return DailyReading(survey, tables.event_queries(), risk_table(), environment.seconds)


def _prices() -> LeftoverPrices:
    region = client("ec2").meta.region_name
    served = region_of_list(region)
    return LeftoverPrices(PriceList(regional_client("pricing", served), region) if served else None)
