"""Reads what a tick would read of a deployment and its account, with the caller's credentials."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import cache, partial
from typing import Any

import boto3

from cli.client.deployment import Deployment
from cli.shared import aws, settings_files
from cli.shared.errors import CliError, Exit
from cli.shared.settings_files import TriedSettings
from troop.chaos.aws.account_reader import AccountReader
from troop.chaos.aws.state_table import PolicyTable, StateTable
from troop.chaos.facts import Account, Facts
from troop.shared.errors import SettingsError
from troop.shared.outputs import GROUP_TAGS_TABLE, SALT_SECRET, SETTINGS_METADATA, STATE_TABLE
from troop.shared.settings import Settings


def deployed_settings(session: boto3.Session, deployment: Deployment) -> TriedSettings:
    """Returns the settings of the deployed functions, from the metadata of the stack's template.

    Raises:
        CliError: FAILED, if the template does not have them; or what :func:`cli.shared.aws.translated_errors` raises.
    """
    with aws.translated_errors():
        template = aws.client(session, "cloudformation").get_template(StackName=deployment.name)["TemplateBody"]
    try:
        return settings_files.make(
            {**json.loads(template["Metadata"][SETTINGS_METADATA]), "deployment": deployment.name}
        )
    except (KeyError, TypeError, ValueError, SettingsError):
        raise _too_old(deployment, "its settings") from None


def salt(session: boto3.Session, deployment: Deployment) -> bytes:
    """Returns the salt of the deployment's rolls.

    Raises:
        CliError: FORBIDDEN, if the caller may not read it; or what :func:`cli.shared.aws.translated_errors` raises.
    """
    with aws.translated_errors():
        answer = aws.client(session, "secretsmanager").get_secret_value(SecretId=_output(deployment, SALT_SECRET))
    return str(answer["SecretString"]).encode()


def salt_or_why(session: boto3.Session, deployment: Deployment) -> tuple[bytes | None, str]:
    """Returns the salt and ""; or None, and why the caller may not read it.

    Raises:
        CliError: it cannot be read for another reason.
    """
    try:
        return salt(session, deployment), ""
    except CliError as error:
        if error.code is not Exit.FORBIDDEN:
            raise
        return None, str(error)


def reader(session: boto3.Session, deployment: Deployment, settings: Settings) -> AccountReader:
    """Returns the reader that a tick of the deployment would use.

    Raises:
        CliError: FAILED, if the stack lacks one of the tables.
    """
    client = cache(partial(_client, session))
    return AccountReader(
        settings,
        client,
        PolicyTable(client("dynamodb"), _output(deployment, GROUP_TAGS_TABLE)),
        StateTable(client("dynamodb"), _output(deployment, STATE_TABLE), settings.leashed),
    )


def account(source: AccountReader, first: datetime, last: datetime) -> Account:
    """Returns groups, policies, the switch and the state of units, as they are now.

    Args:
        first, last: of the forecast, for which SSM Change Calendars are read.

    Raises:
        CliError: what :func:`cli.shared.aws.translated_errors` raises.
    """
    with aws.translated_errors():
        return replace(source.account(), changes=source.changes_between(first, last))


def details_reader(source: AccountReader) -> Callable[[list[Facts]], list[Facts]]:
    """Returns :meth:`AccountReader.details_reader`, with errors for the command line."""
    details = source.details_reader()

    def read(due: list[Facts]) -> list[Facts]:
        with aws.translated_errors():
            return details(due)

    return read


def _client(session: boto3.Session, service: str) -> Any:
    # As many attempts as a tick makes: a large account needs many calls, and AWS throttles some of them.
    return aws.client(session, service, retries={"mode": "standard", "total_max_attempts": 7})


def _output(deployment: Deployment, name: str) -> str:
    if name not in deployment.outputs:
        raise _too_old(deployment, f"its {name}")
    return deployment.outputs[name]


def _too_old(deployment: Deployment, feature: str) -> CliError:
    return CliError(
        Exit.FAILED,
        f"the stack {deployment.name} lacks {feature}: run make deploy KEEP=1 DEPLOYMENT={deployment.name} with this "
        "version",
    )
