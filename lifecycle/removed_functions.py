"""Checks for executions that still call functions which an update removes, as after a function was renamed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import boto3

from cli.shared import aws
from cli.shared.errors import CliError, Exit
from lifecycle.resources import Resource

_FUNCTION, _MACHINE = "AWS::Lambda::Function", "AWS::StepFunctions::StateMachine"
_NAMED = 3
"""Executions of a workflow that the refusal names."""


def refuse_while_called(session: boto3.Session, there: Mapping[str, Resource], template: Mapping[str, Any]) -> None:
    """Refuses an update that removes functions while executions run that call them. An execution keeps the definition
    with which it began, and so the names of functions.

    Args:
        there: the stack's resources by logical id.
        template: what the stack becomes.

    Raises:
        CliError: FAILED; names functions and executions.
    """
    removed = {
        resource.physical_id
        for key, resource in there.items()
        if resource.kind == _FUNCTION and key not in template["Resources"]
    }
    if not removed:
        return
    states = aws.client(session, "stepfunctions")
    functions: set[str] = set()
    executions: list[str] = []
    with aws.translated_errors():
        for machine in sorted(one.physical_id for one in there.values() if one.kind == _MACHINE):
            definition = str(states.describe_state_machine(stateMachineArn=machine)["definition"])
            called = {name for name in removed if f":function:{name}" in definition}
            if not called:
                continue
            answer = states.list_executions(stateMachineArn=machine, statusFilter="RUNNING", maxResults=_NAMED)
            if running := [str(one["executionArn"]) for one in answer["executions"]]:
                functions |= called
                executions += running
    if executions:
        raise CliError(
            Exit.FAILED,
            f"this version has no functions {', '.join(sorted(functions))}, and executions run that still call them "
            f"({', '.join(executions)}): they would fail. Wait until they have ended. `troop halt` makes chaos claim "
            "nothing new; benchmarks and standing fleets end by `troop bench stop` and `troop fleet down`",
        )
