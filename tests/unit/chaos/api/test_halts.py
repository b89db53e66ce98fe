"""Halts of many deployments by the command, against the API's function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from cli.chaos import halts
from cli.client.api import Answer
from cli.client.client import TroopClient
from tests.unit.account.account import Account
from tests.unit.account.asking import ask, get, patch
from tests.unit.account.changing import BEN


class Function:
    """The API's function, as the command's client calls it."""

    def request(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None
    ) -> Answer:
        assert not query
        return Answer(*ask(method, f"/{path}", body))


CLIENT = TroopClient(Function(), "arn", "Troop", sleep=lambda _: None)
WHY = {"reason": "outage"}


def test_halt_ends_by_its_id_alone(account: Account) -> None:
    first, second = (halts.new_id(account.clock()) for _ in range(2))
    assert halts.halt(CLIENT, first, WHY)["outcome"] == "halted"
    other = halts.halt(CLIENT, second, WHY)
    assert (other["outcome"], other["switch"]["halt_id"]) == ("halted by another", first)
    assert halts.resume(CLIENT, second, {})["outcome"] == "still halted"
    assert halts.verify(CLIENT, first)["outcome"] == "halted"
    assert halts.resume(CLIENT, first, {})["outcome"] == "resumed"
    assert get("/switch")["halted"] is False


@pytest.mark.parametrize("who", ["person", "itself"])
def test_other_halts_stay_with_who_and_why(account: Account, who: str) -> None:
    if who == "person":
        patch("/switch", {"halted": True, "reason": "mine"}, BEN)
        patch("/switch", {"leashed": True, "reason": "another change"})
    else:
        account.halt_itself()
    before, halt_id = get("/switch"), halts.new_id(account.clock())
    words = halts.in_words(halts.halt(CLIENT, halt_id, WHY))
    parts = ("ben, ", ": mine): your halt does not hold here") if who == "person" else ("2 causes broke units",)
    assert all(part in words for part in parts)
    assert halts.resume(CLIENT, halt_id, {})["outcome"] == "still halted"
    assert get("/switch") == before
