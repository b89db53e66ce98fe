"""Disables the cycle collector during work that makes many objects without cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collections() -> Iterator[None]:
    """Disables the collection of cycles inside the block; reference counting still frees unused objects.

    Decisions and parsed JSON have no cycles, but each hundred thousand objects would be searched repeatedly: a third of
    the time of a large tick, report or merge.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
