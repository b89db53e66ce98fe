"""The JSON Schema of a benchmark's file, generated from its models: ``python -m infra.bench_schema`` writes it."""

from __future__ import annotations

import json

from infra import ROOT
from troop.bench_file import schema

PATH = ROOT / "benchmarks" / "benchmark.schema.json"


def text() -> str:
    """The schema as it is committed."""
    return json.dumps(schema.document(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
