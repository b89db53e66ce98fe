"""Whole runs on local AWS: one account for a worker, and deployments in it that each test module shares."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from local.demo.benchmark import put_data
from local.demo.deployment_view import RUNNING, DeploymentView
from local.demo.groups import Groups
from local.launcher import LocalAccount
from local.project import ROOT, tool_environment
from local.settings import open_settings, salt_for
from tests.e2e.assemblies import assembly, deploy
from tests.patience import PATIENCE
from troop.chaos.aws.event_items import to_item
from troop.chaos.events import Event, Status

HERE = Path(__file__).parent
STARTED = datetime.fromisoformat(os.environ["TROOP_TESTS_STARTED"])
"""The moment that deployments and secrets are for, the same on all workers. Windows stay open for two hours from it."""
NEVER = "cron(0 0 1 1 ? 2099)"

DUE = {
    "terminations": ("leashed-web", "tick-alarmed", "tick-calm", "tick-drained", "tick-lost", "tick-small",
                     "tick-protected", "tick-later", "tick-broken"),
    "interfaces": ("cli-web", "cli/ledger", "contract-web", "contract-db"),
    "fleets": ("ui-web", "ui/ledger"),
}  # fmt: skip
"""Worker -> the units whose rolls are due at any tick, for as long as the tests take."""


WORKERS = {
    "test_one_tick.py": "terminations",
    "test_leashed.py": "terminations",
    "test_health.py": "terminations",
    "test_inside.py": "terminations",
    "test_bench_aborts.py": "fleets",
    "test_bench_cuts.py": "fleets",
    "test_bench_faults.py": "fleets",
    "test_bench_leftovers.py": "fleets",
    "test_bench_matrix.py": "fleets",
    "test_bench_scale.py": "fleets",
    "test_bench_schedule.py": "fleets",
    "test_bench_spot.py": "fleets",
    "test_bench_units.py": "terminations",
    "test_everywhere.py": "fleets",
    "test_bench_reach.py": "terminations",
    "test_bench_smoke.py": "terminations",
    "test_fleet.py": "fleets",
    "test_guides.py": "terminations",
    "test_loss.py": "terminations",
    "test_ui.py": "fleets",
    "test_web_scale.py": "terminations",
    "test_workers.py": "terminations",
}
"""Module -> the worker of pytest-xdist it runs on, with an account of that worker's; any other goes to ``interfaces``.
A new group of modules costs another account, and saves its waiting."""


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group(WORKERS.get(item.path.name, "interfaces")))
            item.add_marker(pytest.mark.e2e)


KEY = "arn:aws:kms:us-east-1:000000000000:key/01234567-89ab-cdef-0123-456789abcdef"
"""Local AWS encrypts nothing, so no such key exists."""

DEPLOYMENTS: Mapping[str, Mapping[str, Any]] = {
    "Commanded": {"leashed": True},
    "Contract": {"benchmarks": True},
    "Disposable": {"leashed": True, "benchmarks": True, "retain_data": False},
    "Durable": {"leashed": True, "benchmarks": True, "retain_data": True},
    "Fleets": {"benchmarks": True, "queues": True},
    "Health": {},
    "Inside": {"inside_instances": True},
    "Leashed": {"leashed": True},
    "OneTick": {"max_in_flight": 5, "key": KEY, "tags": {"CostCenter": "1234"}, "weekly_letter": True},
    "Smoke": {"benchmarks": True, "own_data": True, "queues": True, "allowed_targets": ["127.0.0.1:1-65535"]},
    "Units": {"benchmarks": True, "under_load": True, "allowed_targets": ["127.0.0.1:1-65535"]},
}
"""Deployment -> its settings, besides those of :func:`_context`. They are synthesised together."""

APART: Mapping[str, Mapping[str, Any]] = {"Ring": {"benchmarks": True}}
"""The same for deployments that are not part of ``make test``."""


def _context(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    # Nothing here looks at a dashboard, and the demo deploys them.
    few = {"troop:benchmarks": False, "troop:dashboards": False}
    context = open_settings(STARTED) | few | {"troop:deployment": name}
    return context | {f"troop:{key}": value for key, value in settings.items()}


class Deployment:
    """A deployment in the local account, its groups, and ticks at will. ``name``: a key of :data:`DEPLOYMENTS`."""

    def __init__(self, account: LocalAccount, name: str) -> None:
        together = DEPLOYMENTS if name in DEPLOYMENTS else APART
        contexts = {name: _context(name, settings) for name, settings in together.items()}
        self.account = account
        self.name = name
        self.outputs = deploy(account, assembly(contexts), name)
        self.view = DeploymentView(account, self.outputs)
        self.groups = Groups(account.client("autoscaling"), account.client("ec2"))
        self.states = account.client("stepfunctions")
        self.dynamodb = account.client("dynamodb")
        self.scheduler = account.client("scheduler")
        # Ticks come only when a test starts them: every deployment of the account acts on all groups in it, so one
        # of the schedule's own would be seen in any other test. The schedule's ticks are the demo's to show. Nor does a
        # sweep come by itself, and end what a test has left open on purpose.
        self.change_schedule("Calendar", ScheduleExpression=NEVER)
        self.change_schedule("SweepSchedule", ScheduleExpression=NEVER)
        self.change_schedule("RedriveSchedule", ScheduleExpression=NEVER)
        self.change_schedule("RisksSchedule", ScheduleExpression=NEVER)
        if contexts[name]["troop:benchmarks"]:
            self.change_schedule("ReaperSchedule", ScheduleExpression=NEVER)

    def group(self, name: str, size: int = 2, **more: Any) -> str:
        """A group whose instances all answer. ``more``: as for Groups.create."""
        self.groups.create(name, size, **more)
        self.groups.await_in_service(name, size, BUSY)
        return name

    def ids(self, name: str) -> set[str]:
        return {member.instance_id for member in self.groups.members(name)}

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs ``troop`` with these words, as people do."""
        return subprocess.run(
            [str(ROOT / "scripts" / "troop"), "--deployment", self.name, *words],
            env={**tool_environment(), **self.account.exports},
            capture_output=True,
            text=True,
            timeout=2 * BUSY,
            check=False,
        )

    def put_event(self, unit: str, at: datetime, status: Status = Status.TERMINATED, **changes: Any) -> None:
        """Writes an event of an instance that is gone, as an execution that is gone too leaves it."""
        fields = {
            "event_id": f"{at.date()}#{unit}",
            "group": unit,
            "instance_id": "i-0123456789abcdef0",
            "zone": "us-east-1a",
            "method": "crash",
            "rolled": 0.5,
            "probability": 1.0,
            "desired": 2,
            "execution": "arn:of:an:execution:long:gone",
            **changes,
        }
        event = Event(unit=unit, day=at.date(), status=status, at=at, **fields)
        self.dynamodb.put_item(TableName=self.outputs["EventsTable"], Item=to_item(event))

    def tick(self) -> dict[str, Any]:
        """Runs the workflow once, to its end: DescribeExecution's answer."""
        arn = self.start_tick()
        return self.ended(arn)

    def start_tick(self) -> str:
        started = self.states.start_execution(
            stateMachineArn=self.outputs["ChaosStateMachineArn"], input=json.dumps({"calendar": "default"})
        )
        return str(started["executionArn"])

    def ended(self, arn: str) -> dict[str, Any]:
        def probe() -> dict[str, Any] | None:
            seen: dict[str, Any] = self.states.describe_execution(executionArn=arn)
            return None if seen["status"] == RUNNING else seen

        execution: dict[str, Any] = eventually(probe, BUSY)
        return execution

    def event(self, unit: str) -> dict[str, Any] | None:
        """The unit's latest event, as the API tells it."""
        answer = self.view.api.get("events", {"unit": unit})
        assert answer.status == 200, answer
        return answer.body["events"][0] if answer.body["events"] else None

    def switch(self, **values: bool) -> None:
        item = {"key": {"S": "switch"}} | {key: {"BOOL": value} for key, value in values.items()}
        self.dynamodb.put_item(TableName=self.outputs["StateTable"], Item=item)

    def schedules(self) -> list[dict[str, Any]]:
        """All schedules of the deployment, as ListSchedules tells of them."""
        return [
            schedule
            for group in self.scheduler.list_schedule_groups()["ScheduleGroups"]
            if group["Name"].startswith(self.name)
            for schedule in self.scheduler.list_schedules(GroupName=group["Name"])["Schedules"]
        ]

    def change_schedule(self, part: str, **changes: str) -> None:
        """Changes the schedule whose name contains ``part``."""
        (which,) = [{"GroupName": s["GroupName"], "Name": s["Name"]} for s in self.schedules() if part in s["Name"]]
        schedule = self.scheduler.get_schedule(**which)
        keys = ("ScheduleExpression", "ScheduleExpressionTimezone", "FlexibleTimeWindow", "Target")
        self.scheduler.update_schedule(**which, **({key: schedule[key] for key in keys if key in schedule} | changes))

    def shown(self, widget: str, **parameters: Any) -> str:
        """A widget as a dashboard would get it."""
        answer = self.account.client("lambda").invoke(
            FunctionName=self.outputs["WidgetsFunctionArn"],
            Payload=json.dumps({"widget": widget, "widgetContext": {"theme": "dark"}, **parameters}),
        )
        shown = json.loads(answer["Payload"].read())
        assert isinstance(shown, str), shown
        return shown

    def watch(self) -> None:
        """Lets the watchdog's own schedule call it once, in a moment; back when it has written its metrics."""
        before = len(self.watchdog_lines())
        self._call_once("Watchdog")
        eventually(lambda: len(self.watchdog_lines()) > before or None, BUSY)

    def sweep(self) -> None:
        """Lets the sweep's own schedule call it once, in a moment."""
        self._call_once("SweepSchedule")

    def reap(self) -> None:
        """Lets the reaper's own schedule call it once, in a moment."""
        self._call_once("ReaperSchedule")

    def redrive(self) -> None:
        """Lets the redrive's own schedule call it once, in a moment."""
        self._call_once("RedriveSchedule")

    def read_risks(self) -> dict[str, Any]:
        """Lets the daily schedule of risks call its function once, in a moment; returns what it has logged."""
        before = len(self.log_lines("Risks", '"risks"'))
        self._call_once("RisksSchedule")
        lines = eventually(lambda: self.log_lines("Risks", '"risks"')[before:] or None, BUSY)
        return dict(lines[0])

    def write_letter(self) -> None:
        """Lets the letter's own schedule call its function once, in a moment."""
        self._call_once("LetterSchedule")

    def _call_once(self, part: str) -> None:
        """A moment that is over before the schedule has it would never come: then it is given a later one."""
        for ahead in (2, 4, 8, 16, 32):
            soon = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=ahead)
            expression = f"at({soon:%Y-%m-%dT%H:%M:%S})"
            self.change_schedule(part, ScheduleExpression=expression, ScheduleExpressionTimezone="UTC")
            if datetime.now(UTC) < soon:
                return
        raise AssertionError(f"the schedule {part} takes longer to change than half a minute")

    def watchdog_lines(self) -> list[dict[str, Any]]:
        return self.metric_lines("atchdog")

    def metric_lines(self, function: str) -> list[dict[str, Any]]:
        """The lines of metrics in a function's log. CloudWatch would make metrics of them; local AWS does not."""
        return self.log_lines(function, '"_aws"')

    def log_lines(self, function: str, part: str) -> list[dict[str, Any]]:
        """The lines in a function's log that have ``part`` in them."""
        logs = self.account.client("logs")
        pages = logs.get_paginator("describe_log_groups").paginate()
        groups = [group["logGroupName"] for page in pages for group in page["logGroups"]]
        events = [
            event["message"]
            for group in groups
            if self.name in group and function in group
            for page in logs.get_paginator("filter_log_events").paginate(logGroupName=group)
            for event in page["events"]
        ]
        return [json.loads(message) for message in events if part in message]


BUSY = 2 * PATIENCE
"""Seconds that anything may take where much else is going on: only what never comes should fail a test."""


def eventually(probe: Callable[[], Any], seconds: float, pause: float = 0.5) -> Any:
    """The first answer of ``probe`` that is not None; ``pause`` seconds between two, as each is a call of the
    account. A busy machine may be late."""
    most = max(seconds, BUSY)
    until = time.monotonic() + most
    while (answer := probe()) is None:
        assert time.monotonic() < until, f"not within {most} s"
        time.sleep(pause)
    return answer


@pytest.fixture(scope="session")
def account() -> Iterator[LocalAccount]:
    units = [*DUE["terminations"], *DUE["interfaces"]]
    with LocalAccount("e2e", secret=salt_for(units, STARTED)) as account:
        yield account


@pytest.fixture(scope="session")
def smoke(account: LocalAccount) -> Deployment:
    """The deployment of the modules whose benchmarks run on real processes, with objects to read."""
    put_data(account)
    return Deployment(account, "Smoke")


@pytest.fixture(scope="session")
def fleets_secret() -> str:
    return salt_for(DUE["fleets"], STARTED)


@pytest.fixture(scope="session")
def lasting_bench(fleets_secret: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A :class:`tests.e2e.benches.Bench` in an account of its own, for all modules; fleets boot in :func:`bench`."""
    from tests.e2e.benches import Bench  # it needs this module

    with LocalAccount("fleets", processes=False, notice_seconds=0.3, wait_scale=0.1, secret=fleets_secret) as account:
        yield Bench(Deployment(account, "Fleets"), tmp_path_factory.mktemp("orders"))


@pytest.fixture(scope="module")
def nodes(lasting_bench: Any) -> Iterator[Any]:
    """The :class:`local.simulated_nodes.SimulatedNodes` of that bench. Only so long: their thread calls the account all
    the while, and would do so in the midst of other tests of this worker, moto's among them.
    """
    from tests.e2e.benches import simulated

    with simulated(lasting_bench.account, lasting_bench.deployment.outputs["ResultsBucket"]) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def bench(lasting_bench: Any, nodes: Any) -> Any:
    """That bench, while fleets that are not processes come up in it."""
    return lasting_bench
