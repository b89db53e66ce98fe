"""What ends a demonstration early."""

from __future__ import annotations


class DemoFailed(Exception):
    """Something the demo claims did not happen."""
