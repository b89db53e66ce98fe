"""Compares a volume, RAID-0 of volumes, and RAID-0 with a cache, each volume with the same limit of operations.

The layouts are those of the size ``study`` of benchmarks/disk-io. Only their order means something, and that the cache
warms up: the volumes are files of this machine, and all of a kernel's disks share one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from troop.measure import summary as summaries
from troop.measure.merge import Merger
from troop.measure.operations import TOTAL

from ..project import ROOT
from .kernel import Node, run

BENCHMARK = ROOT / "benchmarks" / "disk-io"
SINGLE, RAID0, CACHED = LAYOUTS = ("single", "raid0", "raid0-cache")
COLD, WARM = MEASUREMENTS = ("measure.1", "measure.2")
LIMIT = 100
"""Operations a second of each volume: low, so that the kernel's thread for disks is never the limit."""
SECONDS = 5
PREFIX = "parameters."
LOAD = {"pattern": "zipf-read", "jobs": 16, "data_mib": 48}
"""Hot blocks, so that a cache helps, and enough readers for all volumes."""


@dataclass(frozen=True)
class Result:
    """Reads a second of a layout, in two measurements one after another."""

    layout: str
    first: float
    second: float


def nodes(seconds: int = SECONDS) -> list[Node]:
    """Returns a node for each layout."""
    document = yaml.safe_load((BENCHMARK / "benchmark.yaml").read_text(encoding="utf-8"))
    steps = document["sizes"]["study"]["scale"]
    return [_node(name, document["parameters"], steps[name], seconds) for name in LAYOUTS]


def _node(name: str, parameters: Mapping[str, Any], step: Mapping[str, Any], seconds: int) -> Node:
    own = {key.removeprefix(PREFIX): value for key, value in step.items() if key.startswith(PREFIX)}
    together = {**parameters, **own, **LOAD}
    volumes = len(step["fleets.disks.volumes"])
    return Node(name, volumes, together["cache"] != "none", together, BENCHMARK, LIMIT, MEASUREMENTS, seconds)


def measure(folder: Path, progress: Callable[[str], None], seconds: int = SECONDS) -> list[Result]:
    """Boots a kernel for each layout, one after another, and returns the results in the order of ``LAYOUTS``.

    Raises:
        KernelError: a kernel has no results.
    """
    results = []
    for node in nodes(seconds):
        progress(f"{node.name}: {node.parameters['layout']}, cache {node.parameters['cache']}")
        documents = run(node, folder / node.name)
        results.append(Result(node.name, *(_rate(documents[phase]) for phase in MEASUREMENTS)))
    return results


def _rate(document: Mapping[str, Any]) -> float:
    """Returns the operations a second by Troop's merger, from the summary of the only node."""
    merger = Merger()
    merger.add(summaries.parse(document))
    rows = [row for row in merger.table() if row["operation"] != TOTAL]
    return float(sum(row["per_second"] for row in rows))


def problems(results: list[Result]) -> list[str]:
    """Returns a sentence for each part of the expected order that does not hold."""
    single, raid0, cached = results
    pairs = [
        ("one volume", single.second, "RAID-0", raid0.second),
        ("RAID-0", raid0.second, "RAID-0 with a warm cache", cached.second),
        ("RAID-0 with a cold cache", cached.first, "the same with a warm cache", cached.second),
    ]
    return [
        f"{slow} is not slower than {fast}: {low:,.0f} and {high:,.0f} reads a second"
        for slow, low, fast, high in pairs
        if low >= high
    ]


def table(results: list[Result]) -> str:
    """Returns the results as lines of text."""
    lines = [f"{'layout':<14}{'reads a second':>16}{'then':>10}"]
    lines += [f"{result.layout:<14}{result.first:>16,.0f}{result.second:>10,.0f}" for result in results]
    return "\n".join(lines)
