"""The committed JSON Schemas of reports and comparisons: current, and in agreement with what is made."""

from __future__ import annotations

import json

import jsonschema_rs
import pytest

from cli.bench.comparing import compare
from cli.bench.pairing import Chosen
from infra import report_schema
from tests.unit.cli import reports
from tests.unit.report import runs
from troop.report.build import build


def schema(name: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(json.loads(report_schema.text(name)))


@pytest.mark.parametrize("name", list(report_schema.PATHS))
def test_schema_is_the_committed_one(name: str) -> None:
    committed = (report_schema.DOCS / name).read_text(encoding="utf-8")
    assert committed == report_schema.text(name), "run: python -m infra.report_schema"


def test_a_report_is_what_its_schema_says() -> None:
    document = build(runs.archive(), runs.AT, "0.3").model_dump(mode="json")
    schema("report.schema.json").validate(document)
    document["cells"][0]["phases"][0]["operations"][0]["count"] = "many"
    assert not schema("report.schema.json").is_valid(document)


def test_a_comparison_is_what_its_schema_says() -> None:
    a, b = (Chosen(run, reports.report(reports.repeated([1.0, 2.0]), run)) for run in ("a", "b"))
    document = compare(a, b, now=reports.NOW, version="0.3").model_dump(mode="json")
    schema("comparison.schema.json").validate(document)
    del document["rows"]
    assert not schema("comparison.schema.json").is_valid(document)
