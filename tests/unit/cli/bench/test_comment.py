"""The comment of a pull request: what it says, that names in it are only names, and how the workflow sends it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from cli.bench import comparing
from cli.bench.comment import MOST_ROWS, code, markdown
from cli.bench.pairing import Chosen
from cli.shared import yaml_files
from tests.unit.cli.reports import NOW, PAIRS, against_baseline, repeated, report
from tests.unit.report.sample_comparisons import compared, compared_with_attacks, nothing_in_common
from troop.report.comparison import Comparison
from troop.report.document import Report

WORKFLOW = Path(__file__).parents[4] / "examples/ci/pull-request.yml"


def compare(*pairs: tuple[float, float], **more: Any) -> Comparison:
    return comparing.compare(Chosen("RUN", against_baseline(pairs or PAIRS)), now=NOW, version="1", **more)


def test_a_comment_has_verdict_interval_and_source() -> None:
    text = markdown(compare(fail_below=0.99)).replace("\N{NO-BREAK SPACE}", " ")
    assert text == (
        "**Failed. Of 1 row: B does less in 1. 1 regression below the limit of 0.99.**\n\n"
        "| | B / A | 95 % | |\n|---|---|---|---|\n"
        "| `read of drivers in measure` | 0.976 | 0.958 to 0.981 | 2.4 % less, beyond the noise: a regression |\n\n"
        "A is `RUN, version=1.2`, and B is `RUN, version=1.3`. Paired by cell: 6 pairs on the same nodes.\n"
    )


def test_each_verdict_has_its_word() -> None:
    passed = markdown(compare(fail_below=0.9)).partition("\n")[0]
    assert passed == "**Passed. Of 1 row: B does less in 1. No regression below the limit of 0.9.**"
    open_ = markdown(compare(fail_below=0.97)).partition("\n")[0]
    assert open_.startswith("**Open. ")
    assert open_.endswith("No regression below the limit of 0.97; in 1 row the interval reaches below it.**")
    assert markdown(compare()).startswith("**Of 1 row: ")
    alone = markdown(compare(PAIRS[0], fail_below=0.9))
    assert alone.startswith("**Unknown. ")
    assert "Fewer than two pairs: `read of drivers in measure`." in alone


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        (report(repeated([1000.0, 990.0]), "a"), report(repeated([1000.0]), "b"), "A and B have no baseline"),
        (
            against_baseline(run="a"),
            against_baseline(run="b", baseline="1.1"),
            "A has the baseline version=1.2, and B version=1.1",
        ),
    ],
)
def test_two_runs_without_a_common_baseline_say_what_to_add(a: Report, b: Report, reason: str) -> None:
    text = markdown(comparing.compare(Chosen("A", a), Chosen("B", b), now=NOW, version="1", fail_below=0.9))
    assert text.startswith("**Unknown. ")
    assert f"give both the same `baseline` (`{reason}`)." in text


def test_the_worst_rows_come_first_and_many_are_counted() -> None:
    text = markdown(compared(variants=12))
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert len(rows) == MOST_ROWS
    assert "a regression" in rows[0]
    assert "Not shown: 4 rows." in text
    assert markdown(nothing_in_common()).startswith("**Nothing to compare")


def kinds(text: str) -> set[str]:
    """The kinds of what GitHub's Markdown makes of a text."""
    blocks = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    return {token.type for block in blocks for token in (block, *(block.children or ()))}


PLAIN = {*kinds("**a** `b`\n\n| a |\n|---|\n| `b` |\n")}


def test_a_hostile_name_is_only_a_name() -> None:
    attacks = compared_with_attacks().model_copy(
        update={"fail_below": 0.9, "lost": ["<img src=x>", "@all"], "baseline": "[a](b)", "source": "baseline"}
    )
    assert kinds(markdown(attacks)) <= PLAIN


@given(st.text())
def test_any_name_is_one_code_span_in_one_cell(name: str) -> None:
    text = f"| a | b |\n|---|---|\n| {code(name)} | x |\n"
    blocks = MarkdownIt("commonmark").enable("table").parse(text)
    cells = [block.children or [] for block in blocks if block.type == "inline"][2:]
    assert [[token.type for token in cell] for cell in cells] == [["code_inline"] if code(name) else [], ["text"]]
    assert code(name).isprintable()


@pytest.fixture
def step() -> dict[str, Any]:
    (step,) = (one for one in workflow()["jobs"]["comment"]["steps"] if one.get("name") == "comment")
    return dict(step)


def workflow() -> Any:
    return yaml_files.Document(WORKFLOW.read_text(encoding="utf-8"), "pull-request.yml").values


GH = """\
#!/bin/sh
echo "$@" >> calls
case "$*" in
  *--paginate*) cat earlier ;;
  *) cat body.md >> sent ;;
esac
"""


@pytest.mark.parametrize(
    ("earlier", "sent"),
    [("", "api --silent repos/o/r/issues/7/comments"), ("41\n42\n", "--method PATCH repos/o/r/issues/comments/41 ")],
)
def test_the_workflow_writes_one_comment_and_changes_it_later(
    step: dict[str, Any], tmp_path: Path, earlier: str, sent: str
) -> None:
    for name, content in {"gh": GH, "earlier": earlier, "comment.md": "**Passed.**\n"}.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "gh").chmod(0o755)
    known = {"NUMBER": "7", "PAGE": "https://example.com/page", "GITHUB_REPOSITORY": "o/r"}
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", **known}
    subprocess.run(["bash", "-e", "-c", step["run"]], cwd=tmp_path, env=environment, check=True)
    assert sent in (tmp_path / "calls").read_text().splitlines()[-1]
    body = "<!-- troop bench compare -->\n**Passed.**\n\n[The comparison as a page](https://example.com/page)\n"
    assert (tmp_path / "sent").read_text() == body


def test_the_token_that_comments_can_do_nothing_else() -> None:
    jobs = workflow()["jobs"]
    assert workflow()["permissions"] == {}
    assert jobs["comment"]["permissions"] == {"pull-requests": "write"}
    assert "pull-requests" not in jobs["measure"]["permissions"]
    assert not [one for one in jobs["comment"]["steps"] if "checkout" in one.get("uses", "")]
