"""What a dashboard asks for: parameters from the definition, from clicks and from what viewers type."""

from __future__ import annotations

import json
from datetime import UTC, date, timedelta
from typing import Any

import pytest

from troop.dashboard.describe import describe
from troop.dashboard.widget_request import PARAMETERS, BadParameter, Widget, parse, viewer


def test_missing_parameters_have_defaults_and_unknown_ones_are_ignored() -> None:
    request = parse({"widget": "events", "unit": "  ", "colour": "red", "widgetContext": {}})
    assert (request["limit"], request["unit"], request["status"], request["position"]) == (15, None, None, None)


def test_text_and_numbers_are_both_taken() -> None:
    """A dashboard's definition is JSON or YAML; forms know text only."""
    assert parse({"widget": "runs", "limit": "7"})["limit"] == parse({"widget": "runs", "limit": 7})["limit"] == 7
    assert parse({"widget": "decisions", "day": "2026-11-20"})["day"] == date(2026, 11, 20)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({}, "widget is missing: it must be one of events, decisions, units, runs, live."),
        ({"widget": "evnts"}, "widget is 'evnts': it must be one of events"),
        ({"widget": "events", "limit": 51}, "limit is '51': it must be a whole number from 1 to 50."),
        ({"widget": "events", "status": "DEAD"}, "status is 'DEAD': it must be one of LEASHED, CLAIMED"),
        ({"widget": "decisions", "day": "today"}, "day is 'today': it must be a date as YYYY-MM-DD."),
        ({"widget": "units", "unit": "x" * 257}, "it must be text of 1 to 256 characters."),
    ],
)
def test_bad_parameter_is_a_sentence(event: dict[str, Any], message: str) -> None:
    with pytest.raises(BadParameter) as bad:
        parse(event)
    assert message in str(bad.value)


def test_typed_fields_count_only_for_their_own_button() -> None:
    """CloudWatch sends the fields with every click: half a name must not change what the next page lists."""
    context = {"forms": {"all": {"unit": "we", "position": "forged"}}}
    assert parse({"widget": "events", "unit": "web", "widgetContext": context})["unit"] == "web"
    sent = parse({"widget": "events", "unit": "web", "form": True, "widgetContext": context})
    assert (sent["unit"], sent["position"]) == ("we", None)


def test_a_click_carries_the_other_parameters_and_begins_at_the_first_page() -> None:
    request = parse({"widget": "decisions", "limit": 5, "day": "2026-11-20", "page": 3, "reason": "halted"})
    sent = json.loads(json.dumps(request.with_changes(reason="not-rolled")))
    assert sent == {"widget": "decisions", "limit": 5, "day": "2026-11-20", "reason": "not-rolled"}
    assert parse(request.with_changes(page=4))["page"] == 4


def test_where_it_is_shown() -> None:
    reader = viewer({"widgetContext": {"theme": "dark", "width": 588, "timezone": {"offsetISO": "-08:00"}}})
    assert (reader.dark, reader.width, reader.zone.utcoffset(None)) == (True, 588, -timedelta(hours=8))


@pytest.mark.parametrize(
    "context", [None, "x", {}, {"theme": 1, "width": "wide", "timezone": "x"}, {"timezone": {"offsetISO": "+99:00"}}]
)
def test_a_context_that_says_nothing_is_light_and_in_utc(context: Any) -> None:
    reader = viewer({"widgetContext": context})
    assert (reader.dark, reader.width, reader.zone) == (False, None, UTC)


@pytest.mark.parametrize("widget", Widget)
def test_the_description_has_every_parameter_and_an_example_that_works(widget: Widget) -> None:
    text = describe(widget.value)
    for name, parameter in PARAMETERS[widget].items():
        assert (f"**{name}**" in text) is not parameter.is_place
    example = text.partition("``` yaml\n")[2].partition("\n```")[0]
    values = dict(line.split(": ") for line in example.splitlines())
    assert parse(values).widget is widget


def test_without_a_widget_all_are_described() -> None:
    assert describe(None).count("\n### Parameters\n") == len(Widget)
