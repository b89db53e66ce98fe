"""Defines what a report must know of an instance type, so that it needs no AWS: its size, and what it may move.

Sizes below the largest of a family may use more network and EBS bandwidth than their baseline, but only for a while.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from troop.shared import codec
from troop.shared.codec import DocumentError

FORMAT = "troop.instance-types/1"

GB, GBIT, MB = 10**9, 10**9 / 8, 10**6
"""Bytes in EC2's units. EC2 states instance stores in GB, networks in Gbit/s, and EBS in MB/s, all decimal."""


@dataclass(frozen=True)
class TypeFacts:
    """One instance type; None for what EC2 does not state, and for what the type does not have.

    Attributes:
        memory_mib: in MiB.
        store_gb: of all disks of the instance store together, in GB; 0 without one.
        store_disks: their number.
        store_type: ``ssd`` or ``hdd``; "" without one.
        network_gbps: baseline of the network card that a node uses, in Gbit/s, in each direction.
        network_peak_gbps: what it may use for a while.
        network: EC2's description, such as ``Up to 12.5 Gigabit``.
        ebs_mbps, ebs_peak_mbps: baseline and maximum bandwidth to EBS in MB/s, of reads and writes together.
        ebs_iops, ebs_peak_iops: baseline and maximum operations of EBS per second.
    """

    vcpus: int | None = None
    memory_mib: int | None = None
    store_gb: int = 0
    store_disks: int = 0
    store_type: str = ""
    network: str = ""
    network_gbps: float | None = None
    network_peak_gbps: float | None = None
    ebs_mbps: float | None = None
    ebs_peak_mbps: float | None = None
    ebs_iops: int | None = None
    ebs_peak_iops: int | None = None


def facts_of(description: Mapping[str, Any]) -> TypeFacts:
    """Reads one instance type of EC2's answer to DescribeInstanceTypes."""
    store = description.get("InstanceStorageInfo") or {}
    disks = store.get("Disks") or []
    network = description.get("NetworkInfo") or {}
    card = _card(network)
    ebs = (description.get("EbsInfo") or {}).get("EbsOptimizedInfo") or {}
    return TypeFacts(
        vcpus=(description.get("VCpuInfo") or {}).get("DefaultVCpus"),
        memory_mib=(description.get("MemoryInfo") or {}).get("SizeInMiB"),
        store_gb=store.get("TotalSizeInGB") or 0,
        store_disks=sum(disk.get("Count") or 0 for disk in disks),
        store_type=next((disk["Type"] for disk in disks if disk.get("Type")), ""),
        network=network.get("NetworkPerformance") or "",
        network_gbps=card.get("BaselineBandwidthInGbps"),
        network_peak_gbps=card.get("PeakBandwidthInGbps"),
        ebs_mbps=ebs.get("BaselineThroughputInMBps"),
        ebs_peak_mbps=ebs.get("MaximumThroughputInMBps"),
        ebs_iops=ebs.get("BaselineIops"),
        ebs_peak_iops=ebs.get("MaximumIops"),
    )


def _card(network: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the network card of a node's only interface: the default one."""
    default = network.get("DefaultNetworkCardIndex") or 0
    cards: list[Mapping[str, Any]] = network.get("NetworkCards") or []
    return next((card for card in cards if card.get("NetworkCardIndex") == default), {})


def to_document(types: Mapping[str, TypeFacts]) -> dict[str, Any]:
    """Converts to the document that is stored with a run; the reverse of :func:`from_document`."""
    return {"format": FORMAT, "types": {name: asdict(types[name]) for name in sorted(types)}}


def from_document(document: Any) -> dict[str, TypeFacts]:
    """Reads a document that :func:`to_document` has built. Ignores unknown keys.

    Raises:
        ValueError: the document has another format or is damaged.
    """
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        raise ValueError(f"the format must be {FORMAT}")
    try:
        types = codec.from_document(_Types, document).types
    except DocumentError as error:
        raise ValueError(f"damaged: {error}") from None
    for name, facts in types.items():
        for key, value in asdict(facts).items():
            if isinstance(value, (int, float)) and not 0 <= value < _MOST:
                raise ValueError(f"damaged: {key} of {name} is {value}")
    return dict(types)


_MOST = 10**15


@dataclass(frozen=True)
class _Types:
    types: Mapping[str, TypeFacts]
