"""Tests the page in a browser: starting benchmark runs, and comparing two of them."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from cli.bench import files, report_source
from cli.client.api import Answer
from cli.web import page_benchmarks
from tests.unit.cli import reports
from tests.unit.cli.web.page.conftest import Looking
from tests.unit.cli.web.page_world import RUN, report_answer, run
from troop.bench.definition.definition import Artifact

OTHER = "20261122-080000-0badcafe"
ESTIMATE = {
    "seconds": 754,
    "expected": 1.31,
    "most": 4.4,
    "currency": "USD",
    "budget": 5,
    "unknown": [],
    "warnings": [],
    "problems": [],
    "cells": [],
}


@pytest.fixture
def sent(looking: Looking) -> list[tuple[str, dict[str, Any]]]:
    """What the page asked of the API, by path, with an API that estimates and starts runs."""
    requests: list[tuple[str, dict[str, Any]]] = []
    request = looking.world.request

    def answered(method: str, path: str, query: Any = None, body: Any = None) -> Answer:
        if method != "POST" or path not in ("benchmarks", "benchmarks/estimate"):
            return request(method, path, query, body)
        requests.append((path, dict(body)))
        if path == "benchmarks/estimate":
            return Answer(200, dict(ESTIMATE))
        looking.world.runs[RUN] = {"run": run(status="ADMITTED", ended_at=None, cost=None), "cells": []}
        return Answer(202, looking.world.runs[RUN]["run"])

    looking.world.request = answered  # type: ignore[method-assign]
    return requests


def choose(looking: Looking, sent: list[tuple[str, dict[str, Any]]], admitted: int = 1) -> Page:
    """Chooses a benchmark of the catalogue, waits until each size has an estimate, and forgets these requests."""
    page = looking.go("start")
    page.get_by_label("Benchmark").select_option("s3-range-read")
    expect(page.locator(".card").filter(has_text=re.compile("nodes? · about|Refused"))).to_have_count(5)
    expect(page.get_by_role("radio", checked=True)).to_have_count(admitted)
    sent.clear()
    return page


def test_a_run_of_the_catalogue_starts_after_its_estimate(
    looking: Looking, sent: list[tuple[str, dict[str, Any]]]
) -> None:
    page = choose(looking, sent)
    source = files.load(files.CATALOGUE / "s3-range-read" / files.NAME)
    size = next(iter(source.document["sizes"]))
    page.get_by_role("radio", name=re.compile(f"^{size}")).check()
    page.get_by_text("Parameters: 14").click()
    page.get_by_label("threads").fill("9")
    page.get_by_label("disjoint").select_option("true")
    page.get_by_text("More", exact=True).click()
    page.get_by_label("Other changes").fill("budget=9")
    page.get_by_role("button", name="Check and estimate").click()
    expect(page.get_by_text("expected to cost $1.31, at most $4.40, of a budget of $5")).to_be_visible()
    page.get_by_role("button", name="Start the run").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("cost money")
    assert [path for path, _ in sent] == ["benchmarks/estimate"]  # nothing starts before the confirmation
    dialog.get_by_role("button", name="Start the run").click()
    expect(page).to_have_url(f"{looking.server.address}/#/runs/{RUN}")
    (_, estimated), (_, started) = sent
    key = started.pop("key")
    assert len(key) == 36
    assert started == estimated
    assert (started["size"], started["set"]) == (
        size,
        {"parameters.threads": 9, "parameters.disjoint": True, "budget": 9},
    )
    assert started["files"] == source.encoded()


def test_sizes_are_choices_with_nodes_minutes_and_cost(
    looking: Looking, sent: list[tuple[str, dict[str, Any]]]
) -> None:
    dear = {**ESTIMATE, "expected": 9.0, "most": 20.0}
    problem = {"loc": ["own_data"], "where": "own_data", "problem": "is not allowed", "allowed": "left out"}
    refused = {"statusCode": 400, "message": "invalid", "problems": [problem]}
    answers = {None: Answer(200, dear), "smoke": Answer(200, dict(ESTIMATE)), "own-data": Answer(400, refused)}
    request = looking.world.request

    def by_size(method: str, path: str, query: Any = None, body: Any = None) -> Answer:
        return answers.get(body["size"], Answer(200, dear)) if method == "POST" else request(method, path, query, body)

    looking.world.request = by_size  # type: ignore[method-assign]
    page = choose(looking, sent)
    card = page.locator(".card")
    smoke = card.filter(has_text=re.compile("^smoke"))
    expect(smoke).to_contain_text("checks in minutes, at almost no cost")
    expect(smoke).to_contain_text("2 nodes · about 13 min$1.31, at most $4.40")
    expect(smoke.get_by_role("radio")).to_be_checked()  # the cheapest
    expect(card.filter(has_text="own-data")).to_contain_text("Refused: own_data is not allowed: must be left out.")
    page.get_by_text("Parameters: 14").click()
    expect(page.get_by_label("threads")).to_have_attribute("placeholder", "4")  # the size's own default
    card.filter(has_text="As in the file").get_by_role("radio").check()
    expect(page.get_by_label("threads")).to_have_attribute("placeholder", "32")
    expect(page.get_by_text("connections of each node")).to_be_visible()  # the comment of the file


def test_size_names_the_artifacts_that_this_machine_lacks(
    looking: Looking, sent: list[tuple[str, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def question(artifacts: list[Artifact], _folder: Path) -> Iterator[str]:
        yield from (f"{one.name} is missing" for one in artifacts if one.name != "locust")

    monkeypatch.setattr(page_benchmarks, "in_question", question)
    page = looking.go("start")
    page.get_by_label("Benchmark").select_option("http-load")
    card = page.locator(".card")
    expect(card.filter(has_text="jmeter")).to_contain_text("This machine lacks the artifact jmeter.")
    locust = card.filter(has=page.get_by_text("locust", exact=True))
    expect(locust.get_by_role("radio")).to_be_checked()  # all cost the same, and it lacks nothing
    expect(locust).not_to_contain_text("lacks")


def test_no_benchmark_is_chosen_in_advance(looking: Looking, sent: list[tuple[str, dict[str, Any]]]) -> None:
    page = looking.go("start")
    expect(page.get_by_label("Benchmark")).to_have_value("")
    expect(page.get_by_text("reads random byte ranges")).to_be_visible()
    assert sent == []
    page.get_by_role("link", name="s3-range-read").click()
    expect(page.get_by_label("Benchmark")).to_have_value("s3-range-read")


def test_estimates_of_sizes_are_cached_until_the_check_before_a_start(
    looking: Looking, sent: list[tuple[str, dict[str, Any]]]
) -> None:
    page = choose(looking, sent)
    page.reload()
    expect(page.get_by_role("radio", checked=True)).to_have_count(1)  # after all estimates
    assert sent == []
    page.get_by_role("button", name="Check and estimate").click()
    expect(page.get_by_role("button", name="Start the run")).to_be_visible()
    assert len(sent) == 1


def test_a_change_of_the_form_removes_the_estimate(looking: Looking, sent: list[tuple[str, dict[str, Any]]]) -> None:
    page = choose(looking, sent)
    page.get_by_role("button", name="Check and estimate").click()
    expect(page.get_by_role("button", name="Start the run")).to_be_visible()
    page.get_by_text("More", exact=True).click()
    page.get_by_label("Other changes").fill("budget=9")
    expect(page.get_by_role("button", name="Start the run")).to_have_count(0)
    page.get_by_label("Other changes").fill("nonsense")
    page.get_by_role("button", name="Check and estimate").click()
    expect(page.get_by_role("alert")).to_contain_text("not an assignment")
    assert len(sent) == 1


def test_own_files_start_and_their_problems_name_no_folder_of_the_command(
    looking: Looking, sent: list[tuple[str, dict[str, Any]]], tmp_path: Path
) -> None:
    folder = files.CATALOGUE / "s3-range-read"
    whole = [path for path in folder.iterdir() if path.is_file()]
    page = looking.go("start")
    page.get_by_label("Benchmark").select_option(label="My own files …")
    page.get_by_label("Files").set_input_files([path for path in whole if path.name != files.NAME])
    expect(page.get_by_role("alert")).to_contain_text("Choose benchmark.yaml")
    page.get_by_label("Files").set_input_files(whole)
    expect(page.locator(".card").filter(has_text="nodes")).to_have_count(5)
    expect(page.get_by_role("radio", checked=True)).to_have_count(1)  # after all estimates, and all events of the files
    page.get_by_role("button", name="Check and estimate").click()
    expect(page.get_by_role("button", name="Start the run")).to_be_visible()
    names = {path.name for path in whole} - {files.NAME}
    assert sent[0][1]["files"] == {name: base64.b64encode((folder / name).read_bytes()).decode() for name in names}
    bad = tmp_path / files.NAME
    bad.write_text((folder / files.NAME).read_text() + "\nbogus: 1\nworse: 1\n")
    page.get_by_label("Files").set_input_files([bad, *(path for path in whole if path.name != files.NAME)])
    alert = page.get_by_role("alert")
    expect(alert.locator("p")).to_have_text([re.compile(f"^benchmark.yaml.* {key} is") for key in ("bogus", "worse")])
    initial = "getComputedStyle(document.querySelector('[role=alert] p'), '::first-letter').textTransform"
    assert page.evaluate(initial) == "none"  # the name of a file
    expect(alert).not_to_contain_text("troop-ui-")


def test_the_page_makes_the_command_read_no_file_of_the_machine(
    looking: Looking, sent: list[tuple[str, dict[str, Any]]], tmp_path: Path
) -> None:
    """Neither through a file of the browser, nor through a change of the catalogue's."""
    secret = tmp_path / "secret"
    secret.write_text("x")
    change = f"artifacts=[{{name: secret, source: {secret}, sha256: {'0' * 64}}}]"
    page = choose(looking, sent)
    page.get_by_text("More", exact=True).click()
    page.get_by_label("Other changes").fill(change)
    page.get_by_role("button", name="Check and estimate").click()
    expect(page.get_by_role("alert")).to_contain_text("which the page does not read")
    folder = files.CATALOGUE / "http-load"
    page.get_by_label("Benchmark").select_option(label="My own files …")
    page.get_by_label("Files").set_input_files([path for path in folder.iterdir() if path.is_file()])
    expect(page.get_by_role("alert")).to_contain_text("which the page does not read")
    assert sent == []


def test_a_run_that_would_be_refused_cannot_start(
    looking: Looking, sent: list[tuple[str, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = {"loc": ["budget"], "where": "budget", "problem": "is too small", "allowed": "at least 4.4"}
    monkeypatch.setitem(ESTIMATE, "problems", [problem])
    page = choose(looking, sent, admitted=0)
    expect(page.locator(".card").first).to_contain_text("Refused: budget is too small")
    page.get_by_role("radio").first.check()
    page.get_by_role("button", name="Check and estimate").click()
    expect(page.get_by_text("budget is too small").last).to_be_visible()
    expect(page.get_by_role("button", name="Start the run")).to_have_count(0)


def test_a_recorded_run_starts_again_from_the_catalogue(looking: Looking) -> None:
    looking.world.runs = {RUN: {"run": run(name="s3-range-read"), "cells": [], "resources": []}}
    page = looking.go(f"runs/{RUN}")
    page.get_by_role("link", name="Start again").click()
    expect(page.get_by_label("Benchmark")).to_have_value("s3-range-read")
    expect(page.locator("main")).to_contain_text(f"As the run {RUN}")
    expect(page.get_by_label("Files")).to_be_hidden()


def test_combined_sizes_of_a_run_are_those_of_the_next(
    looking: Looking, sent: list[tuple[str, dict[str, Any]]]
) -> None:
    looking.world.runs = {RUN: {"run": run(name="http-load", size="x86,local"), "cells": [], "resources": []}}
    page = looking.go(f"runs/{RUN}")
    page.get_by_role("link", name="Start again").click()
    expect(page.locator(".card").filter(has_text="node")).to_have_count(8)
    expect(page.get_by_role("radio", name="x86")).to_be_checked()
    expect(page.get_by_role("checkbox", name="local")).to_be_checked()
    sent.clear()
    page.get_by_role("button", name="Check and estimate").click()
    expect(page.get_by_role("heading", name="What would start")).to_be_visible()
    assert [body["size"] for _, body in sent] == ["x86,local"]
    page.get_by_label("Benchmark").select_option("s3-range-read")
    expect(page.locator(".card").filter(has_text="node")).to_have_count(5)
    expect(page.get_by_role("radio", name="x86")).to_have_count(0)
    expect(page.get_by_role("radio", checked=True)).to_have_count(1)


def test_files_of_a_benchmark_outside_the_catalogue_must_be_chosen(looking: Looking) -> None:
    page = looking.go("start?benchmark=kv&size=smoke")
    for _ in range(2):
        expect(page.get_by_text("The catalogue has no kv: choose its files.")).to_be_visible()
        expect(page.get_by_label("Files")).to_be_visible()
        page.reload()


def test_two_runs_are_compared_in_a_tab_of_their_own(looking: Looking, monkeypatch: pytest.MonkeyPatch) -> None:
    world, page = looking.world, looking.page
    world.runs = {
        OTHER: {"run": run(run=OTHER), "cells": [], "resources": []},
        RUN: {"run": run(), "cells": [], "resources": []},
    }
    world.report = report_answer("1")
    documents = [
        reports.report(reports.repeated(rates), run=one).model_dump_json().encode()
        for one, rates in ((RUN, (100.0, 101.0, 99.0)), (OTHER, (50.0, 51.0, 49.0)))
    ]
    monkeypatch.setattr(report_source, "download", lambda _address: documents.pop(0))
    looking.go("benchmarks/cassandra-write")
    page.get_by_label(f"Compare {OTHER}").check()
    expect(page.get_by_text("Select a second run")).to_be_visible()
    page.get_by_label(f"Compare {RUN}").check()
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Compare").click()
    expect(opened.value.locator("body")).to_contain_text("0.5")
    assert "/ui/served/" in opened.value.url
    assert opened.value.evaluate("self.origin") == "null"  # it cannot use the page's server
    requested = [call[1] for call in world.calls if call[1].endswith("/report")]
    assert requested == [f"benchmarks/{RUN}/report", f"benchmarks/{OTHER}/report"]  # the older one is the baseline
