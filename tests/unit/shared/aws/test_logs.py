"""What functions log: a line for each decision, what a line belongs to, and what a failure leaves behind."""

from __future__ import annotations

from typing import Any

import pytest

from handlers import teardown, watchdog
from handlers.decide import LONGEST_DETAIL, MOST_GROUPS
from tests.unit.account.account import CONTEXT, FRIDAY, Account, Cut, calls, cut_at
from tests.unit.account.benches import Bench
from tests.unit.account.fixtures import Log


def lines(log: Log, message: str) -> list[dict[str, Any]]:
    """The lines with that message."""
    return [line for line in log() if line["message"] == message]


def test_every_decision_is_a_line(account: Account, log: Log) -> None:
    account.group("web-v041")
    account.group("web-v042")
    account.group("tiny", 1)
    account.group("lost", tags={"troop:calendar": "nigth"})
    execution = account.execution()
    account.decide(**execution)
    lines_by_unit = {line["unit"]: line for line in lines(log, "decision")}
    assert set(lines_by_unit) == {"web", "tiny", "lost"}
    web = lines_by_unit["web"]
    assert (web["reason"], web["day"], web["probability"]) == ("terminate", str(FRIDAY), 1)
    assert (web["groups"], web["group_count"]) == (["web-v041", "web-v042"], 2)
    assert 0 < web["rolled"] < 1
    assert lines_by_unit["tiny"]["detail"] == "tiny has 1 instance, fewer than min_healthy 2"
    assert "day" not in lines_by_unit["lost"]
    assert {line["correlation_id"] for line in lines_by_unit.values()} == {execution["execution"]}


def test_a_line_has_a_bounded_length(account: Account, log: Log) -> None:
    for number in range(MOST_GROUPS + 3):
        account.group(f"web-v{number}-{'x' * 200}", 1)
    account.decide()
    (line,) = lines(log, "decision")
    assert (len(line["groups"]), line["group_count"]) == (MOST_GROUPS, MOST_GROUPS + 3)
    assert len(line["detail"]) == LONGEST_DETAIL
    assert len(account.decisions()["web"]["detail"]) > LONGEST_DETAIL


def test_all_that_one_tick_does_has_one_correlation(account: Account, log: Log) -> None:
    account.group("web")
    execution = account.execution()
    (item,) = account.work(account.decide(**execution))
    account.terminate(item)
    (termination,) = lines(log, "termination")
    assert termination["correlation_id"] == execution["execution"]
    account.check_recovery(f"{FRIDAY}#web")
    (line,) = lines(log, "recovery_check")
    assert (line["correlation_id"], line["execution"]) == (f"{FRIDAY}#web", execution["execution"])


def test_all_that_a_run_does_has_its_id(bench: Bench, log: Log) -> None:
    """From its launch to its teardown; what a node prints says the same id, see agent/log.py."""
    bench.gathered()
    work = {"run": bench.run, "status": "STOPPED", "reason": "enough"}
    teardown.handler({"step": "close", "work": work, "execution": "teardown"}, CONTEXT)
    correlations = {line["message"]: line["correlation_id"] for line in log()}
    assert {"open", "launch", "gather", "teardown"} <= set(correlations)
    assert set(correlations.values()) == {bench.run}


def test_a_failure_is_a_line_that_says_what_it_belongs_to(
    account: Account, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.group("web")
    execution = account.execution()
    with calls(monkeypatch, cut_at(0, acted=False)), pytest.raises(Cut):
        account.decide(**execution)
    (line,) = lines(log, "the step failed")
    assert (line["level"], line["exception_name"]) == ("ERROR", "Cut")
    assert line["correlation_id"] == execution["execution"]
    assert line["function_request_id"] == CONTEXT.aws_request_id


def test_a_call_that_belongs_to_nothing_has_no_correlation_of_the_last(
    account: Account, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.group("web")
    account.decide()
    with pytest.raises(Exception, match="TROOP_CHAOS_MACHINE"):
        watchdog.handler({}, CONTEXT)
    (line,) = lines(log, "the step failed")
    assert "correlation_id" not in line
