"""Lets a fleet of real workers grow, lose nodes, heal, and shrink on local AWS, and records what happens.

The fleet is the folder fleets/worker, with one more operation: a task takes as many seconds as its object says, and
notes its begin and its end. Workers are killed and stopped from outside, as a fault of a machine would.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cli.client.api import UnreachableError
from cli.client.signed_api import SignedApi
from local.launcher import LocalAccount
from local.project import ROOT, tool_environment
from local.settings import DATA_BUCKET
from troop.bench.definition import names
from troop.shared import moments

FOLDER = ROOT / "fleets" / "worker"
CELL, ROLE = names.cell_id(1), "workers"
NOTICE_SECONDS = 30.0
"""From a spot notice to the end of the node; two minutes on AWS."""
SAMPLE_SECONDS, DETAIL_SECONDS = 1.0, 4.0
WORKER = b"worker.py"
GOOD = "good-"
"""The beginning of the names of tasks that do not fail."""
FAULTS = {
    "spot": "spot takes a node back",
    "killed": "a worker is killed",
    "hung": "a worker hangs",
    "silent": "a node falls silent",
}

OPERATION = '''
def slow(blocks: Iterator[bytes]) -> dict[str, Any]:
    """Takes as many seconds as the object says."""
    name, seconds = b"".join(blocks).decode().split()
    print(f"{time.time()} begins {name}", flush=True)
    if seconds == "poison":
        raise ValueError(f"{name} is poisonous")
    time.sleep(float(seconds))
    print(f"{time.time()} ends {name}", flush=True)
    return {"name": name, "by": os.environ["TROOP_NODE"]}


OPERATIONS: dict'''

ENTRY = '"lines": lines,\n'
"""The last operation of the worker."""
NOTE = re.compile(r"^([0-9.]+) (begins|ends) (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Plan:
    """The size of a story.

    Attributes:
        tasks: the number of tasks; the poisonous ones come on top.
        seconds: of a task.
        most: nodes.
        per_node: tasks for which there is a node.
        faults: what hits one node each, after the spot notice; all at once.
    """

    tasks: int
    seconds: float
    poison: int
    most: int
    per_node: int
    faults: tuple[str, ...]

    def changes(self) -> dict[str, Any]:
        """Changes of the fleet's file: intervals as short as they can be."""
        return {
            "expires_after": "2h",
            "buckets": [DATA_BUCKET],
            "queue": {"lease": "30s", "tries": 3},
            f"fleets.{ROLE}.health": {"port": 8080, "every": "5s", "grace": "10s"},
            f"fleets.{ROLE}.work": {"at_least": 1, "every": "2m"},
            f"fleets.{ROLE}.heal": {"after": 3, "do": "restart", "script": "restart.sh", "at_most": 1},
            f"fleets.{ROLE}.scale": {
                "backlog_per_node": self.per_node,
                "min": 0,
                "max": self.most,
                "idle_after": "1m",
            },
            "parameters.threads": 2,
        }


SHORT = Plan(tasks=90, seconds=3, poison=1, most=3, per_node=5, faults=("killed", "hung"))
WHOLE = Plan(tasks=500, seconds=6, poison=3, most=6, per_node=5, faults=("silent", "killed", "hung"))


@dataclass(frozen=True)
class Sample:
    """The fleet at one moment.

    Attributes:
        at: seconds since 1970.
        waiting, held, dead: tasks on the queue, with workers, and dead letters.
        desired, serving: nodes that the group should have, and has in service.
        cost: so far in USD; None if it is not known yet.
    """

    at: float
    waiting: int
    held: int
    dead: int
    desired: int
    serving: int
    cost: float | None


@dataclass(frozen=True)
class Hit:
    """A fault of a node.

    Attributes:
        fault: a key of :data:`FAULTS`.
        at: seconds since 1970.
    """

    fault: str
    node: str
    at: float


@dataclass(frozen=True)
class Event:
    """Something that happened; ``kind``: fault, repair or step."""

    at: float
    kind: str
    text: str


@dataclass
class Story:
    """What has happened.

    Attributes:
        returned: seconds from each fault until the node's task was begun again, by fault.
        healed: seconds from each fault until the repair, by fault.
        results: the task and the node of each result.
    """

    fleet: str = ""
    samples: list[Sample] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    returned: dict[str, float] = field(default_factory=dict)
    healed: dict[str, float] = field(default_factory=dict)
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    detail: dict[str, Any] = field(default_factory=dict)
    dead: int = 0

    @property
    def most_nodes(self) -> int:
        return max((sample.serving for sample in self.samples), default=0)


class Workers:
    """A fleet of workers in an account that has a deployment with queues.

    Args:
        outputs: of the deployment.
        home: a folder for its files.
        deployment: its name for the command; empty for the default.
    """

    def __init__(
        self,
        account: LocalAccount,
        outputs: Mapping[str, str],
        home: Path,
        plan: Plan,
        say: Callable[[str], None],
        deployment: str = "",
    ) -> None:
        self._account, self._home, self._plan, self._say = account, home, plan, say
        self._options = ["--deployment", deployment] if deployment else []
        self._api = SignedApi(outputs["ApiUrl"], account.session(), account.exports["AWS_CA_BUNDLE"])
        self._stop = threading.Event()
        self._stopped: list[int] = []
        self._hit: set[str] = set()
        self.story = Story()

    # The story

    def tell(self) -> Story:
        """Tells all of it. The fleet is removed at the end."""
        self._up()
        sampler = threading.Thread(target=self._sample, name="samples", daemon=True)
        sampler.start()
        try:
            self._grow()
            self._end(self._begin("spot"))
            hits = [self._begin(fault) for fault in self._plan.faults]
            for hit in hits:
                self._end(hit)
            self._shrink()
        finally:
            self._stop.set()
            sampler.join()
            for pid in self._stopped:
                _signal(pid, signal.SIGCONT)
        self._collect()
        return self.story

    def _up(self) -> None:
        folder = self._home / "worker"
        shutil.copytree(FOLDER, folder)
        worker = (folder / "worker.py").read_text()
        worker = worker.replace("\nOPERATIONS: dict", OPERATION).replace(ENTRY, f'{ENTRY}    "slow": slow,\n')
        (folder / "worker.py").write_text(worker)
        changes = [f"{key}={json.dumps(value)}" for key, value in self._plan.changes().items()]
        options = [word for change in changes for word in ("--set", change)]
        started = json.loads(self.troop("up", str(folder), *options, "--json"))
        self.story.fleet = str(started["fleet"]["fleet"])
        self._say(f"the fleet {self.story.fleet} is ready; its queue is reached only through its endpoint")

    def _grow(self) -> None:
        plan, s3 = self._plan, self._account.client("s3")
        lines, needed = [], {f"poison-{number}": "poison" for number in range(plan.poison)}
        needed |= {f"{GOOD}{number:04}": str(plan.seconds) for number in range(plan.tasks)}
        for name, seconds in needed.items():
            s3.put_object(Bucket=DATA_BUCKET, Key=f"workers/{name}", Body=f"{name} {seconds}".encode())
            body = json.dumps({"bucket": DATA_BUCKET, "key": f"workers/{name}", "operation": "slow"})
            lines.append(json.dumps({"id": name, "body": body}))
        file = self._home / "tasks"
        file.write_text("\n".join(lines))
        self.troop("submit", self.story.fleet, str(file), "--key", "story")
        self._note("step", f"{plan.tasks + plan.poison} tasks are submitted")
        desired = min(plan.most, -(-plan.tasks // plan.per_node))
        self._account.wait(lambda: self._serving() >= desired, f"the fleet has no {desired} nodes")
        self._account.wait(lambda: len(self._busy()) >= desired, "not every node works")
        self._note("step", f"{desired} nodes work")

    def _begin(self, fault: str) -> Hit:
        """Lets a fault hit a node that works."""
        node = self._victim()
        hit = Hit(fault, node, self._note("fault", f"{FAULTS[fault]}: {_short(node)}"))
        if fault == "spot":
            self._account.interrupt(node, NOTICE_SECONDS)
        elif fault == "killed":
            for pid in processes(node, WORKER):
                _signal(pid, signal.SIGKILL)
        else:
            stopped = processes(node, WORKER) if fault == "hung" else processes(node)
            self._stopped += stopped
            for pid in stopped:
                _signal(pid, signal.SIGSTOP)
        return hit

    def _end(self, hit: Hit) -> None:
        """Waits until the node is healed, and a task that it had is in hand again."""
        if hit.fault != "spot":
            self._await_repair(hit)
        self._await_return(hit)

    def _shrink(self) -> None:
        self._account.wait(lambda: self._left() == 0, "tasks are left")
        self._note("step", "all tasks are done")
        self._account.wait(lambda: self._serving() == 0, "the fleet keeps nodes")
        self._note("step", "the last node has drained")

    def _collect(self) -> None:
        story, folder = self.story, self._home / "results"
        self._account.wait(
            lambda: self._detail()["work"]["done"] >= self._plan.tasks, "the record does not count all tasks"
        )
        story.detail, story.dead = self._detail(), self._counts()[2]
        self.troop("results", story.fleet, "-o", str(folder))
        story.results = {path.name: json.loads(path.read_text()) for path in folder.iterdir()}
        before = story.detail["fleet"]["expires_at"]
        self.troop("extend", story.fleet, "--for", "1h")
        assert self._detail()["fleet"]["expires_at"] > before
        self.troop("down", story.fleet)

    # What there is

    def _sample(self) -> None:
        cost, due = None, 0.0
        while not self._stop.wait(SAMPLE_SECONDS):
            waiting, held, dead = self._counts()
            desired, serving = self._sizes()
            if time.monotonic() >= due:
                detail = self._detail()
                cost, due = float((detail["cost_so_far"] or {"amount": 0})["amount"]), time.monotonic() + DETAIL_SECONDS
                self._note_repairs(detail["repairs"])
            self.story.samples.append(Sample(time.time(), waiting, held, dead, desired, serving, cost))

    def _note_repairs(self, repairs: Sequence[Mapping[str, Any]]) -> None:
        known = sum(event.kind == "repair" for event in self.story.events)
        for repair in list(reversed(repairs))[known:]:
            deed = "restarts the worker of" if repair["do"] == "restart" else "replaces"
            self._note("repair", f"Troop {deed} {_short(repair['node'])}")

    def _counts(self) -> tuple[int, int, int]:
        """Tasks that wait, that workers have, and dead letters."""
        kinds = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        sqs, run = self._account.client("sqs"), self.story.fleet
        own, dead = (
            sqs.get_queue_attributes(QueueUrl=sqs.get_queue_url(QueueName=name)["QueueUrl"], AttributeNames=kinds)
            for name in (names.queue_name(run, CELL), names.dead_queue_name(run, CELL))
        )
        waiting, held = (int(own["Attributes"][kind]) for kind in kinds)
        return waiting, held, int(dead["Attributes"][kinds[0]])

    def _left(self) -> int:
        waiting, held, _ = self._counts()
        return waiting + held

    def _sizes(self) -> tuple[int, int]:
        """Nodes that the groups should have, and that are in service."""
        tag = [{"Name": "tag:troop:run", "Values": [self.story.fleet]}]
        groups = self._account.client("autoscaling").describe_auto_scaling_groups(Filters=tag)["AutoScalingGroups"]
        members = [member for group in groups for member in group["Instances"]]
        return sum(group["DesiredCapacity"] for group in groups), sum(
            member["LifecycleState"] == "InService" for member in members
        )

    def _serving(self) -> int:
        return self._sizes()[1]

    def _detail(self) -> dict[str, Any]:
        for _ in range(20):
            try:
                answer = self._api.get(f"fleets/{self.story.fleet}")
            except UnreachableError:
                continue
            if answer.status == 200:
                return dict(answer.body)
            time.sleep(0.5)
        raise SystemExit("the API does not answer")

    def _logs(self) -> dict[str, list[tuple[float, str, str]]]:
        """What each node's workers have noted: moments, begins or ends, names of tasks."""
        logs = {}
        for home in (self._account.run / "instances").iterdir():
            lines: list[tuple[float, str, str]] = []
            for path in home.rglob("worker.log"):
                text = path.read_text(errors="replace")
                lines += [(float(at), event, name) for at, event, name in NOTE.findall(text)]
            logs[home.name] = lines
        return logs

    def _busy(self) -> set[str]:
        """The living nodes whose worker has begun with a task."""
        begun = {node for node, lines in self._logs().items() if lines}
        return {node for node in begun & self._living() if processes(node, WORKER)}

    def _victim(self) -> str:
        """Returns a node that works and was not hit before."""
        nodes: list[str] = []

        def works() -> bool:
            nodes[:] = sorted(self._busy() - self._hit)
            return bool(nodes)

        self._account.wait(works, "no node works")
        self._hit.add(nodes[0])
        return nodes[0]

    def _await_return(self, hit: Hit) -> None:
        """Waits until a task that the node lost was begun again. Without one, its tasks had ended in time."""
        self._account.wait(lambda: bool(self._returns(hit)) or not self._left(), f"no task of {hit.node} comes back")
        if returns := self._returns(hit):
            self.story.returned[hit.fault] = max(returns)
            self._say(f"{hit.fault}: a task of the node is in hand again after {max(returns):.1f} s")

    def _returns(self, hit: Hit) -> list[float]:
        """Seconds from the fault to the next begin of each task that the node has begun before."""
        begins: dict[str, list[tuple[float, str]]] = {}
        for node, lines in self._logs().items():
            for at, event, name in lines:
                if event == "begins" and name.startswith(GOOD):
                    begins.setdefault(name, []).append((at, node))
        pairs = (pair for tries in begins.values() for pair in itertools.pairwise(sorted(tries)))
        return [later - hit.at for (_, node), (later, _) in pairs if node == hit.node and later > hit.at]

    def _await_repair(self, hit: Hit) -> None:
        """Waits until a node is repaired. The time is that of the decision, because several nodes are waited for."""
        do, decided = ("replace" if hit.fault == "silent" else "restart"), list[float]()

        def is_repaired() -> bool:
            repairs = [one for one in self._detail()["repairs"] if one["node"] == hit.node and one["do"] == do]
            decided[:] = [moments.parse(one["at"]).timestamp() for one in repairs]
            if do == "replace":
                return bool(repairs) and hit.node not in self._living()
            return bool(repairs) and bool(set(processes(hit.node, WORKER)) - set(self._stopped))

        self._account.wait(is_repaired, f"{hit.node} is not repaired")
        self.story.healed[hit.fault] = min(decided) - hit.at
        self._say(f"{hit.fault}: repaired after {self.story.healed[hit.fault]:.0f} s")

    def _living(self) -> set[str]:
        return {one["id"] for one in self._account.instances() if one["state"] != "ended"}

    # Helpers

    def _note(self, kind: str, text: str) -> float:
        at = time.time()
        self.story.events.append(Event(at, kind, text))
        self._say(text)
        return at

    def troop(self, *words: str) -> str:
        """Runs `troop fleet`. Returns its output."""
        done = subprocess.run(
            [str(ROOT / "scripts" / "troop"), *self._options, "fleet", *words],
            cwd=ROOT,
            env={**tool_environment(), **self._account.exports, "COLUMNS": "160"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"troop fleet {words[0]} failed: {done.stdout}{done.stderr}")
        return done.stdout


def processes(node: str, part: bytes = b"") -> list[int]:
    """Returns the processes of a node, by their environment; only those with ``part`` in their command."""
    nodes = []
    mark = f"INSTANCE_ID={node}".encode()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (path / "environ").read_bytes().split(b"\0") and part in (path / "cmdline").read_bytes():
                nodes.append(int(path.name))
        except OSError:  # it has ended
            continue
    return nodes


def _short(node: str) -> str:
    """The end of a node's id, which is enough in a picture."""
    return f"…{node[-5:]}"


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
