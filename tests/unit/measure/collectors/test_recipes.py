"""The documents' recipes for tools without a collector, each with what the tool itself has written."""

from __future__ import annotations

import csv
import re
import shlex
import shutil
from pathlib import Path

import pytest

from agent.collect import operations_in
from infra import ROOT
from troop.measure.collectors.__main__ import main
from troop.measure.operations import Operation

DATA = Path(__file__).with_name("data")
RECIPES = dict(
    re.findall(
        r"^\| ([\w-]+) \| .* \| `((?:table|spectrum|hdr) .*)` \|$",
        (ROOT / "docs/guides/benchmark-tools.md").read_text(),
        re.MULTILINE,
    )
)
"""The arguments of the command by tool."""
OUTPUT = {
    "vegeta": "vegeta-12.13.csv",
    "hey": "hey-0.1.5.csv",
    "oha": "oha-1.9.0.csv",
    "pgbench": "pgbench-15.18.log",
    "ab": "ab-2.3.tsv",
    "YCSB": "ycsb-0.17.0-READ.hdr",
    "memtier": "memtier-2.3.1-get.hgrm",
    "wrk2": "wrk2-4.0.0.txt",
    "sysbench": "sysbench-1.0.20.txt",
    "redis-benchmark": "redis-benchmark-7.0.15.txt",
}
BEGAN = "1795708934.243024837"
"""When hey and oha began, for the test."""


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TROOP_RESULTS", str(tmp_path))
    monkeypatch.setenv("TROOP_MEASURED_FROM", "1795708900")
    monkeypatch.setenv("TROOP_MEASURED_SECONDS", "300")
    return tmp_path


def recipe(tool: str, folder: Path) -> list[str]:
    """The arguments, with the tool's real output under the name of the recipe."""
    words = shlex.split(RECIPES[tool].replace('"$(cat began)"', BEGAN))
    path = folder / words[1]
    shutil.copyfile(DATA / OUTPUT[tool], path)
    return [words[0], str(path), *words[2:]]


def measured(tool: str, results: Path) -> Operation:
    assert main(recipe(tool, results)) == 0
    (one,) = operations_in(results, []).values()
    assert one.tools == {tool}
    return one


def millis(one: Operation, percent: float) -> float:
    value = one.times.percentile(percent)
    assert value is not None
    return value / 1000


def test_each_recipe_is_tested() -> None:
    assert set(RECIPES) == set(OUTPUT)


def test_hits_of_vegeta(results: Path) -> None:
    one = measured("vegeta", results)
    assert (one.times.count, one.bytes, one.timing) == (74, 7400, "response")
    assert one.errors == {"503": 6, "connection-refused": 20}
    assert one.over_time is not None


def test_requests_of_hey(results: Path) -> None:
    """Its offsets are of the beginning of a request."""
    one = measured("hey", results)
    assert one.times.count + sum(one.errors.values()) == 116
    seconds = [n for n, count in enumerate(one.per_second.count, one.per_second.start) if count]
    assert seconds == [1795708934, 1795708935, 1795708936]


def test_requests_of_oha(results: Path) -> None:
    """Of 300 requests, 9 were answered with 503."""
    one = measured("oha", results)
    with (DATA / OUTPUT["oha"]).open() as file:
        good = [row for row in csv.DictReader(file) if row["status"] == "200"]
    assert (one.times.count, one.errors, one.bytes) == (291, {"503": 9}, 5 * 291)
    assert one.times.sum == pytest.approx(sum(float(row["request-duration"]) for row in good) * 1e6, rel=0.001)


def test_transactions_of_pgbench(results: Path) -> None:
    """It reported 166 transactions with a mean of 14.104 ms, from when they were due, and 7 that it skipped."""
    one = measured("pgbench", results)
    assert (one.times.count, one.errors, one.timing) == (166, {"skipped": 7}, "response")
    assert one.times.sum / one.times.count == pytest.approx(14_104, abs=1)


def test_requests_of_ab(results: Path) -> None:
    one = measured("ab", results)
    assert (one.times.count, one.times.max) == (
        120,
        max(map(ab_millis, (DATA / OUTPUT["ab"]).read_text().splitlines()[1:])),
    )


def ab_millis(line: str) -> int:
    return 1000 * int(line.split("\t")[4])


def test_a_log_of_ycsb(results: Path) -> None:
    """It reported 2,771 reads, with a mean of 1,867 us, 3,681 us for 95 percent, and at most 69,119 us."""
    one = measured("YCSB", results)
    assert (one.times.count, one.times.max) == (2771, pytest.approx(69_119, rel=0.001))
    assert one.times.sum / one.times.count == pytest.approx(1867.25, rel=0.001)
    assert millis(one, 95) == pytest.approx(3.681, rel=0.005)


def test_a_log_of_memtier(results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It printed 17,056.45 a second for 4.004 s, a mean of 0.21104 ms, and 0.087 and 3.103 ms for 50 and 99 percent.

    It stores times in steps of 8 us and prints the end of a step, and Troop counts its middle.
    """
    monkeypatch.setenv("TROOP_MEASURED_FROM", "1795715972")
    monkeypatch.setenv("TROOP_MEASURED_SECONDS", "4")
    one = measured("memtier", results)
    assert one.times.count == pytest.approx(17_056.45 * 4.004, rel=0.001)
    assert one.times.sum / one.times.count == pytest.approx(211.04, rel=0.01)
    assert [millis(one, percent) for percent in (50, 99)] == pytest.approx([0.087, 3.103], abs=0.01)
    assert "the log keeps times in steps of 8 us" in capsys.readouterr().err


def test_the_spectrum_of_wrk2(results: Path) -> None:
    """It printed 245 requests with a mean of 894 ms, and 903.17 ms, 1.61 s and 1.76 s for 50, 90 and 99 percent."""
    one = measured("wrk2", results)
    assert (one.times.count, one.timing) == (245, "response")
    assert [millis(one, percent) for percent in (50, 90, 99)] == pytest.approx([903.17, 1610, 1763], rel=0.002)
    assert 1 <= one.times.sum / one.times.count / 894_126 < 1.07


def test_the_histogram_of_sysbench(results: Path) -> None:
    """It reported 25,822 events."""
    one = measured("sysbench", results)
    assert (one.times.count, millis(one, 50), millis(one, 100)) == (25_822, 0.022, 74.464)


def test_the_percentiles_of_redis_benchmark(results: Path) -> None:
    one = measured("redis-benchmark", results)
    text = (DATA / OUTPUT["redis-benchmark"]).read_text()
    median = re.search(r"50.000% <= ([0-9.]+) milliseconds", text[text.index("= GET =") :])
    assert median is not None
    assert (one.times.count, millis(one, 50)) == (20_000, float(median[1]))


@pytest.mark.parametrize("tool", ["wrk2", "redis-benchmark"])
def test_one_of_several_distributions_must_be_chosen(
    tool: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = recipe(tool, results)
    without = [word for n, word in enumerate(words) if word != "--after" and words[n - 1] != "--after"]
    assert main(without) == 1
    assert "there is another distribution: choose one by the texts before it" in capsys.readouterr().err
    assert main([*without, "--after", "nowhere"]) == 1
    assert "there is no distribution of values and counts after 'nowhere'" in capsys.readouterr().err
