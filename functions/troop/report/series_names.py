"""Names the series of a report: how each is labelled, and which panel draws it in which unit.

Every series whose name is listed is drawn, for roles, nodes and devices alike. A series without an entry is drawn in a
panel of its own, under its own name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Panel:
    """A chart of series with the same unit.

    Attributes:
        names: of series, with their labels in the legend, in the order of their dashes.
        part: the number by which values are divided to have the unit.
        is_large: whether the panel has the full width.
        off: names that are not drawn until the reader wants them.
        may_be_logarithmic: whether values can spread over several decades.
    """

    title: str
    unit: str
    names: dict[str, str]
    part: float = 1
    off: tuple[str, ...] = ()
    is_large: bool = False
    may_be_logarithmic: bool = False


PANELS: Final = (
    Panel("Throughput", "operations/s", {"per_second": ""}, is_large=True),
    Panel(
        "Latency",
        "ms",
        {"mean_ms": "mean", "p50_ms": "p50", "p90_ms": "p90", "p99_ms": "p99", "max_ms": "max"},
        off=("p90_ms", "max_ms"),
        is_large=True,
        may_be_logarithmic=True,
    ),
    Panel("Errors", "errors/s", {"errors_per_second": "errors"}),
    Panel(
        "CPU",
        "% of all processors",
        {"cpu": "CPU", "iowait": "iowait", "steal": "steal", "user": "user", "system": "system"},
        off=("steal", "user", "system"),
    ),
    Panel("Disk operations", "operations/s", {"disk_reads": "reads", "disk_writes": "writes"}),
    Panel("Disk", "MB/s", {"disk_read_bytes": "read", "disk_write_bytes": "written"}, part=1e6),
    Panel("Network", "MB/s", {"network_received_bytes": "received", "network_sent_bytes": "sent"}, part=1e6),
)
