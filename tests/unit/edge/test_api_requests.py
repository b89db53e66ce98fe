"""What holds for every request: the line it leaves in the log, and what a defect looks like from outside."""

from __future__ import annotations

import pytest

from tests.unit.edge.account import Account
from tests.unit.edge.asking import ask
from tests.unit.edge.changing import BEN
from troop.api import switch


class TestEveryRequest:
    def test_leaves_a_line_that_says_whose_it_was(self, account: Account, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level("INFO")
        ask("PATCH", "/switch", {"halted": "maybe"}, BEN)
        (line,) = [vars(record) for record in caplog.records if record.message == "request"]
        fields = {key: line[key] for key in ("method", "path", "caller", "status", "levelname")}
        assert fields == {"method": "PATCH", "path": "/switch", "caller": BEN, "status": 400, "levelname": "INFO"}

    def test_a_defect_is_a_500_that_says_where_to_look(self, account: Account) -> None:
        account.dynamodb.delete_table(TableName="State")
        status, body = ask("GET", "/switch")
        assert (status, body["statusCode"]) == (500, 500)
        assert "look for request r in the log" in body["message"]
        assert "ResourceNotFound" not in body["message"]

    def test_an_answer_that_is_not_what_its_model_says_is_no_fault_of_the_caller(
        self, account: Account, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(switch.SwitchOut, "of", lambda view: {"halted": "what?"})
        assert ask("GET", "/switch")[0] == 500
