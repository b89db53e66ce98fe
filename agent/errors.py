"""What can go wrong on a node, and is told to the workflow."""

from __future__ import annotations

UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""What reading a document raises that is damaged or of another kind, whichever way it is wrong."""


class AgentError(Exception):
    """A node cannot go on; the message says why, as a sentence."""


class Lost(BaseException):
    """The agent is asked to end while it is at work. Not an Exception: what tolerates those must not tolerate this."""
