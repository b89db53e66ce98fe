"""Saved queries ask for fields and messages that the functions really write, each in the log where it is looked for."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest

from handlers import cell, fleet, inject, launch, notify, reaper, report, risks, teardown, watchdog, widgets
from infra.queries import BENCHMARK_FUNCTIONS, FUNCTIONS, QUERIES, Query
from tests.unit.account.account import CONTEXT, FRIDAY, Account, Cut, calls, cut_at
from tests.unit.account.asking import get
from tests.unit.account.fixtures import Log
from troop.shared.wiring.environment import EnvironmentIncompleteError

BENCHMARKS = {
    "launch": launch.handler,
    "cell": cell.handler,
    "fleet": fleet.handler,
    "teardown": teardown.handler,
    "report": report.handler,
    "reaper": reaper.handler,
}

LAMBDA_FIELDS = {"errorType", "errorMessage"}
"""What Lambda itself writes when a function ends with an error, or cannot begin."""

WORDS = {
    *("fields", "filter", "stats", "sort", "limit", "by", "as", "asc", "desc", "and", "or", "not", "in", "like"),
    *("count", "min", "max", "bin", "coalesce", "ispresent"),
    *("m",),  # minutes
}
"""Of the query language; see "CloudWatch Logs Insights language query syntax" in the CloudWatch Logs user guide."""


def fields_and_messages(query: Query) -> tuple[set[str], set[str]]:
    """(fields, messages) that a query names; what it makes itself, and what begins with @, aside."""
    body = "\n".join(line for line in query.lines if not line.startswith("#"))
    messages = set(re.findall(r'message = "([^"]+)"', body))
    for several in re.findall(r"message in \[([^\]]*)\]", body):
        messages |= set(re.findall(r'"([^"]+)"', several))
    bare = re.sub(r'"[^"]*"|like /[^/]*/', "", body)
    aliases = set(re.findall(r"\bas (\w+)", bare))
    return set(re.findall(r"(?<![@\w])[A-Za-z_]\w*", bare)) - aliases - WORDS, messages


@pytest.fixture
def written(account: Account, log: Log, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[dict[str, object]]]:
    """The lines that each function writes in a tick's life: a termination, a recovery, a sweep, a request, an error."""
    lines: dict[str, list[dict[str, object]]] = {}

    def record(function: str) -> None:
        seen = sum(map(len, lines.values()))
        lines.setdefault(function, []).extend(log()[seen:])

    account.group("web")
    decided = account.decide()
    record("decide")
    (item,) = account.work(decided)
    account.terminate(item)
    record("terminate")
    account.check_recovery(f"{FRIDAY}#web")
    record("check_recovery")
    account.group("api")
    account.terminate(account.item("api"))
    record("terminate")
    account.hear("aws.autoscaling", {"AutoScalingGroupName": "api"})
    record("hear")
    account.group("db")
    account.terminate(account.item("db"))
    record("terminate")
    account.clock.forward(minutes=10)
    account.sweep()
    record("sweep")
    get("/events")
    record("api")
    for function, call in {"decide": account.decide, "sweep": account.sweep}.items():
        with calls(monkeypatch, cut_at(0, acted=False)), pytest.raises(Cut):
            call()
        record(function)
    with pytest.raises(Exception, match="TROOP_CHAOS_MACHINE"):
        watchdog.handler({"id": "an event's"}, CONTEXT)
    record("watchdog")
    with suppress(Exception):
        notify.handler({"Records": [{"eventID": "none that can be read"}]}, CONTEXT)
    record("notify")
    with pytest.raises(KeyError, match="source"):
        inject.handler({"id": "an event that nobody sends"}, CONTEXT)
    record("inject")
    risks.handler({}, CONTEXT)
    record("risks")
    widgets.handler({"widget": "runs"}, CONTEXT)
    record("widgets")
    for function, handler in BENCHMARKS.items():
        with pytest.raises(EnvironmentIncompleteError):
            handler({"id": "an event's", "step": "open", "run": "r", "cell": "c001", "work": {"run": "r"}}, CONTEXT)
        record(function)
    assert set(lines) == {*FUNCTIONS, *BENCHMARK_FUNCTIONS}
    return lines


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.title)
def test_they_ask_for_what_is_written(query: Query, written: dict[str, list[dict[str, object]]]) -> None:
    fields, messages = fields_and_messages(query)
    lines = [line for function in query.functions for line in written[function]]
    assert fields
    assert fields - {field for line in lines for field in line} <= LAMBDA_FIELDS
    assert messages <= {line["message"] for line in lines}
