"""Creates the reader of the account, and the salt of the rolls."""

from __future__ import annotations

from functools import cache

from aws_lambda_powertools.utilities import parameters

from troop.chaos.aws.account_reader import AccountReader
from troop.chaos.wiring import tables
from troop.shared.aws.clients import client
from troop.shared.variables import Variable
from troop.shared.wiring.environment import settings, variable


@cache
def account_reader() -> AccountReader:
    return AccountReader(settings(), client, tables.policies(), tables.state())


def salt() -> bytes:
    """Returns the salt of the rolls; cached for five minutes, so that a rotation takes effect."""
    return str(parameters.get_secret(variable(Variable.SALT_SECRET), max_age=300)).encode()
