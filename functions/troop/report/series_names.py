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
        is_rare: whether the panel is left out if all values are 0.
        may_be_logarithmic: whether values can spread over several decades.
    """

    title: str
    unit: str
    names: dict[str, str]
    part: float = 1
    off: tuple[str, ...] = ()
    is_large: bool = False
    is_rare: bool = False
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
    Panel("Errors", "errors/s", {"errors_per_second": "errors"}, is_rare=True),
    Panel(
        "CPU",
        "% of all processors",
        {"cpu": "CPU", "iowait": "iowait", "steal": "steal", "user": "user", "system": "system"},
        off=("steal", "user", "system"),
    ),
    Panel("Busiest core", "% of one processor", {"busiest": "busiest"}),
    Panel("Disk operations", "operations/s", {"disk_reads": "reads", "disk_writes": "writes"}),
    Panel("Disk", "MB/s", {"disk_read_bytes": "read", "disk_write_bytes": "written"}, part=1e6),
    Panel("Disk wait", "ms per operation", {"disk_wait_ms": "wait"}, may_be_logarithmic=True),
    Panel("Disk queue", "operations under way", {"disk_queue": "queue"}),
    Panel("Disk utilization", "% of the time", {"disk_busy": "busy"}),
    Panel("Network", "MB/s", {"network_received_bytes": "received", "network_sent_bytes": "sent"}, part=1e6),
    Panel("TCP", "segments/s", {"tcp_sent_segments": "sent", "tcp_retransmits": "sent again"}, may_be_logarithmic=True),
    Panel(
        "Network allowances exceeded",
        "packets/s",
        {
            "network_in_exceeded": "inbound bandwidth",
            "network_out_exceeded": "outbound bandwidth",
            "packet_rate_exceeded": "packet rate",
            "conntrack_exceeded": "tracked connections",
            "linklocal_exceeded": "link-local packets",
        },
        is_rare=True,
    ),
    Panel(
        "EBS limits exceeded",
        "ms per second, all volumes",
        {
            "volume_iops_exceeded": "IOPS of the volume",
            "volume_throughput_exceeded": "throughput of the volume",
            "instance_iops_exceeded": "IOPS of the instance",
            "instance_throughput_exceeded": "throughput of the instance",
        },
        part=1000,
        is_rare=True,
    ),
)
