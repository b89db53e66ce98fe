"""security.md lists the rules of known standards that the stack does not meet, without a key of the operator's."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import aws_cdk as cdk
import pytest
from cdk_nag import HIPAASecurityChecks, NIST80053R5Checks, PCIDSS321Checks

from infra import ROOT
from tests.infra.conftest import CONTEXT, stack_of
from tests.infra.results import result, sources
from tests.infra.test_key import KEY

STANDARDS = {"NIST.800.53.R5": "NIST", "PCI.DSS.321": "PCI", "HIPAA.Security": "HIPAA"}
"""The beginning of a rule's name -> the standard in the table."""

WITH_KEY = "met with `troop:key`"


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Mapping[str, list[str]]]:
    """By whether there is a key, the standards by the rules that have findings."""
    folder = result("controls", sources(), create=lambda partial: _find(partial, tmp_path_factory.mktemp("nag")))
    document: Mapping[str, Mapping[str, list[str]]] = json.loads((folder / "findings.json").read_text())
    return document


def _find(partial: Path, folder: Path) -> None:
    document = {name: _rules(folder / name, key) for name, key in (("without", None), ("with", KEY))}
    (partial / "findings.json").write_text(json.dumps(document))


def _rules(folder: Path, key: str | None) -> dict[str, list[str]]:
    app = cdk.App(context=CONTEXT, outdir=str(folder))
    cdk.Validations.of(app).add_plugins(HIPAASecurityChecks(app), NIST80053R5Checks(app), PCIDSS321Checks(app))
    stack_of(app, key=key)
    with pytest.raises(RuntimeError, match="VPCFlowLogsEnabled"):
        app.synth()
    report = json.loads((folder / "validation-report.json").read_text())
    rules: dict[str, set[str]] = {}
    for violation in (one for plugin in report["pluginReports"] for one in plugin["violations"]):
        standard, _, rule = violation["ruleName"].partition("[")[0].partition("-")
        rules.setdefault(rule, set()).add(STANDARDS[standard])
    return {rule: sorted(standards) for rule, standards in rules.items()}


def test_the_table_has_each_rule_with_a_finding_and_no_other(findings: Mapping[str, Mapping[str, list[str]]]) -> None:
    section = (ROOT / "docs" / "reference" / "security.md").read_text(encoding="utf-8").partition("\n## Controls\n")[2]
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \| (.+?) \|$", section.partition("\n## ")[0], re.MULTILINE)
    assert [rule for rule, *_ in rows] == sorted(findings["without"])
    assert {rule: sorted(standards.split(", ")) for rule, standards, *_ in rows} == findings["without"]
    assert {rule for rule, _, status, _ in rows if status == WITH_KEY} == findings["without"].keys() - findings["with"]
    assert findings["with"].keys() <= findings["without"].keys()
