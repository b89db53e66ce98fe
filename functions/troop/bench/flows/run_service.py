"""Manages runs of benchmarks: admits them before any launch, starts them once for each key, and stops them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from troop.bench.admission import admission, spending
from troop.bench.admission.estimate import expected_seconds, timetable
from troop.bench.admission.images import ImageFacts, forbidden_images, unusable_images
from troop.bench.admission.merging import unmergeable
from troop.bench.admission.reach import Balancer, forbidden_targets, unreachable_targets, without_endpoint
from troop.bench.admission.snapshots import forbidden_snapshots, named_snapshots, unusable_snapshots
from troop.bench.admission.spending import Bought
from troop.bench.admission.units import forbidden_units, units_of, untouchable_units
from troop.bench.aws.admission_reads import read_bucket_regions, read_offers, read_snapshots
from troop.bench.aws.images import read_images
from troop.bench.aws.run_files import RunFiles, Upload
from troop.bench.aws.run_keys import RunKeys, Used
from troop.bench.aws.run_machines import RunMachines
from troop.bench.aws.run_table import RunPage, RunTable
from troop.bench.aws.surroundings import read_surroundings, subnets_without_s3
from troop.bench.aws.unit_requests import UnitRequests
from troop.bench.definition import names
from troop.bench.definition.cell_order import in_start_order
from troop.bench.definition.definition import AROUND, Benchmark, to_document
from troop.bench.definition.limits import Limits, no_room, setting
from troop.bench.definition.plan import Plan, to_plan_document
from troop.bench.definition.problems import BadBenchmarkError, Problem
from troop.bench.definition.standing import Standing
from troop.bench.flows.estimating import Estimating, Judged
from troop.bench.money.costs import Cost
from troop.bench.records.record import Cell, Expected, Kind, Resource, Run, RunStatus
from troop.shared.errors import MissingRunError, TroopError
from troop.shared.malformed import Malformed, MalformedItemError, Read
from troop.shared.settings import Settings
from troop.shared.tables import BENCHMARK, FLEET

_KINDS = list(Kind)


class BucketError(TroopError):
    """The benchmark requests buckets that the deployment does not allow."""

    def __init__(self, buckets: list[str], allowed: tuple[str, ...]) -> None:
        there = ", ".join(allowed) if allowed else "none"
        missing, all_of_them = ", ".join(buckets), ",".join([*allowed, *buckets])
        super().__init__(
            f"nodes of this deployment may not read {missing}: " + setting("allowed_buckets", there, all_of_them)
        )


class OtherRunError(TroopError):
    """The key belongs to another request."""

    def __init__(self, key: str, run: str) -> None:
        super().__init__(f"the run {run} used the key {key!r} for another benchmark or other files: choose another key")


@dataclass(frozen=True)
class Admitted:
    """An admitted run.

    Attributes:
        repeated: whether the run was on record before.
    """

    run: Run
    repeated: bool


@dataclass(frozen=True)
class RunView:
    """A run as it is on record.

    Attributes:
        resources: in the order of their creation; None if not requested.
        cost_so_far: of a run that has not ended; None if unknown or not requested.
        bought: its nodes so far; empty if unknown or not requested.
        malformed: cells, resources and terms that cannot be read. The costs are then unknown.
    """

    run: Run
    cells: list[Cell]
    resources: list[Resource] | None
    cost_so_far: Cost | None = None
    bought: tuple[Bought, ...] = ()
    malformed: tuple[Malformed, ...] = ()


@dataclass(frozen=True)
class RunService:
    """What the API does with runs; it creates nothing on EC2 itself.

    Attributes:
        ssm, elb, s3: return the clients of Systems Manager, Elastic Load Balancing and S3, which few requests need.
            The one of S3 is anonymous.
        vpc, subnets: ids of the network that fleets are launched into, and of its subnets.
        is_own_network: whether the deployment has created this network, with an endpoint of S3.
        clock: returns the current moment, aware.
        kind: of the runs, see :mod:`troop.shared.tables`; runs of another kind count as missing.
    """

    settings: Settings
    runs: RunTable
    keys: RunKeys
    files: RunFiles
    machines: RunMachines
    ec2: Any
    ssm: Callable[[], Any]
    elb: Callable[[], Any]
    s3: Callable[[], Any]
    vpc: str
    is_own_network: bool
    subnets: tuple[str, ...]
    clock: Callable[[], datetime]
    estimating: Estimating
    unit_requests: UnitRequests
    kind: str = BENCHMARK

    def admit(
        self,
        benchmark: Benchmark,
        plan: Plan,
        files: Mapping[str, bytes],
        key: str,
        caller: str,
        approve: Callable[[Expected], None] | None = None,
    ) -> Admitted:
        """Records a run and starts it, unless a check fails.

        The same key again returns the same run, and continues a request that was interrupted.

        Args:
            benchmark: from the file; its ``files`` are the names of ``files``.
            plan: the cells to run.
            files: contents by name.
            key: the caller's idempotency key.
            caller: ARN of the caller.
            approve: checks the caller, or the cost, of a run that is not yet on record; raises an error to refuse it.

        Raises:
            BucketError: the benchmark requests a bucket that is not allowed.
            BadBenchmarkError: there are too many nodes, also beside other runs; instance types are not offered or not
                allowed; artifacts are missing; prices are unknown; or a budget, limit or quota is too small.
            OtherRunError: the key was used for another request.
            ClientError: AWS refused; a retry with the same key is safe.
        """
        digest = _digest(benchmark, plan, files)
        used = self.keys.used(key)
        if used is not None and (earlier := self._started_run(key, used, digest)):
            return Admitted(self._started(earlier), True)
        judged = self._judged(benchmark, plan, staged=True)
        if judged.problems:
            raise BadBenchmarkError(judged.problems)
        if approve:
            approve(judged.expected)
        now = self.clock()
        # The id is reserved before anything else, so that an interrupted request leaves no second run behind.
        used = self.keys.use(key, names.run_id(now, key), digest, now)
        if earlier := self._started_run(key, used, digest):
            return Admitted(self._started(earlier), True)
        plan = in_start_order(plan, used.run)
        self.files.put(
            used.run, benchmark, plan, files, judged.document(), judged.types, judged.images, judged.balancers
        )
        run = replace(self._new(used.run, benchmark, plan, caller, now), estimate=judged.expected)
        cells = [Cell(run.run, one.cell, variant=one.variant, order=place) for place, one in enumerate(plan.cells, 1)]
        created = self.runs.create(run, cells, judged.terms, self.settings.max_nodes_total)
        return Admitted(self._started(run if created else self.runs.get(run.run)), not created)

    def estimate(self, benchmark: Benchmark, plan: Plan) -> Judged:
        """Estimates a run's cost, and returns the problems that concern money. Stores nothing; artifacts need not be
        staged.

        Raises:
            BucketError: the benchmark requests a bucket that is not allowed.
            BadBenchmarkError: there are too many nodes, or instance types that are not offered.
            ClientError: AWS refused.
        """
        return self._judged(benchmark, plan, staged=False)

    def stop(self, run: str, caller: str) -> Run:
        """Closes a run, stops its workflow and starts its teardown. A run that has ended stays as it is.

        Raises:
            MissingRunError: there is no such run.
            ClientError: AWS refused; a retry is safe, and necessary.
        """
        record = self.get(run)
        if record.ended_at is not None:
            return record
        now, reason = self.clock(), f"stopped by {caller}"
        record = self.runs.close(run, RunStatus.STOPPED, reason, now)
        if record.outcome is RunStatus.STOPPED:  # otherwise its workflow is already at the teardown
            self.machines.stop(record.execution_name, reason)
        self.machines.tear_down(run, RunStatus.STOPPED, reason, now)
        return record

    def view(self, run: str, cell: str | None = None, *, resources: bool = True) -> RunView:
        """Reads a run with its cells and resources; or one cell alone, with its resources.

        Raises:
            MissingRunError: there is no such run or cell.
        """
        record = self.get(run)
        stored_cells = self.runs.cells.with_figures(run) if cell is None else Read((self.runs.cells.get(run, cell),))
        cells = list(stored_cells.items)
        if not resources:
            return RunView(record, cells, None, malformed=stored_cells.malformed)
        on_record = self.runs.resources.readable(run)
        created, malformed = [r for r in on_record.items if cell in (None, r.cell)], on_record.malformed
        ordered = sorted(created, key=lambda r: (r.cell, _KINDS.index(r.kind), r.name))
        is_open, now = record.ended_at is None, self.clock()
        malformed = (*stored_cells.malformed, *malformed)
        terms = None
        if cell is None and (is_open or record.standing) and not malformed:
            try:
                terms = self.runs.terms(run)
            except MalformedItemError as error:
                malformed = (error.malformed,)
        so_far = spending.actual(terms, cells, created, now) if terms and is_open else None
        bought = spending.bought(terms, created, now) if terms else ()
        return RunView(record, cells, ordered, so_far, bought, malformed)

    def page(self, limit: int, cursor: str | None) -> RunPage:
        """Returns a page of runs, newest first."""
        return self.runs.page(limit, cursor, self.kind)

    def get(self, run: str) -> Run:
        """Returns a run of this kind.

        Raises:
            MissingRunError: there is none.
        """
        record = self.runs.get(run)
        if (record.standing is not None) != (self.kind == FLEET):
            raise MissingRunError(run)
        return record

    def stage(self, sha256: str, size: int | None) -> tuple[bool, Upload | None]:
        """Checks whether an artifact is staged; if not, and its size is known, also returns where to upload it."""
        if self.files.is_staged(sha256, self.clock()):
            return True, None
        return False, None if size is None else self.files.upload(sha256, size)

    def _started_run(self, key: str, used: Used, digest: str) -> Run | None:
        """Returns the run of a key; None if the request ended before it recorded a run."""
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

    def _judged(self, benchmark: Benchmark, plan: Plan, *, staged: bool) -> Judged:
        """Checks all cells together, in the order of what a check costs. The result contains only problems that concern
        money.

        Args:
            staged: whether artifacts must be staged.

        Raises:
            BadBenchmarkError: there are other problems.
        """
        allowed, cells = self.settings.allowed_buckets, [cell.benchmark for cell in plan.cells]
        buckets = sorted({bucket for cell in cells for bucket in cell.buckets})
        if wrong := admission.not_allowed(buckets, allowed):
            raise BucketError(wrong, allowed)
        limits = Limits.from_settings(self.settings)
        over = admission.over_limits(benchmark, plan, limits)
        problems = [*over, *admission.in_all_cells(benchmark, plan, unmergeable)]
        problems += self._problems_of_buckets(benchmark, plan, buckets)
        types = sorted({kind for cell in cells for fleet in cell.fleets for kind in fleet.types})
        offers = read_offers(self.ec2, types, self.subnets)
        problems += admission.in_all_cells(benchmark, plan, lambda cell: admission.not_offered(cell, offers))
        images: dict[str, ImageFacts | str] = {}
        forbidden = admission.in_all_cells(benchmark, plan, lambda cell: forbidden_images(cell, limits.images))
        problems += forbidden
        if not forbidden:
            named = {fleet.image for cell in cells for fleet in cell.fleets if fleet.image is not None}
            images = read_images(self.ec2, self.ssm, named)
            problems += admission.in_all_cells(benchmark, plan, lambda cell: unusable_images(cell, images, offers))
        problems += self._problems_of_snapshots(benchmark, plan, limits.snapshots)
        problems += self._problems_of_units(benchmark, plan)
        balancers, wrong_targets = self._targets(benchmark, plan, limits.targets)
        problems += wrong_targets
        if not self.is_own_network:
            problems += without_endpoint(self.vpc, subnets_without_s3(self.ec2, self.vpc, self.subnets))
        if staged:
            now, hashes = self.clock(), sorted({artifact.sha256 for cell in cells for artifact in cell.artifacts})
            there = {sha256 for sha256 in hashes if self.files.is_staged(sha256, now)}
            problems += admission.in_all_cells(benchmark, plan, lambda cell: admission.not_staged(cell, there))
        if over and problems == over:  # one refusal names all limits
            problems += self.estimating.judge(plan, benchmark.money, offers, limits.max_run_cost).problems
            room = self._room(plan)
            problems += [room] if room and plan.nodes <= limits.max_nodes_total else []
        if problems:
            raise BadBenchmarkError(problems)
        judged = self.estimating.judge(plan, benchmark.money, offers, limits.max_run_cost)
        used = {name: one for name, one in images.items() if not isinstance(one, str)}
        growth = admission.growth_warnings(benchmark, limits)
        judged = replace(judged, images=used, balancers=balancers, warnings=(*judged.warnings, *growth))
        room = self._room(plan)
        return replace(judged, problems=(*judged.problems, room)) if room else judged

    def _room(self, plan: Plan) -> Problem | None:
        """Returns a problem if the nodes do not fit beside those of other runs; None if they fit."""
        held = self.runs.reservations.read().nodes
        return no_room(("fleets",), plan.nodes, held, self.settings.max_nodes_total)

    def _problems_of_buckets(self, benchmark: Benchmark, plan: Plan, buckets: Sequence[str]) -> list[Problem]:
        """Lists buckets that do not exist, or that nodes cannot reach."""
        if not buckets:
            return []
        regions, own = read_bucket_regions(self.s3(), buckets), self.ec2.meta.region_name
        return admission.in_all_cells(benchmark, plan, lambda cell: admission.unreachable_buckets(cell, regions, own))

    def _problems_of_snapshots(self, benchmark: Benchmark, plan: Plan, allowed: Sequence[str]) -> list[Problem]:
        """Lists problems of the volumes' snapshots; looks up none if one is not allowed."""
        forbidden = admission.in_all_cells(benchmark, plan, lambda cell: forbidden_snapshots(cell, allowed))
        if forbidden:
            return forbidden
        named = named_snapshots([fleet for cell in plan.cells for fleet in cell.benchmark.fleets])
        snapshots = read_snapshots(self.ec2, named)
        return admission.in_all_cells(benchmark, plan, lambda cell: unusable_snapshots(cell, snapshots))

    def _problems_of_units(self, benchmark: Benchmark, plan: Plan) -> list[Problem]:
        """Lists faults on units that the deployment or the units' owners do not allow."""
        if not self.settings.under_load:
            return admission.in_all_cells(benchmark, plan, forbidden_units)
        units = units_of(plan)
        objections = self.unit_requests.objections(units) if units else {}
        return admission.in_all_cells(benchmark, plan, lambda cell: untouchable_units(cell, objections))

    def _targets(
        self, benchmark: Benchmark, plan: Plan, allowed: Sequence[str]
    ) -> tuple[dict[str, Balancer], list[Problem]]:
        """Returns the load balancers that targets name, and the problems of targets; looks up none if one is not
        allowed.
        """
        forbidden = admission.in_all_cells(benchmark, plan, lambda cell: forbidden_targets(cell, allowed))
        targets = [target for cell in plan.cells for target in cell.benchmark.targets]
        if forbidden or not targets:
            return {}, forbidden
        around = read_surroundings(self.ec2, self.elb, targets, self.vpc, self.subnets)
        problems = admission.in_all_cells(benchmark, plan, lambda cell: unreachable_targets(cell, around))
        return {name: one for name, one in around.balancers.items() if one is not None}, problems

    def _new(self, run: str, benchmark: Benchmark, plan: Plan, caller: str, now: datetime) -> Run:
        return Run(
            run=run,
            name=benchmark.name,
            at=now,
            expires_at=now + timedelta(seconds=benchmark.expires_after),
            requested_by=caller,
            cells=len(plan.cells),
            nodes=plan.nodes,
            execution=self.machines.execution(run),
            standing=_standing(benchmark) if benchmark.standing else None,
            size=benchmark.size,
            timetable=() if benchmark.standing else timetable(_longest(plan)),
        )


def _longest(plan: Plan) -> Benchmark:
    """Returns the benchmark of the cell that is expected to take longest."""
    return max((cell.benchmark for cell in plan.cells), key=expected_seconds)


def _standing(fleet: Benchmark) -> Standing:
    backups = {one.role: one.spot_timeout for one in fleet.fleets if one.backup}
    return Standing(
        {one.role: one.count for one in fleet.fleets},
        ready_within=fleet.longest + AROUND + max(backups.values(), default=0),
        backups=backups,
        max_prices={one.role: one.max_price for one in fleet.fleets if one.max_price is not None},
        ranks=fleet.ranks,
        fixed=frozenset(one.role for one in fleet.fleets if one.fixed),
        queue=fleet.queue,
        scales={one.role: one.scale for one in fleet.fleets if one.scale},
        heals={one.role: one.heal for one in fleet.fleets if one.heal},
        healths={one.role: one.health for one in fleet.fleets if one.health},
        works={one.role: one.work for one in fleet.fleets if one.work},
        watched=frozenset(fleet.watched_roles),
        extends=True,
    )


def _digest(benchmark: Benchmark, plan: Plan, files: Mapping[str, bytes]) -> str:
    """Returns a hash of everything that a run consists of."""
    contents = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    documents = [to_document(benchmark), to_plan_document(plan), contents]
    return hashlib.sha256(json.dumps(documents, sort_keys=True).encode()).hexdigest()
