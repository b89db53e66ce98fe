"""Generates the JSON Schemas of reports and comparisons from their models: ``python -m infra.report_schema`` writes
them.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from infra import ROOT
from troop.report.comparison import Comparison
from troop.report.document import Report

PATHS: dict[str, tuple[type[BaseModel], str]] = {
    "report.schema.json": (Report, "A report of a benchmark's run"),
    "comparison.schema.json": (Comparison, "A comparison of two runs of benchmarks"),
}
"""Below ``docs/``: the model and title of each schema."""

DOCS = ROOT / "docs" / "reference"


def text(name: str) -> str:
    """Returns a schema (2020-12), as committed."""
    model, title = PATHS[name]
    schema = model.model_json_schema(mode="serialization")
    described: dict[str, Any] = _described(schema)
    whole = {"$schema": GenerateJsonSchema.schema_dialect, "title": title, **described}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _described(value: Any) -> Any:
    """Removes pydantic's titles, which repeat each key, and defaults, because a document contains all keys."""
    if isinstance(value, list):
        return [_described(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    return {key: _described(inner) for key, inner in value.items() if not _is_redundant(key, inner)}


def _is_redundant(key: str, inner: Any) -> bool:
    return key == "default" or (key == "title" and isinstance(inner, str))


if __name__ == "__main__":
    for one in PATHS:
        (DOCS / one).write_text(text(one), encoding="utf-8")
