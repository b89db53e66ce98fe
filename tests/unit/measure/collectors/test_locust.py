"""Locust's requests, as a listener gets them: what Locust 2.43 reported of a real run, beside its own results."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent.collect import operations_in
from troop.measure import recordings
from troop.measure.collectors import locust_events
from troop.measure.collectors.common import a_name
from troop.measure.operations import Operations
from troop.measure.recorder import Recorder

DATA = Path(__file__).with_name("data")
REQUESTS = [
    json.loads(line)
    for line in gzip.decompress((DATA / "locust-2.43.4-requests.jsonl.gz").read_bytes()).decode().splitlines()
]
"""Of each request: type, name, milliseconds, bytes, the class of the exception or null, the status or null."""
STATISTICS = json.loads(gzip.decompress((DATA / "locust-2.43.4-stats.json.gz").read_bytes()))
"""Locust's own results of the same run (--json-file)."""


class Hook:
    def __init__(self) -> None:
        self.listeners: list[Any] = []

    def add_listener(self, listener: Any) -> None:
        self.listeners.append(listener)

    def fire(self, **values: Any) -> None:
        for listener in self.listeners:
            listener(**values)


class Events:
    """As ``locust.events``."""

    def __init__(self) -> None:
        self.request, self.quitting, self.quit = Hook(), Hook(), Hook()


class Response:
    def __init__(self, status_code: int | None) -> None:
        self.status_code = status_code


def send(events: Events, requests: list[Any]) -> None:
    """Fires the events of requests, with what Locust passes and the listener ignores."""
    for kind, name, milliseconds, length, exception, status in requests:
        events.request.fire(
            request_type=kind,
            name=name,
            response_time=milliseconds,
            response_length=length,
            exception=type(exception, (Exception,), {})() if exception else None,
            response=Response(status),
            context={},
            url="/",
            start_time=0.0,
        )


def counted(results: Path, requests: list[Any]) -> Operations:
    """Returns what is written of requests when Locust begins to quit, which is all."""
    events, problems = Events(), list[str]()
    locust_events.listen(events)
    send(events, requests)
    events.quitting.fire(environment=None)
    operations = operations_in(results, problems)
    events.quit.fire(exit_code=0)
    assert (operations_in(results, problems), problems) == (operations, [])
    return operations


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TROOP_RESULTS", str(tmp_path))
    monkeypatch.setenv("TROOP_MEASURED_FROM", "0")
    monkeypatch.setenv("TROOP_MEASURED_SECONDS", "100000")
    clock = Recorder.of_this_phase
    monkeypatch.setattr(Recorder, "of_this_phase", lambda tool: _at(clock(tool=tool)))
    return tmp_path


def _at(recorder: Any) -> Any:
    recorder.now = lambda: 50.0
    return recorder


def bucket(milliseconds: float) -> float:
    """As Locust rounds: 147 is 150, 3432 is 3400, 58760 is 59000."""
    return round(milliseconds, -len(str(round(milliseconds))) + 2) if milliseconds >= 100 else round(milliseconds)


def test_requests_are_those_of_locusts_own_results_but_not_rounded(results: Path) -> None:
    operations = counted(results, REQUESTS)
    for one in STATISTICS:
        operation = operations[a_name(f"{one['method']} {one['name']}")]
        assert operation.times.count == one["num_requests"] - one["num_failures"]
        assert sum(operation.errors.values()) == one["num_failures"]
        if not one["num_failures"]:
            times = [request[2] for request in REQUESTS if request[1] == one["name"]]
            assert Counter(map(bucket, times)) == {int(time): count for time, count in one["response_times"].items()}
            assert operation.times.sum == sum(round(time * 1000) for time in times)
            assert operation.bytes == one["total_content_length"]
    assert {tuple(sorted(one.tools)) for one in operations.values()} == {("Locust",)}


def test_errors_are_statuses_exceptions_or_the_plans_own(results: Path) -> None:
    kinds = {name: set(one.errors) for name, one in counted(results, REQUESTS).items() if one.errors}
    assert kinds == {
        "GET-missing": {"404"},
        "GET-gone": {"404"},
        "GET-checked": {"failed"},
        "GET-refused": {"ConnectionRefusedError"},
        "GET-closed": {"ConnectionRefusedError"},
    }


def _child(requests: list[Any]) -> None:
    send(_shared, requests)
    _shared.quitting.fire(environment=None)


_shared = Events()


@pytest.mark.slow
def test_each_process_writes_its_own_results(results: Path) -> None:
    """Locust starts processes after it has read its files, and so after the listener was added."""
    locust_events.listen(_shared)
    send(_shared, REQUESTS[:10])
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=_child, args=(REQUESTS[n : n + 10],)) for n in (10, 20)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    _shared.quitting.fire(environment=None)
    total = sum(one.times.count + sum(one.errors.values()) for one in operations_in(results, []).values())
    assert total == 30


def test_no_time_is_not_a_time_of_zero(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Locust counts such events, and leaves them out of its own percentiles."""
    requests = [["GET", "mixed", 50.0, 10, None, 200]] * 10 + [["GET", "mixed", None, 10, None, 200]] * 90
    requests += [["GET", "mixed", None, 0, "Refused", None], ["GET", "quick", 0, 0, None, 200]]
    operations = counted(results, requests)
    assert operations["GET-mixed"].times.percentile(0) == operations["GET-mixed"].times.percentile(50) == 50_000
    assert (operations["GET-mixed"].times.count, operations["GET-mixed"].errors) == (10, {"Refused": 1})
    assert operations["GET-quick"].times.max == 0
    assert capsys.readouterr().out == "GET-mixed: 90 successes have no time and are left out\n"


@pytest.mark.slow
def test_the_first_63_names_have_operations_and_the_others_one_together(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    operations = counted(results, [["GET", f"/{n % 70}", 5.0, 10, None, 200] for n in range(140)])
    rest = operations.pop("other")
    assert {one.times.count for one in operations.values()} == {2}
    assert (len(operations), rest.times.count) == (63, 14)
    assert "14 requests with names after the first 63 are counted together as other" in capsys.readouterr().out


@pytest.mark.slow
def test_requests_that_end_while_the_recorder_is_created_are_in_the_same_one(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Locust's users are greenlets: another one runs when the recorder starts its thread."""
    events, created, again = Events(), Recorder.of_this_phase, threading.Event()
    others: list[threading.Thread] = []

    def creates(tool: str) -> Any:
        if others:
            again.set()
        else:
            others.append(threading.Thread(target=send, args=(events, REQUESTS[:1])))
            others[0].start()
            again.wait(1)
        return created(tool=tool)

    monkeypatch.setattr(Recorder, "of_this_phase", creates)
    locust_events.listen(events)
    send(events, REQUESTS[:1])
    others[0].join()
    events.quitting.fire(environment=None)
    (one,) = operations_in(results, []).values()
    assert one.times.count + sum(one.errors.values()) == 2
    assert list(recordings.lost(results)) == []
