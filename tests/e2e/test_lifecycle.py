"""`make deploy` and `make destroy`: what stays is said and taken over, and what is thrown away leaves nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from cli.shared.errors import Exit
from local.launcher import LocalAccount
from local.project import ROOT
from tests.e2e.conftest import BUSY, Deployment
from troop.shared.tags import DATA_TAG, DEPLOYMENT_TAG

DURABLE = "Durable"


class Lifecycle:
    """The two commands, as the Makefile runs them, without a terminal."""

    def __init__(self, account: LocalAccount) -> None:
        self.account = account
        python_path = f"{ROOT}{os.pathsep}{ROOT / 'functions'}"
        self.environment = os.environ | account.exports | {"PYTHONPATH": python_path}

    def run(self, command: str, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", f"lifecycle.{command}", *words],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=2 * BUSY,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def deploy(self, name: str, *words: str, code: int = 0) -> str:
        small = ("-c", "troop:dashboards=false")  # the demo deploys them
        return self.run("deploy", "--deployment", name, *small, *words, code=code)

    def outputs(self, name: str) -> dict[str, str]:
        (stack,) = self.account.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
        return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}

    def tables(self, name: str) -> set[str]:
        names = self.account.client("dynamodb").list_tables()["TableNames"]
        return {table for table in names if table.startswith(f"{name}-")}


@pytest.fixture(scope="module")
def lifecycle(account: LocalAccount) -> Lifecycle:
    return Lifecycle(account)


def test_a_second_deployment_takes_over_what_the_first_has_left(lifecycle: Lifecycle) -> None:
    Deployment(lifecycle.account, DURABLE)
    first, tables = lifecycle.outputs(DURABLE), lifecycle.tables(DURABLE)
    dynamodb = lifecycle.account.client("dynamodb")
    switch: dict[str, Any] = {"key": {"S": "switch"}, "leashed": {"BOOL": False}, "halted": {"BOOL": True}}
    dynamodb.put_item(TableName=first["StateTable"], Item=switch)
    opt_out: dict[str, Any] = {"unit": {"S": "ledger"}, "opt_out": {"BOOL": True}}
    dynamodb.put_item(TableName=first["GroupTagsTable"], Item=opt_out)
    for table in tables:
        arn = dynamodb.describe_table(TableName=table)["Table"]["TableArn"]
        tags = dynamodb.list_tags_of_resource(ResourceArn=arn)["Tags"]
        assert {tag["Key"] for tag in tags} == {DEPLOYMENT_TAG, DATA_TAG}, "DynamoDB has no tags of CloudFormation"

    assert f"rerun with CONFIRM={DURABLE}" in lifecycle.run("destroy", "--deployment", DURABLE, code=Exit.NOT_CONFIRMED)
    assert "nothing was removed" in lifecycle.run(
        "destroy", "--deployment", DURABLE, "--confirm", "Durabl", code=Exit.NOT_CONFIRMED
    )
    assert lifecycle.outputs(DURABLE) == first
    output = lifecycle.run("destroy", "--deployment", DURABLE, "--confirm", DURABLE)
    for table in tables:
        assert f"--table-name {table} --no-deletion-protection-enabled" in output
        assert f"delete-table --region us-east-1 --table-name {table}" in output
    assert f"s3://{first['WorkBucket']}" in output
    assert lifecycle.tables(DURABLE) == tables
    lifecycle.run("destroy", "--deployment", DURABLE, "--confirm", DURABLE, code=Exit.NO_DEPLOYMENT)

    _stays_leashed_beside(lifecycle, first)

    # As an earlier version has left it, which told nobody.
    dynamodb.update_table(TableName=first["ChangesTable"], StreamSpecification={"StreamEnabled": False})

    # As somebody plants it who may make and tag tables.
    planted = f"{DURABLE}-DataState-PLANTED"
    planted_tags = [{"Key": DEPLOYMENT_TAG, "Value": DURABLE}, {"Key": DATA_TAG, "Value": "State"}]
    dynamodb.create_table(
        TableName=planted,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
        Tags=planted_tags,
    )
    dynamodb.put_item(TableName=planted, Item=switch)
    output = lifecycle.deploy(DURABLE, "--yes", "--unleashed", code=Exit.USAGE)
    assert f"State: {planted}, created" in output
    assert "of unknown origin" in output
    dynamodb.delete_table(TableName=planted)
    output = lifecycle.deploy(DURABLE, "--yes", "--unleashed", "-c", "troop:benchmarks=false")
    assert f"Deployment {DURABLE}, account 000000000000, region us-east-1" in output
    assert "New deployment" in output
    assert "UNLEASHED (the switch in the retained table)" in output
    runs = first["RunsTable"]
    for table in tables - {runs}:
        assert table in output
    assert runs not in output
    # A deployment that is there takes over what it has a place for again.
    output = lifecycle.deploy(DURABLE, "--yes", "--reset")
    assert "  troop:benchmarks: false -> true (reset)\n" in output
    assert f"Runs: {runs}, created" in output
    assert "a subnet in each of these zones: us-east-1a, us-east-1b, us-east-1c." in output
    assert "It starts" not in output
    assert lifecycle.tables(DURABLE) == tables
    second = lifecycle.outputs(DURABLE)
    named = {key for key in first if key.endswith("Table")}
    assert {second[key] for key in named} == {first[key] for key in named} == tables
    assert dynamodb.get_item(TableName=second["StateTable"], Key={"key": {"S": "switch"}})["Item"] == switch
    key = {"unit": {"S": "ledger"}}
    assert dynamodb.get_item(TableName=second["GroupTagsTable"], Key=key)["Item"] == opt_out
    table = dynamodb.describe_table(TableName=second["EventsTable"])["Table"]
    assert table["DeletionProtectionEnabled"] is True
    assert len(table["GlobalSecondaryIndexes"]) == 3
    streams = {
        dynamodb.describe_table(TableName=second[f"{name}Table"])["Table"]["LatestStreamArn"]
        for name in ("Events", "Changes", "GroupTags", "State")
    }
    mappings = lifecycle.account.client("lambda").list_event_source_mappings()["EventSourceMappings"]
    assert {m["EventSourceArn"] for m in mappings if f"{DURABLE}-" in m["EventSourceArn"]} == streams

    assert (
        lifecycle.run("destroy", "--deployment", DURABLE, "--confirm", DURABLE, "--purge").count("deleted: table") == 6
    )
    assert lifecycle.tables(DURABLE) == set()
    assert second["WorkBucket"] not in {b["Name"] for b in lifecycle.account.client("s3").list_buckets()["Buckets"]}


def _stays_leashed_beside(lifecycle: Lifecycle, earlier: dict[str, str]) -> None:
    """Deploys as a plain `cdk deploy` does: with empty tables beside the retained ones, which nobody has declined."""
    plain = Deployment(lifecycle.account, DURABLE)
    refused = plain.view.api.request("PATCH", "switch", body={"leashed": False})
    assert refused.status == 409
    for key in ("StateTable", "GroupTagsTable"):
        assert earlier[key] in refused.body["message"]
    assert plain.view.api.get("switch").body["leashed"] is True
    checks = {check["name"]: check for check in plain.view.api.get("health").body["checks"]}
    assert earlier["StateTable"] in checks["earlier-tables"]["todo"]
    output = lifecycle.deploy(DURABLE, "--yes", code=Exit.USAGE)
    assert "then make deploy ADOPT=" in output
    lifecycle.run("destroy", "--deployment", DURABLE, "--confirm", DURABLE, "--purge")


def test_a_throw_away_deployment_goes_with_all_it_has(lifecycle: Lifecycle) -> None:
    disposable = Deployment(lifecycle.account, "Disposable")
    name, bucket = disposable.name, disposable.outputs["WorkBucket"]
    s3 = lifecycle.account.client("s3")
    s3.put_object(Bucket=bucket, Key="ticks/one.json", Body=b"[]")
    events = lifecycle.account.client("events")
    events.put_rule(Name="page-us", EventBusName=name, EventPattern='{"source": ["troop"]}')
    output = lifecycle.run("destroy", "--deployment", name, "--confirm", name)
    assert "Nothing of it stays" in output
    assert "page-us -> nothing" in output
    assert name not in {bus["Name"] for bus in events.list_event_buses()["EventBuses"]}
    assert lifecycle.tables(name) == set()
    assert bucket not in {other["Name"] for other in s3.list_buckets()["Buckets"]}
