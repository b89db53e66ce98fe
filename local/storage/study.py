"""Compares a volume, RAID-0 of volumes, and RAID-0 with a cache, each volume with the same limit of operations.

The layouts are those of the size ``study`` of benchmarks/disk-io. Only their order means something, and that the cache
warms up: the volumes are files of this machine, and all of a kernel's disks share one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from troop.measure import summary as summaries
from troop.measure.merge import Merger
from troop.measure.operations import TOTAL
from troop.measure.summary import Summary

from ..project import ROOT
from .kernel import Node, run

BENCHMARK = ROOT / "benchmarks" / "disk-io"
LAYOUTS = ("single", "raid0", "raid0-cache")
COLD, WARM = "measure.1", "measure.2"
CACHED_DEVICE, CACHE_DEVICE = "troop-cached", "troop-fast"
LIMIT = 100
"""Operations a second of each volume: low, so that the kernel's thread for disks is never the limit."""
SECONDS = 4
PREFIX = "parameters."
LOAD = {"pattern": "zipf-read", "jobs": 16, "data_mib": 48}
"""Hot blocks, so that a cache helps, and enough readers for all volumes."""


@dataclass(frozen=True)
class Result:
    """A measurement.

    Attributes:
        reads: a second, by fio.
        hits: the share of reads that the cache answered, by the agent's samples; None without a cache.
        by_second: reads from the cached device, by the agent's samples; empty without a cache.
    """

    layout: str
    reads: float
    hits: float | None = None
    by_second: tuple[int, ...] = ()


def nodes(seconds: int = SECONDS) -> list[Node]:
    """Returns a node for each layout."""
    document = yaml.safe_load((BENCHMARK / "benchmark.yaml").read_text(encoding="utf-8"))
    steps = document["sizes"]["study"]["scale"]
    return [_node(name, document["parameters"], steps[name], seconds) for name in LAYOUTS]


def _node(name: str, parameters: Mapping[str, Any], step: Mapping[str, Any], seconds: int) -> Node:
    own = {key.removeprefix(PREFIX): value for key, value in step.items() if key.startswith(PREFIX)}
    together = {**parameters, **own, **LOAD}
    volumes = len(step["fleets.disks.volumes"])
    cached = together["cache"] != "none"
    measurements = (COLD, WARM) if cached else (COLD,)
    return Node(name, volumes, cached, together, BENCHMARK, LIMIT, measurements, seconds)


def measure(folder: Path, progress: Callable[[str], None], seconds: int = SECONDS) -> list[Result]:
    """Boots a kernel for each layout, one after another.

    Returns:
        Results in the order of ``LAYOUTS``; the last two have the cold and the warm cache.

    Raises:
        KernelError: a kernel has no results.
    """
    results = []
    for node in nodes(seconds):
        progress(f"{node.name}: {node.parameters['layout']}, cache {node.parameters['cache']}")
        documents = run(node, folder / node.name)
        results += [_result(node.name, summaries.parse(documents[phase])) for phase in node.measurements]
    return results


def _result(layout: str, summary: Summary) -> Result:
    """Returns the result of a summary. The rate is that of Troop's merger."""
    merger = Merger()
    merger.add(summary)
    rate = float(sum(row["per_second"] for row in merger.table() if row["operation"] != TOTAL))
    devices = summary.samples.devices if summary.samples else None
    reads = {devices.label(name): one["reads"] for name, one in devices.series.items()} if devices else {}
    if CACHED_DEVICE not in reads:
        return Result(layout, rate)
    by_second = tuple(number for number in reads[CACHED_DEVICE] if number)
    hits = sum(number or 0 for number in reads[CACHE_DEVICE]) / max(1, sum(by_second))
    return Result(layout, rate, hits, by_second)


def problems(results: Sequence[Result]) -> list[str]:
    """Returns a sentence for each part of the expected order that does not hold.

    The warm-up shows in the cache's hits, because the rate with a warm cache is that of this machine's processor.
    """
    single, raid0, cold, warm = results
    pairs = [("one volume", single, "RAID-0", raid0), ("RAID-0", raid0, "RAID-0 with a warm cache", warm)]
    sentences = [
        f"{slow} is not slower than {fast}: {low.reads:,.0f} and {high.reads:,.0f} reads a second"
        for slow, low, fast, high in pairs
        if low.reads >= high.reads
    ]
    if cold.hits is None or warm.hits is None:
        return [*sentences, "the agent's samples have no cache"]
    if cold.hits >= warm.hits:
        sentences.append(f"the cache does not warm up: it has {cold.hits:.1%} of the reads, then {warm.hits:.1%}")
    return sentences


def table(results: Sequence[Result]) -> str:
    """Returns the results as lines of text."""
    lines = [f"{'layout':<14}{'reads a second':>16}{'from the cache':>16}   reads by second, sampled by the agent"]
    for result in results:
        hits = "" if result.hits is None else f"{result.hits:.1%}"
        by_second = " ".join(f"{number:,}" for number in result.by_second)
        lines.append(f"{result.layout:<14}{result.reads:>16,.0f}{hits:>16}   {by_second}".rstrip())
    return "\n".join(lines)
