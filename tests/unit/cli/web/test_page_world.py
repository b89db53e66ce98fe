"""Checks that the page is tried with events as the API gives them."""

from __future__ import annotations

from pydantic import BaseModel

from tests.unit.cli.web.page_world import termination
from troop.chaos.api.event_models import AbortOut, EventOut, HypothesisOut, StagesOut, VerdictOut


def test_an_event_of_the_tests_has_the_shape_of_the_api() -> None:
    one = termination("web", abort={"at": "2026-11-20T10:00:31.000Z", "alarm": "web-5xx"})
    assert one.keys() <= EventOut.model_fields.keys()
    shapes: dict[str, type[BaseModel]] = {
        "stages": StagesOut,
        "hypothesis": HypothesisOut,
        "verdict": VerdictOut,
        "abort": AbortOut,
    }
    for key, shape in shapes.items():
        assert shape.model_validate(one[key]).model_dump(mode="json") == one[key]
