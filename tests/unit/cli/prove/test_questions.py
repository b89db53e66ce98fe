"""Questions are complete, and evidence is judged."""

from __future__ import annotations

from typing import Any

import pytest

from cli.prove import judgements as judge
from cli.prove.model import Kind, Verdict
from cli.prove.probes import Probes
from cli.prove.questions import QUESTIONS
from infra import ROOT
from tests.aws_facts.sources import authorization


def test_questions_are_complete() -> None:
    assert len({question.name for question in QUESTIONS}) == len(QUESTIONS)
    for question in QUESTIONS:
        assert callable(getattr(Probes, question.probe))
        assert question.text.endswith("?")
        assert question.why.endswith(".")
        assert question.price == 0 or question.kind is not Kind.READS
        assert question.needs
        assert [action for action in question.needs if authorization(action) is None] == []
    total = sum(question.price for question in QUESTIONS)
    for document in ("reference/command.md", "start/first-hour.md"):
        text = (ROOT / "docs" / document).read_text(encoding="utf-8")
        assert [words for words in ("troop prove", f"${total}") if words not in text] == [], document


def _keys(**codes: str) -> dict[str, str]:
    denied = "AccessDeniedException"
    return {"item": "success", "switch": denied, "item_if_switch": "success", "switch_if_item": denied} | codes


def _tags(**codes: str) -> dict[str, str]:
    denied = "AccessDeniedException"
    return {"consented": "Success", "other_value": denied, "group_name": denied} | codes


def _writes(**codes: str) -> dict[str, str]:
    return {"new": "success", "same": "success", "exists": "PreconditionFailed", "other": "PreconditionFailed"} | codes


def _record(status: str = "SUCCEEDED", zones: str = "ab", **purchases: str) -> dict[str, Any]:
    bought = {"spot": "spot", "backup": "on-demand"} | purchases
    return {
        "cells": [{"label": "spot", "status": "SUCCEEDED"}, {"label": "backup", "status": status, "reason": "no"}],
        "nodes": [{"label": name, "purchase": how, "zone": zone} for name, how in bought.items() for zone in zones],
    }


@pytest.mark.parametrize(
    ("judged", "verdict"),
    [
        (judge.runtime({"python3.14": "", "arm64": ""}), Verdict.YES),
        (judge.runtime({"python3.14": "InvalidParameterValueException", "arm64": ""}), Verdict.NO),
        (judge.mapping_tags({"mappings": 4, "tagged": 4}), Verdict.YES),
        (judge.mapping_tags({"mappings": 4, "tagged": 0}), Verdict.NO),
        (judge.mapping_tags({"mappings": 0, "tagged": 0}), Verdict.OPEN),
        (judge.alarm_states({"OK": 3}), Verdict.YES),
        (judge.alarm_states({"OK": 3, "INSUFFICIENT_DATA": 1}), Verdict.NO),
        (judge.alarm_states({}), Verdict.OPEN),
        (judge.fault_documents({"A": {"code": "AccessDeniedException"}}), Verdict.OPEN),
        (judge.command_rate([]), Verdict.OPEN),
        (judge.command_rate([{"value": 5.0}, {"value": 0.5}]), Verdict.NO),
        (judge.command_rate([{"value": 5.0}]), Verdict.YES),
        (judge.injections({"sent": 0, "proofs": {}, "unproven": []}), Verdict.OPEN),
        (judge.injections({"sent": 2, "proofs": {"probe": 2}, "unproven": []}), Verdict.YES),
        (judge.injections({"sent": 1, "proofs": {"none yet": 1}, "unproven": ["it is protected"]}), Verdict.NO),
        (judge.command_tag({}), Verdict.OPEN),
        (judge.command_tag(_tags()), Verdict.YES),
        (judge.command_tag(_tags(other_value="AccessDenied")), Verdict.YES),
        (judge.command_tag(_tags(other_value="Success")), Verdict.NO),
        (judge.command_tag(_tags(consented="AccessDeniedException")), Verdict.NO),
        (judge.faults({}), Verdict.OPEN),
        (judge.faults({"faults": [{"fault": "cpu", "gone_after": 2}], "alarm": "success"}), Verdict.YES),
        (judge.faults({"faults": [{"fault": "cpu", "gone_after": 81}], "alarm": "success"}), Verdict.NO),
        (judge.faults({"faults": [{"fault": "cpu", "status": "Failed"}], "alarm": "success"}), Verdict.NO),
        (judge.stack_failures([]), Verdict.YES),
        (judge.stack_failures(["AWS::Scheduler::Schedule: the role cannot be assumed"]), Verdict.NO),
        (judge.crashes({"without_shutdown": 2, "with_shutdown": 0}), Verdict.YES),
        (judge.crashes({"without_shutdown": 2, "with_shutdown": 1}), Verdict.NO),
        (judge.crashes({"without_shutdown": 0, "with_shutdown": 0}), Verdict.OPEN),
        (judge.absent_role("NoSuchEntity"), Verdict.YES),
        (judge.absent_role("AccessDenied"), Verdict.NO),
        (judge.absent_role("Throttling"), Verdict.OPEN),
        (judge.attribute_condition({"allowed": "DryRunOperation", "other": "UnauthorizedOperation"}), Verdict.YES),
        (judge.attribute_condition({"allowed": "DryRunOperation", "other": "DryRunOperation"}), Verdict.NO),
        (
            judge.attribute_condition({"allowed": "UnauthorizedOperation", "other": "UnauthorizedOperation"}),
            Verdict.OPEN,
        ),
        (judge.attribute_condition({"allowed": "InternalError", "other": "InternalError"}), Verdict.OPEN),
        (judge.attribute_condition({}), Verdict.OPEN),
        (judge.late_termination([{"has_tag": True, "code": "DryRunOperation"}]), Verdict.YES),
        (judge.late_termination([{"has_tag": False, "code": "UnauthorizedOperation"}]), Verdict.NO),
        (judge.late_termination([]), Verdict.OPEN),
        (judge.leading_keys(_keys()), Verdict.YES),
        (judge.leading_keys(_keys(item_if_switch="AccessDeniedException")), Verdict.NO),
        (judge.leading_keys(_keys(switch="success")), Verdict.NO),
        (judge.leading_keys(_keys(switch_if_item="success")), Verdict.NO),
        (judge.leading_keys(_keys(item="AccessDeniedException", item_if_switch="AccessDeniedException")), Verdict.OPEN),
        (judge.leading_keys(_keys(item_if_switch="TransactionCanceledException")), Verdict.OPEN),
        (judge.leading_keys(_keys(switch="ThrottlingException")), Verdict.OPEN),
        (judge.completion([{"step": "create", "status": "done"}]), Verdict.YES),
        (judge.completion([{"step": "create", "status": "done"}, {"step": "leave", "status": "no"}]), Verdict.NO),
        (judge.completion([]), Verdict.OPEN),
        (judge.completion([{"step": "create", "status": "EC2 answers UnauthorizedOperation"}]), Verdict.OPEN),
        (judge.runtime({"python3.14": "AccessDeniedException", "arm64": ""}), Verdict.OPEN),
        (judge.conditional_writes(_writes()), Verdict.YES),
        (judge.conditional_writes(_writes(exists="success")), Verdict.NO),
        (judge.conditional_writes(_writes(other="success")), Verdict.NO),
        (judge.conditional_writes(_writes(same="PreconditionFailed")), Verdict.NO),
        (judge.conditional_writes(_writes(new="AccessDenied")), Verdict.OPEN),
        (judge.conditional_writes(_writes(exists="SlowDown")), Verdict.OPEN),
        (judge.cells(_record()), Verdict.YES),
        (judge.cells(_record(status="FAILED")), Verdict.NO),
        (judge.spot(_record()), Verdict.YES),
        (judge.spot(_record(status="INVALID")), Verdict.NO),
        (judge.spot(_record(spot="on-demand")), Verdict.OPEN),
        (judge.spot(_record(backup="spot")), Verdict.OPEN),
        (judge.spot(_record(zones="a")), Verdict.NO),
        (judge.node_checks([{"name": "a", "ok": True}]), Verdict.YES),
        (judge.node_checks([{"name": "a", "ok": True}, {"name": "b", "ok": False}]), Verdict.NO),
        (judge.node_checks([]), Verdict.OPEN),
    ],
)
def test_evidence_is_judged(judged: tuple[Verdict, str], verdict: Verdict) -> None:
    assert judged[0] is verdict
    assert judged[1]
