"""Reads what a tick would read of a deployment and its account, with the caller's credentials."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import boto3

from cli.client.deployment import Deployment
from cli.shared import aws, settings_files
from cli.shared.errors import CliError, Exit
from cli.shared.settings_files import TriedSettings
from troop.aws.chaos.account import read_account, read_details
from troop.aws.chaos.balancers import Balancers, BalancersOfATick
from troop.aws.chaos.state import PolicyTable, StateTable
from troop.aws.chaos.termination_protection import Asking
from troop.chaos.decisions import Account
from troop.chaos.facts import Facts
from troop.errors import SettingsError
from troop.outputs import GROUP_TAGS_TABLE, SALT_SECRET, SETTINGS_METADATA, STATE_TABLE


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


def account(session: boto3.Session, deployment: Deployment, leashed: bool) -> Account:
    """Returns groups, policies, the switch and the state of units, as they are now.

    Args:
        leashed: the value of the switch as long as nobody has set it.

    Raises:
        CliError: what :func:`cli.shared.aws.translated_errors` raises.
    """
    dynamodb = _client(session, "dynamodb")
    policies = PolicyTable(dynamodb, _output(deployment, GROUP_TAGS_TABLE))
    state = StateTable(dynamodb, _output(deployment, STATE_TABLE), leashed)
    with aws.translated_errors():
        return read_account(_client(session, "autoscaling"), _client(session, "ec2"), policies, state)


def details_reader(session: boto3.Session) -> Callable[[list[Facts]], list[Facts]]:
    """Returns a function that adds the current instance refreshes, stop alarms, load balancer targets and EC2
    protection to the facts of units that are due.
    """
    autoscaling, cloudwatch = _client(session, "autoscaling"), _client(session, "cloudwatch")
    balancers = BalancersOfATick(Balancers(cache(partial(_client, session))))
    closer = partial(read_details, autoscaling, cloudwatch, balancers, Asking(_client(session, "ec2")))

    def read(due: list[Facts]) -> list[Facts]:
        with aws.translated_errors():
            return closer(due)

    return read


def _client(session: boto3.Session, service: str) -> Any:
    # As many attempts as a tick makes: a large account needs many calls, and AWS throttles some of them.
    return aws.client(session, service, retries={"mode": "standard", "total_max_attempts": 7})


def _output(deployment: Deployment, name: str) -> str:
    if name not in deployment.outputs:
        raise _too_old(deployment, f"its {name}")
    return deployment.outputs[name]


def _too_old(deployment: Deployment, what: str) -> CliError:
    return CliError(Exit.FAILED, f"the stack {deployment.name} lacks {what}: deploy it again with this version")
