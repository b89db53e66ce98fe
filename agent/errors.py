"""Defines the errors that a node reports to the workflow."""

from __future__ import annotations

UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""All errors that reading a damaged or foreign document can raise."""


class AgentError(Exception):
    """The node cannot continue; the message is a sentence that says why."""


class FaultError(Exception):
    """A planned fault cannot begin or end; the message is a sentence that says why."""


class Lost(BaseException):
    """The agent must end while it is working. A BaseException, so that handlers of Exception do not swallow it."""
