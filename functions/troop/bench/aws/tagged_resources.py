"""Finds resources with the tags of runs, with the evidence of their origin, and removes those it is asked to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from troop.bench.aws.fleets import GONE, NO_SECURITY_GROUP
from troop.bench.aws.instance_facts import purchase_of, volumes_of
from troop.bench.aws.work_queues import MISSING as NO_QUEUE
from troop.bench.aws.work_queues import WorkQueues
from troop.bench.definition import names
from troop.bench.records.record import Disk, Kind
from troop.bench.removal.inventory import is_named
from troop.bench.removal.teardown import Evidence, Seen
from troop.shared import moments
from troop.shared.tags import CELL_TAG, DEPLOYMENT_TAG, EXPIRES_TAG, FLEET_TAG, PROTECTED_TAG, RUN_TAG

TEMPLATE_TAG = "aws:ec2launchtemplate:id"
"""A tag that EC2 sets when it launches an instance with a template: users cannot set tags with the prefix ``aws:``.
Auto Scaling's tag proves less: attaching an instance to a group sets it, too.
"""

NAME_TAG = "Name"
"""The tag by which the record knows an endpoint, which has no name of its own. It proves nothing."""

TERMINATED_AT_ONCE = 100
"""The most instances in one call."""

_IDS_AT_ONCE = 200
"""The most values of a filter."""

_LIVING = ["pending", "running", "shutting-down", "stopping", "stopped"]
"""The states of instances that still exist; terminated ones stay visible for about an hour."""

_MISSING = frozenset(
    {
        "InvalidInstanceID.NotFound",
        "InvalidVolume.NotFound",
        *NO_SECURITY_GROUP,
        "InvalidLaunchTemplateId.NotFound",
        "InvalidLaunchTemplateName.NotFoundException",
        "InvalidPlacementGroup.Unknown",
        "InvalidVpcEndpoint.NotFound",
        "InvalidVpcEndpointId.NotFound",
        *NO_QUEUE,
    }
)

Refusals = dict[Seen, str]
"""Reasons why resources could not be removed yet, by resource."""


@dataclass(frozen=True)
class TaggedResources:
    """The resources that carry the deployment's tag and the tag of a run, and all members of its groups, because other
    instances can be attached to these. :mod:`troop.bench.removal.inventory` decides whether they belong to the run.

    Each removal is requested once, without waiting. What is already gone counts as requested.
    """

    ec2: Any
    autoscaling: Any
    queues: WorkQueues
    deployment: str

    def find(self, run: str | None = None, cell: str | None = None, *, has_queue: bool = True) -> list[Seen]:
        """Finds all resources with the tags of a run, or of one of its cells; without a run, of any run.

        Args:
            has_queue: whether there can be endpoints and queues, which need further calls.
        """
        tags = {DEPLOYMENT_TAG: self.deployment, RUN_TAG: run, CELL_TAG: cell}
        filters = [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items() if value is not None]
        if run is None:
            filters.append({"Name": "tag-key", "Values": [RUN_TAG]})
        every = [*self._all(filters), *(self._all_of_queues(filters, run) if has_queue else ())]
        # Filters treat * and ? as wildcards.
        return [one for one in every if run in (None, one.run) and cell in (None, one.cell)]

    def remove(self, these: Sequence[Seen]) -> Refusals:
        """Starts the removal of all of them, in this order; a refusal does not stop the others."""
        refused: Refusals = {}
        instances = [one for one in these if one.kind is Kind.INSTANCE]
        for one in these:
            if one.kind is not Kind.INSTANCE:
                self._attempt(one, refused)
            elif one is instances[0]:
                self._terminate(instances, refused)
        return refused

    # Finding

    def _all(self, filters: list[dict[str, Any]]) -> Iterator[Seen]:
        groups = list(self._groups(filters))
        instances = [_instance(one) for one in self._instances(filters) if self._is_of_a_run(one)]
        yield from (*groups, *instances, *self._other_members(groups, {one.id for one in instances}))
        for one in self._tagged(self.ec2, "describe_volumes", "Volumes", filters):
            going, ident = one["State"] in ("deleting", "deleted"), one["VolumeId"]
            held = one["State"] == "in-use" or bool(one.get("Attachments"))
            rate = one.get("VolumeInitializationRate")
            disk = Disk(one["VolumeType"], one["Size"], one.get("Iops"), one.get("Throughput"), rate)
            attached = (to["InstanceId"] for to in one.get("Attachments", []) if to.get("InstanceId"))
            evidence = Evidence(instances=frozenset(attached))
            yield replace(_seen(one, Kind.VOLUME, ident, ident, one["CreateTime"], evidence, going, held), disk=disk)
        for one in self._tagged(self.ec2, "describe_launch_templates", "LaunchTemplates", filters):
            ident, name = one["LaunchTemplateId"], one["LaunchTemplateName"]
            yield _seen(one, Kind.LAUNCH_TEMPLATE, ident, name, one["CreateTime"], Evidence())
        placements = self.ec2.describe_placement_groups(Filters=filters)["PlacementGroups"]  # EC2 has no pages of them
        for one in filter(self._is_of_a_run, placements):
            name, going = one["GroupName"], one["State"] == "deleting"
            if one["State"] != "deleted":
                yield _seen(one, Kind.PLACEMENT_GROUP, name, name, None, Evidence(), going)
        for one in self._tagged(self.ec2, "describe_security_groups", "SecurityGroups", filters):
            evidence = Evidence(vpc=one.get("VpcId"))
            yield _seen(one, Kind.SECURITY_GROUP, one["GroupId"], one["GroupName"], None, evidence)

    def _all_of_queues(self, filters: list[dict[str, Any]], run: str | None) -> Iterator[Seen]:
        """Yields endpoints, and queues. SQS finds none by tags, so their names say which have to be asked for them."""
        for one in self._tagged(self.ec2, "describe_vpc_endpoints", "VpcEndpoints", filters):
            ident, state = one["VpcEndpointId"], one["State"].lower()
            groups = frozenset(group["GroupId"] for group in one.get("Groups", []))
            evidence = Evidence(vpc=one.get("VpcId"), security_groups=groups)
            name = _tags(one).get(NAME_TAG, ident)
            if state != GONE:
                going, born = state == "deleting", one.get("CreationTimestamp")
                seen = _seen(one, Kind.ENDPOINT, ident, name, born, evidence, going)
                yield replace(seen, zones=len(one.get("SubnetIds", [])) or None)
        for name, url in self.queues.listed(names.QUEUES_PREFIX + (f"{run}-" if run else "")):
            if names.QUEUE.fullmatch(name):
                described = {"Tags": [{"Key": key, "Value": value} for key, value in self.queues.tags(url).items()]}
                if self._is_of_a_run(described):
                    yield _seen(described, Kind.QUEUE, url, name, None, Evidence())

    def _tagged(self, client: Any, call: str, field: str, filters: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for page in client.get_paginator(call).paginate(Filters=filters):
            yield from filter(self._is_of_a_run, page[field])

    def _groups(self, filters: list[dict[str, Any]]) -> Iterator[Seen]:
        for one in self._tagged(self.autoscaling, "describe_auto_scaling_groups", "AutoScalingGroups", filters):
            name = one["AutoScalingGroupName"]
            # Only a group that is being deleted has a status.
            going = bool(one.get("Status"))
            evidence = Evidence(members=frozenset(i["InstanceId"] for i in one.get("Instances", [])))
            yield _seen(one, Kind.AUTO_SCALING_GROUP, name, name, one["CreatedTime"], evidence, going)

    def _instances(self, filters: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        living = {"Name": "instance-state-name", "Values": _LIVING}
        for page in self.ec2.get_paginator("describe_instances").paginate(Filters=[*filters, living]):
            for reservation in page["Reservations"]:
                yield from reservation["Instances"]

    def _other_members(self, groups: Iterable[Seen], known: Collection[str]) -> Iterator[Seen]:
        """Yields the members of groups without the tags of the group's run, as if they had them.

        A member that EC2 does not show is new or gone, and was not attached: only a running instance can be.
        """
        group_by_member = {i: one for one in groups if is_named(one) for i in one.evidence.members if i not in known}
        ids = sorted(group_by_member)
        for start in range(0, len(ids), _IDS_AT_ONCE):
            # A call with ids in place of a filter would fail for one that is gone.
            those = {"Name": "instance-id", "Values": ids[start : start + _IDS_AT_ONCE]}
            for raw in self._instances([those]):
                group = group_by_member[raw["InstanceId"]]
                yield replace(_instance(raw), run=group.run, cell=group.cell, role=group.role)

    def _is_of_a_run(self, raw: dict[str, Any]) -> bool:
        tags = _tags(raw)
        return tags.get(DEPLOYMENT_TAG) == self.deployment and bool(tags.get(RUN_TAG))

    # Removing

    def _attempt(self, one: Seen, refused: Refusals) -> None:
        calls: dict[Kind, Callable[[], Any]] = {
            Kind.AUTO_SCALING_GROUP: lambda: self.autoscaling.delete_auto_scaling_group(
                AutoScalingGroupName=one.id, ForceDelete=True
            ),
            Kind.VOLUME: lambda: self.ec2.delete_volume(VolumeId=one.id),
            Kind.LAUNCH_TEMPLATE: lambda: self.ec2.delete_launch_template(LaunchTemplateId=one.id),
            Kind.PLACEMENT_GROUP: lambda: self.ec2.delete_placement_group(GroupName=one.name),
            Kind.QUEUE: lambda: self.queues.remove(one.id),
            Kind.ENDPOINT: lambda: self._delete_endpoint(one.id),
            Kind.SECURITY_GROUP: lambda: self.ec2.delete_security_group(GroupId=one.id),
        }
        try:
            calls[one.kind]()
        except ClientError as error:
            if not _missing(error):
                refused[one] = _words(error)

    def _delete_endpoint(self, ident: str) -> None:
        """Deletes an endpoint.

        Raises:
            ClientError: EC2 refuses it, in an answer that counts as a success.
        """
        answer = self.ec2.delete_vpc_endpoints(VpcEndpointIds=[ident])
        for one in answer.get("Unsuccessful", []):
            raise ClientError({"Error": one["Error"]}, "DeleteVpcEndpoints")

    def _terminate(self, instances: Sequence[Seen], refused: Refusals) -> None:
        for i in range(0, len(instances), TERMINATED_AT_ONCE):
            some = instances[i : i + TERMINATED_AT_ONCE]
            try:
                self.ec2.terminate_instances(InstanceIds=[one.id for one in some])
            except ClientError:  # one bad id fails the whole call
                for one in some:
                    self._terminate_one(one, refused)

    def _terminate_one(self, one: Seen, refused: Refusals) -> None:
        try:
            self.ec2.terminate_instances(InstanceIds=[one.id])
        except ClientError as error:
            if not _missing(error):
                refused[one] = _words(error)


def described(these: Iterable[Seen], refused: Refusals) -> list[str]:
    """Describes resources as text, each with the reason why its removal was refused, if it was."""
    return [f"{one.kind.value} {one.id}" + (f" ({refused[one]})" if one in refused else "") for one in these]


def _seen(
    raw: dict[str, Any],
    kind: Kind,
    ident: str,
    name: str,
    created_at: datetime | None,
    evidence: Evidence,
    going: bool = False,
    held: bool = False,
) -> Seen:
    tags = _tags(raw)
    return Seen(
        tags.get(RUN_TAG, ""),
        tags.get(CELL_TAG, ""),
        kind,
        ident,
        name,
        going,
        held,
        created_at,
        _moment(tags.get(EXPIRES_TAG, "")),
        role=tags.get(FLEET_TAG),
        evidence=replace(evidence, protected=PROTECTED_TAG in tags),
    )


def _instance(one: dict[str, Any]) -> Seen:
    going, ident = one["State"]["Name"] == "shutting-down", one["InstanceId"]
    evidence = Evidence(
        profile=(one.get("IamInstanceProfile") or {}).get("Arn"),
        template=_tags(one).get(TEMPLATE_TAG),
        volumes=volumes_of(one),
        placement_group=one.get("Placement", {}).get("GroupName") or None,
        security_groups=frozenset(group["GroupId"] for group in one.get("SecurityGroups", [])),
    )
    return replace(
        _seen(one, Kind.INSTANCE, ident, ident, one["LaunchTime"], evidence, going),
        instance_type=one.get("InstanceType"),
        zone=one.get("Placement", {}).get("AvailabilityZone"),
        purchase=purchase_of(one),
    )


def _tags(raw: dict[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag.get("Value", "") for tag in raw.get("Tags", [])}


def _missing(error: ClientError) -> bool:
    code = error.response["Error"]["Code"]
    return code in _MISSING or (code == "ValidationError" and "not found" in str(error).lower())


def _words(error: ClientError) -> str:
    return f"{error.response['Error']['Code']}: {error.response['Error'].get('Message', '')[:200]}"


def _moment(text: str) -> datetime | None:
    try:
        return moments.parse(text)
    except ValueError:
        return None
