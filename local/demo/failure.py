"""Defines the error that ends a demonstration."""

from __future__ import annotations


class DemoFailed(Exception):
    """An expected event of the demonstration did not happen."""
