"""Connects a command to the deployment that the options before its name select."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import typer

from cli.client.api import SignedApi
from cli.client.client import TroopClient
from cli.client.deployment import Deployment, find_deployment
from cli.client.versions import VersionCheck
from cli.shared import aws, show
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
    return Connection(deployment, TroopClient(api, deployment.api_arn, str(deployment), tell=distinct_notes()))


def distinct_notes() -> Callable[[str], None]:
    """Returns a function that prints each note once: a command that follows a listing reads it again and again."""
    notes = set[str]()

    def tell(text: str) -> None:
        if text not in notes:
            notes.add(text)
            show.note(text, style="yellow")

    return tell


def connection(ctx: typer.Context) -> Connection:
    """Returns the connection of the running command."""
    return connect(ctx.obj)
