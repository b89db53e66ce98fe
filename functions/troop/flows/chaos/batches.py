"""Batches: the cycle collector is kept out of work that makes very many objects and no cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collections() -> Iterator[None]:
    """No cycles are collected inside the block; what is no longer used is freed as always, by its count of references.

    Facts and decisions hold no cycles, but each hundred thousand of them would be searched for some again and again: a
    third of a large tick's time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
