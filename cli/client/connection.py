"""Connects a command to the deployment that the options before its name select."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from cli.client.api import SignedApi
from cli.client.client import TroopClient
from cli.client.deployment import Deployment, find_deployment
from cli.client.versions import VersionCheck
from cli.shared import aws
from cli.shared.context import Options


@dataclass(frozen=True)
class Connection:
    """A deployment and its API."""

    deployment: Deployment
    client: TroopClient


def connect(options: Options) -> Connection:
    """Finds the deployment by its stack.

    Raises:
        CliError: credentials, region, deployment or network are wrong.
    """
    session = aws.make_session(options.profile, options.region)
    deployment = find_deployment(session, options.deployment)
    api = VersionCheck(SignedApi(deployment.api_url, session, aws.ca_bundle()), str(deployment))
    return Connection(deployment, TroopClient(api, deployment.api_arn, str(deployment)))


def connection(ctx: typer.Context) -> Connection:
    """Returns the connection of the running command."""
    return connect(ctx.obj)
