"""Runs a node's life in a cell: download, registration, then phase by phase."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable

from agent import block_devices, faults, processes
from agent import definition as definitions
from agent.barrier import Address, Release, Waiter
from agent.clock import ClockWatch
from agent.command import Command, line_for
from agent.definition import Definition, Setup
from agent.errors import AgentError, Lost
from agent.expiry import Expiry
from agent.faults import Victim
from agent.health_watch import HealthWatch
from agent.initialization import read_whole
from agent.keeper import Keeper
from agent.keys import Keys
from agent.live import OwnObject
from agent.log import about, say
from agent.nvme import Volumes
from agent.output import BoundedOutput
from agent.phase import Done, blank, perform
from agent.place import Place
from agent.roster import rank_in, seat_in
from agent.sampler import limits
from agent.spot import Watch
from agent.store import Store
from troop.measure.s3.addresses import address_of, endpoint_of
from troop.measure.s3.credentials import CredentialStore
from troop.measure.summary import LOST, OK, Clock

NODE_FORMAT = "troop.node/1"
TARGETS_FORMAT = "troop.targets/1"
INTERRUPTION_FORMAT = "troop.interruption/1"
ROSTER_TRIES = 60
SEAT_SECONDS, ROSTER_SECONDS = 3.0, 10.0
"""Seconds between two looks for a rank, and at the roster later, in a standing fleet with ranks."""
STAYING = 3600.0
"""Seconds of one wait of a standing fleet's node; a signal ends it."""
NOTICE_SECONDS, LEAVE_SECONDS = 90.0, 20.0
"""Seconds that processes of scripts have to end after spot's notice, of 120, and otherwise."""
HAND_BACK_SECONDS = 2.5
"""Seconds before these processes are asked to end, in which the threads of workers hand their tasks back."""
TIMED_OUT_CODE, CANNOT_RUN_CODE = 124, 126
"""Codes of a restart whose script took too long, or could not be run, as shells have them."""


class Session:
    """The session of one node. ``phase`` is the current phase or point, before registration the first one; None if
    there is none.
    """

    def __init__(self, place: Place, store: Store, expiry: Expiry, sleep: Callable[[float], None] = time.sleep) -> None:
        self._place, self._store, self._expiry, self._sleep = place, store, expiry, sleep
        self._keeper: Keeper | None = None
        self._keys = Keys(place.boot.run, place.boot.cell, place.boot.role_id)
        self._watch = ClockWatch()
        self._waiter = Waiter(store, self._watch, sleep)
        self._rank: int | None = None
        self.watch = Watch(self._interrupted)
        self._registered = False
        self.phase = None

    @property
    def phase(self) -> str | None:
        """The current phase or point, which every log line contains."""
        return self._phase

    @phase.setter
    def phase(self, phase: str | None) -> None:
        self._phase = phase
        about(phase=phase)

    def run(self) -> bool:
        """Runs all phases. Returns false if the agent had to end during one.

        Raises:
            AgentError: the node cannot continue; :meth:`report` informs the workflow.
        """
        definition = self._fetch()
        if definition.own_data:
            self._place = replace(self._place, data=f"s3://{self._place.boot.bucket}/{self._keys.data}")
        if definition.standing:
            self._begin_keeping(definition)
        self._initialize(definition.read_volumes)
        if definition.faults:
            faults.prepare(definition.methods, self._place.identity.address)
        if definition.standing:
            return self._stand(definition)
        self.phase = definition.steps[0] if definition.steps else None
        self._register(definition)
        self._registered = True
        roster = Address(self._store, self._keys.roster)
        live = self._own_object(self._keys.live(self._place.identity.id))
        for self.phase in definition.steps:
            self._remember()
            roster.url()  # signed now, because a release leaves only seconds
            say(f"{self.phase}: waiting for the release")
            release = self._waiter.wait(self._keys.barrier(self.phase))
            if release is None:
                say("the workflow ended the run")
                break
            clock = self._watch.estimate()
            if self._rank is None:
                self._rank = self._find_rank(roster)
            if not release.includes(self._place.boot.role, self._rank):
                say(f"{self.phase}: takes no part, as one of rank {self._rank}")
                continue
            if release.point is not None:
                self._write_parameters(
                    self._place.parameters_of(self.phase), {**definition.parameters, **release.parameters}
                )
            if self.phase in definition.faults:
                self._suffer(self.phase, release, clock)
                continue
            size = definition.summary_bytes
            done = perform(self._place, self.phase, self._rank, release, clock, live.put, size)
            self._deliver(done)
            if done.summary.outcome == LOST:
                return False
        self.phase = None
        return True

    def _suffer(self, phase: str, release: Release, clock: Clock | None) -> None:
        """Carries out the planned faults of a step that hit this node, whose role does not run the step's script."""
        node = self._place.identity.id
        if not any(node in fault.nodes for fault in release.faults):
            say(f"{phase}: no fault hits this node")
            return
        stored = self._own_object(self._keys.fault(phase, node))
        victim = Victim(self._place, phase, self._rank, release, clock, stored.put, self._sleep)
        victim.carry_out()
        if output := victim.output.content():
            self._put_output(phase, output)

    def report(self, problem: str, outcome: str = LOST) -> None:
        """Reports to the workflow why this node does not continue.

        The reason goes into the phase's summary. Before registration it also goes into the registration, except for a
        node that spot takes back: that is not a failure, and a new node replaces it.
        """
        if not self._registered and self.watch.notice is None:
            identity = self._place.identity
            failed = {"format": NODE_FORMAT, "id": identity.id, "role": self._place.boot.role, "error": problem}
            self._put(failed, self._keys.node(identity.id), self._place.home / "node.json")
        if self.phase is not None:
            begun = blank(self._place, self.phase, self._rank or 0, self._watch.estimate())
            summary = replace(begun, outcome=outcome, reason=problem, **self._spot_fields())
            self._put_summary(summary.document())

    def report_reboot(self) -> None:
        """Reports that the node rebooted: nothing that it ran before continues.

        Only a node of a benchmark's roster keeps its registration: the report reads it, the workflow no longer does.

        Raises:
            AgentError: the report cannot be delivered.
        """
        place = self._place
        self._registered = place.roster.exists() and not self._is_standing()
        begun = place.current.read_text(encoding="utf-8") if place.current.exists() else ""
        self.phase = begun if begun and not place.summary(begun).exists() else None
        self.report("the node rebooted")

    def _is_standing(self) -> bool:
        try:
            return definitions.read(self._place.home / "definition.json", self._place.boot.role).standing
        except AgentError:  # it rebooted before it had one
            return False

    def _own_object(self, key: str) -> OwnObject:
        boot = self._place.boot
        bucket = address_of(boot.bucket, boot.region, endpoint_of(os.environ))
        return OwnObject(boot, bucket, key, CredentialStore)

    def _remember(self) -> None:
        """Stores the current phase, also for after a reboot."""
        with self._place.current.open("w", encoding="utf-8") as file:
            file.write(self.phase or "")
            file.flush()
            os.fsync(file.fileno())

    def _spot_fields(self) -> dict[str, Any]:
        """Returns the fields about spot for a phase's summary."""
        return {"interruption": self.watch.notice, "rebalance_recommended_at": self.watch.rebalance_at}

    def _interrupted(self, notice: dict[str, str]) -> None:
        """Stores the notice; called in the watch's thread, in parallel to the session."""
        node = self._place.identity.id
        document = {"format": INTERRUPTION_FORMAT, "id": node, "role": self._place.boot.role, "seen_at": time.time()}
        self._put({**document, **notice}, self._keys.interruption(node), self._place.home / "interruption.json")

    def _fetch(self) -> Definition:
        """Downloads what the phases need, before registration."""
        place, home = self._place, self._place.home
        self._store.get(self._keys.definition, home / "definition.json")
        definition = definitions.read(home / "definition.json", place.boot.role)
        for folder in (place.files, place.artifacts, place.shared):
            folder.mkdir(exist_ok=True)
        for name in definition.files:
            target = _with_folder(place.files / name)
            self._store.get(self._keys.file(name), target)
            target.chmod(0o755)
        for name, sha256 in definition.artifacts.items():
            target = _with_folder(place.artifacts / name)
            self._store.get(self._keys.artifact(sha256), target)
            if _sha256(target) != sha256:
                raise AgentError(f"artifact {name} differs from the staged file: its SHA-256 is not {sha256}")
        self._write_parameters(place.parameters, definition.parameters)
        if definition.has_targets:
            self._store.get(self._keys.targets(place.boot.role), place.targets)
        else:
            place.targets.write_text(json.dumps({"format": TARGETS_FORMAT, "targets": {}}), encoding="utf-8")
        return definition

    @staticmethod
    def _initialize(devices: Sequence[str]) -> None:
        """Reads volumes whole. Before registration, so that the fleet's boot timeout includes it, and every node is
        ready when the first phase begins.
        """
        if devices:
            volumes = Volumes()
            read_whole({device: block_devices.path_of(device, volumes.mapped_name) for device in devices})

    @staticmethod
    def _write_parameters(path: Path, parameters: Mapping[str, Any]) -> None:
        _with_folder(path).write_text(json.dumps(parameters), encoding="utf-8")

    def _stand(self, definition: Definition) -> bool:
        """Sets up a node of a standing fleet, registers it, and waits until a signal ends the agent.

        Registration after the setup distinguishes ready nodes from running ones.
        """
        roster, keeper = Address(self._store, self._keys.roster), self._keeper
        assert keeper is not None
        if definition.ranks:
            self._rank = self._await_seat(roster)
        for setup in definition.setup:
            self.phase = setup.phase
            self._remember()
            release = Release(setup.script, setup.timeout_seconds, 0.0, 0.0, None)
            done = perform(self._place, setup.phase, self._rank, release, None)
            self._deliver(done)
            self.phase = None  # its summary is stored; later failures go into the registration
            if done.summary.outcome == LOST:
                return False
            if done.summary.outcome != OK:
                raise AgentError(done.summary.reason or f"{setup.script} failed")
        self._register(definition)
        self._registered = True
        say("ready; waiting until the fleet ends")
        if keeper.is_watched:
            keeper.serve(self._watch_health(definition, keeper))
        while True:
            repair = keeper.next_repair(ROSTER_SECONDS if definition.ranks or keeper.is_watched else STAYING)
            if repair is not None and definition.restart is not None:
                self._restart(definition.restart, repair, keeper)
            if definition.ranks:
                self._refresh_roster(roster)

    def _begin_keeping(self, definition: Definition) -> None:
        """Begins to read orders before anything that takes long, because the fleet may have been extended before this
        boot: otherwise the node would end meanwhile.
        """
        place, node = self._place, self._place.identity.id
        if definition.is_watched:
            processes.adopt()
            place.work.mkdir(exist_ok=True)
        if definition.queue:
            self._store.get(self._keys.queue, place.work / "queue.json")
        self._keeper = Keeper(
            place,
            self._own_object(self._keys.orders).get,
            self._own_object(self._keys.report(node)).put,
            self._expiry,
            lambda: self.watch.notice,
            is_watched=definition.is_watched,
        )
        self._keeper.start()

    def _watch_health(self, definition: Definition, keeper: Keeper) -> HealthWatch | None:
        if definition.health is None and definition.work is None:
            return None
        address, folder = self._place.identity.address, keeper.folder
        health = HealthWatch(
            address,
            definition.health,
            definition.work,
            folder.counts,
            lambda: folder.reason is not None,
            keeper.change,
            fail_after=definition.fail_after,
        )
        health.start()
        return health

    def _restart(self, restart: Setup, repair: str, keeper: Keeper) -> None:
        """Restarts the application by a script of the folder; a failure is reported, and ends nothing."""
        say(f"repair {repair}: restarting the application")
        keeper.begin_repair(repair)
        release = Release(restart.script, restart.timeout_seconds, 0.0, 0.0, None, repair=repair)
        environment = self._place.environment(restart.phase, self._rank, release, time.time())
        folder, output = self._place.phase(restart.phase), BoundedOutput()
        self._place.results(restart.phase).mkdir(parents=True, exist_ok=True)
        until = time.monotonic() + restart.timeout_seconds
        try:
            ended = Command(line_for(self._place.files / restart.script), folder, environment, output).wait(until)
            code = TIMED_OUT_CODE if ended.code is None else ended.code
            say(f"repair {repair}: {restart.script} {ended.words(restart.timeout_seconds)}")
        except OSError as error:
            code = CANNOT_RUN_CODE
            output.write(f"cannot run {restart.script}: {error}\n".encode())
        keeper.end_repair(repair, code)
        self._put_output(restart.phase, output.content())

    def leave(self) -> None:
        """Ends the work of a watched node: its workers hand their tasks back, and all processes of scripts end.

        Raises:
            Lost: a second signal came, and a third one.
        """
        keeper = self._keeper
        if keeper is None or not keeper.is_watched:
            return
        try:
            self._end_work(keeper, LEAVE_SECONDS if self.watch.notice is None else NOTICE_SECONDS)
        except Lost:  # the instance is going down already
            self._end_work(keeper, LEAVE_SECONDS)

    def _end_work(self, keeper: Keeper, seconds: float) -> None:
        if keeper.leave():
            self._sleep(HAND_BACK_SECONDS)
        if not processes.end(seconds):
            say("some processes of scripts did not end in time")
        keeper.close()

    def _await_seat(self, roster: Address) -> int:
        """Waits for the rank of a standing fleet's node; the fleet's end ends the wait."""
        say("waiting for a rank")
        while True:
            body = self._waiter.fetch(roster)
            rank = None if body is None else seat_in(body, self._place.identity.id)
            if body is not None and rank is not None:
                self._write_roster(body)
                say(f"has the rank {rank}")
                return rank
            self._sleep(SEAT_SECONDS)

    def _refresh_roster(self, roster: Address) -> None:
        """Reads the roster again. A failure ends nothing, because the node serves: the next look tries again."""
        try:
            body = self._waiter.fetch(roster)
        except AgentError as error:
            say(f"cannot read the roster: {error}")
            return
        if body is not None:
            self._write_roster(body)

    def _write_roster(self, body: bytes) -> None:
        """Replaces the roster at once, because scripts read it at any time."""
        if not self._place.roster.exists() or self._place.roster.read_bytes() != body:
            new = self._place.roster.with_suffix(".new")
            new.write_bytes(body)
            new.replace(self._place.roster)

    def _register(self, definition: Definition) -> None:
        if definition.steps:
            self._waiter.measure_clock(self._keys.barrier(definition.steps[0]))
        clock, identity = self._watch.estimate(), self._place.identity
        document = {
            "format": NODE_FORMAT,
            "id": identity.id,
            "role": self._place.boot.role,
            "zone": identity.zone,
            "address": identity.address,
            "instance_type": identity.instance_type,
            "architecture": platform.machine(),
            "image": identity.image,
            "kernel": platform.release(),
            "agent": self._place.boot.agent_sha256,
            "python": platform.python_version(),
            "limits": limits(),
            "registered_at": time.time(),
            "clock": clock
            and {"offset_seconds": clock.offset_seconds, "uncertainty_seconds": clock.uncertainty_seconds},
        }
        self._put(document, self._keys.node(identity.id), self._place.home / "node.json")
        say(f"registered as {identity.id}, {self._place.boot.role}, in {identity.zone}")

    def _find_rank(self, roster: Address) -> int:
        for _ in range(ROSTER_TRIES):
            body = self._waiter.fetch(roster)
            if body is not None:
                self._place.roster.write_bytes(body)
                return rank_in(body, self._place.identity.id)
            self._sleep(1)
        raise AgentError("cannot download the roster")

    def _deliver(self, done: Done) -> None:
        """Uploads the summary last: when it exists, everything else does."""
        self._put_output(done.summary.phase, done.output)
        self._put_summary(replace(done.summary, **self._spot_fields()).document())

    def _put_output(self, phase: str, output: bytes) -> None:
        packed = _with_folder(self._place.phase(phase) / "output.log.gz")
        packed.write_bytes(gzip.compress(output, mtime=0))
        try:
            self._store.put(packed, self._keys.output(phase, self._place.identity.id))
        except AgentError as error:
            say(f"{phase}: cannot upload the script's output: {error}")

    def _put_summary(self, document: dict[str, Any]) -> None:
        phase, node = document["phase"], document["node"]
        self._put(document, self._keys.summary(phase, node), self._place.summary(phase))

    def _put(self, document: dict[str, Any], key: str, path: Path) -> None:
        _with_folder(path).write_text(json.dumps(document, separators=(",", ":")), encoding="utf-8")
        self._store.put(path, key)


def _with_folder(path: Path) -> Path:
    """Creates the path's folder and returns the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
