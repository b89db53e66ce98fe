"""Launches one cell: records what it needs, then creates it. All of it can be repeated; nothing is created twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from troop.bench.admission.merging import for_nodes
from troop.bench.admission.reach import balancers_of, egress_to_targets, targets_document
from troop.bench.aws.cell_store import CellStore
from troop.bench.aws.fleets import Fleets
from troop.bench.aws.run_table import RunTable
from troop.bench.aws.service_roles import ServiceRoles
from troop.bench.definition import names
from troop.bench.definition.definition import ON_DEMAND, Benchmark, Fleet
from troop.bench.definition.plan import from_plan_document
from troop.bench.fleets.choices import chosen
from troop.bench.fleets.fleet_requests import Image, LaunchImpossibleError, architecture, choose_subnets
from troop.bench.fleets.user_data import FORMAT, user_data
from troop.bench.flows import queueing
from troop.bench.flows.capacity import choices_at
from troop.bench.flows.cost_records import over_budget
from troop.bench.flows.queueing import Queueing
from troop.bench.living import orders
from troop.bench.measuring.barriers import BarrierState, barrier
from troop.bench.records.record import CellStatus, Kind, Launch, Resource, Run
from troop.shared import moments
from troop.shared.errors import TroopError

LONGEST = timedelta(seconds=130)
"""Time after which Lambda has ended the function of this step."""


class LaunchTooLateError(TroopError):
    """The step has outlasted its right to create resources; a retry gets a new right."""


@dataclass(frozen=True)
class Network:
    """Where nodes are launched, as ids."""

    vpc: str
    subnets: tuple[str, ...]


@dataclass(frozen=True)
class Launching:
    """Creates a cell's fleets.

    Attributes:
        deployment: the stack's name.
        tags: of all resources, besides those that tell a run's.
        profile: ARN of the nodes' instance profile.
        role_id: id of the nodes' role, under which IAM lets a node write.
        region: the region of all resources.
        stage: the deployment's stage; "" for none.
        agent: the program that nodes run.
        queueing: creates queues; None in a deployment without them.
    """

    deployment: str
    tags: Mapping[str, str]
    network: Network
    profile: str
    role_id: str
    region: str
    stage: str
    agent: Path
    runs: RunTable
    store: CellStore
    fleets: Fleets
    roles: ServiceRoles
    queueing: Queueing | None
    clock: Callable[[], datetime]

    def run(self, run: str, cell: str) -> None:
        """Launches a cell, unless it is launched already.

        Raises:
            RunClosedError: the run or the cell is closed; nothing more is created.
            MissingRunError: there is no such run or cell.
            DefinitionError: the stored benchmark cannot be read.
            LaunchImpossibleError: it cannot be launched as requested, or the run's budget does not allow it.
            LaunchTooLateError: it took too long.
        """
        record = self.runs.get(run)
        if self.runs.cells.get(run, cell).phase != names.LAUNCH:
            return
        now = self.clock()
        if now >= record.expires_at:
            raise LaunchImpossibleError(f"the run {run} expired at {moments.iso(record.expires_at)}: start another run")
        self.runs.cells.change(run, cell, status=CellStatus.RUNNING, phase=names.LAUNCH, at=now)
        if why := over_budget(self.runs, run, cell):
            raise LaunchImpossibleError(why)
        benchmark = self._benchmark(run, cell)
        self.roles.ensure(spot=any(fleet.is_spot for fleet in benchmark.fleets))
        launch = self.runs.launches.begin(run, cell, now + LONGEST)
        try:
            self._launch(record, launch, benchmark)
        finally:
            self.runs.launches.end(launch)
        self.runs.cells.change(run, cell, phase=names.BOOT, at=self.clock())

    def _benchmark(self, run: str, cell: str) -> Benchmark:
        """Returns the cell's benchmark, and stores it under the cell for its nodes and the other steps."""
        planned = from_plan_document(self.store.read(names.plan_key(run))).benchmark_of(cell)
        benchmark = chosen(planned, choices_at(self.store, run, cell))
        self.store.write(names.cell_definition_key(run, cell), for_nodes(benchmark))
        return benchmark

    def _launch(self, record: Run, launch: Launch, benchmark: Benchmark) -> None:
        run, cell = launch.run, launch.cell
        types = {fleet.instance_type for fleet in benchmark.fleets}
        subnets, offered = self.fleets.subnets(self.network.subnets), self.fleets.zones_of(types)
        where = {f.role: choose_subnets(f, subnets, offered[f.instance_type]) for f in benchmark.fleets}
        used = sorted({subnet for its in where.values() for subnet in its})
        site = self._queueing.site(self.network.vpc, subnets, used) if benchmark.queue else None
        images = self._images(run, benchmark)
        s3 = self.fleets.s3_prefix_list()
        agent_sha256 = self._agent(run)
        self.runs.resources.plan(_planned(launch, benchmark, self.clock()))
        if site:
            self.runs.resources.plan(queueing.planned(run, cell, site, self.clock()))
        for step in benchmark.steps:
            self.store.write(names.barrier_key(run, cell, step.name), barrier(step, BarrierState.HOLD))
        if benchmark.standing:
            self.store.write(names.orders_key(run, cell), orders.to_document(record.expires_at))

        tags = {**self.tags, **names.tags(self.deployment, run, cell, moments.iso(record.expires_at))}
        group_name = names.security_group_name(run, cell)
        self._check(launch)
        group = self.fleets.security_group(group_name, self.network.vpc, tags | {"Name": group_name})
        self._created(launch, Kind.SECURITY_GROUP, group_name)
        self.fleets.restrict(group, s3)
        if benchmark.queue and site:
            create = partial(self._create, launch)
            document = self._queueing.create(launch, benchmark.queue, site, group, tags, create)
            results = {"bucket": self.store.bucket, "region": self.region, "results": names.work_results_prefix(run)}
            self.store.write(names.queue_key(run, cell), document | results)
        groups = {fleet.role: [group] for fleet in benchmark.fleets}
        for role, more in self._groups_for_targets(launch, benchmark, tags):
            groups[role].append(more)
        for fleet in benchmark.fleets:
            if fleet.placement is not None:
                name = names.fleet_name(run, cell, fleet.role)
                self._check(launch)
                self.fleets.placement_group(name, fleet.placement, names.fleet_tags(tags, fleet.role))
                self._created(launch, Kind.PLACEMENT_GROUP, name)
        templates = {}
        for fleet in benchmark.fleets:
            name = names.fleet_name(run, cell, fleet.role)
            data = user_data(self._boot(record, launch, fleet, agent_sha256))
            self._check(launch)
            templates[fleet.role] = self.fleets.launch_template(
                name,
                fleet,
                images[fleet.role],
                groups[fleet.role],
                self.profile,
                data,
                names.fleet_tags(tags, fleet.role),
                name if fleet.placement is not None else None,
            )
            self._created(launch, Kind.LAUNCH_TEMPLATE, name)
        for fleet in benchmark.fleets:  # last, because costs begin here
            name = names.fleet_name(run, cell, fleet.role)
            self._check(launch)
            self.fleets.group(
                name,
                fleet,
                templates[fleet.role],
                where[fleet.role],
                names.fleet_tags(tags, fleet.role),
                is_balanced=not benchmark.standing,  # a standing fleet needs its nodes more than equal zones
                is_protected=benchmark.queue is not None,
            )
            self.fleets.keep(name, record.expires_at, rebalances=benchmark.rebalances)
            self._created(launch, Kind.AUTO_SCALING_GROUP, name)
            if fleet.backup:
                its = templates[fleet.role], where[fleet.role], tags
                self._backup(record, launch, benchmark, fleet, *its)

    def _backup(
        self,
        record: Run,
        launch: Launch,
        benchmark: Benchmark,
        fleet: Fleet,
        template: str,
        subnets: Sequence[str],
        tags: dict[str, str],
    ) -> None:
        """Creates the backup group of a standing fleet without nodes: whatever resizes it later needs no permission to
        launch.
        """
        name = names.backup_name(launch.run, launch.cell, fleet.role)
        empty = replace(fleet, count=0, purchase=ON_DEMAND)
        self._check(launch)
        self.fleets.group(
            name,
            empty,
            template,
            subnets,
            names.fleet_tags(tags, fleet.role),
            is_balanced=False,
            is_protected=benchmark.queue is not None,
        )
        self.fleets.keep(name, record.expires_at, rebalances=benchmark.rebalances)
        self._created(launch, Kind.AUTO_SCALING_GROUP, name)

    def _groups_for_targets(
        self, launch: Launch, benchmark: Benchmark, tags: dict[str, str]
    ) -> Iterator[tuple[str, str]]:
        """Creates another security group for each role with targets, and stores the targets for its scripts. Yields the
        role and the group's id.
        """
        run, cell = launch.run, launch.cell
        named = any(target.load_balancer for target in benchmark.targets)
        balancers = balancers_of(self.store.read(names.load_balancers_key(run))) if named else {}
        for role in _with_targets(benchmark):
            self.store.write(names.targets_key(run, cell, role), targets_document(benchmark, role, balancers))
            name = names.fleet_name(run, cell, role)
            self._check(launch)
            group = self.fleets.security_group(name, self.network.vpc, names.fleet_tags(tags, role))
            self._created(launch, Kind.SECURITY_GROUP, name)
            self.fleets.open(group, egress_to_targets(benchmark, role, balancers))
            yield role, group

    @property
    def _queueing(self) -> Queueing:
        if self.queueing is None:
            raise LaunchImpossibleError("this deployment has no queues any more: set troop:queues, and deploy it again")
        return self.queueing

    def _create(self, launch: Launch, kind: Kind, name: str, create: Callable[[], Any]) -> Any:
        self._check(launch)
        created = create()
        self._created(launch, kind, name)
        return created

    def _check(self, launch: Launch) -> None:
        check_right(self.runs, launch, self.clock())

    def _created(self, launch: Launch, kind: Kind, name: str) -> None:
        now = self.clock()
        self.runs.resources.created([Resource(launch.run, launch.cell, kind, name, planned_at=now)], now)

    def _images(self, run: str, benchmark: Benchmark) -> dict[str, Image]:
        """Returns the image for each role. All cells of a run and all tries of this step use the same ones: those that
        the admission of the run has checked, and the default image that was looked up first.
        """
        types = {fleet.instance_type for fleet in benchmark.fleets if fleet.image is None}
        supported = self.fleets.architectures(types) if types else {}
        defaults = {one: architecture(one, supported[one]) for one in types}
        known = {arch: self._image(names.image_key(run, arch), arch) for arch in sorted(set(defaults.values()))}
        return {
            fleet.role: Image(**self.store.read(names.image_key(run, fleet.image)))
            if fleet.image is not None
            else known[defaults[fleet.instance_type]]
            for fleet in benchmark.fleets
        }

    def _image(self, key: str, architecture: str) -> Image:
        if (image := self.store.find(key)) is None:
            newest = json.dumps(asdict(self.fleets.newest_image(architecture)))
            image = self.store.put_once(key, newest.encode(), "application/json")
        return Image(**json.loads(image))

    def _agent(self, run: str) -> str:
        """Returns the SHA-256 of the run's agent: the agent that was deployed when the first cell was launched."""
        key = names.agent_key(run)
        body = self.store.find(key)
        if body is None:
            body = self.store.put_once(key, self.agent.read_bytes())
        return hashlib.sha256(body).hexdigest()

    def _boot(self, record: Run, launch: Launch, fleet: Fleet, agent_sha256: str) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "bucket": self.store.bucket,
            "region": self.region,
            "run": launch.run,
            "cell": launch.cell,
            "role": fleet.role,
            "role_id": self.role_id,
            "agent_sha256": agent_sha256,
            "expires_at": int(record.expires_at.timestamp()),
            "deployment": self.deployment,
            "stage": self.stage,
            **({"standing": True} if record.standing else {}),
        }


def check_right(runs: RunTable, launch: Launch, now: datetime) -> None:
    """Checks the right to create resources; call it before each creation.

    Raises:
        RunClosedError: the run or the cell is closed.
        LaunchTooLateError: the right has expired.
    """
    runs.launches.check_open(launch.run, launch.cell)
    if now >= launch.until:
        raise LaunchTooLateError(f"the launch of {launch.run} {launch.cell} did not end by {launch.until}")


def _planned(launch: Launch, benchmark: Benchmark, now: datetime) -> Iterator[Resource]:
    """Yields the resources that Troop names; AWS names instances and volumes."""
    yield Resource(
        launch.run, launch.cell, Kind.SECURITY_GROUP, names.security_group_name(launch.run, launch.cell), now
    )
    for role in _with_targets(benchmark):
        yield Resource(
            launch.run, launch.cell, Kind.SECURITY_GROUP, names.fleet_name(launch.run, launch.cell, role), now
        )
    for kind in (Kind.PLACEMENT_GROUP, Kind.LAUNCH_TEMPLATE, Kind.AUTO_SCALING_GROUP):
        for fleet in benchmark.fleets:
            if kind is Kind.PLACEMENT_GROUP and fleet.placement is None:
                continue
            yield Resource(launch.run, launch.cell, kind, names.fleet_name(launch.run, launch.cell, fleet.role), now)
    for fleet in benchmark.fleets:
        if fleet.backup:
            name = names.backup_name(launch.run, launch.cell, fleet.role)
            yield Resource(launch.run, launch.cell, Kind.AUTO_SCALING_GROUP, name, now)


def _with_targets(benchmark: Benchmark) -> list[str]:
    """Returns the roles that some target names, in the order of the fleets."""
    named = {role for target in benchmark.targets for role in target.roles}
    return [fleet.role for fleet in benchmark.fleets if fleet.role in named]
