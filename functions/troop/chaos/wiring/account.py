"""Creates the reader of the account, for ticks, claims and the API."""

from __future__ import annotations

from functools import cache

from troop.chaos.aws.account_reader import AccountReader
from troop.chaos.wiring import tables
from troop.shared.aws.clients import client
from troop.shared.wiring.environment import settings


@cache
def account_reader() -> AccountReader:
    return AccountReader(settings(), client, tables.policies(), tables.state())
