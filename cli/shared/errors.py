"""Defines the command's exit codes and the error that ends it, so that scripts can distinguish failures."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of the command. 2 is what click uses for wrong usage."""

    OK = 0
    FAILED = 1
    """The request failed, or a check of ``doctor`` fails."""
    USAGE = 2
    NO_CREDENTIALS = 3
    EXPIRED_CREDENTIALS = 4
    NO_DEPLOYMENT = 5
    WRONG_REGION = 6
    NO_SUCH_UNIT = 7
    """No such unit, group, run or standing fleet."""
    FORBIDDEN = 8
    UNREACHABLE = 9
    REFUSED = 10
    """The API refuses the request (400, 404)."""
    CONFLICT = 11
    """The record has changed in the meantime (409)."""
    API_FAILED = 12
    """The API failed (5xx), or the command does not understand its answer."""
    NOT_CONFIRMED = 13
    """The command needs a confirmation and did not get one."""
    LIMITS_MISSED = 14
    """A benchmark's run succeeded, but its results do not hold the limits of its file."""
    INTERRUPTED = 130
    """Ctrl-C, as shells report it. At a question it is NOT_CONFIRMED."""


def why(error: OSError | UnicodeDecodeError) -> str:
    """Returns why a file cannot be read or written, in words that follow the file's name."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 text (byte {error.start + 1})"
    return error.strerror or str(error)


class CliError(Exception):
    """Ends the command with one line on stderr and an exit code.

    Attributes:
        code: the exit code of the command.
        api_code: one of :class:`troop.shared.errors.ErrorCode`, from the API's answer; "" without one.
    """

    def __init__(self, code: Exit, message: str, api_code: str = "") -> None:
        self.code, self.api_code = code, api_code
        super().__init__(message)
