"""Connects a command to the deployment that the options before its name select, and compares their versions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import typer

from cli.client.api import Answer, Api
from cli.client.client import TroopClient
from cli.shared import show
from cli.shared.context import Options
from cli.shared.errors import CliError, Exit
from troop.shared.version import VERSION, VERSION_HEADER, is_older

if TYPE_CHECKING:
    from cli.client.deployment import Deployment
    from cli.shared.aws import Session


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
    from cli.shared import aws  # here, because help and completion need no AWS SDK, which takes longer than they do

    session = aws.make_light_session(options.profile, options.region)
    return connect_in(session, options.deployment, distinct_notes())


def connect_in(session: Session, name: str, tell: Callable[[str], None], *, elsewhere: bool = True) -> Connection:
    """Finds a deployment in the account and region of a session.

    Args:
        tell: prints notes on what answers leave out.
        elsewhere: whether to search other regions for a deployment that is not in this one.

    Raises:
        CliError: as for :func:`connect`.
    """
    from cli.client.deployment import find_deployment
    from cli.client.signed_api import SignedApi
    from cli.shared import aws

    deployment = find_deployment(session, name, elsewhere=elsewhere)
    api = VersionCheck(SignedApi(deployment.api_url, session, aws.ca_bundle(session)), str(deployment))
    return Connection(deployment, TroopClient(api, deployment.api_arn, str(deployment), tell=tell))


def distinct_notes() -> Callable[[str], None]:
    """Returns a function that prints each note once: a command that follows a listing reads it again and again."""
    notes = set[str]()

    def tell(text: str) -> None:
        if text not in notes:
            notes.add(text)
            show.note(text, style="yellow")

    return tell


def connection(ctx: typer.Context) -> Connection:
    """Returns the connection of the running command.

    Raises:
        CliError: as for :func:`connect`; USAGE for a file of deployments without ``--all``.
    """
    if ctx.obj.deployments:
        raise CliError(Exit.USAGE, "--deployments is of --all: add it, or choose one deployment with -d")
    return connect(ctx.obj)


def _note(message: str) -> None:
    show.note(f"troop: {message}", style="yellow")


@dataclass
class VersionCheck:
    """An API whose answers are checked: if the deployment is newer than the command, it says so once, on stderr.

    The API itself refuses a command that is too old (:data:`troop.shared.version.OLDEST_COMMAND`).

    Attributes:
        api: sends the requests.
        where: the deployment, for the message.
        note: prints the message.
    """

    api: Api
    where: str
    note: Callable[[str], None] = _note
    _first: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def request(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None
    ) -> Answer:
        """Sends a request; see :class:`cli.client.signed_api.SignedApi`."""
        answer = self.api.request(method, path, query, body)
        deployed = answer.headers.get(VERSION_HEADER, "")
        # Several threads send requests; the lock is never released, so that only the first of them prints.
        if is_older(VERSION, deployed) and self._first.acquire(blocking=False):
            self.note(f"this command has version {VERSION}, {self.where} has {deployed}: upgrade the command")
        return answer
