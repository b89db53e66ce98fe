"""metrics.md is generated from the metrics that functions write."""

from __future__ import annotations

import re

from infra import ROOT, metrics_doc
from troop.shared.metrics import MEANINGS, Metric


def test_the_table_is_current() -> None:
    document = metrics_doc.PATH.read_text(encoding="utf-8")
    assert metrics_doc.text(document) == document, "run: make openapi"
    assert list(MEANINGS) == list(Metric)


def test_every_metric_is_written_by_somebody() -> None:
    sources = [path for path in (ROOT / "functions").rglob("*.py") if path.name != "metrics.py" or "aws" in path.parts]
    code = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    assert [metric.name for metric in Metric if not re.search(rf"\bMetric\.{metric.name}\b", code)] == []
