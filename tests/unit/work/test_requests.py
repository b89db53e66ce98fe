"""Results, leases and requests of workers, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.serving import Quiet
from tests.unit.tls import certificate, serving
from tests.unit.work.model_account import BUCKET, RESULTS, URL, ModelAccount, ModelService
from troop.measure.s3.web import ERRORS, Web
from troop.work import queue_facts
from troop.work.errors import WorkError
from troop.work.leases import LONGEST_SECONDS, Leases
from troop.work.queue import Queue
from troop.work.queue_facts import QueueFacts
from troop.work.results import Results
from troop.work.service import TRIES
from troop.work.work_folder import DRAIN, LEAVE, Counts, WorkFolder

FACTS = QueueFacts(URL, "https://host", (), 30, "us-west-2", BUCKET, RESULTS)


def results(account: ModelAccount, *fates: str) -> Results:
    left = [*fates]
    return Results(FACTS, ModelService("s3", account, lambda: left.pop(0) if left else ""))


@pytest.mark.parametrize(
    ("fates", "there", "stands"),
    [
        ((), None, True),
        (("answer lost",), None, True),
        (("answer lost", "503", "409"), None, True),
        ((), b"other", False),
        (("request lost",), b"other", False),
        (("answer lost", "500"), b"other", False),
    ],
)
def test_a_result_stands_exactly_if_it_was_the_first(fates: tuple[str, ...], there: bytes | None, stands: bool) -> None:
    account = ModelAccount()
    if there is not None:
        account.objects[f"{RESULTS}one"] = (there, {"x-amz-meta-troop-writer": "another"})
    assert results(account, *fates).put("one", b"mine", "me") is stands
    assert account.result("one") == (b"mine" if stands else there)
    assert account.writes == ({f"{RESULTS}one": 1} if stands else {})


def test_a_result_that_s3_refuses_is_an_error() -> None:
    with pytest.raises(WorkError, match="S3 answered 403"):
        results(ModelAccount(), "403").put("one", b"", "me")
    with pytest.raises(WorkError, match="s3 answered 503"):
        results(ModelAccount(), *["503"] * TRIES).put("one", b"", "me")


class Clocked:
    """Leases by the clock of a model's account."""

    def __init__(self, tmp_path: Path, lease: int = 30) -> None:
        self.account = ModelAccount(lease=lease)
        self.fates: list[str] = []
        service = ModelService("sqs", self.account, lambda: self.fates.pop(0) if self.fates else "")
        self.queue = Queue(URL, service)
        self.leases = Leases(self.queue, WorkFolder(tmp_path), lease, lambda: self.account.now)
        self.account.send("one")
        message = self.queue.receive()
        assert message is not None
        self.receipt = message.receipt
        self.leases.take(message.receipt, "one")

    def work(self, seconds: int) -> None:
        for _ in range(seconds):
            self.account.now += 1
            self.leases.renew()

    @property
    def hidden(self) -> float:
        """Seconds for which others do not see the task."""
        return self.account.messages["one"].hidden_until - self.account.now


def test_a_lease_is_renewed_each_third_and_never_more(tmp_path: Path) -> None:
    clocked = Clocked(tmp_path)
    clocked.work(301)
    assert clocked.hidden >= 20
    assert clocked.account.requests.count("ChangeMessageVisibility") == 30


def test_a_renewal_that_fails_is_repeated_before_the_lease_ends(tmp_path: Path) -> None:
    clocked = Clocked(tmp_path)
    clocked.fates = ["500"] * 9
    clocked.work(25)
    assert clocked.hidden > 10
    assert clocked.account.messages["one"].count == 1


def test_a_lease_lasts_at_most_twelve_hours(tmp_path: Path) -> None:
    clocked = Clocked(tmp_path, lease=7200)
    clocked.work(LONGEST_SECONDS + 100)
    assert clocked.hidden <= 0
    assert clocked.leases.release(clocked.receipt), "its result may still be the first"


def test_a_lease_that_has_ended_is_not_renewed(tmp_path: Path) -> None:
    """Another worker may have the task: its lease is its own."""
    clocked = Clocked(tmp_path)
    clocked.account.now += 31
    assert clocked.queue.receive() is not None
    clocked.work(100)
    assert clocked.account.requests.count("ChangeMessageVisibility") == 1


def test_a_task_that_another_worker_has_finished_is_not_renewed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clocked = Clocked(tmp_path)
    clocked.account.now += 31
    again = clocked.queue.receive()
    assert again is not None
    clocked.queue.delete(again.receipt)
    clocked.work(100)
    assert clocked.account.requests.count("ChangeMessageVisibility") == 1
    assert "the lease of one has ended" in capsys.readouterr().out


class Hosts(Quiet):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(200, self.headers["Host"].encode())


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Of a server with the certificate of a service's regional name."""
    bundle = certificate(tmp_path, "sqs.us-west-2.amazonaws.com")
    monkeypatch.setenv("AWS_CA_BUNDLE", str(bundle))
    with serving(Hosts, bundle) as address:
        yield int(address.rpartition(":")[2])


def test_an_endpoint_gets_requests_in_the_name_of_its_service(port: int) -> None:
    web = Web(endpoint="127.0.0.1")
    answer = web.ask(f"https://sqs.us-west-2.amazonaws.com:{port}/", "POST", {}, b"a")
    assert answer.body == b"sqs.us-west-2.amazonaws.com:%d" % port


def test_an_endpoint_with_the_certificate_of_another_service_is_refused(port: int) -> None:
    with pytest.raises(ERRORS, match="certificate verify failed"):
        Web(endpoint="127.0.0.1").ask(f"https://s3.us-west-2.amazonaws.com:{port}/", "POST", {}, b"a")


def facts(tmp_path: Path, **variables: str) -> QueueFacts:
    folder = WorkFolder(tmp_path)
    folder.queue.write_text(
        '{"format": "troop.queue/1", "url": "u", "host": "sqs.us-west-2.amazonaws.com", "endpoints": ["vpce-1", '
        '"vpce-2"], "lease": 60, "region": "us-west-2", "bucket": "results", "results": "runs/r/results/"}'
    )
    return queue_facts.read(folder, variables)


def test_local_aws_takes_the_place_of_the_endpoint(tmp_path: Path) -> None:
    own = facts(tmp_path)
    assert (own.service, own.endpoints) == ("https://sqs.us-west-2.amazonaws.com", ("vpce-1", "vpce-2"))
    local = facts(tmp_path, AWS_ENDPOINT_URL="http://127.0.0.1:4566")
    assert (local.service, local.endpoints) == ("http://127.0.0.1:4566", ())


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"format": "troop.queue/2"}'])
def test_damaged_facts_of_a_queue_are_an_error(tmp_path: Path, content: str) -> None:
    folder = WorkFolder(tmp_path)
    folder.queue.write_text(content)
    with pytest.raises(WorkError, match="cannot read"):
        queue_facts.read(folder, {})


def test_only_living_processes_hold_tasks_and_all_count(tmp_path: Path) -> None:
    folder = WorkFolder(tmp_path)
    assert folder.counts() is None
    folder.store(Counts(done=3, held=1, receiving=1, idle_since=5.0))
    assert folder.counts() == Counts(3, 1, 1, 5.0)
    (tmp_path / "1.json").write_text('{"done": 4, "held": 1, "receiving": 1, "idle_since": null, "begun": "another"}')
    (tmp_path / "2.json").write_text("{")
    assert folder.counts() == Counts(7, 1, 1, 5.0), "a process that has ended holds nothing, and is not idle"


@pytest.mark.parametrize(("content", "reason"), [("drain", DRAIN), ("leave", LEAVE), ("", DRAIN), ("\xff", DRAIN)])
def test_any_stop_file_stops(tmp_path: Path, content: Any, reason: str) -> None:
    folder = WorkFolder(tmp_path)
    assert folder.reason is None
    (tmp_path / "stop").write_bytes(content.encode("latin-1"))
    assert folder.reason == reason
    folder.resume()
    assert folder.reason is None
