"""`troop policy diff`: settings of two stages side by side, and what people have set in their deployments."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.client import connection
from cli.client.client import TroopClient
from cli.client.connection import Connection
from cli.client.deployment import Deployment
from cli.policies.stages import SETTINGS, effective, load
from cli.shared.context import Options
from cli.shared.errors import Exit
from infra.settings import read_settings, written_context
from tests.unit.cli.conftest import ARN, FakeApi, Run


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., str]:
    """A cdk.json with these stages, the rest as in ours."""

    def write(**stages: Any) -> str:
        path = tmp_path / "cdk.json"
        path.write_text(json.dumps({"context": written_context() | {"troop:stages": stages}, "app": "x"}))
        return str(path)

    return write


def diff(run: Run, *words: str) -> list[tuple[str | None, str, Any, Any]]:
    result = run("policy", "diff", *words, "--json")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["differences"]
    return [(row["unit"], row["key"], row["left"], row["right"]) for row in rows]


def test_difference_lists_only_differing_settings(run: Run, file: Callable[..., str]) -> None:
    path = file(a={"probability": 1, "method": "drain"}, b={"probability": 0.1, "deployment": "Bee", "method": "drain"})
    assert diff(run, "a", "b", "--settings", path) == [
        (None, "deployment", "Troop-a", "Bee"),
        (None, "probability", 1, 0.1),
    ]
    assert diff(run, "b", "a", "--settings", path)[1] == (None, "probability", 0.1, 1)


def test_a_value_of_its_own_that_is_the_defaults_is_no_difference(run: Run, file: Callable[..., str]) -> None:
    path = file(a={"deployment": "D", "min_healthy": 2}, b={"deployment": "D"})
    assert diff(run, "a", "b", "--settings", path) == []


def test_values_are_compared_and_not_their_spelling(run: Run, file: Callable[..., str]) -> None:
    path = file(a={"deployment": "D", "probability": "0.2"}, b={"deployment": "D", "probability": 0.2})
    assert diff(run, "a", "b", "--settings", path) == []


def test_calendars_are_compared_value_by_value(run: Run, file: Callable[..., str]) -> None:
    calendar = written_context()["troop:calendars"]["default"]
    later = {"default": calendar | {"close": "16:00"}, "night": {"time_zone": "Europe/Vienna"} | _HOURS}
    path = file(a={"deployment": "D"}, b={"deployment": "D", "calendars": later})
    assert diff(run, "a", "b", "--settings", path) == [
        (None, "calendars.default.close", "15:00", "16:00"),
        (None, "calendars.night.close", None, "23:00"),
        (None, "calendars.night.open", None, "20:00"),
        (None, "calendars.night.time_zone", None, "Europe/Vienna"),
    ]


_HOURS = {"open": "20:00", "close": "23:00"}


def test_for_people(run: Run, file: Callable[..., str]) -> None:
    path = file(a={"retain_data": False}, b={})
    lines = run("policy", "diff", "a", "b", "--settings", path).stdout.splitlines()
    assert [line.split() for line in lines] == [
        ["unit", "key", "a", "b"],
        ["-", "deployment", "Troop-a", "Troop-b"],
        ["-", "retain_data", "false", "true"],
    ]
    assert run("policy", "diff", "a", "a", "--settings", path).stdout == "a and a do not differ\n"


@pytest.mark.parametrize(("other", "code"), [("b", 1), ("a", 0)])
def test_the_exit_code_tells_on_request(run: Run, file: Callable[..., str], other: str, code: int) -> None:
    path = file(a={}, b={})
    assert run("policy", "diff", "a", other, "--settings", path).exit_code == 0
    assert run("policy", "diff", "a", other, "--settings", path, "--exit-code").exit_code == code


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ({"a": {}}, "troop:stage is 'b': must be one of a"),
        ({"a": {}, "b": {"probability": 7}}, "troop:stages.b.probability is 7: must be a number from 0 to 1"),
        ({"a": {}, "b": {"probabilty": 1}}, "must be spelled troop:stages.b.probability"),
    ],
)
def test_mistake_in_the_stages_is_reported(
    run: Run, file: Callable[..., str], stages: dict[str, Any], message: str
) -> None:
    result = run("policy", "diff", "a", "b", "--settings", file(**stages))
    assert result.exit_code == Exit.USAGE
    assert message in result.stderr


@pytest.mark.parametrize(("text", "message"), [("{}", "no settings"), ("[", "no settings"), (None, "cannot be read")])
def test_a_file_that_is_none(run: Run, tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "x.json"
    if text is not None:
        path.write_text(text)
    result = run("policy", "diff", "a", "b", "--settings", str(path))
    assert result.exit_code == Exit.USAGE
    assert message in result.stderr


def test_missing_settings_of_the_file_are_listed(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "cdk.json"
    held = written_context() | {"troop:stages": {"a": {}, "b": {}}}
    path.write_text(
        json.dumps({"context": {k: v for k, v in held.items() if k not in ("troop:leashed", "troop:units")}})
    )
    result = run("policy", "diff", "a", "b", "--settings", str(path))
    assert result.exit_code == Exit.USAGE
    assert "settings: troop:leashed, troop:units are missing" in result.stderr


@pytest.mark.parametrize("stage", ["review", "staging", "prod"])
def test_compared_settings_equal_the_deployed_ones(stage: str) -> None:
    deployed = read_settings(written_context() | {"troop:stage": stage}, written_context())
    settings = effective(load(SETTINGS), stage)
    document = json.loads(deployed.chaos_json)
    assert {key: settings[key] for key in document} == document
    assert settings["retain_data"] == deployed.retain_data


def test_difference_includes_policies_of_both_deployments(
    run: Run, file: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    apis = {"Troop-a": FakeApi(), "Bee": FakeApi()}
    apis["Troop-a"].add("web", opt_out=True, reason="x")
    apis["Troop-a"].add("db", probability=0.5)
    apis["Bee"].add("web", opt_out=True)
    apis["Bee"].add("db", probability=0.5)
    apis["Bee"].add("new", owner="ann")
    requests: list[Options] = []

    def connect(options: Options) -> Connection:
        requests.append(options)
        api = apis[options.deployment]
        deployment = Deployment(options.deployment, "eu-central-1", "111122223333", {"ApiUrl": "https://a/"}, ARN)
        return Connection(deployment, TroopClient(api, ARN, "", sleep=lambda _: None))

    monkeypatch.setattr(connection, "connect", connect)
    path = file(a={}, b={"deployment": "Bee"})
    result = run("--region", "eu-west-1", "policy", "diff", "a", "b", "--settings", path, "--deployed", "--json")
    rows = json.loads(result.stdout)["differences"]
    assert [(row["unit"], row["key"], row["left"], row["right"]) for row in rows] == [
        (None, "deployment", "Troop-a", "Bee"),
        ("new", "owner", None, "ann"),
        ("web", "reason", "x", None),
    ]
    assert {options.region for options in requests} == {"eu-west-1"}


@pytest.mark.parametrize("words", [("", "prod"), ("prod", "")])
def test_an_empty_name_is_no_stage(run: Run, file: Callable[..., str], words: tuple[str, str]) -> None:
    settings = file(prod={"max_per_day": 9}, review={})
    result = run("policy", "diff", *words, "--settings", settings)
    assert result.exit_code == Exit.USAGE
    assert "a stage is '': must be one of prod, review" in result.stderr
    result = run("policy", "diff", "", "", "--settings", file())
    assert result.exit_code == Exit.USAGE
    assert "the settings have none" in result.stderr


@pytest.mark.parametrize(
    "text",
    [
        '{"context": ' * 100_000,
        '{"context": {"troop:network": ' + "[" * 900 + "]" * 900 + "}}",
        '{"context": {"troop:probability": Infinity}}',
        '{"context": {"troop:max_per_day": ' + "9" * 5000 + "}}",
    ],
    ids=["endless", "nested", "infinite", "digits"],
)
def test_unreadable_settings_are_reported(run: Run, tmp_path: Path, text: str) -> None:
    path = tmp_path / "cdk.json"
    path.write_text(text)
    result = run("policy", "diff", "prod", "review", "--settings", str(path))
    assert result.exit_code == Exit.USAGE
    assert "has no settings: must be JSON" in result.stderr


def test_text_that_is_nested_is_compared_as_text(run: Run, file: Callable[..., str]) -> None:
    one, other = "[" * 100_000, "[" * 99_999
    differences = diff(run, "one", "other", "--settings", file(one={"runbook_url": one}, other={"runbook_url": other}))
    assert (None, "runbook_url", one, other) in differences
