"""Generates the JSON Schemas of benchmarks' and standing fleets' files from their models: ``python -m
infra.bench_schema`` writes them.
"""

from __future__ import annotations

import json
from typing import Any

from infra import ROOT
from troop.bench.file import schema
from troop.bench.file.fleet_models import FleetFileIn

PATH = ROOT / "benchmarks" / "benchmark.schema.json"
FLEET_PATH = ROOT / "fleets" / "fleet.schema.json"


def text() -> str:
    """Returns the schema of benchmarks' files, as committed."""
    return _text(schema.document())


def fleet_text() -> str:
    """Returns the schema of standing fleets' files, as committed."""
    return _text(schema.document(FleetFileIn, schema.FLEET_TITLE))


def _text(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
    FLEET_PATH.write_text(fleet_text(), encoding="utf-8")
