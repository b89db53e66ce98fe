"""Launches everything that a launch template defines: volumes, interfaces, tags, profile, metadata, shutdown.

moto takes image, type, user data and some security groups from a template. It ignores the network interfaces, the
instance profile, the metadata options, the shutdown behaviour and the tags of volumes. It also gives every instance a
second root volume.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.ec2.models.instances import InstanceBackend
from moto.ec2.utils import convert_tag_spec

from ..launches import profile_of
from ._wrap import wrap


def apply() -> None:
    @wrap(InstanceBackend, "run_instances")
    def run(original: Callable[..., Any], self: Any, *args: Any, **kwargs: Any) -> Any:
        if not kwargs.get("launch_template"):
            return original(self, *args, **kwargs)
        template = self._get_template_from_args(kwargs["launch_template"]).data
        interfaces = template.get("NetworkInterfaces") or []
        groups = [group for one in interfaces for group in one.get("Groups", [])]
        kwargs["security_group_ids"] = (
            kwargs.get("security_group_ids") or groups or template.get("SecurityGroupIds", [])
        )
        kwargs["metadata_options"] = kwargs.get("metadata_options") or template.get("MetadataOptions", {})
        behaviour = template.get("InstanceInitiatedShutdownBehavior")
        kwargs["instance_initiated_shutdown_behavior"] = kwargs.get("instance_initiated_shutdown_behavior") or behaviour
        if profile := profile_of(template):
            kwargs["iam_instance_profile"] = {"Arn": profile["Arn"], "Id": profile["InstanceProfileId"]}
        mappings = kwargs.pop("block_device_mappings", None) or template.get("BlockDeviceMappings") or []
        reservation = original(self, *args, block_device_mappings=[], **kwargs)  # none: created below
        tags = convert_tag_spec(template.get("TagSpecifications", []))
        for instance in reservation.instances:
            for mapping in _with_root(mappings, instance.root_device_name):
                _attach(self, instance, mapping, tags.get("volume", {}))
            for interface in instance.nics.values():
                interface.delete_on_termination = True
                interface.add_tags(tags.get("network-interface", {}))
        return reservation


def _with_root(mappings: list[dict[str, Any]], root: str) -> list[dict[str, Any]]:
    if any(mapping["DeviceName"] == root for mapping in mappings):
        return mappings
    return [{"DeviceName": root, "Ebs": {"VolumeSize": 8}}, *mappings]


def _attach(backend: Any, instance: Any, mapping: dict[str, Any], tags: dict[str, str]) -> None:
    ebs = mapping.get("Ebs")
    if ebs is None:
        return  # an instance store volume
    volume = backend.create_volume(
        size=int(ebs.get("VolumeSize") or 8),
        zone_name=instance.placement.zone,
        snapshot_id=ebs.get("SnapshotId"),
        encrypted=_is_true(ebs.get("Encrypted", False)),
        volume_type=ebs.get("VolumeType"),
        iops=ebs.get("Iops"),
        throughput=ebs.get("Throughput"),
    )
    # moto's volumes have no such property, but it describes all properties that the API has.
    if rate := ebs.get("VolumeInitializationRate"):
        volume.volume_initialization_rate = int(rate)
    volume.add_tags(tags)
    delete_on_termination = ebs.get("DeleteOnTermination", True)
    backend.attach_volume(volume.id, instance.id, mapping["DeviceName"], _is_true(delete_on_termination))


def _is_true(value: Any) -> bool:
    return str(value).lower() == "true"
