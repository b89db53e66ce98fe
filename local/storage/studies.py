"""Reads the benchmarks to perform on kernels: their own files, with less data and shorter times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from cli.bench.files import Source, load

from ..project import ROOT
from .kernel import Node

DISK_IO, EVENT_PROCESSOR = "disk-io", "event-processor"
BENCHMARKS = ROOT / "benchmarks"
LAYOUTS = ("single", "raid0", "raid0-cache")
OPERATIONS = {DISK_IO: "read", EVENT_PROCESSOR: "event"}
LIMIT = 80
"""Operations a second of each volume: low, so that the kernel's thread for disks is rarely the limit."""
READERS = 16
"""Enough reads at a time for all volumes."""


@dataclass(frozen=True)
class Times:
    """Seconds of each measured phase.

    Attributes:
        warm_up: the least; a kernel of a busy machine makes it longer, because it contains the start of the script.
    """

    warm_up: int = 4
    measured: int = 8


def studies(times: Times) -> dict[str, Source]:
    """Returns the benchmarks by name, in their order. Each has a cell for each layout."""
    return {DISK_IO: _disk_io(times), EVENT_PROCESSOR: _event_processor(times)}


def nodes(sources: Mapping[str, Source]) -> list[Node]:
    """Returns a node for each layout, which performs all benchmarks."""
    by_layout = {
        layout: {
            name: cell.benchmark
            for name, source in sources.items()
            for cell in source.plan.cells
            if cell.variant.scale == layout
        }
        for layout in LAYOUTS
    }
    folders = {name: BENCHMARKS / name for name in sources}
    return [Node(layout, cells, folders, LIMIT) for layout, cells in by_layout.items()]


def _disk_io(times: Times) -> Source:
    """Returns the volumes of the size ``study``. Only hot blocks are read, so that the cache helps."""
    document = _document(DISK_IO)
    steps = document["sizes"]["study"]["scale"]
    changes = {
        "scale": {layout: steps[layout] for layout in LAYOUTS},
        "phases": _once(document["phases"]),
        "parameters.pattern": "zipf-read",
        "parameters.jobs": READERS,
        "parameters.data_mib": 48,
    }
    return _load(DISK_IO, times, changes)


def _event_processor(times: Times) -> Source:
    """Returns small stores, whose pages are not in memory when the measurement begins. Few workers leave the processor
    to the layout with a cache, and their batches are small enough to end in time on a single volume.
    """
    changes = {
        "parameters.keys": 12_000,
        "parameters.value_bytes": 4000,  # a page of SQLite for each key
        "parameters.workers": 4,
        "parameters.batch": 40,
        "parameters.skew": 2,
        "parameters.cache_mib": 1,
        "phases.measure.timeout": "20m",  # then the agent samples devices each second
    }
    return _load(EVENT_PROCESSOR, times, changes)


def _once(phases: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the phases without points."""
    return [{key: value for key, value in phase.items() if key not in ("points", "between")} for phase in phases]


def _load(name: str, times: Times, changes: Mapping[str, Any]) -> Source:
    description = (
        f"{_document(name)['description']} Here the nodes are kernels of one machine (User-Mode Linux) with real md "
        f"and dm devices. Each volume does at most {LIMIT} reads and {LIMIT} writes a second; the cache has no limit. "
        "Only the order of the layouts and the cache's warm-up mean something. Costs are examples: local AWS's prices "
        "for the file's instance types and volumes, which are of similar size as those of AWS, at the rates measured "
        "here."
    )
    both = {
        "description": description,
        "phases.measure.warm_up": f"{times.warm_up}s",
        "phases.measure.measured": f"{times.measured}s",
    }
    return load(BENCHMARKS / name, None, {**changes, **both})


def _document(name: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((BENCHMARKS / name / "benchmark.yaml").read_text(encoding="utf-8"))
    return document
