"""fio's results: of one process, and of clients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from troop.measure.collectors import fio
from troop.measure.collectors.common import CollectorError, Problems
from troop.measure.operations import Operations

DATA = Path(__file__).with_name("data")
MEASURED = 2.0
"""Seconds: for as long these jobs ran."""


def document(name: str = "fio-3.33.json") -> dict[str, Any]:
    text = (DATA / name).read_text()
    content: dict[str, Any] = json.loads(text[text.index("{") :])
    return content


def operations_of(document: dict[str, Any]) -> tuple[Operations, list[str]]:
    problems = Problems()
    return fio.operations(json.dumps(document), "a.json", MEASURED, problems), problems.lines()


def jobs(path: Path, key: str) -> list[dict[str, Any]]:
    text = path.read_text()
    entries: list[dict[str, Any]] = json.loads(text[text.index("{") :])[key]
    return entries


@pytest.mark.parametrize(("name", "key"), [("fio-3.33.json", "jobs"), ("fio-3.33-client.json", "client_stats")])
def test_all_clients_count_once_and_jobs_of_one_name_together(name: str, key: str) -> None:
    problems = Problems()
    operations = fio.read(DATA / name, MEASURED, problems)
    assert problems.lines() == []
    assert set(operations) == {"reads:read", "writes:write"}
    for label, direction in (("reads", "read"), ("writes", "write")):
        parts = [job[direction] for job in jobs(DATA / name, key) if job["jobname"] == label]
        operation = operations[f"{label}:{direction}"]
        assert operation.times.count == sum(one["total_ios"] for one in parts)
        assert operation.bytes == sum(one["io_bytes"] for one in parts)
        assert operation.times.max == max(round(one["clat_ns"]["max"] / 1000) for one in parts)
        assert operation.errors == {}


@pytest.mark.parametrize("name", ["fio-3.33.json", "fio-3.33-client.json"])
def test_percentiles_are_fios_own_to_a_bucket(name: str) -> None:
    key = "client_stats" if "client" in name else "jobs"
    job = next(job for job in jobs(DATA / name, key) if job["jobname"] == "reads")
    text = json.dumps({"fio version": "fio-3.33", "jobs": [job]})
    (operation,) = fio.operations(text, "a", MEASURED, Problems()).values()
    for percent, nanoseconds in job["read"]["clat_ns"]["percentile"].items():
        mine = operation.times.percentile(float(percent))
        assert mine is not None
        assert mine == pytest.approx(nanoseconds / 1000, rel=0.03, abs=1.5), percent


def test_one_name_of_jobs_needs_no_label() -> None:
    output = document()
    assert set(operations_of({**output, "jobs": output["jobs"][:2]})[0]) == {"read"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.json:1: there is no fio result"),
        ("fio: cannot open\n", "a.json:1: there is no fio result"),
        ("{}", "no fio result"),
        ('{"fio version": "fio-3.33",\n "jobs": []}', "a.json:2: the result has neither jobs nor client_stats"),
    ],
)
def test_text_without_a_result_is_refused(text: str, message: str) -> None:
    with pytest.raises(CollectorError, match=message):
        fio.operations(text, "a.json", MEASURED, Problems())


@pytest.mark.parametrize(("name", "key"), [("fio-3.33.json", "jobs"), ("fio-3.33-client.json", "client_stats")])
def test_jobs_before_a_truncation_count(name: str, key: str) -> None:
    text = (DATA / name).read_text()
    cut = text[: len(text) // 2]
    problems = Problems()
    operations = fio.operations(cut, "a.json", MEASURED, problems)
    reads = [job for job in jobs(DATA / name, key) if job["jobname"] == "reads"]
    assert operations["read"].times.count == sum(job["read"]["total_ios"] for job in reads[:2])
    (problem,) = problems.lines()
    line = int(problem.split(":")[1])
    assert "cut off" in problem
    assert line == cut.count("\n") + 1


def test_only_the_last_of_several_results_counts() -> None:
    text = (DATA / "fio-3.33.json").read_text()
    problems = Problems()
    problems.add("of another file")
    operations = fio.operations(text.replace("32956", "1") + text, "a.json", MEASURED, problems)
    assert operations == fio.operations(text, "a.json", MEASURED, Problems())
    assert problems.lines() == ["of another file"]


def test_rates_of_jobs_that_ran_for_another_time_are_not_passed_on_in_silence() -> None:
    problems = Problems()
    fio.read(DATA / "fio-3.33.json", 10.0, problems)
    assert len(problems.lines()) == 4
    assert "fio-3.33.json:15: job reads ran for 2.001 s instead of the measured 10 s" in problems.lines()[0]


def test_a_direction_without_bins_is_a_problem_and_all_others_count() -> None:
    output = document()
    first, second, *_ = output["jobs"]
    first["write"] = json.loads(json.dumps(first["read"]))
    del first["read"]["clat_ns"]["bins"]
    output["jobs"][3]["error"] = 5
    operations, problems = operations_of(output)
    assert operations["reads:read"].times.count == second["read"]["total_ios"]
    assert operations["reads:write"].times.count == first["write"]["total_ios"]
    assert any("cannot read job reads" in line and "json+" in line for line in problems)
    assert any("job writes ended with error 5" in line for line in problems)


@pytest.mark.parametrize(
    ("key", "number"),
    [
        ("io_bytes", 10**400),
        ("io_bytes", -1),
        ("runtime", float("nan")),
        ("runtime", float("inf")),
        ("runtime", 10**400),
    ],
)
def test_a_number_out_of_range_costs_its_direction_alone(key: str, number: float) -> None:
    damaged = document()
    damaged["jobs"][0]["read"][key] = number
    whole, _ = operations_of(document())
    rest, problems = operations_of(damaged)
    assert "cannot read job reads" in problems[0]
    assert rest["reads:read"].times.count == damaged["jobs"][1]["read"]["total_ios"] < whole["reads:read"].times.count


def test_errors_without_number_cost_their_job_alone() -> None:
    damaged = document()
    damaged["jobs"][0]["total_err"] = 10**400
    rest, problems = operations_of(damaged)
    assert "cannot read job reads" in problems[0]
    assert rest["reads:read"].errors == {}


def test_reads_and_writes_that_fio_tells_together_are_mixed() -> None:
    """As with unified_rw_reporting=mixed; with "both" the parts are told as well, and count."""
    output = document()
    (job, *_) = output["jobs"] = output["jobs"][:1]
    both = {**job, "mixed": job["read"]}
    assert set(operations_of({**output, "jobs": [both]})[0]) == {"read"}
    alone = {key: value for key, value in both.items() if key not in fio.DIRECTIONS}
    operations, problems = operations_of({**output, "jobs": [alone]})
    assert problems == []
    assert operations["mixed"].times.count == job["read"]["total_ios"]


def test_job_without_operations_is_a_problem() -> None:
    output = document()
    output["jobs"][0]["read"]["total_ios"] = 0
    operations, problems = operations_of(output)
    assert problems == ["a.json:1: job reads did nothing"]
    assert operations["reads:read"].times.count == output["jobs"][1]["read"]["total_ios"]


@pytest.mark.parametrize(
    ("rw", "name"),
    [("randread", "read"), ("write", "write"), ("randrw", "read"), ("randtrim", "trim"), (None, "mixed")],
)
def test_errors_count_where_nothing_has_succeeded(rw: str | None, name: str) -> None:
    output = document()
    (job, *_) = output["jobs"] = output["jobs"][:1]
    job["read"]["total_ios"], job["total_err"] = 0, 321
    job["job options"].pop("rw", None)
    if rw:
        job["job options"]["rw"] = rw
    operations, problems = operations_of(output)
    assert {key: (one.times.count, one.errors) for key, one in operations.items()} == {name: (0, {"failed": 321})}
    assert problems == ["a.json:1: all 321 operations of job reads failed"]


@pytest.mark.parametrize("part", [0.001, 0.3, 0.8])
def test_a_last_result_that_was_cut_off_leaves_the_one_before(part: float) -> None:
    text = (DATA / "fio-3.33.json").read_text()
    whole = fio.operations(text, "a.json", MEASURED, Problems())
    problems = Problems()
    length = text.index('"fio version"') + 20 + int(len(text) * part)
    assert fio.operations(text + text[:length], "a.json", MEASURED, problems) == whole
    assert "the result before it counts" in problems.lines()[-1]


def test_very_many_jobs_are_as_many_operations_as_a_node_may_have() -> None:
    output = document()
    many = [{**output["jobs"][0], "jobname": f"job{n}"} for n in range(273)]
    operations, _ = operations_of({**output, "jobs": many})
    assert len(operations) == 257
    assert operations["other"].times.count == 17 * operations["job0:read"].times.count


def test_syncs_are_an_operation() -> None:
    """Of a real run with fdatasync=1, as people check disks for etcd. This version has times of syncs, and 0 as their
    number.
    """
    problems = Problems()
    operations = fio.read(DATA / "fio-3.33-fdatasync.json", 2.0, problems)
    assert problems.lines() == []
    assert set(operations) == {"write", "sync"}
    sync = operations["sync"]
    assert (sync.times.count, sync.times.max, sync.bytes, sync.errors) == (387, 15_954, 0, {})
    assert sync.times.sum / sync.times.count == pytest.approx(5172.28, rel=0.01)
    assert sync.times.percentile(99) == pytest.approx(13_173, rel=0.01)


def test_syncs_without_bins_are_a_problem() -> None:
    output = document("fio-3.33-fdatasync.json")
    del output["jobs"][0]["sync"]["lat_ns"]["bins"]
    operations, problems = operations_of(output)
    assert set(operations) == {"write"}
    assert "the syncs have no bins" in problems[0]


def test_a_version_without_nanoseconds_is_refused() -> None:
    with pytest.raises(CollectorError, match=r"a\.json:2: fio 2 is too old: use version 3 or later"):
        fio.operations('{\n "fio version" : "fio-2.21",\n "jobs": []}', "a.json", 2.0, Problems())


def test_names_of_jobs_that_are_not_utf_8_stay_apart(tmp_path: Path) -> None:
    output = document("fio-3.33-fdatasync.json")
    jobs = [{**output["jobs"][0], "jobname": f"Gr{letter}ße"} for letter in "öü"]
    path = tmp_path / "a.json"
    path.write_bytes(json.dumps({**output, "jobs": jobs}, ensure_ascii=False).encode("cp1252"))
    assert len(fio.read(path, 2.0, Problems())) == 4
