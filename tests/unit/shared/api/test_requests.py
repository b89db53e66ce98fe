"""What holds for every request: the line it leaves in the log, and what a defect looks like from outside."""

from __future__ import annotations

import pytest

from tests.unit.account.account import Account
from tests.unit.account.asking import answered, ask
from tests.unit.account.changing import BEN
from troop.chaos.api import switch
from troop.shared.api import requests
from troop.shared.version import COMMAND_HEADER, VERSION, VERSION_HEADER


class TestEveryRequest:
    def test_leaves_a_line_that_says_whose_it_was(self, account: Account, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level("INFO")
        ask("PATCH", "/switch", {"halted": "maybe"}, BEN)
        (line,) = [vars(record) for record in caplog.records if record.message == "request"]
        fields = {key: line[key] for key in ("method", "path", "caller", "status", "levelname")}
        assert fields == {"method": "PATCH", "path": "/switch", "caller": BEN, "status": 400, "levelname": "INFO"}

    def test_is_answered_with_the_version_whatever_the_status(self, account: Account) -> None:
        for path in ("/switch", "/nowhere", "/events?limit=0"):
            headers = answered("GET", path)["multiValueHeaders"]
            assert headers[VERSION_HEADER] == [VERSION], path

    @pytest.mark.parametrize(
        ("version", "status"), [("0.9.12", 400), ("1.2.0", 200), ("10.0.0", 200), ("", 200), ("9.9", 200), ("x", 200)]
    )
    def test_request_of_an_outdated_command_is_refused(
        self, account: Account, monkeypatch: pytest.MonkeyPatch, version: str, status: int
    ) -> None:
        monkeypatch.setattr(requests, "OLDEST_COMMAND", "1.2.0")
        refused, body = ask("GET", "/events", headers={COMMAND_HEADER.lower(): version})
        assert refused == status
        assert ("needs at least 1.2.0: upgrade the command" in str(body)) == (status == 400)

    def test_any_version_of_the_command_can_halt(self, account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(requests, "OLDEST_COMMAND", "1.2.0")
        assert ask("PATCH", "/switch", {"halted": True}, headers={COMMAND_HEADER: "0.1.0"})[0] == 200

    def test_defect_is_a_500_that_names_the_request(self, account: Account) -> None:
        account.dynamodb.delete_table(TableName="State")
        status, body = ask("GET", "/switch")
        assert (status, body["statusCode"]) == (500, 500)
        assert "look for request r in the log" in body["message"]
        assert "ResourceNotFound" not in body["message"]

    def test_answer_that_violates_its_model_is_no_fault_of_the_caller(
        self, account: Account, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(switch.SwitchOut, "from_view", lambda view: {"halted": "what?"})
        assert ask("GET", "/switch")[0] == 500
