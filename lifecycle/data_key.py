"""Checks the key of the settings (``troop:key``), and that retained tables have the same one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from cli.shared import aws
from cli.shared.errors import CliError, Exit
from infra.settings import PREFIX, DeploymentSettings
from lifecycle.console import say
from lifecycle.retained import RetainedTable

_USABLE = {"KeyState": "Enabled", "KeyUsage": "ENCRYPT_DECRYPT", "KeySpec": "SYMMETRIC_DEFAULT"}
_DOCUMENT = 'docs/guides/organization.md, "A key of your own"'


def refuse_unusable_key(session: boto3.Session, settings: DeploymentSettings) -> None:
    """Refuses a key that cannot encrypt a deployment's data. Only warns if it cannot be read.

    Raises:
        CliError: FAILED; CloudFormation would fail in the middle, and roll back.
    """
    if not settings.key:
        return
    say(f"The key {settings.key} encrypts its data. Its policy must admit services of AWS: {_DOCUMENT}, has it.")
    if aws.is_local():
        return
    try:
        key = _described(session, settings.key)
    except ClientError as error:
        if error.response["Error"]["Code"] != "NotFoundException":
            say(f"Warning: cannot check that key ({' '.join(str(error).split())}).")
            return
        raise CliError(Exit.FAILED, f"{PREFIX}key is {settings.key}: there is no such key") from error
    except BotoCoreError as error:
        say(f"Warning: cannot check that key ({' '.join(str(error).split())}).")
        return
    if wrong := [
        f"{name} is {key.get(name)}, not {value}" for name, value in _USABLE.items() if key.get(name) != value
    ]:
        raise CliError(Exit.FAILED, f"{PREFIX}key is {settings.key}, which cannot be used: {'; '.join(wrong)}")


def refuse_other_key(session: boto3.Session, settings: DeploymentSettings, tables: Mapping[str, RetainedTable]) -> None:
    """Refuses retained tables that another key encrypts. CloudFormation takes a table over as the template describes
    it, and would leave it under its own key, which the deployment's roles may not use.

    Args:
        tables: to take over, by logical id.

    Raises:
        CliError: FAILED; names the tables, their keys, and what to do.
    """
    if aws.is_local():
        return
    others: dict[str, str] = {}
    with aws.translated_errors():
        dynamodb = aws.client(session, "dynamodb")
        for table in tables.values():
            encryption = dynamodb.describe_table(TableName=table.name)["Table"].get("SSEDescription", {})
            key = str(encryption.get("KMSMasterKeyArn", ""))
            if key and key != settings.key and _described(session, key).get("KeyManager") == "CUSTOMER":
                others[table.name] = key
            elif settings.key and key != settings.key:
                others[table.name] = "a key of AWS"
    if others:
        keys = "; ".join(f"{name}: {key}" for name, key in others.items())
        raise CliError(
            Exit.FAILED,
            f"another key than {PREFIX}key ({settings.key or 'null'}) encrypts retained tables ({keys}): deploy with "
            "the key that they have, or null for a key of AWS, and change it with a second deployment. Or start with "
            "empty tables with ADOPT=none",
        )


def _described(session: boto3.Session, key: str) -> Mapping[str, Any]:
    metadata: Mapping[str, Any] = aws.client(session, "kms").describe_key(KeyId=key)["KeyMetadata"]
    return metadata
