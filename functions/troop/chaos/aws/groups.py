"""Reads Auto Scaling groups, their instances, and the data around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from botocore.exceptions import ClientError

from troop.chaos.groups import Group, Instance
from troop.chaos.near_keys import folded_tag
from troop.chaos.replacements import Build, Launch
from troop.chaos.stages import MOST_ACTIVITIES, Activity
from troop.faults.fault import GONE_STATES
from troop.shared.tags import PROTECTED_TAG

REFRESH_ENDED = frozenset({"Successful", "Failed", "Cancelled", "RollbackSuccessful", "RollbackFailed"})
LEAVING = "Terminat"
"""The prefix of the lifecycle states in which the group is terminating an instance, including a hook's wait."""


def read_groups(autoscaling: Any, names: Sequence[str] | None = None) -> list[Group]:
    """Reads all groups of the account and region, or those of ``names`` that exist.

    Omits groups that are being deleted.
    """
    paginator = autoscaling.get_paginator("describe_auto_scaling_groups")
    if names is None:
        pages: Iterable[Any] = paginator.paginate(PaginationConfig={"PageSize": 100})
    else:
        pages = (p for some in _batched(names, 50) for p in paginator.paginate(AutoScalingGroupNames=list(some)))
    return [to_group(raw) for page in pages for raw in page["AutoScalingGroups"] if not raw.get("Status")]


class BadToken(ValueError):
    """Auto Scaling does not know this position in the listing of groups (any more)."""


def groups_page(autoscaling: Any, limit: int, token: str | None = None) -> tuple[list[Group], str | None]:
    """Reads at most ``limit`` groups in one call, and returns them with the token of the next page; None at the end.

    Omits groups that are being deleted, so a page can be short.

    Raises:
        BadToken: the token is not from Auto Scaling, or has expired.
    """
    try:
        answer = autoscaling.describe_auto_scaling_groups(MaxRecords=limit, **({"NextToken": token} if token else {}))
    except ClientError as error:
        if token and error.response["Error"]["Code"] in ("InvalidNextToken", "ValidationError"):
            raise BadToken(token) from None
        raise
    groups = [to_group(raw) for raw in answer["AutoScalingGroups"] if not raw.get("Status")]
    return groups, answer.get("NextToken")


def groups_tagged(autoscaling: Any, key: str, tag_values: Iterable[str], pages: int | None = None) -> list[Group]:
    """Reads the groups with a tag of exactly one of these values: Auto Scaling's filters are case-sensitive, without
    wildcards. Reads at most so many pages of 100; None for all.
    """
    read = autoscaling.get_paginator("describe_auto_scaling_groups").paginate(
        Filters=[{"Name": f"tag:{key}", "Values": sorted(tag_values)}], PaginationConfig={"PageSize": 100}
    )
    return [to_group(raw) for page in islice(read, pages) for raw in page["AutoScalingGroups"] if not raw.get("Status")]


def to_group(raw: dict[str, Any]) -> Group:
    """Converts Auto Scaling's description of a group."""
    return Group(
        name=raw["AutoScalingGroupName"],
        desired=raw["DesiredCapacity"],
        instances=tuple(
            Instance(
                instance_id=i["InstanceId"],
                lifecycle=i["LifecycleState"],
                # The service returns both HEALTHY and Healthy.
                health=i["HealthStatus"].capitalize(),
                zone=i["AvailabilityZone"],
                weight=int(i.get("WeightedCapacity") or 1),
                scale_in_protected=bool(i.get("ProtectedFromScaleIn")),
                build=Build(_template(i), i.get("InstanceType", "")),
            )
            for i in raw["Instances"]
        ),
        tags={t["Key"]: t.get("Value", "") for t in raw.get("Tags", [])},
        suspended_processes=frozenset(p["ProcessName"] for p in raw.get("SuspendedProcesses", [])),
        # An SDK that is older than this field omits it.
        operator=(raw.get("Operator") or {}).get("Principal", ""),
        propagated=frozenset(t["Key"] for t in raw.get("Tags", []) if t.get("PropagateAtLaunch")),
        **_sources(raw),
    )


def _template(instance: dict[str, Any]) -> str:
    """Returns the launch template of an instance with its version, or its launch configuration; "" for neither."""
    if template := instance.get("LaunchTemplate"):
        return f"{template.get('LaunchTemplateId') or template.get('LaunchTemplateName')}:{template.get('Version', '')}"
    return str(instance.get("LaunchConfigurationName", ""))


def _sources(raw: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """Returns the traffic sources by kind. Sources that were attached as traffic sources may appear only in that list.
    Their type may be missing, except for a Classic Load Balancer.
    """
    sources = {"elbv2": list(raw.get("TargetGroupARNs", [])), "elb": list(raw.get("LoadBalancerNames", []))}
    for source in raw.get("TrafficSources", []):
        name = source["Identifier"]
        kind = source.get("Type") or ("vpc-lattice" if ":vpc-lattice:" in name else "elbv2")
        sources.setdefault(kind, []).append(name)
    fields = {"target_groups": "elbv2", "load_balancers": "elb", "lattice_groups": "vpc-lattice"}
    return {field: tuple(dict.fromkeys(sources.get(kind, ()))) for field, kind in fields.items()}


_NEARLY_PROTECTED = ("*roop*rotected*", "*TROOP*PROTECTED*", "*TROOP*rotected*", "*roop*PROTECTED*")
"""Patterns of tags that people may have meant as ``troop:protected``. EC2's filters are case-sensitive."""


def protected_instances(ec2: Any) -> frozenset[str]:
    """Reads the ids of all instances of the account and region with the tag ``troop:protected``, also if it is
    misspelled by blanks, separators or capital letters.
    """
    pages = ec2.get_paginator("describe_instances").paginate(
        Filters=[
            {"Name": "tag-key", "Values": list(_NEARLY_PROTECTED)},
            {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]},
        ],
        PaginationConfig={"PageSize": 1000},
    )
    instances = (i for page in pages for r in page["Reservations"] for i in r["Instances"])
    protected = folded_tag(PROTECTED_TAG)
    return frozenset(
        i["InstanceId"] for i in instances if any(folded_tag(tag["Key"]) == protected for tag in i.get("Tags", ()))
    )


def launches(ec2: Any, group: str) -> list[Launch]:
    """Reads when the instances of a group were started, and their images."""
    pages = ec2.get_paginator("describe_instances").paginate(
        Filters=[
            {"Name": "tag:aws:autoscaling:groupName", "Values": [group]},
            {"Name": "instance-state-name", "Values": ["pending", "running"]},
        ],
        PaginationConfig={"PageSize": 1000},
    )
    instances = (i for page in pages for r in page["Reservations"] for i in r["Instances"])
    return [Launch(i["InstanceId"], i.get("ImageId", ""), i["LaunchTime"]) for i in instances]


def activities(autoscaling: Any, group: str) -> tuple[Activity, ...]:
    """Reads the newest scaling activities of a group, in one call; moments in whole milliseconds, as they are stored.

    Those of an event are among them when it begins. Later a group that keeps failing can have more of them.
    """
    newest = autoscaling.describe_scaling_activities(AutoScalingGroupName=group, MaxRecords=MOST_ACTIVITIES)[
        "Activities"
    ]
    return tuple(
        Activity(
            description=str(one.get("Description", "")),
            status=str(one["StatusCode"]),
            started=_milliseconds(one["StartTime"]),
            ended=_milliseconds(one["EndTime"]) if one.get("EndTime") else None,
            message=str(one.get("StatusMessage", "")),
        )
        for one in newest
    )


def _milliseconds(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def image(ec2: Any, instance_id: str) -> str:
    """Returns the image of an instance; "" if EC2 no longer knows it, an hour after its termination."""
    try:
        reservations = ec2.describe_instances(InstanceIds=[instance_id])["Reservations"]
    except ClientError as error:
        if error.response["Error"]["Code"] == "InvalidInstanceID.NotFound":
            return ""
        raise
    return next((str(i.get("ImageId", "")) for r in reservations for i in r["Instances"]), "")


def refreshing(autoscaling: Any, names: Iterable[str]) -> frozenset[str]:
    """Returns the groups with an instance refresh in progress (or being rolled back), and groups that no longer exist:
    chaos must not affect either. One call a group.
    """
    busy = set()
    for name in names:
        try:
            # The latest one is first; an active one is always the latest.
            answer = autoscaling.describe_instance_refreshes(AutoScalingGroupName=name, MaxRecords=1)
        except ClientError as error:
            if not _is_missing(error):
                raise
            busy.add(name)  # deleted since it was read
            continue
        if any(r["Status"] not in REFRESH_ENDED for r in answer["InstanceRefreshes"]):
            busy.add(name)
    return frozenset(busy)


ALARM_TYPES = ("MetricAlarm", "CompositeAlarm")
"""The types of alarms that are read. CloudWatch returns only metric alarms to a request without types."""


def described_alarms(cloudwatch: Any, names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yields the definitions of the alarms, metric and composite ones, that exist. One call for 100 names."""
    for some in _batched(sorted(set(names)), 100):
        pages = cloudwatch.get_paginator("describe_alarms").paginate(
            AlarmNames=list(some), AlarmTypes=list(ALARM_TYPES)
        )
        for page in pages:
            yield from page.get("MetricAlarms", [])
            yield from page.get("CompositeAlarms", [])


def alarm_states(cloudwatch: Any, names: Iterable[str]) -> dict[str, str]:
    """Returns the state by name of the alarms, metric and composite ones, that exist."""
    return {alarm["AlarmName"]: alarm["StateValue"] for alarm in described_alarms(cloudwatch, names)}


def lifecycle(autoscaling: Any, instance_id: str) -> str | None:
    """Returns an instance's lifecycle state, such as ``InService``; None if it is in no group (any more)."""
    known = autoscaling.describe_auto_scaling_instances(InstanceIds=[instance_id])["AutoScalingInstances"]
    return str(known[0]["LifecycleState"]) if known else None


def group_of(autoscaling: Any, instance_id: str) -> str:
    """Returns the name of an instance's group; "" if it is in none."""
    known = autoscaling.describe_auto_scaling_instances(InstanceIds=[instance_id])["AutoScalingInstances"]
    return str(known[0]["AutoScalingGroupName"]) if known else ""


def instance_gone(ec2: Any, autoscaling: Any, instance_id: str) -> bool:
    """Checks whether an instance is terminated, being terminated or no longer known.

    An instance in a lifecycle hook still runs, but its group is terminating it.
    """
    if (lifecycle(autoscaling, instance_id) or "").startswith(LEAVING):
        return True
    try:
        reservations = ec2.describe_instances(InstanceIds=[instance_id])["Reservations"]
    except ClientError as error:
        if error.response["Error"]["Code"] == "InvalidInstanceID.NotFound":
            return True
        raise
    return all(i["State"]["Name"] in GONE_STATES for r in reservations for i in r["Instances"])


def instance_terminated(ec2: Any, instance_id: str) -> bool:
    """Checks whether nothing runs on an instance any more: it is terminated, or EC2 no longer knows it."""
    try:
        reservations = ec2.describe_instances(InstanceIds=[instance_id])["Reservations"]
    except ClientError as error:
        if error.response["Error"]["Code"] == "InvalidInstanceID.NotFound":
            return True
        raise
    return all(i["State"]["Name"] == "terminated" for r in reservations for i in r["Instances"])


def _is_missing(error: ClientError) -> bool:
    """Checks for a group that does not exist: Auto Scaling has no separate error code for it."""
    return error.response["Error"]["Code"] == "ValidationError" and "not found" in str(error).lower()


def _batched(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (names[i : i + size] for i in range(0, len(names), size))
