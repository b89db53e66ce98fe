"""Creates state machines in the same way for all workflows."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra import ROOT
from infra.logs import make_log_group
from infra.roles import as_listed, drop_depends_on, make_role
from infra.settings import DeploymentSettings

_INTEGRATIONS = {
    name: f"arn:{cdk.Aws.PARTITION}:states:::{action}"
    for name, action in {
        "LambdaInvoke": "lambda:invoke",
        "LambdaInvokeWithToken": "lambda:invoke.waitForTaskToken",
        "S3GetObject": "s3:getObject",
        "StartExecution": "states:startExecution",
        "StartExecutionSync": "states:startExecution.sync:2",
    }.items()
}
"""Service integrations of any partition. Whole ARNs, because cfn-lint accepts no substitution within one."""


def make_machine(
    scope: Construct,
    name: str,
    *,
    description: str,
    statements: Sequence[iam.PolicyStatement],
    substitutions: Mapping[str, str],
    settings: DeploymentSettings,
    without: Collection[str] = (),
) -> tuple[sfn.StateMachine, iam.Role]:
    """Creates a state machine of type STANDARD, with a role, tracing and a log of its own.

    It invokes functions by their plain ARN, without versions or aliases. So the code deployed at its next step finishes
    what an execution has begun, and a corrected function also corrects waiting executions.

    Args:
        name: of the definition, ``statemachines/NAME.asl.json``.
        description: of the role.
        statements: the role's permissions.
        substitutions: for each ``${NAME}`` in the definition, besides service integrations.
        without: names of states that this deployment does not have, see :func:`reduced`.

    Raises:
        ValueError: the definition is not JSON, or contains a name without a substitution.
    """
    definition = (ROOT / "statemachines" / f"{name}.asl.json").read_text(encoding="utf-8")
    if without:
        definition = json.dumps(reduced(json.loads(definition), without), indent=2)
    role = make_role(scope, "Role", service="states.amazonaws.com", description=description, statements=statements)
    machine = sfn.StateMachine(
        scope,
        "Machine",
        # As text, because checks at synth do not read a definition that is uploaded as a file.
        definition_body=sfn.DefinitionBody.from_string(definition),
        definition_substitutions=used(definition, {**substitutions, **_INTEGRATIONS}),
        state_machine_type=sfn.StateMachineType.STANDARD,
        role=as_listed(role),
        # Log every transition, so that a run can be followed after its history has expired, but no payloads: decisions
        # and terminations are in the tables, and names of instances and owners need not be copied into logs.
        logs=sfn.LogOptions(
            destination=make_log_group(scope, "Logs", settings, machine_role=role),
            level=sfn.LogLevel.ALL,
            include_execution_data=False,
        ),
        tracing_enabled=True,
    )
    drop_depends_on(machine)
    return machine, role


def reduced(definition: Any, without: Collection[str]) -> Any:
    """Returns a definition, or a part of it, without some states, and without the choices that lead to them."""
    if isinstance(definition, dict):
        return {key: reduced(part, without) for key, part in definition.items() if key not in without}
    if isinstance(definition, list):
        leading = [isinstance(part, dict) and part.get("Next") in without for part in definition]
        return [reduced(part, without) for part, leads in zip(definition, leading, strict=True) if not leads]
    return definition


def used(definition: str, substitutions: Mapping[str, str]) -> dict[str, str]:
    """Returns the ``substitutions`` whose ``${NAME}`` is in the definition.

    Raises:
        ValueError: the definition is not JSON, or contains a name without a substitution.
    """
    json.loads(definition)
    names = sorted(set(re.findall(r"\$\{(\w+)\}", definition)))
    if unknown := [name for name in names if name not in substitutions]:
        raise ValueError(f"{', '.join(unknown)}: unknown substitution; must be one of {', '.join(substitutions)}")
    return {name: substitutions[name] for name in names}
