"""Simulates nodes without processes: a few threads write to S3 what hundreds of agents would write.

For accounts with `processes=False`, whose instances run nothing. The simulation follows every run in the results
bucket. Each instance of a cell registers, waits at the barriers, and writes a summary of every phase in the agent's
formats. Nodes of a standing fleet register; if they are watched, they report and work, see
:mod:`local.simulated_fleet`. Nodes can be configured to fail.

    with LocalAccount(processes=False) as account:
        outputs = account.deploy(settings)
        with SimulatedNodes(account, outputs["ResultsBucket"], [Fault(FaultKind.DIES, "drivers", phase="measure")]):
            ...
"""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from local.launcher import LocalAccount
from local.simulated_fleet import SimulatedFleet
from local.simulated_objects import SimulatedObjects, encoded
from local.simulated_summary import NODE_FORMAT, interrupted, registration, summary
from troop.bench.definition import names
from troop.bench.definition.definition import ON_DEMAND, SPOT, Benchmark, Step, from_document
from troop.bench.definition.roster import from_document as roster_of
from troop.shared.tags import CELL_TAG, FLEET_TAG, RUN_TAG

_POLL_SECONDS, _LONGEST_SECONDS = 0.5, 5.0
"""The interval between two checks of a cell. It grows while nothing happens, because most runs in a bucket are over."""
_RARELY_SECONDS = 10.0
"""The longest interval between two searches for new cells of a run. A search soon follows the end of a cell, and none
the report, which is made when the run has ended."""
_SCAN_SECONDS, _SCAN_PAUSES = 1.0, 3
"""The pause between two searches for the instances of a watched fleet: at least so long, and so many times a search."""
NOTICE = {"action": "terminate", "time": "2026-11-21T15:03:12Z"}
_NOTICE_SECONDS = 2.0


class FaultKind(StrEnum):
    """The ways in which a node can fail.

    NEVER_REGISTERS: it boots, but does not register; its console says why. In a benchmark, an instance that replaces
        it has no fault.
    CANNOT_START: it registers with an error; otherwise the same.
    FAILS: its script fails in the phase.
    SILENT: it takes part until the phase, and never writes the summary.
    DIES: its instance is terminated when the phase is released.
    INTERRUPTED: Spot interrupts it at that time: it reports the notice, and is terminated a moment later. On-Demand
        nodes are not affected.
    """

    NEVER_REGISTERS = "never-registers"
    CANNOT_START = "cannot-start"
    FAILS = "fails"
    SILENT = "silent"
    DIES = "dies"
    INTERRUPTED = "interrupted"


_BOOT_FAULTS = (FaultKind.NEVER_REGISTERS, FaultKind.CANNOT_START)


@dataclass(frozen=True)
class Fault:
    """A fault of some nodes.

    Attributes:
        nodes: the number of nodes of the role that fail, first by instance id.
        phase: for faults that happen in a phase.
        cell: the only cell that fails; all cells if empty.
        attempts: the number of a cell's first attempts that fail.
    """

    kind: FaultKind
    role: str
    nodes: int = 1
    phase: str = ""
    cell: str = ""
    attempts: int = 9


@dataclass
class _Run:
    """A run and the time of the next search for its cells, `due`. The interval grows while there are no new cells."""

    cells: int = 0
    due: float = 0.0
    idle: int = 0
    is_over: bool = False

    def schedule_poll(self, cells: int) -> None:
        self.idle = self.idle + 1 if cells and cells == self.cells else 0
        self.cells = cells
        self.due = time.monotonic() + min(_POLL_SECONDS * self.idle / 4, _RARELY_SECONDS)

    def poll_soon(self) -> None:
        self.due, self.idle = 0.0, 0


@dataclass
class _Cell:
    """A cell in progress.

    Attributes:
        seen: role, zone, address and type by instance id.
        failed_nodes: the nodes that do not come up, by instance id.
        fleet: of a standing fleet whose nodes are watched.
        scan: the search for its instances that is under way.
        scan_at: when the next one begins.
    """

    run: str
    cell: str
    definition: Mapping[str, Any]
    seen: dict[str, dict[str, str]] = field(default_factory=dict)
    since: float = field(default_factory=time.monotonic)
    is_registered: bool = False
    failed_nodes: dict[str, FaultKind] = field(default_factory=dict)
    phase: int = 0
    is_over: bool = False
    due: float = 0.0
    idle: int = 0
    fleet: SimulatedFleet | None = None
    scan: Future[tuple[float, dict[str, dict[str, str]]]] | None = None
    scan_at: float = 0.0

    @property
    def state(self) -> tuple[int, bool, int, bool]:
        """Changes with every event of the cell."""
        return len(self.seen), self.is_registered, self.phase, self.is_over

    @property
    def is_standing(self) -> bool:
        return bool(self.definition.get("standing"))

    @property
    def nodes(self) -> int:
        return sum(int(fleet["count"]) for fleet in self.definition["fleets"].values())

    @cached_property
    def benchmark(self) -> Benchmark:
        return from_document(self.definition)

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.benchmark.steps


class SimulatedNodes:
    """A context manager that simulates nodes inside its block. Leaving the block raises errors of the simulation.

    Args:
        boot_seconds: from a cell's last launch to its registrations.
        real_time: whether phases take as long as they are defined; otherwise nodes finish at once.
        task_seconds, time_scale: of watched fleets, see :class:`SimulatedFleet`.
    """

    def __init__(
        self,
        account: LocalAccount,
        bucket: str,
        faults: Sequence[Fault] = (),
        *,
        boot_seconds: float = 0,
        real_time: bool = False,
        task_seconds: float = 0.5,
        time_scale: float = 1.0,
    ) -> None:
        self._account, self._faults = account, faults
        self._task_seconds, self._time_scale = task_seconds, time_scale
        self._boot_seconds, self._real_time = boot_seconds, real_time
        self._objects = SimulatedObjects(account, bucket)
        self._ec2 = account.client("ec2")
        self._runs: dict[str, _Run] = {}
        self._cells: dict[tuple[str, str], _Cell] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="simulated-nodes", daemon=True)
        self._failure: Exception | None = None

    def __enter__(self) -> SimulatedNodes:
        self._objects.__enter__()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._objects.__exit__()
        if self._failure and kind is None:
            raise self._failure

    def kill(self, node: str) -> None:
        """Kills the application and workers of a node of a watched fleet. Raises ValueError for an unknown node."""
        fleets = [cell.fleet for cell in list(self._cells.values()) if cell.fleet]
        (its,) = [fleet for fleet in fleets if node in fleet.nodes]
        its.kill(node)

    def _follow(self) -> None:
        try:
            while not self._stop.wait(_POLL_SECONDS):
                self._discover()
                for cell in self._cells.values():
                    if not (cell.is_over or self._runs[cell.run].is_over) and time.monotonic() >= cell.due:
                        self._poll(cell)
        except Exception as error:  # noqa: BLE001 - raised at the end of the block
            self._failure = error

    def _poll(self, cell: _Cell) -> None:
        before = cell.state
        self._step(cell)
        cell.idle = 0 if cell.state != before else cell.idle + 1
        longest = _POLL_SECONDS if cell.fleet else _LONGEST_SECONDS
        cell.due = time.monotonic() + min(_POLL_SECONDS * cell.idle / 4, longest)
        if cell.is_over:
            self._runs[cell.run].poll_soon()

    def _discover(self) -> None:
        for run in self._objects.names_in(names.RUNS_PREFIX):
            known = self._runs.setdefault(run, _Run())
            if known.is_over or time.monotonic() < known.due:
                continue
            run_objects = self._objects.names_in(names.run_prefix(run))
            known.is_over = names.REPORT_HTML in run_objects
            for cell in () if known.is_over else run_objects:
                if names.CELL.fullmatch(cell) and (run, cell) not in self._cells:
                    definition = self._objects.read(names.cell_definition_key(run, cell))
                    if definition is not None:
                        self._cells[run, cell] = self._mark_past(_Cell(run, cell, definition))
            known.schedule_poll(sum(cell_run == run for cell_run, _ in self._cells))

    def _mark_past(self, cell: _Cell) -> _Cell:
        """Marks a cell as over if its first barrier is open: it belongs to an earlier run."""
        if cell.is_standing:
            return cell
        first = self._barrier(cell)
        cell.is_over = first is not None and first["state"] != "hold"
        return cell

    def _step(self, cell: _Cell) -> None:
        if cell.is_standing:
            self._stand(cell)
            return
        if not cell.is_registered:
            self._register(cell)
            return
        barrier = self._barrier(cell)
        if barrier is None or barrier["state"] == "hold":
            if cell.failed_nodes and cell.phase == 0:
                self._register_new(cell, self._instances(cell))
            return
        cell.is_over = barrier["state"] == "end"
        if not cell.is_over and self._is_done(barrier):
            self._perform(cell, barrier)
            cell.phase += 1
            cell.is_over = cell.phase == len(cell.steps)

    def _stand(self, cell: _Cell) -> None:
        """Registers nodes of a standing fleet, which do not wait for barriers; lets those that are watched work."""
        if not cell.benchmark.watched_roles:
            self._register_new(cell, self._instances(cell))
            return
        now = time.monotonic()
        if cell.fleet is None:
            cell.fleet = SimulatedFleet(
                *(self._account, self._objects, cell.run, cell.cell, cell.benchmark),
                *(self._task_seconds, self._time_scale),
            )
        if cell.scan is None and now >= cell.scan_at:
            cell.scan = self._objects.pool.submit(self._scan, cell)
        if cell.scan and cell.scan.done():
            seconds, instances = cell.scan.result()
            cell.scan, cell.scan_at = None, now + max(_SCAN_SECONDS, _SCAN_PAUSES * seconds)
            self._register_new(cell, instances)
            cell.fleet.see({one: facts["role"] for one, facts in cell.seen.items() if one not in cell.failed_nodes})
        cell.fleet.step()

    def _scan(self, cell: _Cell) -> tuple[float, dict[str, dict[str, str]]]:
        """Returns the instances of a cell, and the seconds that it took to find them: hundreds take long."""
        began = time.monotonic()
        instances = self._instances(cell)
        return time.monotonic() - began, instances

    def _register_new(self, cell: _Cell, instances: dict[str, dict[str, str]]) -> None:
        before, cell.seen = cell.seen, instances
        if cell.is_standing:
            cell.failed_nodes = self._boot_faults(cell)
        written = self._registrations(cell)
        self._objects.write_all((key, body) for key, body in written if names.node_of(key) not in before)

    def _register(self, cell: _Cell) -> None:
        if len(cell.seen) < cell.nodes:
            cell.seen = self._instances(cell)
            cell.since = time.monotonic()
        if len(cell.seen) < cell.nodes or time.monotonic() - cell.since < self._boot_seconds:
            return
        cell.failed_nodes = self._boot_faults(cell)
        self._objects.write_all(self._registrations(cell))
        cell.is_registered = True

    def _boot_faults(self, cell: _Cell) -> dict[str, FaultKind]:
        faults = {instance_id: self._fault(cell, instance_id) for instance_id in cell.seen}
        return {i: one.kind for i, one in faults.items() if one and one.kind in _BOOT_FAULTS}

    def _registrations(self, cell: _Cell) -> Iterable[tuple[str, bytes]]:
        for instance_id, facts in cell.seen.items():
            document = registration(instance_id, facts)
            fault = cell.failed_nodes.get(instance_id)
            if fault is FaultKind.NEVER_REGISTERS:
                self._print(instance_id, "simulated: cannot reach S3, giving up\n")
                continue
            if fault is FaultKind.CANNOT_START:
                document = {"format": NODE_FORMAT, "id": instance_id, "role": facts["role"], "error": "simulated"}
            yield names.nodes_prefix(cell.run, cell.cell) + f"{instance_id}.json", encoded(document)

    def _is_done(self, barrier: Mapping[str, Any]) -> bool:
        start = barrier["start_at"] or 0.0
        end = start + float(barrier["warm_up_seconds"]) + float(barrier["measured_seconds"])
        return not self._real_time or bool(barrier.get("skipped")) or time.time() >= end

    def _perform(self, cell: _Cell, barrier: Mapping[str, Any]) -> None:
        roster = self._objects.read(names.roster_key(cell.run, cell.cell))
        if roster is None:
            raise RuntimeError(f"{cell.run} {cell.cell}: a barrier is open, but there is no roster")
        step = cell.steps[cell.phase]
        roster_ids = roster_of(roster).ids(step.phase.roles, barrier.get("nodes", {}))
        members = [node for node in roster["nodes"] if node["id"] in roster_ids]
        kinds = {node["id"]: self._kind(cell, node["id"], step.name) for node in members}
        taken = [node for node, kind in kinds.items() if kind is FaultKind.INTERRUPTED]
        self._objects.write_all(self._interruption(cell, node) for node in taken)
        if dying := [node for node, kind in kinds.items() if kind is FaultKind.DIES]:
            self._ec2.terminate_instances(InstanceIds=dying)
        written = []
        for node in members:
            if (kind := kinds[node["id"]]) not in (FaultKind.DIES, FaultKind.SILENT):
                document = summary(node, barrier, has_failed=kind is FaultKind.FAILS)
                if kind is FaultKind.INTERRUPTED:
                    document |= interrupted(NOTICE)
                prefix = names.phase_prefix(cell.run, cell.cell, step.name)
                written.append((f"{prefix}{node['id']}.json", encoded(document)))
                prefix = names.output_prefix(cell.run, cell.cell, step.name)
                printed = "simulated failure" if kind is FaultKind.FAILS else "simulated"
                written.insert(0, (f"{prefix}{node['id']}.log.gz", gzip.compress(f"{printed}\n".encode())))
        self._objects.write_all(written)
        for node in taken:  # last: real nodes have two minutes to write this, so a busy machine must not prevent it
            self._account.interrupt(node, _NOTICE_SECONDS)

    def _interruption(self, cell: _Cell, instance_id: str) -> tuple[str, bytes]:
        notice = {"format": "troop.interruption/1", "id": instance_id, **NOTICE}
        return f"{names.interruptions_prefix(cell.run, cell.cell)}{instance_id}.json", encoded(notice)

    def _kind(self, cell: _Cell, instance_id: str, phase: str) -> FaultKind | None:
        fault = self._fault(cell, instance_id)
        return fault.kind if fault and fault.phase == phase else None

    def _fault(self, cell: _Cell, instance_id: str) -> Fault | None:
        role = cell.seen[instance_id]["role"]
        rank = sorted(one for one, facts in cell.seen.items() if facts["role"] == role).index(instance_id)
        attempt, is_spot = names.attempt_of(cell.cell)[1], cell.seen[instance_id]["purchase"] == SPOT
        meant = (one for one in self._faults if one.role == role and one.cell in ("", cell.cell))
        role_faults = (one for one in meant if rank < one.nodes and attempt <= one.attempts)
        return next((one for one in role_faults if is_spot or one.kind is not FaultKind.INTERRUPTED), None)

    def _print(self, instance_id: str, text: str) -> None:
        """Writes to the instance's console."""
        directory = self._account.run / "instances" / instance_id
        directory.mkdir(exist_ok=True)
        (directory / "console.log").write_text(text)

    def _instances(self, cell: _Cell) -> dict[str, dict[str, str]]:
        filters = {f"tag:{RUN_TAG}": cell.run, f"tag:{CELL_TAG}": cell.cell, "instance-state-name": "running"}
        pages = self._ec2.get_paginator("describe_instances").paginate(
            Filters=[{"Name": name, "Values": [value]} for name, value in filters.items()]
        )
        instances = [one for page in pages for reservation in page["Reservations"] for one in reservation["Instances"]]
        return {one["InstanceId"]: _facts(one) for one in instances}

    def _barrier(self, cell: _Cell) -> dict[str, Any] | None:
        return self._objects.read(names.barrier_key(cell.run, cell.cell, cell.steps[cell.phase].name))


def _facts(instance: Mapping[str, Any]) -> dict[str, str]:
    tags = {tag["Key"]: tag["Value"] for tag in instance["Tags"]}
    return {
        "role": tags[FLEET_TAG],
        "zone": instance["Placement"]["AvailabilityZone"],
        "address": instance["PrivateIpAddress"],
        "instance_type": instance["InstanceType"],
        "image": instance["ImageId"],
        "purchase": instance.get("InstanceLifecycle", ON_DEMAND),
    }
