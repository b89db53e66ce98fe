"""Runs of benchmarks: admitted before anything is launched, started once for each key, stopped for good."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from troop.aws.offers import read_offers
from troop.aws.run_files import RunFiles, Upload
from troop.aws.run_keys import RunKeys, Used
from troop.aws.run_machines import RunMachines
from troop.aws.runs import RunTable
from troop.bench import admission, names
from troop.bench.definition import Benchmark, to_document
from troop.bench.plan import Plan, PlannedCell, Variant
from troop.bench.problems import BadBenchmarkError
from troop.bench.record import Cell, Kind, Resource, Run, RunStatus
from troop.errors import MissingRunError, TroopError
from troop.settings import Settings

_FIRST_CELL = names.cell_id(1)
_KINDS = list(Kind)


class NoBenchmarksError(TroopError):
    """The deployment has no half that runs benchmarks."""

    def __init__(self) -> None:
        super().__init__("this deployment runs no benchmarks: its setting troop:benchmarks is false")


class BucketError(TroopError):
    """The benchmark wants to read buckets that the deployment does not allow."""

    def __init__(self, buckets: list[str], allowed: tuple[str, ...]) -> None:
        there = ", ".join(allowed) if allowed else "none"
        wanted = ", ".join(buckets)
        super().__init__(
            f"nodes of this deployment may not read {wanted}: its setting troop:allowed_buckets names {there}"
        )


class OtherRunError(TroopError):
    """The key stands for another request."""

    def __init__(self, key: str, run: str) -> None:
        super().__init__(
            f"the key {key!r} was used for another benchmark, or other files, by {run}: choose another key"
        )


@dataclass(frozen=True)
class Admitted:
    """``repeated``: the run was on record before."""

    run: Run
    repeated: bool


@dataclass(frozen=True)
class Told:
    """All that is on record of a run; resources in the order in which they are created."""

    run: Run
    cells: list[Cell]
    resources: list[Resource]


@dataclass(frozen=True)
class Benchmarks:
    """What the API does with runs; it creates nothing on EC2 itself.

    Attributes:
        subnets: ids of those that fleets are launched into.
        clock: the moment, aware.
    """

    settings: Settings
    runs: RunTable
    keys: RunKeys
    files: RunFiles
    machines: RunMachines
    ec2: Any
    subnets: tuple[str, ...]
    clock: Callable[[], datetime]

    def admit(self, benchmark: Benchmark, files: Mapping[str, bytes], key: str, caller: str) -> Admitted:
        """Puts a run on record and starts it, if nothing speaks against it; the same key again answers with the same
        run, and goes on where a request that was cut off has ended.

        Args:
            benchmark: as it is to be done; its ``files`` are the names of ``files``.
            files: contents by name.
            key: idempotency key, of the caller's choosing.
            caller: ARN of who asks.

        Raises:
            BucketError: it wants to read what is not allowed.
            BadBenchmarkError: too many nodes, instance types that cannot be had, artifacts that are not there.
            OtherRunError: the key was used for something else.
            ClientError: AWS refused; asking again with the same key is safe.
        """
        digest = _digest(benchmark, files)
        used = self.keys.used(key)
        if used is not None and (found := self._of_key(key, used, digest)):
            return Admitted(self._started(found), True)
        self._refuse(benchmark)
        now = self.clock()
        # The id is settled before anything of it exists, so that a request that is cut off leaves no second run behind.
        used = self.keys.use(key, names.run_id(now, key), digest, now)
        if found := self._of_key(key, used, digest):
            return Admitted(self._started(found), True)
        plan = Plan((PlannedCell(_FIRST_CELL, Variant(), benchmark),))
        self.files.put(used.run, benchmark, plan, files)
        run = self._new(used.run, benchmark, caller, now)
        created = self.runs.create(run, [Cell(run.run, _FIRST_CELL)])
        return Admitted(self._started(run if created else self.runs.get(run.run)), not created)

    def stop(self, run: str, caller: str) -> Run:
        """Closes a run, stops its workflow and starts its teardown; of one that has ended nothing is changed.

        Raises:
            MissingRunError: there is none.
            ClientError: AWS refused; asking again is safe, and needed.
        """
        found = self.runs.get(run)
        if found.ended_at is not None:
            return found
        now, reason = self.clock(), f"stopped by {caller}"
        found = self.runs.close(run, RunStatus.STOPPED, reason, now)
        if found.outcome is RunStatus.STOPPED:  # else its workflow is at the teardown already
            self.machines.stop(run, reason)
        self.machines.tear_down(run, RunStatus.STOPPED, reason, now)
        return found

    def told(self, run: str) -> Told:
        """A run, its cells and what it creates.

        Raises:
            MissingRunError: there is none.
        """
        found = self.runs.get(run)
        resources = sorted(self.runs.resources(run), key=lambda r: (r.cell, _KINDS.index(r.kind), r.name))
        return Told(found, self.runs.cells(run), resources)

    def page(self, limit: int, cursor: str | None) -> tuple[list[Run], str | None]:
        """Runs, newest first, and where the listing goes on."""
        return self.runs.page(limit, cursor)

    def stage(self, sha256: str, size: int | None) -> tuple[bool, Upload | None]:
        """Whether an artifact is there; and if it is not, and its size is known, where to put it."""
        if self.files.is_staged(sha256, self.clock()):
            return True, None
        return False, None if size is None else self.files.upload(sha256, size)

    def _of_key(self, key: str, used: Used, digest: str) -> Run | None:
        """The run that a key stands for; None when it was cut off before it was on record."""
        if used.digest != digest:
            raise OtherRunError(key, used.run)
        try:
            return self.runs.get(used.run)
        except MissingRunError:
            return None

    def _started(self, run: Run) -> Run:
        if run.status is RunStatus.ADMITTED and run.closed_at is None:
            self.machines.start(run.run)
        return run

    def _refuse(self, benchmark: Benchmark) -> None:
        """From what costs nothing to what has to be asked for."""
        allowed = self.settings.allowed_buckets
        if wrong := admission.not_allowed(benchmark.buckets, allowed):
            raise BucketError(wrong, allowed)
        problems = admission.over_limits(benchmark, self.settings.max_nodes)
        types = {fleet.instance_type for fleet in benchmark.fleets}
        problems += admission.not_offered(benchmark, read_offers(self.ec2, types, self.subnets))
        now, hashes = self.clock(), {artifact.sha256 for artifact in benchmark.artifacts}
        problems += admission.not_staged(benchmark, {h for h in hashes if self.files.is_staged(h, now)})
        if problems:
            raise BadBenchmarkError(problems)

    def _new(self, run: str, benchmark: Benchmark, caller: str, now: datetime) -> Run:
        return Run(
            run=run,
            name=benchmark.name,
            at=now,
            expires_at=now + timedelta(seconds=benchmark.expires_after),
            requested_by=caller,
            cells=1,
            nodes=benchmark.nodes,
            execution=self.machines.execution(run),
        )


def _digest(benchmark: Benchmark, files: Mapping[str, bytes]) -> str:
    """Of all that a run is made of."""
    contents = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    return hashlib.sha256(json.dumps([to_document(benchmark), contents], sort_keys=True).encode()).hexdigest()
