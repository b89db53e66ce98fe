"""Checks a run against the account's quotas of running vCPUs, which are separate for on-demand and spot, by family.

Instances that already run also count, but are not known here. So only what can never fit is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from troop.bench.definition.definition import ON_DEMAND, SPOT, Benchmark
from troop.bench.definition.plan import Plan, on_demand
from troop.bench.definition.problems import Problem

SERVICE = "ec2"
"""Service Quotas' code of the service."""

STANDARD = frozenset("acdhimrtz")
"""First letters of the instance families that share one quota."""

_STANDARD, _G, _P = "Standard (A, C, D, H, I, M, R, T, Z)", "G and VT", "P"

ON_DEMAND_CODES = {
    _STANDARD: "L-1216C47A",
    "DL": "L-6E869C2A",
    "F": "L-74FC7D96",
    _G: "L-DB2E81BA",
    "HPC": "L-F7808C92",
    "High Memory": "L-43DA4232",
    "Inf": "L-1945791B",
    _P: "L-417A185B",
    "P5": "L-417A185B",
    "Trn": "L-2C3B7624",
    "X": "L-7295265B",
}
SPOT_CODES = {
    _STANDARD: "L-34B43A08",
    "DL": "L-85EED4F7",
    "F": "L-88CF9481",
    _G: "L-3819A6DF",
    "Inf": "L-B5D1601B",
    _P: "L-7212CCBC",
    "P5": "L-C4BD4855",
    "Trn": "L-6B0D517C",
    "X": "L-E3A00192",
}
"""Codes of EC2's quotas in Service Quotas, by family; the same in all regions."""

_FAMILIES = {"dl": "DL", "f": "F", "g": _G, "gr": _G, "vt": _G, "hpc": "HPC", "u": "High Memory", "inf": "Inf"} | {
    "trn": "Trn",
    "p": _P,
    "x": "X",
}


@dataclass(frozen=True)
class Quota:
    """A quota: its code and what it limits, such as ``on-demand Standard (A, C, ...) instances``."""

    code: str
    name: str


def quota_of(instance_type: str, purchase: str) -> Quota | None:
    """Returns the quota for nodes of an instance type; None if unknown."""
    family = _family(instance_type)
    code = (SPOT_CODES if purchase == SPOT else ON_DEMAND_CODES).get(family)
    return Quota(code, f"{purchase} {family} instances") if code else None


def _family(instance_type: str) -> str:
    match = re.match(r"[a-z]+", instance_type)
    letters = match[0] if match else ""
    if re.match(r"p5", instance_type):
        return "P5"
    if letters in _FAMILIES:
        return _FAMILIES[letters]
    return _STANDARD if letters[:1] in STANDARD else ""


def needed(benchmark: Benchmark, vcpus: Mapping[str, int]) -> Counter[Quota]:
    """Computes the vCPUs of one cell, by quota.

    Args:
        vcpus: of one node, by instance type; missing types are not counted.
    """
    vcpus_by_quota: Counter[Quota] = Counter()
    for fleet in benchmark.fleets:
        quota = quota_of(fleet.instance_type, fleet.purchase)
        if quota and (vcpus_of_one := vcpus.get(fleet.instance_type)):
            vcpus_by_quota[quota] += fleet.count * vcpus_of_one
    return vcpus_by_quota


def quotas_of(plan: Plan) -> set[Quota]:
    """Returns the quotas of a run's nodes, including those of on-demand backups for spot."""
    fleets = (fleet for planned in plan.cells for fleet in planned.benchmark.fleets)
    each = [(kind, purchase) for fleet in fleets for kind in fleet.types for purchase in {fleet.purchase, ON_DEMAND}]
    return {quota for instance_type, purchase in each if (quota := quota_of(instance_type, purchase))}


def too_small(plan: Plan, vcpus: Mapping[str, int], values: Mapping[str, float]) -> Iterator[Problem]:
    """Lists quotas that are too small for a single cell.

    Args:
        values: known values by code.
    """
    reported = set()
    for planned in plan.cells:
        for quota, need in needed(planned.benchmark, vcpus).items():
            value = values.get(quota.code)
            if value is not None and need > value and quota not in reported:
                reported.add(quota)
                allowed = (
                    f"at most {value:g}: the account's quota {quota.code} of {quota.name}; ask AWS for a higher one"
                )
                cell = f" in the cell {planned.cell}" if len(plan.cells) > 1 else ""
                yield Problem(("fleets",), f"need {need} vCPUs of {quota.name}{cell}", allowed)


def warnings(plan: Plan, vcpus: Mapping[str, int], values: Mapping[str, float]) -> list[str]:
    """Returns sentences about quotas that suffice for each cell, but not for all parallel cells, not for a fleet that
    grows with its backlog, or not for a cell whose spot nodes must be launched on demand, which may never happen.
    """
    sentences = [*_fallback(plan, vcpus, values), *_growth(plan, vcpus, values)]
    each = [needed(planned.benchmark, vcpus) for planned in plan.cells]
    for quota in sorted(quotas_of(plan), key=lambda one: one.code):
        value = values.get(quota.code)
        most = sum(sorted((cell[quota] for cell in each), reverse=True)[: plan.parallel])
        if value is not None and most > value >= max(cell[quota] for cell in each):
            side = f"{plan.parallel} parallel cells can need {most} vCPUs of {quota.name}"
            sentences.append(f"{side}: the account's quota {quota.code} is {value:g}")
    return sentences


def _growth(plan: Plan, vcpus: Mapping[str, int], values: Mapping[str, float]) -> Iterator[str]:
    for planned in plan.cells:
        now, grown = needed(planned.benchmark, vcpus), needed(planned.benchmark.grown, vcpus)
        for quota, need in sorted(grown.items(), key=lambda pair: pair[0].code):
            value = values.get(quota.code)
            if value is not None and now[quota] <= value < need:
                yield f"scale can demand {need} vCPUs of {quota.name}: the account's quota {quota.code} is {value:g}"


def _fallback(plan: Plan, vcpus: Mapping[str, int], values: Mapping[str, float]) -> Iterator[str]:
    most: Counter[Quota] = Counter()
    for planned in plan.cells:
        benchmark = planned.benchmark
        spot = [fleet for fleet in benchmark.fleets if fleet.is_spot]
        instead = replace(benchmark, fleets=tuple(replace(fleet, purchase=ON_DEMAND) for fleet in benchmark.fleets))
        falls_back = {quota_of(fleet.instance_type, ON_DEMAND) for fleet in spot}
        now = needed(benchmark, vcpus)
        for quota, need in needed(instead, vcpus).items():
            fits_now = quota in falls_back and now[quota] <= values.get(quota.code, 0)
            most[quota] = max(most[quota], need if fits_now else 0)
    for quota, need in sorted(most.items(), key=lambda pair: pair[0].code):
        value = values.get(quota.code)
        if value is not None and need > value:
            side = f"if spot lacks capacity, a cell can need {need} vCPUs of {quota.name}"
            yield f"{side}: the account's quota {quota.code} is {value:g}"


@dataclass(frozen=True)
class Requirement:
    """The vCPUs of one quota that a run needs at a time.

    Attributes:
        vcpus: of the cells that run together, if each has the largest of its instance types, and the most nodes that
            its backlog can demand.
        without_spot: the same if all spot nodes run on demand; 0 for a quota of spot.
        value: the account's quota; None if it is unknown.
    """

    quota: Quota
    vcpus: int
    without_spot: int
    value: float | None = None

    @property
    def desired(self) -> int:
        """The value of the quota with which the run also works without spot."""
        return max(self.vcpus, self.without_spot)

    def document(self) -> dict[str, Any]:
        """Returns the stored and published form."""
        return {
            "service": SERVICE,
            "code": self.quota.code,
            "what": self.quota.name,
            "vcpus": self.vcpus,
            "without_spot": self.without_spot,
            "desired": self.desired,
            "value": self.value,
        }


def required(plan: Plan, vcpus: Mapping[str, int], values: Mapping[str, float]) -> list[Requirement]:
    """Lists the quotas that a run needs, those of on-demand instances first.

    Args:
        vcpus: of one node, by instance type; missing types are not counted.
        values: known values by code.
    """
    now = [_largest(one.benchmark.grown, vcpus) for one in plan.cells]
    instead = [_largest(on_demand(one.benchmark.grown), vcpus) for one in plan.cells]
    requirements = []
    for quota in sorted(quotas_of(plan), key=lambda one: (one.name.startswith(SPOT), one.name)):
        most, most_instead = (
            sum(sorted((cell[quota] for cell in cells), reverse=True)[: plan.parallel]) for cells in (now, instead)
        )
        if most or most_instead:
            requirements.append(Requirement(quota, most, most_instead, values.get(quota.code)))
    return requirements


def _largest(benchmark: Benchmark, vcpus: Mapping[str, int]) -> Counter[Quota]:
    """Computes the most vCPUs of one cell by quota, whichever of its instance types each fleet gets."""
    by_quota: Counter[Quota] = Counter()
    for fleet in benchmark.fleets:
        most: dict[Quota, int] = {}
        for kind in fleet.types:
            if quota := quota_of(kind, fleet.purchase):
                most[quota] = max(most.get(quota, 0), fleet.count * vcpus.get(kind, 0))
        by_quota.update(most)
    return by_quota
