"""Asks many deployments side by side; one that does not answer never stops the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from cli.client.connection import Connection, connect_in, distinct_notes
from cli.client.deployments_file import ListedDeployment
from cli.shared import side_by_side
from cli.shared.errors import CliError, Exit

SECONDS = 20.0
"""The time for which a deployment may answer one question."""

AT_ONCE, MOST_AT_ONCE = 16, 64
"""Deployments that are asked at one time, and those that are halted at one time."""


@dataclass(frozen=True)
class Reply:
    """The answer of a deployment.

    Attributes:
        answer: what it answers; None after an error.
        error: why it does not answer.
        connection: None if there was none.
    """

    deployment: ListedDeployment
    answer: Any = None
    error: CliError | None = None
    connection: Connection | None = None

    @property
    def answered(self) -> bool:
        """Whether the deployment answered, even if it only said that it has no such unit."""
        return self.error is None or self.error.code is Exit.NO_SUCH_UNIT

    def document(self) -> dict[str, Any]:
        """Returns the reply in JSON's types."""
        listed, conn = self.deployment, self.connection
        return {
            "deployment": listed.label,
            "name": listed.name,
            "region": listed.region,
            "account": conn.deployment.account if conn else None,
            "stage": listed.stage,
            "answered": self.answered,
            "error": str(self.error) if self.error else None,
            "answer": self.answer,
        }


def connect(listed: ListedDeployment) -> Connection:
    """Finds a deployment of the file.

    Raises:
        CliError: credentials, role, region, deployment or network are wrong.
    """
    from cli.shared import aws  # here, because help and completion need no AWS SDK

    session = aws.make_light_session(listed.profile, listed.region, listed.role, listed.external_id)
    note = distinct_notes()
    return connect_in(session, listed.name, lambda text: note(f"{listed.label}: {text}"), elsewhere=False)


@dataclass(frozen=True)
class Everywhere:
    """The deployments of a file, and the connections to those that have answered before."""

    deployments: Sequence[ListedDeployment]
    _connections: dict[str, Connection] = field(default_factory=dict, repr=False)

    def ask(
        self, question: Callable[[Connection], Any], seconds: float = SECONDS, at_once: int = AT_ONCE
    ) -> list[Reply]:
        """Asks all deployments, and returns their replies in the order of the file.

        Args:
            question: asks one deployment, in a thread. Whatever it raises is the error of that deployment only.
            seconds: the time for each deployment, to connect included.
            at_once: the most deployments that are asked at one time.
        """
        requests = {one.label: partial(self._ask, one, question) for one in self.deployments}
        answers = side_by_side.answers(requests, at_once, seconds)
        return [self._reply(one, answers[one.label]) for one in self.deployments]

    def _ask(self, listed: ListedDeployment, question: Callable[[Connection], Any]) -> Any:
        if listed.label not in self._connections:
            self._connections[listed.label] = connect(listed)
        try:
            return question(self._connections[listed.label])
        except CliError:
            raise
        except Exception as error:
            # Versions differ, and this one must not hide the others.
            why = f"its answer makes no sense to this command ({type(error).__name__}: {error})"
            raise CliError(Exit.API_FAILED, why) from error

    def _reply(self, listed: ListedDeployment, answer: Any) -> Reply:
        conn = self._connections.get(listed.label)
        if isinstance(answer, CliError):
            return Reply(listed, error=answer, connection=conn)
        return Reply(listed, answer, connection=conn)
