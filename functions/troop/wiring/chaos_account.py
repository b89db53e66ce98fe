"""Creates the reader of the account, for ticks, claims and the API."""

from __future__ import annotations

from functools import cache

from troop.aws.chaos.account_reader import AccountReader
from troop.aws.clients import client
from troop.wiring import chaos_tables
from troop.wiring.environment import settings


@cache
def account_reader() -> AccountReader:
    return AccountReader(settings(), client, chaos_tables.policies(), chaos_tables.state())
