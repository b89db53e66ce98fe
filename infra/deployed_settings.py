"""Warns at synth of settings that a plain `cdk deploy` would reset, if the CDK has credentials. Never fails.

The warning is in the assembly's manifest. The template is the same with and without it.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping

import aws_cdk as cdk
import boto3
import botocore.session
from botocore.exceptions import BotoCoreError, ClientError

from cli.shared import aws
from infra.settings import DeploymentSettings
from infra.settings_record import SILENT, Record, changes, override, record, record_in

_QUICK = {"connect_timeout": 2, "read_timeout": 5, "retries": {"total_max_attempts": 1}}


def warn_of_resets(stack: cdk.Stack, settings: DeploymentSettings) -> None:
    """Annotates the stack with the settings whose deployed values would be lost.

    Args:
        settings: of the stack.
    """
    deployed = _deployed(stack.stack_name, os.environ)
    if not deployed:
        return
    resets = [change for change in changes(deployed, record(settings), settings.overrides) if change.is_reset]
    if resets:
        lines = [f"{name}: {before} -> {after}" for change in resets for name, before, after in change.rows()]
        options = " ".join(f"-c {shlex.quote(override(change))}" for change in resets)
        text = (
            "the deployment has settings that neither cdk.json nor this command has, and that cdk deploy would reset: "
            f"{'; '.join(lines)}. To keep them, add them to cdk.json, or add {options}"
        )
        cdk.Annotations.of(stack).add_warning_v2("troop:resets", text)


def _deployed(stack: str, environment: Mapping[str, str]) -> Record | None:
    """Returns the record of the deployed stack; None without one, and if the stack cannot be read at once."""
    # The CDK sets the account only if it has credentials.
    account, region = environment.get("CDK_DEFAULT_ACCOUNT"), environment.get("CDK_DEFAULT_REGION")
    if not account or not region or SILENT in environment:
        return None
    try:
        core = botocore.session.get_session()
        if _needs_code(core):
            return None
        session = boto3.Session(region_name=region, botocore_session=core)
        cloudformation = aws.client(session, "cloudformation", **_QUICK)
        there = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]
        if there["StackId"].split(":")[4] != account:
            return None  # the CDK has other credentials: those of its option --profile
        body = cloudformation.get_template(StackName=there["StackId"])["TemplateBody"]
        return record_in(json.loads(body) if isinstance(body, str) else body)
    except (BotoCoreError, ClientError, LookupError, ValueError):
        return None


def _needs_code(session: botocore.session.Session) -> bool:
    """Checks whether the SDK may ask a person for a code (MFA), for which synth must not wait."""
    profiles = session.full_config.get("profiles", {})
    is_role = "role_arn" in profiles.get(session.profile or "default", {})
    return is_role and any("mfa_serial" in profile for profile in profiles.values())
