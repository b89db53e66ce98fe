"""Lists the permissions that the caller of a group's creation or change needs for its launch template.

Auto Scaling launches with its service-linked role, but first checks the caller's permissions: RunInstances on every
resource that the launch creates or uses, CreateTags for tags, and PassRole for the role of the instance profile.
"""

from __future__ import annotations

from typing import Any

from ministack.services import iam
from moto.ec2.utils import convert_tag_spec

from .config import ACCOUNT_ID
from .subjects import Subject, backend, ec2_arn, ec2_subject, placement_subject, request_tag_keys

_CREATED_KINDS = ("instance", "volume", "network-interface")
_NAMING = ("LaunchTemplate.", "MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification.")
"""Prefixes of parameters that name a launch template."""
_CHECKED = ("CreateAutoScalingGroup", "UpdateAutoScalingGroup")


def launch_subjects(action: str, form: dict[str, str]) -> list[Subject]:
    """Returns the subjects of a launch; none unless the call names an existing launch template."""
    version = _version(form) if action in _CHECKED else None
    if version is None:
        return []
    keys = {"ec2:launchtemplate": ec2_arn("launch-template", version.template.id)}
    tags = convert_tag_spec(version.data.get("TagSpecifications", []))
    needed = [_launch_subject(kind, tags.get(kind, {}), keys, version.data) for kind in _CREATED_KINDS]
    used = [
        version.template.id,
        *form.get("VPCZoneIdentifier", "").split(","),
        *_security_groups(version.data),
        *_snapshots(version.data),
    ]
    needed += [ec2_subject(one.strip(), keys, "ec2:RunInstances") for one in used if one.strip()]
    needed.append(_image(version.image_id, keys))
    if name := (version.data.get("Placement") or {}).get("GroupName"):
        needed.append(placement_subject(name, keys, "ec2:RunInstances"))
    for kind in _CREATED_KINDS:
        if tags.get(kind):
            conditions = {**request_tag_keys(tags[kind]), "ec2:createaction": "RunInstances"}
            needed.append(Subject(ec2_arn(kind, "*"), conditions, "ec2:CreateTags"))
    needed += [
        Subject(f"arn:aws:iam::{ACCOUNT_ID}:role/{role}", {"iam:passedtoservice": "ec2.amazonaws.com"}, "iam:PassRole")
        for role in (profile_of(version.data) or {}).get("Roles", [])
    ]
    return needed


def profile_of(template: dict[str, Any]) -> dict[str, Any] | None:
    """Returns MiniStack's record ({"Arn", "Roles": [names], ...}) of the instance profile of a launch template."""
    named = template.get("IamInstanceProfile") or {}
    profiles: list[dict[str, Any]] = list(iam._instance_profiles.values())
    for profile in profiles:
        if named.get("Arn") == profile["Arn"] or named.get("Name") == profile["InstanceProfileName"]:
            return profile
    return None


def _version(form: dict[str, str]) -> Any:
    ec2 = backend("ec2")
    named = next((start for start in _NAMING if any(key.startswith(start) for key in form)), _NAMING[0])
    template_id = form.get(f"{named}LaunchTemplateId")
    if name := form.get(f"{named}LaunchTemplateName"):
        template_id = ec2.launch_template_name_to_ids.get(name)
    template = ec2.launch_templates.get(template_id)
    return template.get_version(form.get(f"{named}Version", "$Default")) if template else None


def _launch_subject(kind: str, tags: dict[str, str], keys: dict[str, str], template: dict[str, Any]) -> Subject:
    conditions = {**keys, **request_tag_keys(tags)}
    if kind == "instance":
        conditions["ec2:instancetype"] = str(template.get("InstanceType", ""))
        conditions["ec2:metadatahttptokens"] = str(
            (template.get("MetadataOptions") or {}).get("HttpTokens", "optional")
        )
        if profile := profile_of(template):
            conditions["ec2:instanceprofile"] = str(profile["Arn"])
    return Subject(ec2_arn(kind, "*"), conditions, "ec2:RunInstances")


def _image(image_id: str, keys: dict[str, str]) -> Subject:
    image = backend("ec2").amis.get(image_id)
    owner = {"ec2:owner": image.owner_alias or image.owner_id} if image else {}
    return Subject(ec2_arn("image", image_id), {**keys, **owner}, "ec2:RunInstances")


def _security_groups(template: dict[str, Any]) -> list[str]:
    interfaces = template.get("NetworkInterfaces") or []
    return [*template.get("SecurityGroupIds", []), *(group for one in interfaces for group in one.get("Groups", []))]


def _snapshots(template: dict[str, Any]) -> list[str]:
    mapped = ((one.get("Ebs") or {}).get("SnapshotId") for one in template.get("BlockDeviceMappings") or [])
    return [snapshot for snapshot in mapped if snapshot]
