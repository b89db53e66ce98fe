"""The runbook's commands can be pasted: they name what AWS and this stack have, and the shell takes them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from typing import Any

import jmespath
import pytest

from infra import ROOT
from tests.infra.cfn import resources_of
from tests.infra.test_guides import model

RUNBOOK = (ROOT / "docs" / "guides" / "runbook.md").read_text(encoding="utf-8")
BLOCKS = [
    re.sub(r"^ {3}", "", block, flags=re.M) for block in re.findall(r"^ *```sh\n(.*?)^ *```", RUNBOOK, re.M | re.S)
]
INLINE = [span.replace("\n  ", "") for span in re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", RUNBOOK, flags=re.S))]

FUNCTIONS = next(block for block in BLOCKS if "output()" in block)


def snippets() -> list[str]:
    """Everything to be pasted: whole blocks, and commands within sentences."""
    own = re.compile(r"^(aws|output|part|log_group|logged|enable_schedule) ")
    return [*BLOCKS, *(span for span in INLINE if own.match(span) and span != "aws")]


def test_the_shell_takes_every_snippet() -> None:
    script = "\n".join(snippets())
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_no_block_has_a_comment() -> None:
    """Pasted into zsh as it comes, one is a command that is not found."""
    assert not re.search(r"^\s*#", "\n".join(BLOCKS), re.M)


def test_no_command_within_a_sentence_is_broken_into_two_lines() -> None:
    """Copied from a terminal, the shell would run each line by itself."""
    spans = re.findall(
        r"`((?:aws|output|part|logged|enable_schedule|troop) [^`]+)`", re.sub(r"```.*?```", "", RUNBOOK, flags=re.S)
    )
    assert not [span for span in spans if "\n" in span]


def test_outputs_are_the_stacks(template: Mapping[str, Any]) -> None:
    named = set(re.findall(r"\$\(output (\w+)\)", RUNBOOK))
    assert {"ActNowTopicArn", "ChaosStateMachineArn", "TeardownStateMachineArn"} <= named <= set(template["Outputs"])


def parts() -> list[str]:
    """Calls of the runbook's functions that find parts of the stack."""
    looked_up = sorted(set(re.findall(r"\$\((part [\w:]+(?: \w+)?)\)", RUNBOOK)))
    return [*looked_up, *sorted({f"log_group {name}" for name in re.findall(r"`logged (\w+) \d", RUNBOOK)})]


@pytest.fixture(scope="module")
def queries() -> dict[str, str]:
    """What each call asks CloudFormation for, in an answer's own query language."""
    script = "\n".join(f"printf '%s\\t' '{call}'; {call}" for call in parts())
    stub = 'aws() { while [ "$1" != --query ]; do shift; done; printf \'%s\\n\' "$2"; }'
    done = subprocess.run(
        ["bash", "-euc", f"{FUNCTIONS}\n{stub}\n{script}"], text=True, capture_output=True, check=True
    )
    return dict(line.split("\t") for line in done.stdout.splitlines())


@pytest.mark.parametrize("call", parts())
def test_each_finds_one_part_of_the_stack(template: Mapping[str, Any], queries: Mapping[str, str], call: str) -> None:
    summaries = [
        {"ResourceType": part["Type"], "LogicalResourceId": key, "PhysicalResourceId": key}
        for key, part in template["Resources"].items()
    ]
    ids = jmespath.search(queries[call], {"StackResourceSummaries": summaries})
    assert len(ids) == 1, ids


def test_shell_functions_are_defined_before_their_use() -> None:
    assert len(parts()) > 8
    assert not re.search(r"logs tail|LOG_GROUP", RUNBOOK), (
        "the first is of version 2 alone, the second nowhere to be found"
    )
    for name in ("output", "part", "log_group", "logged"):
        assert f"{name}() {{" in FUNCTIONS


def test_a_schedule_that_is_enabled_keeps_all_the_rest(template: Mapping[str, Any]) -> None:
    """What an update of a schedule does not give is set to its default."""
    (query,) = re.findall(r'--output json\s+--query "(\{.*?\})"', RUNBOOK.replace("\\\n", ""), re.S)
    takes = model("scheduler").operation_model("UpdateSchedule").input_shape
    for name, schedule in resources_of(template, "AWS::Scheduler::Schedule").items():
        there = schedule["Properties"] | {"State": "DISABLED", "Name": name, "Arn": "an ARN", "CreationDate": 0}
        request = jmespath.search(query, there)
        assert set(schedule["Properties"]) <= set(request) <= set(takes.members)
        zone = schedule["Properties"].get("ScheduleExpressionTimezone", "UTC")
        changed = {"State": "ENABLED", "ScheduleExpressionTimezone": zone}
        assert request == schedule["Properties"] | {"Name": name} | changed


def test_a_schedule_disabled_by_hand_is_drift(template: Mapping[str, Any]) -> None:
    """CloudFormation compares what the template mentions, so it has to mention what goes without saying."""
    schedules = resources_of(template, "AWS::Scheduler::Schedule")
    assert {name: schedule["Properties"].get("State") for name, schedule in schedules.items()} == dict.fromkeys(
        schedules, "ENABLED"
    )


def test_no_step_deploys_what_is_deployed() -> None:
    """Without a changed template that does nothing."""
    assert not re.search(r"deploy again", RUNBOOK, re.I)
