"""`troop policy export` and `import`: what one prints the other takes, and nothing is changed by a wrong file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from cli import policy_files
from cli.api import Answer
from cli.errors import CliError, Exit
from tests.unit.cli.conftest import FakeApi, Run

WRONG = [
    ("units: {web: {probabilty: 1}}", "web: probabilty is no key of a policy: must be spelled probability"),
    ("units: {web: {probability: 3}}", "web: probability is '3': must be a number from 0 to 1"),
    ("units: {web: {owner: }}", "leave the key out"),
    ("units: {web: true}", "web: must be a mapping"),
    ("units: {true: {opt_out: true}}", "True is no name of a unit: put it into quotes"),
    ("units: {web: {owner: a}, web: {owner: b}}", "'web' is given twice"),
    ("units: {web: {owner: a, owner: b}}", "'owner' is given twice"),
    ("web: {opt_out: true}", "one key, units"),
    ("- web", "one key, units"),
    ("units: [web]", "one key, units"),
    ("units: {", "no YAML"),
    ("units: !!python/object/apply:os.system [true]", "no YAML"),
    ("[" * 5000, "no YAML"),
]


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], str]:
    def file(text: str) -> str:
        path = tmp_path / "policy.yaml"
        path.write_text(text)
        return str(path)

    return file


@pytest.fixture
def three(api: FakeApi) -> None:
    api.add("no", opt_out=True, until="2026-12-01", reason="frozen: really")
    api.add("web", probability=0.5, stop_alarms=["a", "b"])
    api.add("plain")


@pytest.mark.usefixtures("three")
def test_export_holds_what_people_have_set(run: Run) -> None:
    text = run("policy", "export").stdout
    assert text.startswith("# Policy of Troop in account 111122223333, region eu-central-1")
    units = yaml.safe_load(text)["units"]
    assert list(units) == ["no", "web"]
    assert units["web"] == {"probability": 0.5, "stop_alarms": ["a", "b"]}
    assert "until: 2026-12-01" in text


@pytest.mark.usefixtures("three")
def test_what_was_exported_changes_nothing(run: Run, file: Callable[[str], str], api: FakeApi) -> None:
    result = run("policy", "import", file(run("policy", "export").stdout))
    assert result.exit_code == 0, result.output
    assert "nothing to change" in result.stdout
    assert api.changes() == []


@pytest.mark.usefixtures("three")
def test_a_dry_run_shows_the_difference_and_changes_nothing(run: Run, file: Callable[[str], str], api: FakeApi) -> None:
    path = file("units: {web: {probability: 0.1, owner: ada}, 'no': {opt_out: true, until: 2026-12-01}}")
    result = run("policy", "import", path, "--dry-run")
    assert result.exit_code == 0
    for line in ("web: probability: 0.5 -> 0.1", "web: owner: - -> ada", "web: stop_alarms: a, b -> -",
                 "no: reason: frozen: really -> -"):  # fmt: skip
        assert line in result.stdout
    assert api.changes() == []
    told = json.loads(run("policy", "import", path, "--dry-run", "--json").stdout)
    assert [(unit["unit"], unit["status"]) for unit in told["units"]] == [
        ("web", "would-change"),
        ("no", "would-change"),
    ]


@pytest.mark.usefixtures("three")
def test_it_asks_with_the_difference_in_view(run: Run, file: Callable[[str], str], api: FakeApi) -> None:
    path = file("units: {web: {probability: 0.1}}")
    assert run("policy", "import", path).exit_code == Exit.NOT_CONFIRMED
    assert run("policy", "import", path, typed="n\n").exit_code == Exit.NOT_CONFIRMED
    assert api.changes() == []
    result = run("policy", "import", path, typed="y\n")
    assert result.exit_code == 0
    assert api.changes() == [("groups/web", {"probability": 0.1, "stop_alarms": None, "version": 2})]
    assert api.units["plain"]["item"] == {}


@pytest.mark.usefixtures("three")
def test_a_unit_that_fails_is_reported_and_the_rest_is_done(run: Run, file: Callable[[str], str], api: FakeApi) -> None:
    path = file("units: {'no': {owner: a}, web: {owner: b}, wbe: {owner: c}, plain: {owner: d}}")
    api.refusals["PATCH", "groups/no"] = [Answer(409, {"message": "changed by somebody else"})]
    result = run("policy", "import", path, "--yes")
    assert result.exit_code == Exit.FAILED
    for text in ("no: not changed: changed by somebody else", "did you mean web?", "2 of 4 units failed: no, wbe"):
        assert text in result.stderr
    assert (api.units["web"]["item"], api.units["plain"]["item"]) == ({"owner": "b"}, {"owner": "d"})
    told = json.loads(run("policy", "import", path, "--yes", "--json").stdout)
    assert {unit["unit"]: unit["status"] for unit in told["units"]} == {
        "no": "failed",
        "web": "unchanged",
        "plain": "unchanged",
        "wbe": "failed",
    }


def test_a_unit_that_is_still_to_come(run: Run, file: Callable[[str], str], api: FakeApi) -> None:
    result = run("policy", "import", file("units: {later: {opt_out: true}}"), "--yes", "--ahead")
    assert result.exit_code == 0, result.output
    assert api.units["later"]["item"] == {"opt_out": True}


def test_a_group_is_no_unit(run: Run, file: Callable[[str], str], api: FakeApi) -> None:
    api.add("web")
    result = run("policy", "import", file("units: {web-v1: {opt_out: true}}"), "--yes")
    assert "web-v1 is a group of the unit web" in result.stderr
    assert api.changes() == []


def test_what_ails_every_unit_ends_it(run: Run, file: Callable[[str], str], api: FakeApi) -> None:
    api.refusals["GET", "groups/web"] = [
        Answer(403, {"message": "The security token included in the request is expired"})
    ]
    result = run("policy", "import", file("units: {web: {opt_out: true}}"), "--yes")
    assert result.exit_code == Exit.EXPIRED_CREDENTIALS


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_a_wrong_file_changes_nothing_and_says_why(
    run: Run, file: Callable[[str], str], api: FakeApi, text: str, message: str
) -> None:
    result = run("policy", "import", file(text), "--yes")
    assert result.exit_code == Exit.USAGE
    assert message in result.stderr
    assert api.calls == []


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(CliError, match=r"a: .*; b: .*"):
        policy_files.load("units: {a: {nix: 1}, b: {probability: x}}")


def test_no_such_file(run: Run) -> None:
    result = run("policy", "import", "/nowhere/policy.yaml")
    assert result.exit_code == Exit.USAGE
    assert "cannot be read" in result.stderr


def test_from_stdin(run: Run, api: FakeApi) -> None:
    api.add("web")
    result = run("policy", "import", "-", "--dry-run", typed="units: {web: {owner: ada}}")
    assert "web: owner: - -> ada" in result.stdout


def test_an_empty_policy_takes_everything_away() -> None:
    change = policy_files.compare("web", {"owner": "a"}, policy_files.load("units: {web: }")["web"], 3)
    assert change.patch() == {"owner": None, "version": 3}
