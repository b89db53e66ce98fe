"""Defines the command's exit codes and the error that ends it, so that scripts can distinguish failures."""

from __future__ import annotations

from enum import IntEnum
from typing import Self


class Exit(IntEnum):
    """Exit codes of the command, each with its meaning. 2 is what click uses for wrong usage."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Self:
        member = int.__new__(cls, code)
        member._value_, member.meaning = code, meaning
        return member

    OK = 0, "done"
    FAILED = 1, "failed, a check of `doctor` fails, or `--all halt` leaves a deployment to another halt"
    USAGE = 2, "wrong usage"
    NO_CREDENTIALS = 3, "no credentials"
    EXPIRED_CREDENTIALS = 4, "expired credentials"
    NO_DEPLOYMENT = 5, "no deployment of that name"
    WRONG_REGION = 6, "wrong region"
    NO_SUCH_UNIT = 7, "no such unit, group, run or fleet"
    FORBIDDEN = 8, "not allowed by IAM"
    UNREACHABLE = 9, "the API is unreachable; with `--all`, a deployment does not answer"
    REFUSED = 10, "the API refuses the request"
    CONFLICT = 11, "changed by somebody else in the meantime"
    API_FAILED = 12, "the API failed, or its answer makes no sense"
    NOT_CONFIRMED = 13, "not confirmed"
    LIMITS_MISSED = 14, "the results of a benchmark do not hold the limits of its file, or its search has no answer"
    UNKNOWN = (
        15,
        "unknown: too few pairs for `troop bench compare --fail-below` or `troop bench noise`, too little data for "
        "`troop thresholds`, or a benchmark whose results do not show what a planned fault did",
    )
    WORSE = 16, "`troop bench history --fail-on-change`: a figure became worse, and still is"
    BROKEN = 17, "a benchmark did not bear its planned faults as its file expects"
    INTERRUPTED = 130, "interrupted by Ctrl-C"


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
