"""Two who change the same at the same time: neither change is lost, and neither is left out of the record."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.unit.account.account import Account, before, calls, raising
from tests.unit.account.asking import ask, patch
from tests.unit.account.changing import BEN, recorded, stored
from troop.chaos.changes import Author
from troop.chaos.wiring import services
from troop.shared.aws.dynamo import plain


class TestAtOnce:
    def test_a_version_that_is_another_by_now(self, account: Account) -> None:
        first = patch("/groups/web", {"owner": "us"})
        assert patch("/groups/web", {"owner": "shop", "version": first["version"]})["version"] == 2
        status, body = ask("PATCH", "/groups/web", {"owner": "them", "version": 1})
        assert status == 409
        assert body["message"] == "version is 1, but unit 'web' has 2: get it, and decide again what to change"
        assert plain(stored(account))["owner"] == "shop"

    def test_a_version_that_changes_in_between(self, account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
        patch("/groups/web", {"owner": "us"})
        other = before("TransactWriteItems", lambda: _aside(account, "min_healthy", 5))
        with calls(monkeypatch, other):
            status, body = ask("PATCH", "/groups/web", {"owner": "them", "version": 1})
        assert (status, "but unit 'web' has 2" in body["message"]) == (409, True)

    @pytest.mark.parametrize("first", [{}, {"owner": "us"}])
    def test_two_at_once_lose_nothing(
        self, account: Account, monkeypatch: pytest.MonkeyPatch, first: dict[str, Any]
    ) -> None:
        if first:
            patch("/groups/web", first)
        other = before("TransactWriteItems", lambda: _aside(account, "min_healthy", 5))
        with calls(monkeypatch, other):
            unit = patch("/groups/web", {"probability": 0.5}, BEN)
        assert (unit["item"]["min_healthy"], unit["item"]["probability"]) == (5, 0.5)
        assert unit["version"] == len(recorded(account)) == (3 if first else 2)

    def test_concurrent_edit_by_hand_is_neither_lost_nor_unrecorded(
        self, account: Account, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By hand: no version is bumped."""
        account.policy("web", opt_out=False)
        by_hand = before("TransactWriteItems", lambda: account.policy("web", opt_out="true", reason="by hand"))
        with calls(monkeypatch, by_hand):
            unit = patch("/groups/web", {"opt_out": None})
        assert unit["item"]["reason"] == "by hand"
        assert unit["changes"][0]["changes"] == {"opt_out": {"old": "true", "new": None}}

    def test_others_all_the_time(self, account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
        numbers = iter(range(100))
        other = before("TransactWriteItems", lambda: account.policy("web", version=next(numbers)), times=100)
        with calls(monkeypatch, other):
            status, body = ask("PATCH", "/groups/web", {"owner": "us"})
        assert status == 409
        assert body["message"] == "others are changing unit 'web' at the same time: get it, and try again"
        assert recorded(account) == []

    def test_other_transactions_all_the_time(self, account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
        conflict: Any = {
            "Error": {"Code": "TransactionCanceledException"},
            "CancellationReasons": [{"Code": "TransactionConflict"}],
        }
        with calls(monkeypatch, raising("TransactWriteItems", ClientError(conflict, "TransactWriteItems"))):
            assert ask("PATCH", "/groups/web", {"owner": "us"})[0] == 409
            assert ask("PATCH", "/switch", {"halted": True})[0] == 409

    def test_nothing_is_changed_without_a_record(self, account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
        account.dynamodb.delete_table(TableName="Changes")
        assert ask("PATCH", "/groups/web", {"owner": "us"})[0] == 500
        assert ask("PATCH", "/switch", {"halted": True})[0] == 500
        assert stored(account) == {}
        assert account.state("switch") == {}


def _aside(account: Account, key: str, value: int) -> None:
    """What another request writes."""
    services.editor().change_policy("web", {key: value}, False, None, Author(BEN, "aside"))
