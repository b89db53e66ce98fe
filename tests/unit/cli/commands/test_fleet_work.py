"""`troop fleet submit`, `results`, `jobs` and `extend`, and what `status` says about health, work and repairs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.app import app
from cli.bench import results_folder
from cli.client.api import Answer
from cli.shared.errors import Exit
from tests.unit.cli.commands.test_fleet import ID, ONE, fleet_document, out
from tests.unit.cli.conftest import FakeApi, Run
from tests.unit.cli.living import HEALTH, REPAIRS, WITHHELD, WORK

TASKS, RESULTS = f"{ONE}/tasks", f"{ONE}/results"


def living(**more: Any) -> dict[str, Any]:
    """What GET says about a fleet that is watched, and has a queue."""
    view = fleet_document(15, 15, 15) | {"health": HEALTH, "work": WORK, "repairs": REPAIRS, "withheld": WITHHELD}
    view["fleet"] |= {"repaired": 3}
    return view | {"cost_so_far": {"amount": 2.53, "currency": "USD", "unknown": []}} | more


def test_status_says_what_fails_and_what_to_do(run: Run, api: FakeApi) -> None:
    api.refusals["GET", ONE] = [Answer(200, living())]
    result = run("fleet", "status", ID)
    assert result.exit_code == 0, result.output
    lines = [line.rstrip() for line in result.stdout.splitlines() if line.strip()]
    assert lines[3:] == [
        "tasks: 10,000 submitted, 8,120 done, 1,800 waiting, 78 in work, 2 dead",
        "the oldest waits for 3 min 5 s, 4,210 done an hour, $0.000312 for each task done so far",
        "workers do not grow: its work needs 90 nodes, but limits allow 80",
        "workers: 8 ok, 1 warn, 5 fail, 1 silent, 2 draining",
        "      role     check    nodes                  is    should be  detail",
        "fail  workers  latency  i-1, i-2, i-3, 2 more  252   200        p99 is above the limit",
        "warn  workers  disk     i-0abc                 81.0  80.0       81 % full",
        "  workers, latency: act now, look at the log of the server",
        "  workers, disk: delete old files",
        "3 repairs in the last hour",
        "repaired                 role     node  repair              because",
        "2026-11-20 15:20:00 UTC  workers  i-1   restart (number 2)  latency failed 3 times",
    ]


def test_status_of_a_fleet_without_reports_and_queue_is_short(run: Run, api: FakeApi) -> None:
    api.refusals["GET", ONE] = [Answer(200, fleet_document(2, 2, 2))]
    older = run("fleet", "status", ID).stdout
    view = fleet_document(2, 2, 2) | {"health": [], "work": None, "repairs": [], "withheld": []}
    api.refusals["GET", ONE] = [Answer(200, view)]
    assert run("fleet", "status", ID).stdout == older


def test_jobs_shows_the_work_and_how_dead_letters_return(run: Run, api: FakeApi, ok: Callable[..., Any]) -> None:
    api.refusals["GET", ONE] = [Answer(200, living())]
    text = run("fleet", "jobs", ID).stdout
    assert "as of 2026-11-20 15:30:00 UTC; SQS counts approximately" in text
    assert "workers do not grow: " in text
    assert text.splitlines()[-1] == (
        "  aws sqs start-message-move-task --region eu-central-1 --source-arn "
        f"arn:aws:sqs:eu-central-1:111122223333:troop-{ID}-c001-dead"
    )
    assert ok("fleet", "jobs", ID) == {"fleet": ID, "work": WORK}
    api.refusals["GET", ONE] = [Answer(200, living(work={**WORK, "dead": 0, "oldest_seconds": None}))]
    text = run("fleet", "jobs", ID).stdout
    assert "SQS may have deleted" not in text
    assert "dead letters" not in text
    assert "start-message-move-task" not in text
    assert "oldest" not in text


def test_jobs_says_when_tasks_may_have_expired(run: Run, api: FakeApi) -> None:
    work = {**WORK, "may_lack_tasks": True, "done_an_hour": None, "cost_per_job": None}
    api.refusals["GET", ONE] = [Answer(200, living(work=work))]
    text = run("fleet", "jobs", ID).stdout
    assert "SQS may have deleted tasks" in text
    assert "an hour" not in text


def test_jobs_of_a_fleet_without_a_queue_is_refused(run: Run, api: FakeApi) -> None:
    api.refusals["GET", ONE] = [Answer(200, living(work=None))]
    result = run("fleet", "jobs", ID)
    assert result.exit_code == Exit.REFUSED
    assert "`queue: true` in its file makes one" in result.stderr
    assert "`troop:queues` is false" in result.stderr


def test_extend_sends_a_moment_so_that_a_retry_extends_once(run: Run, api: FakeApi, ok: Callable[..., Any]) -> None:
    api.refusals["GET", ONE] = [Answer(200, fleet_document(2, 2, 2))]
    later = out(expires_at="2026-11-21T23:00:00.000Z")
    api.refusals["PATCH", ONE] = [Answer(503, None), Answer(200, later)]
    result = run("fleet", "extend", ID, "--for", "24h")
    assert result.stdout == f"{ID} stays until 2026-11-21 23:00:00 UTC; before: 2026-11-20 23:00:00 UTC\n"
    assert api.calls[1:] == [("PATCH", ONE, {"expires_at": "2026-11-21T23:00:00.000Z"})] * 2
    assert ok("fleet", "extend", ID, "--for", "24h") == later
    result = run("fleet", "extend", ID, "--for", "tomorrow")
    assert (result.exit_code, "must be a time such as 45m or 24h" in result.stderr) == (Exit.USAGE, True)


def answers(*refused: list[dict[str, str]], submitted: int = 0) -> list[Answer]:
    """Returns an answer to each request, of which some tasks are refused."""
    return [Answer(200, {"sent": 2, "refused": list(one), "submitted": submitted}) for one in refused]


def test_submit_sends_all_lines_in_requests_of_a_thousand(
    run: Run, api: FakeApi, ok: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "tasks.txt"
    file.write_text("\n".join(f"object-{n}" for n in range(2500)))
    api.refusals["POST", TASKS] = [
        Answer(200, {"sent": count, "refused": [], "submitted": total})
        for count, total in ((1000, 1000), (1000, 2000), (500, 2500))
    ]
    assert ok("fleet", "submit", ID, str(file), "--key", "b7") == {
        "key": "b7",
        "sent": 2500,
        "refused": [],
        "submitted": 2500,
    }
    bodies = [body for _, _, body in api.calls]
    assert [len(body["tasks"]) for body in bodies] == [1000, 1000, 500]
    assert bodies[1]["tasks"][0] == {"id": "b7-001001", "body": "object-1000"}
    assert {body["key"] for body in bodies} == {"b7"}
    result = run("fleet", "submit", ID, str(file), "--key", "b7")
    assert result.stdout.splitlines() == [
        "sent 1,500 tasks; 2,500 in all; key b7",
        f"to follow them: troop fleet jobs {ID}",
    ]


def test_submit_names_each_refusal_and_fails(run: Run, api: FakeApi) -> None:
    problem = {"id": "x", "problem": "SQS is busy: InternalError"}
    api.refusals["POST", TASKS] = [Answer(200, {"sent": 1, "refused": [problem], "submitted": 7})]
    lines = 'one\n{"id": "a/b", "body": ""}\n{"id": "x", "body": "three"}\n'
    result = CliRunner().invoke(app, ["fleet", "submit", ID, "-", "--key", "k"], input=lines)
    assert result.exit_code == Exit.REFUSED
    assert "refused: line 2: the id 'a/b' is not allowed" in result.stderr
    assert "refused: line 3 (x): SQS is busy: InternalError" in result.stderr
    assert "sent 1 task, 2 refused; 7 in all; key k" in result.stdout


@pytest.mark.usefixtures("run")
def test_submit_without_tasks_sends_nothing(api: FakeApi) -> None:
    result = CliRunner().invoke(app, ["fleet", "submit", ID, "-"], input="\n\n")
    assert (result.exit_code, api.calls) == (0, [])
    assert result.stdout.startswith("sent 0 tasks; key ")


def test_a_failed_request_tells_how_to_repeat(run: Run, api: FakeApi, tmp_path: Path) -> None:
    file = tmp_path / "tasks.txt"
    file.write_text("x\n" * 1500)
    api.refusals["POST", TASKS] = [
        Answer(200, {"sent": 1000, "refused": [], "submitted": 1000}),
        Answer(409, {"statusCode": 409, "message": "the fleet is being removed"}),
    ]
    result = run("fleet", "submit", ID, str(file), "--key", "k7")
    assert result.exit_code == Exit.REFUSED
    assert "the fleet is being removed; 1,000 tasks sent before" in result.stderr
    assert f"troop fleet submit {ID} {file} --key k7" in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nowhere.txt",), "nowhere.txt cannot be read: No such file"),
        ((".",), "cannot be read"),
        (("-", "--key", "a/b"), "--key: use at most 100 letters"),
        (("-", "--key", " "), "--key is empty"),
    ],
)
def test_submit_refuses_wrong_words_before_any_request(
    run: Run, api: FakeApi, words: tuple[str, ...], message: str
) -> None:
    result = run("fleet", "submit", ID, *words)
    assert (result.exit_code, message in result.stderr, api.calls) == (Exit.USAGE, True, []), result.stderr


def page(*ids: str, cursor: str | None = None) -> Answer:
    listed = [
        {"id": id, "size": len(id), "at": "2026-11-20T15:30:00.000Z", "url": f"https://s3/{id}?X-Amz-Signature=secret"}
        for id in ids
    ]
    return Answer(200, {"results": listed, "cursor": cursor})


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """S3, whose objects contain their keys; a test adds the keys that fail."""
    failing: set[str] = set()

    def fetch(address: str, file: Any) -> int:
        key = address.partition("?")[0].rpartition("/")[2]
        if key in failing:
            raise results_folder.DownloadError("S3 refused it (403): try again")
        return int(file.write(key.encode()))

    monkeypatch.setattr("cli.commands.fleet_work.s3_fetch", lambda example: fetch)
    return failing


def test_results_are_listed_without_their_addresses(run: Run, api: FakeApi, ok: Callable[..., Any]) -> None:
    api.refusals["GET", RESULTS] = [page("k-1", "k-2", cursor="c"), page("k-3")] * 2
    result = run("fleet", "results", ID, "--limit", "2")
    assert result.stdout.splitlines()[1] == "k-1   3      2026-11-20 15:30:00 UTC"
    assert "more than 2 results" in result.stderr
    document = ok("fleet", "results", ID)
    assert [one["id"] for one in document["results"]] == ["k-1", "k-2", "k-3"]
    assert document["more"] is False
    assert "secret" not in result.output + json.dumps(document)
    assert ("GET", RESULTS, {"cursor": "c"}) in api.calls
    api.refusals["GET", RESULTS] = [page()]
    assert "there are no results yet" in run("fleet", "results", ID).stderr


def test_results_are_downloaded_page_by_page(run: Run, api: FakeApi, bucket: set[str], tmp_path: Path) -> None:
    api.refusals["GET", RESULTS] = [page("k-1", "k-2", cursor="c"), page(cursor="d"), page("k-3")]
    result = run("fleet", "results", ID, "-o", str(tmp_path / "r"))
    assert result.exit_code == 0, result.output
    assert f"3 results in {tmp_path / 'r'}" in result.stdout
    assert sorted(path.name for path in (tmp_path / "r").iterdir()) == ["k-1", "k-2", "k-3"]
    assert not bucket


def test_a_result_that_is_not_downloaded_fails_the_command(
    run: Run, api: FakeApi, bucket: set[str], tmp_path: Path
) -> None:
    bucket.add("k-2")
    api.refusals["GET", RESULTS] = [page("k-1", "k-2", "..")]
    result = run("fleet", "results", ID, "-o", str(tmp_path))
    assert result.exit_code == Exit.FAILED
    assert "not downloaded: k-2: S3 refused it (403): try again" in result.stderr
    assert "not downloaded: ..: its id cannot be the name of a file" in result.stderr
    assert "1 result in" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["k-1"]
