"""Compares the command's version with that of a deployment, and tells people to upgrade the command."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cli.client.api import Answer, Api
from cli.shared import show
from troop.shared.version import VERSION, VERSION_HEADER, is_older


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
        """Sends a request; see :class:`cli.client.api.SignedApi`."""
        answer = self.api.request(method, path, query, body)
        deployed = answer.headers.get(VERSION_HEADER, "")
        # Several threads send requests; the lock is never released, so that only the first of them prints.
        if is_older(VERSION, deployed) and self._first.acquire(blocking=False):
            self.note(f"this command has version {VERSION}, {self.where} has {deployed}: upgrade the command")
        return answer
