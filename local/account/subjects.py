"""Lists the permissions that a request to EC2, Auto Scaling or load balancing needs: actions, resources, keys.

The module covers only calls of Troop and its operators. Other actions have the resource `*`, so a role with specific
resources is refused: a gap causes an error, never a silent permission.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from moto.backends import get_backend

from .config import ACCOUNT_ID, REGION

SERVICES = ("ec2", "autoscaling", "elasticloadbalancing")
_EC2_KINDS = {
    "i": "instance",
    "vol": "volume",
    "sg": "security-group",
    "subnet": "subnet",
    "vpc": "vpc",
    "lt": "launch-template",
    "eni": "network-interface",
    "ami": "image",
    "snap": "snapshot",
    "vpce": "vpc-endpoint",
    "rtb": "route-table",
}
_NAMING = ("InstanceId", "ResourceId", "LaunchTemplateId", "GroupId", "VolumeId", "NetworkInterfaceId", "VpcEndpointId")
"""Parameters of EC2 calls that name the changed resources, single or numbered."""
_CREATED = {
    "CreateSecurityGroup": "security-group",
    "CreateLaunchTemplate": "launch-template",
    "CreatePlacementGroup": "placement-group",
    "CreateVpcEndpoint": "vpc-endpoint",
}
_WITHIN = ("VpcId", "SubnetId", "SecurityGroupId", "RouteTableId")
"""Parameters that name what a new resource becomes a part of, single or numbered."""
_PLACEMENT_GROUP = "placement-group"
"""Its ARN contains its name, which is known before its creation."""


@dataclass(frozen=True)
class Subject:
    """A resource that needs a permission.

    Attributes:
        keys: condition keys of the resource and the request, with names in lower case.
        action: an additional action with its service; empty for the action of the request.
    """

    arn: str = "*"
    keys: dict[str, str] = field(default_factory=dict)
    action: str = ""


def subjects(service: str, action: str, form: dict[str, str]) -> list[Subject]:
    """Returns all subjects of a call; every one must be allowed."""
    if action.startswith("Describe") and action != "DescribeInstanceAttribute":
        return [Subject()]
    if service == "autoscaling":
        return _groups(form)
    if action == "DeletePlacementGroup":
        return [placement_subject(form.get("GroupName", ""))]
    if service == "ec2":
        return _creation(action, form) if action in _CREATED else _ec2(form)
    arns = [value for key, value in form.items() if key in ("TargetGroupArn", "LoadBalancerArn", "ListenerArn")]
    return [Subject(arn) for arn in arns] or [Subject()]


def backend(service: str) -> Any:
    """Returns moto's backend of the account."""
    return get_backend(service)[ACCOUNT_ID][REGION]


def ec2_arn(kind: str, resource_id: str) -> str:
    """Returns the ARN of an EC2 resource. The ARNs of images and snapshots have no account."""
    return f"arn:aws:ec2:{REGION}:{'' if kind in ('image', 'snapshot') else ACCOUNT_ID}:{kind}/{resource_id}"


def ec2_subject(resource_id: str, keys: dict[str, str] | None = None, action: str = "") -> Subject:
    """Returns the subject of an existing EC2 resource, with its tags and properties."""
    kind = _EC2_KINDS.get(resource_id.split("-")[0], "*")
    tags = _resource_tags("ec2", backend("ec2").tags.get(resource_id, {}))
    return Subject(ec2_arn(kind, resource_id), {**(keys or {}), **tags, **_properties(kind, resource_id)}, action)


def placement_subject(name: str, keys: dict[str, str] | None = None, action: str = "") -> Subject:
    """Returns the subject of an existing placement group, see :mod:`.patches.moto_placement_groups`."""
    group = getattr(backend("ec2"), "placement_groups", {}).get(name)
    tags = _resource_tags("ec2", backend("ec2").tags.get(group.id, {})) if group else {}
    return Subject(ec2_arn(_PLACEMENT_GROUP, name), {**(keys or {}), **tags}, action)


def _properties(kind: str, resource_id: str) -> dict[str, str]:
    """Returns condition keys for properties of a resource; none if it does not exist."""
    ec2 = backend("ec2")
    if kind == "instance":
        launches = (one.instances for one in ec2.reservations.values())
        instance = next((one for some in launches for one in some if one.id == resource_id), None)
        profile = (getattr(instance, "iam_instance_profile", None) or {}).get("Arn")
        return {"ec2:instanceprofile": profile} if profile else {}
    if kind == "security-group":
        group = ec2.get_security_group_from_id(resource_id)
        return {"ec2:vpc": ec2_arn("vpc", group.vpc_id)} if group and group.vpc_id else {}
    if kind == "volume" and (volume := ec2.volumes.get(resource_id)):
        return {"ec2:encrypted": str(bool(volume.encrypted)).lower()}
    if kind == "vpc-endpoint" and (endpoint := ec2.vpc_end_points.get(resource_id)):
        return {"ec2:vpceservicename": endpoint.service_name}
    if kind == "snapshot" and (snapshot := ec2.snapshots.get(resource_id)):
        return {"ec2:owner": snapshot.owner_id}
    return {}


def request_tag_keys(tags: dict[str, str]) -> dict[str, str]:
    return {f"aws:requesttag/{name}".lower(): value for name, value in tags.items()}


def _resource_tags(prefix: str, tags: dict[str, str]) -> dict[str, str]:
    return {f"{start}:resourcetag/{name}".lower(): value for name, value in tags.items() for start in (prefix, "aws")}


def _request_tags(form: dict[str, str], pattern: str, key: str, value: str) -> dict[str, str]:
    tags: dict[str, str] = {}
    number = 1
    while (name := form.get(f"{pattern}.{number}.{key}")) is not None:
        tags[name] = form.get(f"{pattern}.{number}.{value}", "")
        number += 1
    return request_tag_keys(tags)


def _groups(form: dict[str, str]) -> list[Subject]:
    groups = backend("autoscaling").autoscaling_groups
    names = {value for key, value in form.items() if key == "AutoScalingGroupName" or key.endswith(".ResourceId")}
    if instance_id := form.get("InstanceId"):
        names |= {
            group.name
            for group in groups.values()
            if any(state.instance.id == instance_id for state in group.instance_states)
        }
    request_keys = _request_tags(form, "Tags.member", "Key", "Value")
    subjects = []
    for name in sorted(names) or ["*"]:
        group = groups.get(name)
        if group is None:
            arn = f"arn:aws:autoscaling:{REGION}:{ACCOUNT_ID}:autoScalingGroup:*:autoScalingGroupName/{name}"
            subjects.append(Subject(arn, request_keys))
        else:
            tags = {tag["Key"]: tag["Value"] for tag in group.tags}
            subjects.append(Subject(group.arn, {**request_keys, **_resource_tags("autoscaling", tags)}))
    return subjects


def _ec2(form: dict[str, str]) -> list[Subject]:
    ids = [value for key, value in form.items() if key.split(".")[0] in _NAMING]
    if name := form.get("LaunchTemplateName"):
        ids.append(backend("ec2").launch_template_name_to_ids.get(name, "lt-unknown"))
    request_keys = _specification_keys(form) | _request_tags(form, "Tag", "Key", "Value")
    return [ec2_subject(resource_id, request_keys) for resource_id in ids] or [Subject(keys=request_keys)]


def _specification_keys(form: dict[str, str]) -> dict[str, str]:
    return _request_tags(form, "TagSpecification.1.Tag", "Key", "Value")


def _creation(action: str, form: dict[str, str]) -> list[Subject]:
    """Returns the subjects of a creation: the new resource without an id, its network and its tags."""
    kind, request_keys = _CREATED[action], _specification_keys(form)
    arn = ec2_arn(kind, form.get("GroupName", "*") if kind == _PLACEMENT_GROUP else "*")
    service = {"ec2:vpceservicename": form["ServiceName"]} if form.get("ServiceName") else {}
    needed = [Subject(arn, request_keys | service)]
    needed += [ec2_subject(value) for key, value in form.items() if key.split(".")[0] in _WITHIN]
    if request_keys:
        needed.append(Subject(arn, {**request_keys, "ec2:createaction": action}, "ec2:CreateTags"))
    return needed
