"""Says what a verdict on planned faults will lack, by the tools that a benchmark's files name. Pure.

A verdict needs operations and failures by second. Collectors of :mod:`troop.measure.collectors` that read each request
have both. Others read what a tool has summed up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from troop.bench.definition.plan import Plan

COUNTING = ("jtl", "k6", "locust", "recorder", "table")
"""Tools whose operations and failures are counted by second."""

_NOTHING = "does not count by second, so the verdict is UNKNOWN, without figures"
LACKING: Mapping[str, str] = {
    "fio": _NOTHING,
    "iozone": _NOTHING,
    "spectrum": _NOTHING,
    "wrk": _NOTHING,
    "cassandra-stress": "counts failures by second only with --hdr; its times and its rate contain failed operations",
    "hdr": "reads logs without failures: rate and times are judged, and how many operations failed is unknown",
}
"""What the verdict lacks, by collector."""

_NAMED = re.compile(
    rb"""troop\.measure\.collectors[. ]import ([a-z0-9_, ]+)"""
    rb"""|troop\.measure\.collectors(?:\.|["']?[,\s]+["']?)([a-z][a-z0-9_-]*)"""
    rb"""|troop\.measure\.(recorder|hdr_log)\b(?! import Interval)"""
)
"""Modules, and commands in a shell or as a list of words. A script that reads intervals itself may know more."""

_OTHER_NAMES = {"hdr_log": "hdr", "cassandra_stress": "cassandra-stress", "locust_events": "locust"}


def tools(files: Mapping[str, bytes]) -> list[str]:
    """Returns the known tools whose collectors files name, in the order of their names."""
    names = {
        name.strip()
        for content in files.values()
        for match in _NAMED.finditer(content)
        for group in match.groups()
        if group
        for name in group.decode().split(",")
    }
    return sorted({_OTHER_NAMES.get(name, name) for name in names} & {*COUNTING, *LACKING})


def remarks(plan: Plan, files: Mapping[str, bytes]) -> list[str]:
    """Returns sentences about the verdicts on planned faults; none without faults."""
    phases = {phase.name: phase for cell in plan.cells for phase in cell.benchmark.phases if phase.faults}
    if not phases:
        return []
    where, used = f"faults of {', '.join(phases)}", tools(files)
    counting, lacking = [one for one in used if one in COUNTING], [one for one in used if one in LACKING]
    sentences = [f"{where}: {one} {LACKING[one]}" for one in lacking]
    if counting:
        verb = "counts" if len(counting) == 1 else "count"
        sentences.insert(0, f"{where} can be judged: {', '.join(counting)} {verb} operations and failures by second")
    if not used:
        sentences = [
            f"{where} need operations and failures by second: recorder, JMeter (jtl), k6, Locust and table count them",
            *(f"{one} {text}" for one, text in LACKING.items()),
        ]
    if unset := [name for name, phase in phases.items() if not phase.rate]:
        sentences.append(f"{', '.join(unset)} has no rate: how many operations are missing is an estimate")
    return sentences
