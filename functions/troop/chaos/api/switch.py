"""Serves the routes of the switch: ``GET /switch`` and ``PATCH /switch``."""

from __future__ import annotations

from typing import Annotated, Any, Self

from aws_lambda_powertools.event_handler.exceptions import ServiceError
from aws_lambda_powertools.event_handler.openapi.params import Body
from aws_lambda_powertools.event_handler.router import APIGatewayRouter
from pydantic import BaseModel, Field, StrictBool, model_validator
from pydantic_core import PydanticCustomError

from troop.chaos.api.authors import author_of
from troop.chaos.flows.editor import ConflictError, EarlierTablesError, SwitchView
from troop.chaos.wiring import services
from troop.shared.api.errors import WITHOUT_BENCHMARKS, answers, check_benchmarks
from troop.shared.api.models import In, Moment, Out
from troop.shared.state_keys import BENCH_SWITCHES, REAPER_OFF, SCHEDULES_OFF

router = APIGatewayRouter()  # type: ignore[no-untyped-call]


TURNED = ("halted", "leashed", *BENCH_SWITCHES)


class SelfHaltOut(Out):
    """The halt that the deployment has given itself, because too many units were broken within an hour."""

    at: Moment
    why: str = Field(description="The broken units, and the alarms that went off")
    events: list[str] = Field(description="The ids of the events that led to it")


class HaltOut(Out):
    """The halt by people. Later changes of the switch keep it."""

    at: Moment | None = Field(description="null after a manual halt by the runbook")
    by: str = Field(description="The caller's ARN in IAM")
    reason: str


class SwitchOut(BaseModel):
    """The switch of the whole deployment."""

    halted: bool = Field(
        description="Ticks decide no termination, and claims are not carried out: people have halted the deployment, "
        "or it has halted itself"
    )
    leashed: bool = Field(description="Ticks decide and record, but hit nothing")
    reaper_off: bool = Field(
        description="The reaper of benchmarks reports leftovers but removes nothing; chaos is not affected"
    )
    schedules_off: bool = Field(description="Schedules start no runs of benchmarks; chaos is not affected")
    changed_at: Moment | None = Field(
        description="null while the settings apply, and after a manual halt by the runbook"
    )
    changed_by: str = Field(description="The caller's ARN in IAM")
    reason: str = Field(description="Of the last change")
    halt: HaltOut | None = Field(description="Who has halted it, when and why; null if people have not")
    halt_id: str | None = Field(
        description="The id of a halt of many deployments; null if people have not halted this one, or this one alone"
    )
    itself: SelfHaltOut | None = Field(
        description="The halt that the deployment has given itself; null without one. To resume ends it, too"
    )

    @classmethod
    def from_view(cls, view: SwitchView) -> SwitchOut:
        return cls(
            halted=view.switch.halted,
            leashed=view.switch.leashed,
            reaper_off=view.off[REAPER_OFF],
            schedules_off=view.off[SCHEDULES_OFF],
            changed_at=view.changed_at,
            changed_by=view.changed_by,
            reason=view.reason,
            halt=HaltOut.model_validate(view.halt) if view.halt else None,
            halt_id=view.halt_id,
            itself=SelfHaltOut.model_validate(view.switch.itself) if view.switch.itself else None,
        )


class SwitchPatch(In):
    """Changes of the switch. An omitted key keeps its value, except the reason, which belongs to each change."""

    halted: StrictBool = Field(False, description="true halts, false resumes")
    leashed: StrictBool = Field(False, description="true leashes, false unleashes")
    reaper_off: StrictBool = Field(
        False, description="true switches the reaper of benchmarks off, false switches it on"
    )
    schedules_off: StrictBool = Field(
        False, description="true stops all schedules of benchmarks, false lets them start"
    )
    reason: str | None = Field(None, max_length=256, description="Why; null or omitted for no reason")
    halt_id: str | None = Field(
        None,
        pattern=r"^[a-z0-9-]{8,64}$",
        description="With halted: the id of a halt of many deployments. To halt then leaves any present halt as it is, "
        "and to resume ends only the halt with this id",
    )

    @model_validator(mode="after")
    def _check_halt(self) -> Self:
        if self.halt_id is not None and {*TURNED} & self.model_fields_set != {"halted"}:
            raise PydanticCustomError("policy_value", "must have halted beside halt_id, and no other key of the switch")
        return self

    @property
    def changes(self) -> dict[str, Any]:
        """The values to store by key, None to remove; empty when there are no changes."""
        if not self.model_fields_set:
            return {}
        turned = {key: getattr(self, key) for key in TURNED if key in self.model_fields_set}
        return turned | {"reason": (self.reason or "").strip() or None}


@router.get(
    "/switch",
    operation_id="get_switch",
    summary="Whether chaos is halted or leashed, and the reaper off",
    responses=answers("The switch"),
)
def get_switch() -> SwitchOut:
    """Returns the switch. Costs two items, and one more where the setting ``leashed`` is false."""
    return SwitchOut.from_view(services.editor().switch())


@router.patch(
    "/switch",
    operation_id="change_switch",
    summary="Halt, resume, leash, unleash; switch the reaper off or on",
    responses=answers("The switch, changed", 400, 409) | WITHOUT_BENCHMARKS,
)
def change_switch(body: Annotated[SwitchPatch, Body()]) -> SwitchOut:
    """Changes the switch with immediate effect: a halt also stops claims made before it. To resume also ends the halt
    that the deployment has given itself, and forgets the broken units that led to it; the record contains that halt.
    With ``halt_id``, it ends only the halt with this id, and answers 409 if the present halt is another one.
    Records the caller and the change; a repeated request changes nothing. Without benchmarks, the deployment answers
    ``reaper_off`` and ``schedules_off`` with 403. While tables with data of an earlier deployment are neither used nor
    declined, it refuses to unleash with 409; the message has the commands for both.
    Costs four items and a transaction, repeated up to five times when other callers change it concurrently. To unleash
    costs 1 call for a hundred tables with the deployment's tags in addition, and 2 for each undecided one.
    """
    if {*BENCH_SWITCHES} & body.model_fields_set:
        check_benchmarks()
    try:
        services.editor().change_switch(body.changes, author_of(router.current_event.raw_event), body.halt_id)
    except (ConflictError, EarlierTablesError) as conflict:
        raise ServiceError(409, str(conflict)) from None
    return SwitchOut.from_view(services.editor().switch())
