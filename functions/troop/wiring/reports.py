"""Creates what makes reports. It needs layers that only the functions ``report`` and ``widgets`` have."""

from __future__ import annotations

from functools import cache

from troop.flows.bench.reports import Reports
from troop.report.assets import chart_script
from troop.version import VERSION
from troop.wiring import bench, environment


@cache
def reports() -> Reports:
    return Reports(bench.runs(), bench.stored_runs(), chart_script, environment.now, VERSION)
