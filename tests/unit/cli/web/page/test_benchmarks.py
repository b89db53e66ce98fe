"""Tests the page in a browser: benchmarks with their last runs, a page of each, what runs now, and standing fleets."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from cli.client.api import Answer
from tests.unit.cli.living import WORK
from tests.unit.cli.web.page.conftest import Looking
from tests.unit.cli.web.page_world import NOW, RUN, World, cell, living_fleet, run, schedule
from troop.shared import moments

GOING = "20261123-090000-aaaaaaaa"
FAILED = "20261122-090000-0badcafe"


def record(world: World, day: int, rate: float, name: str = "cassandra-write", **more: Any) -> str:
    """Records a run with one cell on a day of November, and returns its id."""
    at = NOW.replace(day=day, hour=3)
    one = run(run=f"{at:%Y%m%d-%H%M%S}-{day:08x}", name=name, at=moments.iso(at), **more)
    its = cell(1, "n6")
    its["results"][0]["per_second"] = rate
    world.runs[one["run"]] = {"run": one, "cells": [its], "resources": []}
    world.runs = dict(sorted(world.runs.items(), reverse=True))
    return str(one["run"])


@pytest.fixture
def recorded(looking: Looking) -> Looking:
    """A user whose deployment has two benchmarks: one fails, and one runs now and on a schedule."""
    world = looking.world
    for number in range(4):
        record(world, 4 + number, 20_000.0 + 100 * number)
    record(world, 20, 22_866.0, cost={"amount": 0.0421, "currency": "USD", "items": [], "unknown": []})
    failed = run(
        run=FAILED, name="s3-range-read", size=None, status="FAILED", reason="c001 FAILED: read.py failed\nTraceback"
    )
    going = run(run=GOING, status="RUNNING", ended_at=None, cost=None)
    world.runs = {
        GOING: {"run": going, "cells": [cell(1, "", "RUNNING")], "resources": []},
        FAILED: {"run": failed, "cells": [cell(1, "", "FAILED")], "resources": []},
        **world.runs,
    }
    world.schedules = [schedule()]
    return looking


def test_benchmarks_show_last_outcome_change_of_the_figure_schedule_and_cost(recorded: Looking) -> None:
    page = recorded.go("benchmarks")
    row = page.get_by_role("table", name="Benchmarks").get_by_role("row", name=re.compile("cassandra-write"))
    for words in ("running", "22,866/s", "+12.6 % against the run before", "every day", "24 Nov 2026, 03:00:00 UTC"):
        expect(row).to_contain_text(words)
    expect(row.get_by_role("cell").last).to_contain_text("$6.50")  # four runs, the last one, and the one that runs
    failed = page.get_by_role("row", name=re.compile("s3-range-read"))
    expect(failed.get_by_role("link", name="failed")).to_have_attribute("href", f"#/runs/{FAILED}")
    now = page.get_by_role("table", name="Runs that have not ended")
    expect(now.get_by_role("row", name=re.compile("cassandra-write"))).to_contain_text("$1.31")
    expect(now.get_by_role("row")).to_have_count(2)


def test_benchmarks_are_searched_and_filtered_in_the_address(recorded: Looking) -> None:
    page = recorded.go("benchmarks")
    rows = page.get_by_role("table", name="Benchmarks").locator("tbody tr")
    expect(rows).to_have_count(2)
    page.get_by_label("Search").fill("range")
    expect(rows).to_have_count(1)
    expect(page.get_by_role("status").filter(has_text="of 2 benchmarks")).to_be_visible()
    page.get_by_label("Search").fill("")
    page.get_by_label("Show").select_option("planned")
    expect(rows).to_contain_text("cassandra-write")
    expect(page).to_have_url(f"{recorded.server.address}/#/benchmarks?show=planned")
    page.reload()
    expect(rows).to_have_count(1)
    page.go_back()
    expect(rows).to_have_count(2)


def test_page_of_a_benchmark_has_its_figure_runs_schedule_and_cost(recorded: Looking) -> None:
    page = recorded.go("benchmarks")
    page.get_by_role("link", name="cassandra-write").first.click()
    panel = page.get_by_role("region", name="Figure over time")
    chart = panel.get_by_role("img", name="Throughput of 5 runs of study · n6 · write · drivers · insert")
    expect(chart).to_be_visible()
    assert "from 20,000/s to 22,866/s, last 22,866/s" in (chart.get_attribute("aria-label") or "")
    expect(panel).to_contain_text("The 4 runs before had 20,000/s to 20,300/s.")
    expect(page.get_by_role("region", name="Schedule")).to_contain_text("every day · study")
    expect(page.get_by_role("region", name="Cost of the month")).to_contain_text("$6.50")
    last = page.get_by_role("row", name=re.compile("20 Nov 2026"))
    for words in ("study", "succeeded", "22,866/s", "$0.0421"):
        expect(last).to_contain_text(words)
    panel.get_by_label("Figure").select_option("p99")
    expect(panel.get_by_role("img", name="p99 of 5 runs")).to_be_visible()
    expect(last).to_contain_text("8.5 ms")
    page.get_by_label("Outcome").select_option("open")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"\?figure=p99&outcome=open$"))
    page.get_by_role("link", name="Start …").click()
    expect(page.get_by_label("Benchmark")).to_have_value("cassandra-write")


def test_a_figure_of_four_runs_has_no_chart(looking: Looking) -> None:
    for day in range(4, 8):
        record(looking.world, day, 20_000.0)
    page = looking.go("benchmarks/cassandra-write")
    panel = page.get_by_role("region", name="Figure over time")
    expect(panel).to_contain_text("4 runs with this figure; a chart appears from 5 on.")
    expect(panel).to_contain_text("as in the run before")
    expect(panel.get_by_role("img")).to_have_count(0)


def test_choosing_runs_to_compare_moves_nothing(recorded: Looking) -> None:
    page = recorded.go("benchmarks/cassandra-write")
    boxes = page.get_by_role("checkbox", name=re.compile("^Compare "))
    expect(boxes).to_have_count(5)
    row = page.get_by_role("row", name=re.compile("4 Nov 2026"))
    top = "one => one.getBoundingClientRect().top + scrollY"
    before = row.evaluate(top)
    for number in range(2):
        boxes.nth(number).check()
        assert row.evaluate(top) == before
    expect(page.get_by_role("link", name="Compare")).to_have_attribute(
        "href", re.compile(r"#/comparison\?a=2026.*&b=2026")
    )


def test_unread_schedules_do_not_hide_the_runs(recorded: Looking) -> None:
    recorded.world.refusals["GET", "benchmarks/schedules"] = [Answer(500, {"message": "the request failed"})]
    page = recorded.go("benchmarks/cassandra-write")
    expect(page.get_by_role("region", name="Schedule")).to_contain_text("could not start its function")
    expect(page.locator("tbody tr")).to_have_count(6)
    expect(page.get_by_role("region", name="Figure over time")).to_contain_text("The 4 runs before had")


def test_change_point_is_marked_and_listed_with_its_run(looking: Looking) -> None:
    runs = [record(looking.world, day, 20_000.0 + 30 * (day % 3) - (2000 if day >= 12 else 0)) for day in range(1, 22)]
    page = looking.go("benchmarks/cassandra-write")
    panel = page.get_by_role("region", name="Figure over time")
    chart = panel.get_by_role("img", name=re.compile("Throughput of 21 runs.*, 1 change point$"))
    expect(chart).to_be_visible()
    expect(panel).to_contain_text("Noise: without a change, runs differ by about 0.1")
    expect(panel.get_by_role("listitem")).to_have_count(1)
    expect(panel.get_by_role("listitem")).to_contain_text("10 % from 20,033/s to 18,027/s since")
    expect(panel.get_by_role("link", name=runs[11])).to_have_attribute("href", f"#/runs/{runs[11]}")
    expect(chart.locator("svg path[stroke-width='1.5']")).to_have_count(1)


def test_runs_with_a_baseline_are_judged_by_their_ratio_to_it(looking: Looking) -> None:
    for day, rate in ((4, 19_800.0), (5, 20_200.0), (6, 19_000.0)):
        looking.world.runs[record(looking.world, day, rate)]["baseline"] = {"parameters.version": "1.2"}
    panel = looking.go("benchmarks/cassandra-write").get_by_role("region", name="Figure over time")
    expect(panel).to_contain_text("0.950 of version=1.2, 19,000/s \N{MINUS SIGN}5.94 % against the run before")


def test_benchmark_of_the_catalogue_has_a_page_before_its_first_run(looking: Looking) -> None:
    page = looking.go("benchmarks/disk-io")
    expect(page.get_by_text("Nothing has run yet.")).to_be_visible()
    expect(page.get_by_role("link", name="Start …")).to_have_attribute("href", "#/start?benchmark=disk-io")


def test_unknown_benchmark_is_reported(looking: Looking) -> None:
    page = looking.go("benchmarks/nobodys")
    expect(page.get_by_role("alert")).to_contain_text("there is no run and no schedule of a benchmark 'nobodys'")


def test_deployment_without_runs_offers_a_first_benchmark(looking: Looking) -> None:
    page = looking.go("benchmarks")
    expect(page.get_by_role("heading", name="Your first benchmark")).to_be_visible()
    page.get_by_role("link", name="Start a benchmark …").click()
    expect(page.get_by_role("heading", name="Start a benchmark")).to_be_visible()


def test_standing_fleets_are_listed_with_their_nodes_and_their_end(looking: Looking) -> None:
    role = {"role": "workers", "desired": 5, "in_service": 4, "ready": 3, "failed": 0, "starting": 1, "leaving": 0}
    fields = {key: value for key, value in run(status="RUNNING", ended_at=None, cost=None).items() if key != "run"}
    looking.world.fleets = [fields | {"fleet": RUN, "name": "night-workers", "roles": [role]}]
    page = looking.go("benchmarks")
    row = page.get_by_role("region", name="Standing fleets").get_by_role("row", name=re.compile("night-workers"))
    for words in ("workers 3 of 5", "21 Nov 2026, 19:03:12 UTC", "$1.31"):
        expect(row).to_contain_text(words)


def test_a_fleet_shows_its_health_with_what_to_do_and_its_work(looking: Looking) -> None:
    looking.world.fleets = [
        living_fleet(),
        living_fleet(fleet="20261121-150000-bbbbbbbb", name="calm", health=[], work=None),
        living_fleet(fleet="20261121-150000-cccccccc", name="late", health=[], work={**WORK, "may_lack_tasks": True}),
    ]
    page = looking.go("benchmarks")
    expect(page.get_by_role("row", name=re.compile("late"))).to_contain_text("so SQS may have deleted them")
    row = page.get_by_role("row", name=re.compile("night-workers"))
    for words in (
        "fail workers 8 ok, 1 warn, 5 fail, 1 silent, 2 draining",
        "3 repairs in the last hour",
        "workers do not grow: its work needs",
    ):
        expect(row).to_contain_text(words)
    for words in (
        "8,120 of 10,000 done",
        "1,800 waiting, 78 in work",
        "2 dead",
        "the oldest waits for 3m 05s; 4,211 an hour",
    ):
        expect(row).to_contain_text(words)
    expect(row).not_to_contain_text("SQS may have deleted")
    section = page.get_by_role("region", name="Standing fleets")
    items = section.get_by_role("listitem")
    expect(items).to_have_count(2)
    expect(items.nth(0)).to_contain_text(
        "fail night-workers, workers, latency: p99 is above the limit (252, should be 200)."
    )
    expect(items.nth(0)).to_contain_text("look at the log of the server. Nodes: i-1, i-2, i-3, 2 more.")
    expect(items.nth(0)).to_contain_text(f"troop fleet status {RUN}")
    expect(items.nth(1)).to_contain_text("warn night-workers, workers, disk: 81 % full (81, should be 80).")
    expect(items.nth(1)).to_contain_text("delete old files. Nodes: i-0abc.")
    expect(page.get_by_role("row", name=re.compile("calm"))).not_to_contain_text("ok")


def test_the_overview_shows_checks_of_fleets_that_need_a_person(looking: Looking) -> None:
    looking.world.fleets = [living_fleet()]
    page = looking.go("")
    urgent = page.get_by_role("region", name="What needs a person")
    expect(urgent.get_by_role("listitem").filter(has_text="latency")).to_contain_text(
        "look at the log of the server", ignore_case=True
    )
    expect(urgent).not_to_contain_text("81 % full")


def test_a_fleet_shows_how_its_nodes_were_bought_and_what_spot_saved(looking: Looking) -> None:
    role = {"role": "workers", "desired": 5, "ready": 5, "spot": 4, "on_demand": 1, "backup": True}
    common: dict[str, Any] = {
        "name": "workers",
        "at": "2026-11-22T15:00:00.000Z",
        "requested_by": "arn:aws:iam::1:user/ada",
    }
    common |= {"expires_at": "2026-11-22T23:00:00.000Z", "roles": [role], "estimate": None}
    cost = {"amount": 1.0, "currency": "USD", "items": [], "unknown": [], "on_demand": 2.5}
    looking.world.fleets = [
        {**common, "fleet": "20261122-150000-aaaaaaaa", "status": "RUNNING", "ended_at": None, "cost": None},
        {**common, "fleet": "20261121-150000-bbbbbbbb", "status": "STOPPED", "ended_at": common["at"], "cost": cost},
    ]
    page = looking.go("benchmarks")
    expect(page.get_by_role("row", name=re.compile("aaaaaaaa"))).to_contain_text("4 on spot, 1 on demand")
    page.get_by_text("1 fleet that ended").click()
    expect(page.get_by_role("row", name=re.compile("bbbbbbbb"))).to_contain_text("$1.50 saved by spot")
