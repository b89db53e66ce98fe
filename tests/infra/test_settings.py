"""Context to settings: what is accepted, and what a refusal tells."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import assertions

from infra import ROOT
from infra.logs import make_log_group
from infra.settings import LOG_RETENTION_DAYS, DeploymentSettings, ExistingNetwork, check_region, read_settings
from tests.infra.conftest import CALENDARS, CONTEXT
from troop.shared.errors import SettingsError
from troop.shared.settings import KEYS, parse_settings


def settings_with(**settings: Any) -> DeploymentSettings:
    return read_settings(CONTEXT | {f"troop:{key}": value for key, value in settings.items()})


@pytest.mark.parametrize(
    ("endpoint", "bundle", "chosen"),
    [
        ("", "auto", "lambda"),
        ("https://vpce-1.example.com", "auto", "lambda"),
        ("http://127.0.0.1:4566", "auto", "machine"),
        ("http://127.0.0.1:4566", "lambda", "lambda"),
        ("", "machine", "machine"),
    ],
)
def test_packages_are_for_the_aws_that_is_deployed_to(
    monkeypatch: pytest.MonkeyPatch, endpoint: str, bundle: str, chosen: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    assert settings_with(bundle=bundle).bundle == chosen


def test_the_defaults_are_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    settings = read_settings(CONTEXT)
    assert settings.chaos.leashed
    assert settings.retain_data
    assert settings.bundle == "lambda"
    assert settings.tick_minutes == 15
    assert settings.chaos.participation == "opt-out"


def test_context_of_others_is_not_ours() -> None:
    assert read_settings(CONTEXT | {"@aws-cdk/core:anything": True, "aws:cdk:bundling-stacks": ["**"]})


def test_the_command_line_passes_text() -> None:
    settings = settings_with(
        leashed="false", probability="1", tick_minutes="1", retain_data="false", calendars=json.dumps(CALENDARS)
    )
    assert (settings.chaos.leashed, settings.chaos.probability) == (False, 1.0)
    assert (settings.tick_minutes, settings.retain_data) == (1, False)
    assert set(settings.chaos.calendars) == {"default", "tel-aviv", "night"}


def test_targets_by_name_need_an_existing_network(refused: Callable[..., str]) -> None:
    network = {"vpc": "vpc-0123456789abcdef0", "subnets": ["subnet-0123abcd"]}
    both = ["shop:443", "sg-0123456789abcdef0:80-90"]
    assert settings_with(network=network, allowed_targets=both).chaos.allowed_targets == tuple(both)
    assert settings_with(benchmarks=False, allowed_targets=both).chaos.allowed_targets == tuple(both)
    assert settings_with(allowed_targets="10.20.0.0/16:443").chaos.allowed_targets == ("10.20.0.0/16:443",)
    message = refused(allowed_targets=["10.20.0.0/16:443", "shop:443"])
    assert "troop:allowed_targets is 'shop:443'" in message
    assert "troop:network" in message


def test_default_network_is_the_deployments_own() -> None:
    network = {"vpc": "vpc-0123456789abcdef0", "subnets": ["subnet-0123abcd", "subnet-0123456789abcdef0"]}
    expected = ExistingNetwork("vpc-0123456789abcdef0", ("subnet-0123abcd", "subnet-0123456789abcdef0"))
    assert settings_with(network=network).network == settings_with(network=json.dumps(network)).network == expected
    assert [settings_with(network=nothing).network for nothing in (None, "", "null")] == [None, None, None]


@pytest.mark.parametrize(
    "zones",
    ["us-gov-west-1c, us-gov-west-1a", '["us-gov-west-1c", "us-gov-west-1a"]', ["us-gov-west-1c", "us-gov-west-1a"]],
)
def test_zones_are_a_number_or_names_in_their_order(zones: Any) -> None:
    assert settings_with(zones=zones).zones == ("us-gov-west-1c", "us-gov-west-1a")
    assert settings_with(zones="2").zones == settings_with(zones=2).zones == 2


def test_the_functions_read_what_was_checked() -> None:
    settings = settings_with(
        probability="0.5",
        units='{"web-v*": "web"}',
        calendars=json.dumps(CALENDARS),
        allowed_buckets="my-data,other",
    )
    document = json.loads(settings.chaos_json)
    assert set(document) == set(KEYS)
    assert document["probability"] == 0.5
    assert parse_settings(document, prefix="") == settings.chaos


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"tick_minutes": 7}, ("troop:tick_minutes", "7", "1, 5, 10, 15")),
        ({"tick_minutes": 20}, ("troop:tick_minutes", "20", "1, 5, 10, 15")),
        ({"log_retention_days": 10}, ("troop:log_retention_days", "10", "1, 3, 5, 7, 14")),
        ({"retain_data": "perhaps"}, ("troop:retain_data", "'perhaps'", "true or false")),
        ({"bundle": "docker"}, ("troop:bundle", "'docker'", "auto, lambda, machine")),
        ({"probability": 1.5}, ("troop:probability", "1.5", "0 to 1")),
        ({"deployment": "9lives"}, ("troop:deployment", "'9lives'", "a letter")),
        ({"recovery_timeout_minutes": 0}, ("troop:recovery_timeout_minutes", "0", "1 to 720")),
        ({"decision_retention_days": 0}, ("troop:decision_retention_days", "0", "1 to 3650")),
        ({"decision_retention_days": "ever"}, ("troop:decision_retention_days", "'ever'", "1 to 3650")),
        ({"units": "[]"}, ("troop:units", "'[]'", "an object from patterns")),
        ({"calendars": "{"}, ("troop:calendars", "'{'", "a JSON object")),
        ({"calendars": {"default": CALENDARS["default"] | {"lunch": "12:00"}}}, ("troop:calendars.default.lunch",)),
        ({"zones": 0}, ("troop:zones", "0", "1 to 6")),
        ({"zones": []}, ("troop:zones", "[]", "a whole number from 1 to 6, or names of as many")),
        ({"zones": "a,b"}, ("troop:zones", "'a,b'", "names of as many availability zones of one region")),
        ({"zones": '["us-east-1a"'}, ("troop:zones", "names of as many availability zones")),
        ({"zones": {"us-east-1a": 1}}, ("troop:zones", "names of as many availability zones")),
        ({"zones": ["us-east-1a", "us-west-2b"]}, ("troop:zones", "of one region")),
        ({"zones": ["us-east-1a", "us-east-1a"]}, ("troop:zones", "each once")),
        ({"zones": ["us-west-2-lax-1a"]}, ("troop:zones", "names of as many availability zones")),
        ({"zones": [f"us-east-1{zone}" for zone in "abcdefg"]}, ("troop:zones", "1 to 6")),
        ({"zones": 7}, ("troop:zones", "7", "1 to 6")),
        ({"results_retention_days": 7}, ("troop:results_retention_days", "7", "8 to 3650")),
        ({"network": "vpc-0123abcd"}, ("troop:network", "null, or an object such as")),
        ({"network": {"vpc": "vpc-0123abcd"}}, ("troop:network", "null, or an object such as")),
        ({"network": {"vpc": "vpc-0123abcd", "subnets": []}}, ("troop:network", "null, or an object such as")),
        ({"network": {"vpc": "mine", "subnets": ["subnet-0123abcd"]}}, ("troop:network", "null, or an object such as")),
        ({"network": {"vpc": "vpc-0123abcd", "subnets": "subnet-0123abcd"}}, ("troop:network", "null, or an object")),
        ({"network": {"vpc": "vpc-0123abcd", "subnets": ["subnet-0123abcd"] * 2}}, ("each subnet once",)),
        ({"network": {"vpc": "vpc-0123abcd", "subnets": ["subnet-0123abcd"], "nat": True}}, ("troop:network", "null")),
        ({"allowed_buckets": ["*"]}, ("troop:allowed_buckets", "['*']", "a list of bucket names")),
        ({"max_nodes": 5001}, ("troop:max_nodes", "5001", "1 to 5000")),
        ({"probabilty": 1}, ("troop:probabilty", "1", "spelled troop:probability")),
        ({"retain": 1}, ("troop:retain", "1", "troop:retain_data")),
    ],
)
def test_a_refusal_names_key_value_and_what_is_allowed(
    refused: Callable[..., str], settings: dict[str, Any], parts: tuple[str, ...]
) -> None:
    message = refused(**settings)
    assert all(part in message for part in parts), message


@pytest.mark.parametrize("key", ["probability", "retain_data", "calendars"])
def test_a_missing_setting_is_named(key: str) -> None:
    context = {name: value for name, value in CONTEXT.items() if name != f"troop:{key}"}
    with pytest.raises(Exception, match=f"troop:{key} is None: must be "):
        read_settings(context)


def test_synth_ends_with_the_message_alone() -> None:
    environment = {**os.environ, "CDK_CONTEXT_JSON": json.dumps(CONTEXT | {"troop:min_healthy": "few"})}
    done = subprocess.run(
        [sys.executable, "app.py"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Settings: troop:min_healthy is 'few': must be a whole number from 1" in done.stderr
    assert "Traceback" not in done.stderr


def test_every_retention_is_the_days_it_says() -> None:
    stack = cdk.Stack()
    for days in LOG_RETENTION_DAYS:
        make_log_group(stack, f"Days{days}", settings_with(log_retention_days=days))
    groups = assertions.Template.from_stack(stack).find_resources("AWS::Logs::LogGroup")
    assert len(groups) == len(LOG_RETENTION_DAYS)
    for name, group in groups.items():
        assert name.startswith(f"Days{group['Properties']['RetentionInDays']}")


@pytest.mark.parametrize(
    "more", [{}, {"benchmarks": False}, {"network": {"vpc": "vpc-0123abcd", "subnets": ["subnet-0123abcd"]}}]
)
def test_zones_of_another_region_than_the_cdks_are_refused(more: dict[str, Any]) -> None:
    settings = settings_with(zones="us-east-1a,us-east-1b", **more)
    check_region(settings, "us-east-1")
    check_region(settings_with(zones=2), "eu-west-1")
    if more:
        check_region(settings, "eu-west-1")
    else:
        with pytest.raises(SettingsError, match=r"troop:zones is \['us-east-1a', .*\]: must be zones of eu-west-1"):
            check_region(settings, "eu-west-1")


def test_faults_inside_instances_are_refused_where_awss_documents_know_no_endpoint() -> None:
    settings = settings_with(inside_instances="true")
    check_region(settings, "eu-west-1")
    check_region(settings_with(), "cn-north-1")
    with pytest.raises(
        SettingsError, match="troop:inside_instances is True: must be false in cn-north-1: AWS's documents"
    ):
        check_region(settings, "cn-north-1")
