"""Waiting: through holds, refusals and silence, until a release or the end."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from agent import barrier
from agent.barrier import Address, Release, Waiter, read
from agent.clock import ClockWatch
from agent.store import Store
from tests.unit.agent.fake_account import FakeAccount
from troop.bench.measuring import barriers

KEY = "results/barriers/prepare.json"


class Presigned(Store):
    """A store whose addresses come from the fake account itself."""

    def __init__(self, account: FakeAccount) -> None:
        super().__init__("results", "us-west-2")
        self._account, self.address_count = account, 0

    def presign(self, key: str, seconds: int) -> str:
        self.address_count += 1
        signature = f"signature-{self.address_count}"
        self._account.signatures.add(signature)
        return f"{self._account.url}/results/{key}?X-Amz-Signature={signature}"


def document(**changes: Any) -> dict[str, Any]:
    times = {"timeout_seconds": 60, "warm_up_seconds": 1.5, "measured_seconds": 10, "start_at": 1790000000.25}
    return {"format": "troop.barrier/1", "phase": "prepare", "state": "release", "script": "run.py", **times, **changes}


def waiting(account: FakeAccount, *then: Any) -> tuple[Release | None, Presigned]:
    """What a wait comes to when with each pause something happens, in order: a call, or a document that is put."""
    store, events = Presigned(account), list(then)

    def sleep(_: float) -> None:
        assert events, "it waits for longer than anything happens"
        event = events.pop(0)
        event() if callable(event) else account.put(KEY, event)

    return Waiter(store, ClockWatch(), sleep).wait("barriers/prepare.json"), store


def test_waiter_returns_the_release(account: FakeAccount) -> None:
    account.put(KEY, document(state="hold"))
    release, store = waiting(account, document(state="hold"), document())
    assert release == Release("run.py", 60, 1.5, 10, 1790000000.25)
    assert store.address_count == 1


def test_waiter_stops_at_the_end(account: FakeAccount) -> None:
    account.put(KEY, document(state="hold"))
    assert waiting(account, document(state="end"))[0] is None


def test_refused_address_is_signed_again(account: FakeAccount) -> None:
    account.put(KEY, document(state="hold"))
    release, store = waiting(account, account.signatures.clear, lambda: None, document())
    assert release is not None
    assert store.address_count == 2


def test_address_is_signed_again_before_it_expires(account: FakeAccount, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    store = Presigned(account)
    address = Address(store, "a")
    first = address.url()
    now[0] += barrier.RENEW_AFTER - 1
    assert address.url() == first
    now[0] += 1
    assert address.url() != first
    assert barrier.RENEW_AFTER < barrier.URL_SECONDS


def test_waiter_continues_when_s3_is_busy_or_the_barrier_is_missing(account: FakeAccount) -> None:
    def busy() -> None:
        account.refuse = 1

    release, _ = waiting(account, lambda: None, busy, document())
    assert release is not None


def test_waiter_continues_when_s3_does_not_answer(account: FakeAccount, monkeypatch: pytest.MonkeyPatch) -> None:
    account.put(KEY, document())
    pauses: list[float] = []
    store = Presigned(account)
    good = store.presign("barriers/prepare.json", 1)
    addresses = iter(["http://127.0.0.1:9/closed", good])
    monkeypatch.setattr(Address, "url", lambda self: next(addresses))
    assert Waiter(store, ClockWatch(), pauses.append).wait("barriers/prepare.json") is not None
    assert len(pauses) == 1


def test_one_connection_serves_all_looks(account: FakeAccount) -> None:
    account.put(KEY, document(state="hold"))
    waiting(account, *[document(state="hold")] * 5, document())
    assert account.requests["GET", "presigned"] == 7
    assert account.connections == 1


@pytest.mark.parametrize(
    "body",
    [
        None,
        b"",
        b"[]",
        b"null",
        b"\xff\xfe",
        json.dumps(document(format="troop.barrier/2")).encode(),
        json.dumps(document(state="go")).encode(),
        json.dumps(document(timeout_seconds="soon")).encode(),
        json.dumps({"format": "troop.barrier/1", "state": "release"}).encode(),
        json.dumps(document(timeout_seconds=10**400)).encode(),
        b"[" * 100_000,
    ],
)
def test_unreadable_barrier_releases_nobody(body: bytes | None) -> None:
    assert read(body) == "hold"


# ------------------------------------------------------------------ the AWS CLI


def cli(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    aws = folder / "aws"
    aws.write_text("#!/bin/sh\n" + script)
    aws.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def test_failed_call_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli(
        tmp_path,
        monkeypatch,
        f'echo x >> {tmp_path}/tries; [ "$(wc -l < {tmp_path}/tries)" -ge 3 ] && echo https://there',
    )
    pauses: list[float] = []
    assert Store("results", "us-west-2", pauses.append).presign("a", 60) == "https://there"
    assert len(pauses) == 2


def test_call_that_stays_failed_raises_the_output_of_the_cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli(tmp_path, monkeypatch, "echo 'An error occurred (403)' >&2; exit 1")
    pauses: list[float] = []
    with pytest.raises(Exception, match=r"aws s3 cp .*: An error occurred \(403\)"):
        Store("results", "us-west-2", pauses.append).get("a", tmp_path / "a")
    assert 60 < sum(pauses) < 600


def test_a_try_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli(tmp_path, monkeypatch, "exec sleep 60")
    with pytest.raises(Exception, match=r"took longer than 0.1 s"):
        Store("results", "us-west-2", lambda _: None, timeout_seconds=0.1).get("a", tmp_path / "a")


def test_without_the_cli_nothing_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Exception, match="cannot run the AWS CLI"):
        Store("results", "us-west-2", lambda _: pytest.fail("waited")).get("a", tmp_path / "a")


def test_one_request_that_hangs_or_one_refusal_does_not_make_a_node_late() -> None:
    """A small cell without a warm-up has only the least time from the release to the common start."""
    before = 1.1 * max(barrier.FIRST_PAUSE, barrier.LATER_PAUSE)
    assert barrier.POLL_TIMEOUT + before < barriers.LEAST_MARGIN
    presigning = 3.0  # the longest usual start of the AWS CLI on a small node, which signs another URL
    assert before + barrier.REFUSED_PAUSES[0] + presigning + 1 < barriers.LEAST_MARGIN


def test_a_refusal_costs_a_second_and_further_ones_more(account: FakeAccount) -> None:
    """When the role's session ends, the release may be there already, and the common start is seconds away."""
    account.put(KEY, document())
    pauses: list[float] = []
    store = Presigned(account)
    waiter, address = Waiter(store, ClockWatch(), pauses.append), Address(store, "barriers/prepare.json")
    address.url()
    account.signatures.clear()
    assert waiter.fetch(address) is not None
    assert pauses == [1.0]

    def presign(key: str, seconds: int) -> str:
        return f"{account.url}/results/{key}?X-Amz-Signature=of-another-role"

    store.presign = presign  # type: ignore[method-assign]
    address.refuse()
    assert waiter.fetch(address) is None
    assert pauses == [1.0, 1.0, 5.0]
