"""Describes the file as JSON Schema, for editors. It covers each value, but not the relations between values."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from troop.bench.file.models import BenchmarkIn

TITLE = "A benchmark of Troop"
FLEET_TITLE = "A standing fleet of Troop"


def document(model: type[BaseModel] = BenchmarkIn, title: str = TITLE) -> dict[str, Any]:
    """Returns the JSON Schema (2020-12) of a file.

    Args:
        model: of the whole file.
    """
    model_schema = model.model_json_schema()
    definitions = {_plain(name): schema for name, schema in model_schema.pop("$defs").items()}
    whole = {"$schema": GenerateJsonSchema.schema_dialect, "title": title, **model_schema, "$defs": definitions}
    described: dict[str, Any] = _described(whole)
    return described | {"title": title}


def _described(value: Any) -> Any:
    """Removes pydantic's titles, which repeat the keys, uses the definitions' plain names, makes descriptions plain
    text, and refuses keys that match no pattern.
    """
    if isinstance(value, list):
        return [_described(inner) for inner in value]
    if not isinstance(value, dict):
        return str(value) if isinstance(value, str) else value
    described = {
        key: _described(inner) for key, inner in value.items() if not (key == "title" and isinstance(inner, str))
    }
    if reference := described.get("$ref"):
        described["$ref"] = "#/$defs/" + _plain(reference.rpartition("/")[2])
    if "patternProperties" in described:
        described["additionalProperties"] = False
    return described


def _plain(name: str) -> str:
    """Hides the suffix of a model's class name."""
    return name.removesuffix("In").lower()
