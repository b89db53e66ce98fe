"""What an application's answers say about a node, and what counts."""

from __future__ import annotations

import dataclasses
import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import health
from agent.definition import Health, Work
from agent.health import FAIL, MOST_CHECKS, OK, WARN, Check, ask, parse, worst
from agent.health_watch import Condition, HealthWatch, judged
from agent.volume import Volume
from tests.serving import Quiet, running
from troop.work.work_folder import Counts


def document(*statuses: str, **changes: Any) -> bytes:
    checks = [{"name": f"check-{number}", "status": status} for number, status in enumerate(statuses)]
    return json.dumps({"status": "ok", "checks": checks, **changes}).encode()


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (200, document(OK, WARN), {"check-0": OK, "check-1": WARN}),
        (200, document(OK, FAIL), {"check-0": OK, "check-1": FAIL}),
        (503, document(FAIL), {"check-0": FAIL}),
        (503, document(OK), {"check-0": OK, "answer": FAIL}),
        (503, b"<html>", {"answer": FAIL}),
        (200, b"<html>", {"answer": OK}),
        (200, b'{"checks": [{"name": "a", "status": "bad"}]}', {"answer": OK}),
        (200, b"[" * 100_000, {"answer": OK}),
        (302, document(OK), {"answer": FAIL}),
        (404, b"", {"answer": FAIL}),
    ],
)
def test_answers_are_judged_by_the_contract(status: int, body: bytes, expected: dict[str, str]) -> None:
    assert {check.name: check.status for check in parse(status, body).checks} == expected


def test_an_answer_is_cut_to_what_reports_hold() -> None:
    check = {"name": "n" * 100, "status": "fail", "value": float("nan"), "threshold": 10**400, "detail": "d" * 900}
    body = json.dumps({"checks": [{"name": "a", "status": "ok"}] * 30 + [check], "work": float("inf")}).encode()
    answered = parse(200, body)
    assert len(answered.checks) == MOST_CHECKS
    assert answered.checks[0] == Check("n" * 64, FAIL, None, None, "d" * 200, "", True), "the worst come first"
    assert answered.work is None


@given(st.binary(max_size=200), st.sampled_from([200, 503, 500]))
def test_any_answer_is_judged(body: bytes, status: int) -> None:
    assert worst(parse(status, body).checks) in (OK, WARN, FAIL)


@given(st.recursive(st.none() | st.floats() | st.text(max_size=5) | st.booleans(), lambda v: st.lists(v, max_size=4)))
def test_checks_of_any_shape_are_judged(value: Any) -> None:
    one = {"name": "a", "status": "ok", "value": value, "detail": value, "todo": value, "actionable": value}
    checks = parse(200, json.dumps({"checks": [one], "work": value}).encode()).checks
    json.dumps([check.document() for check in checks], allow_nan=False)


# ------------------------------------------------------------------ requests


class Application(Quiet):
    """Answers as its class says."""

    status, body, drips = 200, document(OK, work=7), False

    def do_GET(self) -> None:
        if self.drips:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while True:
                self.wfile.write(b"X-Slow: 1\r\n")
                time.sleep(0.05)
        self.answer(self.status, self.body)


@pytest.fixture
def application() -> Iterator[tuple[type[Application], Health]]:
    class Own(Application):
        pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Own)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    with running(server):
        yield Own, Health(server.server_address[1], "/health", 10, 30, 120)


def test_an_application_answers_over_http(application: tuple[type[Application], Health]) -> None:
    answered = ask("127.0.0.1", application[1], and_loopback=False)
    assert (worst(answered.checks), answered.work) == (OK, 7)


def test_an_answer_of_any_length_is_one(application: tuple[type[Application], Health]) -> None:
    application[0].body = b"x" * (1 << 20)
    assert worst(ask("127.0.0.1", application[1], and_loopback=False).checks) == OK


def test_an_answer_that_never_ends_fails(application: tuple[type[Application], Health]) -> None:
    """Each of its parts comes in time."""
    application[0].drips = True
    (check,) = ask("127.0.0.1", Health(application[1].port, "/", 10, 1, 0), and_loopback=False).checks
    assert (check.name, check.status, check.actionable) == ("answer", FAIL, True)


@pytest.mark.parametrize(("and_loopback", "status"), [(True, OK), (False, FAIL)])
def test_on_ec2_an_application_may_listen_on_the_loopback(
    application: tuple[type[Application], Health], and_loopback: bool, status: str
) -> None:
    """On local AWS, other nodes have the same one."""
    assert worst(ask("127.0.0.77", application[1], and_loopback=and_loopback).checks) == status


def test_a_port_that_nobody_listens_on_fails() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    (check,) = ask("127.0.0.1", Health(port, "/", 10, 2, 0), and_loopback=False).checks
    assert check.detail == f"nothing listens on port {port}"


# ------------------------------------------------------------------ what counts


def test_failures_in_a_row_count_and_a_good_answer_ends_them() -> None:
    bad, good = [Check("answer", FAIL, detail="no answer")], [Check("answer", OK)]
    condition = Condition()
    for number in (1, 2, 3):
        condition = judged(condition, bad, 100.0 + number, is_in_grace=False)
        assert (condition.failures, condition.failing_since, condition.status) == (number, 101.0, FAIL)
    assert condition.detail == "answer: no answer"
    assert judged(condition, [Check("a", WARN)], 110, is_in_grace=False).failures == 0
    assert judged(condition, good, 110, is_in_grace=False) == Condition(checks=tuple(good))


def test_failures_during_the_grace_do_not_count() -> None:
    condition = judged(Condition(), [Check("answer", FAIL, detail="starts")], 1.0, is_in_grace=True)
    assert (condition.status, condition.failures, condition.checks) == (OK, 0, ())
    assert condition.detail == "not ready yet: answer: starts"


def volume(*seconds: tuple[float, bool]) -> Check | None:
    """Of a node whose counter has risen by so much after each 10 s, and which was idle or not."""
    watched, counter, check = Volume(Work(5, 60)), 100.0, None
    for number, (rise, is_idle) in enumerate([(0, False), *seconds]):
        counter += rise
        check = watched.observe(10.0 * number, counter, is_idle=is_idle)
    return check


@pytest.mark.parametrize(
    ("seconds", "status"),
    [
        ([(0, False)] * 5, None),
        ([(0, False)] * 6, FAIL),
        ([(1, False)] * 6, OK),
        ([(0, True)] * 60, None),
        ([(0, True)] * 60 + [(0, False)] * 5, None),
        ([(0, False)] * 6 + [(5, False)], OK),
        ([(0, False)] * 6 + [(0, True)], None),
        ([(1, False)] * 6 + [(0, False)] * 6, FAIL),
    ],
)
def test_a_node_must_do_its_work_in_the_time_with_work(seconds: list[tuple[float, bool]], status: str | None) -> None:
    check = volume(*seconds)
    assert (check and check.status) == status


def test_a_counter_that_begins_again_counts_what_it_has() -> None:
    assert volume(*[(0, False)] * 5, (-97, False)) == Check(
        *("work", FAIL, 3, 5, "did 3 of at least 5 in 60 s with work to do"),
        *("Read the application's log on this node: it may hang.", True),
    )


def test_a_watch_tells_changes_and_a_restart_begins_a_new_grace(
    application: tuple[type[Application], Health], monkeypatch: pytest.MonkeyPatch
) -> None:
    now, changes = [1000.0], list[float]()
    watch = HealthWatch(
        *("127.0.0.1", application[1], None, Counts, lambda: False, lambda: changes.append(now[0]), lambda: now[0])
    )
    watch.begin_grace()
    application[0].status = 500
    watch.poll()
    assert (watch.condition.status, changes) == (OK, [])
    now[0] += 121
    watch.poll()
    assert (watch.condition.status, watch.condition.failures, changes) == (FAIL, 1, [1121.0])
    watch.begin_grace()
    watch.poll()
    assert watch.condition.failures == 0


def test_a_watch_tells_when_failures_are_enough_for_a_repair(application: tuple[type[Application], Health]) -> None:
    changes = list[int]()
    one = dataclasses.replace(application[1], grace=0)
    watch: HealthWatch = HealthWatch(
        *("127.0.0.1", one, None, Counts, lambda: False, lambda: changes.append(watch.condition.failures)),
        fail_after=4,
    )
    application[0].status = 500
    for _ in range(6):
        watch.poll()
    assert changes == [1, 4]


def test_an_answer_from_before_a_restart_does_not_count(
    application: tuple[type[Application], Health], monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = HealthWatch("127.0.0.1", application[1], None, Counts, lambda: False, lambda: None)
    begun, go_on = threading.Event(), threading.Event()

    def slow(*_: object, **__: object) -> health.Answered:
        begun.set()
        assert go_on.wait(60)
        return health.Answered((Check("answer", FAIL),))

    monkeypatch.setattr(health, "ask", slow)
    thread = threading.Thread(target=watch.poll)
    thread.start()
    assert begun.wait(60)
    watch.begin_grace()
    go_on.set()
    thread.join()
    assert watch.condition == Condition()


def test_no_worker_at_all_is_no_idle_node(tmp_path: Path) -> None:
    watch = HealthWatch("127.0.0.1", None, Work(1, 60), lambda: None, lambda: False, lambda: None)
    assert watch._volume is not None
    watch._volume.observe(time.monotonic() - 61, 0, is_idle=False)
    watch.poll()
    assert watch.condition.status == FAIL
