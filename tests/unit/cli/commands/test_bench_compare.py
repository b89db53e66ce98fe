"""`troop bench compare`: what it reads, shows and writes, and with what it exits."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import typer

from cli.client.bench_client import NoReportError
from cli.commands import bench_compare
from cli.shared.errors import CliError, Exit
from tests.unit.cli.bench.test_comparing import AFTER, BEFORE
from tests.unit.cli.conftest import Run
from tests.unit.cli.reports import cell, operation, repeated, report
from tests.unit.report import sample_failures as failing
from tests.unit.report.reading import Read
from troop.report.comparison import Comparison
from troop.report.document import Report

OLD, NEW, WILD, ONCE, TWO = (f"both:side={name}" for name in ("old", "new", "wild", "once", "two"))
"""Variants of one run."""

SIDES = {
    "old": repeated([1000.0, 1040.0, 980.0]),
    "new": repeated([800.0, 820.0, 790.0]),
    "wild": repeated([1000.0, 3000.0]),
    "once": [cell(1, 1010.0)],
    "two": [cell(1, [operation(1000.0), operation(50.0, "scan")])],
}
KNOWN = {
    "both": report(
        [one.model_copy(update={"values": {"side": side}}) for side, cells in SIDES.items() for one in cells], BEFORE
    ),
    "before": report(SIDES["old"], BEFORE),
    "after": report(SIDES["new"], AFTER),
    "calm": failing.report(*failing.sides()[0]).model_copy(update={"run": report([], BEFORE).run}),
    "late": failing.report(*failing.sides()[1]).model_copy(update={"run": report([], AFTER).run}),
    "steps": report([cell(1, 300.0, "n3"), cell(2, 560.0, "n6", nodes={"servers": 6, "drivers": 2})], AFTER),
}


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(ctx: typer.Context, text: str) -> Report:
        if text not in KNOWN:
            raise CliError(Exit.USAGE, f"there is no {text}")
        return KNOWN[text]

    monkeypatch.setattr(bench_compare, "load", load)


def test_people_see_tables(run: Run) -> None:
    result = run("bench", "compare", OLD, NEW)
    assert result.exit_code == 0, result.output
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert f"A: {OLD}, reads, 3 cells of 3 servers (s.large), 1 driver (d.large)" in lines
    assert "Paired by round: 3 pairs on different nodes." in lines
    (rates,) = [line for line in lines if "measure drivers" in line]
    assert rates.startswith("- measure drivers read 1,006 (980 to 1,040) 803 (790 to 820) 0.798 0.")
    assert rates.endswith(" 3 yes")
    assert "- read p99 ms 8.00 8.00 1.000 1.000 to 1.000" in lines
    (costs,) = [line for line in lines if "cost of a million" in line]
    assert costs == "- read cost of a million $0.167 $0.208 1.253 1.218 to 1.288"
    assert "- read 1,006 3 servers 4 servers (extrapolated) $0.60 $0.80 1.333" in lines
    assert "Cost of servers. The nodes of drivers are neither counted nor scaled." in " ".join(lines)
    assert "- read 86,949,458 $438.00 $584.00" in lines
    assert "- read $0.60 3 servers 3 servers 1,006 803 0.798" in lines


def test_cost_is_of_the_roles_and_prices_of_the_options(run: Run) -> None:
    options = ("--cost-of", "servers,drivers", "--term", "3y", "--price", "s.large=2628+0.1", "--price", "d.large=0.5")
    result = run("bench", "compare", OLD, NEW, *options)
    assert result.exit_code == 0, result.output
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "- read 1,006 3 servers, 1 driver 4 servers, 2 drivers (extrapolated) $1.10 $1.80 1.636" in lines
    assert "operation a day A a month B a month A for 3 years B for 3 years" in lines
    assert "- read 86,949,458 $803.00 $1,314.00 $28,908.00 $47,304.00" in lines
    assert "Your own prices for an hour: s.large $0.20, d.large $0.50." in " ".join(lines)
    document = json.loads(run("bench", "compare", OLD, NEW, "--json", *options).stdout)
    assert document["basis"]["roles_a"] == ["servers", "drivers"]
    assert document["rows"][0]["equal"]["b"]["total"] == 47304.0


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--cost-of", "servers,"), "must be roles with commas between them, such as servers,cache"),
        (("--cost-of", "web"), "no fleet has this role, only servers, drivers"),
        (("--price", "s.large"), "must be TYPE=HOURLY or TYPE=UPFRONT+HOURLY, such as i4i.large=0.12"),
        (("--price", "s.large=1+2"), "an upfront price needs --term 1y or 3y"),
        (("--price", "s.large=1", "--price", "s.large=2"), "s.large already has a price"),
        (("--price", "z.large=1"), "neither side has such nodes, only d.large, s.large"),
        (("--term", "2y"), "--term 2y: must be 1y or 3y"),
        (("--prices", "mine"), "--prices mine: must be aws or file"),
    ],
)
def test_options_about_cost_without_meaning_are_refused(run: Run, options: tuple[str, ...], why: str) -> None:
    result = run("bench", "compare", OLD, NEW, *options)
    assert (result.exit_code, result.stdout) == (Exit.USAGE, "")
    assert why in " ".join(result.stderr.split())


def test_two_runs_have_a_ratio_and_what_to_add_in_place_of_an_interval(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Two runs differ by chance, which the scatter of their repetitions does not contain."""
    page = tmp_path / "page.html"
    monkeypatch.setattr(bench_compare, "chart_script", lambda: "var echarts = {};")
    result = run("bench", "compare", "before", "after", "--fail-below", "0.95", "--html", str(page))
    assert result.exit_code == Exit.UNKNOWN
    (rates,) = [" ".join(line.split()) for line in result.stdout.splitlines() if "measure  drivers" in line]
    assert rates == "- measure drivers read 1,006 (980 to 1,040) 803 (790 to 820) 0.798 - 3, 3 unknown"
    output = " ".join(result.stdout.split())
    for text in (output, " ".join(result.stderr.split()), " ".join(Read(page.read_text()).text)):
        assert "Two runs without a common baseline are not comparable to a few percent" in text
        assert "A and B have no baseline. Give the benchmark's file a `baseline:`" in text
    assert "Two runs do not tell which side is cheaper: " in output
    document = json.loads(run("bench", "compare", "before", "after", "--json").stdout)
    assert (document["source"], document["rows"][0]["low"], document["rows"][0]["times"][0]["low"]) == (
        "runs",
        None,
        None,
    )


def _last_table(output: str) -> tuple[str, str]:
    """Returns the last line of the last table, and the verdict, which follows it."""
    table, _, verdict = output.rstrip().rpartition("\n\n")
    return " ".join(table.splitlines()[-1].split()), " ".join(verdict.split())


def test_money_from_one_repetition_is_marked_as_uncertain(run: Run) -> None:
    result = run("bench", "compare", OLD, ONCE)
    needs, verdict = _last_table(result.stdout)
    assert needs.endswith("(noise unknown)"), needs
    assert verdict.startswith("Too few pairs to say which side is cheaper: "), verdict
    assert "what a side needs at equal throughput, and its cost, may be chance" in " ".join(result.stderr.split())
    result = run("bench", "compare", OLD, NEW)
    assert "unknown" not in result.output
    result = run("bench", "compare", WILD, NEW)
    needs, verdict = _last_table(result.stdout)
    assert verdict.startswith("Neither side is cheaper beyond the noise: "), verdict
    assert needs.endswith(" 0.468 (within the noise)"), needs


def test_programs_get_one_document(run: Run) -> None:
    comparison = Comparison.model_validate(json.loads(run("bench", "compare", OLD, NEW, "--json").stdout))
    assert (comparison.source, comparison.a.name, comparison.rows[0].method) == ("round", OLD, "paired t")
    assert comparison.rows[0].exceeds_noise is True


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([OLD, NEW], Exit.OK, ""),
        ([OLD, NEW, "--fail-below", "0.7"], Exit.OK, "passed: nothing is below 0.7"),
        (
            [WILD, NEW, "--fail-below", "0.95"],
            Exit.OK,
            "open: read of drivers in measure may be below 0.95: its interval",
        ),
        ([OLD, NEW, "--fail-below", "0.95"], Exit.FAILED, "1 of 1 below 0.95: read of drivers in measure is 0.798"),
        ([NEW, OLD, "--fail-below", "0.95"], Exit.OK, ""),
        ([OLD, ONCE, "--fail-below", "0.95"], Exit.UNKNOWN, "fewer than two pairs do not tell noise from a difference"),
        ([OLD, OLD, "--fail-below", "0.95"], Exit.USAGE, "are the same"),
        (
            ["before"],
            Exit.USAGE,
            "before has no baseline: name a second run or variant to compare. Give the benchmark's file a `baseline:`",
        ),
        ([TWO, ONCE], Exit.OK, "only A has scan of drivers in measure"),
        (
            [TWO, ONCE, "--fail-below", "0.5"],
            Exit.FAILED,
            "B lacks measurements that A has: scan of drivers in measure",
        ),
        ([WILD, NEW], Exit.OK, "a difference is within the noise"),
        (["before", "missing"], Exit.USAGE, "there is no missing"),
        (["steps:n3", "steps: n6"], Exit.OK, ""),
        (["steps", "steps:n9"], Exit.USAGE, "no variant 'n9': it has 'n3', 'n6'"),
        (["steps:", "before"], Exit.USAGE, "add a variant after the colon"),
    ],
)
def test_its_exit_code_is_for_a_ci(run: Run, words: list[str], code: Exit, message: str) -> None:
    result = run("bench", "compare", *words)
    assert result.exit_code == code, result.output
    assert message in " ".join(result.stderr.split())


def test_a_file_whose_name_has_a_colon_is_that_file(tmp_path: Path) -> None:
    path = tmp_path / "a:b.json"
    assert bench_compare.split(str(path)) == (f"{tmp_path}/a", "b.json")
    path.touch()
    assert bench_compare.split(str(path)) == (str(path), None)
    assert bench_compare.split("RUN:n6,threads=50") == ("RUN", "n6, threads=50")


def test_comparison_is_written_as_a_page(run: Run, tmp_path: Path) -> None:
    result = run("bench", "compare", OLD, NEW, "--html", str(tmp_path / "page.html"))
    assert result.exit_code == 0, result.output
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert re.search(rf"<title>\s*{NEW} against {OLD}\s*</title>", page)
    assert "echarts" in page
    assert "1,006 (980" in page.replace("\N{NO-BREAK SPACE}", " ")  # the mean of which the ratio is
    assert 'id="overlay"' not in page, "nothing was recorded over time"
    result = run("bench", "compare", OLD, NEW, "--html", str(tmp_path / "none" / "page.html"))
    assert result.exit_code == Exit.USAGE
    assert "cannot be written" in result.stderr


def test_planned_faults_stand_side_by_side(run: Run, tmp_path: Path) -> None:
    page, comment = tmp_path / "page.html", tmp_path / "comment.md"
    result = run("bench", "compare", "calm", "late", "--html", str(page), "--markdown", str(comment))
    assert result.exit_code == 0, result.output
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    (a,) = [line for line in lines if line.startswith("measure, stop 1 of servers A UNKNOWN ")]
    (b,) = [line for line in lines if line.startswith("- B BROKEN ")]
    assert a.endswith(" 2 of 3")
    times = [re.findall(r"[0-9.]+ s", line) for line in (a, b)]
    read = Read(page.read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " "))
    assert read.row("B", "BROKEN")[2:4] == times[1]
    assert len(read.data()["failures"][0]["sides"]) == 2
    words = comment.read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")
    sides = [f"{verdict}, rate back {back}" for verdict, (back, _) in zip(("UNKNOWN", "BROKEN"), times, strict=True)]
    assert f"| `measure, stop 1 of servers` | {sides[0]} | {sides[1]} |" in words


def test_a_regression_is_written_for_a_pull_request(run: Run, tmp_path: Path) -> None:
    comment = tmp_path / "comment.md"
    result = run("bench", "compare", OLD, NEW, "--fail-below", "0.95", "--markdown", str(comment))
    assert result.exit_code == Exit.FAILED
    text = comment.read_text(encoding="utf-8")
    assert text.startswith("**Failed. Of 1 row: B does less in 1. 1 regression below the limit of 0.95.**")
    assert "| `read of drivers in measure` | 0.798 | 0." in text


@pytest.mark.parametrize(
    "error", [CliError(Exit.FAILED, "damaged"), NoReportError("has no report", False), OSError("denied")]
)
def test_to_a_ci_a_side_that_cannot_be_read_is_not_slower(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def load(ctx: typer.Context, text: str) -> Report:
        raise error

    monkeypatch.setattr(bench_compare, "load", load)
    result = run("bench", "compare", OLD, NEW, "--fail-below", "0.9")
    assert (result.exit_code, str(error) in result.stderr) == (Exit.USAGE, True)


def test_to_a_ci_a_mistake_of_the_command_is_not_slower(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def compare(*sides: object, **more: object) -> Comparison:
        raise OverflowError("math range error")

    monkeypatch.setattr("cli.bench.comparing.compare", compare)
    result = run("bench", "compare", OLD, NEW, "--fail-below", "0.9")
    assert result.exit_code == Exit.USAGE
    assert "no verdict: OverflowError: math range error" in result.stderr


def test_only_two_sides_have_an_outcome_as_json(run: Run) -> None:
    result = run("bench", "compare", "steps", "once", "--json")
    assert result.exit_code == Exit.USAGE
    assert result.stdout == ""
