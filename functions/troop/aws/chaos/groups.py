"""Reads Auto Scaling groups, their instances and what stands around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from botocore.exceptions import ClientError

from troop.chaos.groups import Group, Instance
from troop.tags import PROTECTED_TAG

REFRESH_ENDED = frozenset({"Successful", "Failed", "Cancelled", "RollbackSuccessful", "RollbackFailed"})
GONE_STATES = frozenset({"shutting-down", "terminated"})
LEAVING = "Terminat"
"""How the lifecycle states of an instance begin whose group is terminating it, a hook's wait included."""


def read_groups(autoscaling: Any, names: Sequence[str] | None = None) -> list[Group]:
    """All groups of the account and region, or those of the names that exist.

    Groups that are being deleted are left out: they are as good as gone.
    """
    paginator = autoscaling.get_paginator("describe_auto_scaling_groups")
    if names is None:
        pages: Iterable[Any] = paginator.paginate(PaginationConfig={"PageSize": 100})
    else:
        pages = (p for some in _batched(names, 50) for p in paginator.paginate(AutoScalingGroupNames=list(some)))
    return [_group(raw) for page in pages for raw in page["AutoScalingGroups"] if not raw.get("Status")]


class BadToken(ValueError):
    """A position in the listing of groups that Auto Scaling does not know (any more)."""


def groups_page(autoscaling: Any, limit: int, token: str | None = None) -> tuple[list[Group], str | None]:
    """One call: at most ``limit`` groups, and the token of the page after them; None when there is none.

    Groups that are being deleted are left out, so that a page can be short.

    Raises:
        BadToken: the token is none that Auto Scaling gave, or has expired.
    """
    try:
        answer = autoscaling.describe_auto_scaling_groups(MaxRecords=limit, **({"NextToken": token} if token else {}))
    except ClientError as error:
        if token and error.response["Error"]["Code"] in ("InvalidNextToken", "ValidationError"):
            raise BadToken(token) from None
        raise
    groups = [_group(raw) for raw in answer["AutoScalingGroups"] if not raw.get("Status")]
    return groups, answer.get("NextToken")


def groups_tagged(autoscaling: Any, key: str, value: str, limit: int) -> list[Group]:
    """One call: at most ``limit`` (up to 100) of the groups that carry a tag with a value."""
    filters = [{"Name": f"tag:{key}", "Values": [value]}]
    answer = autoscaling.describe_auto_scaling_groups(Filters=filters, MaxRecords=limit)
    return [_group(raw) for raw in answer["AutoScalingGroups"] if not raw.get("Status")]


def groups_carrying(autoscaling: Any, key: str, value: str) -> list[Group]:
    """All groups that carry a tag with exactly that value: Auto Scaling's filters know case, and no wildcards."""
    pages = autoscaling.get_paginator("describe_auto_scaling_groups").paginate(
        Filters=[{"Name": f"tag:{key}", "Values": [value]}], PaginationConfig={"PageSize": 100}
    )
    return [_group(raw) for page in pages for raw in page["AutoScalingGroups"] if not raw.get("Status")]


def _group(raw: dict[str, Any]) -> Group:
    return Group(
        name=raw["AutoScalingGroupName"],
        desired=raw["DesiredCapacity"],
        instances=tuple(
            Instance(
                instance_id=i["InstanceId"],
                lifecycle=i["LifecycleState"],
                # HEALTHY and Healthy both occur in the service's answers.
                health=i["HealthStatus"].capitalize(),
                zone=i["AvailabilityZone"],
                weight=int(i.get("WeightedCapacity") or 1),
                scale_in_protected=bool(i.get("ProtectedFromScaleIn")),
            )
            for i in raw["Instances"]
        ),
        tags={t["Key"]: t.get("Value", "") for t in raw.get("Tags", [])},
        suspended_processes=frozenset(p["ProcessName"] for p in raw.get("SuspendedProcesses", [])),
        # An SDK that is older than this field leaves it out.
        operator=(raw.get("Operator") or {}).get("Principal", ""),
        **_sources(raw),
    )


def _sources(raw: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """Where the group gets its traffic from: what was attached as a traffic source may be told as such only. The type
    may be missing of anything but a Classic Load Balancer.
    """
    sources = {"elbv2": list(raw.get("TargetGroupARNs", [])), "elb": list(raw.get("LoadBalancerNames", []))}
    for source in raw.get("TrafficSources", []):
        name = source["Identifier"]
        kind = source.get("Type") or ("vpc-lattice" if ":vpc-lattice:" in name else "elbv2")
        sources.setdefault(kind, []).append(name)
    fields = {"target_groups": "elbv2", "load_balancers": "elb", "lattice_groups": "vpc-lattice"}
    return {field: tuple(dict.fromkeys(sources.get(kind, ()))) for field, kind in fields.items()}


def protected_instances(ec2: Any) -> frozenset[str]:
    """Ids of the instances, in the whole account and region, that carry the tag ``troop:protected``."""
    pages = ec2.get_paginator("describe_instances").paginate(
        Filters=[
            {"Name": "tag-key", "Values": [PROTECTED_TAG]},
            {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]},
        ],
        PaginationConfig={"PageSize": 1000},
    )
    return frozenset(i["InstanceId"] for page in pages for r in page["Reservations"] for i in r["Instances"])


def refreshing(autoscaling: Any, names: Iterable[str]) -> frozenset[str]:
    """Which of the groups have an instance refresh under way (or being rolled back), or no longer exist: that is no
    time for chaos either. One call a group.
    """
    busy = set()
    for name in names:
        try:
            # The latest come first; an active one is always the latest.
            answer = autoscaling.describe_instance_refreshes(AutoScalingGroupName=name, MaxRecords=1)
        except ClientError as error:
            if not _is_missing(error):
                raise
            busy.add(name)  # deleted since it was read
            continue
        if any(r["Status"] not in REFRESH_ENDED for r in answer["InstanceRefreshes"]):
            busy.add(name)
    return frozenset(busy)


def alarm_states(cloudwatch: Any, names: Iterable[str]) -> dict[str, str]:
    """State by name of the alarms, metric and composite ones, that exist."""
    states = {}
    for some in _batched(sorted(set(names)), 100):
        pages = cloudwatch.get_paginator("describe_alarms").paginate(
            AlarmNames=list(some), AlarmTypes=["MetricAlarm", "CompositeAlarm"]
        )
        for page in pages:
            for alarm in page.get("MetricAlarms", []) + page.get("CompositeAlarms", []):
                states[alarm["AlarmName"]] = alarm["StateValue"]
    return states


def lifecycle(autoscaling: Any, instance_id: str) -> str | None:
    """An instance's lifecycle state, such as ``InService``; None when it is in no group (any more)."""
    known = autoscaling.describe_auto_scaling_instances(InstanceIds=[instance_id])["AutoScalingInstances"]
    return str(known[0]["LifecycleState"]) if known else None


def instance_gone(ec2: Any, autoscaling: Any, instance_id: str) -> bool:
    """Whether an instance is terminated, on its way there or no longer known.

    One that a lifecycle hook holds back still runs, but its group has given it up: it is on its way.
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


def _is_missing(error: ClientError) -> bool:
    """Auto Scaling has no error code of its own for what does not exist."""
    return error.response["Error"]["Code"] == "ValidationError" and "not found" in str(error).lower()


def _batched(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (names[i : i + size] for i in range(0, len(names), size))
