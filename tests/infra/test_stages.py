"""Stages as settings of a deployment: which value counts, and that all of them are checked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import aws_cdk as cdk
import pytest

from infra.settings import DeploymentSettings, read_settings
from tests.infra.conftest import CONTEXT
from troop.shared.choice import Choice

STAGES = tuple(CONTEXT["troop:stages"])


def staged(stage: str | None, **options: Any) -> DeploymentSettings:
    """As the command line has it: ``options`` are its -c KEY=VALUE."""
    context = {f"troop:{key}": value for key, value in options.items()}
    return read_settings(CONTEXT | {"troop:stage": stage} | context, CONTEXT)


def test_without_a_stage_the_defaults_hold() -> None:
    settings = staged(None)
    assert (settings.chaos.deployment, settings.chaos.probability, settings.chaos.min_healthy) == ("Troop", 0.2, 2)
    assert replace(staged(""), overrides=frozenset()) == settings


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_starts_leashed_under_a_name_of_its_own(stage: str) -> None:
    settings = staged(stage)
    assert settings.chaos.leashed
    assert settings.chaos.deployment == f"Troop-{stage}"


def test_stages_grow_gentler_towards_prod() -> None:
    review, staging, prod = (staged(stage) for stage in ("review", "staging", "prod"))
    assert review.chaos.probability > staging.chaos.probability > prod.chaos.probability
    assert review.chaos.min_healthy < staging.chaos.min_healthy < prod.chaos.min_healthy
    assert (review.retain_data, staging.retain_data, prod.retain_data) == (False, True, True)
    assert prod.chaos.max_in_flight < staging.chaos.max_in_flight


@pytest.mark.parametrize(
    ("options", "key", "expected"),
    [
        ({"min_healthy": "7"}, "min_healthy", 7),
        ({"min_healthy": "2"}, "min_healthy", 2),  # the default's own value, but asked for
        ({"leashed": "true"}, "leashed", True),
        ({"leashed": "false"}, "leashed", False),
        ({"deployment": "Mine"}, "deployment", "Mine"),
        ({"method": "drain"}, "method", (Choice("drain"),)),
        ({"probability": "0.5"}, "min_healthy", 3),
    ],
)
def test_the_command_line_counts_more_than_the_stage(options: dict[str, str], key: str, expected: Any) -> None:
    assert getattr(staged("prod", **options).chaos, key) == expected


def test_a_calendar_of_a_stage_counts_in_the_app_itself() -> None:
    """The CDK passes objects without the keys whose value is null, which is no change by the command line."""
    context = cdk.App(context=CONTEXT | {"troop:stage": "first-hour"}).node.get_all_context()
    assert "country" in CONTEXT["troop:calendars"]["default"]
    assert read_settings(context, CONTEXT).chaos.calendars["default"].time_zone == "UTC"
    everywhere = json.dumps({"default": {**CONTEXT["troop:calendars"]["default"], "time_zone": "Asia/Tokyo"}})
    by_command = read_settings(context | {"troop:calendars": everywhere}, CONTEXT)
    assert by_command.chaos.calendars["default"].time_zone == "Asia/Tokyo"


def test_asking_for_leashed_is_never_lost_to_a_stage_that_is_not() -> None:
    stages = json.dumps({"wild": {"leashed": False}})
    assert staged("wild", stages=stages).chaos.leashed is False
    assert staged("wild", stages=stages, leashed="true").chaos.leashed is True


@pytest.mark.parametrize("stage", [None, "prod"])
@pytest.mark.parametrize(
    ("own", "phrase"),
    [
        ({"probability": 2}, "troop:stages.review.probability is 2: must be a number from 0 to 1"),
        ({"tick_minutes": 7}, "troop:stages.review.tick_minutes is 7: must be one of 1, 5, 10, 15"),
        (
            {"retain_dat": True},
            "retain_dat is True: must be spelled troop:stages.review.retain_data",
        ),
        ({"network": {}}, "troop:stages.review.network is {}: must be null, or an object such as"),
        ({"deployment": "no good"}, "troop:stages.review.deployment is 'no good': must be a letter"),
        ({"calendars": {"default": {"open": "25:00"}}}, "troop:stages.review.calendars.default."),
        ({"calendars": {}}, "troop:stages.review.calendars is {}: must be an object with a calendar named default"),
    ],
)
def test_every_stage_is_checked_whichever_is_chosen(
    refused: Callable[..., str], stage: str | None, own: Mapping[str, Any], phrase: str
) -> None:
    message = refused(stage=stage, stages=CONTEXT["troop:stages"] | {"review": own})
    assert message.startswith("troop:stages.review.")
    assert phrase in message


def test_a_stage_that_does_not_exist(refused: Callable[..., str]) -> None:
    allowed = "must be one of review, staging, prod, first-hour"
    assert refused(stage="production") == f"troop:stage is 'production': {allowed}"


def test_the_functions_read_the_stages_values() -> None:
    settings = staged("prod")
    document = json.loads(settings.chaos_json)
    assert (document["deployment"], document["min_healthy"]) == ("Troop-prod", 3)
    assert "stages" not in document
