"""Compares a volume, RAID-0 of volumes, and RAID-0 with a cache, each volume with the same limit of operations.

Only the order of the layouts means something, and that the cache warms up: the volumes are files of this machine, and
all of a kernel's disks share one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cli.bench.files import Source
from troop.measure.merge import Merger
from troop.measure.summary import Summary

from .kernel import Node, Performance, run
from .studies import DISK_IO, LAYOUTS, OPERATIONS, nodes

CACHED_DEVICE, CACHE_DEVICE = "troop-cached", "troop-fast"
MEASURE = "measure"
AT_A_TIME = 3


@dataclass(frozen=True)
class Result:
    """A measurement.

    Attributes:
        per_second: operations of the benchmark, as the script reports them.
        reads: from the device with the file system in each second, by the agent's samples; only with a cache.
        hits: the cache's part of these reads, from 0.
    """

    benchmark: str
    layout: str
    per_second: float
    reads: tuple[int, ...] = ()
    hits: tuple[float, ...] = ()

    @property
    def warm_up(self) -> tuple[float, float] | None:
        """The hits in the first and in the last second with reads; None without them."""
        return (self.hits[0], self.hits[-1]) if len(self.hits) > 1 else None


def perform(sources: Mapping[str, Source], folder: Path, progress: Callable[[str], None]) -> dict[str, Performance]:
    """Boots a kernel for each layout, all at a time: they mostly wait. Returns what each has done, by layout.

    Raises:
        KernelError: a kernel has no results.
    """

    def perform_on(node: Node) -> Performance:
        first = next(iter(node.cells.values())).parameters
        progress(f"{node.name}: boots a kernel with the layout {first['layout']}, cache {first['cache']}")
        return run(node, folder / node.name, progress)

    each = nodes(sources)
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return dict(zip((node.name for node in each), pool.map(perform_on, each), strict=True))


def results(performances: Mapping[str, Performance]) -> list[Result]:
    """Returns the results of each benchmark in the order of the layouts."""
    return [
        _result(name, layout, performances[layout].summaries[name][MEASURE])
        for name in OPERATIONS
        for layout in LAYOUTS
    ]


def _result(benchmark: str, layout: str, summary: Summary) -> Result:
    merger = Merger()
    merger.add(summary)
    rate = next(float(row["per_second"]) for row in merger.table() if row["operation"] == OPERATIONS[benchmark])
    devices = summary.samples.devices if summary.samples else None
    by_label = {devices.label(name): one["reads"] for name, one in devices.series.items()} if devices else {}
    if CACHED_DEVICE not in by_label:
        return Result(benchmark, layout, rate)
    pairs = [
        (all_reads, from_cache or 0)
        for all_reads, from_cache in zip(by_label[CACHED_DEVICE], by_label[CACHE_DEVICE], strict=True)
        if all_reads
    ]
    reads, hits = tuple(all_reads for all_reads, _ in pairs), tuple(cached / all_reads for all_reads, cached in pairs)
    return Result(benchmark, layout, rate, reads, hits)


def problems(measured: Sequence[Result]) -> list[str]:
    """Returns a sentence for each part of the expected order that does not hold.

    The warm-up shows in the cache's hits, because the rate with a warm cache is that of this machine's processor.
    """
    sentences = []
    for name in OPERATIONS:
        single, raid0, cached = (one for one in measured if one.benchmark == name)
        for slow, low, fast, high in (
            ("one volume", single, "RAID-0", raid0),
            ("RAID-0", raid0, "RAID-0 with a cache", cached),
        ):
            if low.per_second >= high.per_second:
                rates = f"{low.per_second:,.0f} and {high.per_second:,.0f} {OPERATIONS[name]}s a second"
                sentences.append(f"{name}: {slow} is not slower than {fast}: {rates}")
    cold = next(one for one in measured if (one.benchmark, one.layout) == (DISK_IO, LAYOUTS[-1]))
    if cold.warm_up is None:
        sentences.append("the agent's samples have no cache")
    elif cold.warm_up[0] >= cold.warm_up[1]:
        first, last = cold.warm_up
        sentences.append(
            f"the cache does not warm up: it has {first:.1%} of the reads at first, and {last:.1%} at last"
        )
    return sentences


def table(measured: Sequence[Result]) -> str:
    """Returns the results as lines of text."""
    lines = [f"{'benchmark':<18}{'layout':<14}{'operations':<12}{'a second':>10}   reads a second, from the cache"]
    for one in measured:
        hits = ", ".join(f"{reads:,} {hits:.0%}" for reads, hits in zip(one.reads, one.hits, strict=True))
        row = f"{one.benchmark:<18}{one.layout:<14}{OPERATIONS[one.benchmark]:<12}{one.per_second:>10,.0f}   {hits}"
        lines.append(row.rstrip())
    return "\n".join(lines)
