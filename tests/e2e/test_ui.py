"""Tests the page of `troop ui` in a browser, with a deployment on local AWS. The command runs as a user runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from local.project import ROOT
from tests.e2e.benches import LONG, Bench
from tests.patience import PAGE_PATIENCE_MS

WEB, LEDGER = "ui-web", "ui/ledger"


@pytest.fixture(scope="module")
def groups(bench: Bench) -> Iterator[None]:
    for name in (WEB, LEDGER):
        bench.deployment.group(name)
    yield
    for name in (WEB, LEDGER):
        bench.deployment.groups.delete(name)


@pytest.fixture(scope="module")
def page(browser: Browser, bench: Bench, groups: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path_factory.mktemp("ui")),
        "TROOP_DEPLOYMENT": bench.deployment.name,
        **bench.account.exports,
    }
    command = [sys.executable, str(ROOT / "cli"), "ui", "--no-open"]
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert bench.deployment.name in line
        link = process.stdout.readline().strip()
        page = browser.new_context(viewport={"width": 1280, "height": 900}, timezone_id="UTC").new_page()
        expect.set_options(timeout=LONG * 1000)
        page.set_default_timeout(LONG * 1000)
        page.goto(link)
        yield page
        if os.environ.get("TROOP_SHOTS"):
            shoot(page, Path(os.environ["TROOP_SHOTS"]))
        page.context.close()
    finally:
        expect.set_options(timeout=PAGE_PATIENCE_MS)
        process.terminate()
        process.wait(timeout=LONG)
        process.communicate()


def shoot(page: Page, folder: Path) -> None:
    """Takes screenshots of the views."""
    for view in ("overview", "units", "events", "changes", "calendar", "benchmarks"):
        go(page, view)
        expect(page.locator("main table, main .days, main .tile").first).to_be_visible()
        expect(page.locator(".loading")).to_have_count(0)
        page.screenshot(path=folder / f"local-{view}.png")


def go(page: Page, view: str) -> None:
    page.goto(re.sub("#.*", f"#/{view}", page.url))


def test_units_and_where_their_values_come_from(page: Page, bench: Bench) -> None:
    expect(page.locator("#where")).to_have_text(f"{bench.deployment.name} local AWS")
    expect(page.locator("#switch")).to_contain_text("unleashed")
    expect(page.get_by_role("region", name="Chaos")).to_contain_text("Next tick:")
    expect(page.get_by_role("region", name="Units")).to_contain_text("taking part")
    go(page, "units")
    page.get_by_label("Search").fill("ui")
    expect(page.locator("tbody tr")).to_have_count(2)
    page.get_by_role("link", name=LEDGER).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(LEDGER)
    expect(page.get_by_role("row", name=re.compile("^Probability"))).to_contain_text("settings")


def test_opting_out_and_in(page: Page, bench: Bench) -> None:
    go(page, "units/ui~2Fledger")
    page.get_by_role("button", name="Opt out").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("month-end closing")
    dialog.get_by_role("button", name="Opt out").click()
    expect(page.locator("#flash")).to_have_text(f"{LEDGER} is opted out.")
    expect(page.get_by_role("row", name=re.compile("^Takes part"))).to_contain_text("item in GroupTags")
    group = bench.deployment.view.api.get("groups/ui~2Fledger").body
    assert group["policy"]["reason"] == {"value": "month-end closing", "source": "item"}
    assert bench.deployment.tick()["status"] == "SUCCEEDED"
    page.reload()
    answer = page.locator(".answer").filter(has_text=LEDGER)
    expect(answer).to_contain_text(re.compile("opted out by item|outside"))
    page.get_by_text("Every tick of").click()
    expect(page.get_by_role("table", name="Decision of each tick")).to_be_visible()
    page.get_by_role("button", name="Opt in").click()
    dialog.get_by_role("button", name="Opt in").click()
    expect(page.locator("#flash")).to_have_text(f"{LEDGER} takes part.")
    go(page, "changes")  # of all units and the switch, by the index of the deployed table
    rows = page.locator("tbody tr").filter(has_text=LEDGER)
    expect(rows).to_have_count(2)
    expect(rows.last).to_contain_text("reason: not set → month-end closing")


def test_events_are_seen_as_they_happen(page: Page, bench: Bench) -> None:
    go(page, "events")
    expect(page.locator("#liveness")).to_contain_text("Live")
    page.get_by_label("Search").fill(WEB)
    request = {"group": WEB, "idempotency_key": f"ui-{datetime.now(UTC).timestamp()}"}
    answer = bench.deployment.view.api.request("POST", "terminations", body=request)
    assert answer.status == 202, answer
    expect(page.locator("tbody tr").first).to_contain_text(answer.body["instance_id"])
    expect(page.locator("tbody tr").first).to_contain_text("recovered")
    expect(page.locator("#news")).to_contain_text(WEB)


def test_the_calendar_tells_what_is_to_be_expected(page: Page) -> None:
    go(page, "calendar")
    page.get_by_label("Period").select_option("2")
    expect(page.locator(".days > li")).to_have_count(14)
    expect(page.locator(".day.today")).to_have_count(1)
    expect(page.locator(".day:not(.today)").get_by_role("link", name=WEB).first).to_be_visible()


def test_the_halt_switch(page: Page, bench: Bench) -> None:
    page.get_by_role("button", name="Halt").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("incident")
    page.keyboard.press("Enter")
    expect(page.locator("#switch")).to_contain_text("halted")
    switch = bench.deployment.view.api.get("switch").body
    assert (switch["halted"], switch["reason"]) == (True, "incident")
    expect(page.get_by_text("No hits until someone resumes.")).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(page.locator("#switch")).to_contain_text("unleashed")
    assert bench.deployment.view.api.get("switch").body["halted"] is False


@pytest.fixture(scope="module")
def ended(bench: Bench) -> str:
    """Runs a benchmark to its end, with a report."""
    run = bench.start("ui-ended")
    bench.ended(run)
    return run


def test_a_report_is_opened(page: Page, ended: str) -> None:
    go(page, f"runs/{ended}")
    expect(page.get_by_role("table", name="Measurements")).to_contain_text("measure")
    link = page.get_by_role("link", name="Open the report")
    expect(link).to_have_attribute("rel", "noopener")
    with page.expect_popup() as opened:
        link.click()
    report = opened.value
    expect(report.get_by_role("heading", level=1)).to_have_text("simulated")
    expect(report.get_by_text(ended).first).to_be_visible()
    assert report.evaluate("opener") is None
    report.close()


def test_report_is_created_again_by_a_button(page: Page, bench: Bench, ended: str) -> None:
    def timestamp() -> str:
        return str(bench.deployment.view.api.get(f"benchmarks/{ended}/report").body["created_at"])

    go(page, f"runs/{ended}")
    expect(page.locator("#report-status")).to_contain_text("Report created")
    before = timestamp()
    page.get_by_role("button", name="Recreate the report").click()
    page.get_by_role("dialog").get_by_role("button", name="Recreate").click()
    expect(page.locator("#report-status")).to_contain_text("Requested")
    expect(page.locator("#report-status")).to_contain_text("The new report is ready")
    assert timestamp() > before
    expect(page.get_by_role("button", name="Recreate the report")).to_be_focused()


def test_a_benchmark_is_watched_and_stopped(page: Page, bench: Bench, ended: str) -> None:
    going = bench.start("ui-going", {"mute": 1})  # its node never boots
    go(page, "benchmarks/simulated")
    row = page.get_by_role("row").filter(has=page.get_by_label(f"Compare {ended}"))
    expect(row).to_contain_text("succeeded")
    go(page, f"runs/{going}")
    page.get_by_role("button", name="Stop").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop the run").click()
    expect(page.locator(".headline")).to_contain_text("stopped")
    assert bench.ended(going)["run"]["status"] == "STOPPED"
