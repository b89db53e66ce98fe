"""Defines the error of workers, and their lines of output."""

from __future__ import annotations

import sys


class WorkError(Exception):
    """A request failed, or a worker has no queue; the message is a sentence that says why.

    Attributes:
        status: of HTTP; 0 if there was no complete answer.
        code: the service's own, such as ``QueueDoesNotExist``; empty if there is none.
    """

    def __init__(self, message: str, status: int = 0, code: str = "") -> None:
        super().__init__(message)
        self.status, self.code = status, code


def say(message: str) -> None:
    """Writes a line to standard output."""
    sys.stdout.write(f"troop.work: {message}\n")
    sys.stdout.flush()
