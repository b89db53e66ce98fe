"""`troop terminate`: asks first, tells how it goes, and exits as it ended."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import pytest

from cli.client.api import Answer
from cli.client.remedies import remedy
from cli.commands import terminate
from cli.shared.errors import Exit
from tests.unit.chaos.build import NOT_OVER, at, injected, injection, replaced, running
from tests.unit.cli.conftest import FakeApi, Run, answered, event, judged
from troop.chaos.events import Event, Status
from troop.chaos.guards import REASONS
from troop.chaos.probe import Probe

REQUEST = ("POST", "terminations")


def stages(api: FakeApi, *statuses: str, first: int = 202) -> None:
    """What the API answers: to the request, and then to each look at the event."""
    events = [
        event(
            "web", status=s, recovery_seconds=12.5 if s == "RECOVERED" else None, detail="" if s == "RECOVERED" else s
        )
        for s in statuses
    ]
    api.refusals[REQUEST] = [Answer(first, events[0])]
    api.refusals["GET", f"events/{events[0]['id']}"] = [Answer(200, t) for t in events]


def test_from_the_question_to_the_recovery(run: Run, api: FakeApi) -> None:
    stages(api, "CLAIMED", "CLAIMED", "TERMINATED", "TERMINATED", "RECOVERED")
    result = run("terminate", "web", "--key", "k1", "--method", "drain", typed="y\n")
    assert result.exit_code == 0, result.output
    assert api.calls[0] == (*REQUEST, {"group": "web", "idempotency_key": "k1", "method": "drain"})
    words = [line.partition(":")[0] for line in result.stdout.splitlines()]
    assert words[-3:] == ["claimed", "terminated", "recovered in 12.5 s"]


def looks(api: FakeApi, *events: dict[str, Any]) -> None:
    """What the API answers to the request, which has just been claimed, and to each look at the event."""
    api.refusals[REQUEST] = [Answer(202, event("web", status="CLAIMED"))]
    api.refusals["GET", f"events/{events[0]['id']}"] = [Answer(200, one) for one in events]


def test_waiting_shows_each_stage_once_and_ends_with_the_verdict(run: Run, api: FakeApi) -> None:
    whole = judged(abort=None)
    stages = {**whole["stages"], "in_service": None, "healthy": []}
    hit = {**whole, "status": "TERMINATED", "recovered_at": None, "recovery_seconds": None, "verdict": None}
    hit |= {"settles_at": None, "stages": None}
    held = {**whole["verdict"], "value": "HELD", "why": "its alarms stayed OK"}
    looks(
        api,
        hit,
        hit | {"stages": stages},
        hit | {"stages": stages},
        {**whole, "verdict": None},
        whole | {"verdict": held},
    )
    result = run("terminate", "web", "--yes")
    assert result.exit_code == 0, result.output
    claimed, *lines = result.stdout.splitlines()
    assert claimed.startswith("claimed: ")
    settles = lines.pop(6)
    assert settles.startswith("the verdict comes after 2026-11-20")
    assert lines == [
        "terminated",
        "after 4 s: Auto Scaling noticed the loss",
        "after 9 s: Auto Scaling launched a replacement",
        "after 70 s: the replacement was in service",
        "after 3 min 10 s: the replacement was healthy in web",
        "recovered in 3 min 7 s to 3 min 10 s",
        "verdict: HELD: its alarms stayed OK",
    ]


@pytest.mark.parametrize(("value", "code"), [("BROKEN", Exit.FAILED), ("UNKNOWN", 0), ("HELD", 0)])
def test_a_broken_verdict_fails(run: Run, api: FakeApi, value: str, code: int) -> None:
    one = judged()
    looks(api, one | {"verdict": one["verdict"] | {"value": value}})
    result = run("terminate", "web", "--yes", "--json")
    assert result.exit_code == code
    assert json.loads(result.stdout)["verdict"]["value"] == value
    assert f"verdict: {value}: alarm errors went off" in result.stderr
    assert ("BROKEN: alarm errors went off" in result.stderr.splitlines()[-1]) is (code != 0)


@pytest.mark.parametrize("typed", [None, "n\n"])
def test_unconfirmed_termination_is_not_requested(run: Run, api: FakeApi, typed: str | None) -> None:
    assert run("terminate", "web", typed=typed).exit_code == Exit.NOT_CONFIRMED
    assert api.calls == []


def test_without_waiting_it_ends_with_the_claim(run: Run, api: FakeApi) -> None:
    stages(api, "CLAIMED")
    result = run("terminate", "web", "--yes", "--no-wait", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["status"] == "CLAIMED"
    assert len(api.calls) == 1


@pytest.mark.parametrize("status", ["UNRECOVERED", "ABANDONED"])
def test_unrecovered_or_abandoned_termination_fails(run: Run, api: FakeApi, status: str) -> None:
    stages(api, "CLAIMED", status)
    result = run("terminate", "web", "--yes")
    assert result.exit_code == Exit.FAILED
    assert f"{status}: {status}" in result.stderr


@dataclass
class Clock:
    """Seconds, which pass while the command sleeps."""

    now: float = 5000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += 60


@pytest.mark.parametrize(
    ("more", "status", "minutes"),
    [
        ({"deadline": "2026-11-20T10:10:00.000Z"}, "CLAIMED", 13),
        ({}, "CLAIMED", 13),
        (
            {"terminated_at": "2026-11-20T10:01:00.000Z", "recover_by": "2026-11-20T10:31:00.000Z"},
            "TERMINATED",
            33,
        ),
        ({}, "TERMINATED", 723),
        ({key: judged()[key] for key in ("recovered_at", "settles_at")}, "RECOVERED", 6),
    ],
)
def test_wait_for_a_termination_is_limited(
    run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch, more: dict[str, str], status: str, minutes: int
) -> None:
    """A claim whose owner has died, and a group that nobody watches any more."""
    clock = Clock()
    monkeypatch.setattr(terminate, "time", clock)
    document = event("web", status=status, **more)
    api.refusals[REQUEST] = [Answer(202, document | {"status": "CLAIMED"})]
    api.refusals["GET", f"events/{document['id']}"] = [Answer(200, document)] * 2000
    result = run("terminate", "web", "--yes")
    assert result.exit_code == Exit.FAILED
    assert (f"is still {status}" if status != "RECOVERED" else "its verdict is overdue") in result.stderr
    assert minutes < (clock.now - 5000) / 60 <= minutes + 2


REFUSALS = [
    (403, {"statusCode": 403, "message": "troop:on_demand is false"}, Exit.REFUSED, "on_demand"),
    (403, {"Message": "User is not authorized"}, Exit.FORBIDDEN, "execute-api:Invoke"),
    (404, {"statusCode": 404, "message": "no group web"}, Exit.NO_SUCH_UNIT, "no unit or group 'web'"),
    (409, {"statusCode": 409, "message": "halted: by the switch", "reason": "halted"}, Exit.REFUSED, "`troop resume`"),
    (409, {"statusCode": 409, "message": "opted-out", "reason": "opted-out"}, Exit.REFUSED, "`troop opt-in web` ends"),
    (409, {"statusCode": 409, "message": "leashed: due, but"}, Exit.REFUSED, "leashed"),
    (410, {"statusCode": 410, "message": "too-small: web"}, Exit.REFUSED, "too-small"),
    (409, {"statusCode": 409, "message": "no", "reason": "too-small", "desired": 1}, Exit.REFUSED, "min_healthy="),
    (
        410,
        {"message": "no", "statusCode": 410, "reason": "too-small", "desired": 0},
        Exit.REFUSED,
        "enlarge the group\n",
    ),
]


@pytest.mark.parametrize(("status", "body", "code", "words"), REFUSALS)
def test_refusal_has_an_exit_code_and_message(
    run: Run, api: FakeApi, status: int, body: dict[str, object], code: Exit, words: str
) -> None:
    api.refusals[REQUEST] = [Answer(status, body)]
    result = run("terminate", "web", "--yes")
    assert result.exit_code == code
    assert words in result.stderr


def test_name_of_a_unit_is_refused_with_its_groups(run: Run, api: FakeApi) -> None:
    api.add("shop", groups=2)
    api.refusals[REQUEST] = [Answer(404, {"statusCode": 404, "message": "there is no Auto Scaling group named 'shop'"})]
    result = run("terminate", "shop", "--yes")
    assert result.exit_code == Exit.NO_SUCH_UNIT
    assert "named 'shop'; shop is a unit: use one of its groups, shop-v1, shop-v2\n" in result.stderr


def test_every_refusal_says_what_to_do() -> None:
    """Of those that a request can meet: the others are about when, and how often."""
    ignored = {
        *("weekend", "holiday", "freeze", "outside-window", "change-calendar"),
        *("too-soon", "not-rolled", "not-yet", "already-today"),
    }
    assert [reason for reason in REASONS if not remedy(reason, "web") and reason not in ignored] == []


def test_lost_answer_is_requested_again_with_the_same_key(run: Run, api: FakeApi) -> None:
    stages(api, "RECOVERED", first=200)
    api.refusals[REQUEST].insert(0, Answer(504, {"message": "timed out"}))
    result = run("terminate", "web", "--yes")
    assert result.exit_code == 0, result.output
    keys = {body["idempotency_key"] for method, _, body in api.calls if method == "POST"}
    assert len(keys) == 1
    assert "already requested" in result.stdout


@pytest.mark.parametrize("words", ["terminate web --yes", "bench run nowhere.yaml", "fleet up nowhere.yaml"])
@pytest.mark.parametrize("key", ["", " "])
def test_empty_key_is_refused_and_not_replaced(run: Run, api: FakeApi, words: str, key: str) -> None:
    result = run(*words.split(), "--key", key)
    assert (result.exit_code, api.calls) == (Exit.USAGE, [])
    assert "--key is empty" in result.stderr


def fault(api: FakeApi, *events: Event) -> None:
    """What the API answers about a lasting fault: to the request, and then to each look at the event."""
    documents = [answered(one) for one in events]
    api.refusals[REQUEST] = [Answer(202, documents[0])]
    api.refusals["GET", f"events/{documents[0]['id']}"] = [Answer(200, one) for one in documents]


CLAIMED = running(status=Status.CLAIMED, attempted_at=None, injection=injection(**NOT_OVER))


def test_a_lasting_fault_is_confirmed_injected_and_proven_over(run: Run, api: FakeApi) -> None:
    fault(api, CLAIMED, running(), running(injection=injection()), injected())
    result = run("terminate", "web", "--method", "latency delay=200 seconds=60", typed="y\n")
    assert result.exit_code == 0, result.output
    assert api.calls[0][2]["method"] == "latency delay=200 seconds=60"
    words = " ".join(result.stderr.split())
    assert "Inject latency into an instance of web in Troop in account" in words
    assert "now: packets of the instance are delayed, for 60 s" in words
    assert "(delay=200 jitter=10 sources=ALL direction=egress seconds=60)" in words
    lines = result.stdout.splitlines()
    assert any(line.startswith("claimed: i-00000000000000000 of web") for line in lines)
    assert lines[-6:] == [
        "before: the probe: the instance answered",
        "after 0 s: latency delay=200 jitter=10 sources=ALL direction=egress seconds=60 was injected into "
        "i-00000000000000000",
        "after 63 s: the command was over (Success, which proves nothing)",
        "after 66 s: proven to be over: a probe found no trace of it",
        "the group was whole when latency was over",
        "verdict: HELD: the group recovered in 3 s, within 300 s; the unit has no success alarms",
    ]
    assert "terminated" not in result.output


def test_a_probe_is_no_line_before_its_answer(run: Run, api: FakeApi) -> None:
    waiting = Probe("b" * 32, at("12:01:08"), "c-3")
    fault(api, CLAIMED, running(injection=injection(after=waiting, proof=None)), injected())
    result = run("terminate", "web", "--method", "latency", "--yes")
    assert result.exit_code == 0, result.output
    assert "last probe" not in result.stdout
    assert "proven to be over" in result.stdout


def test_a_fault_without_proof_is_shown_once_and_then_replaced(run: Run, api: FakeApi) -> None:
    stuck = running(injection=injection(**NOT_OVER | {"unproven": "no other instance is in service"}))
    fault(api, CLAIMED, stuck, stuck, replaced(status=Status.TERMINATED, recovered_at=None, verdict=None), replaced())
    result = run("terminate", "web", "--method", "latency", "--yes")
    assert result.exit_code == 0, result.output
    words = "the fault is not proven to be over, act now: no other instance is in service"
    assert result.stdout.splitlines().count(f"still: {words}") == 1
    assert "i-00000000000000000 was terminated: the end was not proven" in result.stdout
    assert "terminated" not in result.stdout.splitlines(), "its step says it"
    assert "recovered in 2 min 16 s to 2 min 20 s" in result.stdout


def test_a_claim_whose_probe_objects_fails(run: Run, api: FakeApi) -> None:
    fault(api, CLAIMED, replace(CLAIMED, status=Status.ABANDONED, detail="the instance has no tc"))
    result = run("terminate", "web", "--method", "latency", "--yes")
    assert result.exit_code == Exit.FAILED
    assert "ABANDONED: the instance has no tc" in result.stderr


def test_without_a_method_the_question_names_no_kind_of_hit(run: Run, api: FakeApi) -> None:
    assert "Hit an instance of web in Troop in account" in run("terminate", "web", typed="n\n").stderr
    assert "Terminate an instance of web" in run("terminate", "web", "--method", "drain", typed="n\n").stderr
    kill = run("terminate", "web", "--method", "kill process=nginx", typed="n\n").stderr
    assert "it is over when the process runs again" in " ".join(kill.split())


@pytest.mark.parametrize("method", ["latency delay=never", "crash, drain", "nuke", "kill"])
def test_a_wrong_method_is_no_request(run: Run, api: FakeApi, method: str) -> None:
    assert run("terminate", "web", "--method", method, "--yes").exit_code == Exit.USAGE
    assert api.calls == []
