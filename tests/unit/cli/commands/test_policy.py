"""`troop groups`, `group`, `opt-out`, `opt-in` and `set`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from cli.client.api import Answer
from cli.shared.errors import Exit
from tests.unit.cli.conftest import FakeApi, Run, event
from troop.shared.version import VERSION


def test_groups_of_all_pages(ok: Callable[..., Any], run: Run, api: FakeApi) -> None:
    for n in range(60):
        api.add(f"u{n:02d}")
    api.add("sick", unrecovered="2026-11-20#sick")
    assert len(ok("groups")["groups"]) == 61
    table = run("groups").stdout
    assert re.search(r"sick-v1 +no \(unrecovered\).* did not recover from its hit of 2026-11-20", table)
    assert "3 of 3" in table


def test_groups_say_why_one_is_left_alone_until_when_and_whose_it_is(run: Run, api: FakeApi) -> None:
    api.add("closing", opt_out=True, reason="month-end closing", until="2099-12-31", owner="finance")
    table = run("groups").stdout
    assert re.search(
        r"closing-v1 +no \(opted out\) .* finance +opted out by item until 2099-12-31: month-end closing", table
    )


def test_a_unit_from_all_sides(run: Run, ok: Callable[..., Any], api: FakeApi) -> None:
    api.add("web", unrecovered="2026-11-20#web", owner="ada")
    api.events = [event("web")]
    text = run("group", "web").stdout
    for part in (
        "web-v1",
        "not-rolled: 0.9 >= 0.2",
        "ada",
        "not while this is so",
        "ada  owner: not set -> ada",
        "opt-in web",
    ):
        assert part in text
    assert ok("group", "web")["unit"] == "web"


def test_a_unit_says_who_consents_and_how_many_instances_are_fit(run: Run, api: FakeApi) -> None:
    api.add("web", groups=4)
    document = api.request("GET", "groups/web").body
    known = [
        {"consent": "yes", "fit": 2, "why": ""},
        {"consent": "install", "fit": None, "why": ""},
        {"consent": "yes", "fit": 0, "why": "has only instances that have had a fault inside before"},
        {"consent": "", "fit": 0, "why": "has no tag troop:inside"},
    ]
    groups = [group | {"inside": inside} for group, inside in zip(document["groups"], known, strict=True)]
    api.refusals["GET", "groups/web"] = [Answer(200, document | {"groups": groups})]
    words = (
        "web-v1 consents (yes), with 2 instances fit for one; web-v2 consents (install), with an unknown number of "
        "instances fit for one; web-v3 consents (yes), but has only instances that have had a fault inside before; "
        "web-v4 has no tag troop:inside"
    )
    assert re.search(rf"faults inside +{re.escape(words)}\n", run("group", "web").stdout)
    api.refusals.clear()
    assert "faults inside" not in run("group", "web").stdout, "the deployment does not allow them, or is older"


def test_a_group_leads_to_its_unit(ok: Callable[..., Any], api: FakeApi) -> None:
    api.add("web", groups=2)
    assert ok("group", "web-v2")["unit"] == "web"


def test_opt_out_of_a_regrouped_group_changes_its_present_unit(run: Run, api: FakeApi) -> None:
    api.add("web-v1", groups=0, probability=0.5)  # set before the group was tagged as one of web
    api.add("web")
    result = run("opt-out", "web-v1")
    assert result.exit_code == 0, result.output
    assert [path for path, _ in api.changes()] == ["groups/web"]
    api.add("later", groups=0, opt_out=True)
    assert run("opt-in", "later").exit_code == 0


def test_names_with_slashes_are_one_segment(ok: Callable[..., Any], api: FakeApi) -> None:
    api.add("team/web")
    assert ok("group", "team/web")["unit"] == "team/web"
    ok("set", "team/web", "owner=ada")
    assert {path for _, path, _ in api.calls} == {"groups/team~2Fweb"}


@pytest.mark.parametrize("command", ["group", "opt-out", "opt-in"])
def test_no_such_unit_with_names_that_are_near(run: Run, api: FakeApi, command: str) -> None:
    api.add("checkout")
    result = run(command, "chekout")
    assert result.exit_code == Exit.NO_SUCH_UNIT
    assert "no unit or group 'chekout' in Troop in account 111122223333" in result.stderr
    assert "did you mean checkout" in result.stderr
    assert api.changes() == []


def test_no_name_is_near(run: Run, api: FakeApi) -> None:
    api.add("checkout")
    assert "troop groups" in run("group", "zzz").stderr
    assert "--ahead" in run("set", "zzz", "owner=me").stderr


def test_opting_out_leaves_nothing_of_an_earlier_one(run: Run, api: FakeApi) -> None:
    api.add("web", until="2020-01-01", reason="old")
    result = run("opt-out", "web")
    assert result.exit_code == 0, result.output
    assert api.changes() == [("groups/web", {"opt_out": True, "until": None, "reason": None})]
    assert "skipped" in result.stdout


def test_opting_out_with_all_there_is_to_say(run: Run, api: FakeApi) -> None:
    api.add("web")
    result = run("opt-out", "web-v1", "--reason", "closing", "--until", "2099-12-01", "--owner", "ada")
    assert api.changes() == [
        ("groups/web", {"opt_out": True, "until": "2099-12-01", "reason": "closing", "owner": "ada"})
    ]
    assert "until 2099-12-01" in result.stdout
    assert "web-v1 belongs to the unit web" in result.stderr


def test_protected_unit_is_shown_as_taking_no_part(run: Run, api: FakeApi) -> None:
    api.add("tiny", protected="troop:protected")
    assert re.search(r"tiny-v1 +no \(protected\) .* is tagged troop:protected", run("groups").stdout)
    shown = run("group", "tiny").stdout
    assert re.search(r"why skipped +protected: tiny-v1 is tagged troop:protected", shown)
    assert re.search(r"takes_part +no +tag troop:protected", shown)
    for words in (["set", "tiny", "probability=0.5"], ["opt-in", "tiny"]):
        assert run(*words).stdout.splitlines()[-1].startswith("tiny is skipped: protected: "), words


def test_malformed_unit_is_shown_as_taking_no_part(run: Run, api: FakeApi) -> None:
    api.add("ledger", groups=2, problem="ledger-v1: tag troop:probability is 'often'")
    header, one, two, *_ = map(str.rstrip, run("groups").stdout.splitlines())
    assert header.endswith("why skipped")
    assert re.match(r"ledger +ledger-v1 +no \(malformed\) .*'often'", one)
    assert re.match(r"ledger +ledger-v2 +no \(malformed\) ", two)
    assert re.search(r"takes_part +no +malformed", run("group", "ledger").stdout)
    *_, last = run("opt-in", "ledger").stdout.splitlines()
    assert re.match(r"ledger is skipped: malformed: .*'often'$", last), "it mends nothing"


def test_version_is_printed(run: Run) -> None:
    assert run("--version").stdout == f"troop {VERSION}\n"


def test_an_opt_out_ahead_of_its_group(run: Run, api: FakeApi) -> None:
    result = run("opt-out", "next-year", "--ahead")
    assert result.exit_code == 0
    assert "recorded" in result.stdout
    assert api.units["next-year"]["item"] == {"opt_out": True}


def test_opting_in_puts_back_what_has_not_recovered_and_says_so(run: Run, api: FakeApi) -> None:
    api.add("web", unrecovered="2026-11-20#web", opt_out=True, until="2026-12-01")
    result = run("opt-in", "web")
    assert "web did not recover from its hit of 2026-11-20:" in result.stderr
    assert "takes part" in result.stdout
    assert api.changes()[0][1]["unrecovered"] is False
    assert api.units["web"]["item"] == {"opt_in": True}


def test_opting_in_puts_back_what_was_broken_and_says_so(run: Run, api: FakeApi) -> None:
    api.add("web", unrecovered="2026-11-20#web", left_for="broken")
    result = run("opt-in", "web")
    assert "web was broken by its hit of 2026-11-20:" in result.stderr
    assert "broken: its hit of 2026-11-20 -> returned to chaos" in result.stdout
    assert api.changes()[0][1]["unrecovered"] is False


def test_opting_in_says_nothing_of_recovery_when_there_is_nothing_to_say(run: Run, api: FakeApi) -> None:
    api.add("web")
    assert run("opt-in", "web").stderr == ""
    assert "unrecovered" not in api.changes()[0][1]


def test_values_are_sent_as_what_they_are(ok: Callable[..., Any], api: FakeApi) -> None:
    api.add("web", owner="ada")
    ok(
        "set",
        "web",
        "probability=0.05",
        "min_healthy=3",
        "stop_alarms=a, b",
        "until=2026-12-01",
        "owner=",
        "opt_in=yes",
    )
    assert api.changes()[0][1] == {
        "probability": 0.05,
        "min_healthy": 3,
        "stop_alarms": ["a", "b"],
        "until": "2026-12-01",
        "owner": None,
        "opt_in": True,
    }


def test_missing_stop_alarm_is_a_warning(run: Run, api: FakeApi) -> None:
    api.add("web")
    warning = "The alarm nosuch does not exist: until it does, web is skipped."
    assert warning in run("set", "web", "stop_alarms=nosuch, web-5xx").stderr
    assert warning in run("group", "web").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("probabilty=1",), "spelled probability"),
        (("probabilty=",), "spelled probability"),
        (("probability=2",), "a number from 0 to 1"),
        (("until=tomorrow",), "a date as YYYY-MM-DD"),
        (("opt_out=true", "until=2020-01-01"), "until is 2020-01-01, a day in the past"),
        (("until=2020-01-01",), "until is 2020-01-01, a day in the past"),
        (("method",), "KEY=VALUE"),
        (("owner=a", "owner=b"), "owner occurs twice"),
    ],
)
def test_bad_policy_value_is_refused_before_any_request(
    run: Run, api: FakeApi, words: tuple[str, ...], message: str
) -> None:
    result = run("set", "web", *words)
    assert result.exit_code == Exit.USAGE
    assert message in result.stderr
    assert api.calls == []


@pytest.mark.parametrize(
    ("day", "message"), [("soon", "--until is 'soon'"), ("2020-12-04", "--until is 2020-12-04, a day in the past")]
)
def test_bad_until_of_an_opt_out_is_refused_before_any_request(run: Run, api: FakeApi, day: str, message: str) -> None:
    result = run("opt-out", "web", "--until", day)
    assert (result.exit_code, api.calls) == (Exit.USAGE, [])
    assert message in result.stderr


def test_refusal_and_conflict_of_the_api_have_exit_codes(run: Run, api: FakeApi) -> None:
    api.add("web")
    api.refusals["PATCH", "groups/web"] = [Answer(400, {"message": "body.calendar: is 'x', must be one of default"})]
    result = run("set", "web", "calendar=x")
    assert (result.exit_code, result.stderr) == (
        Exit.REFUSED,
        "troop: calendar is 'x', must be one of default\n",
    )
    api.refusals["PATCH", "groups/web"] = [Answer(409, {"message": "changed in the meantime"})]
    assert run("set", "web", "calendar=x").exit_code == Exit.CONFLICT


def test_change_shows_each_value_before_and_after_and_then_the_state(run: Run, api: FakeApi) -> None:
    api.add("web", probability=0.5, opt_out=True, reason="a migration", until="2099-12-01")
    assert run("set", "web", "probability=0.2", "min_healthy=2", "owner=shop").stdout.splitlines() == [
        "probability: 0.5 (item) -> 0.2 (item)",
        "min_healthy: 2 (settings) -> 2 (item)",
        "owner: not set -> shop (item)",
        "web is skipped: opted out by item until 2099-12-01: a migration",
    ]
    assert run("set", "web", "probability=0.2").stdout.startswith("probability: 0.2 (item), as before\n")
    assert run("opt-in", "web").stdout.splitlines() == [
        "takes_part: no (item) -> yes (item)",
        "until: 2099-12-01 (item) -> not set",
        "reason: a migration (item) -> not set",
        "web takes part, with probability 0.2 per business day",
    ]
    assert run("set", "web", "probability=").stdout.startswith("probability: 0.2 (item) -> 0.2 (settings)\n")
    api.add("search")
    assert run("opt-out", "search", "--reason", "closing").stdout.splitlines()[:2] == [
        "takes_part: yes (settings) -> no (item)",
        "reason: not set -> closing (item)",
    ]


def test_return_of_an_unrecovered_unit_names_the_termination(run: Run, api: FakeApi) -> None:
    api.add("web", unrecovered="2026-11-20#web")
    assert "unrecovered: its hit of 2026-11-20 -> returned to chaos" in run("opt-in", "web").stdout


def test_set_of_a_unit_ahead_shows_only_what_was_set(run: Run, api: FakeApi) -> None:
    lines = run("set", "later", "probability=0.4", "--ahead").stdout.splitlines()
    assert lines == ["probability: 0.4 (item)", "later: recorded; applies once a group of this unit exists"]
