"""The function that makes reports: what it writes, of what, as often as it is asked, and what it makes none of."""

from __future__ import annotations

import html
import json
import tomllib
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from handlers import report as report_handler
from infra import ROOT
from tests.unit.account.account import CONTEXT, before, calls, refusing
from tests.unit.account.benches import BUCKET, CELL, Bench
from tests.unit.account.fixtures import Log
from tests.unit.report.test_stored_record import TERMS
from troop.bench.aws.cell_store import CellStore
from troop.bench.aws.stored_runs import StoredRuns
from troop.bench.definition import names
from troop.bench.definition.standing import Standing
from troop.bench.records import archive
from troop.bench.records.archive import DamagedError, ReportError
from troop.bench.records.line import Line
from troop.bench.records.record import CellStatus, RunStatus
from troop.report import cells
from troop.report.aws.announcements import Announced, Announcements
from troop.report.change_news import alike, news
from troop.report.document import Report
from troop.shared import codec
from troop.shared.aws.clients import client
from troop.shared.aws.dynamo import plain
from troop.shared.benchmark_change import BenchmarkChange
from troop.shared.errors import MissingRunError, NotEndedError
from troop.shared.state_keys import CHANGE_POINT
from troop.shared.version import VERSION

FILES = ("record.json", "report.html", "report.json")


def end(bench: Bench) -> None:
    now = bench.account.clock()
    bench.runs.close(bench.run, RunStatus.SUCCEEDED, None, now)
    bench.runs.conclude(bench.run, now)


def make(bench: Bench) -> dict[str, Any]:
    answer: dict[str, Any] = report_handler.handler({"run": bench.run}, CONTEXT)
    return answer


def written(bench: Bench) -> dict[str, bytes]:
    """What the function has written, by name."""
    prefix = f"runs/{bench.run}/"
    there = [key.removeprefix(prefix) for key in bench.objects() if key.removeprefix(prefix) in FILES]
    return {name: bench.s3.get_object(Bucket=BUCKET, Key=prefix + name)["Body"].read() for name in there}


def test_report_equals_the_measurements_and_its_repetition(bench: Bench, log: Log) -> None:
    bench.measuring()
    bench.finish("measure", bench.nodes("drivers"))
    assert bench.check(1) == "done"
    bench.step("collect")
    end(bench)
    assert make(bench) == {"run": bench.run, "made": True}
    files = written(bench)
    assert sorted(files) == sorted(FILES)
    report = Report.model_validate_json(files["report.json"])
    (row,) = bench.cell().results or []
    (operation,) = report.cells[0].phases[0].operations
    assert (operation.operation, operation.count, operation.per_second) == ("read", row["count"], row["per_second"])
    assert (report.run.run, report.run.status, report.created_by) == (bench.run, "SUCCEEDED", VERSION)
    assert bench.run in files["report.html"].decode()
    record = json.loads(files["record.json"])
    assert (record["format"], record["run"]["run"], record["terms"]) == ("troop.record/1", bench.run, None)
    (line,) = [line for line in log() if line["message"] == "report"]
    assert (line["correlation_id"], line["cells"]) == (bench.run, 1)
    bench.account.clock.forward(seconds=0.25)
    make(bench)
    again = written(bench)
    assert again["report.html"] != files["report.html"], "its etag says that it was made again"
    first, second = (json.loads(one["report.json"]) for one in (files, again))
    assert first.pop("created_at") != second.pop("created_at")
    assert first == second


def measured(bench: Bench) -> Line:
    """The line of a run that has measured and ended."""
    bench.measuring()
    bench.finish("measure", bench.nodes("drivers"))
    bench.check(1)
    bench.step("collect")
    end(bench)
    make(bench)
    (line,) = bench.runs.lines.newest(bench.runs.get(bench.run).name, 10)
    return line


def test_a_report_says_that_the_benchmark_has_changed(bench: Bench) -> None:
    line = measured(bench)
    for n in range(1, 40):
        earlier = replace(line, run=f"earlier-{n}", at=line.at - timedelta(days=n))
        factor = 2 if n > 10 else 1
        rates = [replace(one, per_second=one.per_second * factor) for one in line.figures[0].values]
        bench.runs.lines.put(replace(earlier, figures=(replace(line.figures[0], values=tuple(rates)),)))
    make(bench)
    report = Report.model_validate_json(written(bench)["report.json"])
    (text,) = [one.text for one in report.findings if one.cause == "The benchmark has changed"]
    assert "Since the run earlier-10" in text
    assert "50.0% lower" in text
    assert text in html.unescape(written(bench)["report.html"].decode())


def test_line_equals_the_report_and_its_repetition(bench: Bench) -> None:
    line = measured(bench)
    report = Report.model_validate_json(written(bench)["report.json"])
    (operation,) = report.cells[0].phases[0].operations
    assert (line.run, line.at, line.status) == (bench.run, bench.runs.get(bench.run).at, "SUCCEEDED")
    (figures,) = line.figures
    assert (figures.role, figures.operation) == (operation.role, operation.operation)
    assert [one.per_second for one in figures.values] == [pytest.approx(operation.per_second, rel=1e-5)]
    make(bench)
    assert list(bench.runs.lines.newest(line.name, 10)) == [line]


def nights(bench: Bench, line: Line, schedule: str = "nightly") -> None:
    """Stores lines of earlier nights like one, which were faster until eight of them."""
    for night in range(1, 40):
        faster = (1.1 if night > 8 else 1.0) * (1 + 0.001 * (night % 3))
        (figures,) = line.figures
        values = tuple(replace(one, per_second=one.per_second * faster) for one in figures.values)
        bench.runs.lines.put(
            replace(
                line,
                run=f"earlier-{night:02}",
                at=line.at - timedelta(days=night),
                schedule=schedule,
                figures=(replace(figures, values=values),),
            )
        )


def scheduled(bench: Bench, name: str = "nightly") -> None:
    caller = f"arn:aws:iam::123456789012:user/ann (schedule {name})"
    bench.account.change("Runs", {"run": bench.run, "item": "run"}, requested_by=caller)


def announced(bench: Bench) -> list[dict[str, Any]]:
    items = bench.account.dynamodb.scan(TableName="State")["Items"]
    return [plain(item) for item in items if item["key"]["S"].startswith(CHANGE_POINT)]


def test_change_of_a_schedule_is_announced_once(bench: Bench, log: Log) -> None:
    nights(bench, measured(bench))
    scheduled(bench)
    make(bench)
    (item,) = announced(bench)
    change = codec.from_document(BenchmarkChange, item["change"])
    assert (change.run, change.run_before, change.reporting_run) == ("earlier-08", "earlier-09", bench.run)
    assert [round(one.after / one.before, 2) for one in change.figures] == [0.91]
    assert item["expires_at"] > bench.account.clock().timestamp() + timedelta(days=365).total_seconds()
    make(bench)
    assert announced(bench) == [item], "no second notification"
    lines = [line for line in log() if line["message"] == "report"]
    assert [line.get("changed_from") for line in lines] == [None, "earlier-08", None]


@pytest.mark.parametrize(("is_another", "version"), [(False, 1), (True, 2)])
def test_two_runs_that_find_a_change_at_the_same_moment_announce_it_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, is_another: bool, version: int
) -> None:
    line = measured(bench)
    nights(bench, line)
    scheduled(bench)
    its = replace(line, schedule="nightly")
    other = Announcements(bench.account.dynamodb, "State")
    lines = alike(bench.runs.lines.newest(line.name, 100), its)

    def announce() -> None:
        new = news(lines, ())
        assert new
        new = replace(new, announcements=()) if is_another else new
        assert other.announce(its, new, Announced(), bench.account.clock())

    with calls(monkeypatch, before("UpdateItem", announce)):
        make(bench)
    assert [item["version"] for item in announced(bench)] == [version]


def test_damaged_record_of_announcements_is_replaced(bench: Bench) -> None:
    nights(bench, measured(bench))
    scheduled(bench)
    make(bench)
    bench.account.change("State", {"key": announced(bench)[0]["key"]}, announcements="nothing")
    make(bench)
    assert [(item["version"], len(item["announcements"])) for item in announced(bench)] == [(2, 1)]


@pytest.mark.parametrize("case", ["by hand", "another schedule", "long ago"])
def test_run_that_announces_no_change(bench: Bench, case: str) -> None:
    nights(bench, measured(bench), "" if case == "by hand" else "nightly")
    if case != "by hand":
        scheduled(bench, "weekly" if case == "another schedule" else "nightly")
    if case == "long ago":
        bench.account.clock.forward(seconds=timedelta(days=1).total_seconds())
    make(bench)
    assert announced(bench) == []


@pytest.mark.parametrize("step", ["collect", "fail"])
def test_report_is_the_same_without_its_stored_parts(bench: Bench, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.measuring()
    bench.finish("measure", bench.nodes("drivers"))
    bench.step(step, **({"error": "X", "cause": "a later step"} if step == "fail" else {}))
    end(bench)
    with monkeypatch.context() as patch:
        patch.setattr(cells, "figures", lambda _phase: pytest.fail("the part is not used"))
        make(bench)
    files = written(bench)
    assert json.loads(files["report.json"])["cells"][0]["phases"][0]["series"]
    bench.s3.delete_object(Bucket=BUCKET, Key=names.report_part_key(bench.run, CELL))
    make(bench)
    assert written(bench) == files


def test_a_cell_ends_without_its_part_if_s3_refuses_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    put = CellStore.put

    def refused(store: CellStore, key: str, *rest: Any) -> None:
        if key == names.report_part_key(bench.run, CELL):
            raise ClientError({"Error": {"Code": "SlowDown"}}, "PutObject")
        put(store, key, *rest)

    monkeypatch.setattr(CellStore, "put", refused)
    bench.measuring()
    bench.finish("measure", bench.nodes("drivers"))
    assert bench.step("collect")["state"] == "done"
    assert names.results_key(bench.run, CELL) in bench.objects()


def test_record_has_prices_and_stored_files_have_types_and_no_cache(bench: Bench) -> None:
    priced = replace(bench, run="").admit(key="priced", terms=TERMS)
    end(priced)
    make(priced)
    assert json.loads(written(priced)["record.json"])["terms"] is not None
    heads = {name: bench.s3.head_object(Bucket=BUCKET, Key=f"runs/{priced.run}/{name}") for name in FILES}
    assert {name: head["ContentType"] for name, head in heads.items()} == {
        "record.json": "application/json",
        "report.html": "text/html; charset=utf-8",
        "report.json": "application/json",
    }
    assert {head["CacheControl"] for head in heads.values()} == {"no-cache"}


def test_a_run_that_failed_before_it_had_a_node_has_one(bench: Bench) -> None:
    now = bench.account.clock()
    bench.runs.cells.change(bench.run, CELL, status=CellStatus.FAILED, reason="no capacity")
    bench.runs.close(bench.run, RunStatus.FAILED, "no capacity", now)
    bench.runs.conclude(bench.run, now + timedelta(minutes=1))
    assert make(bench)["made"]
    report = Report.model_validate_json(written(bench)["report.json"])
    assert (report.cells[0].status, report.cells[0].phases) == ("FAILED", [])
    assert [one for one in report.findings if "no capacity" in one.text]
    (line,) = bench.runs.lines.newest(report.run.name, 10)
    assert (line.run, line.status, line.figures) == (bench.run, "FAILED", ())


def test_standing_fleet_has_no_report(bench: Bench) -> None:
    fleet = replace(bench.runs.get(bench.run), run="20261120-000000-00000001", standing=Standing({"drivers": 2}))
    assert bench.runs.create(fleet, [])
    bench.run = fleet.run
    assert make(bench) == {"run": fleet.run, "made": False}
    assert written(bench) == {}
    assert list(bench.runs.lines.newest(fleet.name, 10)) == []


def test_open_or_unknown_run_has_no_report(bench: Bench) -> None:
    with pytest.raises(NotEndedError):
        make(bench)
    bench.run = "20261120-000000-00000002"
    with pytest.raises(MissingRunError):
        make(bench)
    assert written(bench) == {}


def test_expired_run_has_no_report_and_is_not_an_error(bench: Bench, log: Log) -> None:
    end(bench)
    bench.s3.delete_object(Bucket=BUCKET, Key=f"runs/{bench.run}/definition.json")
    assert make(bench) == {"run": bench.run, "made": False}
    assert written(bench) == {}, "nothing comes back of a run that has expired"
    (line,) = [line for line in log() if line["message"] == "no report"]
    assert "have expired, so it can have no report" in line["why"]


def test_run_with_an_unreadable_definition_has_no_report(bench: Bench) -> None:
    end(bench)
    bench.s3.put_object(Bucket=BUCKET, Key=f"runs/{bench.run}/definition.json", Body=b"{")
    with pytest.raises(ReportError, match=r"definition\.json"):
        make(bench)
    assert "report.json" not in written(bench)


def test_access_denied_on_an_absent_object_means_absent(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """To a role that may list the run's folder alone, S3 answers so."""
    folder = StoredRuns(client("s3"), BUCKET).stored_run(bench.run)
    assert folder.read("nothing.json") is None
    with calls(monkeypatch, refusing("GetObject", "AccessDenied")):
        assert folder.read("nothing.json") is None
        assert folder.read("definition") is None
        with pytest.raises(ClientError):
            folder.read("definition.json")


def test_oversized_file_of_a_node_is_left_out_of_the_report(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the workflow wrote is, and none of a node's files is in the way of the report."""
    monkeypatch.setattr(archive, "MOST_BYTES", 100)
    for name in ("interruptions/i-1.json", "nodes/i-1.json", "phases/measure/i-1.json", "output/i-1.log"):
        bench.put(f"runs/{bench.run}/c001/{name}", {"id": "x" * 100})
        with pytest.raises(DamagedError, match=f"c001/{name} has 1.. bytes, more than 100"):
            StoredRuns(client("s3"), BUCKET).stored_run(bench.run).read(f"c001/{name}")
    end(bench)
    assert make(bench)["made"]
    report = Report.model_validate_json(written(bench)["report.json"])
    assert [one for one in report.findings if "c001/interruptions/i-1.json has 1" in one.text]


def test_all_of_a_long_list_is_read(bench: Bench) -> None:
    for number in range(5):
        bench.put(f"runs/{bench.run}/c001/interruptions/i-{number}.json", {})
    bench.put(f"runs/{bench.run}0/c001/interruptions/i-9.json", {})
    folder = StoredRuns(_Short(client("s3")), BUCKET).stored_run(bench.run)
    assert folder.names("c001/interruptions/") == [f"c001/interruptions/i-{number}.json" for number in range(5)]


class _Short:
    """S3 with pages of two objects."""

    def __init__(self, real: Any) -> None:
        self.real = real

    def get_paginator(self, name: str) -> Any:
        return _ShortPages(self.real.get_paginator(name))


class _ShortPages:
    def __init__(self, real: Any) -> None:
        self.real = real

    def paginate(self, **parameters: Any) -> Any:
        return self.real.paginate(**parameters, PaginationConfig={"PageSize": 2})


def test_the_version_is_the_projects() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == VERSION
