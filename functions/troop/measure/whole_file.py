"""Writes documents for the agent atomically."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_whole(target: Path, document: Mapping[str, Any]) -> Path:
    """Writes a document as JSON to ``target``, ``NAME.json``; the file appears only when it is complete."""
    partial = target.with_suffix(".part")
    partial.write_text(json.dumps(document, separators=(",", ":")), encoding="utf-8")
    return partial.replace(target)
