"""Tests the page in a browser: benchmark runs and their reports."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from cli.client.api import Answer
from tests.unit.cli.web.page.conftest import Looking
from tests.unit.cli.web.page_world import RUN, cell, report_answer, run

PLACE = Answer(302, None, headers={"Location": "https://bucket.example/r"})


def test_a_run_shows_its_results_and_can_be_stopped(looking: Looking) -> None:
    going = run(run="20261123-090000-aaaaaaaa", status="RUNNING", ended_at=None, cost=None)
    looking.world.runs = {
        going["run"]: {"run": going, "cells": [cell(1, "", "RUNNING")], "resources": []},
        RUN: {"run": run(), "cells": [cell(1, "n3"), cell(2, "n6")], "resources": []},
    }
    page = looking.go(f"runs/{RUN}")
    expect(page.get_by_role("row", name=re.compile("c002 n6 write"))).to_contain_text("41,667timeout 3")
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    looking.go(f"runs/{going['run']}")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("dialog")).to_contain_text("removes everything that the run created")
    page.get_by_role("dialog").get_by_role("button", name="Stop the run").click()
    expect(page.locator(".headline")).to_contain_text("stopping")
    assert looking.changes() == [("DELETE", f"benchmarks/{going['run']}", {})]


def test_rows_of_results_name_points_and_empty_cells_are_reported(looking: Looking) -> None:
    row = cell(1, "")["results"][0]
    points = [row | {"parameters": {"threads": 4, "mix": {"write": 1, "read": [2, 3]}}, "repeat": n} for n in (1, 2)]
    cells = [cell(1, "n3", results=points), cell(2, "n6", results=[])]
    looking.world.runs = {RUN: {"run": run(), "cells": cells, "resources": []}}
    page = looking.go(f"runs/{RUN}")
    phases = page.get_by_role("table", name="Measurements").get_by_text(re.compile("^write, "))
    expect(phases).to_have_text([f"write, threads=4, mix=read:2+3/write:1{more}" for more in ("", ", #2")])
    expect(page.locator("main .problem")).to_contain_text("Nothing was measured in c002:")


def test_point_without_an_operation_is_named(looking: Looking) -> None:
    one = cell(1, "", results=[cell(1, "")["results"][0] | {"phase": "write", "point": 1}])
    one["steps"] = [*one["steps"], *({"phase": f"write.{n}", "at": one["steps"][0]["at"]} for n in (1, 2))]
    looking.world.runs = {RUN: {"run": run(), "cells": [one], "resources": []}}
    page = looking.go(f"runs/{RUN}")
    expect(page.locator("main .problem")).to_have_text("No operation was recorded in write.2. The report has details.")


def test_planned_faults_are_shown_with_their_verdicts(looking: Looking) -> None:
    sentence = "1 of 6 servers stopped at 1:00: the rate was back after 10.6 s; 364 operations failed."
    place = {"phase": "write", "point": None, "repeat": 1, "setting": "", "number": 1, "what": "stop 1 of servers"}
    faults = [{**place, "verdict": verdict, "sentence": sentence} for verdict in ("HELD", "BROKEN", "UNKNOWN", None)]
    looking.world.runs = {RUN: {"run": run(), "cells": [cell(1, "") | {"faults": faults}], "resources": []}}
    page = looking.go(f"runs/{RUN}")
    rows = page.get_by_role("table", name="Planned faults").get_by_role("row")
    expect(rows).to_have_count(5)
    for n, words in enumerate(("held", "broken", "unknown", ""), 1):
        expect(rows.nth(n)).to_contain_text(re.compile(rf"write\s*{words}.*{re.escape(sentence)}"))
    looking.world.runs = {RUN: {"run": run(), "cells": [cell(1, "")], "resources": []}}
    looking.go(f"runs/{RUN}").reload()
    expect(page.get_by_role("table", name="Measurements")).to_be_visible()
    expect(page.get_by_role("table", name="Planned faults")).to_have_count(0)


def test_output_of_a_failure_is_shown_once_with_its_lines(looking: Looking) -> None:
    why, output = "measure.py failed on i-0abc: exit code 1", "last lines of i-0abc:\nTraceback\n  line 7"
    failed = cell(1, "n3", "FAILED") | {"reason": f"{why}\n{output}"}
    other = cell(2, "n6", "FAILED") | {"reason": f"{why}2\nlast lines of i-2:\nsegfault"}
    reason = f"c001 FAILED: {why}\n{output}"
    looking.world.runs = {RUN: {"run": run(status="FAILED", reason=reason), "cells": [failed, other], "resources": []}}
    page = looking.go(f"runs/{RUN}")
    problem = page.locator(".headline ~ .problem")
    expect(problem.locator("> p")).to_have_text(f"c001 FAILED: {why}")
    expect(page.get_by_text("Traceback")).to_be_hidden()
    problem.locator("summary").press("Enter")
    assert problem.locator("pre").inner_text() == output
    cells = page.get_by_role("table", name="Cells of the run")
    expect(cells.get_by_role("row", name=re.compile("c001"))).to_contain_text("failed")
    expect(page.get_by_text(re.compile(f"{why}$"))).to_have_count(1)
    expect(page.get_by_text("Traceback")).to_have_count(1)
    expect(cells.locator("summary")).to_have_count(1)  # of the other cell


def test_results_that_were_loaded_by_hand_stay(timed: Looking, monkeypatch: pytest.MonkeyPatch) -> None:
    going: dict[str, Any] = {
        "run": run(status="RUNNING", ended_at=None),
        "cells": [cell(1, "n3"), cell(2, "n6")],
        "resources": [],
    }
    left_out = {"results": None, "results_left_out": True}
    request = timed.world.request

    def small(method: str, path: str, query: Any = None, body: Any = None) -> Answer:
        answer = request(method, path, query, body)
        if path != f"benchmarks/{RUN}" or "cell" in query:
            return answer
        return Answer(200, {**going, "cells": [{**one, **left_out} for one in going["cells"]]})

    monkeypatch.setattr(timed.world, "request", small)
    timed.world.runs = {RUN: going}
    page = timed.go(f"runs/{RUN}")
    for number in ("c001", "c002"):
        timed.world.runs[RUN] = {**going, "cells": [one for one in going["cells"] if one["cell"] == number]}
        page.get_by_role("button", name=f"Load results of {number}").click()
        expect(page.get_by_role("row", name=re.compile(f"{number} n. write"))).to_be_visible()
    going["run"]["status"] = "STOPPING"
    page.clock.fast_forward(30_000)
    expect(page.locator(".headline")).to_contain_text("stopping")
    expect(page.get_by_role("row", name=re.compile("c00[12] n. write"))).to_have_count(2)
    expect(page.get_by_role("button", name="Load results")).to_have_count(0)


def test_a_report_opens_in_a_tab_of_its_own(looking: Looking) -> None:
    page, world = looking.page, looking.world
    world.runs = {RUN: {"run": run(), "cells": [], "resources": []}}
    page.context.route(
        "https://bucket.example/**", lambda route: route.fulfill(body="<h1>The report</h1>", content_type="text/html")
    )
    looking.go(f"runs/{RUN}")
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Open the report").click()
    expect(opened.value.get_by_role("heading", name="The report")).to_be_visible()
    assert opened.value.evaluate("opener") is None
    world.report = Answer(404, {"statusCode": 404, "message": "there is no report yet"})
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Open the report").click()
    expect(opened.value.get_by_text("there is no report yet")).to_be_visible()
    missing = Answer(404, {"statusCode": 404, "message": "It is being made."}, headers={"Retry-After": "0.1"})
    world.refusals["GET", f"benchmarks/{RUN}/report"] = [missing, missing, world.report, PLACE]
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Open the report").click()
    expect(opened.value.get_by_text("there is no report yet")).to_be_visible()
    opened.value.get_by_role("button", name="Try again").click()
    expect(opened.value.get_by_role("heading", name="The report")).to_be_visible()


def test_run_shows_its_cost_by_item_and_opens_its_comparison_with_the_run_before(looking: Looking) -> None:
    item = {"what": "drivers, c7g.large, spot", "quantity": 0.333333, "unit": "node-hour", "price": 0.0301}
    items = [item | {"what": "Troop's own calls", "amount": 0.0004}, item | {"amount": 0.010033}]
    cost = {"amount": 0.010433, "currency": "USD", "items": items, "unknown": []}
    before, other = "20261120-150312-1f0c9b2e", "20261121-000000-1f0c9b2e"
    looking.world.runs = {
        RUN: {"run": run(cost=cost), "cells": [cell(1, "")], "resources": []},
        other: {"run": run(run=other, size="smoke"), "cells": [], "resources": []},
        before: {"run": run(run=before), "cells": [], "resources": []},
    }
    page = looking.go(f"runs/{RUN}")
    compare = page.get_by_role("link", name="Compare with the run before")
    expect(compare).to_have_attribute("href", f"#/comparison?a={before}&b={RUN}")
    page.get_by_text("$0.0104 by item").click()
    rows = page.get_by_role("table", name="Cost by item").locator("tbody tr")
    expect(rows.first).to_contain_text("0.333 node-hour")
    expect(rows.first).to_contain_text("$0.01")
    expect(page.get_by_role("list", name="Steps of c001").get_by_role("listitem")).to_have_text(
        re.compile("launch: over *15m 05s")
    )


REPORT_BUTTON = re.compile("^Recreate the report")


def test_report_is_created_again_by_a_button(timed: Looking) -> None:
    world = timed.world
    world.runs = {RUN: {"run": run(), "cells": [], "resources": []}}
    page = timed.go(f"runs/{RUN}")
    status = page.get_by_role("status").filter(has_text="report")
    expect(status).to_have_text("Report created 21 Nov 2026, 15:21:40 UTC.")
    page.get_by_role("button", name=REPORT_BUTTON).focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("in the background")
    expect(dialog).to_contain_text("replaces the current one, created 21 Nov 2026, 15:21:40")
    expect(dialog.get_by_role("button", name="Recreate")).to_be_focused()
    page.keyboard.press("Enter")
    expect(status).to_contain_text("Requested 22 Nov 2026, 09:00:00 UTC. Creating the report takes seconds")
    button = page.get_by_role("button", name="Creating the report")
    expect(button).to_be_focused()
    expect(button).to_have_attribute("aria-disabled", "true")
    page.keyboard.press("Enter")  # a second request is ignored
    expect(dialog).to_have_count(0)
    page.clock.fast_forward(2_000)
    timed.go("benchmarks")
    timed.go(f"runs/{RUN}")  # the state of the request survives a change of view
    expect(status).to_contain_text("Requested")
    world.report = report_answer("2", "2026-11-22T09:00:07.000Z")
    page.clock.fast_forward(15_000)
    expect(status).to_have_text("The new report is ready, created 22 Nov 2026, 09:00:07 UTC.")
    expect(page.get_by_role("button", name=REPORT_BUTTON)).to_be_visible()
    expect(page.get_by_role("link", name="Open the report")).to_be_visible()
    assert timed.changes() == [("POST", f"benchmarks/{RUN}/report", {})]


def test_missing_report_is_created_or_the_refusal_of_the_api_is_shown(timed: Looking) -> None:
    world, path = timed.world, f"benchmarks/{RUN}/report"
    world.runs = {RUN: {"run": run(), "cells": [], "resources": []}}
    world.report = Answer(404, {"statusCode": 404, "message": "it has no report (any more)"})
    page = timed.go(f"runs/{RUN}/report")
    expect(page.get_by_role("alert")).to_contain_text("it has no report (any more)")
    page.get_by_role("button", name="Create the report").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("There is no report now.")
    for status, why in ((404, "nothing is kept any more"), (409, "it has not ended")):
        world.refusals["POST", path] = [Answer(status, {"statusCode": status, "message": why})]
        dialog.get_by_role("button", name="Create").click()
        expect(dialog.get_by_role("alert")).to_have_text(why)
    del world.refusals["POST", path]
    page.context.route("https://bucket.example/**", lambda route: route.fulfill(body="<h1>The report</h1>"))
    dialog.get_by_role("button", name="Create").click()
    expect(page.locator("#report-status")).to_contain_text("Requested")
    world.report = report_answer("2")
    page.clock.fast_forward(3_000)
    expect(page.get_by_text("The report", exact=True)).to_be_visible()


def test_report_that_does_not_come_is_reported(timed: Looking) -> None:
    timed.world.runs = {RUN: {"run": run(), "cells": [], "resources": []}}
    page = timed.go(f"runs/{RUN}")
    page.get_by_role("button", name=REPORT_BUTTON).click()
    page.get_by_role("dialog").get_by_role("button", name="Recreate").click()
    expect(page.locator("#report-status")).to_contain_text("Requested")
    call_count = len(timed.world.calls)
    page.clock.run_for(17 * 60_000 + 20_000)
    expect(page.locator("#report-status")).to_contain_text("is not ready yet")
    expect(page.get_by_role("button", name=REPORT_BUTTON)).to_be_visible()
    assert len([path for _, path, _ in timed.world.calls[call_count:] if path.endswith("report")]) < 80
