"""Versions of the command and of the deployment, as people notice them."""

from __future__ import annotations

from typing import Any

import pytest

from cli.client.api import Answer
from cli.client.calls import Calls
from cli.client.connection import VersionCheck
from cli.shared.errors import CliError, Exit
from troop.shared.version import VERSION, VERSION_HEADER, is_older


class Deployed:
    """An API of a version."""

    def __init__(self, headers: dict[str, str], answer: Answer | None = None) -> None:
        self.answer = answer or Answer(200, {"ok": True}, headers=headers)

    def request(self, *args: Any, **options: Any) -> Answer:
        return self.answer


@pytest.mark.parametrize(
    ("headers", "notes"),
    [
        ({VERSION_HEADER: "99.0.0"}, 1),
        ({VERSION_HEADER: VERSION}, 0),
        ({VERSION_HEADER: "0.0.1"}, 0),
        ({VERSION_HEADER: "\x1b[31m99"}, 0),
        ({}, 0),
    ],
)
def test_a_newer_deployment_is_mentioned_once(
    headers: dict[str, str], notes: int, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = Calls(VersionCheck(Deployed(headers), "Troop in 1111"), "arn", "Troop in 1111")
    for _ in range(3):
        assert calls.ok("GET", "events") == {"ok": True}
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("upgrade the command")) == ("", notes)
    assert ("Troop in 1111 has 99.0.0" in shown.err) == bool(notes)


def test_a_refusal_says_what_to_do() -> None:
    refusal = Answer(400, {"statusCode": 400, "message": "needs at least 1.2.0: upgrade the command"})
    with pytest.raises(CliError, match="upgrade the command") as caught:
        Calls(VersionCheck(Deployed({}, refusal), "Troop"), "arn", "Troop").ok("GET", "events")
    assert caught.value.code is Exit.REFUSED


@pytest.mark.parametrize(
    ("one", "other", "older"),
    [("0.9.0", "0.10.0", True), ("1.0.0", "0.99.99", False), ("1.0.0", "1.0.0", False), ("", "1.0.0", False)],
)
def test_versions_are_compared_by_number(one: str, other: str, older: bool) -> None:
    assert is_older(one, other) is older
