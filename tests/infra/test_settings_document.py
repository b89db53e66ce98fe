"""What follows from the declarations of settings is current; settings.md says of every setting what there is."""

from __future__ import annotations

import json
import re
from datetime import date
from typing import Any

import pytest

from infra import ROOT, settings_doc
from infra.settings import PREFIX, SETTINGS, written_context
from tests.infra.conftest import CONTEXT
from troop.shared.calendars import parse_calendar
from troop.shared.errors import SettingsError
from troop.shared.stages import STAGE, STAGES
from troop_aws.cdk import Calendar

DOCUMENT = settings_doc.PATH.read_text(encoding="utf-8")
CALENDAR = CONTEXT["troop:calendars"]["default"]


def test_document_is_current() -> None:
    assert settings_doc.text() == DOCUMENT, "run: make openapi"


def test_the_types_of_the_construct_are_current() -> None:
    module = settings_doc.CONSTRUCT.read_text(encoding="utf-8")
    assert settings_doc.with_types(module.replace("    zones: int | Sequence[str]\n", "")) == module, (
        "run: make openapi"
    )
    assert set(Calendar.__annotations__) == set(settings_doc.CALENDAR)


def test_cdk_json_shows_every_setting_with_its_default() -> None:
    shown = {key: value for key, value in written_context().items() if key.startswith(PREFIX)}
    defaults = {PREFIX + key: one.default for key, one in SETTINGS.items()}
    assert shown == defaults | {key: shown[key] for key in (PREFIX + STAGE, PREFIX + STAGES)}, "run: make openapi"


@pytest.mark.parametrize("stage", [{}, {"troop:stage": None}])
def test_an_older_cdk_json_gets_the_settings_that_it_lacks_and_keeps_its_values(stage: dict[str, Any]) -> None:
    own = {"troop:deployment": "Chaos", "troop:probability": 0.5, **stage, "@aws-cdk/core:x": True}
    written = json.dumps({"app": "python app.py", "context": own}, indent=2)
    completed = json.loads(settings_doc.completed(written))
    defaults = {PREFIX + key: one.default for key, one in SETTINGS.items()}
    assert completed == {"app": "python app.py", "context": defaults | own}
    assert settings_doc.completed(json.dumps(completed)) == json.dumps(completed)


def test_document_has_every_setting_and_no_other() -> None:
    keys = re.findall(rf"^\| `{PREFIX}(\w+)` \|", DOCUMENT, re.MULTILINE)
    there = [key.removeprefix(PREFIX) for key in written_context() if key.startswith(PREFIX)]
    assert sorted(keys) == sorted(there)


def test_a_row_has_default_values_and_a_meaning() -> None:
    rows = [line.strip("| ").split(" | ") for line in DOCUMENT.splitlines() if line.startswith("| `")]
    assert [row[0] for row in rows if len(row) != 4 or not all(row)] == []


@pytest.mark.parametrize(
    ("key", "phrase"),
    [("min_healthy", "a whole number from 1 to "), ("tick_minutes", "one of 1, 5"), ("retain_data", "true or false")],
)
def test_allowed_values_equal_those_of_a_refusal(key: str, phrase: str) -> None:
    assert phrase in settings_doc.allowed(key)


def test_document_has_every_field_of_a_calendar_and_the_required_ones() -> None:
    with pytest.raises(SettingsError) as refused:
        parse_calendar("calendars", "default", CALENDAR | {"zzzz": 1})
    assert set(refused.value.allowed.removeprefix("one of ").split(", ")) == set(settings_doc.CALENDAR)
    for field, (default, _, _) in settings_doc.CALENDAR.items():
        left = {key: value for key, value in CALENDAR.items() if key != field}
        if default == "required":
            with pytest.raises(SettingsError):
                parse_calendar("calendars", "default", left)
        else:
            parse_calendar("calendars", "default", left)


def test_its_examples_of_rules_are_what_they_say() -> None:
    (example,) = re.findall(r'^"extra_dates": \[.*?^\]', DOCUMENT, re.MULTILINE | re.DOTALL)
    calendar = parse_calendar("calendars", "default", CALENDAR | json.loads("{" + example + "}"))
    assert not calendar.is_business_day(date(2026, 11, 27))
    assert calendar.hours(date(2026, 12, 24)) == (9 * 60, 12 * 60)
    rules = re.findall(r"^- `([^`]+)` is", DOCUMENT, re.MULTILINE)
    assert len(rules) == 4
    for rule in rules:
        parse_calendar("calendars", "default", CALENDAR | {"extra_dates": [{"date": rule, "name": "x"}]})


@pytest.mark.parametrize("document", ["README.md", "docs/guides/deploying.md"])
def test_other_documents_link_to_it(document: str) -> None:
    assert "settings.md)" in (ROOT / document).read_text(encoding="utf-8")
