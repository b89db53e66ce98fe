"""Replaces a function of a module or class by one that receives the original first."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def wrap(owner: Any, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates `def replacement(original, *args, **kwargs)`. Raises AttributeError if the function is missing."""

    def decorate(replacement: Callable[..., Any]) -> Callable[..., Any]:
        original = getattr(owner, name)

        @functools.wraps(original)
        def patched(*args: Any, **kwargs: Any) -> Any:
            return replacement(original, *args, **kwargs)

        setattr(owner, name, patched)
        return patched

    return decorate
