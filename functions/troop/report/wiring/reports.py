"""Creates what makes reports. It needs layers that only the functions ``report`` and ``widgets`` have."""

from __future__ import annotations

from functools import cache

from troop.bench.wiring import store
from troop.report.assets import chart_script
from troop.report.aws.announcements import Announcements
from troop.report.flows.reports import Reports
from troop.shared.aws.clients import client
from troop.shared.variables import Variable
from troop.shared.version import VERSION
from troop.shared.wiring import environment
from troop.shared.wiring.environment import variable


@cache
def reports() -> Reports:
    announcements = Announcements(client("dynamodb"), variable(Variable.STATE_TABLE), environment.sleep)
    return Reports(store.runs(), store.stored_runs(), announcements, chart_script, environment.now, VERSION)
