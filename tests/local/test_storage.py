"""Storage on real kernels. The order of the layouts is tested, and no absolute figure: the machine may be busy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from local.storage import __main__ as command
from local.storage import kernel, run_files
from local.storage.studies import DISK_IO, EVENT_PROCESSOR, LAYOUTS, Times, studies
from local.storage.study import Result, perform, problems, results, table
from troop.report import bills
from troop.report.document import Cell, Report, Series

RESULTS = [
    Result(DISK_IO, "single", 100),
    Result(DISK_IO, "raid0", 400),
    Result(DISK_IO, "raid0-cache", 3000, (300, 3000), (0.1, 0.99)),
    Result(EVENT_PROCESSOR, "single", 50),
    Result(EVENT_PROCESSOR, "raid0", 150),
    Result(EVENT_PROCESSOR, "raid0-cache", 600, (10, 0), (0.2, 0.1)),
]
SHORT = Times(warm_up=4, measured=5)


def test_the_expected_order_has_no_problem_and_the_table_shows_the_warm_up() -> None:
    assert problems(RESULTS) == []
    assert "300 10%, 3,000 99%" in table(RESULTS)


@pytest.mark.parametrize(
    ("number", "per_second", "hits", "sentence"),
    [
        (0, 400, (), "disk-io: one volume is not slower than RAID-0: 400 and 400 reads a second"),
        (5, 90, (), "event-processor: RAID-0 is not slower than RAID-0 with a cache: 150 and 90 events a second"),
        (2, 9000, (0.9, 0.9), "the cache does not warm up: it has 90.0% of the reads at first, and 90.0% at last"),
        (2, 9000, (), "the agent's samples have no cache"),
    ],
)
def test_another_order_is_a_problem(number: int, per_second: float, hits: tuple[float, ...], sentence: str) -> None:
    measured = [*RESULTS]
    measured[number] = replace(measured[number], per_second=per_second, hits=hits, reads=(9,) * len(hits))
    assert problems(measured) == [sentence]


def test_missing_programs_are_named_with_their_packages_and_nothing_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kernel, "PATH", str(tmp_path))
    assert command.main([]) == 2
    answer = capsys.readouterr()
    assert "nothing is measured: linux.uml, fio" in answer.err
    assert "apt-get install -y user-mode-linux fio mdadm" in answer.err
    assert answer.out == ""


@pytest.mark.skipif(kernel.missing() is not None, reason=f"no kernel to boot: {kernel.missing()}")
def test_real_kernels_show_single_below_raid0_below_a_cache_in_reports(tmp_path: Path) -> None:
    sources = studies(SHORT)
    performances = perform(sources, tmp_path / "kernels", print)
    measured = results(performances)
    assert problems(measured) == [], table(measured)
    for name, source in sources.items():
        run_files.write(tmp_path / name, source, performances)
        report = run_files.write_report(tmp_path / name)
        assert report == Report.model_validate_json((tmp_path / name / "report.json").read_bytes())
        check_report(report, (tmp_path / name / "report.html").read_text(encoding="utf-8"))


def check_report(report: Report, page: str) -> None:
    assert [cell.scale for cell in report.cells] == [*LAYOUTS]
    assert {finding.severity for finding in report.findings} <= {"warning"}, report.findings
    for cell in report.cells:
        check_cell(report.run.name, cell)
    operations = [cell.phases[0].operations[0] for cell in report.cells]
    rates = [one.per_second or 0 for one in operations]
    assert 0 < rates[0] < rates[1] < rates[2]
    costs = [one.cost_per_million or 0 for one in operations]
    assert costs[0] > costs[1] > costs[2] > 0, "the nodes cost the same, and the faster one does more for it"
    priced = {rate.name for rate in bills.disk_rates(report.cells) if rate.per_thousand}
    assert priced, "on a busy machine, some cells may not reach the least rate in the measured time"
    stated = ("User-Mode Linux", "Only the order of the layouts", "local AWS&#39;s prices")
    assert all(text in page for text in (*stated, "Price of the IOPS", "Service ms", 'id="disk-charts"'))


def check_cell(benchmark: str, cell: Cell) -> None:
    (phase,) = cell.phases
    over_time = {(one.operation, one.name): one.values for one in phase.series if not one.device and not one.node}
    assert any(over_time[None, "iowait"])
    assert any(over_time[None, "disk_reads"])
    assert over_time[None, "disk_writes"]
    if benchmark == EVENT_PROCESSOR:
        assert any(over_time[None, "disk_writes"]), "each commit writes"
        assert any(over_time["event", "per_second"])
    kinds = {one.device: one.kind for one in phase.devices}
    volumes = {"/dev/sdf": "ebs"}
    if cell.scale != "single":
        volumes |= {"/dev/sdg": "ebs", "/dev/sdh": "ebs", "/dev/sdi": "ebs", "md0": "stacked"}
    if cell.scale == "raid0-cache":
        volumes |= {"troop-cached": "stacked", "troop-fast": "stacked", "troop-meta": "stacked"}
        volumes |= {"ubdf": "instance-store"}
    assert kinds == volumes, "all devices of the layout, as iostat shows them"
    for one in phase.devices:
        assert None not in (one.operations, one.reads, one.writes, one.read_bytes, one.write_bytes, one.queue, one.busy)
        assert not one.operations or None not in (one.wait_ms, one.service_ms, one.request_bytes)
    if cell.scale == "raid0-cache" and benchmark == DISK_IO:
        reads = [[value or 0 for value in one.values] for one in phase.series if is_reads_of(one, "ubdf")]
        assert any(values[0] < max(values) for values in reads), "the cache's own reads rise while it warms up"


def is_reads_of(one: Series, device: str) -> bool:
    return (one.device, one.name) == (device, "disk_reads")
