"""Checks a run against the account's quotas of running vCPUs, which are separate for on-demand and spot, by family.

Instances that already run also count, but are not known here. So only what can never fit is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from troop.bench.definition import ON_DEMAND, SPOT, Benchmark
from troop.bench.plan import Plan
from troop.bench.problems import Problem

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
    what: str


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
        if quota and (of_one := vcpus.get(fleet.instance_type)):
            vcpus_by_quota[quota] += fleet.count * of_one
    return vcpus_by_quota


def quotas_of(plan: Plan) -> set[Quota]:
    """Returns the quotas of a run's nodes, including those of on-demand backups for spot."""
    fleets = (fleet for planned in plan.cells for fleet in planned.benchmark.fleets)
    each = [(fleet.instance_type, purchase) for fleet in fleets for purchase in {fleet.purchase, ON_DEMAND}]
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
                    f"at most {value:g}: the account's quota {quota.code} of {quota.what}; ask AWS for a higher one"
                )
                cell = f" in the cell {planned.cell}" if len(plan.cells) > 1 else ""
                yield Problem(("fleets",), f"need {need} vCPUs of {quota.what}{cell}", allowed)


def warnings(plan: Plan, vcpus: Mapping[str, int], values: Mapping[str, float]) -> list[str]:
    """Returns sentences about quotas that suffice for each cell, but not for all parallel cells, or not for a cell
    whose spot nodes must be launched on demand, which may never happen.
    """
    sentences = list(_fallback(plan, vcpus, values))
    each = [needed(planned.benchmark, vcpus) for planned in plan.cells]
    for quota in sorted(quotas_of(plan), key=lambda one: one.code):
        value = values.get(quota.code)
        most = sum(sorted((cell[quota] for cell in each), reverse=True)[: plan.parallel])
        if value is not None and most > value >= max(cell[quota] for cell in each):
            side = f"{plan.parallel} parallel cells can need {most} vCPUs of {quota.what}"
            sentences.append(f"{side}: the account's quota {quota.code} is {value:g}")
    return sentences


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
            side = f"if spot lacks capacity, a cell can need {need} vCPUs of {quota.what}"
            yield f"{side}: the account's quota {quota.code} is {value:g}"
