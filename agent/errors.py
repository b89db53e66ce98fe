"""What can go wrong on a node, and is told to the workflow."""

from __future__ import annotations


class AgentError(Exception):
    """A node cannot go on; the message says why, as a sentence."""


class Lost(BaseException):
    """The agent is asked to end while it is at work. Not an Exception: what tolerates those must not tolerate this."""
