"""Implements the steps of one cell after its launch, and those of the run around its cells.

Each step can be repeated at any time: it acts on what it finds, and never changes a recorded verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from troop.bench.aws.cell_store import CellStore, Listed, encoded, newest
from troop.bench.aws.fleet_reader import Ended, FleetReader
from troop.bench.aws.instance_facts import resources_of
from troop.bench.aws.run_table import RunTable
from troop.bench.definition import names
from troop.bench.definition.baseline import is_baseline
from troop.bench.definition.definition import Benchmark, Step, from_document, is_load
from troop.bench.definition.money import BILLED
from troop.bench.definition.roster import Node, Roster, make_roster, parse_node
from troop.bench.definition.roster import from_document as roster_from
from troop.bench.definition.roster import to_document as roster_document
from troop.bench.fleets import doubts
from troop.bench.fleets.booting import FleetStatus, boot_verdict
from troop.bench.flows.capacity import move_on
from troop.bench.flows.cell_faults import POLL, CellFaults
from troop.bench.flows.replacing import Replacing
from troop.bench.measuring import failure, judging, node_faults, searching, verdicts
from troop.bench.measuring.attempts import latest
from troop.bench.measuring.barriers import BarrierState, barrier, began, chosen, is_released, release
from troop.bench.measuring.failure import Load
from troop.bench.measuring.open_loop import targets
from troop.bench.measuring.poll_waits import FIRST_WAIT, wait, wait_in_phase
from troop.bench.measuring.verdicts import NodeOutcome, State, Verdict
from troop.bench.records.record import FINAL, CellStatus, RunStatus
from troop.bench.records.stored_table import stored_table
from troop.bench.results.figures import DAMAGE, FORMAT, part
from troop.measure import summary as summaries
from troop.measure.live import Live, LiveError
from troop.measure.live import parse as parse_live
from troop.measure.merge import Merger
from troop.measure.partial import partial
from troop.measure.summary import HEAD_BYTES, MOST_BYTES, OK, Summary, SummaryError
from troop.measure.summary_size import mib
from troop.shared import codec
from troop.shared.errors import TroopError
from troop.shared.garbage import without_collections

READ_EARLY = 64
"""Documents that are read while some nodes are still missing: the newest, to find failures early."""

MOST_REGISTRATIONS = 500
"""Registrations that are read at a time, all of them small: any can report an error, and time to replace the node is
short.
"""

MOST_CONSOLES = 20
"""The most nodes whose console output is stored."""


MOST_IN_PART = 128 << 20
"""The most bytes of results of which a part of the report is stored: a MiB takes up to 0.25 s."""


class CellDamagedError(TroopError):
    """A document that an earlier step wrote for the cell is missing or changed."""


class UnjudgedPointError(TroopError):
    """A search cannot go on from a point, because nobody knows whether it holds the expectations."""


@dataclass(frozen=True)
class Answer:
    """A step's answer to the workflow, at most a few hundred bytes.

    Attributes:
        phase_index: of the current or next step (:attr:`~troop.bench.definition.definition.Benchmark.steps`), from 0.
        wait_seconds: until the next check.
    """

    run: str
    cell: str = ""
    state: State = State.READY
    phase_index: int = 0
    wait_seconds: int = 0
    reason: str | None = None


class Results:
    """The results of a cell, phase by phase and point by point. Only their encoded form is in memory.

    Args:
        is_complete: whether all measured phases and points are there.

    Attributes:
        phases: number of phases and points.
        table: the rows of all of them.
        limits: whether they hold the file's limits, see :func:`troop.bench.measuring.judging.entry`.
        faults: their planned faults, see :func:`troop.bench.measuring.judging.fault_entries`.
        requests: the requests that nodes have counted, as in :class:`troop.bench.records.record.Cell`.
    """

    def __init__(self, *, is_complete: bool = True) -> None:
        self.table: list[dict[str, Any]] = []
        self.limits: list[dict[str, Any]] = []
        self.faults: list[dict[str, Any]] = []
        self.requests: Counter[str] = Counter()
        self._is_complete = is_complete
        self._encoded: list[bytes] = []
        self._parts: list[bytes] = []

    @property
    def phases(self) -> int:
        return len(self._encoded)

    def add(self, phase: Mapping[str, Any], *, is_searched: bool = False) -> None:
        """Adds a phase or a point, as merged.

        Args:
            is_searched: whether it is a point of a search.
        """
        place = {key: phase[key] for key in ("phase", "point", "repeat", "parameters") if key in phase}
        place |= {"has_faults": True} if phase.get("faults") else {}
        self.table += [{**place, **row} for row in phase["table"]]
        if entry := judging.entry(phase, is_searched=is_searched):
            self.limits.append(entry)
        self.faults += judging.fault_entries(phase)
        self.requests.update({name: n for name, n in phase.get("requests", {}).items() if name in BILLED})
        self._encoded.append(encoded(phase))
        if sum(map(len, self._encoded)) <= MOST_IN_PART:
            with suppress(*DAMAGE), without_collections():
                self._parts.append(encoded(part(phase)))

    def bodies(self, searches: list[dict[str, Any]]) -> tuple[bytes, bytes | None]:
        """Returns the stored document, and that of the cell's part of the report; None for a part without all phases.

        Args:
            searches: see :func:`troop.bench.measuring.searching.documents`.
        """
        head: dict[str, Any] = {"format": "troop.results/1"} | ({} if self._is_complete else {"complete": False})
        head |= {"searches": searches} if searches else {}
        body = _with_phases(head, self._encoded)
        if len(self._parts) < self.phases:
            return body, None
        return body, _with_phases({"format": FORMAT, "sha256": sha256(body).hexdigest(), "head": head}, self._parts)


def _with_phases(document: Mapping[str, Any], phases: Sequence[bytes]) -> bytes:
    return encoded(document)[:-1] + b',"phases":[' + b",".join(phases) + b"]}"


@dataclass(frozen=True)
class CellSteps:
    """The steps of cells and runs."""

    runs: RunTable
    store: CellStore
    reader: FleetReader
    replacing: Replacing
    faults: CellFaults
    clock: Callable[[], datetime]

    # Around the cells

    def open(self, run: str, execution: str) -> tuple[str, int]:
        """Marks a run as running and stores the list of its cells, in the order of their start.

        Returns:
            The list's key (``[{"run", "cell"}]``), and how many cells run at a time.

        Raises:
            RunClosedError: the run was closed before.
            MissingRunError: there is no such run.
        """
        self.runs.set_running(run, execution)
        key = names.cells_key(run)
        cells = [cell for cell in self.runs.cells.get_all(run) if cell.attempt == 1]  # children add the others
        cells.sort(key=lambda cell: cell.order or 0)  # a run of an earlier version has no order but that of the names
        self.store.write(key, [{"run": run, "cell": cell.cell} for cell in cells])
        return key, int(self.store.read(names.plan_key(run))["parallel"])

    def settle(self, run: str, error: str = "", cause: str = "") -> tuple[RunStatus, str | None]:
        """Ends all cells that have not ended. Returns the run's final status, and why it is not SUCCEEDED.

        Args:
            error: with which the cells' map failed; "" if it did not.
        """
        record = self.runs.get(run)
        now = self.clock()
        closed = record.closed_at is not None
        why = verdicts.error_text(error, cause) if error else "its workflow ended without a result"
        for cell in self.runs.cells.get_all(run):
            if cell.status not in FINAL:
                status = CellStatus.STOPPED if closed else CellStatus.FAILED
                self.runs.cells.change(run, cell.cell, status=status, reason=(record.reason if closed else None) or why)
            self.runs.cells.change(run, cell.cell, phase=names.OVER, at=now)
        return verdicts.run_verdict(record, latest(self.runs.cells.get_all(run)))

    # One cell

    def gather(self, run: str, cell: str) -> Answer:
        """Checks whether all nodes are there. If so, freezes the fleets and writes the roster. If not, replaces nodes
        that are silent or report an error, as many as is allowed.

        Returns:
            READY, WAITING, SHORT or FAILED.
        """
        if self.store.find(names.roster_key(run, cell)) is not None:
            return Answer(run, cell, State.READY)
        record, its, now = self.runs.get(run), self.runs.cells.get(run, cell), self.clock()
        benchmark = self._benchmark(run, cell)
        verdict = verdicts.closed_verdict(record, now)
        elapsed = (now - its.phases[names.BOOT]).total_seconds()
        if verdict is None:
            fleets = self.reader.fleets(run, cell, {fleet.role: fleet.count for fleet in benchmark.fleets})
            nodes, registered = self._nodes(run, cell, fleets)
            interrupted = self._interrupted(run, cell, benchmark)
            replaced = self.replacing.replaced(run, cell)
            failed_nodes = self.replacing.failed_nodes(
                run, cell, benchmark, fleets, nodes, registered, elapsed, replaced, interrupted
            )
            gone = replaced.keys() | {failed_node.id for failed_node in failed_nodes}
            verdict = boot_verdict(benchmark, fleets, nodes, elapsed, interrupted, frozenset(gone))
            if verdict.state in (State.WAITING, State.SHORT):
                verdict = move_on(self.store, run, cell, benchmark, fleets) or verdict
            if verdict.state in (State.WAITING, State.SHORT):
                self.replacing.replace(run, cell, benchmark, failed_nodes)
            if verdict.state is State.READY:
                verdict = self._locate(run, cell, benchmark, fleets, nodes, elapsed)
        late = [fleet.spot_timeout for fleet in benchmark.fleets if fleet.is_spot]
        return self._answer(run, cell, verdict, wait_seconds=wait(elapsed, late))

    def release(self, run: str, cell: str, phase_index: int) -> Answer:
        """Releases the barrier of a phase or a point, once. Then merges the point before it, while the nodes work.
        Returns WAITING.

        A search needs the point before it first. When it is over, its other points are released without nodes, and the
        next phase begins; the answer has the index of the step that was released last.

        Raises:
            RunClosedError: the run or the cell is closed.
            SummaryError, CellDamagedError, UnjudgedPointError: as :meth:`collect`.
        """
        self.runs.launches.check_open(run, cell)
        benchmark = self._benchmark(run, cell)
        roster = self._roster(run, cell)
        first, merges_first = phase_index, benchmark.steps[phase_index].search is not None
        if merges_first:
            self._merge_before(run, cell, benchmark, roster, first)
        skipped = 0
        while (step := self._next_step(run, cell, benchmark, phase_index)).is_skipped:
            self._release(run, cell, step, roster)
            skipped += 1
            if phase_index + 1 == len(benchmark.steps):
                return Answer(run, cell, State.WAITING, phase_index, FIRST_WAIT)
            phase_index += 1
        document = self._release(run, cell, step, roster, skipped)
        self.runs.cells.change(run, cell, phase=step.name, at=self.clock(), point=step.point)
        if not merges_first:
            self._merge_before(run, cell, benchmark, roster, first)
        return Answer(run, cell, State.WAITING, phase_index, wait_in_phase(step.phase, began(document), self.clock()))

    def check(self, run: str, cell: str, phase_index: int) -> Answer:
        """Checks the progress of a phase or a point, and hits the units whose moment has come.

        Returns:
            WAITING, NEXT with the next step's index, DONE after the last step, or FAILED.
        """
        record, benchmark, roster = self.runs.get(run), self._benchmark(run, cell), self._roster(run, cell)
        steps, now = benchmark.steps, self.clock()
        step = steps[phase_index]
        barrier_document = self.store.read(names.barrier_key(run, cell, step.name))
        if not is_released(barrier_document):
            raise CellDamagedError(f"the barrier of {run} {cell} {step.name} is no longer released")
        step, start = chosen(benchmark, step, barrier_document), began(barrier_document)
        verdict = verdicts.closed_verdict(record, now)
        if verdict is None:
            self.faults.hit(run, cell, step, start)
            verdict = self._check(run, cell, benchmark, step, roster, now - start)
        if verdict.state is State.NEXT:
            verdict = self.faults.verdict(run, cell, step, start) or verdict
        if verdict.state is State.FAILED:  # perhaps because a teardown has begun to remove the nodes
            verdict = verdicts.closed_verdict(self.runs.get(run), now) or verdict
        if verdict.nodes:
            first = verdict.nodes[0]
            output = self.store.listed(names.output_prefix(run, cell, step.name)).get(first)
            tail = self.store.tail(output.key) if output else ""
            reason = verdicts.with_output(verdict.reason or "", first, tail)
            verdict = Verdict(verdict.state, verdict.status, reason)
        if verdict.state is State.NEXT:
            phase_index += 1
            if phase_index == len(steps):
                verdict = Verdict(State.DONE)
                if self.faults.is_waiting(run, cell, benchmark):
                    phase_index -= 1
                    verdict = Verdict(State.WAITING, wait_seconds=POLL)
        wait_seconds = wait_in_phase(step.phase, start, self.clock(), now, seconds=verdict.wait_seconds)
        return self._answer(run, cell, verdict, phase_index, wait_seconds)

    def collect(self, run: str, cell: str) -> Answer:
        """Merges the summaries of the measured phases, stores the results and marks the cell as SUCCEEDED, also if the
        results do not hold the file's limits. Returns DONE.

        Raises:
            SummaryError: a summary cannot be read, or the summaries do not belong together.
            CellDamagedError: a summary is missing.
            UnjudgedPointError: whether a point of a search holds the expectations of its faults is unknown.
        """
        self.runs.cells.change(run, cell, phase=names.COLLECT, at=self.clock())
        benchmark, roster = self._benchmark(run, cell), self._roster(run, cell)
        results = Results()
        for planned in benchmark.steps:
            step = self._chosen(run, cell, benchmark, planned)
            if step.phase.is_measured and not step.is_skipped:
                merged = self._merged_point if step.point else self._merged
                results.add(merged(run, cell, benchmark, step, roster), is_searched=step.search is not None)
        searches = searching.documents(benchmark, results.limits)
        self._store(run, cell, results, searches)
        self.runs.cells.change(
            run,
            cell,
            status=CellStatus.SUCCEEDED,
            results=stored_table(results.table),
            limits=results.limits or None,
            faults=judging.stored_faults(results.faults) or None,
            searches=searches or None,
            requests=dict(results.requests) or None,
        )
        self.runs.cells.change(run, cell, phase=names.TEARDOWN, at=self.clock())
        return Answer(run, cell, State.DONE)

    def fail(self, run: str, cell: str, error: str = "", cause: str = "") -> Answer:
        """Ends a cell that failed or was stopped, and returns FAILED.

        Records the reason unless there is one, tells waiting nodes to stop, stores the console output of nodes that
        were lost or never registered, and stores what was measured.

        Args:
            error: with which a step failed; "" if a step gave up itself.
        """
        closed = verdicts.closed_verdict(self.runs.get(run), self.clock())
        if closed is not None and closed.status is CellStatus.STOPPED:
            self.runs.cells.change(run, cell, status=CellStatus.STOPPED, reason=closed.reason)
        else:
            why = verdicts.error_text(error, cause) if error else "a step gave up without giving a reason"
            self.runs.cells.change(run, cell, status=CellStatus.FAILED, reason=why)
        # The rest only helps to find the cause, and must not delay the teardown.
        with suppress(BotoCoreError, ClientError, TroopError):
            self._end_barriers(run, cell)
        with suppress(BotoCoreError, ClientError, TroopError):
            self._keep_consoles(run, cell)
        if self.runs.cells.get(run, cell).phase != names.TEARDOWN:  # a retry, while nodes and their objects may be gone
            with suppress(BotoCoreError, ClientError, TroopError, ValueError):
                self._keep_results(run, cell)
        self.runs.cells.change(run, cell, phase=names.TEARDOWN, at=self.clock())
        return Answer(run, cell, State.FAILED)

    # Helpers

    def _benchmark(self, run: str, cell: str) -> Benchmark:
        return from_document(self.store.read(names.cell_definition_key(run, cell)))

    def _roster(self, run: str, cell: str) -> Roster:
        return roster_from(self.store.read(names.roster_key(run, cell)))

    def _answer(self, run: str, cell: str, verdict: Verdict, phase_index: int = 0, wait_seconds: int = 0) -> Answer:
        if verdict.status is not None:
            self.runs.cells.change(run, cell, status=verdict.status, reason=verdict.reason)
        return Answer(run, cell, verdict.state, phase_index, wait_seconds, verdict.reason)

    def _nodes(self, run: str, cell: str, fleets: Iterable[FleetStatus]) -> tuple[dict[str, Node], dict[str, datetime]]:
        """Returns the registrations of the groups' instances, and when each was stored. One that is not read yet counts
        as a node of its group's role.
        """
        roles = {i: fleet.role for fleet in fleets for i in fleet.serving | fleet.starting}
        listed = {i: o for i, o in self.store.listed(names.nodes_prefix(run, cell)).items() if i in roles}
        nodes = {i: Node(i, roles[i]) for i in listed}
        for i, document in self.store.documents(_to_read(listed, roles, MOST_REGISTRATIONS)):
            nodes[i] = parse_node(i, document)
        return nodes, {i: one.modified for i, one in listed.items()}

    def _interrupted(self, run: str, cell: str, benchmark: Benchmark) -> frozenset[str]:
        """Returns the ids of the nodes that have received a spot interruption notice."""
        if not any(fleet.is_spot for fleet in benchmark.fleets):
            return frozenset()
        return frozenset(self.store.listed(names.interruptions_prefix(run, cell)))

    def _locate(
        self,
        run: str,
        cell: str,
        benchmark: Benchmark,
        fleets: Sequence[FleetStatus],
        registered: Mapping[str, Node],
        elapsed: float,
    ) -> Verdict:
        """Freezes the fleets and writes the roster, with zones, addresses and types as EC2 describes them.

        Returns:
            READY. Or WAITING while EC2 does not list a node yet; or FAILED if it never does, or zones are uneven.
        """
        serving = [i for fleet in fleets for i in sorted(fleet.serving)]
        described = self.reader.described(run, cell)
        if unlisted := [i for i in serving if i not in described]:
            return verdicts.unlisted_verdict(benchmark, unlisted, elapsed)
        nodes = {i: registered[i].located(described[i]) for i in serving}
        verdict = boot_verdict(benchmark, fleets, nodes, elapsed)
        if verdict.state is State.READY:
            self.reader.freeze(name for fleet in fleets for name in fleet.groups)
            now = self.clock()
            known = [
                resource
                for i, node in nodes.items()
                for resource in resources_of(described[i], run, cell, benchmark.fleet(node.role), now)
            ]
            self.runs.resources.created(known, now)
            self.store.write(names.roster_key(run, cell), roster_document(make_roster(list(nodes.values()))))
        return verdict

    def _check(
        self, run: str, cell: str, benchmark: Benchmark, step: Step, roster: Roster, elapsed: timedelta
    ) -> Verdict:
        fleets = self.reader.fleets(run, cell, {fleet.role: 0 for fleet in benchmark.fleets})
        serving = frozenset[str]().union(*(fleet.serving for fleet in fleets))
        expected = roster.ids(step.phase.roles, step.limits)
        prefix = names.phase_prefix(run, cell, step.name)
        listed = {i: one for i, one in self.store.listed(prefix).items() if i in expected}
        # Living nodes are read last: an outcome may be due to a node that was lost just before.
        outcomes = list(self._outcomes(listed, expected, step))
        missing = roster.ids() - (serving & self.reader.running(run, cell).keys())
        ended = self.reader.ended(run, cell) if missing else Ended()
        taken = self._interrupted(run, cell, benchmark) | ended.taken
        # EC2 can need a moment to state that spot takes a node back.
        certain = (missing & ended.gone) - (roster.spot() & ended.unexplained)
        doubted, now = self._doubted(run, cell, missing), self.clock()
        excused = frozenset[str]()
        if missing:
            since = {i: moment.timestamp() for i, moment in doubted.items()}
            excused = node_faults.excused(since, self.faults.announced(run, cell, benchmark, step))
        lost = (certain | doubts.confirmed(doubted, now)) - excused
        if missing - excused and not lost and not roster.ids() & taken:
            return Verdict(State.WAITING, wait_seconds=doubts.WAIT)
        live, present = roster.ids() - lost - excused, frozenset(listed)
        return verdicts.step_verdict(step, roster, live, present, outcomes, elapsed.total_seconds(), taken, excused)

    def _doubted(self, run: str, cell: str, missing: frozenset[str]) -> doubts.Doubts:
        """Stores which nodes are missing, and returns since when."""
        key = names.doubts_key(run, cell)
        earlier = doubts.from_document(self.store.find_document(key))
        current = doubts.following(missing, earlier, self.clock())
        if current != earlier:
            self.store.write(key, doubts.to_document(current))
        return current

    def _outcomes(self, listed: dict[str, Listed], expected: frozenset[str], step: Step) -> Iterator[NodeOutcome]:
        for one, beginning in self.store.beginnings(_to_read(listed, expected), HEAD_BYTES):
            i = names.node_of(one.key)
            try:
                summary = _checked(one, step, summaries.head_of(beginning))
                if summary is None:  # of an earlier version, or of very many words
                    ((_, document),) = self.store.documents([one])
                    summary = _summary(one, step, document)
            except SummaryError as error:
                yield NodeOutcome(i, "has left a summary that cannot be read", str(error))
            else:
                yield NodeOutcome(i, summary.outcome, summary.reason, summary.interruption is not None)

    def _next_step(self, run: str, cell: str, benchmark: Benchmark, index: int) -> Step:
        """Returns the step to release. A search chooses it from the points before it; an earlier choice stays."""
        step = benchmark.steps[index]
        if step.search is None:
            return step
        document = self.store.read(names.barrier_key(run, cell, step.name))
        if is_released(document):
            return chosen(benchmark, step, document)
        return searching.next_step(benchmark, step, self.runs.cells.get(run, cell).limits) or step.skipped()

    def _release(self, run: str, cell: str, step: Step, roster: Roster, skipped: int = 0) -> dict[str, Any]:
        """Releases a step's barrier unless it is released. Returns its document."""
        key = names.barrier_key(run, cell, step.name)
        document: dict[str, Any] = self.store.read(key)
        if not is_released(document):
            document = release(step, self.clock(), roster, skipped)
            self.store.write(key, document)
        return document

    def _chosen(self, run: str, cell: str, benchmark: Benchmark, step: Step) -> Step:
        """Returns a step as it was released."""
        if step.search is None:
            return step
        return chosen(benchmark, step, self.store.read(names.barrier_key(run, cell, step.name)))

    def _merge_before(self, run: str, cell: str, benchmark: Benchmark, roster: Roster, index: int) -> None:
        """Merges the point before a step, and records whether it holds the limits."""
        if index == 0 or not _is_measured_point(benchmark.steps[index - 1]):
            return
        earlier = self._chosen(run, cell, benchmark, benchmark.steps[index - 1])
        phase = self._merged_point(run, cell, benchmark, earlier, roster)
        if entry := judging.entry(phase, is_searched=earlier.search is not None):
            entries = judging.with_entry(self.runs.cells.get(run, cell).limits, entry)
            searches = searching.documents(benchmark, entries)
            self.runs.cells.change(run, cell, limits=entries, searches=searches or None)

    def _merged_point(self, run: str, cell: str, benchmark: Benchmark, step: Step, roster: Roster) -> dict[str, Any]:
        """Returns the merged results of a point, and merges them only once: many points together would take longer
        than a function may.

        Raises:
            UnjudgedPointError: see :meth:`collect`.
        """
        key = names.point_key(run, cell, step.name)
        document: dict[str, Any] | None = self.store.find_document(key)
        if document is None:
            document = self._merged(run, cell, benchmark, step, roster)
            self.store.write(key, document)
        if step.search is not None and (why := judging.unjudged(document.get("faults") or ())):
            raise UnjudgedPointError(f"the search of {step.phase_name} cannot go on from {step.name}: {why}")
        return document

    def _merged(self, run: str, cell: str, benchmark: Benchmark, step: Step, roster: Roster) -> dict[str, Any]:
        listed = self.store.listed(names.phase_prefix(run, cell, step.name))
        expected = self._expected(run, cell, benchmark, step, roster, listed)
        if missing := expected - set(listed):
            raise CellDamagedError(f"summaries of the phase {step.name} are gone: {verdicts.name_some(missing)}")
        documents = self.store.documents(listed[i] for i in sorted(expected))
        merger, merged = _sum_of(roster, (_named(listed[i], step, document) for i, document in documents))
        generating = {fleet.role for fleet in benchmark.fleets if is_load(fleet.role, fleet.load)}
        judged = judging.judge(
            step.phase.limits, merger.operations, generating, merger.measured_from, merger.measured_seconds
        )
        place = _place_of(step)
        if judged:
            taking_part = {name: role["nodes"] for name, role in merged["roles"].items()}
            judged += judging.judge_rates(
                merged, targets(benchmark, step.phase_name, place.get("parameters", {}), taking_part)
            )
        limits: dict[str, Any] = {"limits": [one.document() for one in judged]} if judged else {}
        if judged and self._is_baseline(run, cell, benchmark, place):
            limits["is_baseline"] = True
        faults = self._judged_faults(run, cell, benchmark, step, roster, merger, merged)
        return merged | place | limits | faults

    def _judged_faults(
        self,
        run: str,
        cell: str,
        benchmark: Benchmark,
        step: Step,
        roster: Roster,
        merger: Merger,
        merged: Mapping[str, Any],
        *,
        is_whole: bool = True,
    ) -> dict[str, Any]:
        """Returns the planned faults of a step as its results have them, and the roles whose load they hit; empty
        without any. Their figures are unknown unless all nodes have ended in order.
        """
        if not step.phase.faults:
            return {}
        generating = _generating(benchmark, merger)
        load = _load(benchmark, step, merger, merged, generating) if is_whole else Load((), None, 0.0)
        entries = failure.entries(self.faults.happened(run, cell, step, roster), load)
        return {"faults": entries, "generating": generating}

    def _expected(
        self, run: str, cell: str, benchmark: Benchmark, step: Step, roster: Roster, listed: Collection[str]
    ) -> frozenset[str]:
        """Returns the nodes whose summaries belong to a step: not those that a planned fault has crashed before."""
        expected = roster.ids(step.phase.roles, step.limits)
        if missing := expected - set(listed):
            expected -= missing & self.faults.announced(run, cell, benchmark, step).keys()
        return expected

    def _is_baseline(self, run: str, cell: str, benchmark: Benchmark, place: Mapping[str, Any]) -> bool:
        """Checks whether a merged phase or point, at this place, is of the baseline."""
        if not benchmark.baseline:
            return False
        variant = self.runs.cells.get(run, cell).variant
        return is_baseline(benchmark.baseline, {**variant.values, **place.get("parameters", {})})

    def _end_barriers(self, run: str, cell: str) -> None:
        for step in self._benchmark(run, cell).steps:
            key = names.barrier_key(run, cell, step.name)
            if not is_released(self.store.read(key)):
                self.store.write(key, barrier(step, BarrierState.END))

    def _keep_results(self, run: str, cell: str) -> None:
        """Stores the results of the phases and points that were over before the cell failed, and what its nodes have
        measured of the one that was not: they are valid, but incomplete.
        """
        results, benchmark = Results(is_complete=False), self._benchmark(run, cell)
        roster = self._roster(run, cell)
        for planned in benchmark.steps:
            barrier_document = self.store.read(names.barrier_key(run, cell, planned.name))
            if not is_released(barrier_document):
                break
            step = chosen(benchmark, planned, barrier_document)
            if step.phase.is_measured and not step.is_skipped:
                point = self.store.find_document(names.point_key(run, cell, step.name)) if step.point else None
                if document := point or self._partial(run, cell, benchmark, step, roster):
                    results.add(document, is_searched=step.search is not None)
        if results.phases:
            searches = searching.documents(benchmark, results.limits)
            self._store(run, cell, results, searches)

    def _store(self, run: str, cell: str, results: Results, searches: list[dict[str, Any]]) -> None:
        body, its_part = results.bodies(searches)
        self.store.put(names.results_key(run, cell), body, "application/json")
        if its_part is not None:
            with suppress(BotoCoreError, ClientError):  # the report computes it again
                self.store.put(names.report_part_key(run, cell), its_part, "application/json")

    def _partial(self, run: str, cell: str, benchmark: Benchmark, step: Step, roster: Roster) -> dict[str, Any] | None:
        """Merges what nodes have measured of a step, from summaries and running summaries; None for nothing. It is
        marked as partial unless all nodes have ended in order.
        """
        listed = self.store.listed(names.phase_prefix(run, cell, step.name))
        expected = self._expected(run, cell, benchmark, step, roster, listed)
        lives = self._lives(run, cell, step, {one.id: one.role for one in roster.members if one.id in expected})
        ranks, whole = {one.id: one.rank for one in roster.members}, set[str]()

        def summaries_of() -> Iterator[Summary]:
            for i, document in self.store.documents(listed[i] for i in sorted(expected & set(listed))):
                left: Summary | None = None
                with suppress(SummaryError):
                    left = _summary(listed[i], step, document)
                if left is not None and left.outcome == OK:
                    whole.add(i)
                if summary := partial(lives.pop(i, None), left, ranks[i]):
                    yield summary
            for i, live in lives.items():
                if summary := partial(live, None, ranks[i]):
                    yield summary

        merger, merged = _sum_of(roster, summaries_of())
        if not merger.nodes:
            return None
        is_whole = whole == expected
        faults = self._judged_faults(run, cell, benchmark, step, roster, merger, merged, is_whole=is_whole)
        return merged | _place_of(step) | faults | ({} if is_whole else {"partial": True})

    def _lives(self, run: str, cell: str, step: Step, roles: Mapping[str, str]) -> dict[str, Live]:
        """Returns the last running summaries of a step, by node."""
        lives = {}
        listed = self.store.listed(names.live_prefix(run, cell))
        for i, document in self.store.documents(listed[i] for i in sorted(roles.keys() & listed.keys())):
            with suppress(LiveError):
                live = parse_live(document)
                if (live.node, live.role, live.phase) == (i, roles[i], step.name):
                    lives[i] = live
        return lives

    def _keep_consoles(self, run: str, cell: str) -> None:
        registered = set(self.store.listed(names.nodes_prefix(run, cell)))
        roster = self.store.find_document(names.roster_key(run, cell))
        members = roster_from(roster).ids() if roster else frozenset()
        lost = members - self.reader.running(run, cell).keys()
        silent = self.reader.existing(run, cell) - registered
        for i in sorted(silent | lost)[:MOST_CONSOLES]:
            with suppress(BotoCoreError, ClientError):
                if console := self.reader.console(i):
                    self.store.put_log(names.console_key(run, cell, i), console)


def _to_read(listed: dict[str, Listed], expected: Iterable[str], most: int | None = None) -> Iterable[Listed]:
    """Returns all of them once all are there; before that, only the newest."""
    return listed.values() if set(expected) <= set(listed) else newest(listed.values(), most or READ_EARLY)


def _is_measured_point(step: Step) -> bool:
    return step.point is not None and step.phase.is_measured


def _sum_of(roster: Roster, several: Iterable[Summary]) -> tuple[Merger, dict[str, Any]]:
    """Merges summaries; the merged document is empty without any."""
    merger = Merger()
    with without_collections():
        for summary in several:
            merger.add(summary)
        merged = merger.document() if merger.nodes else {"roles": {}}
    bought = {member.id: member.purchase for member in roster.members}
    for role in merged["roles"].values():
        for i, line in role["nodes"].items():
            line["purchase"] = bought[i]
    return merger, merged


def _generating(benchmark: Benchmark, merger: Merger) -> list[str]:
    """Returns the roles in merged results that generate load; all of them if none does."""
    generating = {fleet.role for fleet in benchmark.fleets if is_load(fleet.role, fleet.load)}
    return sorted(generating & merger.operations.keys()) or sorted(merger.operations)


def _load(
    benchmark: Benchmark, step: Step, merger: Merger, merged: Mapping[str, Any], generating: Sequence[str]
) -> Load:
    """Returns what the roles of a step did that generate load."""
    taking_part = {role: merged["roles"][role]["nodes"] for role in generating}
    point = step.point.parameters if step.point else {}
    rates = targets(benchmark, step.phase_name, point, taking_part)
    return Load(
        [operation for role in generating for operation in merger.operations[role].values()],
        merger.measured_from,
        merger.measured_seconds,
        sum(rates.values()) if rates and rates.keys() == set(generating) else None,
    )


def _place_of(step: Step) -> dict[str, Any]:
    """Returns the keys that tell a step's results from those of the phase's other points."""
    if step.point is None:
        return {"phase": step.phase_name}
    at = codec.to_document(step.point)
    return {"phase": step.phase_name, "point": at["number"], "repeat": at["repeat"], "parameters": at["parameters"]}


def _summary(listed: Listed, step: Step, document: Any) -> Summary:
    _checked(listed, step, None)
    summary = summaries.parse(document)
    _checked(listed, step, summary)
    return summary


def _named(listed: Listed, step: Step, document: Any) -> Summary:
    """Returns a summary; an error names its node."""
    try:
        return _summary(listed, step, document)
    except SummaryError as error:
        raise SummaryError(f"the summary of {names.node_of(listed.key)} cannot be read: {error}") from error


def _checked(listed: Listed, step: Step, summary: Summary | None) -> Summary | None:
    if listed.size > MOST_BYTES:
        raise SummaryError(f"it has {mib(listed.size)}; the limit is {mib(MOST_BYTES)}")
    if summary and (summary.node, summary.phase) != (names.node_of(listed.key), step.name):
        raise SummaryError(f"it belongs to the node {summary.node} and the phase {summary.phase}")
    return summary
