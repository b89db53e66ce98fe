"""Lasting faults, from the tick to the claim: who consents, who is asked, and what is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.unit.account.account import FRIDAY, OVERDUE, SETTINGS, WEB, Account, Cut, before, calls, losing
from tests.unit.account.asking import get
from tests.unit.account.managed import Managed
from tests.unit.chaos.api.test_terminations import EVENT, machine, post
from troop.chaos.aws.inside_reads import first_reached
from troop.chaos.events import Status
from troop.shared.aws.clients import client
from troop.shared.aws.dynamo import typed

__all__ = ["machine"]

ALLOWED = pytest.mark.parametrize("settings", [SETTINGS | {"inside_instances": True}], indirect=True)
CPU = {"troop:method": "cpu seconds=60 load=80"}
YES, INSTALL = {"troop:inside": "yes"}, {"troop:inside": "install"}
YEAR = 366 * 86_400


@pytest.fixture
def managed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Managed]:
    managed = Managed()
    with calls(monkeypatch, managed):
        yield managed


def consenting(account: Account, managed: Managed, name: str = "web", **more: Any) -> list[str]:
    """Creates a group whose owner consents, and whose instances Systems Manager reaches."""
    instances = account.instances(account.group(name, **({"tags": CPU, "propagated": YES} | more)))
    managed.register(*instances)
    return instances


def reason(account: Account, unit: str = "web") -> tuple[str, str]:
    decision = account.decisions()[unit]
    return decision["reason"], decision["detail"]


def test_without_the_setting_nothing_is_read_and_the_reason_says_why(account: Account, managed: Managed) -> None:
    consenting(account, managed)
    assert account.decide()["count"] == 0
    assert reason(account) == ("inside", "cpu acts inside an instance, but troop:inside_instances is false")
    assert managed.requests == []
    outlook = get("/groups/web")["outlook"]
    assert (outlook["takes_part"], outlook["state"], outlook["next_possible"]) == (False, "inside", None)


def inside_of(*groups: str) -> list[Any]:
    known = {one["group"]: one["inside"] for one in get("/groups/" + groups[0])["groups"]}
    return [(one["consent"], one["fit"], one["why"]) for one in (known[name] for name in groups)]


@ALLOWED
def test_a_unit_tells_who_consents_and_how_many_instances_are_fit(account: Account, managed: Managed) -> None:
    first, second, _ = consenting(account, managed, tags={"troop:unit": "web"}, propagated=INSTALL)
    consenting(account, managed, "web-2", tags={"troop:unit": "web"} | YES, propagated={})
    assert inside_of("web", "web-2") == [
        ("install", 3, ""),
        ("", 0, "does not propagate its tag troop:inside to its instances"),
    ]
    account.put("State", typed({"key": f"hit#{first}", "event_id": "earlier"}))
    assert inside_of("web") == [("install", 2, "")]
    client("autoscaling").set_instance_protection(
        InstanceIds=[second], AutoScalingGroupName="web", ProtectedFromScaleIn=True
    )
    assert inside_of("web") == [("install", 1, "")]
    managed.known.clear()
    assert inside_of("web") == [("install", 0, "has no instance with Linux that is online in Systems Manager")]
    managed.refusal = "InternalServerError"
    assert inside_of("web") == [("install", None, "")]


@ALLOWED
def test_a_group_without_consent_costs_no_call_to_its_instances(
    account: Account, managed: Managed, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.group("web")
    with calls(monkeypatch) as operations:
        assert inside_of("web")[0][:2] == ("", 0)
    assert "DescribeInstances" not in operations
    assert managed.requests == []


@ALLOWED
def test_a_claim_records_the_fault_and_the_only_one_of_its_instance(account: Account, managed: Managed) -> None:
    instances = consenting(account, managed)
    (item,) = account.work(account.decide())
    assert reason(account)[0] == "terminate"
    assert reason(account)[1].endswith("of web is to have the fault cpu load=80 seconds=60")
    answer = account.terminate(item)
    assert (answer["status"], answer["next"]) == ("CLAIMED", "inject")
    event = account.event(WEB)
    assert event.instance_id in instances
    assert (event.method, event.status, event.attempted_at) == ("cpu", Status.CLAIMED, None)
    assert event.injection
    assert event.injection.parameters == {"load": "80", "processors": "0", "seconds": "60"}
    assert not event.injection.installs
    hit = account.state(f"hit#{event.instance_id}")
    assert (hit["event_id"], hit["expires_at"]) == (WEB, int(OVERDUE.timestamp()) + YEAR)
    assert account.count("in-flight") == 1
    assert account.gone() == []


@ALLOWED
@pytest.mark.parametrize(
    ("group", "instance", "installs"), [(INSTALL, None, True), (INSTALL, "yes", False), (YES, "install", False)]
)
def test_packages_are_installed_only_if_group_and_instance_allow_it(
    account: Account, managed: Managed, group: dict[str, str], instance: str | None, installs: bool
) -> None:
    instances = consenting(account, managed, propagated=group)
    if instance:
        account.ec2.create_tags(Resources=instances, Tags=[{"Key": "troop:inside", "Value": instance}])
    assert account.terminate(account.item("web"))["status"] == "CLAIMED"
    injection = account.event(WEB).injection
    assert injection
    assert injection.installs is installs


@ALLOWED
def test_only_consenting_instances_that_are_reached_and_new_to_faults_are_chosen(
    account: Account, managed: Managed
) -> None:
    untagged, lost, windows, hit, left = consenting(account, managed, size=5)
    account.ec2.delete_tags(Resources=[untagged], Tags=[{"Key": "troop:inside"}])
    managed.register(lost, ping="ConnectionLost")
    managed.register(windows, platform="Windows")
    account.put("State", typed({"key": f"hit#{hit}", "event_id": "2026-11-02#web", "expires_at": 2**40}))
    (item,) = account.work(account.decide())
    assert account.decisions()["web"]["instance_id"] == left
    account.terminate(item)
    assert account.event(WEB).instance_id == left
    assert [sorted(one) for one in managed.requests] == [sorted((lost, windows, left))] * 2


@ALLOWED
def test_units_that_are_not_due_cause_no_call(account: Account, managed: Managed) -> None:
    consenting(account, managed, tags=CPU | {"troop:probability": "0"})
    consenting(account, managed, "crashing", tags={"troop:method": "crash"})
    account.group("silent", tags=CPU)
    account.decide()
    assert {unit: one["reason"] for unit, one in account.decisions().items()} == {
        "web": "not-rolled",
        "crashing": "terminate",
        "silent": "inside",
    }
    assert managed.requests == []


@ALLOWED
def test_one_unit_that_systems_manager_does_not_answer_for_stops_no_other(account: Account, managed: Managed) -> None:
    consenting(account, managed)
    account.group("api")
    managed.refusal = "ThrottlingException"
    assert [item["unit"] for item in account.work(account.decide())] == ["api"]
    assert reason(account)[0] == "inside"
    assert "ThrottlingException" in reason(account)[1]
    with pytest.raises(ClientError):  # a claim needs every fact
        account.terminate(account.item("web"))
    assert account.all_events() == []


@ALLOWED
def test_large_group_is_read_page_by_page_until_one_is_reached(account: Account, managed: Managed) -> None:
    ids = [f"i-{n:017x}" for n in range(300)]
    managed.register(*ids[60:70], *ids[250:])
    assert first_reached(client("ssm"), ids) == frozenset(ids[60:70])
    assert managed.requests == [ids[:50], ids[50:100]]
    managed.known.clear()
    managed.requests.clear()
    managed.register(*ids[250:])
    assert first_reached(client("ssm"), ids) == frozenset()
    assert managed.requests == [ids[first : first + 50] for first in (0, 50, 100, 150)]
    assert first_reached(client("ssm"), []) == frozenset()


@ALLOWED
def test_an_instance_is_hit_once_in_its_life(account: Account, managed: Managed) -> None:
    (instance,) = consenting(account, managed, size=1, tags=CPU | {"troop:min_healthy": "1"})
    assert account.terminate(account.item("web"))["status"] == "CLAIMED"
    account.put("State", typed({"key": "unit#web"}))
    account.put("State", typed({"key": "in-flight"}))
    account.dynamodb.delete_item(TableName="Events", Key=typed({"event_id": WEB}))
    answer = account.terminate(account.item("web"))
    assert (answer["status"], answer["reason"]) == ("REFUSED", "inside")
    assert account.state(f"hit#{instance}")["event_id"] == WEB


@ALLOWED
def test_two_claims_of_one_instance_are_one(
    account: Account, managed: Managed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another unit can claim it between the check and the claim."""
    (instance,) = consenting(account, managed, size=1, tags=CPU | {"troop:min_healthy": "1"})
    hit = typed({"key": f"hit#{instance}", "event_id": "2026-11-20#other"})
    with calls(monkeypatch, before("TransactWriteItems", lambda: account.put("State", hit))):
        answer = account.terminate(account.item("web"))
    assert (answer["status"], answer["reason"]) == ("REFUSED", "inside")
    assert account.all_events() == []
    assert account.count("in-flight") == 0


@ALLOWED
@pytest.mark.parametrize("status", [Status.ABANDONED, Status.GONE_ELSEWHERE])
def test_an_instance_on_which_nothing_was_sent_can_be_hit_again(
    account: Account, managed: Managed, status: Status
) -> None:
    consenting(account, managed, size=1, tags=CPU | {"troop:min_healthy": "1"})
    account.terminate(account.item("web"))
    event = account.event(WEB)
    account.events.close(event, status, "chaos was halted")
    assert "event_id" not in account.state(f"hit#{event.instance_id}")
    assert account.count("in-flight") == 0
    posted, answer = post(method="cpu")
    assert (posted, answer["instance_id"]) == (202, event.instance_id)
    assert account.state(f"hit#{event.instance_id}")["event_id"] == EVENT


@ALLOWED
def test_a_lost_answer_to_the_claim_is_no_second_fault(
    account: Account, managed: Managed, monkeypatch: pytest.MonkeyPatch
) -> None:
    consenting(account, managed)
    item = account.item("web")
    with calls(monkeypatch, losing("TransactWriteItems")), pytest.raises(Cut):
        account.terminate(item)
    event = account.event(WEB)
    assert account.terminate(item)["status"] == "CLAIMED"
    assert account.event(WEB) == event
    assert account.count("in-flight") == 1


@ALLOWED
def test_a_fault_that_would_outlast_the_window_is_not_claimed(account: Account, managed: Managed) -> None:
    """At 14:46 a fault of ten minutes has no time left for its proof."""
    consenting(account, managed, tags={"troop:method": "cpu seconds=720"})
    consenting(account, managed, "short", tags={"troop:method": "cpu seconds=660"})
    assert [item["unit"] for item in account.work(account.decide())] == ["short"]
    assert reason(account) == (
        "outside-window",
        "cpu and the proof of its end take 15 minutes: the window closes too soon",
    )
    assert account.terminate(account.item("web"))["reason"] == "outside-window"
    account.terminate(account.item("short"))
    event = account.event(f"{FRIDAY}#short")
    assert event.deadline
    assert (event.deadline - OVERDUE).total_seconds() == 14 * 60 - 660 - 10 - 120


@ALLOWED
def test_a_leashed_deployment_records_the_fault_and_no_hit(account: Account, managed: Managed) -> None:
    consenting(account, managed, propagated=INSTALL)
    account.switch(leashed=True)
    account.decide()
    event = account.event(WEB)
    assert (event.status, event.method) == (Status.LEASHED, "cpu")
    assert event.injection
    assert event.injection.installs
    assert event.detail == "would have had the fault cpu load=80 seconds=60, were the deployment not leashed"
    assert account.state(f"hit#{event.instance_id}") == {}
    account.switch(leashed=False)
    assert account.terminate(account.item("web"))["status"] == "CLAIMED"


# ------------------------------------------------------------------ on demand


@ALLOWED
def test_a_request_may_name_a_lasting_fault_whatever_the_policy_allows(account: Account, managed: Managed) -> None:
    consenting(account, managed, tags={"troop:method": "crash"})
    status, answer = post(method="latency delay=400 seconds=30")
    assert (status, answer["method"]) == (202, "latency")
    injection = account.event(EVENT).injection
    assert injection
    assert (injection.parameters["delay"], injection.parameters["seconds"]) == ("400", "30")
    assert injection.parameters["jitter"] == "10"


@ALLOWED
def test_a_request_may_name_a_termination_where_the_policy_has_lasting_faults(
    account: Account, managed: Managed
) -> None:
    account.group("web", tags=CPU)
    status, answer = post(method="drain")
    assert (status, answer["method"]) == (202, "drain")
    assert account.event(EVENT).injection is None
    assert managed.requests == []


@ALLOWED
def test_a_request_without_consent_is_refused(account: Account, managed: Managed) -> None:
    account.group("web")
    status, answer = post(method="cpu")
    assert (status, answer["reason"]) == (409, "inside")
    assert "owner has not consented" in answer["message"]
    assert account.all_events() == []


def test_a_request_is_refused_while_the_setting_is_off(account: Account, managed: Managed) -> None:
    consenting(account, managed)
    status, answer = post(method="cpu")
    assert (status, answer["reason"]) == (409, "inside")
    assert "troop:inside_instances is false" in answer["message"]


@pytest.mark.parametrize("method", ["cpu load=0", "melt", "kill", "cpu, crash", "cpu;reboot"])
def test_a_request_for_a_fault_that_does_not_exist_is_malformed(
    account: Account, managed: Managed, method: str
) -> None:
    account.group("web")
    status, answer = post(method=method)
    assert status == 400
    assert "must be" in answer["message"]
