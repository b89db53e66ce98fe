"""Groups and settings to try out: what their files may say, and what is said of one that is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml

from cli.forecasts import group_files
from cli.shared import settings_files, yaml_files
from cli.shared.errors import CliError, Exit
from troop.chaos.facts import Switch
from troop.chaos.groups import Group, Instance
from troop.shared.day_rules import Country

ROOT = Path(__file__).resolve().parents[4]


def written(tmp_path: Path, text: str, name: str = "groups.yaml") -> Path:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return file


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(CliError) as error:
        group_files.load(written(tmp_path, text)).account(settings_files.load(None).chaos)
    assert error.value.code is Exit.USAGE
    return str(error.value).replace(str(tmp_path), "")


# ------------------------------------------------------------------ groups


def test_a_group_with_everything(tmp_path: Path) -> None:
    entry = {
        "name": "web-v042",
        "desired": 3,
        "instances": [
            {"id": "i-1", "lifecycle": "InService", "health": "Healthy", "zone": "eu-central-1a", "weight": 2},
            {"id": "i-2", "lifecycle": "Terminating:Wait", "health": "UNHEALTHY", "scale_in_protected": True},
            {"id": "i-3", "protected": True},
        ],
        "tags": {"troop:unit": "web", "troop:probability": 0.5, "troop:opt_out": False, "troop:protected": None},
        "policy": {"probability": 0.1},
        "suspended_processes": ["Launch"],
    }
    for text in (json.dumps([entry]), yaml.safe_dump([entry])):
        read = group_files.load(written(tmp_path, text))
        account = read.account(settings_files.load(None).chaos)
        assert account.groups == (
            Group(
                "web-v042",
                3,
                (
                    Instance("i-1", zone="eu-central-1a", weight=2),
                    Instance("i-2", "Terminating:Wait", "Unhealthy", scale_in_protected=True),
                    Instance("i-3"),
                ),
                {"troop:unit": "web", "troop:probability": "0.5", "troop:opt_out": "false", "troop:protected": ""},
                frozenset({"Launch"}),
                propagated=frozenset({"troop:unit", "troop:probability", "troop:opt_out", "troop:protected"}),
            ),
        )
        assert account.items == {"web": {"probability": 0.1}}
        assert account.protected_instances == {"i-3"}
        assert account.switch == Switch(halted=False, leashed=False)


def test_omitted_instances_are_created_and_an_empty_list_stays_empty(tmp_path: Path) -> None:
    text = "- {name: a, desired: 2}\n- {name: b, desired: 2, instances: []}\n"
    first, second = group_files.load(written(tmp_path, text)).groups
    assert [i.instance_id for i in first.serving] == ["i-a-1", "i-a-2"]
    assert second.instances == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "/groups.yaml: must be a list of groups, each with name, desired"),
        ("{groups: []}", "must be a list of groups"),
        ("- web", "entry 1 is 'web': must be a mapping with name, desired, instances"),
        ("- {desired: 3}", "entry 1: name is missing"),
        ("- {name: web}", "entry 1 (web): desired is missing"),
        ("- {name: 5, desired: 1}", "entry 1: name is 5: must be text of 1 to 255 characters"),
        ("- {name: web, desired: -1}", "entry 1 (web): desired is -1: must be a whole number from 0 to 10000"),
        ("- {name: web, desired: true}", "desired is True: must be a whole number"),
        ("- {name: web, desird: 3}", "entry 1 (web): desird is unknown: must be spelled desired"),
        ("- {name: web, desired: 1, instances: 1}", "entry 1 (web): instances is 1: must be a list"),
        (
            "- {name: web, desired: 1, instances: [i-1]}",
            "entry 1 (web): instances[0] is 'i-1': must be a mapping with id",
        ),
        ("- {name: web, desired: 1, instances: [{zone: a}]}", "instances[0]: id is missing"),
        (
            "- {name: web, desired: 1, instances: [{id: i-1, lifecycle: inservice}]}",
            "entry 1 (web): instances[0]: lifecycle is 'inservice': must be one of Pending, ",
        ),
        (
            "- {name: web, desired: 1, instances: [{id: i-1, health: ill}]}",
            "instances[0]: health is 'ill': must be one of Healthy, Unhealthy",
        ),
        ("- {name: web, desired: 1, tags: [a]}", "tags is ['a']: must be a mapping of text to values"),
        ("- {name: web, desired: 1, tags: {a: {b: c}}}", "must be a mapping of tags to text, which a is not"),
        ("- {name: web, desired: 1, policy: often}", "policy is 'often': must be a mapping of text to values"),
        (
            "- {name: web, desired: 1}\n- {name: web, desired: 2}",
            "entry 2 (web): name is 'web': must be unique in the file",
        ),
        (
            "- {name: a, desired: 1, instances: [{id: i-1}]}\n- {name: b, desired: 1, instances: [{id: i-1}]}",
            "entry 2 (b): instances[0]: id is 'i-1': must be unique in the file",
        ),
        ("- {name: web, name: db, desired: 1}", "/groups.yaml is not YAML: 'name' occurs twice"),
        ('[{"name": "web", "name": "db"}]', "/groups.yaml is not YAML: 'name' occurs twice"),
        ("- {name: web", "/groups.yaml is not YAML"),
        (
            r'[{"name": "\ud83d", "desired": 2}]',
            "/groups.yaml is not YAML: it has half of a surrogate pair, which is not a character",
        ),
        (r'- {name: a, desired: 2, tags: {"\udc00": x}}', r"'\udc00' has half of a surrogate pair"),
        (
            "- {name: a, desired: 1, tags: {troop:unit: u}, policy: {probability: 1}}\n"
            "- {name: b, desired: 1, tags: {troop:unit: u}, policy: {probability: 0.5}}",
            "/groups.yaml: a and b give their unit u different policies",
        ),
    ],
)
def test_mistake_is_reported_with_allowed_values(tmp_path: Path, text: str, message: str) -> None:
    assert message in refusal(tmp_path, text)


def test_escapes_of_whole_characters_are_read(tmp_path: Path) -> None:
    (read,) = group_files.load(written(tmp_path, r'[{"name": "w\u00e9b-\ud83d\ude80", "desired": 2}]')).groups
    assert read.name == "wéb-🚀"


def test_mistakes_are_reported_at_once_up_to_a_limit(tmp_path: Path) -> None:
    message = refusal(tmp_path, "- {name: a}\n- {name: b}\n")
    assert "(a): desired is missing; entry 2 (b): desired is missing" in message
    assert "; and 3 more" in refusal(tmp_path, "".join(f"- {{name: g{n}}}\n" for n in range(13)))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CliError, match=r"nothing\.yaml cannot be read"):
        group_files.load(tmp_path / "nothing.yaml")


def test_lifecycles_are_those_of_the_service() -> None:
    shape: Any = boto3.client("autoscaling", region_name="us-east-1").meta.service_model.shape_for("LifecycleState")
    assert set(group_files.LIFECYCLES) == set(shape.enum)


def test_the_example_is_read() -> None:
    assert len(group_files.load(ROOT / "examples" / "groups.yaml").groups) == 7


# ------------------------------------------------------------------ settings


def test_without_a_file_they_are_this_checkouts() -> None:
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    tried = settings_files.load(None)
    assert tried.tick_minutes == context["troop:tick_minutes"]
    assert tried.chaos.probability == context["troop:probability"]


def test_a_cdk_json_and_plain_keys_with_and_without_prefix_say_the_same(tmp_path: Path) -> None:
    variants = [
        settings_files.load(written(tmp_path, text, f"settings-{n}"))
        for n, text in enumerate(
            (
                '{"app": "python app.py", "context": {"troop:probability": 0.7, "@aws-cdk/core:x": true}}',
                "troop:probability: 0.7",
                "probability: '0.7'",
            )
        )
    ]
    assert variants[0] == variants[1] == variants[2]
    assert variants[0].chaos.probability == 0.7
    assert variants[0].chaos.max_per_day == settings_files.load(None).chaos.max_per_day


def test_a_calendar_in_yaml_is_read_as_it_looks(tmp_path: Path) -> None:
    text = """
calendars:
  default:
    time_zone: Europe/Oslo
    open: 09:00
    close: 15:00
    country: NO
    extra_dates: [{date: 2026-12-24, name: Christmas Eve}]
"""
    calendar = settings_files.load(written(tmp_path, text)).chaos.calendars["default"]
    assert (calendar.open_minute, calendar.close_minute, calendar.country) == (540, 900, Country("NO"))
    assert [extra.rule.text for extra in calendar.extra_dates] == ["2026-12-24"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("probability: 2", "/settings: troop:probability is 2: must be a number from 0 to 1"),
        ("probabilty: 1", "/settings: troop:probabilty is 1: must be spelled troop:probability"),
        ("tick_minutes: 7", "troop:tick_minutes is 7: must be one of 1, 5, 10, 15"),
        ("calendars: {default: {time_zone: Moon}}", "troop:calendars.default.time_zone is 'Moon': must be an IANA"),
        ("[1]", "/settings: must be a cdk.json, or a mapping of its keys to values"),
        ("{troop:probability: 1, probability: 0}", "probability occurs twice, with troop: and without"),
        ("5: 1", "5 is not a key of the settings"),
    ],
)
def test_a_setting_that_is_none(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CliError) as error:
        settings_files.load(written(tmp_path, text, "settings"))
    assert error.value.code is Exit.USAGE
    assert message in str(error.value).replace(str(tmp_path), "")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("15:00", "15:00"), ("no", "no"), ("2026-12-04", "2026-12-04"), ("2026-13-01", "2026-13-01"), ("010", "010")),
        *(
            ("12", 12),
            ("-3", -3),
            ("1.5", 1.5),
            ("1e-3", 0.001),
            (".5", 0.5),
            ("true", True),
            ("null", None),
            ("", None),
        ),
    ],
)
def test_scalars_are_those_of_json(text: str, value: Any) -> None:
    assert yaml_files.parse(f"key: {text}", "file") == {"key": value}


def test_the_stage_that_is_chosen_counts(tmp_path: Path) -> None:
    text = json.dumps({"troop:stage": "mad", "troop:stages": {"mad": {"probability": 1}}})
    assert settings_files.load(written(tmp_path, text)).chaos.probability == 1
    with pytest.raises(CliError, match="troop:stage"):
        settings_files.load(written(tmp_path, json.dumps({"troop:stage": "nowhere"})))
