"""`troop changes`: who changed policies and the switch, in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cli.chaos.changes import in_words
from cli.shared.errors import Exit
from tests.unit.cli.conftest import FakeApi, Run, change


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"min_healthy": (2, 3), "owner": (None, "shop")}, "min_healthy: 2 -> 3; owner: not set -> shop"),
        ({"opt_out": (True, None), "reason": ("old", None)}, "opt_out: true -> not set; reason: old -> not set"),
        ({"unrecovered": ("2026-11-19#web", None)}, "returned to chaos"),
        ({"halted": (None, True), "reason": (None, "incident 4711")}, "halted: incident 4711"),
        ({"halted": (True, False), "reason": ("incident 4711", None)}, "resumed"),
        ({"halted": (None, True), "reason": (None, "outage"), "halt_id": (None, "7-1")}, "halted (7-1): outage"),
        ({"halted": (True, False), "halt_id": ("7-1", None)}, "resumed (7-1)"),
        ({"halt_id": ("7-1", None)}, "halt_id: 7-1 -> not set"),
        (
            {"itself": ({"at": "2026-11-20T22:00:00.000Z", "why": "3 causes"}, None), "reason": (None, "repaired")},
            "resumed: repaired; ended the deployment's own halt: 3 causes",
        ),
        (
            {"halted": (True, False), "itself": ({"at": "yesterday"}, None)},
            "resumed; ended the deployment's own halt: it gave no reason",
        ),
        ({"leashed": (True, False), "schedules_off": (None, True)}, "unleashed, schedules off"),
        ({"reason": ("a", "b")}, "reason: a -> b"),
    ],
)
def test_change_in_words_with_values_before_and_after(values: dict[str, Any], words: str) -> None:
    assert in_words(change("web", **values)) == words


def test_table_says_who_changed_what_and_when(run: Run, api: FakeApi) -> None:
    api.log = [change(None, halted=(False, True)), change("web", min_healthy=(2, 3))]
    rows = [line.split() for line in run("changes").stdout.splitlines()]
    when = ["2026-11-20", "10:00:00", "UTC"]
    assert [*when, "the", "switch", "ada", "halted"] in rows
    assert [*when, "web", "ada", "min_healthy:", "2", "->", "3"] in rows
    assert api.log[0]["caller"] in run("changes", "-o", "wide").stdout


def test_filters_reach_the_api_and_documents_have_all_values(ok: Callable[..., Any], api: FakeApi) -> None:
    api.add("web")
    api.log = [change("db"), change("web", owner=(None, "us"))]
    assert ok("changes", "--unit", "web", "--since", "2026-11-01T00:00Z") == {"changes": api.log[1:]}
    assert api.calls == [("GET", "changes", {"unit": "web", "since": "2026-11-01T00:00:00.000Z", "limit": "25"})]
    ok("changes", "--switch", "--until", "2026-11-01T00:00Z")
    assert api.calls[1][2] == {"switch": "true", "until": "2026-11-01T00:00:00.000Z", "limit": "25"}


def test_name_of_no_unit_is_refused_and_a_unit_without_changes_is_not(run: Run, api: FakeApi) -> None:
    api.add("web")
    result = run("changes", "--unit", "wbe")
    assert (result.exit_code, "did you mean web" in result.stderr) == (Exit.NO_SUCH_UNIT, True)
    result = run("changes", "--unit", "web")
    assert (result.exit_code, result.stderr) == (0, "no changes match\n")


@pytest.mark.parametrize("words", ["--unit web --switch", "--since yesterdayish", "--sort size"])
def test_wrong_usage_causes_no_request(run: Run, api: FakeApi, words: str) -> None:
    result = run("changes", *words.split())
    assert (result.exit_code, api.calls) == (Exit.USAGE, [])
