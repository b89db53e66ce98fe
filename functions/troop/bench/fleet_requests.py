"""What Launch asks EC2 and Auto Scaling for, as their requests' parameters."""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from troop.bench.definition import Fleet, Volume
from troop.bench.user_data import LONGEST
from troop.errors import TroopError
from troop.tags import CELL_TAG, DEPLOYMENT_TAG, RUN_TAG

HTTPS = 443


class LaunchImpossibleError(TroopError):
    """The cell cannot be launched as it is asked for; another try would end the same."""


@dataclass(frozen=True)
class Image:
    """A machine image: its id, and the device it boots from."""

    id: str
    root_device: str


@dataclass(frozen=True)
class Subnet:
    """One of the network's."""

    id: str
    zone: str


def architecture(instance_type: str, supported: Collection[str]) -> str:
    """``arm64`` or ``x86_64``: the one to take of those that an instance type supports.

    Raises:
        LaunchImpossibleError: neither is among them.
    """
    known = next((a for a in ("arm64", "x86_64") if a in supported), None)
    if known is None:
        raise LaunchImpossibleError(f"{instance_type} runs neither arm64 nor x86_64: take another instance type")
    return known


def choose_subnets(fleet: Fleet, subnets: Sequence[Subnet], offered: Collection[str]) -> tuple[str, ...]:
    """Ids of the subnets of a fleet's zones: the first ones by name that offer its instance type, so that fleets of one
    zone share it.

    Raises:
        LaunchImpossibleError: too few of the network's zones offer the type.
    """
    zones = sorted({subnet.zone for subnet in subnets} & set(offered))[: fleet.zones]
    if len(zones) < fleet.zones:
        have = ", ".join(sorted({subnet.zone for subnet in subnets}))
        raise LaunchImpossibleError(
            f"the fleet {fleet.role} wants {fleet.zones} zones with {fleet.instance_type}, and {len(zones)} of the "
            f"network's ({have}) offer it: take fewer zones or another instance type, or deploy with more zones"
        )
    return tuple(sorted(subnet.id for subnet in subnets if subnet.zone in zones))


def ingress(group: str) -> list[dict[str, Any]]:
    """Nodes of a cell reach each other on every port; nobody else reaches them."""
    return [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]


def egress(group: str, s3_prefix_list: str) -> list[dict[str, Any]]:
    """Nodes reach each other, and S3. Metadata, clock and resolver of the network pass security groups by."""
    to_s3 = {
        "IpProtocol": "tcp",
        "FromPort": HTTPS,
        "ToPort": HTTPS,
        "PrefixListIds": [{"PrefixListId": s3_prefix_list}],
    }
    return [*ingress(group), to_s3]


def tag_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def tag_specification(kind: str, tags: Mapping[str, str]) -> list[dict[str, Any]]:
    """``TagSpecifications`` of what is created itself; ``kind`` as EC2 calls it, such as ``security-group``."""
    return [{"ResourceType": kind, "Tags": tag_list(tags)}]


def template_data(
    fleet: Fleet, image: Image, group: str, profile: str, user_data: str, tags: Mapping[str, str]
) -> dict[str, Any]:
    """A launch template's data.

    Args:
        group: id of the cell's security group.
        profile: ARN of the nodes' instance profile.
        tags: of everything that comes of it.

    Raises:
        LaunchImpossibleError: the user data is longer than EC2 takes.
    """
    raw = user_data.encode()
    if len(raw) > LONGEST:
        raise LaunchImpossibleError(f"the user data has {len(raw)} bytes, {LONGEST} is the most EC2 takes")
    root = Volume(image.root_device, fleet.root_volume_gib)
    return {
        "ImageId": image.id,
        "InstanceType": fleet.instance_type,
        "IamInstanceProfile": {"Arn": profile},
        "UserData": base64.b64encode(raw).decode(),
        "MetadataOptions": {
            "HttpEndpoint": "enabled",
            "HttpTokens": "required",
            "HttpPutResponseHopLimit": 1,
        },
        "NetworkInterfaces": [
            {"DeviceIndex": 0, "AssociatePublicIpAddress": False, "DeleteOnTermination": True, "Groups": [group]}
        ],
        "BlockDeviceMappings": [_device(volume) for volume in (root, *fleet.volumes)],
        "InstanceInitiatedShutdownBehavior": "terminate",
        "Monitoring": {"Enabled": False},
        "TagSpecifications": [
            spec for kind in ("instance", "volume", "network-interface") for spec in tag_specification(kind, tags)
        ],
    }


def _device(volume: Volume) -> dict[str, Any]:
    ebs = {
        "VolumeSize": volume.size_gib,
        "VolumeType": volume.type,
        "Iops": volume.iops,
        "Throughput": volume.throughput_mib,
    }
    settings = {key: value for key, value in ebs.items() if value is not None}
    return {"DeviceName": volume.device, "Ebs": settings | {"Encrypted": True, "DeleteOnTermination": True}}


def group_request(
    fleet: Fleet, name: str, template: str, subnets: Sequence[str], tags: Mapping[str, str]
) -> dict[str, Any]:
    """An Auto Scaling group of exactly the fleet's nodes; not one more at any time.

    Args:
        template: id of the launch template, of which it takes the only version. It does not say how nodes are bought:
            that is the group's, so that a fleet's backup group takes the same one.
    """
    return {
        "AutoScalingGroupName": name,
        **_bought(fleet, {"LaunchTemplateId": template, "Version": "1"}),
        "MinSize": 0,
        "MaxSize": fleet.count,
        "DesiredCapacity": fleet.count,
        "VPCZoneIdentifier": ",".join(subnets),
        "HealthCheckType": "EC2",
        "HealthCheckGracePeriod": 0,
        "NewInstancesProtectedFromScaleIn": False,
        "CapacityRebalance": False,
        "TerminationPolicies": ["Default"],
        "Tags": [
            {
                "Key": key,
                "Value": value,
                "PropagateAtLaunch": True,
                "ResourceType": "auto-scaling-group",
                "ResourceId": name,
            }
            for key, value in tags.items()
        ],
    }


def _bought(fleet: Fleet, template: dict[str, str]) -> dict[str, Any]:
    """The template, and for spot how it is bought: all of it, wherever it is cheap and likely to last, at up to the
    price on demand. No override: nodes of one fleet are of one type.
    """
    if not fleet.is_spot:
        return {"LaunchTemplate": template}
    distribution = {
        "OnDemandBaseCapacity": 0,
        "OnDemandPercentageAboveBaseCapacity": 0,
        "SpotAllocationStrategy": "price-capacity-optimized",
    }
    policy = {"LaunchTemplate": {"LaunchTemplateSpecification": template}, "InstancesDistribution": distribution}
    return {"MixedInstancesPolicy": policy}


def is_ours(tags: Mapping[str, str], expected: Mapping[str, str]) -> bool:
    """Whether something of a name that we would give carries our run's tags: then an earlier try has made it."""
    return all(tags.get(key) == expected[key] for key in (DEPLOYMENT_TAG, RUN_TAG, CELL_TAG))
