"""What dashboards show, by the function that CloudWatch calls, against an account in moto."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from handlers import widgets
from tests.unit.account.account import FRIDAY, Account, calls, refusing
from tests.unit.account.benches import BUCKET, CELL, Bench
from tests.unit.account.fixtures import Log
from tests.unit.chaos.build import EARLIER_ITEM
from troop.bench.definition import names
from troop.bench.flows import live_runs as live_flow
from troop.bench.records.record import RunStatus
from troop.dashboard.flows import widgets as flow
from troop.dashboard.wiring import widgets as dashboards
from troop.measure.live import Live, LiveOperation

ARN = "arn:aws:lambda:eu-central-1:123456789012:function:Troop-Widgets"
CONTEXT: Any = SimpleNamespace(
    function_name="f", memory_limit_in_mb=512, invoked_function_arn=ARN, aws_request_id="request-7"
)


def shown(widget: str, **parameters: Any) -> str:
    """The text that is left of a widget without its tags."""
    return read(markup(widget, **parameters))


def markup(widget: str, **parameters: Any) -> str:
    answer = widgets.handler({"widget": widget, "widgetContext": {"width": 1200}, **parameters}, CONTEXT)
    assert isinstance(answer, str)
    return answer


def read(page: str) -> str:
    hidden = r"<style>.*?</style>|<cwdb-action.*?</cwdb-action>|<select.*?</select>"
    without = re.sub(hidden, "", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", without)).split())


def clicks(shown: str, text: str) -> str:
    """The parameters behind what is clicked."""
    match = re.search(rf">{re.escape(text)}</button><cwdb-action[^>]*>(.*?)</cwdb-action>", shown)
    assert match, text
    return match[1]


@pytest.fixture(autouse=True)
def runs_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TROOP_RUNS_TABLE", "Runs")


@pytest.fixture
def terminated(account: Account) -> Account:
    """A day on which one unit lost an instance, one opted out, and one was left alone."""
    account.group("web-v1", 3)
    account.group("checkout", 3)
    account.group("payments", 3, tags={"troop:probability": "0"})
    account.policy("checkout", opt_out=True, until="2026-12-01", reason="month-end")
    for item in account.work(account.decide()):
        account.terminate(item)
    return account


def test_events(terminated: Account) -> None:
    terminated.clock.forward(seconds=75)
    (instance,) = terminated.gone()
    text = shown("events")
    assert "TERMINATED web web-v1" in text
    assert instance in text
    assert "75 s so far" in text
    assert "unleashed: hits instances" in text
    assert "No such events." in shown("events", unit="checkout")
    assert "No such events." in shown("events", form=True, widgetContext={"forms": {"all": {"unit": "payments"}}})


def test_events_of_earlier_versions_have_no_stages(account: Account) -> None:
    account.put("Events", dict(EARLIER_ITEM))
    text = shown("events")
    assert "RECOVERED old" in text
    assert "72 s" in text
    assert "noticed" not in text


def test_events_page_by_page(account: Account) -> None:
    account.group("first")
    account.group("second")
    for item in account.work(account.decide()):
        account.terminate(item)
        account.clock.forward(minutes=1)
    pages = [markup("events", limit=1)]
    position = clicks(pages[0], "Next page").partition('"position": "')[2].partition('"')[0]
    pages.append(markup("events", limit=1, position=position))
    assert {name for page in pages for name in ("first", "second") if f"TERMINATED {name}" in read(page)} == {
        "first",
        "second",
    }
    assert clicks(pages[1], "First page") == '{"limit": 1, "widget": "events"}'


def test_decisions_of_the_calendars_today_by_reason(terminated: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown("decisions")
    assert f"{FRIDAY} default (America/Los_Angeles)" in text
    assert "not-rolled 1 opted-out 1 terminate 1" in text
    assert "opted out by item until 2026-12-01: month-end" in text
    only = shown("decisions", reason="not-rolled")
    assert "payments" in only
    assert "month-end" not in only
    monkeypatch.setattr(flow, "PAGE", 1)
    monkeypatch.setattr(flow, "PAGES", 2)
    assert "among the newest 2 of the day" in shown("decisions")


def test_a_day_begins_and_ends_with_its_calendar(terminated: Account) -> None:
    """At 23:10 UTC it is Friday in Los Angeles, Saturday in Vienna: what the one decides on Friday is of its today."""
    terminated.clock.forward(minutes=24)
    text = shown("decisions")
    assert "2026-11-21 night (Europe/Vienna) · 2026-11-20 default (America/Los_Angeles)" in text
    assert "terminate 1" in text
    terminated.clock.forward(hours=9)
    assert "No decision yet today" in shown("decisions")
    assert "terminate 1" in shown("decisions", day="2026-11-20")


def test_a_termination_stays_in_sight_when_later_ticks_have_decided(terminated: Account) -> None:
    terminated.clock.forward(minutes=10)
    terminated.decide()
    text = shown("decisions")
    assert "already-today 1" in text
    assert "terminate 1" in text
    unit_page = shown("decisions", unit="web")
    assert unit_page.index("already-today") < unit_page.index("is to be terminated")


def test_units_with_the_source_of_each_value(terminated: Account) -> None:
    text = shown("units")
    assert "payments payments 3 of 3 taking part not rolled: its probability is 0 0 tag of payments 2 settings" in text
    assert "opted out opted out by item until 2026-12-01: month-end" in text
    left_out = shown("units", show="left-out")
    assert "checkout" in left_out
    assert "payments" not in left_out


def test_groups_of_one_unit_are_one_row_with_its_strictest_policy(account: Account) -> None:
    account.group("web-v1", 2)
    account.group("web-v2", 3, tags={"troop:probability": "0.25"})
    text = shown("units")
    assert "web web-v1 2 of 2 web-v2 3 of 3 taking part 0.25 tag of web-v2" in text


def test_one_unit_also_by_the_name_of_its_group(terminated: Account) -> None:
    for name in ("web", "web-v1"):
        text = shown("units", unit=name)
        assert "troop --region eu-central-1 opt-out --until 2026-11-27 --reason why web" in text
        assert "Last events" in text
    assert "This unit is unknown" in shown("units", unit="nobody")


def test_looking_for_what_is_left_out_ends(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        account.group(f"group-{number}")
    monkeypatch.setattr(flow, "GROUPS", 1)
    monkeypatch.setattr(flow, "CALLS", 2)
    page = markup("units", show="left-out")
    assert "None of the 2 groups read so far is excluded." in read(page)
    assert '"show": "left-out"' in clicks(page, "Next page")


def test_runs_nodes_alive_and_cost(bench: Bench) -> None:
    bench.gathered()
    text = shown("runs")
    assert f"ranges {bench.run} RUNNING" in text
    assert "5 of 5" in text
    assert f"troop --region eu-central-1 bench stop {bench.run}" in text
    bench.runs.close(bench.run, RunStatus.FAILED, "lost a node", bench.account.clock())
    bench.runs.conclude(bench.run, bench.account.clock() + timedelta(minutes=9))
    ended = shown("runs")
    assert "FAILED lost a node" in ended
    assert f"troop --region eu-central-1 bench report {bench.run}" in ended
    assert "No standing fleets yet." in shown("runs", kind="fleets")


@pytest.mark.parametrize("settings", [{"benchmarks": False}], indirect=True)
def test_without_benchmarks_it_says_so_and_asks_nothing(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    with calls(monkeypatch) as requests:
        assert "does not run benchmarks" in shown("runs")
    assert requests == []


def test_a_widget_reads_little_and_writes_nothing(terminated: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    switch = ["GetItem"] * 3  # two, where the settings leash or somebody has used the switch
    read_groups = "DescribeAutoScalingGroups"
    groups = [read_groups, read_groups, "Query", read_groups, "BatchGetItem", "BatchGetItem", *switch]
    reads: dict[str, tuple[dict[str, Any], list[str]]] = {
        "events": ({}, ["Query", *switch]),
        "decisions": ({}, ["Query"] * 8 + switch),
        "units": ({"show": "left-out"}, groups),
    }
    for widget, (parameters, operations) in reads.items():
        with calls(monkeypatch) as requests:
            shown(widget, **parameters)
        assert requests == operations, widget


def test_refusal_by_aws_is_shown_as_a_sentence_and_logged(
    account: Account, monkeypatch: pytest.MonkeyPatch, log: Log
) -> None:
    with calls(monkeypatch, refusing("Query", "AccessDeniedException", message="arn:secret")):
        text = shown("events")
    assert text == (
        "This cannot be shown because AWS answered Query with AccessDeniedException: refresh the widget, or look for "
        "request request-7 in the function's log."
    )
    assert [line["level"] for line in log() if line["message"] == "the widget failed"] == ["ERROR"]


def test_a_defect_is_no_stack_trace(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:
        raise KeyError("<b>")

    monkeypatch.setattr(dashboards, "widgets", broken)
    assert shown("events").startswith("This cannot be shown because of an unexpected error")


@pytest.mark.parametrize(
    "parameters",
    [
        {"widget": "events", "position": "nowhere"},
        {"widget": "decisions", "unit": "web", "position": "nowhere"},
        {"widget": "runs", "position": "nowhere"},
    ],
)
def test_a_place_that_is_not_there_any_more(bench: Bench, parameters: dict[str, Any]) -> None:
    assert shown(**parameters) == "This page of the listing no longer exists: refresh the widget."


def test_bad_parameter_is_explained(account: Account) -> None:
    assert shown("events", limit=1000).endswith("it must be a whole number from 1 to 50.")


def test_described_without_reading_anything() -> None:
    assert widgets.handler({"describe": True}, CONTEXT).startswith("## Latest events")
    assert "## Benchmark runs" in widgets.handler({"describe": True, "widget": "runs"}, CONTEXT)


def test_widget_merges_a_run_once_for_all_viewers(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TROOP_RESULTS_BUCKET", BUCKET)
    monkeypatch.setattr(dashboards, "settings", lambda: SimpleNamespace(benchmarks=True, calendars={}, leashed=True))
    bench.measuring()
    now = bench.account.clock().timestamp()
    (node, *_) = bench.nodes("drivers")
    live = Live(node, "drivers", "measure", int(now), 15, now - 60, 300.0, 420, 0, {"read": LiveOperation(1500)})
    bench.put(f"{names.live_prefix(bench.run, CELL)}AROA:{node}.json", live.document())
    monkeypatch.setattr(live_flow, "OLDEST", timedelta(days=9999))  # moto's clock is another one
    text = shown("live")
    assert bench.run in text
    assert "read drivers 100.0 0.0" in text
    assert "1 of 3 nodes report" in text
    bench.put(f"{names.live_prefix(bench.run, CELL)}AROA:{node}.json", {})
    assert "read drivers 100.0 0.0" in shown("live", run=bench.run), "the merge before serves everyone"
    assert "There is no run 20261120-000000-00000002" in shown("live", run="20261120-000000-00000002")
