"""The insides of instances: Run Command, its agent, and what AWS's documents do there, in place of moto."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError

from tests.unit.account.account import Call, Clock
from tests.unit.account.managed import Managed
from troop import faults
from troop.faults.lasting_fault import LastingFault

PROBE = "Troop-Probe"
STARTS, TAKES, ROLLS_BACK = timedelta(seconds=0.5), timedelta(seconds=2), timedelta(seconds=12)
"""From the request to the start of a command; from a probe's start to its answer; from a shell's death to the rollback
by atd.
"""

MARKS = {"stress": 3, "qdiscs": 2, "drops": 1, "rollbacks": 2, "hosts": 1, "used": 60}
"""How much a fault adds to what the probe reads."""


@dataclass
class Sent:
    """A command that Systems Manager has accepted."""

    command_id: str
    document: str
    instance_id: str
    parameters: dict[str, str]
    comment: str
    at: datetime
    cancelled_at: datetime | None = None

    @property
    def fault(self) -> LastingFault | None:
        return next((one for one in faults.LASTING if one.document == self.document), None)

    @property
    def ends(self) -> datetime:
        """When its shell has ended by itself."""
        seconds = float(self.parameters.get("DurationSeconds", 1))
        return self.at + STARTS + (timedelta(seconds=seconds) if self.fault else TAKES)


@dataclass
class Insides(Managed):
    """Answers Systems Manager, EventBridge Scheduler and Step Functions when it is the intercept of
    :func:`tests.unit.account.account.calls`.

    Attributes:
        sent: what was sent, oldest first, and accepted.
        schedules: the one-time schedules: (name, expression, input).
        answers: (token, output) of the workflows' tasks.
        has_atd: whether what needs a timer is ever undone.
        boot: the boot id of every instance.
        dead_since: from when on no agent answers: commands stay as they are.
        lost: documents of which the answer to SendCommand is lost, after it has acted.
        refusals: (code, HTTP status) with which SendCommand is refused, by document.
        hidden_for: how long a command is in no list.
        forged: changes what a probe writes.
        restarts_after: the time after which a killed process runs again; None for never.
        lists_fail: whether commands cannot be listed.
    """

    clock: Clock = field(default_factory=Clock)
    sent: list[Sent] = field(default_factory=list)
    schedules: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    answers: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    has_atd: bool = True
    boot: str = "boot-1"
    dead_since: datetime | None = None
    lost: set[str] = field(default_factory=set)
    refusals: dict[str, tuple[str, int]] = field(default_factory=dict)
    hidden_for: timedelta = timedelta()
    forged: Callable[[dict[str, Any]], object] = lambda reading: None
    restarts_after: timedelta | None = timedelta(seconds=4)
    lists_fail: bool = False

    def __call__(self, number: int, operation: str, call: Call) -> Any:
        if own := getattr(self, f"_{operation}", None):
            return own(call.args[-1])
        return super().__call__(number, operation, call)

    @property
    def injected(self) -> list[Sent]:
        return [one for one in self.sent if one.fault]

    @property
    def probes(self) -> list[Sent]:
        return [one for one in self.sent if one.document == PROBE]

    def present(self, moment: datetime | None = None) -> bool:
        """Whether a fault is there: the truth, which no function sees."""
        return any(self._present(one, moment or self.clock()) for one in self.injected)

    def _present(self, command: Sent, now: datetime) -> bool:
        fault = command.fault
        if not fault or now < command.at + STARTS:
            return False
        if fault.returns:
            return self.restarts_after is None or now < command.at + STARTS + self.restarts_after
        if command.cancelled_at and command.cancelled_at < command.ends:
            if not fault.needs_timer:
                return False
            return not self.has_atd or now < command.cancelled_at + ROLLS_BACK
        return now < command.ends

    def _status(self, command: Sent) -> str:
        now = min(self.clock(), self.dead_since or self.clock())
        if now < command.at + STARTS:
            return "Pending"
        if command.cancelled_at and command.cancelled_at < command.ends:
            return "Cancelled" if not self.dead_since or command.cancelled_at < self.dead_since else "InProgress"
        return "Success" if now >= command.ends else "InProgress"

    def _reading(self, command: Sent) -> str:
        at = command.at + STARTS + TAKES / 2
        reading: dict[str, Any] = dict.fromkeys(("qdiscs", "drops", "stress", "rollbacks", "hosts"), 0)
        reading |= {"boot": self.boot, "used": 20.0, "missing": [], "running": None}
        for one in self.injected:
            if self._present(one, at) and one.fault:
                for trace in one.fault.traces:
                    reading[trace.field] += MARKS[trace.field]
        if command.parameters["Process"]:
            reading["running"] = 0 if self.present(at) else 2
        reading["token"] = command.parameters["Token"]
        self.forged(reading)
        return json.dumps(reading)

    def _SendCommand(self, request: dict[str, Any]) -> Any:
        document = request["DocumentName"]
        assert request["TimeoutSeconds"] >= 30
        assert len(request["Comment"]) <= 100
        if document in self.refusals:
            code, status = self.refusals[document]
            error: Any = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}
            raise ClientError(error, "SendCommand")
        (instance_id,) = request["InstanceIds"]
        parameters = {name: values[0] for name, values in request["Parameters"].items()}
        command_id = f"{len(self.sent):08d}-0000-0000-0000-000000000000"
        command = Sent(command_id, document, instance_id, parameters, request["Comment"], self.clock())
        self.sent.append(command)
        if document in self.lost:
            raise ReadTimeoutError(endpoint_url="https://ssm")
        return {"Command": {"CommandId": command_id}}

    def _ListCommandInvocations(self, request: dict[str, Any]) -> Any:
        if self.lists_fail:
            error: Any = {"Error": {"Code": "ThrottlingException", "Message": "rate"}}
            raise ClientError(error | {"ResponseMetadata": {"HTTPStatusCode": 400}}, "ListCommandInvocations")
        documents = {one["value"] for one in request.get("Filters", ()) if one["key"] == "DocumentName"}
        shown = [
            one
            for one in self.sent
            if one.instance_id == request["InstanceId"]
            and (one.command_id == request.get("CommandId") or one.document in documents)
            and self.clock() - one.at >= self.hidden_for
        ]
        return {"CommandInvocations": [self._invocation(one) for one in shown]}

    def _invocation(self, command: Sent) -> dict[str, Any]:
        status = self._status(command)
        output = self._reading(command) + "\n" if status == "Success" and command.document == PROBE else ""
        return {
            "CommandId": command.command_id,
            "InstanceId": command.instance_id,
            "Comment": command.comment,
            "Status": status,
            "CommandPlugins": [{"Name": "step", "Status": status, "Output": output}],
        }

    def _CancelCommand(self, request: dict[str, Any]) -> Any:
        (command,) = [one for one in self.sent if one.command_id == request["CommandId"]]
        if command.cancelled_at is None and not self.dead_since:
            command.cancelled_at = self.clock()
        return {}

    def _CreateSchedule(self, request: dict[str, Any]) -> Any:
        if any(name == request["Name"] for name, _, _ in self.schedules):
            raise ClientError({"Error": {"Code": "ConflictException", "Message": "exists"}}, "CreateSchedule")
        assert request["ActionAfterCompletion"] == "DELETE"
        self.schedules.append((request["Name"], request["ScheduleExpression"], json.loads(request["Target"]["Input"])))
        return {"ScheduleArn": "arn"}

    def _SendTaskSuccess(self, request: dict[str, Any]) -> Any:
        self.answers.append((request["taskToken"], json.loads(request["output"])))
        return {}
