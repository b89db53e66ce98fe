"""The agent's upload of running summaries."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from agent import live as lives
from agent.barrier import Release
from agent.keys import Keys
from agent.live import LiveUpload, OwnObject
from agent.phase import perform
from agent.place import Place
from agent.sampler import Series
from tests.unit.agent.fake_account import REGION, FakeAccount
from tests.unit.agent.test_phase import PHASE, place  # noqa: F401 - a fixture
from troop.bench.definition import names
from troop.measure.live import INTERVAL_SECONDS, MOST_BYTES, Live, LiveOperation, Recent, parse
from troop.measure.live_writer import document_of
from troop.measure.s3.addresses import address_of
from troop.measure.s3.credentials import CredentialStore

NOW = 1_000_000
BLANK = Live("i-1", "drivers", PHASE, 0, 0, NOW - 60.0, 600.0)


def upload(results: Path, put: Any = None, **options: Any) -> LiveUpload:
    return LiveUpload(
        BLANK, results, lambda seconds: (10 * seconds, 2 * seconds), put, **{"clock": lambda: NOW + 0.5, **options}
    )


def left(results: Path, name: str, until: int, seconds: int = 15, **operations: LiveOperation) -> None:
    (results / f"live-{name}.json").write_text(json.dumps(document_of(until, Recent(seconds, operations))))


def test_live_summary_adds_the_files_of_all_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left(tmp_path, "1-0", NOW - 5, 4, read=LiveOperation(10, 1, {3: 10}))
    left(tmp_path, "2-0", NOW - 3, 6, read=LiveOperation(5, 0, {3: 2, 7: 3}), write=LiveOperation(1))
    left(tmp_path, "3-0", NOW - 2 * INTERVAL_SECONDS, read=LiveOperation(1000))  # of a process that ended
    (tmp_path / "live-4-0.json").write_text("{")
    (tmp_path / "live-5-0.json").write_text("[]")
    (tmp_path / "live-6-0.json").write_bytes(b" " * (MOST_BYTES + 1))
    (tmp_path / "live-7-0.json").write_text(json.dumps({**document_of(NOW, Recent(0, {})), "operations": 7}))
    summary = upload(tmp_path).summary()
    assert summary.operations == {"read": LiveOperation(15, 1, {3: 12, 7: 3}), "write": LiveOperation(1)}
    assert (summary.until, summary.seconds, summary.cpu, summary.iowait) == (NOW - 3, 6, 150, 30)
    assert parse(json.loads(json.dumps(summary.document()))) == summary
    output = capsys.readouterr()
    assert all(f"live-{n}-0.json cannot be read" in output.out + output.err for n in (4, 5, 7))


def test_measured_values_of_an_ended_process_stay(tmp_path: Path) -> None:
    left(tmp_path, "1-0", NOW - 5, read=LiveOperation(10, 1, {3: 10}, {3: 100, 4: 1}, 2))
    left(tmp_path, "2-0", NOW - 10 * INTERVAL_SECONDS, read=LiveOperation(7, 7, {9: 7}, {4: 50}, 3))
    summary = upload(tmp_path).summary()
    assert summary.operations == {"read": LiveOperation(10, 1, {3: 10}, {3: 100, 4: 51}, 5)}
    assert parse(json.loads(json.dumps(summary.document()))) == summary


def test_a_node_without_operations_tells_its_use_of_processors(tmp_path: Path) -> None:
    summary = upload(tmp_path / "nothing").summary()
    assert (summary.until, summary.seconds, summary.cpu, summary.operations) == (NOW, 0, 150, {})


def working(thousandths: int | None) -> Any:
    return thousandths and {"cpu_user": thousandths, "cpu_system": 10, "cpu_iowait": 500, "cpu_steal": 5}


@pytest.mark.parametrize(
    ("values", "interval", "expected"),
    [
        ([], 1, None),
        ([working(100)] * 5 + [working(300)] * 15, 1, 315),
        ([working(None), working(300)], 1, 315),
        ([working(100), working(300)], 60, 315),
        ([{"cpu_user": 100, "cpu_system": None, "cpu_steal": 0}], 1, None),
        ([working(1000)], 1, 1000),
    ],
)
def test_the_use_of_processors_is_the_mean_of_the_last_samples(
    values: list[Any], interval: int, expected: int | None
) -> None:
    series = Series(interval)
    series._nodes.values = values
    assert series.cpu(15) == (expected, 500 if any(one and "cpu_iowait" in one for one in values) else None)


def test_a_measured_phase_uploads_while_its_script_runs(
    place: Place,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lives, "PAUSE_SECONDS", 0.1)
    monkeypatch.setattr(lives, "WAIT_SECONDS", 0.0)
    monkeypatch.setattr(lives, "SPREAD_SECONDS", 0.0)
    script = place.files / "run.sh"
    script.write_text("#!/bin/sh\nfor _ in $(seq 2400); do [ -e uploaded ] && exit 0; sleep 0.05; done; exit 1\n")
    script.chmod(0o755)
    bodies: list[bytes] = []

    def put(body: bytes) -> None:
        bodies.append(body)
        if len(bodies) == 1:
            raise OSError("S3 answered 503")
        (place.phase(PHASE) / "uploaded").touch()

    release = Release("run.sh", 300, 60, 5, time.time())
    done = perform(place, PHASE, 0, release, None, put)
    assert (done.summary.outcome, len(bodies) > 1) == ("ok", True)
    one = parse(json.loads(bodies[-1]))
    assert (one.node, one.role, one.phase, one.measured_seconds) == ("i-1", "drivers", PHASE, 5)
    assert release.start_at is not None
    assert one.measured_from == pytest.approx(release.start_at + 60, abs=1)


def test_an_unexpected_failure_ends_the_uploads_and_not_the_phase(
    place: Place,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(lives, "PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(lives, "WAIT_SECONDS", 0.0)
    calls: list[bytes] = []

    def put(body: bytes) -> None:
        calls.append(body)
        raise KeyError("a defect")

    one = upload(place.results(PHASE), put, clock=time.time)
    one.start()
    one._thread.join(60)
    output = capsys.readouterr()
    assert "no running summaries in this phase any more: KeyError('a defect')" in output.out + output.err
    assert len(calls) == 1


def test_the_object_has_the_nodes_name_and_a_valid_signature(
    account: FakeAccount,
    place: Place,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", account.metadata_of("i-1"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    boot = place.boot
    key = Keys(boot.run, boot.cell, "AROAROLE").live("i-1")
    assert key == f"{names.live_prefix(boot.run, boot.cell)}AROAROLE:i-1.json"
    stored = OwnObject(boot, address_of(boot.bucket, REGION, account.url), key, CredentialStore)
    stored.put(b"{}")
    stored.put(b'{"a": 1}')
    assert account.document(f"{boot.bucket}/{key}") == {"a": 1}
    assert account.issued == 1
    account.credentials = {"AccessKeyId": "ASIASECOND", "SecretAccessKey": "other", "Token": "t"}
    with pytest.raises(OSError, match="ExpiredToken"):
        stored.put(b"{}")


def test_an_object_is_read_again_after_s3_has_closed_the_connection(
    place: Place,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Closing(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")
            self.close_connection = True

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with ThreadingHTTPServer(("127.0.0.1", 0), Closing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = address_of(place.boot.bucket, REGION, f"http://127.0.0.1:{server.server_port}")
        orders = OwnObject(place.boot, address, "orders.json", CredentialStore)
        assert [orders.get() for _ in range(3)] == [b"{}"] * 3
        server.shutdown()
