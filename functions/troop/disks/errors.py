"""The error of this package, which a script shows as its last line."""

from __future__ import annotations


class DiskError(Exception):
    """The storage cannot be what the parameters ask for; the message names what is missing and what to do."""
