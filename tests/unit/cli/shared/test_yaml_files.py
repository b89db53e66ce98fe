"""Files of people: what they hold is counted before it is made, and each is composed once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cli.shared import yaml_files
from cli.shared.errors import CliError, Exit
from tests.unit.cli.bench_runs import TEXT
from tests.unit.cli.bombs import MESSAGES
from tests.unit.cli.conftest import Run


@pytest.fixture
def composed(monkeypatch: pytest.MonkeyPatch) -> list[yaml.Node | None]:
    """Nodes that were composed, and those of mappings that were merged."""
    nodes: list[yaml.Node | None] = []
    compose, flatten = yaml_files._Strict.compose_node, yaml_files._Strict.flatten_mapping

    def composing(loader: Any, *arguments: Any) -> Any:
        nodes.append(compose(loader, *arguments))
        return nodes[-1]

    def flattening(loader: Any, node: Any) -> None:
        nodes.append(node)
        assert len(nodes) < 10_000, "merged without end"
        flatten(loader, node)

    monkeypatch.setattr(yaml_files._Strict, "compose_node", composing)
    monkeypatch.setattr(yaml_files._Strict, "flatten_mapping", flattening)
    return nodes


COMMANDS = {
    "benchmark": ("bench", "validate"),
    "fleet": ("fleet", "validate"),
    "groups": ("plan", "--groups"),
    "simulated groups": ("simulate", "--groups"),
    "settings": ("plan", "--groups", "GROUPS", "--settings"),
    "policy": ("policy", "import", "--dry-run"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize(("text", "message"), MESSAGES.items(), ids=["aliases", "merges", "texts", "circle", "nested"])
def test_a_file_that_stands_for_too_much_is_refused_by_its_line(
    run: Run, tmp_path: Path, composed: list[yaml.Node | None], command: tuple[str, ...], text: str, message: str
) -> None:
    file, groups = tmp_path / "it.yaml", tmp_path / "groups.yaml"
    file.write_text(text)
    groups.write_text("[]")
    result = run(*(str(groups) if word == "GROUPS" else word for word in command), str(file))
    assert result.exit_code == Exit.USAGE, result.output
    assert message in result.stderr.replace("\n", " ")
    assert any(f":{line}: " in result.stderr for line in range(1, text.count("\n") + 1))
    assert len(composed) < 3000


def test_a_file_may_repeat_what_a_person_would() -> None:
    text = "a: &a {x: 1, y: [1, 2]}\nb: {<<: *a, x: 2}\nc: [*a, *a]\n"
    a = {"x": 1, "y": [1, 2]}
    assert yaml_files.parse(text, "it") == {"a": a, "b": {"x": 2, "y": [1, 2]}, "c": [a, a]}


def test_a_mapping_within_a_merge_overrides_what_it_merges() -> None:
    text = "a: &a {x: 1}\nc: {<<: &b {<<: *a, x: 2}, y: 1}\nd: *b\n"
    assert yaml_files.parse(text, "it")["d"] == {"x": 2}


def test_very_many_values_need_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_files, "MOST_NODES", 10)
    assert len(yaml_files.parse(str(list(range(100))), "it")) == 100
    with pytest.raises(CliError, match=r"^it:10: has more than 10 keys and values: write it as JSON"):
        yaml_files.parse("\n".join(f"- {n}" for n in range(100)) + "\n- *no", "it")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(
            (text, None)
            for text in ("1.0", "0.25", "-3", "0.00001", "1e-05", "10000000000", '"3.10"', "3.1.0", '{"v": 3.10}')
        ),
        *(("3.10", "3.1"), ("1234567e8", "123456700000000"), ("1.", "1"), (".5", "0.5"), ("+7", "7"), ("-0", "0")),
        ("0.12345678901234567890", "0.12345678901234568"),
    ],
)
def test_number_that_yaml_rewrites_is_reported(text: str, number: str | None) -> None:
    expected = [((), text, number)] if number else []
    assert list(yaml_files.Document(text, "it").rewritten()) == expected


@pytest.mark.parametrize(
    "text", ["9" * 309, "-" + "9" * 5000, "1e999", "[1e999]", "[" + "9" * 400 + "]", "[NaN]", '{"a": Infinity}']
)
def test_number_outside_the_floats_is_refused(text: str) -> None:
    with pytest.raises(CliError) as refused:
        yaml_files.parse(text, "it")
    assert len(str(refused.value)) < 300


def test_json_that_is_nested_too_deeply_is_refused() -> None:
    for depth in (65, 100_000):
        with pytest.raises(CliError, match="nested"):
            yaml_files.parse('{"a":' + "[" * depth + "]" * depth + "}", "it")


def test_very_many_problems_of_a_file_need_it_composed_once(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaders, looked_up = list[object](), list[str]()
    begin = yaml_files._Strict.__init__

    def counting(loader: Any, text: str) -> None:
        loaders.append(loader)
        begin(loader, text)

    def looking_up(key: str, *_: object) -> str:
        looked_up.append(key)
        return key

    monkeypatch.setattr(yaml_files._Strict, "__init__", counting)
    monkeypatch.setattr("troop.bench.file.structure.spelling", looking_up)
    file.write_text(TEXT + "".join(f"unknown{n}: 1\n" for n in range(2000)))
    result = run("bench", "validate", str(file))
    assert result.exit_code == Exit.USAGE
    lines = result.stderr.splitlines()
    first = len(TEXT.splitlines()) + 1
    assert f"{file}:{first}: unknown0 is not known" in "".join(lines)
    assert "and at least 50 more" in lines[-1]
    assert (len(loaders), len(looked_up)) == (1, 100)


def test_problems_that_are_not_named_are_counted_for_programs(run: Run, file: Path) -> None:
    file.write_text(TEXT + "".join(f"unknown{n}: 1\n" for n in range(60)))
    result = run("bench", "validate", str(file), "--json")
    document = yaml_files.parse(result.stdout, "it")
    assert (len(document["problems"]), document["more"]) == (50, 10)


@given(st.text(st.sampled_from("ab01:-[]{}&*<!?|>'\"#,.e \n\t"), max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        yaml_files.Document(text, "it").line_of(("a", 0))
    except CliError as error:
        assert error.code == Exit.USAGE  # noqa: PT017 - there may be none


def test_a_comment_is_that_at_the_end_of_a_values_line() -> None:
    text = "# of the file\na: 1  # the first\nb: {c: 'x # y'}\nd: \"#\"   #  spaces around  \ne#f: 2\n"
    document = yaml_files.Document(text, "it")
    comments = [document.comment_at(place) for place in (["a"], ["b", "c"], ["d"], ["e#f"])]
    assert comments == ["the first", "", "spaces around", ""]
