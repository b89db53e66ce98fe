"""What people read of the API's messages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli.client.api import Answer

FUNCTIONS = Path(__file__).resolve().parents[4] / "functions" / "troop"
ADVICE = re.compile(r'"[^"\n]*((?:GET|POST|PATCH) /\S+ (?:lists|makes|returns)[^"\n]*)"')
"""Advice in messages of the API: a route, and what it does."""


def test_advice_of_the_api_names_commands_where_people_read_it() -> None:
    sources = (path.read_text(encoding="utf-8") for path in FUNCTIONS.rglob("*.py"))
    advice = [re.sub(r"\{[^}]*\}", "x", match[1]) for text in sources for match in ADVICE.finditer(text)]
    advice = [one for one in advice if "of them, page by page" not in one]  # in a header, which no command reads
    assert len(advice) >= 5
    for one in advice:
        message = Answer(404, {"message": f"no such thing; {one}"}).message
        assert not re.search(r"\b(GET|POST|PATCH) /", message), message


@pytest.mark.parametrize(
    ("message", "read"),
    [
        (
            "there is no run 'x': GET /benchmarks lists the runs",
            "there is no run 'x': `troop bench list` lists the runs",
        ),
        ("; POST /benchmarks/r-1/report makes it", "; `troop bench report r-1 --again` makes it"),
        ("'web-1' is a group of unit 'web': change /groups/web", "'web-1' is a group of unit 'web': change that unit"),
    ],
)
def test_message_names_the_command_in_place_of_the_route(message: str, read: str) -> None:
    assert Answer(404, {"message": message}).message == read
