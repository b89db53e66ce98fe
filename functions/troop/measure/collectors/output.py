"""Writes a collector's results to the folder that the agent reads, each file atomically."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from troop.measure import tool_samples
from troop.measure.operations import SERVICE, Operation, document_of
from troop.measure.recorder import FORMAT
from troop.measure.separate import Separate, file_of
from troop.measure.summary import Samples, samples_document
from troop.measure.whole_file import write_whole

_numbers = itertools.count()

_NAMES = {"jtl": "JMeter"}
"""Names of tools whose collectors are named after their format."""


def write_operations(tool: str, operations: Mapping[str, Operation], results: Path) -> Path:
    """Writes operations with their tool. Their times are service times unless the collector states otherwise."""
    for one in operations.values():
        one.tools = frozenset({_NAMES.get(tool, tool)})
        if one.has_times:
            one.timing = one.timing or SERVICE
    return _write(results, f"operations-{tool}", {"format": FORMAT, "operations": document_of(operations)})


def write_rows(tool: str, rows: Iterable[Separate], results: Path) -> Path:
    return _write(results, f"separate-{tool}", file_of(tool, rows))


def write_samples(tool: str, samples: Samples, results: Path) -> Path:
    return _write(results, f"samples-{tool}", {"format": tool_samples.FORMAT, "samples": samples_document(samples)})


def _write(results: Path, name: str, document: Mapping[str, Any]) -> Path:
    return write_whole(results / f"{name}-{os.getpid()}-{next(_numbers)}.json", document)
