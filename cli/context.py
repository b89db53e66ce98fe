"""Connects a command to the deployment that the options before its name select."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import typer

from cli import aws
from cli.api import SignedApi
from cli.client import TroopClient
from cli.deployment import Deployment, find_deployment
from cli.errors import CliError, Exit


@dataclass(frozen=True)
class Options:
    """The options before a command's name; None where the environment decides."""

    deployment: str = "Troop"
    region: str | None = None
    profile: str | None = None


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
    api = SignedApi(deployment.api_url, session, aws.ca_bundle())
    return Connection(deployment, TroopClient(api, deployment.api_arn, str(deployment)))


def connection(ctx: typer.Context) -> Connection:
    """Returns the connection of the running command."""
    return connect(ctx.obj)


def to_type(ctx: typer.Context, *words: str) -> str:
    """Returns a command line for the same deployment: ``troop --region eu-west-1 bench stop ID``."""
    deployment = "" if ctx.obj.deployment == "Troop" else f" -d {ctx.obj.deployment}"
    region = f" --region {ctx.obj.region}" if ctx.obj.region else ""
    return f"troop{deployment}{region} {' '.join(words)}"


def interactive() -> bool:
    """Checks whether standard input is a terminal."""
    return sys.stdin.isatty()


def confirm(question: str, yes: bool) -> None:
    """Asks for a confirmation.

    Args:
        question: without the question mark.
        yes: whether ``--yes`` was given.

    Raises:
        CliError: NOT_CONFIRMED; also without a terminal.
    """
    if yes:
        return
    if not interactive():
        raise CliError(Exit.NOT_CONFIRMED, "confirmation required: rerun with --yes")
    if not typer.confirm(f"{question}?", err=True):
        raise CliError(Exit.NOT_CONFIRMED, "nothing was changed")
