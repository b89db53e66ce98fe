"""Systems Manager's Run Command in memory: its answers lag, and its statuses are what agents have reported."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from tests.model.dynamo import refusal
from tests.model.fleet import Emit, Fleet
from tests.model.machine import FINAL, LASTING, At, Command, Machine, Temper

SHOWN = 2.0
"""Seconds within which a list may not show a command, or show its status before the last."""

TROUBLED = 120.0
"""Seconds after its first command within which something happens to a machine."""

LONGEST_OUTPUT = 2500
"""The characters of an output in a list."""

SSM_CHANGED = "EC2 Command Invocation Status-change Notification"


class RunCommand:
    """All commands of an account.

    Args:
        watch: told of each command that Systems Manager has accepted, and of each fault that begins.

    Attributes:
        temper: of the machines that get their first command from now on.
    """

    def __init__(
        self,
        now: Callable[[], float],
        at: At,
        dice: random.Random,
        fleet: Fleet,
        emit: Emit,
        watch: Callable[[str, Command], None],
    ) -> None:
        self._now, self._at, self._dice, self._fleet = now, at, dice, fleet
        self._emit, self._watch = emit, watch
        self.temper = Temper()
        self.commands: dict[str, Command] = {}
        self.machines: dict[str, Machine] = {}

    def machine(self, instance_id: str) -> Machine:
        """The inside of an instance."""
        if instance_id not in self.machines:
            instance = self._fleet.instances[instance_id]
            felt = partial(self._watch, "felt")
            self.machines[instance_id] = Machine(
                instance, self._now, self._at, self._dice, self.temper, self._changed, felt
            )
            self.machines[instance_id].trouble(TROUBLED)
        return self.machines[instance_id]

    def has(self, command: Command) -> bool:
        """Whether the fault of a command is there."""
        return command.instance_id in self._fleet.instances and self.machine(command.instance_id).has(command)

    def _changed(self, command: Command) -> None:
        detail = {
            "command-id": command.command_id,
            "document-name": command.document,
            "instance-id": command.instance_id,
            "requested-date-time": _iso(command.sent),
            "status": command.status,
        }
        self._emit("aws.ssm", SSM_CHANGED, detail)

    # The client

    def send_command(
        self,
        InstanceIds: Sequence[str],
        DocumentName: str,
        Parameters: Mapping[str, Sequence[str]],
        TimeoutSeconds: int = 3600,
        Comment: str = "",
        **more: Any,
    ) -> dict[str, Any]:
        (instance_id,) = InstanceIds
        if TimeoutSeconds < 30 or len(Comment) > 100:
            raise refusal("ValidationException", "SendCommand")
        instance = self._fleet.instances.get(instance_id)
        if instance is None or instance.state != "running":
            raise _refused("InvalidInstanceId", "SendCommand")
        if DocumentName in LASTING and not instance.consent:
            raise _refused("AccessDeniedException", "SendCommand")
        dice, now = self._dice, self._now()
        parameters = {name: values[0] for name, values in Parameters.items()}
        command_id = f"{len(self.commands):08x}-0000-4000-8000-000000000000"
        command = Command(
            command_id, DocumentName, instance_id, parameters, Comment, now, TimeoutSeconds, [(now, "Pending")]
        )
        self.commands[command_id] = command
        machine = self.machine(instance_id)
        self._watch("sent", command)
        late = dice.random() < 0.1
        delay = dice.random() * (TimeoutSeconds - 3 if late else 1.5)
        self._at(now + delay, partial(machine.deliver, command))
        self._at(now + TimeoutSeconds, partial(machine.expire, command))
        return {"Command": self._command(command)}

    def describe_instance_information(self, Filters: Sequence[Mapping[str, Any]], **paging: Any) -> dict[str, Any]:
        """An agent that has died is online for some minutes yet."""
        known = [self._fleet.instances.get(one) for one in Filters[0]["Values"]]
        online = [one.instance_id for one in known if one and one.state == "running"]
        return {
            "InstanceInformationList": [
                {"InstanceId": one, "PingStatus": "Online", "PlatformType": "Linux"} for one in online
            ]
        }

    def cancel_command(self, CommandId: str, InstanceIds: Sequence[str] = ()) -> dict[str, Any]:
        command = self._known(CommandId, "CancelCommand")
        self._watch("cancelled", command)
        self.machine(command.instance_id).cancel(command)
        return {}

    def list_command_invocations(
        self,
        CommandId: str = "",
        InstanceId: str = "",
        Details: bool = False,
        Filters: Sequence[Mapping[str, str]] = (),
        **paging: Any,
    ) -> dict[str, Any]:
        documents = {one["value"] for one in Filters if one["key"] == "DocumentName"}
        chosen = [
            one
            for one in ([self.commands[CommandId]] if CommandId else reversed(self.commands.values()))
            if InstanceId in ("", one.instance_id)
            and (not documents or one.document in documents)
            and not (self._now() - one.sent < SHOWN and self._dice.random() < 0.3)
        ]
        return {"CommandInvocations": [self._invocation(one, Details) for one in chosen]}

    def get_command_invocation(self, CommandId: str, InstanceId: str, PluginName: str = "") -> dict[str, Any]:
        command = self._known(CommandId, "GetCommandInvocation")
        if self._now() - command.sent < SHOWN and self._dice.random() < 0.3:
            raise _refused("InvocationDoesNotExist", "GetCommandInvocation")
        status = self._shown(command)
        output = command.output if status in FINAL else ""
        return {
            "CommandId": command.command_id,
            "InstanceId": command.instance_id,
            "Comment": command.comment,
            "DocumentName": command.document,
            "PluginName": PluginName or "probe",
            "Status": status,
            "StatusDetails": status,
            "StandardOutputContent": output,
            "StandardErrorContent": "",
        }

    def _known(self, command_id: str, operation: str) -> Command:
        if command_id not in self.commands:
            raise _refused("InvalidCommandId", operation)
        return self.commands[command_id]

    def _shown(self, command: Command) -> str:
        """The status as an answer has it."""
        if len(command.states) > 1 and self._now() - command.states[-1][0] < SHOWN and self._dice.random() < 0.3:
            return command.states[-2][1]
        return command.status

    def _command(self, command: Command) -> dict[str, Any]:
        return {
            "CommandId": command.command_id,
            "DocumentName": command.document,
            "Comment": command.comment,
            "InstanceIds": [command.instance_id],
            "RequestedDateTime": datetime.fromtimestamp(command.sent, UTC),
            "Status": self._shown(command),
        }

    def _invocation(self, command: Command, details: bool) -> dict[str, Any]:
        status = self._shown(command)
        output = command.output[:LONGEST_OUTPUT] if status in FINAL else ""
        plugin = {"Name": "probe", "Status": status, "StatusDetails": status, "Output": output}
        return {
            "CommandId": command.command_id,
            "InstanceId": command.instance_id,
            "Comment": command.comment,
            "DocumentName": command.document,
            "RequestedDateTime": datetime.fromtimestamp(command.sent, UTC),
            "Status": status,
            "StatusDetails": status,
            "CommandPlugins": [plugin] if details else [],
        }


def _refused(code: str, operation: str) -> Any:
    error = refusal(code, operation)
    error.response["ResponseMetadata"]["HTTPStatusCode"] = 400
    return error


def _iso(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"
