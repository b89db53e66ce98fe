"""Defines the API's answers about groups and units, and the requests that change them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field, JsonValue
from pydantic_core import PydanticCustomError

from troop.chaos.api.event_models import EventOut
from troop.chaos.changes import Change, to_store, version_of
from troop.chaos.flows.units import GroupRow, UnitView
from troop.chaos.groups import Group
from troop.chaos.guards import protecting_tag
from troop.chaos.inside import Fitness
from troop.chaos.outlook import TAKING_PART
from troop.chaos.policy import LONGEST_ALARM, LONGEST_RECOVERY, MOST_ALARMS, PARSERS
from troop.chaos.units import unit_to_url
from troop.faults import FAULTS, LASTING
from troop.shared import moments, values
from troop.shared.api.models import In, Listing, Moment, Out, listed
from troop.shared.aws.dynamo import jsonable
from troop.shared.choice import LONGEST
from troop.shared.malformed import Read
from troop.shared.wiring import environment

LEFT_BY = Field(
    description="The event because of which the unit has left chaos, until its owner returns it; null while it has not"
)
LEFT_FOR = Field(
    description="Why it has left: unrecovered, or broken if its hypothesis was; null while it has not left"
)
PROTECTED = Field(
    description="The group's tag that protects it from Troop, troop:protected or troop:fleet; null without such a tag"
)
SOURCES = (
    "item, tag of GROUP, or settings; for min_healthy also lowest_min_healthy of the settings; for takes_part also "
    "tag troop:protected, tag troop:fleet, and malformed"
)

Setting = bool | int | float | str | list[str] | None

_SHOWN = ("takes_part", "probability", "min_healthy", "calendar", "method", "owner", "reason", "until")
"""The keys of a policy that listings of groups show."""


class OutlookOut(Out):
    """The state of a unit, from all its groups. Command, page and dashboards show this."""

    state: str = Field(
        description=f"{TAKING_PART}, or in words why it does not take part, such as opted out or too small"
    )
    takes_part: bool = Field(description="Whether only a reason that passes by itself can prevent a hit")
    reason: str | None = Field(
        description="What prevents a hit now: a reason of a decision, or no-groups; null if only the roll can, "
        "or what only a tick reads: SSM Change Calendars, instance refreshes, alarms, load balancers, tags of "
        "instances"
    )
    why: str = Field(description='The reason with its numbers, in words; "" without one')
    next_possible: Moment | None = Field(
        description="The earliest time at which calendar and policy allow a hit; null if a person "
        "must act first, or while a reason without a known end prevents one. Ignores the roll."
    )


class GroupOut(BaseModel):
    """An Auto Scaling group, and its part of the unit's policy: other groups of the unit can be stricter."""

    group: str
    unit: str
    id: str = Field(description="The unit as one URL path segment, for GET /groups/{unit}")
    takes_part: bool = Field(description="Also false when it is protected or malformed, whatever its policy says")
    protected: str | None = PROTECTED
    probability: float
    min_healthy: int
    calendar: str
    method: str = Field(description="The faults that may hit, of which the roll of the day chooses one")
    owner: str = Field(description="Its owner; empty if not set")
    reason: str = Field(description="The reason for its opt-out; empty if not set")
    until: date | None = Field(
        description="The last day of the current opt-out; null without an opt-out or without an end"
    )
    sources: dict[str, str] = Field(description=f"Where each value comes from: {SOURCES}")
    problems: list[str] = Field(description="Malformed values; while there are any, the unit is skipped")
    desired: int = Field(description="Desired capacity, in the group's own units")
    in_service: int = Field(description="Capacity in service and healthy, in the same units")
    unrecovered: str | None = LEFT_BY
    left_for: str | None = LEFT_FOR
    last_day: date | None = Field(description="The local day of the unit's last hit; abandoned claims do not count")
    outlook: OutlookOut = Field(description="The state of the unit, the same for all its groups")

    @classmethod
    def from_row(cls, row: GroupRow) -> GroupOut:
        policy = row.policy.as_dict()
        shown = {key: policy[key] for key in _SHOWN}
        return cls.model_validate(
            {
                "group": row.group.name,
                "unit": row.unit,
                "protected": protecting_tag(row.group),
                "id": unit_to_url(row.unit),
                **{key: sourced["value"] for key, sourced in shown.items()},
                "sources": {key: sourced["source"] for key, sourced in shown.items()},
                "problems": list(row.policy.problems),
                "desired": row.group.desired,
                "in_service": row.group.capacity_in_service,
                "unrecovered": row.state.unrecovered,
                "left_for": row.state.left_for,
                "last_day": row.state.last_day,
                "outlook": OutlookOut.model_validate(row.outlook),
            }
        )


class GroupsOut(BaseModel):
    """A page of groups, in the order of Auto Scaling."""

    groups: list[GroupOut]
    cursor: str | None = Field(description="Pass it to get the next page; null on the last page")


class SourcedOut(BaseModel):
    """A value in force, and its source."""

    value: Setting
    source: str = Field(description=SOURCES)


class InsideOut(Out):
    """Whether lasting faults can hit a group."""

    consent: str = Field(
        description="Its tag troop:inside, if that consents and reaches new instances: yes or install; empty otherwise"
    )
    fit: int | None = Field(
        description="How many of its instances, at most 200 of a unit, may have a lasting fault now: in service and "
        "not protected, with the tag, online in Systems Manager, without an earlier one; null if AWS does not answer"
    )
    why: str = Field(description="Why none may, in words that follow the group's name; empty otherwise")


class MemberOut(BaseModel):
    """A group of a unit."""

    group: str
    desired: int = Field(description="Desired capacity, in the group's own units")
    in_service: int = Field(description="Capacity in service and healthy, in the same units")
    protected: str | None = PROTECTED
    inside: InsideOut | None = Field(
        description="Whether lasting faults can hit it; null while troop:inside_instances is false"
    )

    @classmethod
    def from_group(cls, group: Group, fitness: Fitness | None) -> MemberOut:
        return cls(
            group=group.name,
            desired=group.desired,
            in_service=group.capacity_in_service,
            protected=protecting_tag(group),
            inside=InsideOut.model_validate(fitness) if fitness else None,
        )


class DecisionOut(BaseModel):
    """The last tick's decision about the unit."""

    tick: Moment
    reason: str
    detail: str


class ChangedOut(BaseModel):
    """A value before and after a change; null if it was, or is, not set."""

    old: JsonValue
    new: JsonValue


class ChangeOut(BaseModel):
    """A change and its author."""

    unit: str | None = Field(description="The unit whose policy changed; null for the switch")
    at: Moment
    caller: str = Field(description="The caller's ARN in IAM")
    changes: dict[str, ChangedOut]

    @classmethod
    def from_change(cls, change: Change) -> ChangeOut:
        changed = {k: ChangedOut(old=jsonable(old), new=jsonable(new)) for k, (old, new) in change.values.items()}
        return cls(unit=change.unit, at=change.at, caller=change.caller, changes=changed)


class UnitOut(Listing):
    """A unit with its groups, policy, state, events and changes."""

    unit: str
    id: str = Field(description="The unit as one URL path segment")
    known: bool = Field(
        description="False if only its item is known: its group does not exist yet, or the name is misspelled"
    )
    groups: list[MemberOut] = Field(description="Its groups, at most 100")
    policy: dict[str, SourcedOut] = Field(description="Today's policy by key: the strictest of its groups")
    problems: list[str] = Field(description="Malformed values; while there are any, the unit is skipped")
    missing_alarms: list[str] | None = Field(
        description="Alarms of the policy that do not exist: the unit is skipped until they do; null if CloudWatch "
        "does not answer"
    )
    version: int = Field(description="The item's version: counts changes through this API, not manual ones")
    item: dict[str, JsonValue] = Field(description="Its item in the table GroupTags; empty without one")
    unrecovered: str | None = LEFT_BY
    left_for: str | None = LEFT_FOR
    last_day: date | None = Field(description="The local day of its last hit; abandoned claims do not count")
    next_possible: Moment | None = Field(description="As in outlook")
    outlook: OutlookOut
    decision: DecisionOut | None
    events: list[EventOut] = Field(description="The last 5, newest first")
    changes: list[ChangeOut] = Field(description="The last 5 through this API, newest first")

    @classmethod
    def from_view(
        cls, view: UnitView, missing_alarms: list[str] | None, fitness: Mapping[str, Fitness] | None
    ) -> UnitOut:
        decisions, wrong = listed(
            Read((view.decision,) if view.decision else (), view.malformed),
            lambda one: DecisionOut(tick=one.tick, reason=one.reason, detail=one.detail),
            lambda one: f"Decisions: {one.unit}, {moments.iso(one.tick)}",
        )
        events, wrong_events = listed(Read(view.events), EventOut.from_event, lambda one: f"Events: {one.event_id}")
        changes, wrong_changes = listed(
            Read(view.changes), ChangeOut.from_change, lambda one: f"Changes: {one.subject}, {moments.iso(one.at)}"
        )
        return cls(
            unit=view.unit,
            id=unit_to_url(view.unit),
            known=view.known,
            groups=[MemberOut.from_group(group, (fitness or {}).get(group.name)) for group in view.groups],
            policy={key: SourcedOut(**sourced) for key, sourced in view.policy.as_dict().items()},
            problems=list(view.policy.problems),
            missing_alarms=missing_alarms,
            version=version_of(view.item),
            item=jsonable(view.item),
            unrecovered=view.state.unrecovered,
            left_for=view.state.left_for,
            last_day=view.state.last_day,
            next_possible=view.outlook.next_possible,
            outlook=OutlookOut.model_validate(view.outlook),
            decision=next(iter(decisions), None),
            events=events,
            changes=changes,
            malformed=[*wrong, *wrong_events, *wrong_changes],
        )


def _as_stored(key: str) -> BeforeValidator:
    """Returns a validator that parses with the core's own parser. Keeps null, which removes the key."""

    def parse(value: Any) -> Any:
        if value is None:
            return None
        try:
            stored = to_store(key, value)
            if key == "calendar" and stored not in (known := environment.settings().calendars):
                raise values.BadValue("one of " + ", ".join(known))
        except values.BadValue as error:
            ctx = {"value": repr(value)[:80], "allowed": str(error)}
            raise PydanticCustomError("policy_value", "is {value}, must be {allowed}", ctx) from None
        return stored

    return BeforeValidator(parse)


_Text = Annotated[str, Field(min_length=1, max_length=256, pattern=r"\S")]
_Name = Annotated[str, Field(min_length=1, max_length=LONGEST_ALARM, pattern=r"\S")]
_Alarms = Annotated[list[_Name], Field(max_length=MOST_ALARMS)]
_Choices = Annotated[str, Field(min_length=1, max_length=LONGEST)]


METHODS = "; ".join(
    [*(f"{fault.name}: {fault.summary}" for fault in FAULTS), *(f"{one.usage}: {one.summary}" for one in LASTING)]
)
"""All faults, for descriptions; lasting ones with their parameters."""


class UnitPatch(In):
    """Changes of a unit. An omitted key keeps its value; null removes it, so that tags and settings apply again."""

    opt_out: Annotated[bool | None, _as_stored("opt_out")] = Field(
        None, description="True excludes the unit from chaos"
    )
    opt_in: Annotated[bool | None, _as_stored("opt_in")] = Field(
        None, description="True includes the unit; required in an opt-in deployment"
    )
    probability: Annotated[Annotated[float, Field(ge=0, le=1)] | None, _as_stored("probability")] = Field(
        None, description="Probability of a hit per business day"
    )
    min_healthy: Annotated[Annotated[int, Field(ge=1, le=10_000)] | None, _as_stored("min_healthy")] = Field(
        None, description="Fewest healthy instances in service with which a group takes part"
    )
    min_days_between: Annotated[Annotated[int, Field(ge=0, le=250)] | None, _as_stored("min_days_between")] = Field(
        None, description="Fewest business days between two hits"
    )
    until: Annotated[str | None, _as_stored("until")] = Field(
        None,
        description="Last day of the opt-out, YYYY-MM-DD; with opt_out true, not a past day",
        json_schema_extra={"format": "date"},
    )
    reason: Annotated[_Text | None, _as_stored("reason")] = Field(None, description="Reason shown with the decision")
    owner: Annotated[_Text | None, _as_stored("owner")] = Field(None, description="Owner of the unit")
    stop_alarms: Annotated[_Alarms | None, _as_stored("stop_alarms")] = Field(
        None,
        description="CloudWatch alarms that must be OK for a hit, and that stop chaos for the unit as soon as "
        "one goes off",
    )
    success_alarms: Annotated[_Alarms | None, _as_stored("success_alarms")] = Field(
        None,
        description="Like stop_alarms. Besides, a hit is BROKEN if one goes off until its verdict",
    )
    recovery_within: Annotated[
        Annotated[int, Field(ge=1, le=LONGEST_RECOVERY)] | None, _as_stored("recovery_within")
    ] = Field(None, description="Seconds in which the unit must recover; a hit is BROKEN if it takes longer")
    calendar: Annotated[_Text | None, _as_stored("calendar")] = Field(
        None, description="One of the settings' calendars"
    )
    method: Annotated[_Choices | None, _as_stored("method")] = Field(
        None,
        description="One or more faults with commas between them, of which the roll of the day chooses one. Parameters "
        f"follow the name, as in latency delay=200 seconds=60. {METHODS}",
    )
    under_load: Annotated[bool | None, _as_stored("under_load")] = Field(
        None, description="True lets benchmarks request hits while they load the unit, if troop:under_load is true"
    )
    unrecovered: Literal[False] = Field(
        False, description="If sent as false, returns a unit that did not recover, or was broken, to chaos"
    )
    version: int | None = Field(
        None, ge=0, lt=2**53, description="The version that this change expects: 409 if the unit has another one"
    )

    @property
    def changes(self) -> dict[str, Any]:
        """The values to store by key, None to remove; only the keys that were sent."""
        return {key: getattr(self, key) for key in PARSERS if key in self.model_fields_set}

    @property
    def put_back(self) -> bool:
        return "unrecovered" in self.model_fields_set


assert set(PARSERS) <= set(UnitPatch.model_fields)
