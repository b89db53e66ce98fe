"""The guide to faults inside an instance follows from the faults."""

from __future__ import annotations

from infra import faults_doc
from troop.chaos.probe import Reading
from troop.faults import LASTING, tools


def test_the_guide_is_current() -> None:
    document = faults_doc.PATH.read_text(encoding="utf-8")
    assert faults_doc.text(document) == document, "run: make openapi"


def test_each_trace_has_words_and_is_read_by_the_probe() -> None:
    traces = {trace.field for fault in LASTING for trace in fault.traces}
    assert traces <= set(faults_doc.TRACES) <= set(Reading.__dataclass_fields__)


def test_a_guide_names_every_program_once() -> None:
    lines = faults_doc.PATH.read_text(encoding="utf-8").splitlines()
    assert {sum(line.startswith(f"| `{tool}`") for line in lines) for tool in tools()} == {1}
