"""A fault is one entry in the table: a new one needs no change anywhere else, from the policy to the call."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError
from pydantic import ValidationError

from tests.unit.account.account import WEB, Account, calls, refusing
from tests.unit.account.asking import ask
from tests.unit.chaos.build import tagged, unit_policy
from troop import faults
from troop.chaos.api.terminations import TerminationIn
from troop.chaos.aws.terminator import TerminationRefused, Terminator
from troop.faults.fault import Answer, Failure, Fault, Instance, Meaning, Permission
from troop.shared.aws.clients import client


def _strike(instance: Instance) -> Any:
    return instance.clients["ssm"].send_command(
        InstanceIds=[instance.instance_id], DocumentName="AWS-RunShellScript", Parameters={"commands": ["freeze"]}
    )


def _meaning(failure: Failure) -> Meaning | None:
    return Meaning.GONE if failure.code == "InvalidInstanceId" else None


FREEZE = Fault(
    name="freeze",
    summary="The instance stops answering",
    services=("ssm",),
    permissions=(Permission("ssm:SendCommand", "instance/*", grouped=True),),
    os_shutdown=False,
    strike=_strike,
    meaning=_meaning,
)


@pytest.fixture(autouse=True)
def freeze(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "FAULTS", (*faults.FAULTS, FREEZE))


def test_a_policy_has_it() -> None:
    policy = unit_policy(tagged("web-1", method="drain, freeze"), tagged("web-2", method="freeze"), method="freeze")
    assert (policy.as_dict()["method"]["value"], policy.problems) == ("freeze", ())


def test_the_api_takes_it(account: Account) -> None:
    account.group("web")
    status, unit = ask("PATCH", "/groups/web", {"method": "freeze"})
    assert (status, unit["policy"]["method"]["value"]) == (200, "freeze")
    status, answer = ask("PATCH", "/groups/web", {"method": "melt"})
    assert (status, "one of crash, shutdown, drain, freeze" in answer["message"]) == (400, True)


def test_a_request_to_terminate_may_name_it() -> None:
    request = {"group": "web", "idempotency_key": "k1"}
    assert TerminationIn.model_validate({**request, "method": "freeze"}).method == "freeze"
    with pytest.raises(ValidationError, match="one of crash, shutdown, drain, freeze"):
        TerminationIn.model_validate({**request, "method": "melt"})


def test_a_tick_carries_it_out(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.group("web", tags={"troop:method": "freeze"})
    with calls(monkeypatch) as operations:
        assert account.terminate(account.item("web"))["status"] == "TERMINATED"
    event = account.event(WEB)
    assert (event.method, event.os_shutdown) == ("freeze", False)
    assert operations.count("SendCommand") == 1
    assert account.gone() == []


def test_fault_interprets_its_own_errors(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    terminator = Terminator({"ssm": client("ssm")})
    (instance, *_) = account.instances(account.group("web"))
    assert terminator.check("freeze", instance) is None
    assert terminator.terminate("freeze", instance) is Answer.REQUESTED
    with calls(monkeypatch, refusing("SendCommand", "InvalidInstanceId")):
        assert terminator.terminate("freeze", instance) is Answer.GONE
    with calls(monkeypatch, refusing("SendCommand", "AccessDeniedException")), pytest.raises(TerminationRefused):
        terminator.terminate("freeze", instance)
    with calls(monkeypatch, refusing("SendCommand", "InternalServerError")), pytest.raises(ClientError):
        terminator.terminate("freeze", instance)
