"""Creates state machines in the same way for all workflows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from aws_cdk import aws_iam as iam
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.logs import make_log_group
from infra.roles import as_listed, drop_depends_on
from infra.settings import DeploymentSettings


def make_machine(
    scope: Construct, definition: str, substitutions: Mapping[str, str], role: iam.Role, settings: DeploymentSettings
) -> sfn.StateMachine:
    """Creates a state machine of type STANDARD, with tracing and a log of its own.

    Args:
        definition: as JSON; only substitutions whose ``${NAME}`` it contains are made.

    Raises:
        ValueError: the definition is not JSON, or contains a name without a substitution.
    """
    machine = sfn.StateMachine(
        scope,
        "Machine",
        # As text, because checks at synth do not read a definition that is uploaded as a file.
        definition_body=sfn.DefinitionBody.from_string(definition),
        definition_substitutions=used(definition, substitutions),
        state_machine_type=sfn.StateMachineType.STANDARD,
        role=as_listed(role),
        # Log every transition, so that a run can be followed after its history has expired, but no payloads: decisions
        # and terminations are in the tables, and names of instances and owners need not be copied into logs.
        logs=sfn.LogOptions(
            destination=make_log_group(scope, "Logs", settings, of_machine=role),
            level=sfn.LogLevel.ALL,
            include_execution_data=False,
        ),
        tracing_enabled=True,
    )
    drop_depends_on(machine)
    return machine


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
