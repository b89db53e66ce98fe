"""`troop plan` and `troop simulate` with groups of a file: no AWS, and the decisions of the core."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import holidays
import pytest
import yaml
from typer.testing import CliRunner, Result

from cli.app import app
from cli.forecasts import simulation, what_if
from cli.shared.errors import Exit
from troop.chaos.decisions import Decision
from troop.chaos.forecast import skip_through
from troop.shared.calendars import parse_calendar

ROOT = Path(__file__).resolve().parents[4]
FRIDAY = "2026-11-20"
NOW = datetime(2026, 11, 20, 18, 0, tzinfo=UTC)
SETTINGS: dict[str, Any] = {"probability": 1, "max_per_day": 1000, "max_in_flight": 1000, "units": {"web-v*": "web"}}


@pytest.fixture(autouse=True)
def no_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(what_if, "now", lambda: NOW)


class Files:
    """Runs the command with groups and settings from files."""

    def __init__(self, folder: Path) -> None:
        self.groups, self.settings = folder / "groups.yaml", folder / "settings.yaml"
        self.write([{"name": "web-v1", "desired": 3}])

    def write(self, groups: list[dict[str, Any]], **settings: Any) -> None:
        self.groups.write_text(yaml.safe_dump(groups))
        self.settings.write_text(yaml.safe_dump(SETTINGS | settings))

    def __call__(self, command: str, *words: str) -> Result:
        options = ("--groups", str(self.groups), "--settings", str(self.settings))
        return CliRunner().invoke(app, [command, *options, *words])

    def json(self, command: str, *words: str) -> Any:
        result = self(command, *words, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)


@pytest.fixture
def run(tmp_path: Path) -> Files:
    return Files(tmp_path)


# ------------------------------------------------------------------ plan


def test_a_plan_tells_minute_tick_and_instance(run: Files) -> None:
    document = run.json("plan", "--day", FRIDAY)
    (unit,) = document["units"]
    assert (unit["unit"], unit["groups"], unit["reason"]) == ("web", ["web-v1"], "terminate")
    assert unit["target"]["group"] == "web-v1"
    assert unit["target"]["instance_id"] in {"i-web-v1-1", "i-web-v1-2", "i-web-v1-3"}
    assert unit["due"] <= unit["tick"]
    assert unit["local_tick"].endswith("-08:00")
    assert len(unit["decisions"]) == len(document["calendars"][0]["ticks"]) == 24
    assert [d["reason"] for d in unit["decisions"] if d["tick"] == unit["tick"]] == ["terminate"]
    text = run("plan", "--day", FRIDAY).stdout
    assert f"{unit['target']['instance_id']} of web-v1 would be terminated" in text
    assert unit["local_tick"][11:16] in text


def test_the_whole_day_of_a_file_is_planned_whatever_the_clock_says(
    run: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(what_if, "now", lambda: datetime(2026, 11, 21, 2, 0, tzinfo=UTC))  # still Friday there
    assert run.json("plan") == run.json("plan", "--day", FRIDAY)


def test_other_salt_gives_other_days_and_the_default_salt_is_named(run: Files) -> None:
    def rolled(*words: str) -> float:
        return float(run.json("plan", "--day", FRIDAY, *words)["units"][0]["rolled"])

    assert rolled() == rolled() != rolled("--salt", "a") == rolled("--salt", "a")
    assert "a deployment's salt gives other days" in run("plan").stderr
    assert "--salt is ''" in run("plan", "--salt", "").stderr
    assert "must be text in UTF-8" in run("simulate", "--salt", "\udcff").stderr


def test_a_malformed_policy_shows_in_the_decision_as_in_lambda(run: Files) -> None:
    run.write([{"name": "web", "desired": 3, "policy": {"probability": "often"}}])
    (unit,) = run.json("plan", "--day", FRIDAY)["units"]
    assert (unit["reason"], unit["probability"]) == ("malformed", None)
    assert "probability is 'often': must be a number from 0 to 1" in unit["detail"]


@pytest.mark.parametrize(
    ("day", "reason"),
    [("2026-11-26", "holiday: Thanksgiving Day"), ("2026-12-14", "freeze: sales"), ("2026-11-21", "weekend")],
)
def test_a_closed_day_says_which_holiday_or_freeze(run: Files, day: str, reason: str) -> None:
    freeze = {"from": "2026-12-14", "to": "2026-12-18", "reason": "sales"}
    calendar = {
        "time_zone": "America/Los_Angeles",
        "open": "09:00",
        "close": "15:00",
        "country": "US",
        "freezes": [freeze],
    }
    run.write([{"name": "web", "desired": 3}], calendars={"default": calendar})
    assert f"closed, {reason}" in run("plan", "--day", day).stdout
    assert run.json("plan", "--day", day)["units"][0]["reason"] == reason.split(":")[0]


def test_a_half_day_says_so_and_has_fewer_ticks(run: Files) -> None:
    half = [{"date": "4th THU of NOV +1", "name": "day after Thanksgiving", "close": "12:00"}]
    calendar = {"time_zone": "America/Los_Angeles", "open": "09:00", "close": "15:00", "extra_dates": half}
    run.write([{"name": "web", "desired": 3}], calendars={"default": calendar})
    line = "(09:00 to 12:00 America/Los_Angeles): half day, day after Thanksgiving: 12 ticks to come"
    assert line in run("plan", "--day", "2026-11-27").stdout
    (planned,) = run.json("plan", "--day", "2026-11-27")["calendars"]
    assert (planned["close"], planned["half_day"]) == ("12:00", "day after Thanksgiving")
    assert run.json("plan", "--day", "2026-11-30")["calendars"][0]["half_day"] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("plan", "--day", "soon"), "--day is 'soon': must be a date as YYYY-MM-DD"),
        (("plan", "--day", "9999-12-31"), "must be from 1970-01-01 to 2199-12-31"),
        (("simulate", "--from", "20261120"), "--from is '20261120': must be a date"),
        (("simulate", "--from", FRIDAY, "--to", "2026-11-19"), "--to is '2026-11-19': must not be before --from"),
    ],
)
def test_wrong_days(run: Files, words: tuple[str, ...], message: str) -> None:
    result = run(*words)
    assert (result.exit_code, result.stdout) == (Exit.USAGE, "")
    assert message in result.stderr


def test_a_wrong_file_is_wrong_usage(run: Files) -> None:
    run.groups.write_text("- {name: web, desired: many}")
    for command in ("plan", "simulate"):
        result = run(command)
        assert result.exit_code == Exit.USAGE
        assert "groups.yaml: entry 1 (web): desired is 'many': must be a whole number" in result.stderr


# ------------------------------------------------------------------ simulate


def business_days(first: date, last: date) -> list[str]:
    off = holidays.country_holidays("US", years=range(first.year, last.year + 1))
    every = (date.fromordinal(n) for n in range(first.toordinal(), last.toordinal() + 1))
    return [str(day) for day in every if day.weekday() < 5 and day not in off]


def test_at_probability_one_every_business_day_is_hit(run: Files) -> None:
    document = run.json("simulate", "--from", "2026-01-01", "--to", "2027-12-31")
    assert list(document)[:3] == ["from", "to", "groups"]
    (web,) = document["groups"]
    expected = business_days(date(2026, 1, 1), date(2027, 12, 31))
    assert list(web)[:4] == ["name", "unit", "terminations", "days"]
    assert (web["name"], web["unit"], web["terminations"]) == ("web-v1", "web", len(expected))
    assert web["days"] == expected
    assert web["realised_rate"] == 1
    assert web["chance_of_a_week_without"] == 0
    assert sum(web["by_weekday"].values()) == sum(web["by_hour"].values()) == len(expected)
    assert set(web["by_hour"]) == {"09", "10", "11", "12", "13", "14"}


@pytest.mark.parametrize("probability", [0.05, 0.2, 0.7])
def test_the_realised_rate_is_the_configured_one_where_nothing_else_speaks(run: Files, probability: float) -> None:
    """Within 4.9 standard deviations: the salt is fixed, so it says the same every time."""
    run.write([{"name": f"service-{n}", "desired": 2} for n in range(5)], probability=probability)
    document = run.json("simulate", "--from", "2026-01-01", "--to", "2029-12-31")
    days = sum(unit["business_days"] for unit in document["units"])
    hits = sum(unit["terminations"] for unit in document["units"])
    assert abs(hits - days * probability) < 4.9 * math.sqrt(days * probability * (1 - probability))
    for unit in document["units"]:
        expected, weeks = unit["configured_chance_of_a_week_without"], unit["weeks"]
        deviation = math.sqrt(expected * (1 - expected) / weeks)
        assert abs(unit["chance_of_a_week_without"] - expected) < 4.9 * deviation


def test_guards_bring_the_rate_down_and_say_which(run: Files) -> None:
    groups = [
        {"name": "rare", "desired": 2, "policy": {"min_days_between": 4}},
        {"name": "out", "desired": 2, "policy": {"opt_out": True, "until": "2026-06-30"}},
        {"name": "small", "desired": 1},
    ]
    run.write(groups)
    units = {u["unit"]: u for u in run.json("simulate", "--from", "2026-01-01", "--to", "2026-12-31")["units"]}
    assert units["rare"]["realised_rate"] == pytest.approx(0.25, abs=0.01)
    assert min(units["out"]["days"]) == "2026-07-01"
    assert units["small"]["reasons"] == {"too-small": units["small"]["business_days"]}
    assert units["small"]["eligible_days"] == 0
    for unit in units.values():
        assert sum(unit["reasons"].values()) == unit["open_days"]


def test_a_unit_of_several_groups_is_hit_once_a_day_in_one_of_them(run: Files) -> None:
    run.write([{"name": "web-v1", "desired": 2}, {"name": "web-v2", "desired": 6}])
    document = run.json("simulate", "--from", "2026-01-01", "--to", "2026-12-31")
    (unit,) = document["units"]
    both = [day for group in document["groups"] for day in group["days"]]
    assert sorted(both) == unit["days"]
    assert max(Counter(both).values()) == 1
    assert all(group["terminations"] > 20 for group in document["groups"])


def test_the_cap_of_the_day_holds_over_all_units(run: Files) -> None:
    run.write([{"name": f"s{n}", "desired": 2} for n in range(6)], max_per_day=2)
    document = run.json("simulate", "--from", "2026-03-02", "--to", "2026-03-06")
    assert Counter(day for unit in document["units"] for day in unit["days"]) == dict.fromkeys(
        ("2026-03-02", "2026-03-03", "2026-03-04", "2026-03-05", "2026-03-06"), 2
    )
    assert document["total"]["chance_of_a_week_without"] is None  # not one whole week


def test_a_year_from_today_is_the_default(run: Files) -> None:
    document = run.json("simulate")
    assert (document["from"], document["to"]) == (FRIDAY, "2027-11-19")


def test_a_leap_day_has_a_year_too(run: Files) -> None:
    assert run.json("simulate", "--from", "2028-02-29")["to"] == "2029-02-28"


def test_one_unit_is_shown_but_all_are_simulated(run: Files) -> None:
    run.write([{"name": f"s{n}", "desired": 2} for n in range(6)], max_per_day=2)
    every = run.json("simulate")["units"]
    assert run.json("simulate", "--unit", "s3")["units"] == [u for u in every if u["unit"] == "s3"]
    result = run("simulate", "--unit", "s9")
    assert result.exit_code == Exit.NO_SUCH_UNIT
    assert "s0, s1" in result.stderr


def test_for_people(run: Files) -> None:
    text = run("simulate", "--from", "2026-01-01", "--to", "2026-12-31").stdout
    for part in ("web", "realised", "1.00", "by weekday", "MON", "by hour", "14", "█", "A week without any"):
        assert part in text
    run.write([])
    assert run("simulate").exit_code == run("plan").exit_code == 0


def test_a_year_of_fifty_groups_decides_once_or_twice_a_day(run: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """The way through every tick takes 20 times longer."""
    run.write([{"name": f"service-{n}", "desired": 3} for n in range(50)], probability=0.2)
    each: list[int] = []

    def counted(*arguments: Any) -> Iterator[list[Decision]]:
        for decisions in skip_through(*arguments):
            each.append(len(decisions))
            yield decisions

    monkeypatch.setattr(simulation, "skip_through", counted)
    document = run.json("simulate", "--from", "2026-01-01", "--to", "2026-12-31")
    assert document["total"]["terminations"] > 2_000
    assert sum(each) < 2 * 50 * 262


@pytest.mark.parametrize("command", ["plan", "simulate"])
def test_documented_output_equals_the_printed_output(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = (ROOT / "docs" / "guides" / "what-if.md").read_text(encoding="utf-8")
    (words, shown), *_ = re.findall(rf"\$ troop ({command} .*)\n((?:.*\n)+?)```", text)
    printed = CliRunner().invoke(app, words.split()).stdout
    assert [line.rstrip() for line in printed.rstrip().splitlines()] == shown.splitlines()


# ------------------------------------------------------------------ weeks


def test_weeks_are_whole_and_have_a_business_day() -> None:
    raw = {"time_zone": "UTC", "open": "09:00", "close": "15:00", "freezes": []}
    calendar = parse_calendar("calendars", "default", raw)
    days = simulation.days_of(calendar, date(2026, 11, 20), date(2026, 12, 7))  # Friday to Monday
    assert days.weeks == {date(2026, 11, 23): 5, date(2026, 11, 30): 5}
    assert (days.business, days.open) == (12, 12)
    assert simulation.free_week_share([date(2026, 11, 27), date(2026, 12, 7)], days.weeks) == 0.5
    assert simulation.free_week_share([], []) is None
