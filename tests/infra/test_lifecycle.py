"""What the real templates leave behind, and what a later deployment takes over."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest

from cli.shared import aws
from cli.shared.errors import CliError
from infra import ROOT
from lifecycle.bootstrap import bootstrap_missing
from lifecycle.leftovers import buckets_to_empty, leftovers
from lifecycle.resources import Resource
from lifecycle.retained import RetainedTable, imports
from lifecycle.takeover import resource_of
from lifecycle.zones import zones_there
from tests.infra.cfn import resources_of
from tests.infra.conftest import Synthesised
from troop.shared.tags import DATA_TAG, DEPLOYMENT_TAG

Template = Mapping[str, Any]
TABLE = "AWS::DynamoDB::Table"


def ids(template: Template) -> dict[str, str]:
    return {logical_id: f"physical-{logical_id}" for logical_id in template["Resources"]}


def test_every_table_says_itself_what_it_holds_and_of_which_deployment(template: Template) -> None:
    """The stack's tags go with a deployment that is rolled back; what takes a table over has to agree with it."""
    there = RetainedTable("t", "Events", datetime(2026, 11, 20, tzinfo=UTC), 1, {})
    for name, table in resources_of(template, TABLE).items():
        expected = [{"Key": DATA_TAG, "Value": name}, {"Key": DEPLOYMENT_TAG, "Value": {"Ref": "AWS::StackName"}}]
        assert table["Properties"]["Tags"] == resource_of(there, table)["Properties"]["Tags"] == expected


def test_all_data_stays_and_comes_with_the_commands_that_remove_it(template: Template) -> None:
    stays = leftovers(template, ids(template), "eu-west-1")
    tables = [leftover for leftover in stays if leftover.kind == "table"]
    assert len(tables) == len(resources_of(template, TABLE))
    assert stays[: len(tables)] == tables
    for table in tables:
        protection_off, wait, delete = table.commands
        where = f"--region eu-west-1 --table-name {table.physical_id}"
        assert protection_off == f"aws dynamodb update-table {where} --no-deletion-protection-enabled"
        assert wait == f"aws dynamodb wait table-exists {where}"
        assert delete == f"aws dynamodb delete-table {where}"
    kinds = {leftover.kind for leftover in stays}
    assert kinds == {"table", "bucket", "secret", "log group"}
    assert all(leftover.commands for leftover in stays)
    assert buckets_to_empty(template, ids(template)) == []


def test_resource_that_was_never_created_does_not_remain(template: Template) -> None:
    assert leftovers(template, {}, "eu-west-1") == []


def test_a_throw_away_deployment_leaves_nothing_and_its_buckets_are_emptied(green: Template) -> None:
    assert leftovers(green, ids(green), "eu-west-1") == []
    work, results = sorted(buckets_to_empty(green, ids(green)), reverse=True)
    assert "WorkBucket" in work
    assert "Results" in results


def test_the_assembly_says_which_bootstrap_it_requires(cli_synth: Synthesised, monkeypatch: pytest.MonkeyPatch) -> None:
    class Ssm:
        def get_parameter(self, Name: str) -> dict[str, Any]:
            assert Name.startswith("/cdk-bootstrap/")
            return {"Parameter": {"Value": "5"}}

    monkeypatch.setattr(aws, "client", lambda *_: Ssm())
    with pytest.raises(CliError, match="has version 5, but Troop requires 6"):
        bootstrap_missing(boto3.Session(region_name="eu-west-1"), "111122223333", cli_synth.folder, "Troop")


def test_the_document_names_the_table_of_runs_as_the_template_does(template: Template) -> None:
    text = (ROOT / "docs" / "guides" / "removing.md").read_text()
    (named,) = re.findall(r"--resource-mapping-inline '(.*)'", text)
    (logical_id,) = json.loads(named)
    assert template["Resources"][logical_id] == resources_of(template, TABLE)["Runs"]


def test_tables_fit_their_own_template(template: Template) -> None:
    """Names, keys and indices as a table of this very version has them."""
    chosen = {}
    for name, table in resources_of(template, TABLE).items():
        properties = table["Properties"]
        schema = {
            index.get("IndexName", ""): tuple(sorted((k["KeyType"], k["AttributeName"]) for k in index["KeySchema"]))
            for index in [properties, *properties.get("GlobalSecondaryIndexes", [])]
        }
        chosen[name] = RetainedTable(f"old-{name}", name, datetime(2026, 11, 20, tzinfo=UTC), 1, schema)
    assert {table.part for table in imports(template, chosen).values()} == set(chosen)
    assert all(template["Resources"][key]["Type"] == TABLE for key in imports(template, chosen))


def test_the_networks_subnets_are_known_by_their_place(template: Template, monkeypatch: pytest.MonkeyPatch) -> None:
    """By logical ids that the library makes up: where they change, zones would be chosen anew."""

    class Ec2:
        def describe_subnets(self, Filters: list[dict[str, Any]]) -> dict[str, Any]:
            names = Filters[0]["Values"]
            return {"Subnets": [{"SubnetId": name, "AvailabilityZone": name[0]} for name in names]}

    monkeypatch.setattr(aws, "client", lambda *_: Ec2())
    cidrs = {"10.0.0.0/19": "a", "10.0.32.0/19": "b", "10.0.64.0/19": "c"}
    resources = {
        key: Resource(resource["Type"], cidrs.get(resource.get("Properties", {}).get("CidrBlock"), "?") + f"-{key}")
        for key, resource in template["Resources"].items()
    }
    assert zones_there(boto3.Session(), resources) == {0: "a", 1: "b", 2: "c"}
