"""Health on a real deployment: well when fresh, and the right check fails for each thing that goes wrong."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from local.launcher import LocalAccount
from tests.e2e.conftest import Deployment, eventually
from tests.e2e.test_one_tick import user_data_that_boots_only
from troop.chaos.flows.health import REMEMBERED

NAME = "Health"
LOST = "health-lost"
CHECKS = (
    *("schedules", "ticks-missing", "ticks-failed", "terminations-failed", "dead-letters", "tables"),
    *(
        "units-unrecovered",
        "units-broken",
        "halted-itself",
        "calendars",
        "alarms",
        "subscribers",
        "stray-items",
        "lambda-concurrency",
    ),
    *("earlier-tables", "time-zones"),
)


@pytest.fixture(scope="module")
def deployment(account: LocalAccount) -> Iterator[Deployment]:
    deployment = Deployment(account, NAME)
    yield deployment
    if LOST in deployment.groups.names():
        deployment.groups.delete(LOST)


def health(deployment: Deployment) -> dict[str, Any]:
    """The present health, not the answer of the last seconds again."""
    time.sleep(REMEMBERED.total_seconds())
    answer = deployment.view.api.get("health")
    assert answer.status == 200, answer
    body: dict[str, Any] = answer.body
    return body


def failing(deployment: Deployment) -> dict[str, str]:
    """Detail of the checks that fail, by name."""
    return {c["name"]: c["detail"] for c in health(deployment)["checks"] if c["status"] == "fail"}


def queue_url(deployment: Deployment) -> str:
    """Of the queue of what the schedules could not deliver."""
    urls = deployment.account.client("sqs").list_queues(QueueNamePrefix=f"{NAME}-Schedules")["QueueUrls"]
    (url,) = urls
    return str(url)


def test_a_fresh_deployment_is_well(deployment: Deployment) -> None:
    body = health(deployment)
    assert {c["name"]: c["status"] for c in body["checks"] if c["status"] != "ok"} == {"subscribers": "warn"}, body
    assert tuple(c["name"] for c in body["checks"]) == CHECKS
    values = {c["name"]: c["value"] for c in body["checks"]}
    assert values.pop("lambda-concurrency") >= 26
    assert values == dict.fromkeys(values, 0) | {
        "schedules": 5,
        "tables": 5,
        "calendars": 1,
    }


def test_the_watchdogs_own_schedule_makes_it_write_metrics_at_once(deployment: Deployment) -> None:
    line = eventually(lambda: next(iter(deployment.watchdog_lines()), None), 30)
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert (directive["Namespace"], directive["Dimensions"]) == ("Troop", [["deployment"]])
    assert line["deployment"] == NAME
    assert line["FailingChecks"] == [0]


def test_a_disabled_schedule(deployment: Deployment) -> None:
    deployment.change_schedule("Calendar", State="DISABLED")
    ((check, detail),) = failing(deployment).items()
    assert check == "schedules"
    assert "Calendar" in detail
    deployment.change_schedule("Calendar", State="ENABLED")
    assert failing(deployment) == {}


def test_a_dead_letter(deployment: Deployment) -> None:
    sqs = deployment.account.client("sqs")
    sqs.send_message(QueueUrl=queue_url(deployment), MessageBody=json.dumps({"calendar": "default"}))
    assert failing(deployment) == {"dead-letters": "1 could not be delivered"}
    sqs.purge_queue(QueueUrl=queue_url(deployment))
    assert failing(deployment) == {}


def test_a_unit_that_did_not_recover(deployment: Deployment, tmp_path: Path) -> None:
    """A group whose only instance never boots, and an event of it whose time is up: the next tick gives it up."""
    long_ago = datetime.now(UTC) - timedelta(hours=2)
    deployment.groups.create(LOST, 1, user_data_that_boots_only(0, tmp_path))
    deployment.put_event(LOST, long_ago, desired=1, terminated_at=long_ago)
    assert deployment.tick()["status"] == "SUCCEEDED"
    assert failing(deployment) == {"units-unrecovered": f"out of chaos: {LOST}"}


def test_a_failed_tick(deployment: Deployment) -> None:
    started = deployment.states.start_execution(
        stateMachineArn=deployment.outputs["ChaosStateMachineArn"], input=json.dumps({"calendar": "nobody's"})
    )
    assert deployment.ended(started["executionArn"])["status"] == "FAILED"
    assert "none has succeeded since" in failing(deployment)["ticks-failed"]
    assert deployment.tick()["status"] == "SUCCEEDED"
    grades = {c["name"]: c["status"] for c in health(deployment)["checks"]}
    assert grades["ticks-failed"] == "warn"
