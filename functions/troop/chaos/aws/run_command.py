"""Runs documents of Systems Manager on one instance, by Run Command: sends, finds, reads and cancels commands.

SendCommand has no token for idempotency. So a request is sent once, by a client that never repeats one, and every
answer means one of three things: AWS has the command, certainly does not have it, or may have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from troop.chaos.injection_rules import DELIVERY, NO_COMMAND, Command
from troop.shared.aws.throttling import is_throttled

_UNCERTAIN = frozenset({408})
"""HTTP statuses of 400 to 499 with which AWS may have accepted a request all the same: Request Timeout."""

_STDERR = "\n----------ERROR-------\n"
"""What amazon-ssm-agent writes between the two outputs of a script."""


class CommandRefused(Exception):
    """AWS has certainly not accepted the command, so that it does not run. The text is from AWS.

    Attributes:
        throttled: AWS has too many requests now, and may accept a later one.
    """

    def __init__(self, words: str, throttled: bool = False) -> None:
        self.throttled = throttled
        super().__init__(words)


class CommandInDoubt(Exception):
    """It is not known whether AWS has accepted the command. It must count as sent, and must not be sent again."""


@dataclass(frozen=True)
class RunCommand:
    """Run Command.

    Attributes:
        sender: a client of Systems Manager that sends each request once.
        reader: a client of Systems Manager that may repeat requests.
    """

    sender: Any
    reader: Any

    def send(
        self, document: str, instance_id: str, parameters: Mapping[str, str], comment: str, once: bool = True
    ) -> str:
        """Sends a command to an instance. Returns its id.

        Args:
            document: the document's name.
            parameters: the document's.
            comment: at most 100 characters, by which :meth:`read` finds the command if its id is not known.
            once: False for a command that does no harm if it runs twice: then the SDK repeats the request.

        Raises:
            CommandRefused: AWS does not run it.
            CommandInDoubt: nobody knows.
        """
        try:
            answer = (self.sender if once else self.reader).send_command(
                DocumentName=document,
                InstanceIds=[instance_id],
                Parameters={name: [value] for name, value in parameters.items()},
                Comment=comment,
                TimeoutSeconds=int(DELIVERY.total_seconds()),
            )
            return str(answer["Command"]["CommandId"])
        except ParamValidationError as error:  # the SDK itself has refused to send it
            raise CommandRefused(str(error)) from error
        except ClientError as error:
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            if 400 <= status < 500 and status not in _UNCERTAIN:
                raise CommandRefused(str(error), is_throttled(error)) from error
            raise CommandInDoubt(str(error)) from error
        except BotoCoreError as error:
            raise CommandInDoubt(str(error)) from error
        except KeyError as error:  # such as the page of a proxy
            raise CommandInDoubt(f"AWS's answer has no {error}") from error

    def read(self, instance_id: str, document: str, command_id: str, comment: str) -> Command:
        """Reads a command by its id; without one, finds it by its comment. The listing lags: a command that is missing
        may exist.

        Raises:
            ClientError, BotoCoreError: it cannot be read now.
        """
        request: dict[str, Any] = {"InstanceId": instance_id, "Details": True}
        if command_id:
            request["CommandId"] = command_id
        else:
            request["Filters"] = [{"key": "DocumentName", "value": document}]
        for page in self.reader.get_paginator("list_command_invocations").paginate(**request):
            for one in page["CommandInvocations"]:
                if command_id or one.get("Comment") == comment:
                    return Command(str(one["CommandId"]), str(one["Status"]), _output(one))
        return NO_COMMAND

    def cancel(self, instance_id: str, command_id: str) -> None:
        """Asks for the end of a command. Systems Manager promises nothing, and no trap of a script runs: its agent
        kills the processes. For a command that is over it does nothing.

        Raises:
            ClientError, BotoCoreError: it cannot be asked now.
        """
        self.reader.cancel_command(CommandId=command_id, InstanceIds=[instance_id])


def _output(invocation: Mapping[str, Any]) -> str:
    """Returns the standard output of the last step that wrote any; of at most 2,500 characters."""
    outputs = [str(plugin.get("Output", "")).partition(_STDERR)[0] for plugin in invocation.get("CommandPlugins", ())]
    return next((output for output in reversed(outputs) if output.strip()), "")
