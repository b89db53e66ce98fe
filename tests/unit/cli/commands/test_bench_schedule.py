"""`troop bench schedule`, `unschedule` and `schedules`: what reaches the API, and what people read of its answers."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from cli.client.api import Answer
from cli.shared import show
from cli.shared.errors import Exit
from tests.unit.cli.commands.test_bench_run import HITTING, PERMIT
from tests.unit.cli.conftest import FakeApi, Run

DISKS = "benchmarks/disk-io"
ONE: dict[str, Any] = {
    "name": "nightly",
    "expression": "cron(0 3 ? * MON-FRI *)",
    "time_zone": "Europe/Berlin",
    "benchmark": "disk-io",
    "size": "smoke",
    "expected": 0.5,
    "most": 1.2512,
    "currency": "USD",
    "created_at": "2026-11-01T00:00:00.000Z",
    "created_by": "arn:aws:iam::123456789012:user/ann",
    "next_at": "2026-11-24T02:00:00.000Z",
    "last_at": "2026-11-20T02:00:00.000Z",
    "last_run": None,
    "last_refusal": "an artifact is missing",
}
ANSWER = {"schedules": [ONE], "off": False, "month": "2026-11", "cost": 2.5, "budget": 500.0}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "exactly one of"),
        (("--every", "6 hours", "--at", "2099-01-01T00:00:00"), "exactly one of"),
        (("--every", "often"), "a number of minutes"),
        (("--cron", "0 3 * * MON"), "6 fields, not 5"),
        (("--at", "2001-01-01T00:00:00"), "in the future"),
        (("--every", "1 day", "--zone", "Mars/Base"), "a time zone"),
        (("--every", "1 day", "--name", "a b"), "a letter, then"),
    ],
)
def test_impossible_schedule_sends_no_request(run: Run, api: FakeApi, words: tuple[str, ...], why: str) -> None:
    result = run("bench", "schedule", DISKS, *words)
    assert result.exit_code == Exit.USAGE, result.output
    assert why in result.stderr
    assert not api.calls


def test_schedule_that_hits_units_is_permitted_first_or_not_created(run: Run, api: FakeApi, file: Path) -> None:
    file.write_text(HITTING)
    api.refusals[PERMIT] = [Answer(403, {"Message": "is not authorized to perform"})]
    words = ("bench", "schedule", str(file), "--every", "1 day", "--name", "nightly")
    result = run(*words)
    assert result.exit_code == Exit.FORBIDDEN, result.output
    assert [call[:2] for call in api.calls] == [PERMIT]
    api.refusals[PERMIT], api.refusals["POST", "benchmarks/schedules"] = [Answer(201, {})], [Answer(201, ONE)]
    assert run(*words).exit_code == 0
    assert api.calls[1] == (*PERMIT, {"schedule": "nightly", "units": ["web"]})


def test_the_listing_says_why_a_start_was_refused(run: Run, api: FakeApi) -> None:
    api.refusals["GET", "benchmarks/schedules"] = [Answer(200, ANSWER)]
    result = run("bench", "schedules", "-o", "wide")
    assert result.exit_code == 0, result.output
    for words in (
        "nightly",
        "$0.50 $1.26",
        "refused: an artifact is missing",
        "2026-11: the runs so far cost at most $2.50 of $500.00",
    ):
        assert words in " ".join(result.stdout.split())
    assert json.loads(run("bench", "schedules", "--json").stdout) == ANSWER


def test_the_listing_has_the_next_start(run: Run, api: FakeApi) -> None:
    over = {**ONE, "name": "once", "expression": "at(2026-11-20T03:00:00)", "next_at": None}
    api.refusals["GET", "benchmarks/schedules"] = [Answer(200, {**ANSWER, "schedules": [ONE, over]})]
    rows = csv.DictReader(io.StringIO(run("bench", "schedules", "-o", "csv").stdout))
    assert [row["next_at"] for row in rows] == ["2026-11-24T02:00:00.000Z", ""]
    shown = run("bench", "schedules", "-o", "wide").stdout
    assert show.moment(ONE["next_at"]) in shown
    assert "none" in shown


@pytest.mark.parametrize(
    ("next_at", "words"),
    [
        (ONE["next_at"], f"next start: {show.moment(ONE['next_at'])}"),
        (None, "no start is ahead"),
    ],
)
def test_a_new_schedule_names_its_next_start(run: Run, api: FakeApi, next_at: str | None, words: str) -> None:
    api.refusals["POST", "benchmarks/schedules"] = [Answer(201, {**ONE, "next_at": next_at})]
    result = run("bench", "schedule", DISKS, "--size", "smoke", "--every", "1 day", "--name", "nightly")
    assert result.exit_code == 0, result.output
    assert words in " ".join(result.output.split())


def test_an_unknown_schedule_is_named(run: Run, api: FakeApi) -> None:
    missing = Answer(404, {"statusCode": 404, "message": "no"})
    api.refusals["DELETE", "benchmarks/schedules/other"] = [missing]
    result = run("bench", "unschedule", "other")
    assert result.exit_code == Exit.NO_SUCH_UNIT
    assert "there is no schedule 'other'" in result.stderr
