"""Extracts from EC2's description of an instance what its cost depends on."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from troop.bench.admission.estimate import ROOT_VOLUME
from troop.bench.definition.definition import ON_DEMAND, SPOT, Fleet
from troop.bench.records.record import Disk, Kind, Resource
from troop.shared.tags import PROTECTED_TAG


def purchase_of(instance: Mapping[str, Any]) -> str:
    """Returns how the instance was bought; EC2 states it only for spot."""
    return SPOT if instance.get("InstanceLifecycle") == "spot" else ON_DEMAND


def is_free_node(instance: Mapping[str, Any], profile: str) -> bool:
    """Checks whether an instance is a node, by the ARN of its instance profile, and is not protected."""
    is_node = (instance.get("IamInstanceProfile") or {}).get("Arn") == profile
    return is_node and all(tag["Key"] != PROTECTED_TAG for tag in instance.get("Tags", []))


def volumes_of(instance: Mapping[str, Any]) -> frozenset[str]:
    """Returns the ids of the volumes that are deleted with the instance: those it was launched with. By default EC2
    keeps volumes that are attached later.
    """
    attached = (mapping["Ebs"] for mapping in instance.get("BlockDeviceMappings", []) if "Ebs" in mapping)
    return frozenset(ebs["VolumeId"] for ebs in attached if ebs.get("DeleteOnTermination") and "VolumeId" in ebs)


def resources_of(instance: Mapping[str, Any], run: str, cell: str, fleet: Fleet, now: datetime) -> list[Resource]:
    """Returns the instance, and the volumes that are deleted with it, for the record.

    Args:
        instance: from DescribeInstances.
        fleet: the instance's fleet; it defines the volumes, so that they need no call.
    """
    disks = {
        volume.device: Disk(volume.type, volume.size_gib, volume.iops, volume.throughput_mib, volume.rate)
        for volume in fleet.volumes
    }
    disks[str(instance.get("RootDeviceName"))] = Disk(ROOT_VOLUME, fleet.root_volume_gib)
    resources = [
        Resource(
            run,
            cell,
            Kind.INSTANCE,
            instance["InstanceId"],
            now,
            role=fleet.role,
            instance_type=instance.get("InstanceType"),
            zone=instance.get("Placement", {}).get("AvailabilityZone"),
            purchase=purchase_of(instance),
            started_at=instance.get("LaunchTime"),
        )
    ]
    own = volumes_of(instance)
    resources += [
        Resource(
            run,
            cell,
            Kind.VOLUME,
            mapping["Ebs"]["VolumeId"],
            now,
            role=fleet.role,
            disk=disks.get(mapping.get("DeviceName", "")),
        )
        for mapping in instance.get("BlockDeviceMappings", [])
        if mapping.get("Ebs", {}).get("VolumeId") in own
    ]
    return resources
