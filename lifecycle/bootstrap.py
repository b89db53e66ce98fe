"""Checks whether account and region are bootstrapped for the CDK, in a version that this template can use."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import ClientError

from cli.shared import aws
from cli.shared.errors import CliError, Exit


def bootstrap_missing(session: boto3.Session, account: str, assembly: Path, deployment: str) -> bool:
    """Checks the version that `cdk bootstrap` recorded.

    Args:
        account: the account's number, for the command in an error.
        assembly: the synthesised folder.

    Returns:
        Whether there is none: `cdk bootstrap` must run first.

    Raises:
        CliError: FAILED, if the version is older than the assembly requires. `cdk deploy` would refuse it too, but only
            after tables were taken over.
    """
    properties = _properties(assembly, deployment)
    parameter = properties.get("bootstrapStackVersionSsmParameter")
    if not parameter:
        return False
    with aws.translated_errors():
        try:
            version = aws.client(session, "ssm").get_parameter(Name=parameter)["Parameter"]["Value"]
        except ClientError as error:
            if error.response["Error"]["Code"] == "ParameterNotFound":
                return True
            raise
    required = int(properties.get("requiresBootstrapStackVersion", 0))
    if not version.isdecimal() or int(version) < required:
        raise CliError(
            Exit.FAILED,
            f"the CDK bootstrap of this account and region has version {version}, but Troop requires {required}. "
            f"Upgrade it: npx cdk bootstrap aws://{account}/{session.region_name}, with the options of the first time",
        )
    return False


def _properties(assembly: Path, deployment: str) -> Mapping[str, Any]:
    manifest = json.loads((assembly / "manifest.json").read_text(encoding="utf-8"))
    properties: Mapping[str, Any] = manifest["artifacts"][deployment]["properties"]
    return properties
