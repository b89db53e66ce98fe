"""`troop policy export` and `import`: what one prints the other takes, and nothing is changed by a wrong file."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cli.client.api import Answer
from cli.policies import files as policy_files
from cli.policies import values as policy_values
from cli.shared import yaml_files
from cli.shared.errors import CliError, Exit
from tests.unit.cli.conftest import FakeApi, Run
from troop.chaos.units import is_unit

WRONG = [
    (
        "units: {web: {inside: yes}}",
        "web: inside is not a key of a policy: owners consent to faults inside their "
        "instances by the tag troop:inside of the Auto Scaling group, propagated at launch; see docs/guides/faults.md",
    ),
    ("units: {web: {probabilty: 1}}", "web: probabilty is not a key of a policy: must be spelled probability"),
    ("units: {web: {probability: 3}}", "web: probability is '3': must be a number from 0 to 1"),
    ("units: {web: {owner: }}", "leave the key out"),
    ("units: {web: true}", "web: must be a mapping"),
    ("units: {true: {opt_out: true}}", "True is not the name of a unit: put it into quotes"),
    ("units: {web: {owner: a}, web: {owner: b}}", "'web' occurs twice"),
    ("units: {web: {owner: a, owner: b}}", "'owner' occurs twice"),
    ("web: {opt_out: true}", "one key, units"),
    ("- web", "one key, units"),
    ("units: [web]", "one key, units"),
    ("units: {", "not YAML"),
    ("units: !!python/object/apply:os.system [true]", "not YAML"),
    pytest.param("[" * 100_000, "not YAML", id="brackets without end"),
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
def test_import_of_an_export_changes_nothing(run: Run, file: Callable[[str], str], api: FakeApi) -> None:
    api.add("later", groups=0, opt_out=True)
    result = run("policy", "import", file(run("policy", "export").stdout))
    assert result.exit_code == 0, result.output
    assert "nothing to change" in result.stdout
    assert api.changes() == []


_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
_as_stored = st.fixed_dictionaries(
    {},
    optional={
        "opt_out": st.booleans() | st.sampled_from(["true", "No"]),
        "until": st.dates().map(str),
        "probability": st.floats(0, 1) | st.sampled_from(["0.10", 1, 0]),
        "min_healthy": st.integers(1, 10_000),
        "reason": _text,
        "owner": _text,
        "stop_alarms": st.lists(_text, max_size=3) | _text,
    },
)


@example({"a\x85": {"owner": "b\u2028c"}, "\u2029": {"reason": " \x85 "}, "<<": {}, "=": {"owner": "2026-12-04"}})
@settings(max_examples=200, deadline=None)
@given(st.dictionaries(_text.filter(is_unit), _as_stored, max_size=4))
def test_whatever_well_formed_values_are_stored_come_back_as_they_are(units: dict[str, dict[str, Any]]) -> None:
    policies = {unit: policy_values.written(item) for unit, item in units.items()}
    well_formed = {unit: policy for unit, (policy, problems) in policies.items() if not problems}
    read = policy_files.load(policy_files.dump(well_formed, "of a test"))
    assert list(read) == sorted(well_formed)
    for unit, policy in read.items():
        assert policy_files.compare(unit, policy_values.item_policy(units[unit]), policy, 1).changes == {}


def test_an_export_reads_all_pages_and_asks_for_no_unit_by_itself(run: Run, api: FakeApi) -> None:
    for n in range(250):
        api.add(f"unit-{n:03}", groups=0, owner="us")
    assert len(json.loads(run("policy", "export", "--json").stdout)["units"]) == 250
    assert [path for _, path, _ in api.calls] == [*["policies"] * 3, "health"], "the last names items without a unit"


def test_malformed_policy_is_exported_but_not_imported(run: Run, file: Callable[[str], str], api: FakeApi) -> None:
    """A misspelt opt-out keeps its unit out of chaos. Without it, the file would put the unit into chaos elsewhere."""
    api.add("web", optout=True, probability="often")
    exported = run("policy", "export")
    assert yaml.safe_load(exported.stdout)["units"] == {"web": {"probability": "often", "optout": True}}
    for words in ("web is skipped", "probability is 'often'", "optout is not a key of a policy"):
        assert words in exported.stderr
    result = run("policy", "import", file(exported.stdout), "--yes")
    assert (result.exit_code, api.changes()) == (Exit.USAGE, [])


def test_expired_opt_out_of_the_file_is_omitted_with_a_warning(
    run: Run, file: Callable[[str], str], api: FakeApi
) -> None:
    api.add("web")
    api.add("old", opt_out=True, until="2020-01-01")
    ended = "{opt_out: true, until: 2020-01-01, owner: us}"
    result = run("policy", "import", file(f"units: {{web: {ended}, old: {ended}}}"), "--yes")
    assert result.exit_code == 0
    assert "web: its opt-out ended on 2020-01-01 and is omitted" in result.stderr
    assert "old:" not in result.stderr  # it is stored so
    assert [body for _, body in api.changes()] == [{"owner": "us", "version": 0}, {"owner": "us", "version": 2}]


OVER = {"statusCode": 400, "message": "refused", "code": "opt-out-over"}


def test_opt_out_expired_on_the_units_calendar_is_omitted_with_a_warning(
    run: Run, file: Callable[[str], str], api: FakeApi
) -> None:
    """What is not yet over at UTC-12 only the API knows."""
    today = (datetime.now(UTC) - timedelta(hours=12)).date().isoformat()
    api.add("web")
    api.add("on", opt_out=True)
    for unit in ("web", "on"):
        api.refusals["PATCH", f"groups/{unit}"] = [Answer(400, OVER), Answer(200, {"unit": unit})]
    ended = f"{{opt_out: true, until: {today}, owner: us}}"
    result = run("policy", "import", file(f"units: {{web: {ended}, 'on': {ended}}}"), "--yes", "--json")
    assert result.exit_code == 0, result.output
    assert f"web: its opt-out ended on {today} and is omitted" in result.stderr
    assert [body for _, body in api.changes()] == [
        {"opt_out": True, "until": today, "owner": "us", "version": 0},
        {"owner": "us", "version": 0},
        {"until": today, "owner": "us", "version": 1},
        {"opt_out": None, "owner": "us", "version": 1},
    ]
    assert [(one["status"], list(one["changes"])) for one in json.loads(result.stdout)["units"]] == [
        ("changed", ["owner"]),
        ("changed", ["opt_out", "owner"]),
    ]


@pytest.mark.parametrize(
    ("policy", "refusal"),
    [("opt_out: true, until: 2099-01-01", OVER), ("opt_out: true, until: TODAY", {"message": "body.until: is 'it'"})],
)
def test_other_refusals_are_not_tried_without_the_opt_out(
    run: Run, file: Callable[[str], str], api: FakeApi, policy: str, refusal: dict[str, object]
) -> None:
    api.add("web")
    api.refusals["PATCH", "groups/web"] = [Answer(400, refusal)]
    policy = policy.replace("TODAY", (datetime.now(UTC) - timedelta(hours=12)).date().isoformat())
    result = run("policy", "import", file(f"units: {{web: {{{policy}}}}}"), "--yes")
    assert (result.exit_code, len(api.changes())) == (Exit.FAILED, 1)


def test_item_that_no_unit_can_be_named_is_omitted_with_a_warning(
    run: Run, file: Callable[[str], str], api: FakeApi
) -> None:
    api.add(" ", groups=0, opt_out=True)
    api.add("web", owner="us")
    exported = run("policy", "export")
    assert yaml.safe_load(exported.stdout)["units"] == {"web": {"owner": "us"}}
    assert "omitted, because it cannot be the name of a unit: ' '" in exported.stderr
    assert run("policy", "import", file(exported.stdout)).exit_code == 0


@pytest.mark.usefixtures("three")
def test_a_dry_run_shows_the_difference_and_changes_nothing(run: Run, file: Callable[[str], str], api: FakeApi) -> None:
    path = file("units: {web: {probability: 0.1, owner: ada}, 'no': {opt_out: true, until: 2026-12-01}}")
    result = run("policy", "import", path, "--dry-run")
    assert result.exit_code == 0
    for line in ("web: probability: 0.5 -> 0.1", "web: owner: - -> ada", "web: stop_alarms: a, b -> -",
                 "no: reason: frozen: really -> -"):  # fmt: skip
        assert line in result.stdout
    assert api.changes() == []
    document = json.loads(run("policy", "import", path, "--dry-run", "--json").stdout)
    assert [(unit["unit"], unit["status"]) for unit in document["units"]] == [
        ("web", "would-change"),
        ("no", "would-change"),
    ]


@pytest.mark.usefixtures("three")
def test_import_asks_for_confirmation_after_the_difference(run: Run, file: Callable[[str], str], api: FakeApi) -> None:
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
    document = json.loads(run("policy", "import", path, "--yes", "--json").stdout)
    assert {unit["unit"]: unit["status"] for unit in document["units"]} == {
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


def test_failure_of_every_unit_ends_the_import(run: Run, file: Callable[[str], str], api: FakeApi) -> None:
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


def test_all_mistakes_are_reported_at_once() -> None:
    with pytest.raises(CliError, match=r"a: .*; b: .*"):
        policy_files.load("units: {a: {nix: 1}, b: {probability: x}}")


def test_no_such_file(run: Run) -> None:
    result = run("policy", "import", "/nowhere/policy.yaml")
    assert result.exit_code == Exit.USAGE
    assert result.stderr == "troop: /nowhere/policy.yaml cannot be read: No such file or directory\n"


def test_malformed_yaml_is_reported_with_its_line(run: Run, file: Callable[[str], str]) -> None:
    result = run("policy", "import", file("units:\n  web: [1\n"))
    assert result.exit_code == Exit.USAGE
    assert " in line 3, column 1" in result.stderr
    assert "unicode string" not in result.stderr


def test_from_stdin(run: Run, api: FakeApi) -> None:
    api.add("web")
    result = run("policy", "import", "-", "--dry-run", typed="units: {web: {owner: ada}}")
    assert "web: owner: - -> ada" in result.stdout


def test_an_empty_policy_takes_everything_away() -> None:
    change = policy_files.compare("web", {"owner": "a"}, policy_files.load("units: {web: }")["web"], 3)
    assert change.patch() == {"owner": None, "version": 3}


@given(
    st.text(
        st.characters(exclude_categories=["Cs"]) | st.sampled_from("\x7f\x85\x9b\u2028\u202e\u2066\ufeff"), min_size=1
    )
)
def test_export_has_no_control_characters_and_can_be_imported(owner: str) -> None:
    text = policy_files.dump({"web": {"owner": owner}}, "")
    assert all(c == "\n" or c.isprintable() for c in text)
    assert yaml_files.parse(text, "it") == {"units": {"web": {"owner": owner}}}
