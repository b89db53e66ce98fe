"""Stages: what each has of its own, over the defaults, and under what was asked for."""

from __future__ import annotations

from typing import Any

import pytest

from troop.shared.errors import SettingsError
from troop.shared.stages import chosen, in_stage, stages_of

KNOWN = ("deployment", "probability", "method")
DEFAULTS = {"deployment": "Troop", "probability": 0.2, "method": "crash"}


def test_a_stage_has_its_own_over_the_defaults() -> None:
    raw = DEFAULTS | {"stage": "prod", "stages": {"prod": {"probability": 0.1}}}
    assert in_stage(raw, "prod", {"probability": 0.1}) == DEFAULTS | {"deployment": "Troop-prod", "probability": 0.1}


def test_a_stage_may_name_its_deployment() -> None:
    assert in_stage(DEFAULTS, "prod", {"deployment": "Chaos"})["deployment"] == "Chaos"


@pytest.mark.parametrize("key", KNOWN)
def test_option_of_the_command_overrides_the_stage(key: str) -> None:
    raw = DEFAULTS | {key: "asked for"}
    own = {"deployment": "Chaos", "probability": 0.1, "method": "drain"}
    assert in_stage(raw, "prod", own, [key]) == own | {key: "asked for"}


@pytest.mark.parametrize("none", [{}, {"stages": None}, {"stages": {}}, {"stages": "{}"}])
def test_there_need_be_no_stages(none: dict[str, Any]) -> None:
    assert stages_of(DEFAULTS | none, KNOWN) == {}


def test_stages_may_be_text_as_the_command_line_passes_them() -> None:
    assert stages_of({"stages": '{"prod": {"probability": 1}}'}, KNOWN) == {"prod": {"probability": 1}}


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ("[]", "troop:stages is '[]': must be a JSON object"),
        ({"prod": 1}, "troop:stages.prod is 1: must be a JSON object"),
        ({"9": {}}, "troop:stages.9 is {}: must be named by a letter"),
        ({"a b": {}}, "troop:stages.a b is {}: must be named by a letter"),
        ({"p" * 21: {}}, "at most 20"),
        (
            {"prod": {"probabilty": 1}},
            "prod.probabilty is 1: must be spelled troop:stages.prod.probability",
        ),
        ({"prod": {"stage": "x"}}, "troop:stages.prod.stage is 'x'"),
    ],
)
def test_malformed_stage_is_named(stages: Any, message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        stages_of({"stages": stages}, KNOWN)
    assert message in str(refused.value)


@pytest.mark.parametrize(("stage", "expected"), [(None, None), ("", None), ("prod", "prod")])
def test_at_most_one_is_chosen(stage: Any, expected: str | None) -> None:
    assert chosen({"stage": stage}, ["review", "prod"]) == expected


@pytest.mark.parametrize(
    ("stage", "stages", "message"),
    [
        ("prd", ["review", "prod"], "troop:stage is 'prd': must be spelled prod"),
        ("x", ["review", "prod"], "must be one of review, prod"),
        (7, ["review"], "troop:stage is 7"),
        ("prod", [], "must be left out"),
    ],
)
def test_a_stage_that_does_not_exist(stage: Any, stages: list[str], message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        chosen({"stage": stage}, stages)
    assert message in str(refused.value)
