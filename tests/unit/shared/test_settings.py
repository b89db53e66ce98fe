"""Settings: what is refused, and that the refusal names the key, the value and what is allowed."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.unit.chaos.build import DEFAULT_CALENDAR, raw_calendar, raw_settings
from troop.faults import names
from troop.shared.choice import text_of
from troop.shared.errors import SettingsError
from troop.shared.settings import KEYS, load_settings, parse_settings

REFUSED: list[tuple[str, Any, str]] = [
    ("deployment", "9lives", "a letter, then letters, digits and hyphens, at most 31 in all"),
    ("deployment", "T" * 32, "a letter, then letters, digits and hyphens, at most 31 in all"),
    ("deployment", "Trööp", "a letter, then letters, digits and hyphens, at most 31 in all"),
    ("deployment", True, "a letter, then letters, digits and hyphens, at most 31 in all"),
    ("leashed", "maybe", "true or false"),
    ("participation", "sometimes", "one of opt-out, opt-in"),
    ("probability", 1.5, "a number from 0 to 1"),
    ("probability", "NaN", "a number from 0 to 1"),
    ("probability", True, "a number from 0 to 1"),
    ("min_healthy", 0, "a whole number from 1 to 10000"),
    ("lowest_min_healthy", 0, "a whole number from 1 to 10000"),
    ("lowest_min_healthy", 3, "at most troop:min_healthy, which is 2"),
    ("min_days_between", -1, "a whole number from 0 to 250"),
    ("min_days_between", "1.5", "a whole number from 0 to 250"),
    ("method", "explode", "one of crash, shutdown, drain"),
    ("max_per_day", 0, "a whole number from 1 to 100000"),
    ("max_in_flight", 1001, "a whole number from 1 to 1000"),
    ("halt_after_broken", 101, "a whole number from 0 to 100"),
    ("recovery_timeout_minutes", 721, "a whole number from 1 to 720"),
    ("decision_retention_days", 3651, "a whole number from 1 to 3650"),
    ("benchmarks", "some", "true or false"),
    ("max_nodes", 0, "a whole number from 1 to 5000"),
    ("max_nodes_total", 0, "a whole number from 1 to 100000"),
    ("max_run_cost", 0, "none, or a number from 0.01 to 10000000"),
    ("max_run_cost", None, "none, or a number"),
    ("max_run_cost", "unlimited", "none, or a number"),
    ("instance_types", [], "a list of instance type patterns"),
    ("instance_types", "c7g", "a list of instance type patterns"),
    ("instance_types", ["C7g.*"], "a list of instance type patterns"),
    ("instance_types", ["[cm]7g.*"], "a list of instance type patterns"),
    ("instance_types", "[", "a list of instance type patterns"),
    ("allowed_images", None, "a list of image ids and of names of SSM parameters"),
    ("allowed_images", ["ami-1"], "a list of image ids"),
    ("allowed_images", ["*"], "a list of image ids"),
    ("allowed_images", ["ami-0123456789abcdef0*"], "a list of image ids"),
    ("allowed_images", ["/images/*/db"], "a list of image ids"),
    ("allowed_images", ["images/db"], "a list of image ids"),
    ("allowed_snapshots", None, "a list of snapshot ids"),
    ("allowed_targets", None, "a list of targets with TCP ports"),
    ("allowed_targets", ["shop"], "a list of targets with TCP ports"),
    ("allowed_targets", ["shop:0"], "a list of targets with TCP ports"),
    ("allowed_targets", ["10.0.0.1/8:443"], "a list of targets with TCP ports"),
    ("allowed_targets", ["app/shop:443"], "a list of targets with TCP ports"),
    ("allowed_targets", ["*:443"], "a list of targets with TCP ports"),
    ("allowed_snapshots", ["snap-1"], "a list of snapshot ids"),
    ("allowed_snapshots", "snap-*", "a list of snapshot ids"),
    ("own_data", "perhaps", "true or false"),
    ("tags", "CostCenter=1234", "an object of at most 40 tags"),
    ("tags", {"troop:run": "x"}, "an object of at most 40 tags"),
    ("tags", {"AWS:x": "x"}, "an object of at most 40 tags"),
    ("tags", {"CostCenter": 1234}, "an object of at most 40 tags"),
    ("tags", {"CostCenter": "12;34"}, "an object of at most 40 tags"),
    ("tags", {"": "x"}, "an object of at most 40 tags"),
    ("tags", {"CostCenter": ""}, "an object of at most 40 tags"),
    ("tags", {"CostCenter": "1", "costcenter": "2"}, "an object of at most 40 tags"),
    ("allowed_buckets", None, "a list of bucket names"),
    ("allowed_buckets", {}, "a list of bucket names"),
    ("allowed_buckets", "[", "a list of bucket names"),
    ("allowed_buckets", ["My-Data"], "a list of bucket names"),
    ("allowed_buckets", ["my-data/*"], "a list of bucket names"),
    ("allowed_buckets", ["*"], "a list of bucket names"),
    ("allowed_buckets", ["my-data", 5], "a list of bucket names"),
    ("allowed_buckets", "arn:aws:s3:::my-data", "a list of bucket names"),
    ("units", [], "an object from patterns of group names to unit names"),
    ("units", "{not json", "an object from patterns of group names to unit names"),
    ("units", {"web-*": ""}, "an object from patterns of group names to unit names"),
    ("units", {"web-*": 5}, "an object from patterns of group names to unit names"),
    ("units", {"": "web"}, "an object from patterns of group names to unit names"),
    ("calendars", "[]", "a JSON object"),
    ("calendars", {}, "an object with a calendar named default"),
    ("calendars", {"night": {}}, "an object with a calendar named default"),
]


@pytest.mark.parametrize(("key", "value", "allowed"), REFUSED)
def test_a_refusal_names_key_value_and_what_is_allowed(key: str, value: Any, allowed: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings(raw_settings(**{key: value}))
    assert str(caught.value).startswith(f"troop:{key} is {value!r}: must be {allowed}")
    assert (caught.value.key, caught.value.value) == (f"troop:{key}", value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(
            (key, text)
            for key in ("calendars", "units", "allowed_buckets")
            for text in ("[" * 100_000, "[" + "9" * 5000)
        ),
        *(("calendars", '{"default": ' + number + "}") for number in ("9" * 5000, "NaN", "1e999")),
        *((key, number) for key in ("max_per_day", "probability") for number in (10**4000, "9" * 5000, math.inf)),
    ],
    ids=lambda one: str(one)[:20],
)
def test_a_value_that_is_too_much_for_python_is_refused_in_short(key: str, value: Any) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings(raw_settings(**{key: value}))
    assert str(caught.value).startswith(f"troop:{key}")
    assert len(str(caught.value)) < 500


CALENDAR_REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"time_zone": "Europe/Wien"}, "time_zone", "an IANA time zone such as Europe/Vienna"),
    ({"time_zone": None}, "time_zone", "an IANA time zone such as Europe/Vienna"),
    ({"time_zone": ["UTC"]}, "time_zone", "an IANA time zone such as Europe/Vienna"),
    ({"time_zone": "localtime"}, "time_zone", "an IANA time zone such as Europe/Vienna"),
    ({"open": "9:00"}, "open", "a time of day as HH:MM, from 00:00 to 24:00"),
    ({"close": "25:00"}, "close", "a time of day as HH:MM, from 00:00 to 24:00"),
    ({"close": "09:00"}, "close", "more than 15 minutes after open (09:00), on the same day"),
    ({"close": "08:00"}, "close", "more than 15 minutes after open (09:00), on the same day"),
    ({"close": "09:15"}, "close", "more than 15 minutes after open (09:00), on the same day"),
    ({"weekdays": []}, "weekdays", "a list of MON, TUE, WED, THU, FRI, SAT, SUN"),
    ({"weekdays": "MON"}, "weekdays", "a list of MON, TUE, WED, THU, FRI, SAT, SUN"),
    ({"weekdays": ["Monday"]}, "weekdays", "a list of MON, TUE, WED, THU, FRI, SAT, SUN"),
    ({"country": "XX"}, "country", "an ISO 3166 code with known holidays"),
    ({"country": ["US"]}, "country", "an ISO 3166 code with known holidays"),
    ({"country": "AT", "subdivision": "BY"}, "subdivision", "a subdivision of AT: 1, 2, 3"),
    ({"country": None, "subdivision": "CA"}, "subdivision", "null when there is no country"),
    ({"extra_dates": "2026-12-24"}, "extra_dates", "a list"),
    ({"extra_dates": [{"date": "2026-12-24"}]}, "extra_dates[0]", "an object with date, name"),
    *(
        ({"extra_dates": [{"date": text, "name": "x"}]}, "extra_dates[0].date", "a date as YYYY-MM-DD, or as MM-DD")
        for text in (
            *("24.12.2026", "13-01", "02-30", "00-10", "5th MON of MAY", "4th THU", "4th THU of NOVEMBER", "12-24+1"),
            *("12-24 + 1", "2026-12-24 +1", "holiday", "", 1224, None, ["12-24"]),
        )
    ),
    ({"extra_dates": [{"date": "2026-02-30", "name": "x"}]}, "extra_dates[0].date", "a date as YYYY-MM-DD"),
    (
        {"extra_dates": [{"date": "holiday Thanksgiving", "name": "x"}]},
        "extra_dates[0].date",
        "holiday and spelled Thanksgiving Day",
    ),
    (
        {"extra_dates": [{"date": "holiday Nonsense", "name": "x"}]},
        "extra_dates[0].date",
        "holiday and one of New Year's Day, ",
    ),
    (
        {"country": None, "extra_dates": [{"date": "holiday Thanksgiving Day", "name": "x"}]},
        "extra_dates[0].date",
        "this calendar has no country",
    ),
    (
        {"extra_dates": [{"date": "12-24", "name": "x", "opens": "12:00"}]},
        "extra_dates[0]",
        "an object with date, name, and for a half day open or close",
    ),
    (
        {"extra_dates": [{"date": "12-24", "name": "x", "open": "08:59"}]},
        "extra_dates[0].open",
        "inside the calendar's window, 09:00 to 15:00",
    ),
    (
        {"extra_dates": [{"date": "12-24", "name": "x", "close": "15:01"}]},
        "extra_dates[0].close",
        "inside the calendar's window, 09:00 to 15:00",
    ),
    (
        {"extra_dates": [{"date": "12-24", "name": "x", "close": "09:15"}]},
        "extra_dates[0].close",
        "more than 15 minutes after open (09:00)",
    ),
    ({"extra_dates": [{"date": "12-24", "name": "x", "close": None}]}, "extra_dates[0].close", "a time of day"),
    ({"categories": ["publik"]}, "categories", "a list of categories of US: "),
    ({"categories": []}, "categories", "a list of categories of US: "),
    ({"categories": "public"}, "categories", "a list of categories of US: "),
    ({"country": "PH", "categories": ["workday"]}, "categories", "a list of categories of PH: public"),
    ({"country": None, "categories": ["public"]}, "categories", "null when there is no country"),
    (
        {"freezes": [{"from": "12-20", "to": "2027-01-02", "reason": "x"}]},
        "freezes[0].to",
        "a day of every year, as from is (12-20)",
    ),
    (
        {"freezes": [{"from": "2026-12-20", "to": "01-02", "reason": "x"}]},
        "freezes[0].to",
        "a date as YYYY-MM-DD, as from is (2026-12-20)",
    ),
    ({"freezes": [{"from": "2026-12-01", "to": "2026-12-02"}]}, "freezes[0]", "an object with from, reason, to"),
    (
        {"freezes": [{"from": "2026-12-02", "to": "2026-12-01", "reason": "x"}]},
        "freezes[0].to",
        "not before from (2026-12-02)",
    ),
    *(
        ({"change_calendar": text}, "change_calendar", "null, or the name or ARN of an SSM Change Calendar")
        for text in ("", "ab", "a b c", "arn:aws:ssm:eu-west-1:1:document/prod", "arn:aws:s3:::prod", 5, ["prod"])
    ),
    ({"timezone": "UTC"}, "timezone", "spelled time_zone"),
]


@pytest.mark.parametrize(("changes", "field", "allowed"), CALENDAR_REFUSED)
def test_a_calendar_is_refused_by_its_field(changes: dict[str, Any], field: str, allowed: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings(raw_settings(calendars={"default": raw_calendar(**changes)}))
    assert caught.value.key == f"troop:calendars.default.{field}"
    assert allowed in caught.value.allowed


@pytest.mark.parametrize("name", ["", "9to5", "a/b", "x" * 65, "näher"])
def test_a_calendar_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(SettingsError, match="named by a letter, then letters"):
        parse_settings(raw_settings(calendars={"default": DEFAULT_CALENDAR, name: DEFAULT_CALENDAR}))


def test_a_window_of_sixteen_minutes_is_the_shortest() -> None:
    parsed = parse_settings(raw_settings(calendars={"default": raw_calendar(open="09:00", close="09:16")}))
    assert parsed.calendars["default"].close_minute == 9 * 60 + 16


@pytest.mark.parametrize(
    ("key", "allowed"),
    [("probabilty", "spelled troop:probability"), ("max_inflight", "spelled troop:max_in_flight"), ("zzz", "one of")],
)
def test_an_unknown_key_is_refused_with_a_suggestion(key: str, allowed: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings(raw_settings(**{key: 1}))
    assert str(caught.value).startswith(f"troop:{key} is 1: must be {allowed}")


@pytest.mark.parametrize("key", KEYS)
def test_no_key_has_a_silent_default(key: str) -> None:
    raw = raw_settings()
    del raw[key]
    with pytest.raises(SettingsError, match=rf"^troop:{key} is None: must be "):
        parse_settings(raw)


def test_text_means_the_same_as_json() -> None:
    """``cdk deploy -c troop:probability=0.2`` passes text."""
    raw = raw_settings(units={"web-v*": " web ", "*": "rest"})
    as_text = {key: value if isinstance(value, str) else json.dumps(value) for key, value in raw.items()}
    assert parse_settings(as_text) == parse_settings(raw)
    assert parse_settings(raw).units == (("web-v*", "web"), ("*", "rest"))


def test_the_functions_read_back_what_the_synthesis_wrote(tmp_path: Path) -> None:
    document = tmp_path / "deployment.json"
    document.write_text(json.dumps(raw_settings()), encoding="utf-8")
    assert load_settings(document) == parse_settings(raw_settings())


@pytest.mark.parametrize("method", ["cpu", "crash, latency delay=5"])
def test_faults_inside_instances_need_their_setting(method: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings(raw_settings(method=method))
    name = method.split(", ")[-1].split(maxsplit=1)[0]
    assert str(caught.value) == (
        f"troop:method is {method!r}: must be without {name}, because troop:inside_instances is false"
    )
    assert text_of(parse_settings(raw_settings(method=method, inside_instances="true")).method) == method


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings(raw_settings(method="x" * 1000))
    assert len(str(caught.value)) < 320
    assert str(caught.value).endswith(f"...: must be one of {', '.join(names())}")


@pytest.mark.parametrize(
    ("setting", "buckets"),
    [
        ([], ()),
        ("", ()),
        ("[]", ()),
        (["my-data", "logs.example.com"], ("my-data", "logs.example.com")),
        ("my-data, other", ("my-data", "other")),
        ('["my-data", "other"]', ("my-data", "other")),
    ],
)
def test_buckets_are_a_list_or_its_text(setting: Any, buckets: tuple[str, ...]) -> None:
    assert parse_settings(raw_settings(allowed_buckets=setting)).allowed_buckets == buckets


def test_there_is_room_for_tags_of_troop_and_of_aws() -> None:
    tags = {f"tag{number}": "x" for number in range(40)}
    assert parse_settings(raw_settings(tags=json.dumps(tags))).tags == tags
    with pytest.raises(SettingsError, match="at most 40 tags"):
        parse_settings(raw_settings(tags=tags | {"one more": "x"}))
