"""Creates what makes reports. It needs layers that only the functions ``report`` and ``widgets`` have."""

from __future__ import annotations

from functools import cache

from troop.bench.wiring import store
from troop.report.assets import chart_script
from troop.report.flows.reports import Reports
from troop.shared.version import VERSION
from troop.shared.wiring import environment


@cache
def reports() -> Reports:
    return Reports(store.runs(), store.stored_runs(), chart_script, environment.now, VERSION)
