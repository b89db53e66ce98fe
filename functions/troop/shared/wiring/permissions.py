"""Creates the permits that chaos gives and benchmarks need."""

from __future__ import annotations

from functools import cache

from troop.shared.aws.clients import client
from troop.shared.aws.permits import Permits
from troop.shared.variables import Variable
from troop.shared.wiring import environment


@cache
def permits() -> Permits:
    return Permits(client("dynamodb"), environment.variable(Variable.STATE_TABLE), environment.sleep)
