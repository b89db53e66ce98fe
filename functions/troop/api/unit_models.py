"""What the API says of groups and units, and what it takes to change them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, model_validator
from pydantic_core import PydanticCustomError

from troop import values
from troop.api.models import EventOut, Moment
from troop.aws.dynamo import jsonable
from troop.chaos.changes import MOST_NAMES, Change, to_store, version_of
from troop.chaos.groups import Group
from troop.chaos.guards import protecting_tag
from troop.chaos.policy import LONGEST_ALARM, PARSERS, Sourced
from troop.chaos.units import unit_to_url
from troop.flows.chaos.units import GroupRow, UnitView
from troop.settings import METHODS
from troop.wiring import environment

PROTECTED = Field(
    description="The group's tag on whose account it is never touched, troop:protected or troop:fleet; null when it "
    "has none of them"
)
SOURCES = (
    "item, tag of GROUP, or settings; of min_healthy also lowest_min_healthy of the settings; of takes_part also tag "
    "troop:protected, tag troop:fleet, and malformed"
)

Setting = bool | int | float | str | list[str] | None


class GroupOut(BaseModel):
    """An Auto Scaling group, and what it brings to its unit's policy: other groups of the unit can be stricter."""

    group: str
    unit: str
    id: str = Field(description="The unit as one URL path segment, for GET /groups/{unit}")
    takes_part: bool = Field(description="False when it is protected or malformed, too, whatever its policy says")
    protected: str | None = PROTECTED
    probability: float
    min_healthy: int
    calendar: str
    method: str
    owner: str = Field(description="Whose it is; empty when nobody has said")
    reason: str = Field(description="Why somebody has left it alone; empty when nobody has said")
    until: date | None = Field(description="The last day of the opt-out in force; null when there is none, or no end")
    sources: dict[str, str] = Field(description=f"Where each value comes from: {SOURCES}")
    problems: list[str] = Field(description="Malformed values; while there are any, the unit is skipped")
    desired: int = Field(description="Desired capacity, in the group's own units")
    in_service: int = Field(description="Capacity in service and healthy, in the same units")
    unrecovered: str | None = Field(description="The event after which the unit did not recover: it is out of chaos")
    last_day: date | None = Field(
        description="The local day of the unit's last termination; a claim that came to nothing is none"
    )

    @classmethod
    def of(cls, row: GroupRow) -> GroupOut:
        policy = row.policy
        policy_values: dict[str, Sourced[Any]] = {
            "takes_part": policy.takes_part,
            "probability": policy.probability,
            "min_healthy": policy.min_healthy,
            "calendar": policy.calendar,
            "method": policy.method,
            "owner": policy.owner,
            "reason": policy.reason,
            "until": policy.until,
        }
        return cls.model_validate(
            {
                "group": row.group.name,
                "unit": row.unit,
                "protected": protecting_tag(row.group),
                "id": unit_to_url(row.unit),
                **{key: sourced.value for key, sourced in policy_values.items()},
                "sources": {key: sourced.source for key, sourced in policy_values.items()},
                "problems": list(policy.problems),
                "desired": row.group.desired,
                "in_service": row.group.capacity_in_service,
                "unrecovered": row.state.unrecovered,
                "last_day": row.state.last_day,
            }
        )


class GroupsOut(BaseModel):
    """A page of groups, in Auto Scaling's order."""

    groups: list[GroupOut]
    cursor: str | None = Field(description="Give it back to get the next page; null when there is none")


class SourcedOut(BaseModel):
    """A value in force, and where it comes from."""

    value: Setting
    source: str = Field(description=SOURCES)


class MemberOut(BaseModel):
    """A group of a unit."""

    group: str
    desired: int = Field(description="Desired capacity, in the group's own units")
    in_service: int = Field(description="Capacity in service and healthy, in the same units")
    protected: str | None = PROTECTED

    @classmethod
    def of(cls, group: Group) -> MemberOut:
        return cls(
            group=group.name,
            desired=group.desired,
            in_service=group.capacity_in_service,
            protected=protecting_tag(group),
        )


class DecisionOut(BaseModel):
    """What the last tick decided about the unit."""

    tick: Moment
    reason: str
    detail: str


class ChangedOut(BaseModel):
    """A value before and after; null when it was, or is, not set."""

    old: JsonValue
    new: JsonValue


class ChangeOut(BaseModel):
    """A change, and who made it."""

    at: Moment
    caller: str = Field(description="The ARN that IAM knows the caller by")
    changes: dict[str, ChangedOut]

    @classmethod
    def of(cls, change: Change) -> ChangeOut:
        changed = {k: ChangedOut(old=jsonable(old), new=jsonable(new)) for k, (old, new) in change.values.items()}
        return cls(at=change.at, caller=change.caller, changes=changed)


class UnitOut(BaseModel):
    """A unit from all sides."""

    unit: str
    id: str = Field(description="The unit as one URL path segment")
    known: bool = Field(description="False when nothing but its item is known: ahead of its group, or misspelled")
    groups: list[MemberOut] = Field(description="Its groups, at most 100")
    policy: dict[str, SourcedOut] = Field(description="What holds today: the strictest of its groups, by key")
    problems: list[str] = Field(description="Malformed values; while there are any, the unit is skipped")
    missing_alarms: list[str] | None = Field(
        description="Stop alarms of which there is none: until there is, the unit is left alone; null when CloudWatch "
        "does not tell"
    )
    version: int = Field(description="Of the item; counts changes through this API, not those by hand")
    item: dict[str, JsonValue] = Field(description="Its item in the table GroupTags; empty when there is none")
    unrecovered: str | None = Field(description="The event after which it did not recover: it is out of chaos")
    last_day: date | None = Field(
        description="The local day of its last termination; a claim that came to nothing is none"
    )
    next_possible: Moment | None = Field(
        description="From when on neither calendar nor policy stands in the way of a termination; null when somebody "
        "must do something first. Tells nothing of the roll, of the group's health, or of the switch."
    )
    decision: DecisionOut | None
    events: list[EventOut] = Field(description="The last 5, newest first")
    changes: list[ChangeOut] = Field(description="The last 5 through this API, newest first")

    @classmethod
    def of(cls, view: UnitView, missing_alarms: list[str] | None) -> UnitOut:
        decided = view.decision
        return cls(
            unit=view.unit,
            id=unit_to_url(view.unit),
            known=view.known,
            groups=[MemberOut.of(group) for group in view.groups],
            policy={key: SourcedOut(**sourced) for key, sourced in view.policy.as_dict().items()},
            problems=list(view.policy.problems),
            missing_alarms=missing_alarms,
            version=version_of(view.item),
            item=jsonable(view.item),
            unrecovered=view.state.unrecovered,
            last_day=view.state.last_day,
            next_possible=view.next_possible,
            decision=DecisionOut(tick=decided.tick, reason=decided.reason, detail=decided.detail) if decided else None,
            events=[EventOut.of(event) for event in view.events],
            changes=[ChangeOut.of(change) for change in view.changes],
        )


def refuse_unknown(raw: Any, model: type[BaseModel]) -> Any:
    """Refuses keys that a model does not have, with the nearest one that it has."""
    known = tuple(model.model_fields)
    for key in raw if isinstance(raw, Mapping) else ():
        if key not in known:
            ctx = {"key": str(key)[:80], "spelling": values.spelling(str(key)[:80], known)}
            raise PydanticCustomError("unknown_key", "{key} is unknown, must be {spelling}", ctx)
    return raw


def _as_stored(key: str) -> BeforeValidator:
    """Parses with the core's own parser; null stays, for it removes the key."""

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


class UnitPatch(BaseModel):
    """What to change of a unit. A key that is left out stays; null removes it, so that tags and settings hold again."""

    model_config = ConfigDict(extra="forbid")

    opt_out: Annotated[bool | None, _as_stored("opt_out")] = Field(None, description="Leave the unit alone")
    opt_in: Annotated[bool | None, _as_stored("opt_in")] = Field(
        None, description="Needed in a deployment that is opt-in"
    )
    probability: Annotated[Annotated[float, Field(ge=0, le=1)] | None, _as_stored("probability")] = Field(
        None, description="Of a termination, a business day"
    )
    min_healthy: Annotated[Annotated[int, Field(ge=1, le=10_000)] | None, _as_stored("min_healthy")] = Field(
        None, description="Least healthy instances in service for a group to take part"
    )
    min_days_between: Annotated[Annotated[int, Field(ge=0, le=250)] | None, _as_stored("min_days_between")] = Field(
        None, description="Business days between two terminations"
    )
    until: Annotated[str | None, _as_stored("until")] = Field(
        None,
        description="Last day of the opt-out, YYYY-MM-DD; with opt_out true, none that is over",
        json_schema_extra={"format": "date"},
    )
    reason: Annotated[_Text | None, _as_stored("reason")] = Field(None, description="Shown with the decision")
    owner: Annotated[_Text | None, _as_stored("owner")] = Field(None, description="Whom to ask")
    stop_alarms: Annotated[Annotated[list[_Name], Field(max_length=MOST_NAMES)] | None, _as_stored("stop_alarms")] = (
        Field(None, description="CloudWatch alarms that must be OK")
    )
    calendar: Annotated[_Text | None, _as_stored("calendar")] = Field(
        None, description="One of the settings' calendars"
    )
    method: Annotated[Literal["crash", "drain"] | None, _as_stored("method")] = Field(
        None, description="Terminate at once, or through lifecycle hooks and load balancers"
    )
    unrecovered: Literal[False] = Field(
        False, description="Given as false, it puts a unit that did not recover back into chaos"
    )
    version: int | None = Field(
        None, ge=0, lt=2**53, description="The version this is meant for: 409 when the unit has another one"
    )

    @model_validator(mode="before")
    @classmethod
    def _known(cls, raw: Any) -> Any:
        return refuse_unknown(raw, cls)

    @property
    def changes(self) -> dict[str, Any]:
        """The values to store by key, None to remove: those that were given."""
        return {key: getattr(self, key) for key in PARSERS if key in self.model_fields_set}

    @property
    def put_back(self) -> bool:
        return "unrecovered" in self.model_fields_set


assert set(METHODS) == {"crash", "drain"}
assert set(PARSERS) <= set(UnitPatch.model_fields)
