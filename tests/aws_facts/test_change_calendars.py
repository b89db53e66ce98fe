"""SSM Change Calendars: what GetCalendarState takes, answers and refuses, and what IAM says of it."""

from __future__ import annotations

from typing import Any

from tests.aws_facts.sources import error_codes, kinds_of, model, text_of


def test_a_state_is_open_or_closed_at_a_moment_and_has_an_end() -> None:
    operation: Any = model("ssm").operation_model("GetCalendarState")
    assert set(operation.input_shape.members) == {"CalendarNames", "AtTime"}
    assert set(operation.output_shape.members) == {"State", "AtTime", "NextTransitionTime"}
    assert operation.output_shape.members["State"].enum == ["OPEN", "CLOSED"]
    assert "the state of the calendar at that specific time" in text_of("ssm GetCalendarState")
    assert "Amazon Resource Names (ARNs)" in text_of("ssm GetCalendarStateRequest.CalendarNames")
    assert "ISO 8601 format" in text_of("ssm GetCalendarStateRequest.AtTime")
    assert "when the calendar state changes to CLOSED" in text_of("ssm GetCalendarStateResponse.NextTransitionTime")


def test_errors_for_documents_that_are_no_change_calendars_are_handled() -> None:
    errors = {shape.name for shape in model("ssm").operation_model("GetCalendarState").error_shapes}
    assert {"InvalidDocument", "InvalidDocumentType", "UnsupportedCalendarException"} <= errors <= error_codes("ssm")


def test_a_role_may_read_single_documents() -> None:
    (document,) = kinds_of("ssm:GetCalendarState")
    pattern, is_needed, _ = document
    assert (pattern, is_needed) == ("arn:*:ssm:*:*:document/*", True)
