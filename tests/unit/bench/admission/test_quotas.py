"""How many virtual processors an account may have running, against what a run needs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.bench.admission.test_estimate import plan
from tests.unit.bench.build import BENCHMARK, DRIVERS, SERVERS
from troop.bench.admission import quotas
from troop.bench.admission.quotas import quota_of, required, too_small
from troop.bench.definition.definition import ON_DEMAND, SPOT
from troop.bench.definition.living import Queue, Scale

VCPUS = {"c5.large": 2, "c7g.large": 2}
STANDARD, STANDARD_SPOT = "L-1216C47A", "L-34B43A08"


@pytest.mark.parametrize(
    ("instance_type", "on_demand", "spot"),
    [
        ("c7g.large", STANDARD, STANDARD_SPOT),
        ("i4i.xlarge", STANDARD, STANDARD_SPOT),
        ("im4gn.large", STANDARD, STANDARD_SPOT),
        ("is4gen.large", STANDARD, STANDARD_SPOT),
        ("dl1.24xlarge", "L-6E869C2A", "L-85EED4F7"),
        ("d3.xlarge", STANDARD, STANDARD_SPOT),
        ("f2.6xlarge", "L-74FC7D96", "L-88CF9481"),
        ("g5.xlarge", "L-DB2E81BA", "L-3819A6DF"),
        ("gr6.4xlarge", "L-DB2E81BA", "L-3819A6DF"),
        ("vt1.3xlarge", "L-DB2E81BA", "L-3819A6DF"),
        ("hpc7g.4xlarge", "L-F7808C92", None),
        ("h1.2xlarge", STANDARD, STANDARD_SPOT),
        ("inf2.xlarge", "L-1945791B", "L-B5D1601B"),
        ("p4d.24xlarge", "L-417A185B", "L-7212CCBC"),
        ("p5.48xlarge", "L-417A185B", "L-C4BD4855"),
        ("trn1.2xlarge", "L-2C3B7624", "L-6B0D517C"),
        ("t4g.small", STANDARD, STANDARD_SPOT),
        ("u-6tb1.metal", "L-43DA4232", None),
        ("x2gd.medium", "L-7295265B", "L-E3A00192"),
        ("z1d.large", STANDARD, STANDARD_SPOT),
        ("q9.large", None, None),
    ],
)
def test_the_quota_of_an_instance_type(instance_type: str, on_demand: str | None, spot: str | None) -> None:
    by_purchase = [quota_of(instance_type, purchase) for purchase in (ON_DEMAND, SPOT)]
    assert [quota and quota.code for quota in by_purchase] == [on_demand, spot]


def run_with(servers: int, drivers: int, purchase: str = ON_DEMAND, cells: int = 1, parallel: int = 1) -> object:
    fleets = (replace(SERVERS, count=servers), replace(DRIVERS, count=drivers, purchase=purchase))
    return plan(*[replace(BENCHMARK, fleets=fleets)] * cells, parallel=parallel)


@pytest.mark.parametrize(
    ("run", "values", "expected"),
    [
        (run_with(3, 2), {STANDARD: 10.0}, []),
        (run_with(3, 3), {STANDARD: 10.0}, ["fleets need 12 vCPUs of on-demand Standard"]),
        (run_with(3, 3), {}, []),  # nobody knows
        (run_with(3, 3, SPOT), {STANDARD: 6.0, STANDARD_SPOT: 5.0}, ["fleets need 6 vCPUs of spot Standard"]),
        (
            run_with(3, 2, cells=4),
            {STANDARD: 9.0},
            ["in the cell c001: must be at most 9: the account's quota L-1216C47A"],
        ),
    ],
)
def test_run_above_the_quota_is_refused(run: object, values: dict[str, float], expected: list[str]) -> None:
    problems = [str(problem) for problem in too_small(run, VCPUS, values)]  # type: ignore[arg-type]
    assert len(problems) == len(expected)
    assert all(words in one for words, one in zip(expected, problems, strict=True))


def test_parallel_cells_that_may_exceed_the_quota_are_a_warning() -> None:
    run = run_with(3, 2, cells=3, parallel=2)
    assert quotas.warnings(run, VCPUS, {STANDARD: 20.0}) == []  # type: ignore[arg-type]
    (warning,) = quotas.warnings(run, VCPUS, {STANDARD: 19.0})  # type: ignore[arg-type]
    assert warning.startswith("2 parallel cells can need 20 vCPUs of on-demand Standard")


@pytest.mark.parametrize(
    ("run", "on_demand", "needs"),
    [
        (run_with(3, 3, SPOT), 12.0, None),
        (run_with(3, 3, SPOT), 11.0, 12),
        (run_with(3, 3, SPOT, cells=2), 11.0, 12),  # once
        (run_with(3, 3), 11.0, None),  # nothing falls back: it is refused
    ],
)
def test_spot_whose_fallback_can_never_launch_is_warned_of(run: object, on_demand: float, needs: int | None) -> None:
    values = {STANDARD: on_demand, STANDARD_SPOT: 100.0}
    assert {quota.code for quota in quotas.quotas_of(run)} >= {STANDARD}  # type: ignore[arg-type]
    warnings = quotas.warnings(run, VCPUS, values)  # type: ignore[arg-type]
    if needs is None:
        assert warnings == []
    else:
        (one,) = warnings
        assert one.startswith(f"if spot lacks capacity, a cell can need {needs} vCPUs of")
        assert STANDARD in one


@pytest.mark.parametrize(("value", "warned"), [(5.0, False), (6.0, True), (39.0, True), (40.0, False)])
def test_quota_that_is_too_small_for_the_growth_of_a_fleet_is_a_warning(value: float, warned: bool) -> None:
    workers = replace(DRIVERS, count=3, scale=Scale(20, 0, 20))
    fleet = plan(replace(BENCHMARK, fleets=(workers,), standing=True, queue=Queue()))
    warnings = quotas.warnings(fleet, VCPUS, {STANDARD: value})
    sentence = "scale can demand 40 vCPUs of on-demand Standard (A, C, D, H, I, M, R, T, Z) instances: the account's "
    assert warnings == [f"{sentence}quota {STANDARD} is {value:g}"] * warned
    assert [one.vcpus for one in required(fleet, VCPUS, {})] == [40], "the deployment's owner asks for this many"


LARGE = replace(SERVERS, count=3, instance_type="c5.large", fallback_types=("c6i.xlarge",))


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (run_with(3, 2), {STANDARD: (10, 10)}),
        (run_with(3, 2, SPOT), {STANDARD: (6, 10), STANDARD_SPOT: (4, 0)}),
        (run_with(3, 2, SPOT, cells=4), {STANDARD: (6, 10), STANDARD_SPOT: (4, 0)}),
        (run_with(3, 2, SPOT, cells=4, parallel=3), {STANDARD: (18, 30), STANDARD_SPOT: (12, 0)}),
        (plan(*(replace(BENCHMARK, fleets=(replace(LARGE, count=n),)) for n in (2, 7, 3))), {STANDARD: (28, 28)}),
        (plan(replace(BENCHMARK, fleets=(replace(SERVERS, instance_type="q9.large"),))), {}),  # no known quota
    ],
)
def test_a_run_needs_what_its_largest_cells_need_at_a_time(run: object, expected: dict[str, tuple[int, int]]) -> None:
    requirements = required(run, {**VCPUS, "c6i.xlarge": 4}, {STANDARD: 8.0})  # type: ignore[arg-type]
    assert {one.quota.code: (one.vcpus, one.without_spot) for one in requirements} == expected
    for one in requirements:
        document = one.document()
        assert document["value"] == (8.0 if one.quota.code == STANDARD else None)
        assert (document["service"], document["desired"]) == ("ec2", max(expected[one.quota.code]))
