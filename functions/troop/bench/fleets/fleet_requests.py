"""Builds the parameters of Launch's requests to EC2 and Auto Scaling."""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from typing import Any

from troop.bench.definition.definition import PARTITION, Fleet, Volume
from troop.bench.fleets.user_data import LONGEST
from troop.shared.errors import TroopError
from troop.shared.tags import CELL_TAG, DEPLOYMENT_TAG, RUN_TAG

HTTPS = 443

IMAGE_PARAMETER = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-"
"""The beginning of the parameter's name; the architecture follows. AWS provides it in every region and partition."""

PARTITIONS = 7
"""Partitions of a placement group: the most that EC2 allows in a zone. It spreads instances evenly over them."""


class LaunchImpossibleError(TroopError):
    """The cell cannot be launched as requested; a retry would fail, too."""


BALANCED = {"CapacityDistributionStrategy": "balanced-only"}


@dataclass(frozen=True)
class Image:
    """A machine image: its id and its root device."""

    id: str
    root_device: str


@dataclass(frozen=True)
class Subnet:
    """A subnet of the deployment's network."""

    id: str
    zone: str


def architecture(instance_type: str, supported: Collection[str]) -> str:
    """Returns ``arm64`` or ``x86_64``: the architecture to use of those that an instance type supports.

    Raises:
        LaunchImpossibleError: the instance type supports neither.
    """
    known = next((a for a in ("arm64", "x86_64") if a in supported), None)
    if known is None:
        raise LaunchImpossibleError(f"{instance_type} runs neither arm64 nor x86_64: use another instance type")
    return known


def choose_subnets(fleet: Fleet, subnets: Sequence[Subnet], offered: Collection[str]) -> tuple[str, ...]:
    """Returns the ids of the subnets of a fleet's zones: those that the file names, otherwise the first zones by name
    that offer its instance type, so that fleets with one zone share it.

    Raises:
        LaunchImpossibleError: too few of the network's zones offer the type.
    """
    usable = {subnet.zone for subnet in subnets} & set(offered)
    zones = [zone for zone in fleet.zone_names or sorted(usable) if zone in usable][: fleet.zones]
    if len(zones) < fleet.zones:
        have = ", ".join(sorted({subnet.zone for subnet in subnets}))
        raise LaunchImpossibleError(
            f"the fleet {fleet.role} needs {fleet.zones} zones with {fleet.instance_type}, but only {len(zones)} of "
            f"the network's ({have}) offer it: use fewer zones or another instance type, or deploy with more zones"
        )
    return tuple(sorted(subnet.id for subnet in subnets if subnet.zone in zones))


def ingress(group: str) -> list[dict[str, Any]]:
    """Returns the ingress rules: only nodes of the same cell can reach a node, on every port."""
    return [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]


def egress(group: str, s3_prefix_list: str) -> list[dict[str, Any]]:
    """Returns the egress rules: nodes reach each other and S3. Security groups do not filter the network's metadata
    service, clock and resolver.
    """
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
    """Returns ``TagSpecifications`` for a created resource of EC2's type ``kind``, such as ``security-group``."""
    return [{"ResourceType": kind, "Tags": tag_list(tags)}]


def template_data(
    fleet: Fleet,
    image: Image,
    groups: Sequence[str],
    profile: str,
    user_data: str,
    tags: Mapping[str, str],
    placement_group: str | None = None,
) -> dict[str, Any]:
    """Returns a launch template's data.

    Args:
        groups: ids of the security groups.
        profile: ARN of the nodes' instance profile.
        tags: of everything launched from it.
        placement_group: name of the fleet's placement group; None for none.

    Raises:
        LaunchImpossibleError: the user data is too long for EC2.
    """
    raw = user_data.encode()
    if len(raw) > LONGEST:
        raise LaunchImpossibleError(f"the user data has {len(raw)} bytes, but EC2 accepts at most {LONGEST}")
    root = Volume(image.root_device, fleet.root_volume_gib)
    placement = {"Placement": {"GroupName": placement_group}} if placement_group else {}
    return placement | {
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
            {"DeviceIndex": 0, "AssociatePublicIpAddress": False, "DeleteOnTermination": True, "Groups": list(groups)}
        ],
        "BlockDeviceMappings": [_device(volume) for volume in (root, *fleet.volumes)],
        "InstanceInitiatedShutdownBehavior": "terminate",
        "Monitoring": {"Enabled": False},
        "TagSpecifications": [
            spec for kind in ("instance", "volume", "network-interface") for spec in tag_specification(kind, tags)
        ],
    }


def placement_request(name: str, strategy: str, tags: Mapping[str, str]) -> dict[str, Any]:
    """Returns the request for a placement group."""
    partitions = {"PartitionCount": PARTITIONS} if strategy == PARTITION else {}
    specification = {"TagSpecifications": tag_specification("placement-group", tags)}
    return {"GroupName": name, "Strategy": strategy, **partitions, **specification}


def _device(volume: Volume) -> dict[str, Any]:
    ebs = {
        "VolumeSize": volume.size_gib,
        "VolumeType": volume.type,
        "Iops": volume.iops,
        "Throughput": volume.throughput_mib,
        "SnapshotId": volume.snapshot,
        "VolumeInitializationRate": volume.rate,
        # EC2 takes the encryption from a snapshot, and refuses the key beside one; admission requires an encrypted one.
        "Encrypted": True if volume.snapshot is None else None,
        "DeleteOnTermination": True,
    }
    return {"DeviceName": volume.device, "Ebs": {key: value for key, value in ebs.items() if value is not None}}


def even_zones(counts: Mapping[str, int], more: int) -> tuple[str, ...]:
    """Returns the zones in which a further group must launch its nodes, so that the nodes of both are spread evenly.
    Auto Scaling spreads the nodes of one group only. If no choice of zones is certain to be even, returns the best.

    Args:
        counts: nodes of the first group by zone.
        more: nodes of the further group, at least 1.
    """

    def spread(zones: tuple[str, ...]) -> int:
        """Returns the largest difference between two zones that a balanced group can cause."""
        each, rest = divmod(more, len(zones))
        least = [counts[zone] + (each if zone in zones else 0) for zone in counts]
        most = [counts[zone] + (each + bool(rest) if zone in zones else 0) for zone in counts]
        return max(
            high - low for i, high in enumerate(most) for j, low in enumerate(least) if i != j or len(least) == 1
        )

    ordered = sorted(counts)
    subsets = (zones for size in range(1, len(ordered) + 1) for zones in combinations(ordered, size))
    return min(subsets, key=lambda zones: (spread(zones), -len(zones), zones))


def group_request(
    fleet: Fleet,
    name: str,
    template: str,
    subnets: Sequence[str],
    tags: Mapping[str, str],
    *,
    is_balanced: bool = True,
    is_protected: bool = False,
) -> dict[str, Any]:
    """Returns the request for an Auto Scaling group of exactly the fleet's nodes, never more.

    Args:
        is_protected: whether Auto Scaling takes no node when the group shrinks: first, Troop has the node finish its
            tasks, and then ends its protection.
        is_balanced: whether a zone without capacity stays empty. Otherwise Auto Scaling uses the other zones instead.
        template: id of the launch template, which has one version. The purchase option is in the group, not in the
            template, so that a fleet's backup group can use the same template.
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
        "NewInstancesProtectedFromScaleIn": is_protected,
        "CapacityRebalance": False,
        **({"AvailabilityZoneDistribution": BALANCED} if is_balanced and fleet.zones > 1 else {}),
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


def expiry_request(name: str, at: datetime) -> dict[str, Any]:
    """Returns the request for the scheduled action that sets a group to 0 nodes at its end; it replaces an earlier one
    of the group.
    """
    sizes = dict.fromkeys(("MinSize", "MaxSize", "DesiredCapacity"), 0)
    return {"AutoScalingGroupName": name, "ScheduledActionName": f"{name}-expires", "StartTime": at, **sizes}


def _bought(fleet: Fleet, template: dict[str, str]) -> dict[str, Any]:
    """Returns the template and, for spot, the instances distribution: all nodes on spot, chosen by price and capacity,
    at most at the fleet's maximum price; without one, AWS takes the on-demand price. The price belongs here: a template
    that itself requests spot is refused in a policy. There are no overrides, because nodes of one fleet have one type.
    """
    if not fleet.is_spot:
        return {"LaunchTemplate": template}
    distribution = {
        "OnDemandBaseCapacity": 0,
        "OnDemandPercentageAboveBaseCapacity": 0,
        "SpotAllocationStrategy": "price-capacity-optimized",
        **({"SpotMaxPrice": f"{fleet.max_price:f}"} if fleet.max_price is not None else {}),
    }
    policy = {"LaunchTemplate": {"LaunchTemplateSpecification": template}, "InstancesDistribution": distribution}
    return {"MixedInstancesPolicy": policy}


def is_ours(tags: Mapping[str, str], expected: Mapping[str, str]) -> bool:
    """Checks whether a resource with an expected name carries the run's tags: then an earlier try created it."""
    return all(tags.get(key) == expected[key] for key in (DEPLOYMENT_TAG, RUN_TAG, CELL_TAG))
