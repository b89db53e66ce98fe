"""Facts of instance types, as EC2 states them."""

from __future__ import annotations

from typing import Any

import botocore.session
import pytest
from moto.ec2.models.instance_types import INSTANCE_TYPES

from troop.bench.fleets.type_facts import TypeFacts, facts_of, from_document, to_document


def test_a_type_has_its_size_its_store_and_its_baselines() -> None:
    assert facts_of(INSTANCE_TYPES["i4i.large"]) == TypeFacts(
        vcpus=2,
        memory_mib=16_384,
        store_gb=468,
        store_disks=1,
        store_type="ssd",
        network="Up to 10 Gigabit",
        network_gbps=0.781,
        network_peak_gbps=10.0,
        ebs_mbps=78.125,
        ebs_peak_mbps=1250.0,
        ebs_iops=2500,
        ebs_peak_iops=40_000,
    )


def test_a_node_uses_the_default_network_card_of_several() -> None:
    cards = [{"NetworkCardIndex": n, "BaselineBandwidthInGbps": 10.0 * n} for n in range(4)]
    description = {"NetworkInfo": {"DefaultNetworkCardIndex": 2, "NetworkCards": cards}}
    assert facts_of(description).network_gbps == 20.0


def test_missing_facts_of_ec2_are_unknown() -> None:
    assert facts_of({}) == TypeFacts()


def test_the_names_are_those_of_the_api() -> None:
    """An unknown key of an answer would be missing without a word."""
    shapes = botocore.session.get_session().get_service_model("ec2")
    for shape, names in {
        "InstanceTypeInfo": ("VCpuInfo", "MemoryInfo", "InstanceStorageInfo", "NetworkInfo", "EbsInfo"),
        "VCpuInfo": ("DefaultVCpus",),
        "MemoryInfo": ("SizeInMiB",),
        "InstanceStorageInfo": ("TotalSizeInGB", "Disks"),
        "DiskInfo": ("Count", "Type"),
        "NetworkInfo": ("NetworkPerformance", "NetworkCards", "DefaultNetworkCardIndex"),
        "NetworkCardInfo": ("NetworkCardIndex", "BaselineBandwidthInGbps", "PeakBandwidthInGbps"),
        "EbsInfo": ("EbsOptimizedInfo",),
        "EbsOptimizedInfo": (
            "BaselineThroughputInMBps",
            "MaximumThroughputInMBps",
            "BaselineIops",
            "MaximumIops",
        ),
    }.items():
        members: dict[str, Any] = getattr(shapes.shape_for(shape), "members")  # noqa: B009 - of structures only
        assert set(names) <= members.keys(), shape


def test_all_types_survive_being_stored() -> None:
    types = {name: facts_of(description) for name, description in INSTANCE_TYPES.items()}
    assert from_document(to_document(types)) == types


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"format": "troop.instance-types/2", "types": {}},
        {"format": "troop.instance-types/1"},
        {"format": "troop.instance-types/1", "types": {"a": 5}},
        {"format": "troop.instance-types/1", "types": {"a": {"vcpus": 2.5}}},
        {"format": "troop.instance-types/1", "types": {"a": {"vcpus": True}}},
        {"format": "troop.instance-types/1", "types": {"a": {"store_gb": "1"}}},
        {"format": "troop.instance-types/1", "types": {"a": {"network_gbps": -1}}},
        {"format": "troop.instance-types/1", "types": {"a": {"network": 10}}},
    ],
)
def test_a_damaged_document_is_refused(document: Any) -> None:
    with pytest.raises(ValueError, match=r"format|damaged|is "):
        from_document(document)
