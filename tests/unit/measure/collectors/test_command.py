"""The command, as a phase's script runs it: what it writes, the agent reads."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from agent.collect import operations_in, samples_with, separate_in
from troop.measure import recordings
from troop.measure.collectors import wrk
from troop.measure.collectors.__main__ import main
from troop.measure.operations import Rate
from troop.measure.separate import Separate
from troop.measure.summary import SERIES, Samples

DATA = Path(__file__).with_name("data")
STRESS = DATA / "cassandra-stress.hlog"
LATTE = DATA.parent.parent / "logs" / "latte-0.29.0.hlog"
BEGAN = 1_795_287_000
"""A whole second within half a minute of which all of the logs are."""

SAMPLED = Samples(1_795_297_520, 1, {name: [7] * 10 for name in SERIES})
"""Of a time in which both of sysstat's files are."""


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of results of a phase that measured 100 s from :data:`BEGAN` on."""
    monkeypatch.setenv("TROOP_RESULTS", str(tmp_path))
    monkeypatch.setenv("TROOP_MEASURED_FROM", str(BEGAN))
    monkeypatch.setenv("TROOP_MEASURED_SECONDS", "100")
    monkeypatch.setenv("TROOP_WARM_UP_SECONDS", "10")
    return tmp_path


def run(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def test_samples_of_jmeter_become_operations(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("jtl", DATA / "jmeter-5.6.3.jtl", DATA / "jmeter-5.6.3.jtl") == 0
    operations = operations_in(results, [])
    assert operations["missing"].errors == {"404": 64}
    assert operations["GET-the-home-page-4f4e59ec"].times.count == 64
    assert operations["GET-the-home-page-4f4e59ec"].over_time is not None
    assert "GET-the-home-page-4f4e59ec: 32 operations and 0 errors in the measured time" in capsys.readouterr().out


def test_a_log_is_read_while_a_process_writes_it(results: Path, tmp_path: Path) -> None:
    """The process is a child that nobody has waited for, as in a shell script."""
    text = (DATA / "jmeter-5.6.3.jtl").read_text()
    source, log = tmp_path / "source", tmp_path / "growing.jtl"
    source.write_text(text)
    half = len(text) // 2
    writes = f"sleep 0.3; head -c {half} {source} > {log}; sleep 0.3; tail -c +{half + 1} {source} >> {log}"
    with subprocess.Popen(["sh", "-c", writes]) as writer:
        assert run("jtl", log, "--while", writer.pid) == 0
    assert operations_in(results, [])["missing"].errors == {"404": 32}


def test_runs_of_wrk_stay_apart(results: Path) -> None:
    assert run("wrk", "--operation", "home", DATA / "wrk-4.1.0.txt", DATA / "wrk-4.1.0-timeouts.txt") == 0
    problems: list[str] = []
    rows = separate_in(results, problems)
    assert problems == []
    assert [(row.tool, row.operation, row.count) for row in rows] == [("wrk", "home", 282_619), ("wrk", "home", 16)]
    assert operations_in(results, []) == {}


def test_tests_of_iozone_become_operations(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("iozone", DATA / "iozone-3.489-ops.txt", "--prefix", "4k") == 0
    problems: list[str] = []
    operations = operations_in(results, problems)
    assert problems == []
    assert set(operations) == {
        "4k-initial-writers",
        "4k-rewriters",
        "4k-random-readers",
        "4k-random-writers",
    }
    assert operations["4k-rewriters"].rate == Rate(1_848_416_880, 7_571_115_540, 2, 1021)
    assert separate_in(results, []) == ()
    assert "4k-rewriters: 1.84842e+06 operations a second" in capsys.readouterr().out


def test_iozone_needs_no_prefix(results: Path) -> None:
    assert run("iozone", DATA / "iozone-3.489.txt") == 0
    assert "initial-writers" in operations_in(results, [])


def test_a_summary_of_cassandra_stress_stays_apart(results: Path) -> None:
    assert run("cassandra-stress", DATA / "cassandra-stress-mixed.txt") == 0
    rows = separate_in(results, [])
    assert [(row.tool, row.operation) for row in rows] == [
        ("cassandra-stress", "READ"),
        ("cassandra-stress", "WRITE"),
    ]


def test_with_its_log_cassandra_stress_is_operations_and_response_times_stand_beside_service_times(
    results: Path,
) -> None:
    assert run("cassandra-stress", DATA / "cassandra-stress-mixed.txt", "--hdr", STRESS) == 0
    operations = operations_in(results, [])
    assert (operations["READ"].times.count, operations["WRITE"].times.count) == (860, 1260)
    assert operations["WRITE"].errors == {"failed": 7}
    assert separate_in(results, []) == ()
    for file in results.glob("operations-*.json"):
        file.unlink()
    assert run("hdr", STRESS, "--tag", "WRITE-st", "--operation", "w") == 0
    assert operations["WRITE"].service == operations_in(results, [])["w"].times != operations["WRITE"].times


def test_log_with_several_tags_needs_the_tag_option(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("hdr", STRESS, "--tag", "READ-st", "--operation", "read") == 0
    assert operations_in(results, [])["read"].times.count == 860
    assert run("hdr", STRESS, "--operation", "read") == 1
    assert "would count twice: choose one with --tag" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "timing", "tool"),
    [
        (["jtl", DATA / "jmeter-5.6.3.jtl"], "service", "JMeter"),
        (["fio", DATA / "fio-3.33-client.json"], "service", "fio"),
        (["cassandra-stress", DATA / "cassandra-stress-mixed.txt", "--hdr", STRESS], "response", "cassandra-stress"),
        (["hdr", STRESS, "--tag", "WRITE-rt", "--operation", "w"], "response", None),
        (["hdr", STRESS, "--tag", "WRITE-st", "--operation", "w", "--tool", "stress"], "service", "stress"),
        (["hdr", LATTE, "--tag", "requests", "--operation", "w"], None, None),
        (["hdr", LATTE, "--tag", "requests", "--operation", "w", "--timing", "service"], "service", None),
    ],
)
def test_results_say_what_their_times_mean_and_which_tool_measured(
    arguments: list[object], timing: str | None, tool: str | None, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if arguments[0] == "fio":
        monkeypatch.setenv("TROOP_MEASURED_SECONDS", "2")
    if LATTE in arguments:
        monkeypatch.setenv("TROOP_MEASURED_FROM", "1795286539")
    assert run(*arguments) == 0
    measured = [one for one in operations_in(results, []).values() if one.times.count]
    assert {one.timing for one in measured} == {timing}
    assert {one.tools for one in measured} == {frozenset({tool} if tool else ())}
    for one in measured:
        assert (one.service is None) == (timing != "response")


def test_service_times_of_a_log_are_under_the_tag_that_is_named(results: Path) -> None:
    arguments = ["hdr", STRESS, "--tag", "READ-wt", "--operation", "r"]
    assert run(*arguments, "--timing", "response", "--service-tag", "READ-st") == 0
    read = operations_in(results, [])["r"]
    assert read.service is not None
    assert read.service.count == read.times.count
    assert run(*arguments, "--timing", "response", "--service-tag", "nowhere") == 1
    with pytest.raises(SystemExit):
        run(*arguments, "--service-tag", "READ-st")
    with pytest.raises(SystemExit):
        run(*arguments, "--tool", "my tool")


def test_metrics_of_sysstat_take_the_place_of_what_the_agent_sampled(results: Path) -> None:
    assert run("sysstat", DATA / "sadf-12.6.json", DATA / "iostat-12.6.json") == 0
    problems: list[str] = []
    samples = samples_with(results, SAMPLED, problems)
    assert problems == []
    assert samples is not None
    assert (samples.start, samples.interval_seconds) == (1_795_297_520, 1)
    assert samples.series["disk_writes"] == [7, 7, 7, 7, 17, 10, 0, 0, 391, 0]
    assert samples.series["network_sent_bytes"][9] == 7
    assert samples.devices is not None
    assert samples.devices.series["vda"]["operations"][8:] == [412, 0]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            '{"format": "troop.samples/1", "samples": {"from": 1}}',
            "samples.interval_seconds must be a whole number from 0, below 2^63",
        ),
        ("[" * 100_000, ""),
    ],
    ids=["incomplete", "nested"],
)
def test_unreadable_samples_are_named_with_their_file_and_cost_no_others(text: str, why: str, results: Path) -> None:
    (results / "samples-a.json").write_text(text)
    assert run("sysstat", DATA / "iostat-12.6.json") == 0
    problems: list[str] = []
    samples = samples_with(results, SAMPLED, problems)
    (problem,) = problems
    assert problem.startswith(f"samples-a.json of the script's results cannot be read: {why}")
    assert samples is not None
    assert samples.series["disk_reads"][-1] == 0


def test_unreadable_file_is_a_problem_and_other_files_count(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut = results / "cut.jtl"
    cut.write_text((DATA / "jmeter-5.6.3.jtl").read_text()[:-150])
    missing, empty = results / "missing.jtl", results / "empty.jtl"
    empty.touch()
    assert run("jtl", missing, empty, cut, DATA / "jmeter-5.6.3.jtl") == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[0] for line in lines[1:]] == [f"{empty}:1", f"{cut}:97", f"{cut}:97"]
    assert "missing.jtl" in lines[0]
    assert sum(operation.times.count for operation in operations_in(results, []).values()) == 64


def test_a_folder_that_is_not_there_is_an_error_and_no_stack(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(results)
    assert run("wrk", DATA / "wrk-4.1.0.txt") == 1
    assert "No such file" in capsys.readouterr().err


@pytest.mark.parametrize("error", [None, OSError("the disk is full")])
def test_a_collector_that_is_killed_leaves_a_mark_and_another_none(
    error: OSError | None, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile: list[str] = []

    def read(*_: object) -> list[Separate]:
        meanwhile.extend(recordings.lost(results))
        if error:
            raise error
        return [Separate("wrk", "home", 1)]

    monkeypatch.setattr(wrk, "read", read)
    assert run("wrk", DATA / "wrk-4.1.0.txt") == (1 if error else 0)
    assert meanwhile == [str(os.getpid())]
    assert list(recordings.lost(results)) == []


K6 = "metric_name,timestamp,metric_value,name,status,error_code\n"


@pytest.mark.parametrize(
    ("tool", "text", "where"),
    [
        (
            "jtl",
            f"timeStamp,elapsed,label,success,threadName,responseMessage\n{BEGAN},50,a,true,t,OK\n",
            "at 1970-01-21T",
        ),
        ("k6", f"{K6}http_req_duration,{BEGAN - 99}000,5,a,200,\n", "outside the measured time, the last at 20"),
        ("k6", f"{K6}http_req_duration,{BEGAN - 5}000,5,a,200,\n", "1 requests were outside the measured time"),
    ],
)
def test_a_log_without_operations_in_the_measured_time_is_a_problem(
    tool: str, text: str, where: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such as one with the wrong unit or clock, and one that only has the warm-up."""
    log = results / "log"
    log.write_text(text)
    assert run(tool, log) == 1
    sentence = capsys.readouterr().err
    assert f"{log}: no operation ended in the measured time" in sentence
    assert where in sentence


def test_another_problem_of_a_log_can_be_why_it_has_no_operation(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = results / "log"
    log.write_text(f"{K6}http_req_duration,{BEGAN}000,5,a,200,,\n")
    assert run("k6", log) == 1
    assert capsys.readouterr().err == f"{log}:2: the row has 7 columns, but the header has 6\n"


def test_tests_of_iozone_without_a_throughput_are_a_problem(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = results / "log"
    text = (DATA / "iozone-3.489.txt").read_text()
    log.write_text(re.sub(r"(Children see throughput for.*= +)[0-9.]+", r"\g<1>0.00", text))
    assert run("iozone", log) == 1
    assert capsys.readouterr().err == f"{log}: the tool counted no operation\n"


@pytest.mark.parametrize("name", ["recording-video.json", "recording-", "recording-1", "recording-1-2.csv"])
def test_a_file_of_the_script_is_no_mark_of_a_recording(name: str, tmp_path: Path) -> None:
    mark = recordings.begin(tmp_path)
    (tmp_path / name).touch()
    assert list(recordings.lost(tmp_path)) == [str(os.getpid())]
    recordings.end(mark)
    assert list(recordings.lost(tmp_path)) == []
