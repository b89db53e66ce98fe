"""`troop bench noise`, and the last line of `troop bench estimate`: what they read, print and refuse."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cli.bench.detecting import Design
from cli.bench.files import CATALOGUE, assignments, load
from cli.client.api import Answer
from cli.commands import bench_compare
from cli.commands.bench_noise import twin
from cli.shared.context import Options
from cli.shared.errors import Exit
from tests.unit.cli.bench.test_detecting import OTHER, line
from tests.unit.cli.bench_runs import ESTIMATE, TEXT, run_out
from tests.unit.cli.conftest import FakeApi, Run
from tests.unit.cli.reports import against_baseline
from troop.bench.records.line import Line
from troop.shared import codec

HISTORY = ("GET", "benchmarks/history")
GUIDE = Path(__file__).parents[4] / "docs/guides/comparing-benchmarks.md"
BASELINE = "baseline: {parameters.threads: 16}\nrepetitions: 6\nexpires_after: 24h\n"
STORE_RATES = [
    (5918.0, 5985.0),
    (6102.0, 6145.0),
    (5871.0, 5990.0),
    (6044.0, 6096.0),
    (5987.0, 6109.0),
    (6120.0, 6174.0),
]
RATIOS = (1.011, 0.983, 0.998, 1.009, 0.979, 0.993)


@pytest.fixture
def compared(file: Path) -> str:
    """The file with a baseline on the same nodes."""
    file.write_text(TEXT.replace("expires_after: 2h\n", BASELINE))
    return str(file)


def on_record(api: FakeApi, *lines: Line) -> None:
    documents = [json.loads(json.dumps(codec.to_document(one), default=float)) for one in lines]
    api.refusals[HISTORY] = [Answer(200, {"lines": documents, "cursor": None})]
    api.estimate["expected"] = 2.4


def words(text: str) -> list[str]:
    return [" ".join(one.split()) for one in plain(text).splitlines() if one.strip()]


def test_a_file_has_a_line_of_what_its_comparison_detects_at_which_cost(run: Run, api: FakeApi, compared: str) -> None:
    on_record(api, line(RATIOS), line(RATIOS))
    result = run("bench", "noise", compared)
    assert (result.exit_code, result.stderr) == (0, "")
    assert words(result.stdout) == [
        "measurement from rate mean p50 p99 5 % 3 % 1 %",
        "measure · drivers · read 12 pairs on the same nodes in 2 runs 1.3 % 1.3 % 1.3 % 2.6 % 3 5 19",
        "rate, mean, p50, p99: how much the ratio of a pair scatters (standard deviation)",
        "5 %, 3 % and 1 %: pairs that find such a change of the rate in 80 of 100 runs",
        "6 cells find 3 % in 98 of 100, $2.40; for 2 % use 7, $2.80 (rate of measure · drivers · read; from 12 pairs "
        "on the same nodes in 2 runs)",
    ]
    assert [(path, query) for _, path, query in api.calls if path.endswith("history")] == [
        ("benchmarks/history", {"name": "reads", "limit": "100"})
    ]


def test_changes_of_times_are_detected_on_request_and_at_a_set_rate(run: Run, api: FakeApi, compared: str) -> None:
    on_record(api, line(RATIOS), line(RATIOS))
    result = run("bench", "noise", compared, "--figure", "p99")
    assert words(result.stdout)[-2].endswith("pairs that find such a change of the p99 in 80 of 100 runs")
    last = words(result.stdout)[-1]
    assert last.startswith("6 cells find 5 % in 91 of 100, $2.40; for 3 % use 9, $3.60 (p99 of measure · drivers · ")
    rate = "    timeout: 10m\n    rate: {drivers: rate}\n"
    text = Path(compared).read_text().replace("  threads: 32\n", "  threads: 32\n  rate: 50\n")
    Path(compared).write_text(text.replace("    timeout: 10m\n", rate))
    for command in ("noise", "estimate"):
        assert words(run("bench", command, compared).stdout)[-1] == last
    assert "(rate of measure" in run("bench", "noise", compared, "--set", "parameters.rate=0").stdout


def test_an_estimate_ends_with_the_same_line(run: Run, api: FakeApi, compared: str) -> None:
    on_record(api, line(RATIOS), line(RATIOS))
    noise, estimate = (run("bench", command, compared) for command in ("noise", "estimate"))
    assert estimate.exit_code == 0, estimate.output
    assert words(estimate.stdout)[-1] == words(noise.stdout)[-1]
    assert json.loads(run("bench", "estimate", compared, "--json").stdout)["expected"] == 2.4


@pytest.mark.parametrize(
    "answer", [Answer(200, {"lines": [], "cursor": None}), Answer(403, {"message": "no"}), Answer(404, {})]
)
def test_an_estimate_without_recorded_runs_has_no_figure(run: Run, api: FakeApi, compared: str, answer: Answer) -> None:
    api.refusals[HISTORY] = [answer]
    result = run("bench", "estimate", compared)
    assert result.exit_code == 0, result.output
    assert words(result.stdout)[-1] == "what this comparison detects is unknown: `troop bench noise` says what to run"


def test_an_estimate_of_a_file_without_a_baseline_reads_no_history(run: Run, api: FakeApi, file: Path) -> None:
    assert run("bench", "estimate", str(file)).exit_code == 0
    assert not [path for _, path, _ in api.calls if "history" in path]


def elsewhere(**place: Any) -> Line:
    """A run that measured something else than the file does."""
    return replace(line(RATIOS), figures=(replace(line(RATIOS).figures[0], **place),))


@pytest.mark.parametrize(
    ("lines", "few"),
    [
        ([], "none"),
        ([line(RATIOS[:2])], "2 of 5"),
        ([line(RATIOS[:1])] * 6, "none"),  # a run with one pair has no spread
        ([line(RATIOS, size="smoke")], "none, but there are some of `--size smoke`"),
        ([elsewhere(variant="n9"), elsewhere(phase="fill")], "none"),
    ],
)
def test_too_few_pairs_have_no_figure_but_a_command(
    run: Run, api: FakeApi, compared: str, lines: Sequence[Line], few: str
) -> None:
    on_record(api, *lines)
    result = run("bench", "noise", compared)
    assert result.exit_code == Exit.UNKNOWN
    assert " find" not in result.stdout
    command = f"troop bench run {compared} --set 'baseline={{parameters.aa: 1}}' --set repetitions=6"
    sentence = f"too few pairs are on record: {few}; compare the benchmark with itself: {command}"
    assert sentence in " ".join(result.stderr.split())


@pytest.mark.parametrize(("same_nodes", "cells"), [(True, 6), (False, 12)])
def test_a_benchmark_can_be_compared_with_itself(compared: str, same_nodes: bool, cells: int) -> None:
    """As the command says: with a parameter that no file has to have, or on nodes of its own."""
    ctx = SimpleNamespace(obj=Options())
    command = twin(ctx, compared, ["smoke"], ["parameters.threads=2", "repetitions=3"], Design(2, same_nodes, "cell"))  # type: ignore[arg-type]
    words = shlex.split(command)
    changes = [word for before, word in pairwise(words) if before == "--set"]
    assert words[:6] == ["troop", "bench", "run", compared, "--size", "smoke"]
    plan = load(Path(compared), "smoke", assignments(changes)).plan
    assert (len(plan.cells), plan.has_pairs) == (cells, not same_nodes)
    assert plan.cells[0].benchmark.parameters["threads"] == 2
    (measured,) = plan.cells[0].benchmark.phases
    assert [dict(point.parameters) for point in measured.points] == ([{"aa": ""}, {"aa": 1}] if same_nodes else [])


def test_cells_of_other_runs_give_a_bound_and_what_to_run(run: Run, api: FakeApi, compared: str) -> None:
    on_record(api, line(RATIOS, baseline={}))
    result = run("bench", "noise", compared)
    assert result.exit_code == 0
    assert "in at least " in words(result.stdout)[-1]
    assert "without a baseline in 1 run" in words(result.stdout)[-1]
    assert "pairs of this design differ less; to learn how much" in " ".join(result.stderr.split())


def test_a_name_stands_for_the_design_of_its_newest_run(run: Run, api: FakeApi, ok: Any) -> None:
    on_record(api, replace(line(RATIOS, OTHER), run="newest"), line(RATIOS, OTHER), line(RATIOS))
    api.refusals["GET", "benchmarks/newest"] = [Answer(200, {"run": run_out(cost={"currency": "CNY"}), "cells": []})]
    result = run("bench", "noise", "reads")
    assert result.exit_code == 0, result.output
    last = words(result.stdout)[-1]
    assert last.startswith("6 rounds find 3 % in 98 of 100, CNY 1.20; for 2 % use 7, CNY 1.40 ")
    assert last.endswith("from 12 pairs on different nodes in 2 runs)")
    written = ok("bench", "noise", "reads")
    assert (written["benchmark"], written["design"]["run"]) == ("reads", "newest")
    assert written["design"]["on_same_nodes"] is False
    assert written["detects"]["change"] == 0.03
    assert not [path for _, path, _ in api.calls if path.endswith("estimate")]


def test_an_unknown_name_and_changes_of_a_name_are_refused(run: Run, api: FakeApi) -> None:
    on_record(api)
    unknown = run("bench", "noise", "reads")
    assert unknown.exit_code == Exit.UNKNOWN
    assert "no run of 'reads' with results is on record" in unknown.stderr
    changed = run("bench", "noise", "reads", "--set", "repetitions=3")
    assert changed.exit_code == Exit.USAGE


def test_a_file_without_a_baseline_has_a_hint_and_no_cost(run: Run, api: FakeApi, file: Path) -> None:
    on_record(api, line(RATIOS))
    result = run("bench", "noise", str(file))
    assert result.exit_code == 0, result.output
    assert "the file has no `baseline:`" in result.stderr
    assert words(result.stdout)[-1].startswith("1 cell finds nothing: one pair has no interval; for 5 % use 3 (")


def test_a_refused_file_has_no_figures(run: Run, api: FakeApi, compared: str) -> None:
    on_record(api, line(RATIOS))
    api.refusals[ESTIMATE] = [Answer(400, {"message": "no", "problems": [{"place": ["fleets"], "problem": "x"}]})]
    assert run("bench", "noise", compared).exit_code != 0


def test_the_guide_shows_what_the_commands_print(
    run: Run, api: FakeApi, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = TEXT.replace("name: reads", "name: my-store").replace("threads: 32", "threads: 32\n  version: '1.3'")
    file.write_text(text.replace("expires_after: 2h\n", BASELINE.replace("threads: 16", "version: '1.2'")))
    (file.parent / "my-store").mkdir()
    for one in (file, file.parent / "read.py"):
        one.rename(file.parent / "my-store" / one.name)
    on_record(api, line(RATIOS), line(RATIOS))
    monkeypatch.chdir(file.parent)
    result = run("bench", "noise", "my-store")
    assert result.exit_code == 0, result.output
    assert shown("troop bench noise my-store") == plain(result.stdout)

    sides = against_baseline(STORE_RATES, name="my-store")
    monkeypatch.setattr(bench_compare, "load", lambda ctx, text: sides)
    result = run("bench", "compare", "RUN", "--fail-below", "0.97")
    assert result.exit_code == 0
    printed = plain(result.stdout).replace("s.large", "i4i.large").replace("d.large", "c7g.large")
    assert printed.startswith(shown("troop bench compare RUN --fail-below 0.97"))


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def shown(command: str) -> str:
    """What the guide shows below a command."""
    return GUIDE.read_text(encoding="utf-8").partition(f"\n$ {command}\n")[2].partition("```")[0]


def test_the_guide_has_a_size_that_the_catalogue_accepts(tmp_path: Path) -> None:
    block = GUIDE.read_text(encoding="utf-8").partition("```yaml\ncapacity:\n")[2].partition("```")[0]
    folder = tmp_path / "s3"
    shutil.copytree(CATALOGUE / "s3-range-read", folder)
    text = (folder / "benchmark.yaml").read_text(encoding="utf-8")
    own = "\nsizes:\n  capacity:\n" + "".join(f"  {one}\n" for one in block.splitlines())
    (folder / "benchmark.yaml").write_text(text.replace("\nsizes:\n", own, 1), encoding="utf-8")
    plan = load(folder, "capacity").plan
    assert (len(plan.cells), plan.has_pairs, plan.parallel) == (12, True, 2)
    assert all(any(phase.search for phase in one.benchmark.phases) for one in plan.cells)
