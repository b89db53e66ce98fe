"""The documents of AWS that lasting faults run: they get what they accept, and what they need is looked for."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra import ROOT
from troop.faults import LASTING, tools
from troop.faults.lasting_fault import LastingFault, Parameter

DOCUMENTS: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("documents.toml").read_text())
_TEXTS = (
    *("0", "1", "10", "95", "100", "900", "5000", "65535", "120000", "tcp", "egress", "SIGTERM", "nginx", "a=b", "a_b"),
    *("ALL", "S3", "10.0.0.0/8", "db.example.com", "localhost", "us-east-1a", "use1-az1", "a" * 16, "A,B"),
)
"""Values of all kinds, of which each parameter accepts some."""


def _accepted(parameter: Parameter) -> Iterator[str]:
    yield from (text for text in _TEXTS if parameter.values.accepts(text))
    if parameter.default is not None:
        yield parameter.default


def _requests(fault: LastingFault) -> Iterator[dict[str, str]]:
    first = {one.name: next(_accepted(one)) for one in fault.parameters}
    for parameter in fault.parameters:
        yield from (fault.request({**first, parameter.name: text}) for text in _accepted(parameter))


def _fits(value: str, form: Any) -> bool:
    if isinstance(form, list):
        return value in form
    if isinstance(form, dict):
        return value.isdigit() and form["from"] <= int(value) <= form["to"]
    return re.fullmatch(form, value) is not None


def test_each_document_belongs_to_a_fault() -> None:
    assert {fault.document for fault in LASTING} == set(DOCUMENTS)


@pytest.mark.parametrize("fault", LASTING, ids=lambda fault: fault.name)
def test_a_document_gets_what_it_accepts(fault: LastingFault) -> None:
    document = DOCUMENTS[fault.document]
    requests = list(_requests(fault))
    for request in requests:
        assert set(document["required"]) <= set(request)
        for name, value in request.items():
            assert _fits(value, document["parameters"][name]), (name, value)
    assert len(requests) > len(fault.parameters)


@pytest.mark.parametrize("fault", LASTING, ids=lambda fault: fault.name)
def test_a_fault_names_all_that_its_document_needs(fault: LastingFault) -> None:
    document = DOCUMENTS[fault.document]
    assert set(fault.tools) == {*document["needs"], *document.get("loads", [])}
    assert fault.modules == set(document.get("loads", []))


def test_the_probe_looks_for_all_that_faults_need() -> None:
    script = (ROOT / "infra" / "probe.sh").read_text(encoding="utf-8")
    (programs,) = re.findall(r"^for program in (.*); do$", script, re.MULTILINE)
    others = re.findall(r"\blacks ([\w-]+)$", script, re.MULTILINE)
    assert {*programs.split(), *others} == set(tools())


@pytest.mark.parametrize("zone", ["us-east-1a", "use1-az1"])
def test_a_zone_is_no_source(zone: str) -> None:
    # Only FIS knows zones: a document that gets one fails.
    faults = [fault for fault in LASTING if "Sources" in DOCUMENTS[fault.document]["parameters"]]
    sources = [one for fault in faults for one in fault.parameters if one.name == "sources"]
    assert len(sources) == 2
    assert not any(one.values.accepts(zone) for one in sources)
