"""Defines some prices and quotas of the local account, of similar size as those of AWS."""

from __future__ import annotations

from decimal import Decimal

from .config import REGION

VCPU_HOUR = {"a": "0.0204", "c": "0.0363", "d": "0.0865", "i": "0.0780", "m": "0.0408", "r": "0.0504", "t": "0.0084"}
"""USD per vCPU and hour, by the first letter of the family."""

OTHERS_VCPU_HOUR = "0.1"
SPOT_SHARE = Decimal("0.4")
"""The Spot price as a share of the On-Demand price; zones differ slightly."""

VOLUMES = {
    "EBS:VolumeUsage.gp3": ("0.08", "GB-Mo"),
    "EBS:VolumeP-IOPS.gp3": ("0.005", "IOPS-Mo"),
    "EBS:VolumeP-Throughput.gp3": ("40.96", "GiBps-mo"),
    "EBS:VolumeUsage.gp2": ("0.10", "GB-Mo"),
    "EBS:VolumeUsage.piops": ("0.125", "GB-Mo"),
    "EBS:VolumeP-IOPS.piops": ("0.065", "IOPS-Mo"),
    "EBS:VolumeUsage.st1": ("0.045", "GB-Mo"),
    "EBS:VolumeUsage.sc1": ("0.015", "GB-Mo"),
    "EBS:VolumeUsage.io2": ("0.125", "GB-month"),
    "EBS:VolumeP-IOPS.io2": ("0.065", "IOPS-Mo"),
    "EBS:VolumeP-IOPS.io2.tier2": ("0.0455", "IOPS-Mo"),
    "EBS:VolumeP-IOPS.io2.tier3": ("0.03185", "IOPS-Mo"),
}

ENDPOINTS = {
    "VpcEndpoint-Hours": ("0.01", "Hrs"),
    "VpcEndpoint-GWLBE-Hours": ("0.01", "Hrs"),
    "VpcEndpoint-Bytes": ("0.01", "GB"),
}

OTHERS = {
    "EBS:SnapshotUsage": ("AmazonEC2", "0.05", "GB-Mo"),
    "PublicIPv4:IdleAddress": ("AmazonVPC", "0.005", "Hrs"),
    "PublicIPv4:InUseAddress": ("AmazonVPC", "0.005", "Hrs"),
}
"""Prices by usage type, of which a request names a part."""

VCPU_QUOTAS = {"L-1216C47A": 5000.0, "L-34B43A08": 5000.0, "L-DB2E81BA": 0.0}
DEFAULT_VCPU_QUOTAS = {"L-417A185B": 0.0}
"""Quotas of On-Demand and Spot for standard families; none for graphics, as in a new account. On AWS, too, an account
can lack a quota that it has never changed; then only AWS's default exists.
"""


def on_demand(instance_type: str, vcpus: int) -> Decimal:
    """Returns the On-Demand price in USD per hour."""
    return Decimal(VCPU_HOUR.get(instance_type[:1], OTHERS_VCPU_HOUR)) * vcpus


def spot(instance_type: str, vcpus: int, zone: str) -> Decimal:
    """Returns the Spot price in USD per hour. Each further zone costs 1 % more."""
    further = ord(zone.removeprefix(REGION)[:1] or "a") - ord("a")
    price = on_demand(instance_type, vcpus) * SPOT_SHARE * (100 + further) / 100
    return price.quantize(Decimal("0.000001"))
