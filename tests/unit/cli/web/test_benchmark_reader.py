"""Which runs the page reads of a deployment's benchmarks: how many, how often, and what remains without some."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest

from cli.client.api import Answer
from cli.client.client import TroopClient
from cli.shared.errors import CliError, Exit
from cli.web import benchmark_reader
from cli.web.benchmark_reader import ENOUGH_TO_COMPARE, MOST_COMPARED, MOST_READ, BenchmarkReader
from tests.patience import PATIENCE
from tests.unit.cli.web.page_world import NOW, World, cell, run, schedule
from troop.shared import moments


class Clock:
    now = NOW

    def __call__(self) -> Any:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def reader(world: World, clock: Clock) -> BenchmarkReader:
    client = TroopClient(world, "arn:aws:execute-api:eu-central-1:1:x/v1", "Troop", sleep=lambda _: None)
    return BenchmarkReader(client.benchmarks, clock)


def record(world: World, number: int, name: str = "reads", rate: float = 100.0, **more: Any) -> str:
    """Records a run with one cell, ``number`` hours before now; returns its id."""
    at = NOW - timedelta(hours=number)
    one = run(run=f"{at:%Y%m%d-%H%M%S}-{number:08x}", name=name, at=moments.iso(at), **more)
    its = cell(1, "")
    its["results"][0]["per_second"] = rate
    world.runs[one["run"]] = {"run": one, "cells": [its], "resources": []}
    return str(one["run"])


def read(world: World) -> list[str]:
    """Returns the benchmarks whose lines were read, and how many at most."""
    return [f"{query['name']} {query['limit']}" for _, path, query in world.calls if path == "benchmarks/history"]


def test_lines_are_read_again_only_for_a_newer_run(world: World, reader: BenchmarkReader, clock: Clock) -> None:
    record(world, 2)
    for _ in range(2):
        reader.benchmark("reads", "", "")
        reader.figures()
        clock.now += timedelta(minutes=5)
    assert read(world) == [f"reads {MOST_READ}"]
    record(world, 1)
    world.runs = dict(sorted(world.runs.items(), reverse=True))
    assert len(reader.benchmark("reads", "", "")["values"]) == 2


def test_run_without_a_report_yet_is_counted_and_read_soon(
    world: World, reader: BenchmarkReader, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2):
        record(world, number)
    ended = world._ended
    monkeypatch.setattr(world, "_ended", lambda name: ended(name)[1:])
    body = reader.benchmark("reads", "", "")
    assert (len(body["values"]), body["unrecorded"]) == (1, 1)
    monkeypatch.undo()
    clock.now += timedelta(seconds=benchmark_reader.SECONDS)
    body = reader.benchmark("reads", "", "")
    assert (len(body["values"]), body["unrecorded"]) == (2, 0)


def test_change_does_not_wait_for_a_reading_and_outdates_it(
    world: World, reader: BenchmarkReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(world, 2)
    answer, changed = world.request, threading.Event()

    def change() -> None:
        reader.forget()
        changed.set()

    def slow(method: str, path: str, *more: Any, **options: Any) -> Answer:
        earlier = answer(method, path, *more, **options)
        if path == "benchmarks" and not changed.is_set():
            threading.Thread(target=change, daemon=True).start()
            assert changed.wait(PATIENCE), "the change waits for the reading"
            record(world, 1)
        return earlier

    monkeypatch.setattr(world, "request", slow)
    assert [len(reader.benchmark("reads", "", "")["runs"]) for _ in range(2)] == [1, 2]


def test_runs_beyond_the_most_are_counted(world: World, reader: BenchmarkReader) -> None:
    for number in range(1, MOST_READ + 4):
        record(world, number)
    body = reader.benchmark("reads", "", "")
    assert (body["beyond"], len(body["runs"]), len(body["values"])) == (3, MOST_READ + 3, MOST_READ)


def test_list_reads_few_lines_of_few_benchmarks(world: World, reader: BenchmarkReader) -> None:
    for number in range(1, 4):
        for other in range(MOST_COMPARED + 2):
            record(world, 100 * number + other, f"b{other:02d}")
    assert len(reader.document()["benchmarks"]) == MOST_COMPARED + 2
    assert len(reader.figures()["figures"]) == MOST_COMPARED
    assert sorted(read(world)) == [f"b{other:02d} {ENOUGH_TO_COMPARE}" for other in range(MOST_COMPARED)]


def test_change_point_has_its_levels_and_run(world: World, reader: BenchmarkReader) -> None:
    runs = [record(world, number, rate=(95.0 if number <= 20 else 100.0) + number % 3 / 10) for number in range(1, 41)]
    body = reader.benchmark("reads", "", "")
    (change,) = body["changes"]
    assert (change["run"], change["index"], change["is_worse"]) == (runs[19], 20, True)
    assert (change["before"], change["after"]) == ("100/s", "95.1/s")
    assert body["values"][20]["run"] == runs[19]


def test_change_of_the_figure_is_against_the_last_run_of_the_same_size(world: World, reader: BenchmarkReader) -> None:
    record(world, 1, rate=120.0, size="large")
    record(world, 2, rate=1.0, size="smoke")
    record(world, 3, rate=100.0, size="large")
    figure = reader.figures()["figures"]["reads"]
    assert (figure["now"], figure["before"]) == (120.0, 100.0)


def test_change_of_the_figure_is_that_of_the_newest_run_whatever_its_baseline(
    world: World, reader: BenchmarkReader
) -> None:
    for number, rate, baseline in ((1, 120.0, "aa"), (2, 100.0, "version")):
        world.runs[record(world, number, rate=rate)]["baseline"] = {f"parameters.{baseline}": "1"}
    figure = reader.figures()["figures"]["reads"]
    assert (figure["now"], figure["before"]) == (120.0, 100.0)


def test_main_figure_is_that_of_nodes_which_generate_load(world: World, reader: BenchmarkReader) -> None:
    one = record(world, 1)
    rows = world.runs[one]["cells"][0]["results"]
    rows.append({**rows[0], "role": "servers", "per_second": 300.0})
    rows += [
        {**rows[0], "operation": name, "per_second": rate} for name, rate in (("all operations", 150.0), ("x", 50.0))
    ]
    body = reader.benchmark("reads", "", "")
    assert (body["measurement"], body["values"][0]["value"]) == ("study · write · drivers · all operations", 150.0)
    assert reader.benchmark("reads", "p99", "")["measurement"] == body["measurement"]


def test_cost_of_the_month_is_of_its_ended_runs_and_expected_for_open_ones(
    world: World, reader: BenchmarkReader
) -> None:
    bill = {"amount": 2.0, "currency": "USD", "items": [], "unknown": ["servers, x9.large"]}
    record(world, 1, cost=None, ended_at=None, status="RUNNING")
    record(world, 2, cost=bill)
    record(world, 24 * 30, cost=bill)  # of the month before
    (one,) = reader.document()["benchmarks"]
    assert one["month_cost"] == {
        "amount": 1.31 + 2.0, "currency": "USD", "runs": 2, "is_expected": True, "is_partial": True
    }  # fmt: skip


def test_unread_lines_leave_the_list_without_figures(world: World, reader: BenchmarkReader) -> None:
    record(world, 1)
    record(world, 2, "writes")
    world.refusals["GET", "benchmarks/history"] = [Answer(500, {"message": "failed"})] * 9
    assert reader.figures() == {"figures": {"reads": None, "writes": None}}
    with pytest.raises(CliError):
        reader.benchmark("reads", "", "")
    del world.refusals["GET", "benchmarks/history"]
    assert reader.figures()["figures"]["reads"]["now"] == 100.0


def test_run_before_is_the_last_one_with_results_of_the_same_benchmark_and_size(
    world: World, reader: BenchmarkReader
) -> None:
    earlier = record(world, 9)
    record(world, 8, size="smoke")
    record(world, 7, name="writes")
    record(world, 6, status="FAILED")
    reader.document()
    newest = record(world, 1)  # after the list was read
    world.runs = dict(sorted(world.runs.items(), reverse=True))
    assert reader.before(newest) == {"before": earlier}
    assert reader.before(earlier) == reader.before("20200101-000000-00000000") == {"before": None}


def test_benchmark_that_only_has_a_schedule_is_listed(world: World, reader: BenchmarkReader) -> None:
    world.schedules = [schedule(benchmark="writes")]
    (one,) = reader.document()["benchmarks"]
    assert (one["name"], one["last"], one["schedules"][0]["name"]) == ("writes", None, "nightly")
    assert reader.benchmark("writes", "", "")["runs"] == []


@pytest.mark.parametrize(("name", "figure", "code"), [("nobodys", "", Exit.NO_SUCH_UNIT), ("reads", "p51", Exit.USAGE)])
def test_unknown_benchmarks_and_figures_are_refused(
    world: World, reader: BenchmarkReader, name: str, figure: str, code: Exit
) -> None:
    record(world, 1)
    with pytest.raises(CliError) as refused:
        reader.benchmark(name, figure, "")
    assert refused.value.code is code


def test_list_states_the_limit_that_it_has_reached(
    world: World, reader: BenchmarkReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmark_reader, "MOST_RUNS", 2)
    for number in range(1, 4):
        record(world, number)
    assert reader.document()["limited"] == 2
