"""Formats a benchmark's definition like its file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_BARE = re.compile(r"[A-Za-z/][A-Za-z0-9_./@%+ -]*(?<! )|\d+[smh]")
_NOT_TEXT = re.compile(r"(?i)true|false|null|yes|no|on|off|y|n")
_SHORT = 100
"""The most characters of a list or mapping on one line; it must not contain others."""


def outline(value: Any) -> str:
    """Formats JSON-like values as YAML, without anchors and folded text."""
    return "\n".join(_lines(value)) + "\n"


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _entry(f"{_scalar(str(key))}:", item, "  ")
    elif isinstance(value, list | tuple) and value:
        for item in value:
            if isinstance(item, Mapping | list | tuple) and (_flow(item) is None):
                first, *rest = _lines(item)
                yield f"- {first}"
                yield from (f"  {line}" for line in rest)
            else:
                yield f"- {_flow(item)}"
    else:
        yield _flow(value) or ""


def _entry(head: str, item: Any, indent: str) -> Iterator[str]:
    flow = _flow(item)
    if flow is not None and len(head) + len(flow) < _SHORT and not (isinstance(item, Mapping) and item):
        yield f"{head} {flow}"
    elif isinstance(item, Mapping | list | tuple) and item:
        yield head
        yield from (f"{indent}{line}" for line in _lines(item))
    else:
        yield f"{head} {flow}"


def _flow(value: Any) -> str | None:
    """Formats a value on one line; returns None if that is too long, or if it contains mappings or lists."""
    if isinstance(value, Mapping):
        if any(_is_nested(item) for item in value.values()):
            return None
        text = "{" + ", ".join(f"{_scalar(str(key))}: {_scalar(item)}" for key, item in value.items()) + "}"
        return text if len(text) <= _SHORT or not value else None
    if isinstance(value, list | tuple):
        if any(_is_nested(item) for item in value):
            return None
        text = "[" + ", ".join(map(_scalar, value)) + "]"
        return text if len(text) <= _SHORT or not value else None
    return _scalar(value)


def _is_nested(value: Any) -> bool:
    return isinstance(value, Mapping | Sequence) and not isinstance(value, str)


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _BARE.fullmatch(value) and not _NOT_TEXT.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)
