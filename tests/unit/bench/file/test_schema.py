"""The committed JSON Schema: current, and in agreement with what is accepted."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given

from cli.shared import yaml_files
from infra import ROOT, bench_schema
from tests.unit.bench.file.documents import FILE, FILES, changed, files, read
from tests.unit.bench.file.test_read import REFUSED
from troop.bench.file.fleet_models import FleetFileIn
from troop.bench.file.schema import FLEET_TITLE, document

SCHEMA = jsonschema_rs.Draft202012Validator(document())


def test_the_schema_is_the_committed_one() -> None:
    assert bench_schema.PATH.read_text(encoding="utf-8") == bench_schema.text(), "run: python -m infra.bench_schema"


def test_schema_of_standing_fleets_is_the_committed_one_and_accepts_the_example() -> None:
    assert bench_schema.FLEET_PATH.read_text(encoding="utf-8") == bench_schema.fleet_text()
    text = (ROOT / "fleets" / "worker" / "fleet.yaml").read_text(encoding="utf-8")
    schema = jsonschema_rs.Draft202012Validator(document(FleetFileIn, FLEET_TITLE))
    schema.validate(yaml_files.parse(text, "fleet.yaml"))
    assert not schema.is_valid(yaml_files.parse(f"{text}phases: []\n", "fleet.yaml"))


@given(files())
def test_schema_accepts_every_accepted_file(document: dict[str, Any]) -> None:
    read(document, FILES)
    SCHEMA.validate(document)


KNOWN_TO_THE_SCHEMA = [
    *(
        "name",
        "nmae",
        "colour",
        "fleets",
        "fleets.drivers.count",
        "fleets.Drivers",
        "phases",
        "phases.1.start_together",
    ),
    *("parameters.Threads", "parameters.threads", "artifacts.0.sha256", "artifacts.0.source", "buckets.0"),
]


@pytest.mark.parametrize(
    ("change", "where"),
    [(change, where) for change, where, _ in REFUSED if where in KNOWN_TO_THE_SCHEMA],
)
def test_schema_refuses_single_mistakes(change: dict[str, Any], where: str) -> None:
    assert SCHEMA.is_valid(FILE)
    assert not SCHEMA.is_valid(changed(**change))


def test_an_editor_finds_the_schema() -> None:
    for path in (ROOT / "benchmarks").glob("*/benchmark.yaml"):
        first = path.read_text(encoding="utf-8").splitlines()[0]
        assert first == "# yaml-language-server: $schema=../benchmark.schema.json", path
