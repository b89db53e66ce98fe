"""The synthesis as a whole: nothing it needs, nothing it complains about, nothing that would clash."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import assertions
from cdk_nag import AwsSolutionsChecks

from cli.shared import settings_files
from cli.shared.settings_files import TriedSettings
from infra import ROOT
from infra.acknowledgements import acknowledgements
from infra.settings import read_settings
from infra.settings_record import record, record_in
from infra.stack import TroopStack
from tests.infra.conftest import CONTEXT, SHARED_CALENDAR, Synthesised, stack_of
from tests.infra.results import result, sources
from tests.infra.roles_of_benchmarks import LINKED
from troop.shared.outputs import SETTINGS_METADATA

Template = Mapping[str, Any]

NAMES_WITHIN_A_PARENT = {("AWS::IAM::Policy", "PolicyName"), ("AWS::ApiGateway::Stage", "StageName")}
"""Names that only have to be unique within the resource they belong to."""


def test_synth_has_nothing_to_complain_about(cli_synth: Synthesised) -> None:
    assert not re.search(r"warning|error|deprecated|\[W", cli_synth.output, re.IGNORECASE), cli_synth.output
    assert cli_synth.read("validation-report.json")["pluginReports"] == []
    manifest = cli_synth.read("manifest.json")
    kinds = {entry["type"] for entries in _metadata(cli_synth, manifest) for entry in entries}
    assert not kinds & {"aws:cdk:warning", "aws:cdk:error"}
    assert "missing" not in manifest


@pytest.fixture(scope="module")
def stack() -> TroopStack:
    """The stack of the default settings, built now whatever is stored, with paths as the CLI asks for them."""
    return stack_of(cdk.App(context=CONTEXT | {"aws:cdk:enable-path-metadata": True}))


def test_the_stack_is_for_any_account_and_region(cli_synth: Synthesised) -> None:
    stack = cli_synth.read("manifest.json")["artifacts"]["Troop"]
    assert stack["environment"] == "aws://unknown-account/unknown-region"
    assert stack["properties"]["tags"] == {"troop:deployment": "Troop"}


def test_cfn_lint_has_no_finding(cli_synth: Synthesised, two_stacks: Synthesised) -> None:
    """In two regions of the largest partition and one of each other, all at once: one reading of the templates.

    It takes many seconds, so templates without findings are linted again only after a change.
    """
    regions = ["us-east-1", "eu-central-1", "us-gov-west-1", "cn-north-1"]
    files = [cli_synth.folder / "Troop.template.json", two_stacks.folder / "Blue.template.json"]
    options = ["--regions", *regions]

    def lint(folder: Path) -> None:
        command = [str(Path(sys.executable).with_name("cfn-lint")), *options, "--", *map(str, files)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout.strip()) == (0, ""), done.stdout + done.stderr

    configurations = sorted(file for folder in (ROOT, Path.home()) for file in folder.glob(".cfnlintrc*"))
    read = [file.read_bytes() for file in (*configurations, *files)]
    result("lint", version("cfn-lint"), *options, *read, create=lint)


def test_no_arn_names_a_partition(template: Template, blue: Template) -> None:
    for variant in (template, blue):
        texts = [value for _, value in _texts(variant["Resources"])]
        assert {value for value in texts if re.search(r"arn:aws[\w-]*:", value)} <= {SHARED_CALENDAR}
        # The services' own roles have these paths in every partition.
        own = {f":role/aws-service-role/{service}/{name}" for service, name in LINKED.items()}
        assert {value for value in texts if "amazonaws.com/" in value} == own


def test_no_resource_has_a_fixed_name(template: Template, blue: Template) -> None:
    for variant in (template, blue):
        for name, resource in variant["Resources"].items():
            for key, value in resource.get("Properties", {}).items():
                if key == "Name" or (key.endswith("Name") and key.startswith(resource["Type"].rsplit("::", 1)[1])):
                    named = (resource["Type"], key) in NAMES_WITHIN_A_PARENT or not isinstance(value, str)
                    assert named, f"{name}.{key} is {value!r}"


def test_deployments_differ_in_nothing_but_their_settings(blue: Template, green: Template) -> None:
    def kinds(variant: Template) -> Counter[str]:
        return Counter(resource["Type"] for resource in variant["Resources"].values())

    access_logs = {"AWS::ApiGateway::Account": 1, "AWS::IAM::Role": 1, "AWS::Logs::LogGroup": 1}
    assert kinds(blue) - kinds(green) == {"AWS::Scheduler::Schedule": 2, **access_logs}
    zone = {f"AWS::EC2::{kind}": 1 for kind in ("Subnet", "RouteTable", "SubnetRouteTableAssociation")}
    assert kinds(green) - kinds(blue) == zone
    for variant, name in ((blue, "Blue"), (green, "Green")):
        # Ids within the template, and what a console shows for a network: these need not be unique.
        shown = re.compile(rf".*ApiPermission.*|AllowEventRule\w+|{name}/Benchmarks/Network/Vpc(/NodesSubnet\d)?")
        assert not [value for _, value in _texts(variant) if name in value and not shown.fullmatch(value)]


def test_outputs_tell_where_things_are(template: Template) -> None:
    assert set(template["Outputs"]) == {
        *("ApiUrl", "GroupTagsTable", "EventsTable", "StateTable", "DecisionsTable", "ChangesTable"),
        *(
            "ChaosStateMachineArn",
            "OnDemandStateMachineArn",
            "WorkBucket",
            "ActNowTopicArn",
            "WarningTopicArn",
            "SaltSecretArn",
            "NewsTopicArn",
            "EventBusName",
            "WidgetsFunctionArn",
        ),
        *("RunsTable", "ResultsBucket", "BenchmarkStateMachineArn", "TeardownStateMachineArn", "FleetStateMachineArn"),
    }
    assert not [output for output in template["Outputs"].values() if "Export" in output]


def test_the_template_tells_the_settings_that_decide(template: Template) -> None:
    """`troop plan` decides by them."""
    metadata = json.loads(template["Metadata"][SETTINGS_METADATA])
    settings = read_settings(CONTEXT)
    assert settings_files.make({**metadata, "deployment": "Troop"}) == TriedSettings(
        settings.chaos, settings.tick_minutes
    )
    assert record_in(template) == record(settings)


def test_two_synths_give_the_same(stack: TroopStack, template: Template) -> None:
    """Also one of now and one that was stored."""
    again = assertions.Template.from_stack(stack).to_json()
    assert list(_texts(again["Resources"])) == list(_texts(template["Resources"]))


@pytest.fixture(scope="module")
def unacknowledged(tmp_path_factory: pytest.TempPathFactory) -> set[tuple[str, str]]:
    """What AwsSolutions finds in the stack without its acknowledgements: (rule, path of the construct)."""
    folder = result("nag", sources(), create=lambda partial: _report_findings(partial, tmp_path_factory.mktemp("nag")))
    report = json.loads((folder / "validation-report.json").read_text())
    return {
        (violation["ruleName"], violating["constructPath"])
        for plugin in report["pluginReports"]
        for violation in plugin["violations"]
        for violating in violation["violatingConstructs"]
    }


def _report_findings(partial: Path, folder: Path) -> None:
    app = cdk.App(context=CONTEXT, outdir=str(folder))
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    stack_of(app, inside_instances=True)
    with pytest.raises(RuntimeError, match=r"AwsSolutions-S1\b"):
        app.synth()
    shutil.copy(folder / "validation-report.json", partial)


def test_every_acknowledgement_has_its_finding_and_its_reason(unacknowledged: set[tuple[str, str]]) -> None:
    stack = stack_of(cdk.App(context=CONTEXT), inside_instances=True)
    for entry in acknowledgements(stack):
        rule, path = f"AwsSolutions-{entry.finding}", entry.construct.node.path
        findings = [at for name, at in unacknowledged if name == rule and at.startswith(path)]
        assert findings, f"{rule} is acknowledged for {path}, where it finds nothing"
        assert len(entry.reason) > 40


def _metadata(synthesised: Synthesised, manifest: Mapping[str, Any]) -> Iterator[list[dict[str, Any]]]:
    for artifact in manifest["artifacts"].values():
        yield from artifact.get("metadata", {}).values()
        if extra := artifact.get("additionalMetadataFile"):
            yield from synthesised.read(extra).values()


def _texts(value: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a template, save metadata, with where it stands."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key != "Metadata":
                yield from _texts(inner, f"{where}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, where)
    elif isinstance(value, str):
        yield where, value
