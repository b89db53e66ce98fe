"""State machines: made alike, whatever they run."""

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
    """A state machine of type STANDARD, traced, with a log of its own.

    Args:
        definition: as JSON; only those of the substitutions whose ``${NAME}`` stands in it are made.

    Raises:
        ValueError: the definition is no JSON, or has a name for which there is no substitution.
    """
    machine = sfn.StateMachine(
        scope,
        "Machine",
        # As text: checks at synth do not look into a definition that is uploaded as a file.
        definition_body=sfn.DefinitionBody.from_string(definition),
        definition_substitutions=used(definition, substitutions),
        state_machine_type=sfn.StateMachineType.STANDARD,
        role=as_listed(role),
        # Every transition, so that a run can be followed when its history is gone, but no payloads: what was
        # decided and done is in the tables, and instance and owner names need not be copied into logs.
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
    """Those of ``substitutions`` whose ``${NAME}`` stands in the definition.

    Raises:
        ValueError: the definition is no JSON, or has a name for which there is no substitution.
    """
    json.loads(definition)
    names = sorted(set(re.findall(r"\$\{(\w+)\}", definition)))
    if unknown := [name for name in names if name not in substitutions]:
        raise ValueError(f"{', '.join(unknown)}: no such substitution; there are {', '.join(substitutions)}")
    return {name: substitutions[name] for name in names}
