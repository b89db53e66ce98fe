"""Generates the API's description from its code, offline: ``python -m infra.openapi`` writes it."""

from __future__ import annotations

import inspect
import json
from typing import Any

from handlers.api import ROUTES, app
from infra import ROOT

PATH = ROOT / "docs" / "reference" / "openapi.json"

_VERSION = "1"
_ABOUT = (
    "Troop's terminations in Auto Scaling groups and the policies that control them; runs of benchmarks; and "
    "standing fleets. Every request is signed with AWS credentials (SigV4, service execute-api). IAM decides which "
    "caller may use which path. Moments are ISO 8601 in UTC."
)
_SIGNED = {
    "type": "apiKey",
    "name": "Authorization",
    "in": "header",
    "description": "AWS Signature Version 4",
    "x-amazon-apigateway-authtype": "awsSigv4",
}
_UNUSED_SCHEMAS = ("HTTPValidationError", "ValidationError", "ResponseValidationError")
"""Schemas of Powertools' own errors, which the API replaces."""


def document() -> dict[str, Any]:
    """Returns the OpenAPI document."""
    spec: dict[str, Any] = json.loads(
        app.get_openapi_json_schema(title="Troop", version=_VERSION, description=_ABOUT, openapi_version="3.1.0")
    )
    del spec["servers"]  # the address depends on the deployment: see the stack's output ApiUrl
    described = {name: function for module in ROUTES for name, function in vars(module).items()}
    for operations in spec["paths"].values():
        for operation in operations.values():
            operation["description"] = inspect.getdoc(described[operation["operationId"]])
            operation["security"] = [{"sigv4": []}]
            operation["responses"] = {c: r for c, r in sorted(operation["responses"].items()) if c != "422"}
            for parameter in operation.get("parameters", []):
                parameter["schema"] = _without_null(parameter["schema"])
    spec["paths"] = dict(sorted(spec["paths"].items()))
    schemas = spec["components"]["schemas"]
    spec["components"] = {
        "schemas": {name: schema for name, schema in sorted(schemas.items()) if name not in _UNUSED_SCHEMAS},
        "securitySchemes": {"sigv4": _SIGNED},
    }
    return spec


def text() -> str:
    """Returns the document, as committed."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Removes null from a parameter's schema: a URL's parameter is present or omitted."""
    match schema.get("anyOf"):
        case [one, {"type": "null"}]:
            return {**one, **{key: value for key, value in schema.items() if key != "anyOf"}}
    return schema


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
