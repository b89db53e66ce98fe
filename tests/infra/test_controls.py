"""security.md lists the rules of known standards that the stack does not meet, without a key of the operator's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from infra import controls_doc, roles_doc
from infra.controls_doc import CONTROLS, WITH_KEY, Findings
from tests.infra.results import result, sources
from tests.infra.test_key import KEY


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Findings]:
    """By whether there is a key, the standards by the rules that have findings."""
    folder = result("controls", sources(), create=lambda partial: _find(partial, tmp_path_factory.mktemp("nag")))
    document: Mapping[str, Findings] = json.loads((folder / "findings.json").read_text())
    return document


def _find(partial: Path, folder: Path) -> None:
    document = {name: controls_doc.find(folder / name, key) for name, key in (("without", None), ("with", KEY))}
    (partial / "findings.json").write_text(json.dumps(document))


def test_the_table_is_current(findings: Mapping[str, Findings]) -> None:
    document = roles_doc.PATH.read_text(encoding="utf-8")
    assert controls_doc.text(document, findings["without"]) == document, "run: make openapi"
    assert set(CONTROLS) == set(findings["without"])


def test_a_rule_that_the_key_meets_says_so_and_no_other_does(findings: Mapping[str, Findings]) -> None:
    met = {rule for rule, (status, _) in CONTROLS.items() if status == WITH_KEY}
    assert met == findings["without"].keys() - findings["with"]
    assert findings["with"].keys() <= findings["without"].keys()
