"""Lists: their forms, filters and order, and how they fit into pipes and terminals."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import struct
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from fcntl import ioctl
from typing import Any

import pytest
import yaml
from rich.text import Text

from cli.client.api import Answer
from cli.shared import show, tables, times, watching
from cli.shared.errors import Exit
from tests.unit.cli.bench_runs import run_out
from tests.unit.cli.conftest import FakeApi, Run, event

LONG = "AnUncommonlyLongNameOfAnAutoScalingGroupThatCloudFormationMadeUp-1A2B3C4D5E6F"


def units(api: FakeApi) -> None:
    api.add("web", owner="ada")
    api.add("ledger", owner="Bea", opt_out=True, reason="the year's accounts, until all is signed")
    api.add(LONG, owner="ada")
    api.add("vault", protected="troop:protected")


FORMS: list[tuple[tuple[str, ...], Callable[[str], Any]]] = [
    (("--json",), lambda text: json.loads(text)),
    (("-o", "json"), lambda text: json.loads(text)),
    (("--output", "yaml"), lambda text: yaml.safe_load(text)),
]


@pytest.mark.parametrize(("words", "parse"), FORMS, ids=["json", "o-json", "yaml"])
@pytest.mark.parametrize(
    ("command", "key", "size"),
    [("groups", "groups", 4), ("events", "events", 2), ("fleet list", "fleets", 1), ("bench list", "runs", 1)],
)
def test_documents_have_the_same_keys_in_every_form(
    run: Run,
    api: FakeApi,
    words: tuple[str, ...],
    parse: Callable[[str], Any],
    command: str,
    key: str,
    size: int,
) -> None:
    units(api)
    api.events = [event("web"), event("ledger", day="2026-11-19")]
    api.refusals["GET", "benchmarks"] = [Answer(200, {"runs": [run_out()], "cursor": None})]
    fleet: dict[str, Any] = {
        "fleet": "f1",
        "name": "workers",
        "status": "RUNNING",
        "roles": [],
        "at": "2026-11-20T10:00:00Z",
    }
    fleet |= {"expires_at": "2026-11-21T10:00:00Z", "ended_at": None, "requested_by": "a/ada", "reason": None}
    api.refusals["GET", "fleets"] = [Answer(200, {"fleets": [fleet], "cursor": None})]
    result = run(*command.split(), *words)
    assert result.exit_code == 0, result.output
    assert len(parse(result.stdout)[key]) == size
    rows = list(csv.DictReader(io.StringIO(run(*command.split(), "-o", "csv").stdout)))
    assert [list(row) for row in rows] == [list(record) for record in parse(result.stdout)[key]]


def test_a_cell_of_csv_is_the_value_of_json(run: Run, api: FakeApi) -> None:
    units(api)
    rows = {row["unit"]: row for row in csv.DictReader(io.StringIO(run("groups", "-o", "csv").stdout))}
    assert rows["ledger"]["reason"] == "the year's accounts, until all is signed"
    assert (rows["ledger"]["takes_part"], rows["ledger"]["last_day"], rows["web"]["problems"]) == ("false", "", "[]")


def test_two_forms_at_once_are_refused(run: Run) -> None:
    result = run("groups", "--json", "-o", "csv")
    assert (result.exit_code, "contradict" in result.stderr) == (Exit.USAGE, True)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--owner ADA", [LONG, "web"]),
        ("--takes-part no", ["ledger", "vault"]),
        ("--takes-part yes", [LONG, "web"]),
        ("--skipped-because protected", ["vault"]),
        ("--skipped-because accounts", ["ledger"]),
        ("--calendar other", []),
        ("--sort owner", [LONG, "web", "ledger", "vault"]),
        ("--sort owner --reverse", ["ledger", LONG, "web", "vault"]),
        ("--sort takes-part --limit 1", ["ledger"]),
        ("--limit 2", [LONG, "ledger"]),
    ],
)
def test_filters_and_order_of_groups(run: Run, api: FakeApi, words: str, expected: list[str]) -> None:
    units(api)
    lines = run("groups", *words.split()).stdout.splitlines()[1:]
    assert [line.split()[0] for line in lines] == expected


def test_the_order_applies_to_documents_too(ok: Callable[..., Any], api: FakeApi) -> None:
    api.events = [event("a", recovery_seconds=9.0), event("b", recovery_seconds=80.0), event("c", recovery_seconds=10)]
    ordered = ok("events", "--sort", "recovered after")["events"]
    assert [e["unit"] for e in ordered] == ["a", "c", "b"]


@pytest.mark.parametrize("command", ["groups", "events", "bench list", "fleet list", "plan"])
def test_unknown_column_is_refused_before_any_request(run: Run, api: FakeApi, command: str) -> None:
    result = run(*command.split(), "--sort", "colour")
    assert (result.exit_code, api.calls) == (Exit.USAGE, [])
    assert "there is no column 'colour': use one of" in result.stderr


def test_filter_without_matches_is_explained(run: Run, api: FakeApi) -> None:
    units(api)
    assert "none of 4 groups matches" in run("groups", "--owner", "nobody").stderr


def test_a_row_in_a_pipe_is_one_line_without_spaces_at_its_end(run: Run, api: FakeApi) -> None:
    units(api)
    api.units["web"]["item"]["owner"] = "two\nlines"
    lines = run("groups").stdout.splitlines()
    assert len(lines) == 5
    assert [line for line in lines if LONG in line and f"{LONG}-v1" in line]
    assert all(line == line.rstrip() for line in lines)


def test_a_pipe_is_never_coloured(run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    units(api)
    assert "\x1b" not in run("groups").stdout + run("group", "web").stdout


NAMES = ["unit", "zone", "why"]
NATURAL = {0: 30, 1: 10, 2: 90}


@pytest.mark.parametrize(
    ("total", "columns", "omitted"),
    [
        (200, {0: 30, 1: 10, 2: 90}, []),
        (100, {0: 30, 1: 10, 2: 56}, []),
        (66, {0: 26, 1: 10, 2: 26}, []),
        (51, {0: 24, 1: 10, 2: 13}, []),
        (49, {0: 24, 2: 23}, ["zone"]),
        (40, {0: 24, 2: 14}, ["zone"]),
        (30, {0: 16, 2: 12}, ["zone"]),
    ],
)
def test_a_narrow_terminal(total: int, columns: dict[int, int], omitted: list[str]) -> None:
    fitted, gone = tables.fit(NAMES, NATURAL, {0: 24, 1: 10, 2: 12}, total, ["zone"])
    assert gone == omitted
    assert sum(fitted.values()) + 2 * (len(fitted) - 1) <= total
    assert sorted(fitted) == sorted(columns)
    assert max(abs(fitted[i] - columns[i]) for i in columns) <= 1


def test_sentences_are_cut_before_names() -> None:
    rows = [
        [Text("AnUncommonlyLongNameOfAGroup"), Text("2026-11-20 10:00:00 CET"), Text("a sentence of many words here")]
    ]
    assert tables.floors(rows, tables.widths(rows)) == {0: 24, 1: 23, 2: 20}


def test_a_long_cell_ends_in_an_ellipsis() -> None:
    assert tables.line([Text("abcdefgh"), Text("x")], {0: 4, 1: 3}).plain == "abc…  x"


def on_terminal(columns: int, tell: Callable[[], None]) -> tuple[str, str]:
    """Returns what is printed on a terminal of that width, and on stderr."""
    parent, child = pty.openpty()
    ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    out, err = sys.stdout, sys.stderr
    with os.fdopen(child, "w", buffering=1) as stream:
        sys.stdout, sys.stderr = stream, io.StringIO()
        try:
            tell()
            remarks = sys.stderr.getvalue()
        finally:
            sys.stdout, sys.stderr = out, err
    parts = []
    with suppress(OSError):  # how Linux ends the output of a closed terminal
        while part := os.read(parent, 65536):
            parts.append(part)
    os.close(parent)
    return b"".join(parts).decode(), remarks


def test_on_a_terminal_columns_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("TERM", "xterm")
    rows = [("web", "eu-central-1a", "an instance is not healthy, and so on")]
    text, remarks = on_terminal(30, lambda: show.table(NAMES, rows, drop=["zone"], hint="-o wide shows them"))
    assert "not shown: zone; -o wide shows them" in remarks
    assert "eu-central" not in text
    assert len(text.splitlines()) == 2
    assert "…" in text
    text, remarks = on_terminal(30, lambda: show.table(NAMES, rows, drop=["zone"], whole=True))
    assert ("and so on" in text, remarks) == (True, "")


NOW = datetime(2026, 11, 20, 15, 0, tzinfo=UTC)


@pytest.mark.usefixtures("run")  # for the time zone
@pytest.mark.parametrize(
    ("text", "expected"), [("yesterday", "2026-11-19"), ("Today", "2026-11-20"), ("tomorrow", "2026-11-21")]
)
def test_days_in_words(text: str, expected: str) -> None:
    assert times.day_in_words(text, NOW) == expected
    assert times.parse_moment(text, NOW) == times.parse_moment(expected, NOW)


def test_a_day_of_events_has_both_bounds(run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "now", lambda: NOW)
    assert run("events", "--day", "yesterday").exit_code == 0
    _, _, query = api.calls[0]
    since, until = (datetime.fromisoformat(query[key]) for key in ("since", "until"))
    assert since.astimezone().isoformat().startswith("2026-11-19T00:00:00")
    assert until.astimezone().isoformat().startswith("2026-11-20T00:00:00")
    assert run("events", "--day", "today", "--since", "2d").exit_code == Exit.USAGE
    assert run("events", "--day", "someday").exit_code == Exit.USAGE


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--watch", "--watch 5"),
        ("--watch 10 --json", "--watch 10 --json"),
        ("--watch --json", "--watch 5 --json"),
        ("--watch web", "--watch 5 web"),
        ("-- --watch", "-- --watch"),
        ("--watch=3", "--watch=3"),
    ],
)
def test_the_seconds_of_watch_may_be_omitted(line: str, expected: str) -> None:
    assert watching.with_seconds(line.split()) == expected.split()


@pytest.mark.parametrize("command", ["groups", "events", "bench list"])
def test_watching_repeats_until_ctrl_c(run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", sleep)
    path = "benchmarks" if command == "bench list" else command
    api.refusals["GET", path] = [
        Answer(200, {"runs": [], "events": [], "groups": [], "cursor": None}),
        Answer(400, {"statusCode": 400, "message": "what?"}),
    ]
    refused = run(*command.split(), "--watch", "--json")
    assert (refused.exit_code, pauses) == (Exit.REFUSED, [5.0])
    pauses.clear()
    del api.refusals["GET", path]
    api.refusals["GET", path] = [Answer(200, {"runs": [], "events": [], "groups": [], "cursor": None})]
    result = run(*command.split(), "--watch", "7", "--json")
    assert (result.exit_code, pauses) == (130, [7.0, 7.0, 7.0])
    assert [list(json.loads(line))[-1] for line in result.stdout.splitlines()] == [
        path.replace("benchmarks", "runs")
    ] * 3
