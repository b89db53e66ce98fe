"""Reads a cell's stored data for the report, and collects what a reader must know to trust its numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import repeat
from typing import Any, TypeVar

from troop.bench.admission.spending import Terms
from troop.bench.definition import names, phase_limits
from troop.bench.definition.definition import parameter_of, plain_parameter
from troop.bench.definition.phase_limits import Outcome
from troop.bench.definition.plan import Variant
from troop.bench.definition.roster import Roster
from troop.bench.definition.roster import from_document as roster_of
from troop.bench.fleets.type_facts import TypeFacts
from troop.bench.measuring import judging
from troop.bench.measuring.open_loop import targets
from troop.bench.measuring.verdicts import name_some
from troop.bench.records import archive as files
from troop.bench.records.archive import Archive, DamagedError
from troop.bench.records.record import Cell as Recorded
from troop.bench.records.record import CellStatus
from troop.bench.results.figures import DAMAGE, figures
from troop.bench.results.operations import cost_per_million
from troop.report import activity, failures, fleets, instance_limits, parts, run_cost, saturation, traffic, trust
from troop.report.capacity import capacity
from troop.report.document import (
    Attempt,
    Cell,
    Failure,
    Finding,
    Interruption,
    Limit,
    Operation,
    Phase,
    Search,
    Separate,
    Step,
)
from troop.report.fleets import Place
from troop.report.parts import Figures
from troop.report.sources import PlannedCell, attempt_benchmark

UNKNOWN = "UNKNOWN"
"""The status of a cell without results and without a record."""

RESULTS_FORMAT = "troop.results/1"

_T = TypeVar("_T")


def cell(
    archive: Archive,
    planned: PlannedCell,
    attempts: Sequence[Recorded | str],
    terms: Terms | None,
    types: Mapping[str, TypeFacts],
) -> tuple[Cell, list[Finding]]:
    """Reads a cell and the data of the attempt that counts. Damaged parts are left out and become findings.

    Args:
        attempts: at the cell, the one that counts last; their records, or only their ids.
        terms: with the run's prices; None if unknown.
        types: known facts of instance types.
    """
    return _Reading(archive, planned, attempts, terms, types).cell()


class _Reading:
    """A reader of one cell."""

    def __init__(
        self,
        archive: Archive,
        planned: PlannedCell,
        attempts: Sequence[Recorded | str],
        terms: Terms | None,
        types: Mapping[str, TypeFacts],
    ) -> None:
        self._archive, self._planned, self._types = archive, planned, types
        self._prices = terms.prices if terms else None
        self._file_prices = terms.file_prices if terms else None
        *self._earlier, last = attempts
        self._record = last if isinstance(last, Recorded) else None
        self._id = last if isinstance(last, str) else last.cell
        self._findings: list[Finding] = []
        self._partial = False
        self._searches: list[dict[str, Any]] = []
        self._part = parts.stored(archive, self._id)

    def cell(self) -> tuple[Cell, list[Finding]]:
        record, variant = self._record, self._planned.variant
        benchmark = attempt_benchmark(self._planned, self._id)
        results = self._results()
        roster = self._tried(self._roster, None, "fleets are shown as planned")
        there = fleets.fleets(benchmark, roster, self._prices, self._file_prices)
        hourly = fleets.hourly(fleets.system(there))
        places = fleets.places(roster)
        known = [one.figures for one in self._part.phases] if self._part else repeat(None)
        each = zip(results or [], known, strict=False)
        phases = [phase for one, its in each if (phase := self._phase(one, its, hourly, places))]
        if self._partial:
            text = f"The cell did not end. What it had measured is shown ({_so_many(phases)}), but does not count."
            self._findings.append(Finding(severity="warning", cell=self._id, text=text))
        good = results and not self._partial
        status = record.status.value if record else (CellStatus.SUCCEEDED.value if good else UNKNOWN)
        searches: list[Search] = []
        searches = self._tried(self._searched, searches, "its searches are left out")
        cell = Cell(
            cell=self._id,
            label=variant.label,
            scale=variant.scale,
            values={key: plain_parameter(value) for key, value in variant.values.items()},
            parameters={key: plain_parameter(value) for key, value in benchmark.parameters.items()}
            if benchmark
            else {},
            repetition=variant.repetition,
            attempt=names.attempt_of(self._id)[1],
            order=record.order if record else None,
            earlier=[self._attempt(one) for one in self._earlier],
            status=status,
            reason=record.reason if record else None,
            steps=[Step(phase=name, at=at) for name, at in record.phases.items()] if record else [],
            fleets=there,
            capacity=capacity(benchmark, roster, self._types),
            interruptions=self._interruptions(self._id, results or []),
            replaced_nodes=fleets.replaced_nodes(self._archive, self._id, self._say),
            cost=run_cost.bill(record.cost) if record and record.cost else None,
            hourly=fleets.hourly(there),
            system_hourly=hourly,
            cross_zone=traffic.cross_zone(there, phases, benchmark, self._prices),
            phases=phases,
            verdict=self._verdict(results or []) if status == CellStatus.SUCCEEDED else None,
            searches=searches,
            fault_verdict=failures.cell_verdict(phases, searches) if status == CellStatus.SUCCEEDED else None,
        )
        whole = cell.model_copy(update={"phases": [phase for phase in phases if not phase.partial]})
        return cell, [
            *self._findings,
            *saturation.findings(whole, self._types),
            *trust.findings(whole),
            *instance_limits.findings(whole, self._types),
        ]

    def _results(self) -> list[dict[str, Any]] | None:
        """Returns the stored phases; None if there are none."""
        should = self._record is not None and self._record.status is CellStatus.SUCCEEDED
        name = f"{self._id}/{files.RESULTS}"
        try:
            document = self._part.results if self._part else files.document(self._archive, name)
            if document is None:
                if should:
                    self._say(f"{name} is missing although the cell SUCCEEDED: its results are lost.")
                return None
            if document.get("format") != RESULTS_FORMAT:
                raise DamagedError(f"{name} has the format {document.get('format')!r}: must be {RESULTS_FORMAT}")
            self._partial = document.get("complete") is False
            self._searches = document.get("searches") or []
            phases = document["phases"]
            if not isinstance(phases, list) or not all(isinstance(one, dict) for one in phases):
                raise DamagedError(f"{name} must have a list of phases")
            return phases
        except DAMAGE as error:
            self._say(f"{_shown_error(error)}: the results of this cell are left out.")
            return None

    def _roster(self) -> Roster | None:
        name = f"{self._id}/{files.ROSTER}"
        document = files.document(self._archive, name)
        try:
            return None if document is None else roster_of(document)
        except DAMAGE as error:
            raise DamagedError(f"{name} is damaged ({error!r})") from None

    def _interruptions(self, cell: str, results: Sequence[Mapping[str, Any]]) -> list[Interruption]:
        interruptions: list[Interruption] = []
        read = partial(fleets.interruptions, self._archive, cell, results, self._say)
        return self._tried(read, interruptions, "spot interruption notices are left out")

    def _attempt(self, one: Recorded | str) -> Attempt:
        if isinstance(one, str):
            return Attempt(cell=one, status=UNKNOWN, **self._node_events(one))
        amount = float(one.cost.amount) if one.cost else None
        nodes = self._node_events(one.cell)
        return Attempt(cell=one.cell, status=one.status.value, reason=one.reason, amount=amount, **nodes)

    def _node_events(self, attempt: str) -> dict[str, Any]:
        return {
            "interruptions": self._interruptions(attempt, []),
            "replaced_nodes": fleets.replaced_nodes(self._archive, attempt, self._say),
        }

    def _phase(
        self,
        document: Mapping[str, Any],
        known: Figures | None,
        hourly: float | None,
        places: Mapping[str, Place],
    ) -> Phase | None:
        name = ".".join(str(part) for part in (document.get("phase", "unnamed"), document.get("point")) if part)
        try:
            measured_from = document.get("measured_from")
            members = activity.nodes(document["roles"], places, self._types)
            bursts = instance_limits.bursts(members, self._types)
            point = document.get("parameters") or {}
            its = known or Figures.model_validate(figures(document))
            phase = Phase(
                phase=document["phase"],
                point=document.get("point"),
                repeat=document.get("repeat", 1),
                label=Variant(values={key: parameter_of(value) for key, value in point.items()}).label,
                parameters={**self._values(), **point},
                partial=document.get("partial", False),
                nodes=document["nodes"],
                measured_seconds=document["measured_seconds"],
                warm_up_seconds=document.get("warm_up_seconds") or 0,
                targets=targets(
                    attempt_benchmark(self._planned, self._id),
                    document["phase"],
                    point,
                    {name: role["nodes"] for name, role in document["roles"].items()},
                ),
                measured_from=_moment(measured_from),
                operations=_priced(its.operations, hourly),
                totals=_priced(its.totals, hourly),
                use=[one.model_copy(update={"bursts": bursts.get(one.role, [])}) for one in its.use],
                devices=activity.devices(document["roles"]),
                series=its.series,
                members=members,
                separate=[Separate.model_validate(row) for row in document.get("separate") or []],
                limits=[Limit.model_validate(one) for one in document.get("limits") or []],
                faults=[Failure.model_validate(one) for one in document.get("faults") or []],
                fallen=its.fallen,
                curve=its.curve,
            )
            if left_out := document.get("separate_left_out"):
                text = f"{name}: {left_out} more rows of single nodes are left out; the nodes' summaries contain them."
                self._findings.append(
                    Finding(severity="warning", cell=self._id, cause="Rows of single nodes are left out", text=text)
                )
            if its.incomplete:
                text = (
                    f"{name}: throughput over time of {name_some(its.incomplete)} is incomplete. Some nodes have no "
                    "counts by second, because there were too many or because the tool does not report them."
                )
                self._findings.append(
                    Finding(severity="warning", cell=self._id, cause="Throughput over time is incomplete", text=text)
                )
            return phase
        except DAMAGE as error:
            self._say(f"The results of phase {name} are damaged and left out: {_shown_error(error)}.")
            return None

    def _verdict(self, results: Sequence[Mapping[str, Any]]) -> Outcome | None:
        def read() -> Outcome | None:
            searched = {one["phase"] for one in self._searches}
            entries = (judging.entry(one, is_searched=one["phase"] in searched) for one in results)
            return phase_limits.verdict([one for one in entries if one], self._searches)

        return self._tried(read, None, "the verdict on its limits is left out")

    def _searched(self) -> list[Search]:
        return [Search.model_validate(one) for one in self._searches]

    def _values(self) -> dict[str, Any]:
        values = self._planned.variant.values.items()
        return {key.removeprefix("parameters."): plain_parameter(value) for key, value in values}

    def _tried(self, read: Callable[[], _T], otherwise: _T, loss: str) -> _T:
        try:
            return read()
        except DAMAGE as error:
            self._say(f"{_shown_error(error)}: {loss}.")
            return otherwise

    def _say(self, text: str) -> None:
        self._findings.append(Finding(severity="error", cell=self._id, text=text))


def _so_many(phases: Sequence[Phase]) -> str:
    partial = sum(phase.partial for phase in phases)
    counts = {"whole": len(phases) - partial, "partial": partial}
    return " and ".join(f"{number} {kind}" for kind, number in counts.items() if number)


def _priced(rows: Sequence[Operation], hourly: float | None) -> list[Operation]:
    """Adds the cost of the system, which is ``hourly`` for an hour."""
    return [one.model_copy(update={"cost_per_million": cost_per_million(hourly, one.per_second)}) for one in rows]


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _shown_error(error: BaseException) -> str:
    """Formats an error in one line; pydantic's have several."""
    text = str(error) if isinstance(error, DamagedError) else repr(error)
    line = " ".join(text.split())
    return line if len(line) <= 300 else line[:300] + "..."
