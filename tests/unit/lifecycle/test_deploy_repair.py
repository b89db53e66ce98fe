"""`make deploy REPAIR=1` puts back what was changed by hand, where CloudFormation can tell."""

from __future__ import annotations

import argparse
import re
import sys

import pytest

from cli.shared.errors import CliError, Exit
from infra import ROOT
from lifecycle import deploy, project
from tests.unit.lifecycle.world import DEPLOYED, Printed, Run, World

OPTION = "--revert-drift"


def test_drift_is_reverted_only_by_repair(run: Run, world: World, capsys: Printed) -> None:
    world.status, world.resources = "UPDATE_COMPLETE", DEPLOYED
    run(yes=True)
    assert OPTION not in world.done[-1]
    assert "changed manually" not in capsys.readouterr().out
    run(typed="y\n", repair=True)
    assert (world.done[-1][0], world.done[-1].count(OPTION)) == ("deploy", 1)
    output = capsys.readouterr().out
    assert output.index("changed manually") < output.index("[y/N]"), "before anybody says yes to it"


@pytest.mark.parametrize("status", [None, "REVIEW_IN_PROGRESS"])
def test_repair_of_a_missing_deployment_is_refused(run: Run, world: World, status: str | None) -> None:
    world.status = status
    with pytest.raises(CliError, match="no deployment Troop to repair: deploy without REPAIR") as refused:
        run(yes=True, repair=True)
    assert (refused.value.code, world.done) == (Exit.USAGE, [])


def test_aws_on_this_machine_knows_no_drift(run: Run, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.status, world.resources = "UPDATE_COMPLETE", DEPLOYED
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:4566")
    with pytest.raises(CliError, match="cannot detect manual changes") as refused:
        run("troop:bundle=machine", yes=True, repair=True)
    assert (refused.value.code, world.done) == (Exit.USAGE, [])


def test_the_pinned_cdk_knows_the_option_and_make_passes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert OPTION.removeprefix("--") in (project.CDK.parents[1] / "aws-cdk" / "lib" / "index.js").read_text("utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (option,) = re.findall(r"\$\(if \$\(REPAIR\),(\S+)\)", makefile)
    calls: list[argparse.Namespace] = []
    monkeypatch.setattr(deploy, "deploy", calls.append)
    monkeypatch.setattr(sys, "argv", ["deploy", option])
    deploy.main()
    assert calls[0].repair is True
