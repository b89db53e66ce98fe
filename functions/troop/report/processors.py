"""Judges what processors did, for every sentence about them.

A processor that waits for a disk is not busy: :func:`troop.measure.summary.busy` is the definition. So a node that its
disks limit is never called full because of its processors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from troop.report.document import Node, Phase, Report, Series, Use
from troop.shared.formatting import sentence

FULL: Final = 85.0
"""Percent of all processors from which they may limit the result."""
CORE_FULL: Final = 95.0
"""Percent of the busiest processor from which it is full."""
WAITING: Final = 5.0
"""Percent of processor time spent waiting for disks (iowait) or the hypervisor (steal) from which it is a finding."""


@dataclass(frozen=True)
class Load:
    """The highest values of a role's processors over several phases, in percent; None if unknown."""

    role: str
    busy: float | None
    core: float | None
    iowait: float | None

    @property
    def is_full(self) -> bool:
        return self.busy is not None and self.busy > FULL

    @property
    def has_full_core(self) -> bool:
        return self.core is not None and self.core > CORE_FULL

    @property
    def waits(self) -> bool:
        return self.iowait is not None and self.iowait > WAITING


def loads(uses: Iterable[Use]) -> list[Load]:
    """Returns the loads of all roles, in the order of their first use."""
    by_role: dict[str, list[Use]] = {}
    for use in uses:
        by_role.setdefault(use.role, []).append(use)
    return [
        Load(
            role, *(_most(values) for values in zip(*((one.cpu, one.busiest, one.iowait) for one in its), strict=True))
        )
        for role, its in by_role.items()
    ]


def waits(several: Iterable[Load]) -> str:
    """Returns whose processors waited for disks, such as ``data for 99 % of the time``; empty if none did."""
    parts = [f"{one.role} for {one.iowait:.0f} %" for one in several if one.waits]
    return f"{sentence(parts)} of the time" if parts else ""


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def without_iowait(report: Report) -> Report:
    """Returns a report of an earlier version, whose CPU contains iowait, by the definition of this one."""
    if report.cpu_is_busy:
        return report
    cells = [cell.model_copy(update={"phases": [_phase(one) for one in cell.phases]}) for cell in report.cells]
    return report.model_copy(update={"cells": cells, "cpu_is_busy": True})


def _phase(phase: Phase) -> Phase:
    use, members = _less(phase.use), _less(phase.members)
    return phase.model_copy(update={"use": use, "members": members, "series": list(_series(phase.series))})


def _less(ones: Sequence[Use | Node]) -> list[Use | Node]:
    return [one.model_copy(update={"cpu": _difference(one.cpu, one.iowait)}) for one in ones]


def _series(series: Iterable[Series]) -> Iterator[Series]:
    every = list(series)
    waits = {(one.role, one.node, one.start, one.step_seconds): one.values for one in every if one.name == "iowait"}
    for one in every:
        if one.name == "cpu":
            waited = waits.get((one.role, one.node, one.start, one.step_seconds), [])
            values = [_difference(*pair) for pair in zip_longest(one.values, waited[: len(one.values)])]
            yield one.model_copy(update={"values": values})
        else:
            yield one


def _difference(cpu: float | None, iowait: float | None) -> float | None:
    return None if cpu is None else round(max(0.0, cpu - (iowait or 0.0)), 3)
