"""What can go wrong, each with an exit code of its own, so that scripts can tell them apart."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes. 2 is the shell's own for wrong usage."""

    OK = 0
    FAILED = 1
    """Something that was asked for could not be done, or a check of ``doctor`` fails."""
    USAGE = 2
    NO_CREDENTIALS = 3
    EXPIRED_CREDENTIALS = 4
    NO_DEPLOYMENT = 5
    WRONG_REGION = 6
    NO_SUCH_UNIT = 7
    """Nor group, run or standing fleet."""
    FORBIDDEN = 8
    UNREACHABLE = 9
    REFUSED = 10
    """The API refuses what was asked for as it is (400, 404)."""
    CONFLICT = 11
    """Somebody else has changed it in between (409)."""
    API_FAILED = 12
    """The API itself has failed (5xx), or answers what this command does not understand."""
    NOT_CONFIRMED = 13
    """It asks before it acts, and nobody said yes."""


def why(error: OSError | UnicodeDecodeError) -> str:
    """Why a file cannot be read or written, as it follows the file's name."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is no text in UTF-8 (byte {error.start + 1})"
    return error.strerror or str(error)


class CliError(Exception):
    """Ends the command with one line on stderr and an exit code.

    Attributes:
        code: what the command exits with.
    """

    def __init__(self, code: Exit, message: str) -> None:
        self.code = code
        super().__init__(message)
