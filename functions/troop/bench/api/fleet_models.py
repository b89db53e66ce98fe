"""Defines the requests and answers of standing fleets."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field, JsonValue, StrictInt, model_validator

from troop.bench.admission.admission import MOST_FILES
from troop.bench.api import response_size
from troop.bench.api.cost_models import CostOut, Rounded, RunKey
from troop.bench.api.run_answers import name_of_run
from troop.bench.api.run_models import RecordOut, ResourceOut, listed_resources
from troop.bench.api.work_models import (
    RepairOut,
    RoleHealthOut,
    WithheldOut,
    WorkOut,
    health_of,
    repaired,
    repairs_of,
    withheld_of,
    work_of,
)
from troop.bench.definition.living import Scale
from troop.bench.definition.standing import ITSELF, MOST_OF_A_ROLE, Counts, GroupStatus, Place, Standing, counted
from troop.bench.flows.fleet_service import FleetDetail
from troop.bench.records.record import Run
from troop.shared.api.models import In, Listing, Moment, Out, UtcMoment, answered

MOST_REFUSALS = 3
"""The number of refusals listed for each role in one answer: the newest ones."""


class EstimateFleetIn(In):
    """A standing fleet to estimate: the same as to start it, without the key."""

    definition: dict[str, JsonValue] = Field(
        description="The fleet's file as a document, by the schema fleets/fleet.schema.json"
    )
    set: dict[str, JsonValue] = Field(
        {}, max_length=100, description="Changes to the file: values by keys such as fleets.workers.count"
    )
    files: dict[str, str] = Field(
        {},
        max_length=MOST_FILES,
        description="The files beside the fleet's file, by name, in Base64; at most 1 MiB in all, before encoding",
    )


class StartFleetIn(EstimateFleetIn):
    """A standing fleet to start."""

    key: RunKey


class ChangeFleetIn(In):
    """A new size or a later end for a standing fleet: one of both."""

    count: StrictInt | None = Field(None, ge=0, le=MOST_OF_A_ROLE, description="The new number of nodes of the role")
    role: str | None = Field(None, max_length=64, description="The role; null if the fleet has only one")
    expires_at: UtcMoment | None = Field(None, description="The new end, which must not be before the present one")

    @model_validator(mode="after")
    def _one(self) -> ChangeFleetIn:
        if (self.count is None) is (self.expires_at is None):
            raise ValueError("must have count or expires_at, and not both")
        return self


class ScaleOut(BaseModel):
    """How the nodes of a role follow the backlog: its tasks that wait or are in work."""

    backlog_per_node: int = Field(description="Tasks for each node")
    min: int
    max: int
    idle_after: int = Field(description="Seconds for which fewer nodes must be enough before some go")


class RoleOut(BaseModel):
    """The nodes of one role."""

    role: str
    desired: int = Field(description="The desired number of nodes")
    in_service: int = Field(description="Nodes that are healthy and in service in the role's Auto Scaling group")
    starting: int
    leaving: int = Field(description="Nodes that are being removed, or are unhealthy and will be")
    ready: int = Field(description="Nodes in service whose setup succeeded")
    failed: int = Field(description="Nodes in service whose setup failed")
    spot: int = Field(description="Nodes in service that are spot instances")
    on_demand: int = Field(description="Nodes in service that are on demand")
    backup: bool = Field(
        description="Whether missing spot nodes are launched on demand; then the role has more nodes than desired "
        "while spot nodes replace them"
    )
    max_price: float | None = Field(description="The most that a spot node may cost an hour; null for no such limit")
    resizable: bool = Field(description="Whether its number of nodes may change, by the fleet's file")
    scale: ScaleOut | None = Field(description="How its number of nodes follows the backlog; null if it does not")


class FleetOut(RecordOut):
    """A standing fleet."""

    fleet: str = Field(description="Its id, for GET /fleets/{fleet}")
    roles: list[RoleOut]
    seen_at: Moment | None = Field(description="When its nodes were last counted; null before the first count")
    scaled_at: Moment | None = Field(description="When its size was last changed; null if never")
    scaled_by: str | None = Field(
        description=f"The ARN of the caller that last changed its size; {ITSELF} if it followed its backlog"
    )
    ready_within: int | None = Field(
        description="Seconds within which nodes should be ready: the longest boot_timeout, setup_timeout, "
        "and 5 minutes for launching; null for a fleet of an older version"
    )
    health: list[RoleHealthOut] = Field(
        description="The health of roles whose nodes report, at the last check; of their checks, some that do not pass"
    )
    work: WorkOut | None = Field(description="Its tasks at the last check; null without a queue, and before the first")
    repaired: int = Field(description="The repairs of its nodes in the hour before the last check")
    withheld: list[WithheldOut] = Field(description="Roles that have fewer nodes than their work needs")

    @classmethod
    def from_run(cls, run: Run, standing: Standing) -> FleetOut:
        return cls(
            **RecordOut.model_validate(run).model_dump(),
            fleet=run.run,
            roles=_roles(standing, {} if run.ended_at else standing.seen),
            seen_at=standing.seen_at,
            scaled_at=standing.scaled_at,
            scaled_by=standing.scaled_by,
            ready_within=standing.ready_within,
            health=health_of(standing, short=True),
            work=work_of(standing),
            repaired=repaired(standing),
            withheld=withheld_of(standing.withheld),
        )


class FleetsOut(Listing):
    """A page of fleets, newest first."""

    fleets: list[FleetOut]
    cursor: str | None = Field(description="Pass it to get the next page; null on the last page")


class FleetNodeOut(BaseModel):
    """A node of a standing fleet."""

    id: str = Field(description="The id of its instance")
    role: str
    zone: str
    instance_type: str
    purchase: str = Field(description="How it was bought: spot or on-demand")
    place: Place = Field(description="Its state in the Auto Scaling group")
    ready: bool = Field(description="Whether its setup succeeded")
    problem: str | None = Field(description="Why its setup failed")


class BoughtOut(Out):
    """What was bought for a role in one way."""

    role: str
    purchase: str = Field(description="spot or on-demand")
    nodes: int = Field(description="The number of nodes so far, including those that are gone")
    hours: Rounded = Field(description="Their billed node-hours so far")


class FleetDetailOut(Listing):
    """All that is known about a standing fleet."""

    fleet: FleetOut = Field(description="The fleet; its nodes, if any, were counted for this answer")
    nodes: list[FleetNodeOut] = Field(
        description="The current nodes. If not all fit into the answer, nodes that are not ready come first"
    )
    nodes_left_out: int = Field(description="The number of nodes that do not fit into the answer")
    refusals: list[str] = Field(description="Why missing nodes could not be launched")
    resources: list[ResourceOut] = Field(
        description="The resources it has created so far, including removed nodes; the first "
        f"{response_size.MOST_RESOURCES:,}, existing ones before removed ones"
    )
    resources_created: int = Field(description="The number of resources it has created in all")
    resources_left: int = Field(description="The number of these that may still exist")
    cost_so_far: CostOut | None = Field(description="The cost so far of a fleet that has not ended; null if unknown")
    bought: list[BoughtOut] = Field(description="All of its nodes so far, by role and purchase; empty if unknown")
    health: list[RoleHealthOut] = Field(description="The health of roles whose nodes report, at the last check")
    work: WorkOut | None = Field(description="Its tasks at the last check; null without a queue, and before the first")
    repairs: list[RepairOut] = Field(description="The latest repairs of its nodes, newest first")
    withheld: list[WithheldOut] = Field(description="Roles that have fewer nodes than their work needs")

    @classmethod
    def from_view(cls, view: FleetDetail, standing: Standing) -> FleetDetailOut:
        fleet = answered(view.run, lambda run: FleetOut.from_run(run, standing), name_of_run)
        resources, malformed = listed_resources(view.resources, view.malformed)
        if view.groups:
            now = {"roles": _roles(standing, counted(view.groups, view.nodes)), "seen_at": view.at}
            fleet = fleet.model_copy(update=now)
        created = [resource for resource in view.resources if resource.created_at]
        answer = cls(
            fleet=fleet,
            nodes=[],
            nodes_left_out=0,
            refusals=[
                f"{role}: {refusal}" for role, refusals in view.refusals.items() for refusal in refusals[:MOST_REFUSALS]
            ],
            resources=resources,
            malformed=malformed,
            resources_created=len(created),
            resources_left=sum(resource.gone_at is None for resource in created),
            cost_so_far=None if view.cost_so_far is None else CostOut.model_validate(view.cost_so_far),
            bought=[BoughtOut.model_validate(one) for one in view.bought],
            health=health_of(standing),
            work=work_of(standing, view.cost_so_far or view.run.cost),
            repairs=repairs_of(standing),
            withheld=withheld_of(standing.withheld),
        )
        nodes = [node for group in view.groups for node in _nodes(group, view)]
        listed = _fitting(nodes, response_size.LARGEST - response_size.size(answer))
        return answer.model_copy(update={"nodes": listed, "nodes_left_out": len(nodes) - len(listed)})


def _roles(standing: Standing, counts: Any) -> list[RoleOut]:
    counts_by_role = {role: counts.get(role, Counts()) for role in standing.desired}
    return [
        RoleOut(
            role=role,
            desired=standing.desired[role],
            in_service=counts.in_service,
            starting=counts.starting,
            leaving=counts.leaving,
            ready=counts.ready,
            failed=counts.failed,
            spot=counts.spot,
            on_demand=counts.on_demand,
            backup=role in standing.backups,
            max_price=None if (most := standing.max_prices.get(role)) is None else float(most),
            resizable=role not in standing.fixed,
            scale=_scale(standing.scales.get(role)),
        )
        for role, counts in counts_by_role.items()
    ]


def _scale(scale: Scale | None) -> ScaleOut | None:
    if scale is None:
        return None
    return ScaleOut(
        backlog_per_node=scale.backlog_per_node, min=scale.least, max=scale.most, idle_after=scale.idle_after
    )


def _fitting(nodes: list[FleetNodeOut], room: int) -> list[FleetNodeOut]:
    """Returns as many nodes as fit into the room (in bytes), those that are not ready first if not all fit."""
    sizes = [node.model_dump(mode="json") for node in nodes]
    if all(response_size.within(sizes, room)):
        return nodes
    nodes = sorted(nodes, key=lambda node: node.ready)
    fits = response_size.within([node.model_dump(mode="json") for node in nodes], room)
    return [node for node, fit in zip(nodes, fits, strict=True) if fit]


def _nodes(group: GroupStatus, view: FleetDetail) -> list[FleetNodeOut]:
    return [
        FleetNodeOut(
            id=member.id,
            role=group.role,
            zone=member.zone,
            instance_type=member.instance_type,
            purchase=group.purchase,
            place=member.place,
            ready=(node := view.nodes.get(member.id)) is not None and node.error is None,
            problem=node.error if node else None,
        )
        for member in group.members
    ]
