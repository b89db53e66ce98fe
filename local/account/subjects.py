"""What a request to EC2, Auto Scaling or Elastic Load Balancing acts on: the resources and condition keys for IAM.

Only what Troop and its operators call is modelled. An action that is not listed here has the resource `*`, so a role
that names resources is refused: a gap is an error, never a silent permission.
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
}


@dataclass(frozen=True)
class Subject:
    """`keys`: condition keys of the resource and the request, names in lower case."""

    arn: str = "*"
    keys: dict[str, str] = field(default_factory=dict)


def subjects(service: str, action: str, form: dict[str, str]) -> list[Subject]:
    """Every resource the call names; all of them must be allowed."""
    if action.startswith("Describe"):
        return [Subject()]
    if service == "autoscaling":
        return _groups(form)
    if service == "ec2":
        return _ec2(form)
    arns = [value for key, value in form.items() if key in ("TargetGroupArn", "LoadBalancerArn", "ListenerArn")]
    return [Subject(arn) for arn in arns] or [Subject()]


def backend(service: str) -> Any:
    """moto's backend of the account."""
    return get_backend(service)[ACCOUNT_ID][REGION]


def _resource_tags(prefix: str, tags: dict[str, str]) -> dict[str, str]:
    return {f"{start}:resourcetag/{name}".lower(): value for name, value in tags.items() for start in (prefix, "aws")}


def _request_tags(form: dict[str, str], pattern: str, key: str, value: str) -> dict[str, str]:
    found: dict[str, str] = {}
    number = 1
    while (name := form.get(f"{pattern}.{number}.{key}")) is not None:
        found[f"aws:requesttag/{name}".lower()] = form.get(f"{pattern}.{number}.{value}", "")
        number += 1
    return found


def _groups(form: dict[str, str]) -> list[Subject]:
    groups = backend("autoscaling").autoscaling_groups
    names = {value for key, value in form.items() if key == "AutoScalingGroupName" or key.endswith(".ResourceId")}
    if instance_id := form.get("InstanceId"):
        names |= {
            group.name
            for group in groups.values()
            if any(state.instance.id == instance_id for state in group.instance_states)
        }
    asked = _request_tags(form, "Tags.member", "Key", "Value")
    found = []
    for name in sorted(names) or ["*"]:
        group = groups.get(name)
        if group is None:
            arn = f"arn:aws:autoscaling:{REGION}:{ACCOUNT_ID}:autoScalingGroup:*:autoScalingGroupName/{name}"
            found.append(Subject(arn, asked))
        else:
            tags = {tag["Key"]: tag["Value"] for tag in group.tags}
            found.append(Subject(group.arn, {**asked, **_resource_tags("autoscaling", tags)}))
    return found


def _ec2(form: dict[str, str]) -> list[Subject]:
    ec2 = backend("ec2")
    ids = [value for key, value in form.items() if key.split(".")[0] in ("InstanceId", "ResourceId")]
    ids += [form[key] for key in ("LaunchTemplateId", "GroupId") if key in form]
    asked = _request_tags(form, "TagSpecification.1.Tag", "Key", "Value") | _request_tags(form, "Tag", "Key", "Value")
    found = []
    for resource_id in ids:
        kind = _EC2_KINDS.get(resource_id.split("-")[0], "*")
        tags = {tag["key"]: tag["value"] for tag in ec2.describe_tags(filters={"resource-id": [resource_id]})}
        arn = f"arn:aws:ec2:{REGION}:{ACCOUNT_ID}:{kind}/{resource_id}"
        found.append(Subject(arn, {**asked, **_resource_tags("ec2", tags)}))
    return found or [Subject(keys=asked)]
