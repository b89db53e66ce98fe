"""The curve of a phase with planned faults: what was counted, second by second."""

from __future__ import annotations

import copy
import math

import pytest

from tests.unit.report.sample_failures import MEASURED, START, simulated, with_faults
from troop.bench.results.fault_curve import curve
from troop.bench.results.figures import figures
from troop.measure.operations import UNFINISHED


def test_each_whole_second_has_what_was_counted() -> None:
    document = with_faults(simulated())
    values = figures(document)["curve"]
    get = document["roles"]["drivers"]["operations"]["get"]
    counts, first = get["per_second"], math.ceil(START) - get["per_second"]["from"]
    assert values["start"] == 0.75
    assert len(values["per_second"]) == len(values["failed"]) == len(values["p99_ms"]) == MEASURED - 1
    assert values["per_second"] == counts["count"][first : first + MEASURED - 1]
    assert values["failed"] == counts["errors"][first : first + MEASURED - 1]
    assert sum(values["failed"]) == sum(get["errors"].values()) == document["faults"][0]["failed"] > 100
    worst, calm = max(values["p99_ms"]), values["p99_ms"][:50]
    assert worst > 300 > 50 > max(calm) > 20


def test_only_roles_that_generate_load_are_drawn() -> None:
    document = with_faults(simulated())
    whole = curve(document)
    document["roles"]["servers"] = copy.deepcopy(document["roles"]["drivers"])
    assert curve(document) == whole
    del document["generating"]
    doubled = curve(document)
    assert doubled
    assert doubled["per_second"] == [2 * count for count in (whole or {})["per_second"]]


def test_operations_that_did_not_end_have_not_failed() -> None:
    document = with_faults(simulated())
    get = document["roles"]["drivers"]["operations"]["get"]
    get["errors"] = {UNFINISHED: sum(get["errors"].values())}
    get["per_second"]["kinds"] = {UNFINISHED: get["per_second"]["errors"]}
    assert sum((curve(document) or {})["failed"]) == 0


def test_a_second_without_successes_has_no_p99() -> None:
    document = with_faults(simulated())
    get = document["roles"]["drivers"]["operations"]["get"]
    get["over_time"]["counts"][40] = []
    at = get["over_time"]["from"] + 40 - math.ceil(START)
    values = (curve(document) or {})["p99_ms"]
    assert [place for place, value in enumerate(values) if value is None] == [at]


@pytest.mark.parametrize("change", [{"faults": []}, {"measured_from": None}])
def test_phases_without_faults_have_no_curve(change: dict[str, None]) -> None:
    assert curve({**with_faults(simulated()), **change}) is None
    assert "curve" not in figures({**simulated(), "faults": []})


def test_tools_that_do_not_count_by_second_have_no_curve() -> None:
    document = with_faults(simulated())
    counts = document["roles"]["drivers"]["operations"]["get"]["per_second"]
    counts["count"] = [0] * len(counts["count"])
    assert curve(document) is None
